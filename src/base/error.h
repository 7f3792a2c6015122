/*
 * What went wrong, in one sentence that a user can act on.
 *
 * A function that can fail returns 0 or a negative number, and takes a `struct error *` that it fills on failure
 * only. The lowest layer that knows the name of the thing sets the message; layers above pass it on, or put
 * their own half sentence in front with error_prefix(). Nobody both reports and returns. An error is always ours
 * or the world's: what the analysis did wrong is a verdict, never an error.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

#include "macros.h"

enum error_kind {
	ERROR_NONE,
	ERROR_USAGE,	 /* the caller's words make no sense */
	ERROR_REFUSED,	 /* understood, and not allowed or not possible on this host */
	ERROR_BUSY,	 /* somebody else has it now */
	ERROR_NOT_FOUND, /* no such analysis, attempt, output */
	ERROR_LEDGER,	 /* the database said no, or nothing */
	ERROR_LEASE,	 /* it was ours, and is somebody else's now: nothing of it may be committed */
	ERROR_SYSTEM,	 /* a system call failed that should not have */
	/* What the ledger tells apart for itself; to everybody else each of them is ERROR_LEDGER (error_kind_shown). */
	ERROR_AGAIN,   /* the transaction is gone, and may be tried again from its begin */
	ERROR_LOCKED,  /* somebody has a lock that was not to be waited for, or for too long */
	ERROR_SWEPT,   /* contents were removed before they were referred to: to be put again */
	ERROR_BAD_ROW, /* the database does not take the rows of a post-process */
	ERROR_SCHEMA,  /* the ledger's schema is not the one that this fumehood needs */
};

struct error {
	enum error_kind kind;
	int errnum;	   /* 0 where no system call was involved */
	const char *stage; /* a string constant, set by run: "plan", "workspace", "sandbox", … or NULL */
	bool is_here;	   /* what is in the way is this host's: another one, or a later day, may do it */
	bool is_damaged;   /* what was written down cannot be read, and no later try will read it */
	char message[1024];
};

#define ERROR_INIT \
	{          \
		0  \
	}

/* The kind as others know it. */
enum error_kind error_kind_shown(enum error_kind kind);
/* The name of that as --json shows it: "usage", "refused", … */
const char *error_kind_name(enum error_kind kind);

/* The kind of that name; ERROR_NONE if there is none such. */
enum error_kind error_kind_parse(const char *name);

/* Sets kind and message; returns -EINVAL (any negative will do for callers). err may be NULL. */
int error_set(struct error *err, enum error_kind kind, const char *format, ...) PRINTF_LIKE(3, 4);

/* Sets ERROR_SYSTEM and "<format>: <strerror(errnum)>"; returns -errnum. */
int error_system(struct error *err, int errnum, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "<format>: " before the message that is there. Returns its argument r, so that one can return it. */
int error_prefix(struct error *err, int r, const char *format, ...) PRINTF_LIKE(3, 4);

/* Marks what is there as an obstacle of this host, which its kind does not tell. Returns r. err may be NULL. */
int error_here(struct error *err, int r);
/* ERROR_REFUSED, marked so. */
#define error_refuse_here(err, ...) error_here(err, error_set(err, ERROR_REFUSED, __VA_ARGS__))
/* Marks what is there as damage. Returns r. err may be NULL. */
int error_damaged(struct error *err, int r);
/* ERROR_LEDGER, marked so. */
#define error_damaged_ledger(err, ...) error_damaged(err, error_set(err, ERROR_LEDGER, __VA_ARGS__))
/* Is it of this moment or of this host: marked so, somebody else's now, a full disk, too many files, a ledger that does not
 * answer? Then it may be tried again, here or elsewhere, and says nothing about what was asked. */
bool error_is_passing(const struct error *err);
/* The same of a system call's answer: a disk, memory or a table that is full, or a device that fails. */
bool errno_is_passing(int errnum);

/* Out of memory is an ordinary failure as well, and what builds something tells it once, at the end: see buffer.h.
 * Returns -ENOMEM. */
int error_memory(struct error *err);

#endif
