#include "picture_box.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "picture_decode.h"

enum { MEMORY_MAX = 224 * 1024 * 1024, CPU_MAX_S = 4 };

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* A sanitizer has terabytes of addresses of its own, and asks for its stack whenever a function does not return. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ALLOW	     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL	     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
/* The next n are for this call alone. */
#define CALL(name, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, n)
/* Skips so many if it is, and so many if it is not. */
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define HAS(flag, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, yes, no)

/* Descriptors, protections and flags are 32 bits for the kernel as well, so that the lower half of an argument is all of it. */
static struct sock_filter walls[] = {
	LOAD(arch),
	IS(NATIVE, 1, 0),
	KILL,
	LOAD(nr),
	CALL(brk, 1),
	ALLOW,
	CALL(munmap, 1),
	ALLOW,
	CALL(mremap, 1),
	ALLOW,
	CALL(madvise, 1),
	ALLOW,
#ifdef HAS_SANITIZER
	CALL(sigaltstack, 1),
	ALLOW,
#endif
	CALL(exit, 1),
	ALLOW,
	CALL(exit_group, 1),
	ALLOW,
	CALL(read, 4),
	LOAD(args[0]),
	IS(STDIN_FILENO, 0, 1),
	ALLOW,
	KILL,
	CALL(write, 4),
	LOAD(args[0]),
	IS(STDOUT_FILENO, 0, 1),
	ALLOW,
	KILL,
	CALL(mmap, 6),
	LOAD(args[2]),
	HAS(PROT_EXEC, 3, 0),
	LOAD(args[3]),
	HAS(MAP_ANONYMOUS, 0, 1),
	ALLOW,
	KILL,
	KILL,
};

static int give_away(void)
{
	/* A core of 1 byte, not 0: that would start the program that the host has for dumps, outside of everything. */
	static const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{RLIMIT_CORE, 1},	 {RLIMIT_FSIZE, 0},	  {RLIMIT_NOFILE, 0},
		{RLIMIT_NPROC, 0},	 {RLIMIT_CPU, CPU_MAX_S},
#ifndef HAS_SANITIZER
		{RLIMIT_AS, MEMORY_MAX},
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (setrlimit(limits[i].what, &(struct rlimit){limits[i].most, limits[i].most}) < 0)
			return -errno;
	return 0;
}

/* By prctl(2): what systemd lets services call has no seccomp(2). */
int picture_walls(void)
{
	const struct sock_fprog program = {.len = ARRAY_SIZE(walls), .filter = walls};

	if (syscall(SYS_close_range, STDERR_FILENO, ~0U, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    give_away() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Behind the walls there is nobody to tell why; the status is all. */
static size_t take_all(uint8_t *to, size_t room)
{
	size_t size = 0;
	ssize_t n;

	while (size < room && (n = read(STDIN_FILENO, to + size, room - size)) > 0)
		size += (size_t)n;
	return size;
}

static void give_all(const void *data, size_t size)
{
	for (const char *at = data; size;) {
		ssize_t n = write(STDOUT_FILENO, at, size);

		if (n <= 0)
			_exit(PICTURE_DAMAGED);
		at += n;
		size -= (size_t)n;
	}
}

_Noreturn void picture_box(uint32_t side)
{
	struct pixels p;
	enum picture_fault fault;
	/* Before the walls are up: the first malloc of a process asks the kernel for random bytes. */
	uint8_t *data = malloc(PICTURE_BYTES_MAX + 1);

	if (picture_walls() < 0)
		_exit(PICTURE_UNSAFE);
	if (!data)
		_exit(PICTURE_LARGE);
	fault = picture_decode(data, take_all(data, PICTURE_BYTES_MAX + 1), side, PICTURE_PIXELS_MAX, &p);
	if (fault == PICTURE_FINE) {
		give_all(&(const uint32_t[]){p.width, p.height}, PICTURE_HEAD);
		give_all(p.data, (size_t)p.width * p.height * PIXEL_SIZE);
	}
	_exit(fault);
}
