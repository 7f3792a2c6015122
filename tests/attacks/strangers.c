/*
 * Two analyses: strangers to each other, even if they would like to meet. One offers everything it has (beside.c), the
 * other comes for it; or one has ended, and the other looks for what it left.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "dial.h"
#include "stage.h"

ACT(read_workspace)
{
	return show_file(text("%s/%s", targets_text(t, "beside.workspace"), a->arg));
}

ACT(spoil_workspace)
{
	int r = spoil(text("%s/%s", targets_text(t, "beside.workspace"), a->arg));
	return r ? r : reached("a file of the other analysis was written to");
}

ACT(see_workspace)
{
	struct stat st;
	if (stat(targets_text(t, "beside.workspace"), &st))
		return -errno;
	return reached("the other's workspace is there, owner %u", st.st_uid);
}

ACT(call_abstract)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, "beside.name"));
	return dial(SOCK_STREAM, 0, &to, size);
}

ACT(send_abstract)
{
	union address to;
	socklen_t size = address_unix(&to, text("%s-dgram", targets_text(t, "beside.name")));
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	return fd < 0 ? -errno : dial_send(fd, &to, size);
}

/* The mechanism of CVE-2024-27297 and CVE-2025-46416: a descriptor passed from one build to the next. */
ACT(receive_descriptor)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, "beside.name"));
	char words[64], room[CMSG_SPACE(sizeof(int))];
	struct iovec part = {words, sizeof(words)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, &to.any, size) || recvmsg(fd, &message, 0) < 0)
		return -errno;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int file;
	if (!head)
		return -ENOENT;
	memcpy(&file, CMSG_DATA(head), sizeof(file));
	return show_fd(file);
}

ACT(call_workspace_socket)
{
	union address to;
	socklen_t size = address_unix(&to, text("%s/beside.sock", targets_text(t, "beside.workspace")));
	return dial(SOCK_STREAM, 0, &to, size);
}

ACT(call_port)
{
	union address to;
	socklen_t size = address_inet(&to, a->arg, (int)targets_number(t, "beside.port"));
	return dial((int)a->number, 0, &to, size);
}

ACT(attach_memory)
{
	int id = shmget((key_t)targets_number(t, "beside.ipc"), 0, 0);
	const char *page = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
	if (page == (void *)-1)
		return -errno;
	show(page, 64);
	return 0;
}

ACT(read_object)
{
	return show_file(text("%s/%s", a->arg, targets_text(t, "beside.object")));
}

ACT(receive_queue)
{
	char message[256];
	mqd_t queue = mq_open(text("/%s", targets_text(t, "beside.object")), O_RDONLY | O_NONBLOCK);
	ssize_t n = queue < 0 ? -1 : mq_receive(queue, message, sizeof(message), NULL);
	if (n < 0)
		return -errno;
	show(message, (size_t)n);
	return 0;
}

ACT(read_key)
{
	char payload[64];
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user",
			   targets_text(t, "beside.key"), 0);
	long n = key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, payload, sizeof(payload));
	if (n < 0)
		return -errno;
	show(payload, (size_t)n);
	return 0;
}

ACT(feel_lock)
{
	_cleanup_close_ int fd = open(targets_text(t, "beside.locked"), O_RDONLY);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
		return reached("the other's lock on an input can be felt");
	return -EEXIST;
}

ACT(watch_input)
{
	_cleanup_close_ int fd = inotify_init1(IN_NONBLOCK);
	if (fd < 0 || inotify_add_watch(fd, targets_text(t, "beside.watched"), IN_OPEN | IN_CLOSE) < 0)
		return -errno;
	struct pollfd event = {.fd = fd, .events = POLLIN};
	return poll(&event, 1, 300) > 0 ? reached("the other's use of an input can be watched") : -ETIMEDOUT;
}

/* The one that this run may have reached: an analysis of each kind is there, and which has the lower pid is chance. */
static bool is_beside(const struct targets *t, pid_t pid)
{
	char words[256], beside[128];
	_cleanup_close_ int fd = open(text("/proc/%d/cmdline", pid), O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words));
	/* Its supervisor has these words further behind. */
	int size = snprintf(beside, sizeof(beside), "./attacker%cbeside%c%s", 0, 0,
			    targets_text(t, "beside.marker"));
	return n > size && !memcmp(words, beside, (size_t)size + 1);
}

static int signal_beside(const struct targets *t, pid_t pid)
{
	return is_beside(t, pid) ? result(kill(pid, SIGUSR1)) : -ESRCH;
}

ACT(signal_other)
{
	return each_process(signal_beside, t);
}

static int read_beside_root(const struct targets *t, pid_t pid)
{
	return is_beside(t, pid) ? show_file(text("/proc/%d/cwd/secret", pid)) : -ESRCH;
}

ACT(read_other_directory)
{
	return each_process(read_beside_root, t);
}

ACT(stay_a_while)
{
	linger(100);
	return 0;
}

/* A door for another user of the host: /tmp, as far as it is the analysis's own to open. */
ACT(open_tmp)
{
	struct stat st;
	const char *place = text("/tmp/%s", targets_text(t, "marker"));
	if (!stat("/tmp", &st) && st.st_uid == getuid() && !(st.st_mode & S_ISVTX))
		chmod("/tmp", 0777);
	umask(0);
	if (mkdir(place, 0777))
		return -errno;
	linger(200);
	return 0;
}

/* As nobody: is there a way to what the analysis has opened? */
static bool nobody_enters(const char *place)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(access(place, R_OK | W_OK | X_OK) ? 1 : 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void enter(struct stage *s, const char *pattern)
{
	glob_t found = {0};
	if (!glob(pattern, GLOB_NOSORT, NULL, &found) && nobody_enters(found.gl_pathv[0]))
		stage_hit(s, "user 65534 can write in '%.150s'", found.gl_pathv[0]);
	globfree(&found);
}

static void enter_tmp(struct stage *s)
{
	if (!stage_is_hooded(s)) {
		enter(s, text("/tmp/%s", s->marker));
		return;
	}
	enter(s, text("/tmp/.scidex-analysis-%s.*/%s", s->id, s->marker));
	enter(s, text("/tmp/.scidex-analysis-%s.*/tmp/%s", s->id, s->marker));
}

static void leave_tmp(struct stage *s)
{
	if (!stage_is_hooded(s))
		rmdir(text("/tmp/%s", s->marker));
}

static void compare_owners(struct stage *s)
{
	struct stat mine, others;
	if (!lstat(stage_workspace(s), &mine) &&
	    !lstat(targets_text(stage_targets(s), "beside.workspace"), &others) &&
	    mine.st_uid == others.st_uid)
		stage_hit(s, "both analyses run as user %u", mine.st_uid);
}

#define WITH(n, how, fn, e, ...)                                                 \
	{                                                                        \
		.name = n, .mechanism = how, .run = fn, .effect = e, __VA_ARGS__ \
	}
#define LATER(n, how, fn, ...)                                                                               \
	{                                                                                                    \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_SECRET, .flags = AFTER, __VA_ARGS__ \
	}

static const struct attack table[] = {
	WITH("stranger-file", "a file of the other's workspace", read_workspace, EFFECT_SECRET,
	     .arg = "secret", .flags = BESIDE),
	WITH("stranger-write", "a file of the other's workspace, written to", spoil_workspace, EFFECT_CLAIM,
	     .arg = "targets", .flags = BESIDE),
	WITH("stranger-name", "the other's workspace by its name", see_workspace, EFFECT_CLAIM,
	     .flags = BESIDE),
	WITH("stranger-abstract", "an abstract socket of the other", call_abstract, EFFECT_SECRET,
	     .flags = BESIDE),
	WITH("stranger-abstract-dgram", "an abstract datagram socket of the other", send_abstract, EFFECT_HIT,
	     .flags = BESIDE),
	WITH("stranger-descriptor",
	     "a descriptor passed over an abstract socket, CVE-2024-27297 and CVE-2025-46416",
	     receive_descriptor, EFFECT_SECRET, .flags = BESIDE),
	WITH("stranger-socket", "a unix socket in the other's workspace", call_workspace_socket,
	     EFFECT_SECRET, .flags = BESIDE),
	WITH("stranger-tcp", "a TCP port of the other", call_port, EFFECT_SECRET, .arg = "127.0.0.1",
	     .number = SOCK_STREAM, .flags = BESIDE),
	WITH("stranger-tcp6", "a TCP port of the other, IPv6", call_port, EFFECT_SECRET, .arg = "::1",
	     .number = SOCK_STREAM, .flags = BESIDE),
	WITH("stranger-udp", "a UDP port of the other", call_port, EFFECT_HIT, .arg = "127.0.0.1",
	     .number = SOCK_DGRAM, .flags = BESIDE),
	WITH("stranger-sysv", "System V shared memory of the other", attach_memory, EFFECT_SECRET,
	     .flags = BESIDE),
	WITH("stranger-shm", "a POSIX shared memory object of the other", read_object, EFFECT_SECRET,
	     .arg = "/dev/shm", .flags = BESIDE),
	WITH("stranger-tmp", "a file of the other in /tmp", read_object, EFFECT_SECRET, .arg = "/tmp",
	     .flags = BESIDE),
	WITH("stranger-key", "a key of the other in the user's keyring", read_key, EFFECT_SECRET,
	     .flags = BESIDE),
	WITH("stranger-lock", "a lock of the other on a common input", feel_lock, EFFECT_CLAIM,
	     .flags = BESIDE),
	WITH("stranger-watch", "inotify on a common input", watch_input, EFFECT_CLAIM, .flags = BESIDE),
	WITH("stranger-signal", "a signal to the other", signal_other, EFFECT_HIT, .flags = BESIDE),
	WITH("stranger-proc", "/proc/PID/cwd of the other", read_other_directory, EFFECT_SECRET,
	     .flags = BESIDE),
	WITH("stranger-user", "the same user for both", stay_a_while, EFFECT_HIT, .during = compare_owners,
	     .flags = BESIDE | ROOT_ONLY | UNDEFENDED),
	WITH("stranger-open-tmp", "/tmp opened to another user of the host by chmod", open_tmp, EFFECT_HIT,
	     .during = enter_tmp, .judge = leave_tmp, .flags = ROOT_ONLY),
	LATER("left-tmp", "what an earlier analysis left in /tmp", read_object, .arg = "/tmp"),
	LATER("left-var-tmp", "what an earlier analysis left in /var/tmp", read_object, .arg = "/var/tmp"),
	LATER("left-shm", "what an earlier analysis left in /dev/shm", read_object, .arg = "/dev/shm"),
	LATER("left-sysv", "System V shared memory of an earlier analysis", attach_memory),
	LATER("left-queue", "a POSIX message queue of an earlier analysis", receive_queue),
	LATER("left-key", "a key of an earlier analysis", read_key),
};

const struct attack_family strangers = {.name = "strangers", .title = "two analyses", FAMILY(table)};
