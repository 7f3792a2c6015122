/*
 * library ROUNDS CONFIG FUMEHOOD: the whole story of /bin/true, told by the library in this process and by a command that is
 * started for it, in turn. Prints two lines of nanoseconds, the library's first.
 */
#include <fumehood.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "library: %s\n", what);
	exit(1);
}

static void by_library(fh_hood *hood, const fh_request *request)
{
	fh_result *result = NULL;
	fh_error err = {0};

	if (fh_perform(hood, request, &result, &err) < 0 || fh_result_error(result, &err) != FH_OK)
		fail(err.message);
	if (fh_result_status(result) != 0)
		fail("it did not succeed");
	fh_result_free(result);
}

static void by_command(const char *program, const char *config)
{
	char *words[] = {
		(char *)program,    (char *)"run",  (char *)"bench", (char *)"--again",	  (char *)"--quiet",
		(char *)"--config", (char *)config, (char *)"--",    (char *)"/bin/true", NULL};
	pid_t pid;
	int status = -1;

	if (posix_spawn(&pid, program, NULL, NULL, words, environ) != 0 || waitpid(pid, &status, 0) != pid ||
	    status != 0)
		fail("the command did not succeed");
}

int main(int argc, char **argv)
{
	const char *command[] = {"/bin/true", NULL};
	int rounds = argc == 4 ? atoi(argv[1]) : 0;
	long long *times[2] = {calloc((size_t)rounds + 1, sizeof(long long)),
			       calloc((size_t)rounds + 1, sizeof(long long))};
	fh_request *request = fh_request_new();
	fh_hood *hood = NULL;
	fh_error err = {0};

	if (rounds < 1)
		fail("usage: library ROUNDS CONFIG FUMEHOOD");
	if (fh_open(argv[2], NULL, &hood, &err) < 0 || fh_request_set(request, "id", "bench", &err) < 0 ||
	    fh_request_set(request, "again", "true", &err) < 0 ||
	    fh_request_command(request, command, &err) < 0)
		fail(err.message);
	for (int i = -2; i < rounds; i++) { /* two for the caches */
		long long begun = now(), between;

		by_library(hood, request);
		between = now();
		by_command(argv[3], argv[2]);
		if (i >= 0) {
			times[0][i] = between - begun;
			times[1][i] = now() - between;
		}
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < rounds; i++)
			printf("%lld ", times[k][i]);
		printf("\n");
		free(times[k]);
	}
	fh_request_free(request);
	fh_close(hood);
	return 0;
}
