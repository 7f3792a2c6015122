/* What the modes of the sweep share: what was asked for, and what came of it, counted over all workers. */
#ifndef CRASH_SWEEP_H
#define CRASH_SWEEP_H

#include "inspect.h"

struct options {
	struct wish wish;
	int every, offset; /* the calls offset + 1, offset + 1 + every, … */
	int workers;
	int rounds;		 /* storm */
	int at_once;		 /* storm */
	int error;		 /* fault: an errno; 0: all that are known */
	const char *hurt, *heal; /* server: commands of a shell */
	bool lasting;		 /* fault: every later call of its kind fails too */
	bool removals;		 /* fault: only calls that remove something */
	bool fresh;		 /* each run finds no ledger */
	bool by_run;		 /* kill: not gc recovers, but the next run of the same id */
	bool verbose;
};

struct totals {
	int calls; /* of a whole run */
	int steps;
	int stages[STAGE_COUNT];
	int succeeded, refused, lost, nothing; /* what the ledger or the command said in the end */
	int broken;			       /* steps */
};
extern struct totals *totals; /* shared by the workers */

void count(int *total, int n);

/* A step is over: its problems, if any, are printed under this title, counted, and forgotten. */
void step_report(struct problems *p, const char *format, ...) PRINTF_LIKE(2, 3);

/* What a run said in the end, and what the ledger must say then. */
struct tracee;
enum expected answer_judge(const struct ground *g, const struct tracee *t, struct problems *p);

/* What gc is given: a dead run of each kind, with its verdict on disk, with its end, in the middle of its command. */
struct dead {
	char finished[64], ended[64], begun[64];
};
void dead_leave(struct ground *g, const char *label, struct dead *ret);
/* Another gc finishes them, whatever became of the first. */
void dead_check(struct ground *g, const struct dead *d, struct problems *p);

/* A command that must succeed; p NULL: that may. Its exit status as wait() has it; with wanted, what it must print. */
int command_say(const struct ground *g, const char *const *argv, const char *wanted, struct problems *p);

/* A command is started and runs to its call k, to be killed there. False: it had ended before. */
bool tracee_to(struct tracee *t, const struct ground *g, const char *const *argv, int k);
/* It dies there, and what call that was is described. Done with it. */
void tracee_end(struct tracee *t, bool there, char *call, size_t room);
/* The calls that are worker number index's, until there are no more; then the ledger is checked. */
void calls_work(struct ground *g, const struct options *o, int index,
		bool (*step)(struct ground *g, const struct options *o, int k));

/* A held workspace: made, one step in it, committed (which may have been done already), and removed. */
void held_make(const struct ground *g, const char *id, struct problems *p);
void held_step(const struct ground *g, const char *id, struct problems *p);
void held_commit(const struct ground *g, const char *id);
void held_remove(const struct ground *g, const char *id, struct problems *p);

/* A command with a fault in it did all, or says in one sentence what it could not. */
void sentence_judge(const struct tracee *t, const char *what, struct problems *p);

struct mode {
	const char *name;
	const char *busy; /* see struct wish */
	/* The share of worker number index. */
	void (*work)(struct ground *g, const struct options *o, int index);
	void (*summary)(const struct options *o);
};
extern const struct mode mode_kill, mode_kill_gc, mode_fault, mode_fault_gc, mode_storm, mode_server,
	mode_kill_step, mode_kill_commit, mode_fault_step, mode_fault_commit, mode_kill_rm, mode_kill_backup,
	mode_kill_shell, mode_kill_aside;

#endif
