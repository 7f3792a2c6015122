/*
 * A cgroup of its own for every test, and processes whose use is known to run in it.
 */
#ifndef TEST_CGROUP_H
#define TEST_CGROUP_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cgroup_private.h"
#include "clock.h"
#include "process.h"
#include "text.h"

enum { MIB = 1 << 20 };

struct fixture {
	struct cgroup_host host;
	struct receipt receipt;
	struct limits limits;
	struct error err;
	struct cgroup *cgroup;
	char name[64];
};

static inline void ask(struct fixture *f, enum limit which, uint64_t value)
{
	f->limits.value[which] = value;
	f->limits.origin[which] = LIMIT_ASKED;
}

static inline int fixture_setup(void **state)
{
	static struct fixture f;
	static int count;

	f = (struct fixture){0};
	snprintf(f.name, sizeof f.name, "test-%d-%d", (int)getpid(), count++);
	*state = &f;
	return cgroup_host_probe(&f.host, &f.err);
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	int r = f->cgroup ? cgroup_remove(f->cgroup, &f->err) : 0;

	receipt_done(&f->receipt);
	while (waitpid(-1, NULL, WNOHANG) > 0) /* orphans come to us: see main */
		;
	return r;
}

/* Tests that need real limits stop here on a host that can hold none. */
static inline void create(struct fixture *f)
{
	if (f->host.way == CGROUP_NONE)
		skip();
	if (cgroup_create(&f->host, f->name, &f->limits, false, &f->receipt, &f->cgroup, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static inline void finish(struct fixture *f)
{
	if (cgroup_remove(f->cgroup, &f->err) < 0)
		fail_msg("%s", f->err.message);
	f->cgroup = NULL;
}

/* Runs fn in a child that has joined; the child of a helper, as in the real thing, so that it can be adopted first. */
static inline pid_t start_in(struct fixture *f, int (*fn)(void *), void *arg)
{
	int fds[CGROUP_JOIN_MAX], n = cgroup_join_fds(f->cgroup, fds), go[2];
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(99);
		for (int i = 0; i < n; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(98);
		_exit(fn(arg));
	}
	if (cgroup_adopt(f->cgroup, pid, &f->err) < 0)
		fail_msg("%s", f->err.message);
	assert_int_equal(write(go[1], "g", 1), 1);
	close(go[0]);
	close(go[1]);
	return pid;
}

static inline int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run_in(struct fixture *f, int (*fn)(void *), void *arg)
{
	return wait_for(start_in(f, fn, arg));
}

static inline bool directory_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static inline const struct layer *layer_find(const struct receipt *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->layers[i].name, name) == 0)
			return &r->layers[i];
	return NULL;
}

/* --- what children do --- */

static inline int do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static inline int touch_memory(void *arg)
{
	size_t size = *(size_t *)arg;
	volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	return 0;
}

static inline int fill_memfd(void *arg)
{
	static char block[1 << 16];
	int fd = memfd_create("test", 0);

	for (size_t done = 0; done < *(size_t *)arg; done += sizeof block)
		if (write(fd, block, sizeof block) < 0)
			return 1;
	return 0;
}

static inline int64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int burn_cpu_ms(void *arg)
{
	int64_t end = cpu_ms() + *(int *)arg;

	while (cpu_ms() < end)
		;
	return 0;
}

/* A grandchild burns, and is reaped by nobody that counts. */
static inline int burn_in_grandchild(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(burn_cpu_ms(arg));
	return wait_for(pid);
}

static inline int fork_up_to(void *arg)
{
	int failed = 0;

	for (int i = 0; i < *(int *)arg; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		failed |= pid < 0;
	}
	return failed;
}

static inline int sleep_for_ever(void *arg)
{
	(void)arg;
	signal(SIGTERM, SIG_IGN);
	while (pause() < 0)
		;
	return 0;
}

static inline int fork_bomb(void *arg)
{
	(void)arg;
	while (fork() >= -1)
		;
	return 0;
}

static inline int print_cgroups(void *arg)
{
	char text[4096];
	int fd = open("/proc/self/cgroup", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text);

	return write(*(int *)arg, text, (size_t)n) == n ? 0 : 1;
}

#endif
