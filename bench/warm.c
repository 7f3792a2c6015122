/*
 * Analyses by the library, in one process that stays: what a worker or a platform that is up already has to pay.
 *
 *   warm turns ROUNDS [NAME=VALUE…] -- CMD ARG…          one after the other, in turn with posix_spawn of the same command
 *   warm rate MILLISECONDS TURNS AT_A_TIME [NAME=VALUE…] -- CMD ARG…
 *   warm count N [NAME=VALUE…] -- CMD ARG…               only does it, for who counts system calls
 *
 * NAME=VALUE is of the request. An analysis is deferred and dropped: walls, cgroups, supervision, collecting and clean-up,
 * no ledger. turns prints three lines of nanoseconds: the spawns, these analyses, and analyses that are committed; then a line with the
 * processor's time of one of each, children included. rate
 * prints two lines of what was done in a second: of spawns, and of analyses, so many of each at a time.
 */
#include <fumehood.h>

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { THREADS_MAX = 64 };

static char **command;
static fh_request *request;
static fh_hood *hood;
static posix_spawn_file_actions_t quiet;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Nanoseconds of the processor's time, ours and that of our children. */
static long long used(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct rusage usage;
	long long sum = 0;

	for (int i = 0; i < 2; i++) {
		getrusage(whose[i], &usage);
		sum += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
		       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL;
	}
	return sum;
}

static void fail(const char *what)
{
	fprintf(stderr, "warm: %s\n", what);
	exit(1);
}

static void bare(void)
{
	int status = -1;
	pid_t pid;

	if (posix_spawn(&pid, command[0], &quiet, NULL, command, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		fail("the command by itself did not succeed");
}

static void analysis(void)
{
	fh_result *result = NULL;
	fh_run *run = NULL;
	fh_error err = {0};

	if (fh_start(hood, request, FH_DEFER, &run, &err) < 0 || fh_run_wait(run, -1, &err) < 0 ||
	    fh_run_result(run, &result, &err) < 0 || fh_result_error(result, &err) != FH_OK)
		fail(err.message);
	if (fh_result_verdict(result) != FH_SUCCEEDED)
		fail(fh_result_reason(result) ? fh_result_reason(result) : "it did not succeed");
	fh_result_free(result);
	if (fh_run_drop(run, &err) < 0)
		fail(err.message);
	fh_run_free(run);
}

static void committed(void)
{
	fh_result *result = NULL;
	fh_error err = {0};

	if (fh_perform(hood, request, &result, &err) < 0 || fh_result_error(result, &err) != FH_OK)
		fail(err.message);
	if (fh_result_status(result) != 0)
		fail("it did not succeed");
	fh_result_free(result);
}

static void (*const kinds[])(void) = {bare, analysis, committed};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void turns(int rounds)
{
	long long *times = calloc((size_t)rounds * KINDS, sizeof *times), cpu[KINDS] = {0};

	for (int i = -3; i < rounds; i++) { /* three for the caches */
		for (int k = 0; k < KINDS; k++) {
			long long begun = now(), before = used();

			kinds[k]();
			if (i < 0)
				continue;
			times[k * rounds + i] = now() - begun;
			cpu[k] += used() - before;
		}
	}
	for (int k = 0; k < KINDS; k++) {
		for (int i = 0; i < rounds; i++)
			printf("%lld ", times[k * rounds + i]);
		printf("\n");
	}
	for (int k = 0; k < KINDS; k++)
		printf("%lld ", cpu[k] / rounds);
	printf("\n");
	free(times);
}

static struct {
	void (*what)(void);
	long long until;
	atomic_int done;
} block;

static void *member(void *arg)
{
	while (now() < block.until) {
		block.what();
		atomic_fetch_add(&block.done, 1);
	}
	return arg;
}

static double rate_of(void (*what)(void), int milliseconds, int at_a_time)
{
	pthread_t threads[THREADS_MAX];
	long long begun = now();

	block.what = what;
	block.until = begun + milliseconds * 1000000LL;
	block.done = 0;
	for (int i = 0; i < at_a_time; i++)
		if (pthread_create(&threads[i], NULL, member, NULL) != 0)
			fail("no thread");
	for (int i = 0; i < at_a_time; i++)
		pthread_join(threads[i], NULL);
	return block.done * 1e9 / (double)(now() - begun);
}

static void rates(int milliseconds, int turns, int at_a_time)
{
	double *seen = calloc((size_t)turns * 2, sizeof *seen);

	rate_of(analysis, milliseconds / 4, at_a_time); /* for the caches */
	for (int i = 0; i < turns * 2; i++)
		seen[i] = rate_of(kinds[i % 2], milliseconds, at_a_time);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < turns; i++)
			printf("%.1f ", seen[2 * i + k]);
		printf("\n");
	}
	free(seen);
}

/* NAME=VALUE… -- CMD…, from the i-th word on. */
static void prepare(char **words)
{
	fh_error err = {0};
	char *value;

	request = fh_request_new();
	for (; *words && strcmp(*words, "--") != 0; words++) {
		value = strchr(*words, '=');
		if (!value)
			fail("NAME=VALUE is missing its value");
		*value++ = 0;
		if (fh_request_set(request, *words, value, &err) < 0)
			fail(err.message);
	}
	if (!*words || !words[1])
		fail("there is no command");
	command = words + 1;
	if (fh_request_command(request, (const char *const *)command, &err) < 0 ||
	    fh_open(NULL, NULL, &hood, &err) < 0)
		fail(err.message);
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (n < 1)
		fail("usage: warm turns|rate|count N …");
	if (strcmp(mode, "turns") == 0) {
		prepare(argv + 3);
		turns(n);
	} else if (strcmp(mode, "count") == 0) {
		prepare(argv + 3);
		for (int i = 0; i < n; i++)
			analysis();
	} else if (strcmp(mode, "rate") == 0 && argc > 5) {
		int at_a_time = atoi(argv[4]);

		prepare(argv + 5);
		rates(n, atoi(argv[3]), at_a_time < THREADS_MAX ? at_a_time : THREADS_MAX);
	} else {
		fail("usage: warm turns|rate|count N …");
	}
	fh_request_free(request);
	fh_close(hood);
	return 0;
}
