#include "idmap.h"
#include "clone.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_proc(pid_t pid, const char *name, const char *text, struct error *err)
{
	char path[64];
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "cannot open '%s'", path);
	r = file_write_all(fd, text, strlen(text));
	return r < 0 ? error_system(err, -r, "cannot write '%s' to '%s'", text, path) : 0;
}

int identity_map(pid_t pid, uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid,
		 struct error *err)
{
	char uids[64], gids[64];
	int r;

	snprintf(uids, sizeof uids, "%u %u 1", inside_uid, outside_uid);
	snprintf(gids, sizeof gids, "%u %u 1", inside_gid, outside_gid);
	/* An ordinary user may map a group only after giving up setgroups for good. */
	if ((r = write_proc(pid, "setgroups", "deny", err)) < 0 ||
	    (r = write_proc(pid, "uid_map", uids, err)) < 0)
		return r;
	return write_proc(pid, "gid_map", gids, err);
}

/* Both change places, and everybody else stays: a map is one to one. */
static void exchange_format(char *out, size_t room, unsigned a, unsigned b)
{
	unsigned low = a < b ? a : b, high = a < b ? b : a, last = UINT32_MAX - 1;
	size_t n = 0;

	if (low > 0)
		n += (size_t)snprintf(out + n, room - n, "0 0 %u\n", low);
	n += (size_t)snprintf(out + n, room - n, "%u %u 1\n", low, high);
	if (high > low + 1)
		n += (size_t)snprintf(out + n, room - n, "%u %u %u\n", low + 1, low + 1, high - low - 1);
	if (high > low)
		n += (size_t)snprintf(out + n, room - n, "%u %u 1\n", high, low);
	snprintf(out + n, room - n, "%u %u %u\n", high + 1, high + 1, last - high);
}

static int exchange_map(pid_t pid, uid_t from_uid, uid_t to_uid, gid_t from_gid, gid_t to_gid,
			struct error *err)
{
	char text[256];
	int r;

	exchange_format(text, sizeof text, from_uid, to_uid);
	r = write_proc(pid, "uid_map", text, err);
	exchange_format(text, sizeof text, from_gid, to_gid);
	return r < 0 ? r : write_proc(pid, "gid_map", text, err);
}

/* Lives only until its namespace has been opened, or until we die. It waits for a byte, not for the end of the pipe: those
 * of other threads hold copies of this pipe, as this one does of theirs. */
__attribute__((no_sanitize("address", "thread"))) static int placeholder(void *arg)
{
	const int *pipe = arg;
	char c;

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	syscall(SYS_close, pipe[1]);
	syscall(SYS_read, pipe[0], &c, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* The namespace of a holder that waits: its maps, then its descriptor. */
static int namespace_open(pid_t pid, uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid, bool others,
			  struct error *err)
{
	char path[64];
	int r = others ? exchange_map(pid, from_uid, to_uid, from_gid, to_gid, err)
		       : identity_map(pid, from_uid, to_uid, from_gid, to_gid, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? error_system(err, errno, "cannot open '%s'", path) : r;
}

enum { HOLDER_STACK = 64 * 1024 };

void idmap_close(struct idmap *map)
{
	fd_close(map->fd);
	if (map->holder > 0)
		waitpid(map->holder, NULL, __WCLONE);
	if (map->stack != MAP_FAILED)
		munmap(map->stack, HOLDER_STACK);
}

int idmap_open(uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid, bool others, struct idmap *ret,
	       struct error *err)
{
	struct idmap map = {.fd = -1, .holder = -1};
	int pipe[2], r;

	if (pipe2(pipe, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe");
	map.stack = mmap(NULL, HOLDER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
			 -1, 0);
	if (map.stack != MAP_FAILED) {
		/* It may run when we have long returned: what it needs lies at the far end of its stack. */
		memcpy(map.stack, pipe, sizeof pipe);
		map.holder = clone(placeholder, (char *)map.stack + HOLDER_STACK, CLONE_VM | CLONE_NEWUSER,
				   map.stack);
	}
	if (map.holder < 0)
		r = error_system(err, errno, "cannot make a user namespace for the inputs' owner");
	else
		r = map.fd = namespace_open(map.holder, from_uid, from_gid, to_uid, to_gid, others, err);
	(void)!write(pipe[1], "", 1);
	fd_close(pipe[1]);
	fd_close(pipe[0]);
	if (r < 0) {
		idmap_close(&map);
		return r;
	}
	*ret = map;
	return 0;
}
