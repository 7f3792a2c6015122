/*
 * The ground on which one worker lets fumehood die: directories of its own (platform, state, ledger, objects), cgroups
 * of its own, and every process that fumehood leaves behind as a child of its own. So whatever is found there after a
 * crash was left by that crash, whatever else the machine does.
 *
 * ground_make in the parent (as root, if it is root), ground_settle in the worker, then commands; ground_remove in the
 * parent when the worker has ended.
 */
#ifndef CRASH_GROUND_H
#define CRASH_GROUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buffer.h"
#include "digest.h"

enum { GROUND_CGROUPS_MAX = 8, GROUND_ARGS_MAX = 26, SMALL_MAX = 256 };

/* What is wanted of a ground. */
struct wish {
	const char *binary;
	const char *db;	  /* the URL of a PostgreSQL server; NULL: SQLite */
	const char *busy; /* how long a commit waits for that server */
	uid_t uid;	  /* who runs it */
	bool bare;	  /* its runs ask for --strength landlock */
	bool own_disk; /* its runs ask for a disk limit, and so the workspace is a file system of its own */
	bool blocked;  /* its runs end pending: the object store takes nothing until ground_unblock() */
	bool post;     /* its runs have a post-process, whose rows go with the outputs */
	bool inside;   /* PostgreSQL: it is the object store, too */
	bool small;    /* every content has room in the database: there are no objects */
};

struct ground {
	char binary[4096];
	char platform[256]; /* where the command is given: data/ and input.txt */
	char dir[256];	    /* state/ ledger/ objects/ empty/ out/ */
	char db[1024];	    /* as wished; "": SQLite */
	char url[2048];
	uid_t uid; /* who runs it */
	bool own_disk, post, blocked, bare;
	char tag[32];
	char *cgroups[GROUND_CGROUPS_MAX]; /* v1: our own directory in each hierarchy; none elsewhere */
	int n_cgroups;
	struct buffer input; /* what the analysis reads, and copies into its large output */
};

/* index tells the workers of one sweep apart. Exits with a message if the ground cannot be made. On a database server
 * it is a database of its own, made and dropped by psql. */
void ground_make(struct ground *g, const struct wish *wish, int index);
/* In the worker: enters the cgroups, becomes the user, adopts orphans, sets the environment. */
void ground_settle(struct ground *g);
void ground_remove(struct ground *g);
/* SQLite: the next analysis finds a ledger with nothing in it, or, fresh, none at all. So that every run of a sweep
 * makes the same calls: a longer log takes longer to read. A database server keeps what it has. */
void ground_reset_ledger(struct ground *g, bool fresh);

/* Something else lies where the object store should be; and it is gone again. */
void ground_block(const struct ground *g);
void ground_unblock(const struct ground *g);

/* A command that ran to its end. */
struct outcome {
	int status; /* as of waitpid; -1: it did not end in time, and was killed */
	struct buffer out, err;
};
void outcome_done(struct outcome *o);
#define _cleanup_outcome_ _cleanup_(outcome_done)

/* The command line of the analysis: reads an input and data/, writes small.txt (into the database) and large.txt
 * (an object). */
void ground_run_argv(const struct ground *g, const char *id, bool again, const char *argv[GROUND_ARGS_MAX]);
void ground_expected(const struct ground *g, const char *id, struct buffer *small, struct buffer *large);

/* With a post-process: how many rows of this analysis are in the platform's table, and how many belong there. */
enum { GROUND_ROWS = 40 };
int ground_count_rows(const struct ground *g, const char *id);

/* In a child, between fork and exec: stdio, then argv. Does not return. */
void ground_exec(const struct ground *g, const char *const *argv, int out, int err) __attribute__((noreturn));
/* argv[0] is fumehood; waits for its end. */
void ground_command(const struct ground *g, const char *const *argv, struct outcome *ret);

void remove_tree(const char *path);

/* A file without a name. */
int memory_file(void);
void memory_file_read(int fd, struct buffer *b);

/* Prints why and ends the process: the sweep itself cannot go on. */
void give_up(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
