#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

/* All that the handler needs, and the only global of the program. */
static int signal_pipe = -1;

static void on_signal(int number)
{
	int saved = errno;
	unsigned char byte = (unsigned char)number;
	ssize_t n = write(signal_pipe, &byte, 1);

	(void)n; /* A full pipe has told enough. */
	errno = saved;
}

int signals_open(int *ret_fd, struct error *err)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_system(err, errno, "cannot make a pipe for signals");
	signal_pipe = fds[1];
	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &act, NULL);
	*ret_fd = fds[0];
	return 0;
}
