/*
 * One fumehood under ptrace, stopped at each of its system calls after main(): to be killed there, or to be told that
 * the call has failed. Only the process itself is followed, with all of its threads; what it starts runs free.
 *
 * tracee_start, then tracee_next until it returns false, or tracee_kill in between; tracee_fail after a tracee_next
 * makes that call fail. Calls are counted from main on: what the loader does before is not ours.
 */
#ifndef CRASH_TRACEE_H
#define CRASH_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ground.h"

enum { TRACEE_THREADS_MAX = 16 };

struct call {
	pid_t thread;
	uint64_t number;
	uint64_t args[6];
};

struct tracee {
	pid_t pid;
	pid_t threads[TRACEE_THREADS_MAX];
	int n_threads;
	pid_t stopped; /* the thread that must be resumed before anything else happens; 0: none */
	struct call call;
	pid_t failing; /* the thread whose call must return error */
	int error;
	int out, err; /* memory files */
	bool gone;    /* it has given up its folder: nothing is on record any more */
	bool hung;    /* it did not go on, and was killed */
	int status;   /* of waitpid, once it has ended */
	bool ended;
};

/* Stops at the first call after main. */
void tracee_start(struct tracee *t, const struct ground *g, const char *const *argv);
/* Runs to the entry of the next call, which is in t->call then. False: it has ended. */
bool tracee_next(struct tracee *t);
/* The call that it is about to make is not made, and returns -error; or is made all the same, as close() is. */
void tracee_fail(struct tracee *t, int error, bool make);
/* SIGKILL, and waits until it is dead. */
void tracee_kill(struct tracee *t);
/* Runs on to the end without stopping at calls. */
void tracee_finish(struct tracee *t);
void tracee_done(struct tracee *t);

/* A string in its memory, as far as it is one; else "". */
const char *string_at(pid_t pid, uint64_t at, char out[256]);

/* The address of main in the file, relative to where it is loaded; *ret_entry that of its entry. 0: no symbols. */
uint64_t program_main(const char *path, uint64_t *ret_entry);

#endif
