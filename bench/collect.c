/*
 * Collecting a directory, beside the plain SHA-256 of the same files by one thread, in turn.
 *
 *   collect DIRECTORY ROUNDS
 *
 * The directory is flat. Prints two lines of nanoseconds: of collect(), and of readdir, open, read, digest and close of each file
 * in the order in which they are found. Warm: one round before is not counted.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "macros.h"

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "collect: %s\n", what);
	exit(1);
}

static size_t ours(int dir)
{
	static const char *const none[] = {NULL};
	const struct inputs inputs = {0};
	const struct collect_rules rules = {
		.inputs = &inputs,
		.flows = &inputs,
		.ignore = none,
		.max_bytes = UINT64_MAX,
		.max_files = UINT64_MAX,
		.object_min = UINT64_MAX,
		.content_max = UINT64_MAX,
		.owner = (uid_t)-1,
	};
	_cleanup_manifest_ struct manifest found = {0};
	struct error err = ERROR_INIT;

	if (collect(dir, &rules, NULL, NULL, &found, &err) < 0)
		die(err.message);
	return found.n_outputs;
}

static size_t plain(int dir)
{
	static char buffer[1 << 20];
	DIR *listing = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	uint8_t sha256[DIGEST_SIZE];
	size_t count = 0;

	if (!listing)
		die("it is no directory");
	for (struct dirent *e; (e = readdir(listing));) {
		struct digest d;
		ssize_t n;
		int fd;

		if (e->d_type != DT_REG)
			continue;
		fd = openat(dir, e->d_name, O_RDONLY | O_CLOEXEC);
		digest_init(&d);
		while ((n = read(fd, buffer, sizeof buffer)) > 0)
			digest_update(&d, buffer, (size_t)n);
		digest_final(&d, sha256);
		if (n < 0)
			die("a file cannot be read");
		close(fd);
		count++;
	}
	closedir(listing);
	return count;
}

int main(int argc, char **argv)
{
	static size_t (*const kinds[])(int) = {ours, plain};
	int rounds = argc == 3 ? atoi(argv[2]) : 0;
	int dir = rounds > 0 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	long long *times = calloc((size_t)rounds * 2 + 1, sizeof *times);

	if (dir < 0)
		die("usage: collect DIRECTORY ROUNDS");
	for (int i = -2; i < rounds * 2; i++) {
		long long begun = now();

		if (kinds[i & 1](dir) == 0)
			die("there is nothing in it");
		if (i >= 0)
			times[i] = now() - begun;
	}
	for (int k = 0; k < 2; k++) {
		for (int i = k; i < rounds * 2; i += 2)
			printf("%lld ", times[i]);
		printf("\n");
	}
	free(times);
	return 0;
}
