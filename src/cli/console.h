/*
 * The two ends of a run's output, and the line of progress between them: hooks for hood_run that never wait.
 *
 * console_open before the run, console_output and console_progress as its hooks, console_say for the last line,
 * console_close after the commit.
 */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include "cli.h"
#include "session.h"
#include "tee.h"

struct console {
	struct tee *streams[STREAM_COUNT]; /* NULL: shown to nobody; both may be the same */
	const struct terminal *terminal;   /* stderr, for the line of progress */
	size_t told;			   /* warnings, before it started */
	bool shows_terminal;		   /* what comes is what a terminal of its own shows */
	struct session session;
	struct run_terminal look; /* at that terminal: hooks.terminal */
};

int console_open(struct console *c, const struct cli *cli, struct error *err);
/* The same for a command that has a terminal of its own: stdin is that terminal's until console_ended. */
int console_open_terminal(struct console *c, const struct cli *cli, struct error *err);
void console_started(void *console, int exec_errno);
void console_ended(void *console);
void console_output(void *console, int stream, const char *data, size_t size);
void console_progress(void *console, const struct progress *p);
/* A warning before it starts. */
void console_warned(void *console, const char *text);
void console_say(struct console *c, const char *text);
/* Waits until everything is read, or cancel_fd is readable. A failure (a full disk) is said in err. */
int console_close(struct console *c, int cancel_fd, struct error *err);

/* The text of the line of progress. */
const char *progress_format(const struct progress *p, char *out, size_t room);

#endif
