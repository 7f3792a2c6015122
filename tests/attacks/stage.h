/*
 * One run of one attack as the suite sees it: without the hood or under it, what came out, what was found outside.
 * The hooks of a row (prepare, during, judge) get it.
 */
#ifndef ATTACK_STAGE_H
#define ATTACK_STAGE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "buffer.h"
#include "mechanism.h"
#include "platform.h"

struct stage {
	struct platform *platform;
	const struct attack *attack;
	bool hooded;
	char id[128];
	char marker[64];      /* an argument of every process of this run */
	char workspace[512];  /* as the host sees it */
	char into[512];	      /* where outputs are copied to */
	struct buffer output; /* stdout */
	struct buffer errors; /* stderr */
	int status;	      /* as of waitpid */
	bool hung;	      /* had to be ended by us */
	bool started;	      /* the attacker got as far as its first line */
	bool hit;
	char evidence[256]; /* of the first hit */
	char why[256];	    /* why prepare() gave up, or the attacker's own last words */
	long rows_before;
	struct timespec before; /* for prepare() to note and judge() to compare */
	pid_t racer;		/* a process of prepare() that judge() ends; 0 */
};

const char *stage_path(struct stage *s, const char *relative); /* below the platform; a static buffer */
const struct targets *stage_targets(struct stage *s);
const struct attack *stage_attack(struct stage *s);
const char *stage_workspace(struct stage *s);
const char *stage_into(struct stage *s);
bool stage_is_hooded(struct stage *s);

/* The suite has been asked to end: nothing is waited for any more. */
bool suite_stopped(void);

/* The attack had its effect. The first evidence stays. */
void stage_hit(struct stage *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* Takes what the tree looks like now as how it should look. */
void stage_remember(struct stage *s);
/* -ENOENT with s->why set unless the kernel has this protocol already. */
int stage_needs_protocol(struct stage *s, const char *protocol);

bool stage_output_has(struct stage *s, const char *text);
/* The first line that starts with a brace, or the next one after another; NULL. */
const char *stage_output_json(struct stage *s, const char *after);
/* Executes `fumehood COMMAND ID` on a terminal and appends what it says to the output. */
void stage_ask(struct stage *s, const char *command);

void stage_judge_rows(struct stage *s);
void stage_judge_survivors(struct stage *s);

/* Everything that is looked at after every run: files, secret, services, victim, terminal, supervisor. */
void stage_judge_all(struct stage *s);

#endif
