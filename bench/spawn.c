/*
 * Times several commands in one interleaved run, so that whatever else the machine does hits all of them alike:
 *
 *   spawn ROUNDS REST_MS :: CMD ARG… [:: CMD ARG…]…
 *
 * Each round starts every command once, in turn, with posix_spawn, and waits for it, REST_MS milliseconds after the last one.
 * Prints one line per command, for each round WALL/CPU: nanoseconds by the clock, and of the processor's time. "%" in an
 * argument becomes the round's number. Descriptor 9, if it is open, is rewound before each start: it is what
 * `bwrap --seccomp 9` reads. A command that fails ends everything.
 *
 * The command "@join FILE…" is no program: a child that is there already writes itself into each FILE, a cgroup.procs, and only that
 * is timed. After a rest it is what the first join of a cgroup costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 16, WORDS_MAX = 128, FILTER_FD = 9, WARM_ROUNDS = 2 };

struct took {
	uint64_t wall, cpu;
};

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

static void rest(int milliseconds)
{
	struct timespec t = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};

	if (milliseconds > 0)
		nanosleep(&t, NULL);
}

/* words with "%" replaced; the text lives in a static buffer until the next call. */
static char **instance(char **words, int round)
{
	static char text[16384], *out[WORDS_MAX];
	size_t used = 0;
	int n = 0;

	for (; words[n] && strcmp(words[n], "::") != 0 && n < WORDS_MAX - 1; n++) {
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

static void await(pid_t pid, const char *name, struct rusage *usage)
{
	int status;

	while (wait4(pid, &status, 0, usage) < 0)
		if (errno != EINTR)
			die("wait4");
	if (status != 0) {
		fprintf(stderr, "spawn: %s ended with %#x\n", name, (unsigned)status);
		exit(1);
	}
}

static uint64_t nanoseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

/* In a child, so that we stay where we are. */
static struct took join(char **files)
{
	struct took took = {0};
	struct rusage usage;
	int answer[2];
	pid_t pid;

	if (pipe(answer) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		uint64_t begun = now();

		for (; *files; files++) {
			int fd = open(*files, O_WRONLY | O_CLOEXEC);

			if (fd < 0 || write(fd, "0", 1) != 1)
				_exit(1);
			close(fd);
		}
		took.wall = now() - begun;
		_exit(write(answer[1], &took, sizeof took) != sizeof took);
	}
	close(answer[1]);
	if (read(answer[0], &took, sizeof took) != sizeof took)
		die("@join: the cgroup cannot be joined");
	close(answer[0]);
	await(pid, "@join", &usage);
	return took;
}

static struct took once(char **words, int round, const posix_spawn_file_actions_t *actions)
{
	char **argv = instance(words, round);
	struct took took;
	struct rusage usage;
	uint64_t begun;
	pid_t pid;

	if (strcmp(argv[0], "@join") == 0)
		return join(argv + 1);
	lseek(FILTER_FD, 0, SEEK_SET);
	begun = now();
	if (posix_spawn(&pid, argv[0], actions, NULL, argv, environ) != 0)
		die(argv[0]);
	await(pid, argv[0], &usage);
	took.wall = now() - begun;
	took.cpu = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
	return took;
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	int rounds = argc > 3 ? atoi(argv[1]) : 0, rest_ms = argc > 3 ? atoi(argv[2]) : 0, n = 0;
	posix_spawn_file_actions_t actions;
	struct took *times;

	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], "::") == 0 && n < COMMANDS_MAX)
			commands[n++] = argv + i + 1;
	if (rounds < 1 || n < 1)
		die("usage: spawn ROUNDS REST_MS :: CMD ARG… [:: CMD ARG…]…");
	times = calloc((size_t)n * (size_t)rounds, sizeof *times);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

	for (int k = 0; k < n * WARM_ROUNDS; k++)
		once(commands[k % n], rounds + k / n, &actions);
	for (int round = 0; round < rounds; round++) {
		for (int k = 0; k < n; k++) {
			rest(rest_ms);
			times[k * rounds + round] = once(commands[k], round, &actions);
		}
	}
	for (int k = 0; k < n; k++) {
		for (int round = 0; round < rounds; round++)
			printf("%llu/%llu ", (unsigned long long)times[k * rounds + round].wall,
			       (unsigned long long)times[k * rounds + round].cpu);
		printf("\n");
	}
	free(times);
	return 0;
}
