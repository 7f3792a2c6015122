"""The bench: rows of one table, each measured beside its peer in one interleaved run. See bench/run."""
