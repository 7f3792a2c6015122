/*
 * What is there at the instant of a crash, and what may be there after recovery.
 *
 * sight_take while the supervisor is stopped: how far it had come, as its traces tell. Then the kill, then gc; then
 * remains_check and ledger_check count every broken promise, each with a sentence in the list.
 */
#ifndef CRASH_INSPECT_H
#define CRASH_INSPECT_H

#include <jansson.h>
#include <stdbool.h>

#include "ground.h"

/* As story.c tells them, by what can be seen from outside. */
enum stage {
	STAGE_PLAN,	 /* there is nothing yet */
	STAGE_WORKSPACE, /* its record is there */
	STAGE_LIMITS,	 /* its cgroups are there */
	STAGE_SANDBOX,	 /* PID 1 is on record */
	STAGE_RUNNING,	 /* the command has been executed */
	STAGE_COLLECT,	 /* PID 1 is dead; how it ended is on disk in a moment */
	STAGE_COMMIT,	 /* the verdict is on disk */
	STAGE_CLEAN_UP,	 /* its cgroups or its private /tmp are going */
	STAGE_END,	 /* its record is gone */
	STAGE_COUNT
};
extern const char *const stage_names[STAGE_COUNT];

struct sight {
	enum stage stage;
	bool init_noted; /* the record names PID 1 */
	bool init_lives; /* and that lives: it is no earlier one's, with another begun and not noted yet */
	bool ended;	 /* how the command ended is on disk */
	bool finished;	 /* the verdict is on disk, or was */
	bool own_disk; /* its outputs lie on a file system of its own, which dies with it: neither counts before the commit */
};
/* gone: it has given up its folder. */
void sight_take(const struct ground *g, const char *id, bool gone, struct sight *ret);

/* A file of the run's folder is there, and not empty. */
bool run_has(const struct ground *g, const char *id, const char *name);

/* Everything that is wrong, in sentences. */
struct problems {
	int count;
	struct buffer text;
};
void problem(struct problems *p, const char *format, ...) PRINTF_LIKE(2, 3);

/* No workspace, process, mount, cgroup, record or temporary object of anybody on this ground. An init that was never
 * noted dies by itself, and gets a moment for it; with a post-process there is a second one, of which nobody knows here. */
void remains_check(const struct ground *g, bool init_noted, struct problems *p);

/* What the ledger may say of id. */
enum expected {
	EXPECT_NOTHING,
	EXPECT_LOST,
	EXPECT_SUCCEEDED,
	EXPECT_REFUSED,	    /* nothing, or lost */
	EXPECT_ENDED,	    /* lost, or succeeded */
	EXPECT_POST_FAILED, /* with its outputs, without its rows */
	EXPECT_ANY,	    /* nothing, lost or succeeded; with a post-process also its failure */
};
enum expected sight_expects(const struct sight *s);
/* before: how many attempts there may be before the one that is expected. All are numbered from 1, lost or succeeded,
 * and what has succeeded last is whole. */
void ledger_check(const struct ground *g, const char *id, enum expected expected, int before,
		  struct problems *p);
/* `db check` finds nothing. */
void store_check(const struct ground *g, struct problems *p);

/* Runs gc. */
void recover(const struct ground *g, struct problems *p);

#endif
