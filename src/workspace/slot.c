#include "slot.h"
#include "ability.h"
#include "file.h"
#include "owned.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define SLOT_DIRECTORY "/run/fumehood/slots"

enum { NOTE_SIZE = 128 };

/* The note in a slot: "BOOT PID START\n", of the PID 1 that ran with its uid last, over what was there: the end of a longer one
 * may follow. Anything else is no note. It stays until the next one: who is dead stays so. */
static bool former_is_alive(int fd)
{
	char text[NOTE_SIZE] = "", boot[BOOT_ID_SIZE], now[BOOT_ID_SIZE];
	struct process_id id;
	int pid;

	if (pread(fd, text, sizeof text - 1, 0) <= 0 ||
	    sscanf(text, "%36s %d %" SCNu64, boot, &pid, &id.start) != 3 || pid <= 0)
		return false;
	boot_id(now);
	if (strcmp(boot, now) != 0)
		return false;
	id.pid = pid;
	return !process_is_gone(&id);
}

/* 1: ours now; 0: somebody else's; -errno. */
static int slot_try(int dirfd, unsigned number, struct slot *ret)
{
	_cleanup_close_ int fd = -1;
	char name[16];
	struct stat st;

	snprintf(name, sizeof name, "%u", number);
	fd = file_open_beneath(dirfd, name, O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0)
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? 0 : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (former_is_alive(fd))
		return 0;
	*ret = (struct slot){
		.fd = TAKE_FD(fd),
		.number = (int)number,
		.uid = SLOT_FIRST_UID + number,
		.gid = SLOT_FIRST_UID + number,
	};
	return 1;
}

/* Random tries in windows that grow: few files are made when few analyses run, and a thousand takers at once hardly
 * meet. Only when nearly all are taken is each one looked at. */
static int slot_search(int dirfd, unsigned count, struct slot *ret)
{
	uint32_t dice = 0;
	int r;

	for (unsigned window = 64; window <= 4 * count; window *= 4)
		for (int tries = 0; tries < 8; tries++) {
			if (random_bytes(&dice, sizeof dice) < 0)
				return -EIO;
			r = slot_try(dirfd, dice % (window < count ? window : count), ret);
			if (r != 0)
				return r;
		}
	for (unsigned i = 0; i < count; i++) {
		r = slot_try(dirfd, (dice + i) % count, ret);
		if (r != 0)
			return r;
	}
	return 0;
}

int slot_take_in(int dirfd, unsigned count, struct slot *ret, struct error *err)
{
	int r = slot_search(dirfd, count, ret);

	if (r < 0)
		return error_system(err, -r, "cannot take a slot in '%s'", SLOT_DIRECTORY);
	if (r == 0)
		return error_set(err, ERROR_BUSY,
				 "all %u user ids for analyses are in use: wait until an analysis has ended",
				 count);
	return 0;
}

int slot_take(struct slot *ret, struct error *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (!ability_is_root())
		return error_set(err, ERROR_REFUSED, "only root can give each analysis a user of its own");
	r = dir_make_private(SLOT_DIRECTORY, err);
	if (r < 0)
		return r;
	fd = open(SLOT_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot open '%s'", SLOT_DIRECTORY);
	if (st.st_uid != 0 || st.st_mode & 022)
		return error_set(err, ERROR_REFUSED, "'%s' can be changed by others: remove it",
				 SLOT_DIRECTORY);
	return slot_take_in(fd, SLOT_COUNT, ret, err);
}

int slot_bind(const struct slot *s, const struct process_id *init)
{
	char text[NOTE_SIZE], boot[BOOT_ID_SIZE];
	int n;

	boot_id(boot);
	n = snprintf(text, sizeof text, "%s %d %" PRIu64 "\n", boot, (int)init->pid, init->start);
	return pwrite(s->fd, text, (size_t)n, 0) == n ? 0 : -errno;
}

/* Unlocked, not only closed: a child that a host program has forked meanwhile has the descriptor too. */
void slot_release(struct slot *s)
{
	if (s->fd >= 0)
		flock(s->fd, LOCK_UN);
	s->fd = fd_close(s->fd);
}
