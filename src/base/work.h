/*
 * How far a long piece of work is. Whoever does it says how much there is and adds what is done; whoever wants to know is told
 * now and then, once it has taken a second. A pointer to one is handed down, and NULL is one that nobody watches.
 */
#ifndef BASE_WORK_H
#define BASE_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct work {
	void (*tell)(void *arg, const struct work *w);
	void *arg;
	const char *what;     /* "collecting"; a constant */
	uint64_t done, total; /* total 0: nobody knows */
	bool is_parts;	      /* not bytes, but parts of no size that would mean anything */
	uint64_t began, told; /* clock_now() */
};

/* All of them: w may be NULL. */
void work_begin(struct work *w, const char *what, uint64_t total);
void work_begin_parts(struct work *w, const char *what, uint64_t total);
/* n may be 0: time goes by all the same. */
void work_add(struct work *w, uint64_t n);

#endif
