/*
 * What one call costs here: run it inside and outside of the hood, and compare.
 *
 *   price WORKSPACE_FILE INPUT_FILE ITEM
 *
 * Prints the nanoseconds of one call, the median of several blocks.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 41, CALLS = 2000 };

static const char *workspace_file, *input_file;
static int workspace_fd;
static volatile double sink;

static void do_getpid(void)
{
	syscall(SYS_getpid);
}

static void do_pread(void)
{
	char b[64];

	if (pread(workspace_fd, b, sizeof b, 0) < 0)
		abort();
}

static void do_stat(void)
{
	struct stat st;

	if (stat(workspace_file, &st) < 0)
		abort();
}

static void do_open(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		abort();
	close(fd);
}

static void do_open_workspace(void)
{
	do_open(workspace_file);
}

static void do_open_input(void)
{
	do_open(input_file);
}

static void do_compute(void)
{
	double x = 1;

	for (int i = 0; i < 2000; i++)
		x = x * 1.0000001 + 1e-9;
	sink = x;
}

static const struct {
	const char *name;
	void (*call)(void);
} items[] = {
	{"getpid", do_getpid},
	{"pread", do_pread},
	{"stat", do_stat},
	{"openat", do_open_workspace},
	{"openat-input", do_open_input},
	{"compute", do_compute},
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double blocks[BLOCKS];
	size_t k = 0;

	if (argc != 4)
		return 2;
	workspace_file = argv[1];
	input_file = argv[2];
	workspace_fd = open(workspace_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (workspace_fd < 0 || write(workspace_fd, "0123456789", 10) != 10)
		return 1;
	while (k < sizeof items / sizeof items[0] && strcmp(items[k].name, argv[3]) != 0)
		k++;
	if (k == sizeof items / sizeof items[0])
		return 2;
	for (int block = -2; block < BLOCKS; block++) { /* two to warm up */
		double begun = now();

		for (int i = 0; i < CALLS; i++)
			items[k].call();
		if (block >= 0)
			blocks[block] = (now() - begun) / CALLS;
	}
	qsort(blocks, BLOCKS, sizeof blocks[0], compare);
	printf("%.1f\n", blocks[BLOCKS / 2]);
	return 0;
}
