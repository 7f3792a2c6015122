#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

const struct fault faults[] = {{ENOSPC, "ENOSPC"}, {EIO, "EIO"}, {EINTR, "EINTR"}, {ENOMEM, "ENOMEM"}};
const int n_faults = ARRAY_SIZE(faults);

enum {
	SPACE = 1,	 /* ENOSPC: makes a name or takes a block */
	DISK = 2,	 /* EIO: reads or writes a disk */
	INTERRUPT = 4,	 /* EINTR: may wait, on some file system at least */
	MEMORY = 8,	 /* ENOMEM: the kernel allocates for it */
	CREATES = 16,	 /* as SPACE, if its third argument says O_CREAT */
	ON_DISK = 32,	 /* as SPACE, if its first argument is a file on a disk */
	ANYWAY = 64,	 /* it is made even if it says otherwise */
	WAIT_LOCK = 128, /* as INTERRUPT, if it is F_SETLKW or F_OFD_SETLKW */
	REMOVES = 256	 /* a name */
};

#define CALL(name) SYS_##name, #name

static const struct {
	long number;
	const char *name;
	int kinds;
} table[] = {
	{CALL(read), DISK | INTERRUPT},
	{CALL(pread64), DISK | INTERRUPT},
	{CALL(write), ON_DISK | DISK | INTERRUPT},
	{CALL(pwrite64), ON_DISK | DISK | INTERRUPT},
	{CALL(writev), ON_DISK | DISK | INTERRUPT},
	{CALL(open), DISK | INTERRUPT | MEMORY},
	{CALL(openat), CREATES | DISK | INTERRUPT | MEMORY},
	{CALL(openat2), DISK | INTERRUPT | MEMORY},
	{CALL(close), DISK | INTERRUPT | ANYWAY},
	{CALL(stat), DISK | MEMORY},
	{CALL(lstat), DISK | MEMORY},
	{CALL(newfstatat), DISK | MEMORY},
	{CALL(statx), DISK | MEMORY},
	{CALL(statfs), DISK | MEMORY},
	{CALL(fstatfs), DISK},
	{CALL(access), DISK | MEMORY},
	{CALL(faccessat), DISK | MEMORY},
	{CALL(faccessat2), DISK | MEMORY},
	{CALL(readlink), DISK | MEMORY},
	{CALL(readlinkat), DISK | MEMORY},
	{CALL(getdents64), DISK | MEMORY},
	{CALL(mkdir), SPACE | DISK | MEMORY},
	{CALL(mkdirat), SPACE | DISK | MEMORY},
	{CALL(mknodat), SPACE | DISK | MEMORY},
	{CALL(rename), SPACE | DISK | MEMORY},
	{CALL(renameat), SPACE | DISK | MEMORY},
	{CALL(renameat2), SPACE | DISK | MEMORY},
	{CALL(link), SPACE | DISK | MEMORY},
	{CALL(linkat), SPACE | DISK | MEMORY},
	{CALL(symlink), SPACE | DISK | MEMORY},
	{CALL(symlinkat), SPACE | DISK | MEMORY},
	{CALL(unlink), DISK | MEMORY | REMOVES},
	{CALL(unlinkat), DISK | MEMORY | REMOVES},
	{CALL(rmdir), DISK | MEMORY | REMOVES},
	{CALL(chmod), DISK | MEMORY},
	{CALL(fchmod), DISK},
	{CALL(fchmodat), DISK | MEMORY},
	{CALL(fchown), DISK},
	{CALL(fchownat), DISK | MEMORY},
	{CALL(utimensat), DISK},
	{CALL(ftruncate), DISK | INTERRUPT},
	{CALL(fallocate), SPACE | DISK | INTERRUPT},
	{CALL(fsync), SPACE | DISK | INTERRUPT},
	{CALL(fdatasync), SPACE | DISK | INTERRUPT},
	{CALL(sync_file_range), SPACE | DISK},
	{CALL(copy_file_range), SPACE | DISK | INTERRUPT | MEMORY},
	{CALL(sendfile), DISK | INTERRUPT | MEMORY},
	{CALL(flock), INTERRUPT | MEMORY},
	{CALL(fcntl), WAIT_LOCK},
	{CALL(poll), INTERRUPT | MEMORY},
	{CALL(ppoll), INTERRUPT | MEMORY},
	{CALL(epoll_wait), INTERRUPT},
	{CALL(epoll_pwait), INTERRUPT},
	{CALL(wait4), INTERRUPT},
	{CALL(waitid), INTERRUPT},
	{CALL(getrandom), INTERRUPT},
	{CALL(nanosleep), INTERRUPT},
	{CALL(clock_nanosleep), INTERRUPT},
	{CALL(connect), INTERRUPT},
	{CALL(sendto), INTERRUPT | MEMORY},
	{CALL(recvfrom), INTERRUPT | MEMORY},
	{CALL(sendmsg), INTERRUPT | MEMORY},
	{CALL(recvmsg), INTERRUPT | MEMORY},
	{CALL(mmap), MEMORY},
	{CALL(mremap), MEMORY},
	{CALL(brk), MEMORY},
	{CALL(clone), MEMORY | SPACE},
	{CALL(clone3), MEMORY | SPACE},
	{CALL(pipe2), MEMORY},
	{CALL(socket), MEMORY},
	{CALL(socketpair), MEMORY},
	{CALL(memfd_create), MEMORY},
	{CALL(epoll_create1), MEMORY},
	{CALL(epoll_ctl), MEMORY | SPACE},
	{CALL(eventfd2), MEMORY},
	{CALL(signalfd4), MEMORY},
	{CALL(timerfd_create), MEMORY},
	{CALL(pidfd_open), MEMORY},
};

static const char *descriptor_name(pid_t pid, int fd, char out[256])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, out, 255);
	out[n < 0 ? 0 : n] = 0;
	return out;
}

static bool is_on_disk(pid_t pid, int fd)
{
	static const char *const others[] = {"/memfd:", "/proc/", "/sys/", "/dev/pts/", "/dev/null"};
	char target[256];

	if (descriptor_name(pid, fd, target)[0] != '/')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strncmp(target, others[i], strlen(others[i])) == 0)
			return false;
	return true;
}

static int kinds_of(const struct call *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].number == (long)c->number)
			return table[i].kinds;
	return 0;
}

bool call_removes(const struct tracee *t)
{
	return kinds_of(&t->call) & REMOVES;
}

bool fault_applies(const struct fault *f, const struct tracee *t, bool *ret_make)
{
	const struct call *c = &t->call;
	int kinds = kinds_of(c);

	*ret_make = kinds & ANYWAY;
	switch (f->error) {
	case ENOSPC:
		return kinds & SPACE || (kinds & CREATES && c->args[2] & O_CREAT) ||
		       (kinds & ON_DISK && is_on_disk(t->pid, (int)c->args[0]));
	case EIO:
		return kinds & DISK;
	case EINTR:
		return kinds & INTERRUPT ||
		       (kinds & WAIT_LOCK && (c->args[1] == F_SETLKW || c->args[1] == F_OFD_SETLKW));
	case ENOMEM:
		return kinds & MEMORY;
	default:
		return false;
	}
}

const char *string_at(pid_t pid, uint64_t at, char out[256])
{
	struct iovec here = {out, 255}, there = {(void *)(uintptr_t)at, 255};
	ssize_t n;

	/* Up to the end of the page: what follows may not be there. */
	there.iov_len = 4096 - at % 4096 < 255 ? 4096 - at % 4096 : 255;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	out[n < 0 ? 0 : n] = 0;
	for (const char *c = out; *c; c++)
		if (*c < ' ' || *c > '~')
			out[0] = 0;
	return out;
}

void call_describe(const struct tracee *t, char *out, size_t room)
{
	const struct call *c = &t->call;
	char fd[256] = "", path[256] = "";

	if ((int)c->args[0] >= 0 && c->args[0] < 4096)
		descriptor_name(t->pid, (int)c->args[0], fd);
	string_at(t->pid, fd[0] || (int)c->args[0] == AT_FDCWD ? c->args[1] : c->args[0], path);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].number == (long)c->number) {
			snprintf(out, room, "%s %s %s", table[i].name, fd, path);
			return;
		}
	snprintf(out, room, "system call %llu %s %s", (unsigned long long)c->number, fd, path);
}
