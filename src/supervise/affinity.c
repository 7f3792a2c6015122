#include "affinity.h"
#include "file.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOCK_DIRECTORY "cpus"

/* 1: *ret_fd holds the CPU; 0: another has it; -errno. */
static int cpu_lock(int dirfd, int cpu, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[16];

	snprintf(name, sizeof name, "%d", cpu);
	fd = file_open_own(dirfd, name, O_RDONLY);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	*ret_fd = TAKE_FD(fd);
	return 1;
}

/* One of them at random, so that users who do not see each other's locks seldom meet. */
static int any_cpu(const cpu_set_t *usable)
{
	uint16_t dice = 0;
	int cpu = 0;

	random_bytes(&dice, sizeof dice);
	for (int skip = dice % CPU_COUNT(usable); !CPU_ISSET(cpu, usable) || skip-- > 0;)
		cpu++;
	return cpu;
}

static int cpus_lock(int dirfd, int wanted, const cpu_set_t *usable, struct affinity *a)
{
	int first = any_cpu(usable);

	for (int i = 0; i < CPU_SETSIZE && a->count < wanted; i++) {
		int cpu = (first + i) % CPU_SETSIZE;
		int r = CPU_ISSET(cpu, usable) ? cpu_lock(dirfd, cpu, &a->locks[a->count]) : 0;

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		CPU_SET(cpu, &a->cpus);
		a->count++;
	}
	return 0;
}

int affinity_take(int dirfd, uint64_t millicpus, struct affinity *ret, struct error *err)
{
	struct affinity a = {0};
	_cleanup_close_ int dir = -1;
	cpu_set_t usable;
	uint64_t wanted = (millicpus + 999) / 1000;
	int r;

	*ret = a;
	/* More CPUs than a cpu_set_t has bits: then it is a machine on which nobody is crowded out. */
	if (sched_getaffinity(0, sizeof usable, &usable) < 0 || wanted >= (uint64_t)CPU_COUNT(&usable))
		return 0;
	r = dir_make_own(dirfd, LOCK_DIRECTORY, 0700);
	if (r < 0 && r != -EEXIST)
		return error_system(err, -r, "cannot make '" LOCK_DIRECTORY "' in the state directory");
	dir = openat(dirfd, LOCK_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return error_system(err, errno, "cannot open '" LOCK_DIRECTORY "' in the state directory");
	a.locks = calloc(wanted, sizeof *a.locks);
	if (!a.locks)
		return error_memory(err);
	r = cpus_lock(dir, (int)wanted, &usable, &a);
	if (r < 0 || a.count < (int)wanted)
		affinity_release(&a);
	if (r < 0)
		return error_system(err, -r, "cannot lock a CPU in the state directory");
	*ret = a;
	return 0;
}

void affinity_release(struct affinity *a)
{
	for (int i = 0; i < a->count; i++) {
		flock(a->locks[i], LOCK_UN); /* a child of a host program may have a copy */
		fd_close(a->locks[i]);
	}
	free(a->locks);
	*a = (struct affinity){0};
}
