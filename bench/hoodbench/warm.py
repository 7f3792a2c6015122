"""Rows: analyses by a library that is open, in a process that stays: what a warm worker or a platform pays."""
import statistics

from .rows import DISK, JOURNAL, Measured, row

AT_A_TIME = 8


def _request(place):
    return [f'data={place.data}', f'docs={place.docs}', '--', '/bin/true']


def _lines(out, scale):
    return [[float(word) * scale for word in line.split()] for line in out.splitlines()]


@row('warm', 'one analysis in a warm library, beyond posix_spawn of /bin/true', 0.9, 0.6, wheres=(DISK, JOURNAL))
def warm(place, pace):
    """Walls, cgroups, supervision, collecting and clean-up of /bin/true with the same inputs, by a library that is open (bench/warm.c); no
    ledger: the run is deferred and dropped. In turn with posix_spawn and waitpid of /bin/true. The value is what the hood adds, in
    spawns. With a durable commit is shown beside it."""
    out = place.run(place.tools.compiled('warm', 'fumehood'), 'turns', pace.rounds(200, 30), *_request(place))
    spawned, hooded, committed, cpu = _lines(out, 1e-6)
    series = {'posix_spawn': spawned, 'library': hooded, 'library, with a commit': committed}
    return Measured('library', 'posix_spawn', series, more={'cpu_ms': dict(zip(series, cpu))},
                    value=(statistics.median(hooded) - statistics.median(spawned)) / statistics.median(spawned),
                    least=(min(hooded) - min(spawned)) / min(spawned))


@row('throughput', f'analyses in a second, {AT_A_TIME} at a time, without the ledger, beside bare spawns', 45, 60, better='more', unit='%')
def throughput(place, pace):
    """Eight threads each run analyses of /bin/true one after the other, as in 'warm', for a second; then eight threads spawn /bin/true for a
    second; and so on in turn. The value is the one rate in per cent of the other."""
    out = place.run(place.tools.compiled('warm', 'fumehood'), 'rate', 1000, pace.rounds(8, 3), AT_A_TIME, *_request(place))
    spawned, hooded = _lines(out, 1)
    return Measured('library', 'posix_spawn', {'posix_spawn': spawned, 'library': hooded}, unit='/s',
                    value=100 * statistics.median(hooded) / statistics.median(spawned), least=100 * max(hooded) / max(spawned))
