#include "peek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096 };

ssize_t peek_bytes(pid_t pid, uint64_t address, void *out, size_t size)
{
	struct iovec here = {out, size}, there = {(void *)(uintptr_t)address, size};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return n < 0 ? -errno : n;
}

ssize_t peek_string(pid_t pid, uint64_t address, char *out, size_t room)
{
	size_t at = 0;

	/* Never over the end of a page: behind it there may be nothing. */
	while (at < room) {
		size_t left = PAGE - (address + at) % PAGE, want = room - at < left ? room - at : left;
		ssize_t n = peek_bytes(pid, address + at, out + at, want);
		const char *end;

		if (n <= 0)
			return n < 0 ? n : -EFAULT;
		end = memchr(out + at, 0, (size_t)n);
		if (end)
			return end - out;
		at += (size_t)n;
	}
	return -ENAMETOOLONG;
}

ssize_t peek_directory(pid_t pid, int fd, char *out, size_t room)
{
	char link[64];
	ssize_t n;

	if (fd == AT_FDCWD)
		snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
	else
		snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(link, out, room - 1);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return n;
}

int peek_root(pid_t pid)
{
	char link[64];
	int fd;

	snprintf(link, sizeof link, "/proc/%d/root", (int)pid);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
