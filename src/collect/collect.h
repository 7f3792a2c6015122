/*
 * Outputs: inert files, taken from a workspace in which nothing is alive any more. Every path is resolved beneath
 * the workspace's descriptor, no link is followed, only regular files with one name count; what is refused is
 * listed with the reason, never dropped in silence.
 */
#ifndef COLLECT_COLLECT_H
#define COLLECT_COLLECT_H

#include "output_glob.h"
#include "manifest.h"
#include "work.h"

struct collect_rules {
	char *const *outputs;	       /* declared globs; "**" works; a directory means all below it */
	char *const *optional_outputs; /* neither: every file that the analysis made */
	const struct inputs *inputs;   /* staged: unchanged ones are not outputs */
	const struct inputs
		*flows; /* unchanged ones that another analysis made are never outputs; NULL: none */
	const char *const *ignore; /* top-level names that are ours: mount points "data", "docs" */
	uint64_t
		max_bytes; /* LIMIT_OUTPUT_MAX, paths included: what does not fit is rejected, in path order */
	uint64_t max_files;
	uint64_t object_min;  /* files larger than this go to `put` while they are hashed */
	uint64_t content_max; /* what the ledger takes of one file: larger ones are rejected */
	struct work *work;    /* told how far it is, or NULL */
	uid_t owner;	      /* files of another owner are rejected; (uid_t)-1: any */
};

/* Stores a large file's content and returns its digest (ledger_put_object, introduced by run). */
typedef int (*collect_put_fn)(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE],
			      struct error *err);

/* However large its limits are, an analysis's outputs are at most so many, and their paths together so long: what we hold
 * of them in memory, and what anybody holds who reads them back. docs/LIMITS.md makes the sum. */
enum { COLLECT_OUTPUTS_MAX = 1024 * 1024, COLLECT_NAMES_MAX = 64 * 1024 * 1024 };

/* Fills ret (sorted by path). An error is ours (I/O, memory); a hostile tree is only ever rejected outputs. */
int collect(int workspace_fd, const struct collect_rules *rules, collect_put_fn put, void *arg,
	    struct manifest *ret, struct error *err);

/* Opens one collected file again, safely; the content_open_fn of the ledger. -1 and err on failure. */
int collect_open(int workspace_fd, const struct output *o, struct error *err);

#endif
