#include "act.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

void show(const void *data, size_t size)
{
	fwrite(data, 1, size, stdout);
	putchar('\n');
	fflush(stdout);
}

int show_fd(int fd)
{
	char block[4096];
	ssize_t n = read(fd, block, sizeof(block));
	if (n < 0)
		return -errno;
	for (int blocks = 0; n > 0 && blocks < 256; blocks++) {
		show(block, (size_t)n);
		n = read(fd, block, sizeof(block));
	}
	return 0;
}

int show_file_at(int dirfd, const char *path)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : show_fd(fd);
}

int show_file(const char *path)
{
	return show_file_at(AT_FDCWD, path);
}

int show_names(const char *path)
{
	DIR *dir = opendir(path);
	if (!dir)
		return -errno;
	for (struct dirent *e; (e = readdir(dir));)
		show(e->d_name, strlen(e->d_name));
	closedir(dir);
	return 0;
}

int reached(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("REACHED ");
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	va_end(args);
	return 0;
}

int result(long r)
{
	return r < 0 ? -errno : 0;
}

bool refused(int r)
{
	switch (-r) {
	case EPERM:
	case EACCES:
	case ENOSYS:
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
	case EOPNOTSUPP:
	case EROFS:
	case ENOENT:
		return true;
	}
	return false;
}

int spoil_at(int dirfd, const char *path, int flags)
{
	_cleanup_close_ int fd = openat(dirfd, path, flags | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return -errno;
	return write(fd, "spoiled\n", 8) == 8 ? 0 : -errno;
}

int spoil(const char *path)
{
	return spoil_at(AT_FDCWD, path, O_WRONLY);
}

static bool is_ours(pid_t pid, const char *tag)
{
	char words[4096];
	_cleanup_close_ int fd = open(text("/proc/%d/cmdline", pid), O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words));
	return n > 0 && memmem(words, (size_t)n, tag, strlen(tag));
}

/* Without the hood the whole host is in sight: there only the platform's own processes are touched. */
int each_process(int (*fn)(const struct targets *t, pid_t pid), const struct targets *t)
{
	const char *tag = targets_text(t, "only");
	DIR *dir = opendir("/proc");
	if (!dir)
		return -errno;
	int r = -ESRCH;
	for (struct dirent *e; r && (e = readdir(dir));) {
		pid_t pid = (pid_t)atoi(e->d_name);
		if (pid > 0 && pid != getpid() && (!tag[0] || is_ours(pid, tag)))
			r = fn(t, pid);
	}
	closedir(dir);
	return r;
}

int own_mounts(void)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	return result(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

static int slowness = 1; /* of the machine, as the suite has measured it; set once */

void linger_scale(long scale)
{
	slowness = scale > 1 ? (int)scale : 1;
}

void linger(int milliseconds)
{
	poll(NULL, 0, milliseconds * slowness);
}

const char *text(const char *format, ...)
{
	static char line[4200];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return line;
}
