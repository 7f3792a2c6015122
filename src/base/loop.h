/*
 * One thread, one epoll, callbacks: how the supervisor and the worker wait for events, never for time to pass.
 *
 * loop_open, loop_add_fd / loop_add_timer, loop_run, loop_close. A callback may add and remove sources, its own
 * too, and ends the run with loop_quit(). A callback that returns a negative number ends the run with it.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdint.h>

#include "error.h"

struct loop;
struct source;

typedef int (*loop_fd_fn)(void *arg, int fd, uint32_t events, struct error *err);
typedef int (*loop_timer_fn)(void *arg, struct error *err);

int loop_open(struct loop **ret, struct error *err);
struct loop *
loop_close(struct loop *loop); /* returns NULL; frees every source, closes no descriptor of yours */
DEFINE_CLEANUP(struct loop *, loop_close);
#define _cleanup_loop_ _cleanup_(loop_closep)

/* events as for epoll. The descriptor stays the caller's. */
int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg, struct source **ret,
		struct error *err);
/* Fires once at when (clock_now() time), then sleeps until loop_timer_set() again. when 0: asleep from the start. */
int loop_add_timer(struct loop *loop, uint64_t when, loop_timer_fn fn, void *arg, struct source **ret,
		   struct error *err);
int loop_timer_set(struct source *timer, uint64_t when);
void loop_remove(struct source *source); /* NULL is fine */

/* Handles what comes until loop_quit(). 0, or what a callback returned. */
int loop_run(struct loop *loop, struct error *err);
void loop_quit(struct loop *loop);

#endif
