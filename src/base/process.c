#include "process.h"
#include "digest.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int process_identify(pid_t pid, struct process_id *ret)
{
	char path[32], text[1024], *p, state;
	unsigned long long start;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (file_read_small(AT_FDCWD, path, text, sizeof text) < 0)
		return -ESRCH;
	/* The name in parentheses may contain anything: what counts begins after the last one. */
	p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &state, &start) != 2)
		return -ESRCH;
	if (state == 'Z' || state == 'X')
		return -ESRCH;
	ret->pid = pid;
	ret->start = start;
	return 0;
}

int process_open(const struct process_id *id)
{
	struct process_id now;
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);

	if (fd < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	/* A pid that has changed hands between the two looks has another start. */
	if (process_identify(id->pid, &now) < 0 || now.start != id->start)
		return -ESRCH;
	return TAKE_FD(fd);
}

bool process_is_gone(const struct process_id *id)
{
	_cleanup_close_ int fd = process_open(id);

	return fd == -ESRCH;
}

uint64_t process_count(uid_t uid)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dir_ DIR *dir = proc < 0 ? NULL : dir_list(proc);
	uint64_t count = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char tasks[sizeof e->d_name + 8];
		struct stat st;

		snprintf(tasks, sizeof tasks, "%s/task", e->d_name);
		/* A directory for each thread, beside "." and "..". */
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && fstatat(proc, tasks, &st, 0) == 0 &&
		    st.st_uid == uid && st.st_nlink > 2)
			count += st.st_nlink - 2;
	}
	return count;
}

int pidfd_kill(int pidfd, int signal)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int pidfd_wait(int pidfd, int timeout_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

void boot_id(char out[BOOT_ID_SIZE])
{
	if (file_read_small(AT_FDCWD, "/proc/sys/kernel/random/boot_id", out, BOOT_ID_SIZE) < 0)
		out[0] = 0;
	out[strcspn(out, "\n")] = 0;
}

int machine_id(char out[MACHINE_ID_SIZE])
{
	uint8_t hash[DIGEST_SIZE];
	struct utsname u;
	ssize_t n = file_read_small(AT_FDCWD, "/etc/machine-id", out, MACHINE_ID_SIZE);

	if (n == MACHINE_ID_SIZE - 1)
		return 0;
	uname(&u);
	digest_bytes(u.nodename, strlen(u.nodename), hash);
	hex_encode(hash, (MACHINE_ID_SIZE - 1) / 2, out);
	return n < 0 && n != -ENOENT && n != -ENOTDIR ? (int)n : 0;
}

char *host_name(void)
{
	struct utsname u;

	uname(&u);
	return strdup(u.nodename);
}

int random_bytes(void *out, size_t size)
{
	return getentropy(out, size) < 0 ? -errno : 0;
}

int thread_start(pthread_t *ret, size_t stack, void *(*body)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, &attr, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}
