/*
 * The side of a command's own terminal from which it is looked at: its modes and size before it starts, its size as it
 * changes, and when there is room for more of what it shows. Its bytes are read and written as those of pipes are.
 *
 * pty_prepare as soon as there is a master, pty_open when the command runs.
 */
#ifndef SUPERVISE_PTY_H
#define SUPERVISE_PTY_H

#include <stdbool.h>

#include "loop.h"

enum {
	PTY_END = 4,		  /* typed at the beginning of a line: no more comes */
	PTY_BUFFER_MAX = 1 << 20, /* more than the kernel keeps of what is not read */
	PTY_ROWS = 24,
	PTY_COLUMNS = 80 /* where nobody tells */
};

struct pty_job {
	int master;
	int like_fd;   /* a terminal whose size and keys it has; -1: none */
	int window_fd; /* a byte: the size of like_fd has changed; -1: nobody tells */
	int room_fd;   /* readable as long as there is room for what it shows; -1: always */
};

int pty_prepare(const struct pty_job *job, struct error *err);

struct pty;
int pty_open(struct loop *loop, const struct pty_job *job, struct pty **ret, struct error *err);
bool pty_has_room(const struct pty *p);
/* Calls fn once, when there is. */
int pty_await_room(struct pty *p, loop_timer_fn fn, void *arg, struct error *err);
void pty_close(struct pty *p); /* before the loop is closed; NULL is fine */

#endif
