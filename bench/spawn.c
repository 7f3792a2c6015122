/*
 * Times several commands in one interleaved run, so that whatever else the machine does hits all of them alike:
 *
 *   spawn ROUNDS :: CMD ARG… [:: CMD ARG…]…
 *
 * Each round starts every command once, in turn, with posix_spawn, and waits for it. Prints one line per command: the
 * nanoseconds of each round. "%" in an argument becomes the round's number. Descriptor 9, if it is open, is rewound
 * before each start: it is what `bwrap --seccomp 9` reads. A command that fails ends everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 16, WORDS_MAX = 128, FILTER_FD = 9 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "spawn: %s\n", what);
	exit(1);
}

/* words with "%" replaced; the text lives in a static buffer until the next call. */
static char **instance(char **words, int round)
{
	static char text[16384], *out[WORDS_MAX];
	size_t used = 0;
	int n = 0;

	for (; words[n] && strcmp(words[n], "::") != 0; n++) {
		out[n] = text + used;
		for (const char *p = words[n]; *p && used < sizeof text - 16; p++) {
			if (*p == '%')
				used += (size_t)sprintf(text + used, "%d", round);
			else
				text[used++] = *p;
		}
		text[used++] = 0;
	}
	out[n] = NULL;
	return out;
}

static uint64_t once(char **words, int round, const posix_spawn_file_actions_t *actions)
{
	char **argv = instance(words, round);
	uint64_t begun;
	pid_t pid;
	int status;

	lseek(FILTER_FD, 0, SEEK_SET);
	begun = now();
	if (posix_spawn(&pid, argv[0], actions, NULL, argv, environ) != 0)
		die(argv[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	if (status != 0) {
		fprintf(stderr, "spawn: %s ended with %#x\n", argv[0], (unsigned)status);
		exit(1);
	}
	return now() - begun;
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	int rounds = argc > 1 ? atoi(argv[1]) : 0, n = 0;
	posix_spawn_file_actions_t actions;
	uint64_t *times;

	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "::") == 0 && n < COMMANDS_MAX)
			commands[n++] = argv + i + 1;
	if (rounds < 1 || n < 1)
		die("usage: spawn ROUNDS :: CMD ARG… [:: CMD ARG…]…");
	times = calloc((size_t)n * (size_t)rounds, sizeof *times);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

	for (int k = 0; k < n; k++)
		once(commands[k], rounds, &actions); /* warm */
	for (int round = 0; round < rounds; round++)
		for (int k = 0; k < n; k++)
			times[k * rounds + round] = once(commands[k], round, &actions);
	for (int k = 0; k < n; k++) {
		for (int round = 0; round < rounds; round++)
			printf("%llu ", (unsigned long long)times[k * rounds + round]);
		printf("\n");
	}
	return 0;
}
