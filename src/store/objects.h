/*
 * The object store: contents too large for the database, each named by its SHA-256, below a directory of its own:
 *
 *	ab/abcdef…   an object, complete and on disk
 *	tmp/…        being written; its writer holds a flock on it
 *	pins/TOKEN   digests that an attempt, finished but not committed yet, will refer to
 *	lock         held shared from the first put until the commit, exclusively by a sweep
 *	id           whose it is: the ledger's id and the store's own, which the ledger has too (store_id.h)
 *
 * Zero-initialise with objects_init; nothing is made or opened before it is needed. A crash leaves at most a file in
 * tmp/ and objects that nobody refers to; objects_sweep removes both, and waits for nobody: what is in use by a
 * living writer stays until the next sweep.
 */
#ifndef STORE_OBJECTS_H
#define STORE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "digest.h"
#include "error.h"
#include "id.h"
#include "owned.h"
#include "work.h"

struct objects {
	char *path;
	gid_t group; /* all of whom it belongs to; NO_GROUP: to its owner alone */
	/* Makes sure that the store is its ledger's, and made; before the first put. */
	int (*join)(void *arg, struct error *err);
	void *join_arg;
	bool joined;
	uint64_t busy_ms;  /* how long to wait for a lock that somebody else has */
	int dir;	   /* -1: not opened yet */
	int lock;	   /* -1: not opened yet */
	bool holding;	   /* the lock, shared */
	struct work *work; /* ledger_watch() */
};

void objects_init(struct objects *o, char *path); /* takes the path; NULL: there is none, nor can be */
void objects_done(struct objects *o);

/* Opens the store: 1, 0 if it is not there, negative. Every other call does this by itself. */
int objects_open(struct objects *o, struct error *err);
/* The same, and its file `lock`. */
int objects_open_lock(struct objects *o, struct error *err);

/* Both are "" where there is no such file. */
struct store_id {
	char ledger[TOKEN_SIZE], store[TOKEN_SIZE];
};
/* 1, 0 if there is none, negative. */
int objects_id_read(struct objects *o, struct store_id *ret, struct error *err);
/* Makes the directory and what must be there before its first object, and gives it this id at the end: what has one is
 * whole. 1: it has one. */
int objects_make(struct objects *o, const struct store_id *id, struct error *err);

/* A directory of the open store: made with mode 0700 whatever the umask (2770 and the group's) if it is not there, its
 * entry on disk. */
int objects_subdir(struct objects *o, const char *name, struct error *err);

/* Keeps every sweep out until objects_release(): between "it is there" and "it is referred to". */
int objects_hold(struct objects *o, struct error *err);
void objects_release(struct objects *o);

/* Reads fd from 0 to its end, which must come after size bytes, and stores it. Takes the hold, and leaves it. */
int objects_put(struct objects *o, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err);
/* Is it there, with this size? 1, 0, negative. */
int objects_has(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, struct error *err);
/* Opens it: 1, 0 if it is not there, negative. */
int objects_find(struct objects *o, const uint8_t sha256[DIGEST_SIZE], int *ret_fd, struct error *err);
/* Writes it to fd (-1: nowhere), verifying digest and size. ERROR_LEDGER if they differ; ERROR_NOT_FOUND if it is
 * missing. */
int objects_copy(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		 struct error *err);

/* Keeps these from being swept until objects_unpin, over the end of this process and of the machine. */
int objects_pin(struct objects *o, const char *token, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
		struct error *err);
void objects_unpin(struct objects *o, const char *token);

/* No writer is at work, and none begins. Or one of these, or negative. */
enum objects_lock { OBJECTS_ABSENT, OBJECTS_LOCKED, OBJECTS_BUSY };
int objects_lock_alone(struct objects *o, struct error *err);
void objects_unlock(struct objects *o);

/* What the sweep asks: which of these are referred to? and: is this token committed (1, 0, negative)? */
struct objects_owner {
	void *arg;
	int (*referred)(void *arg, const uint8_t (*sha256)[DIGEST_SIZE], size_t n, bool *ret,
			struct error *err);
	int (*committed)(void *arg, const char *token, struct error *err);
};
/* Calls fn for every object that nobody refers to and nobody has pinned, under the exclusive lock. OBJECTS_BUSY if a writer
 * is at work, else 0. */
int objects_orphans(struct objects *o, const struct objects_owner *owner,
		    int (*fn)(void *arg, int dir, const char *name, struct error *err), void *arg,
		    struct error *err);
int objects_sweep(struct objects *o, const struct objects_owner *owner, uint64_t *ret_removed,
		  struct error *err);

#endif
