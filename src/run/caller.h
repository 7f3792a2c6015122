/*
 * What the caller works in, and means when he says `sh -c 'python …'`: an activated virtual environment or conda prefix with
 * its base, his Python's and R's packages, PYTHONPATH, R_LIBS. It is shown read-only at its own place, as a program's prefix
 * is: what may not be shown unasked is named in a note instead. It is the caller's environment that says so, never a file.
 *
 *   caller_look (run: when the plan is made; queue: by submit, which stores it) → caller_show (where it runs)
 *
 * A worker shows of it what the submitter may read on its host, or the site lists as queue.allow.ro; the rest is a note.
 */
#ifndef RUN_CALLER_H
#define RUN_CALLER_H

#include "plan.h"
#include "request.h"

struct hood;
struct rights;

/* Fills r's shown and shown_env from our own environment, unless they are given. */
int caller_look(const struct hood *h, struct request *r, struct plan *plan, struct error *err);

/* They become the plan's prefixes, behind those of the program, and its environment. */
int caller_show(const struct hood *h, const struct request *r, const struct rights *rights, struct plan *plan,
		struct error *err);

/* Where programs are looked for: in what is shown, then along our own PATH. Newly allocated; NULL if memory is out. */
char *caller_search(const struct request *r);

#endif
