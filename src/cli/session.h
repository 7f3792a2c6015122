/*
 * The user's terminal while it shows another: every key goes there, Ctrl-C too, and its size follows. It is as it was before
 * when that is over, however it ends: if this process is killed, a small one that was made for it puts it back.
 *
 * session_open before the command starts, session_enter when it runs, session_leave when it has ended (twice is fine),
 * session_close. Where the standard input is no terminal there is nothing to change.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct session {
	int fd;	       /* the user's terminal; -1: none */
	int window_fd; /* a byte: its size may have changed; -1 */
	pid_t keeper;  /* who puts it back if we cannot; 0: nobody */
	int keeper_fd;
	volatile bool
		*is_changed; /* shared with it: what the screen was made is to be taken back too; NULL */
};

int session_open(struct session *s, struct error *err);
void session_enter(struct session *s);
void session_leave(struct session *s);
void session_close(struct session *s);

#endif
