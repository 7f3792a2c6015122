/*
 * One attack: a row of a family's table. `run` is what the analysis does, in the attacker's process, without the hood
 * or under it; everything else happens outside, in the suite. Most rows need nothing but run and an expected effect,
 * because after every run the suite looks at everything that can have changed outside.
 */
#ifndef ATTACK_MECHANISM_H
#define ATTACK_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>

#include "targets.h"

struct stage; /* stage.h: one run of one attack, as the suite sees it */

/* What success looks like. Under the hood any of them counts; the control must show this one. */
enum effect {
	EFFECT_TREE,   /* something of the platform's files is not as it was */
	EFFECT_SECRET, /* the secret came out: on stdout or as an output */
	EFFECT_HIT,    /* a service, the victim, the terminal or the supervisor was reached */
	EFFECT_CLAIM,  /* no effect outside: the attacker saw the kernel do it */
};

enum attack_flag {
	ROOT_ONLY = 1 << 0,	/* without the hood only root can do it */
	WITH_POSTGRES = 1 << 1, /* needs the private PostgreSQL */
	BESIDE = 1 << 2,	/* another analysis runs beside it */
	AFTER = 1 << 3,		/* another analysis ran before it, to its end */
	ON_TERMINAL = 1 << 4,	/* started from a terminal */
	COLLECTED = 1 << 5,	/* everything that it leaves is asked for as output */
	REFUSAL_HOLDS = 1 << 6, /* the hood may refuse to run it at all */
	STDIN_FILE = 1 << 7,	/* stdin is a file of the platform */
	STDOUT_FILE = 1 << 8,	/* stdout is a file of the platform, with something in it */
	OUTLIVES = 1 << 9,	/* look again some time after the end */
	NO_ATTACKER = 1 << 10,	/* prepare() is the whole attack, no analysis runs */
	UNPRIVILEGED =
		1 << 11, /* the plain platform of the control is an ordinary user even when we are root */
	HANGS = 1 << 12, /* not coming to an end is the effect */
	STDIN_DIRECTORY = 1 << 13, /* stdin is a directory of the platform */
	STDIN_TERMINAL = 1 << 14,  /* stdin is the terminal, and handed to the analysis */
	UNDEFENDED = 1 << 15,	   /* as an ordinary user: docs/THREATS.md says why */
};

struct attack {
	const char *name;
	const char *mechanism;
	enum effect effect;
	unsigned flags;
	int (*run)(const struct targets *t, const struct attack *a); /* 0 or -errno; NULL with NO_ATTACKER */
	const char *arg;					     /* for rows that share run */
	long number;
	const char *options;		 /* more words for `fumehood run`; %P is the platform's directory */
	int (*prepare)(struct stage *s); /* before the run; negative: not testable, s->why says why */
	void (*during)(struct stage *s); /* every few milliseconds while it runs */
	void (*judge)(struct stage *s);	 /* after it; stage_hit() if it had its effect */
};

struct attack_family {
	const char *name;
	const char *title;
	const struct attack *attacks;
	size_t count;
};

#define FAMILY(table) .attacks = (table), .count = sizeof(table) / sizeof((table)[0])

/* The tables, one or more per family: a family with several files has one entry for each. */
extern const struct attack_family *const attack_families[];
extern const size_t attack_family_count;

extern const struct attack_family inputs_change, inputs_lock, inputs_read, inputs_mount, services_unix,
	services_net, services_fifo, processes_victim, processes_leak, processes_terminal, processes_survive,
	processes_init, kernel_calls, kernel_ioctl, kernel_surface, collection_outputs, collection_state,
	strangers, limits_sums;

/* not_held.c: the line of the receipt by which that strength (NULL: full) does not hold this attack; NULL: it must. */
const char *not_held(const char *strength, const char *name);

/* The attacker's side of a row by its name; NULL if there is none. */
const struct attack *attack_find(const char *name);

#endif
