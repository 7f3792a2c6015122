#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "macros.h"

static const char *pager_command(void)
{
	const char *named = getenv("PAGER");

	if (named)
		return *named && strcmp(named, "cat") != 0 ? named : NULL;
	return access("/usr/bin/less", X_OK) == 0 || access("/bin/less", X_OK) == 0 ? "less" : NULL;
}

/* As git has it: a page that fits is left on the screen, colours are shown. As root it must start no shell for who reads. */
static void child_main(const char *command, int from)
{
	dup2(from, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	if (geteuid() == 0)
		setenv("LESSSECURE", "1", 1);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager_open(struct pager *p)
{
	const char *command = pager_command();
	_cleanup_close_ int from = -1, to = -1, out = -1;
	int ends[2];

	*p = (struct pager){.out = -1};
	if (!command || pipe2(ends, O_CLOEXEC) < 0)
		return;
	from = ends[0];
	to = ends[1];
	out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	fflush(stdout);
	p->pid = out < 0 ? -1 : fork();
	if (p->pid == 0)
		child_main(command, from);
	if (p->pid < 0 || dup2(to, STDOUT_FILENO) < 0) {
		p->pid = 0;
		return;
	}
	p->out = TAKE_FD(out);
	signal(SIGINT, SIG_IGN); /* it is for the pager, which we wait for */
}

void pager_close(struct pager *p)
{
	if (p->pid <= 0)
		return;
	/* What a reader does not want any more must not come later. */
	if (fflush(stdout) != 0)
		__fpurge(stdout);
	/* Its input ends with the last descriptor of the pipe. */
	dup2(p->out, STDOUT_FILENO);
	close(p->out);
	clearerr(stdout);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	*p = (struct pager){.out = -1};
}
