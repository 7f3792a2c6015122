/*
 * What the files of the library share. The library is a thin skin on run, queue and view, as the command is: it turns the
 * public handles into theirs, lends each call a hood of its own, and tells each story in a thread of its own.
 *
 * Every public call that needs the hood is call_begin(), something of run's, call_end(): in between SIGPIPE is blocked
 * in the calling thread, and nobody else uses c.hood.
 */
#ifndef LIB_LIB_H
#define LIB_LIB_H

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "fumehood.h"
#include "hood.h"
#include "submission.h"
#include "view.h"

#define FH_PUBLIC __attribute__((visibility("default")))

/* ---- error.c ---- */

/* Copies what run said; returns -code. A failure without a word is one of memory. */
int fail(fh_error *err, const struct error *why);
/* One of the library's own. */
/* 0, or FH_USAGE: one of them is not known to this call. */
int flags_check(const char *call, unsigned flags, unsigned known, fh_error *err);
int fail_with(fh_error *err, enum fh_code code, const char *format, ...) PRINTF_LIKE(3, 4);
int fail_memory(fh_error *err);
/* The reverse of fail(), for what a callback of the host's wrote. */
int error_from_public(struct error *err, const fh_error *why);

/* ---- pool.c ---- */

struct fh_hood {
	atomic_uint refs;
	pid_t pid; /* of the process that opened it */
	char *config_file;
	char *ledger; /* absolute: every hood of the pool has the same, wherever the host has gone since */
	pthread_mutex_t lock;
	struct idle {
		struct hood *hood;
		struct idle *next;
	} * idle;
	unsigned n_idle;
	struct stock *stock; /* what all of them share */
};

fh_hood *hood_ref(fh_hood *hood);
void hood_unref(fh_hood *hood);
/* In a child of the process that made it: refused. */
int check_process(pid_t owner, fh_error *err);

/* One of the pool's, or a new one; and back. */
int pool_take(fh_hood *hood, struct hood **ret, struct error *err);
void pool_give(fh_hood *hood, struct hood *h);

struct quiet {
	sigset_t before;
	bool was_pending;
};
/* No SIGPIPE in this thread until quiet_end(): one that a write of ours raises is swallowed. */
void quiet_begin(struct quiet *q);
void quiet_end(const struct quiet *q);

struct call {
	fh_hood *owner;
	struct hood *hood;
	struct error err;
	struct quiet quiet;
	const char *stage; /* what it is called in errors that have no stage */
};
int call_begin(struct call *c, fh_hood *hood, const char *stage, fh_error *err);
/* r is run's: what is not negative is returned as it is. */
int call_end(struct call *c, int r, fh_error *err);
/* The same, and json (new reference, NULL: memory is out) becomes *ret when r is not negative. */
int call_end_json(struct call *c, int r, json_t *json, char **ret, fh_error *err);
/* The same, and result becomes *ret or is freed. */
int call_end_result(struct call *c, int r, fh_result *result, fh_result **ret, fh_error *err);
/* A whole call: view_list() or view_queue(). */
int call_list(fh_hood *hood, const char *stage,
	      int (*fn)(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err),
	      const struct view_filter *filter, char **ret_json, fh_error *err);

/* ---- request.c ---- */

struct fh_request {
	struct request request;
	int stdin_fd;	 /* -1: none */
	char *submitter; /* for the queue; NULL: the user */
};

/* A copy that is complete: with a directory. */
int request_complete(const fh_request *from, struct request *ret, struct error *err);

/* ---- result.c ---- */

struct fh_result {
	atomic_uint refs;
	struct attempt attempt;
};

fh_result *result_new(void);
fh_result *result_ref(fh_result *result);
/* As it is now, of one that will still change. */
fh_result *result_copy(const struct attempt *a);

json_t *json_read(const char *text, struct error *err); /* any JSON */

#endif
