/* A child that has become another user: as root somebody else, else ourselves. What its user must not get out of it, another
 * process of that user tries; a child that is no such thing shows that it could. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "become.h"

enum { OTHER = 61977, TIMEOUT_MS = 30000 };

static char secret[] = "a password of the worker";

static void find_other(struct identity *ret)
{
	struct error err = ERROR_INIT;
	char name[16];

	snprintf(name, sizeof name, "%u", geteuid() == 0 ? OTHER : geteuid());
	if (identity_find(name, ret, &err) < 0)
		fail_msg("%s", err.message);
}

struct seen {
	uid_t ids[3], gids[3];
	int groups, open, dumpable, can_return;
	bool has_secret;
};

static void look(void *arg, int socket)
{
	struct seen s = {0};

	getresuid(&s.ids[0], &s.ids[1], &s.ids[2]);
	getresgid(&s.gids[0], &s.gids[1], &s.gids[2]);
	s.groups = getgroups(0, NULL);
	for (int fd = 0; fd < 1024; fd++)
		s.open += fcntl(fd, F_GETFD) >= 0;
	s.dumpable = prctl(PR_GET_DUMPABLE);
	s.can_return = geteuid() != 0 && setresuid(0, 0, 0) == 0;
	s.has_secret = strcmp(arg, secret) == 0;
	(void)message_send(socket, &s, sizeof s, -1);
}

static void test_it_is_its_user_and_has_nothing_of_ours_but_memory(void **state)
{
	_cleanup_identity_ struct identity who = {0};
	struct error err = ERROR_INIT;
	struct child child;
	struct seen s = {0};
	int fd;

	(void)state;
	find_other(&who);
	assert_int_equal(become_start(&who, look, secret, &child, &err), 0);
	assert_int_equal(message_receive(child.socket, &s, sizeof s, TIMEOUT_MS, &fd), sizeof s);
	assert_int_equal(message_receive(child.socket, &s, sizeof s, TIMEOUT_MS, &fd), 0);
	become_end(&child);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(s.ids[i], who.uid);
		assert_int_equal(s.gids[i], who.gid);
	}
	if (geteuid() == 0)
		assert_int_equal(s.groups, 1);
	assert_int_equal(s.open, 4); /* three of /dev/null, and the socket */
	assert_int_equal(s.dumpable, 0);
	assert_false(s.can_return);
	assert_true(s.has_secret);
}

static void hand_over(void *arg, int socket)
{
	int fd = open(arg, O_PATH | O_CLOEXEC), errnum = fd < 0 ? errno : 0;

	(void)message_send(socket, &errnum, sizeof errnum, fd);
}

static int try_open(const char *path, struct identity *who, int *ret_fd)
{
	struct error err = ERROR_INIT;
	struct child child;
	int errnum = -1;

	assert_int_equal(become_start(who, hand_over, (void *)(uintptr_t)path, &child, &err), 0);
	assert_int_equal(message_receive(child.socket, &errnum, sizeof errnum, TIMEOUT_MS, ret_fd),
			 sizeof errnum);
	become_end(&child);
	return errnum;
}

static void test_it_opens_what_its_user_may_and_hands_it_over(void **state)
{
	_cleanup_identity_ struct identity who = {0};
	char directory[] = "/tmp/test_become-XXXXXX", path[64];
	struct stat st, handed;
	int fd;

	(void)state;
	find_other(&who);
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/file", directory);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(try_open("/usr", &who, &fd), 0);
	fd_close(fd);
	if (geteuid() == 0) {
		assert_int_equal(try_open(path, &who, &fd), EACCES);
		assert_int_equal(fd, -1);
		assert_int_equal(chown(directory, OTHER, OTHER), 0);
	}
	assert_int_equal(try_open(path, &who, &fd), 0);
	assert_int_equal(fstat(fd, &handed), 0);
	assert_int_equal(handed.st_ino, st.st_ino);
	fd_close(fd);
	unlink(path);
	rmdir(directory);
}

/* ---- another process of the same user ---- */

static void wait_for_end(void *arg UNUSED, int socket)
{
	char byte;
	int fd;

	(void)message_send(socket, "", 1, -1);
	(void)message_receive(socket, &byte, 1, -1, &fd);
}

enum { GOT_TRACE = 1, GOT_MEMORY = 2, GOT_ENVIRON = 4 };

/* What who gets out of pid, in a process of its own. */
static int rob(const struct identity *who, pid_t pid)
{
	char room[sizeof secret] = "", path[64];
	struct iovec here = {room, sizeof room}, there = {secret, sizeof secret};
	int status = 0, got = 0;
	pid_t thief = fork();

	if (thief == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) < 0 || setresgid(who->gid, who->gid, who->gid) < 0 ||
		     setresuid(who->uid, who->uid, who->uid) < 0))
			_exit(64);
		if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 && strcmp(room, secret) == 0)
			got |= GOT_MEMORY;
		snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
		if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
			got |= GOT_ENVIRON;
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
			got |= GOT_TRACE;
		_exit(got);
	}
	assert_int_equal(waitpid(thief, &status, 0), thief);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 64);
	return WEXITSTATUS(status);
}

/* The same without our care: just a change of ids. */
static pid_t careless(const struct identity *who, int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) < 0 || setresgid(who->gid, who->gid, who->gid) < 0 ||
		     setresuid(who->uid, who->uid, who->uid) < 0))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		(void)!write(ready, "", 1);
		pause();
		_exit(0);
	}
	return pid;
}

static void test_its_user_cannot_trace_or_read_it(void **state)
{
	_cleanup_identity_ struct identity who = {0};
	struct error err = ERROR_INIT;
	struct child child;
	int ready[2], fd;
	char byte;
	pid_t pid;

	(void)state;
	find_other(&who);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = careless(&who, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(rob(&who, pid), GOT_TRACE | GOT_MEMORY | GOT_ENVIRON);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	assert_int_equal(become_start(&who, wait_for_end, NULL, &child, &err), 0);
	assert_int_equal(message_receive(child.socket, &byte, 1, TIMEOUT_MS, &fd), 1);
	assert_int_equal(rob(&who, child.pid), 0);
	become_end(&child);
	close(ready[0]);
	close(ready[1]);
}

static void stop_at_once(void *arg UNUSED, int socket UNUSED)
{
	raise(SIGSTOP);
}

static void test_who_waits_for_it_does_not_wait_for_ever(void **state)
{
	_cleanup_identity_ struct identity who = {0};
	struct error err = ERROR_INIT;
	struct child child;
	char byte;
	int fd;

	(void)state;
	find_other(&who);
	assert_int_equal(become_start(&who, stop_at_once, NULL, &child, &err), 0);
	assert_int_equal(message_receive(child.socket, &byte, 1, 100, &fd), MESSAGE_LATE);
	become_end(&child);
	assert_int_equal(waitpid(child.pid, NULL, WNOHANG), -1);
}

static void test_a_user_is_a_name_or_a_number(void **state)
{
	_cleanup_identity_ struct identity root = {0}, number = {0}, none = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(identity_find("root", &root, &err), 0);
	assert_int_equal(root.uid, 0);
	assert_true(identity_has_group(&root, 0));
	assert_int_equal(identity_find("61977", &number, &err), 0);
	assert_int_equal(number.uid, OTHER);
	assert_false(identity_has_group(&number, 0));
	for (size_t i = 0; i < 5; i++) {
		static const char *const wrong[] = {"", "no such user", "-1", "4294967295", "12x"};

		assert_true(identity_find(wrong[i], &none, &err) < 0);
		assert_int_equal(err.kind, ERROR_NOT_FOUND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_its_user_and_has_nothing_of_ours_but_memory),
		cmocka_unit_test(test_it_opens_what_its_user_may_and_hands_it_over),
		cmocka_unit_test(test_its_user_cannot_trace_or_read_it),
		cmocka_unit_test(test_who_waits_for_it_does_not_wait_for_ever),
		cmocka_unit_test(test_a_user_is_a_name_or_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
