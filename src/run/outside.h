/*
 * What was missing under the hood, and is looked for outside when the command has ended: by a child, with the rights of who asked for
 * the analysis and with a deadline. A path may lead to a file system that does not answer, and while something runs nobody may wait
 * for that.
 *
 *   outside_note for each → outside_look, once → outside_done
 */
#ifndef RUN_OUTSIDE_H
#define RUN_OUTSIDE_H

#include "become.h"
#include "lookup.h"

enum outside_kind {
	OUTSIDE_READ,	   /* not there */
	OUTSIDE_WRITE,	   /* its directory is not there */
	OUTSIDE_SOCKET,	   /* not there */
	OUTSIDE_BARE_READ, /* without namespaces: it is there, if it is, and may not be opened */
	OUTSIDE_BARE_WRITE,
	OUTSIDE_BARE_MAKE, /* a directory */
};

/* What was found: which hint it gets. */
enum outside_found {
	FOUND_NOTHING,
	FOUND_NEAR,    /* in the caller's directory, readable */
	FOUND_FAR,     /* at its own path, readable */
	FOUND_MACHINE, /* the machine's */
	FOUND_CLOSED,  /* not readable */
	FOUND_THERE,   /* a directory to write in, a socket; without namespaces what must not be written */
};

struct outside_path {
	enum outside_kind kind;
	const char *operation; /* a constant */
	char *path;	       /* as the analysis has it */
	char *near;	       /* where it would lie in the caller's directory; NULL: nowhere */
	int errnum;
	int64_t at, count;
	enum outside_found found; /* from outside_look on */
};

struct outside {
	struct outside_path *list;
	size_t n;
	struct lookup names;
	bool was_cut; /* there were more than are kept */
};

void outside_done(struct outside *o);
/* near is copied. What cannot be kept is not looked for. */
void outside_note(struct outside *o, enum outside_kind kind, const char *operation, const char *path,
		  const char *near, int errnum);
/* judge is called in the child. Negative: not all could be looked for, and err says why. */
typedef enum outside_found (*outside_judge_fn)(const void *arg, const struct outside_path *p);
int outside_look(struct outside *o, const struct identity *who, outside_judge_fn judge, const void *arg,
		 struct error *err);

#endif
