/*
 * An attempt as JSON text, piece by piece: its lists may have a million entries, and as JSON values they would take some
 * kilobytes each. Whoever writes or reads it so holds one entry at a time.
 *
 * Stored, it is lines: the attempt without its lists, which says how many entries follow, then one line for each output,
 * each refused one, each input. Up to version 0.1 it was one line with everything in it, which is still read.
 */
#ifndef MODEL_ATTEMPT_STREAM_H
#define MODEL_ATTEMPT_STREAM_H

#include "attempt.h"

enum {
	ATTEMPT_HEAD_MAX = 256 * 1024 * 1024, /* bytes of the first line */
	ATTEMPT_LINE_MAX = 64 * 1024, /* of any other: a path has at most 4095 bytes, and 26 KiB as text */
};

/* Takes a piece of text; negative ends it. (jansson's json_dump_callback_t.) */
typedef int (*attempt_put_fn)(const char *text, size_t size, void *arg);

/* The object that --json promises, as attempt_to_public_json has it; the keys of `over` (or NULL) replace its own or come
 * behind them. flags are jansson's. -1: memory is out, or put has failed. */
int attempt_write_public(const struct attempt *a, bool full, const json_t *over, size_t flags,
			 attempt_put_fn put, void *arg);
/* The manifest of a post-process: {"id", "attempt", "outputs"}. */
int attempt_write_manifest(const struct attempt *a, size_t flags, attempt_put_fn put, void *arg);

/* To be stored. -1: memory is out, or put has failed; -EFBIG: it could not be read back. */
int attempt_write_lines(const struct attempt *a, attempt_put_fn put, void *arg);

/* What is still to be read. Zero-initialise; `head` is true after the first line. */
struct attempt_lines {
	bool head;
	uint64_t outputs, rejected, inputs;
};
/* Takes the next line, without its end. */
int attempt_read_line(struct attempt *a, struct attempt_lines *l, const char *line, size_t size,
		      struct error *err);
/* All lines are there. */
bool attempt_lines_are_whole(const struct attempt_lines *l);

#endif
