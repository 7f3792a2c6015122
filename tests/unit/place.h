/*
 * A private directory for one test: made anew, removed with all that is in it, whatever the test left. And the
 * few verbs with which a test shapes a tree in it. Everything asserts.
 */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
	char path[64];
	int fd;
};

static inline void place_open_in(struct place *p, const char *parent)
{
	snprintf(p->path, sizeof p->path, "%s/fumehood-test-XXXXXX", parent);
	assert_non_null(mkdtemp(p->path));
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
}

static inline void place_open(struct place *p)
{
	place_open_in(p, "/tmp");
}

/* For a hundred thousand files: in memory, where the disk's mood does not count. */
static inline void place_open_large(struct place *p)
{
	place_open_in(p, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline void place_run(const char *const *argv)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static inline void place_close(struct place *p)
{
	const char *const unlock[] = {"chmod", "-R", "u+rwx", p->path, NULL};
	const char *const remove[] = {"rm", "-rf", p->path, NULL};

	close(p->fd);
	if (geteuid() != 0)
		place_run(unlock);
	place_run(remove);
	assert_int_equal(access(p->path, F_OK), -1);
}

static inline void put_dir(int at, const char *name)
{
	assert_int_equal(mkdirat(at, name, 0700), 0);
}

static inline void put_file(int at, const char *name, const char *content)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static inline void put_link(int at, const char *name, const char *target)
{
	assert_int_equal(symlinkat(target, at, name), 0);
}

static inline void put_fifo(int at, const char *name)
{
	assert_int_equal(mkfifoat(at, name, 0600), 0);
}

/* name in the directory that is open at at. */
static inline void put_socket(int at, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", at, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

static inline void put_mode(int at, const char *name, mode_t mode)
{
	assert_int_equal(fchmodat(at, name, mode, 0), 0);
}

static inline bool is_there(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void assert_content(int at, const char *name, const char *content)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof text - 1);
	assert_true(n >= 0);
	text[n] = 0;
	close(fd);
	assert_string_equal(text, content);
}

/* Runs fn in a child and returns what it returns (0–127); -1 if it crashed. */
static inline int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct child_call {
	int (*fn)(void *arg);
	void *arg;
};

static inline int drop_and_call(void *arg)
{
	const struct child_call *c = arg;

	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 127;
	return c->fn(c->arg);
}

/* The same, as an ordinary user if we are root. */
static inline int as_ordinary_user(int (*fn)(void *arg), void *arg)
{
	struct child_call c = {fn, arg};

	return in_child(drop_and_call, &c);
}

#endif
