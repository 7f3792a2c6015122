#include "content.h"
#include "file.h"
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

const char *content_type_reason(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return NULL;
	case S_IFLNK:
		return REJECT_SYMLINK;
	case S_IFIFO:
		return REJECT_FIFO;
	case S_IFSOCK:
		return REJECT_SOCKET;
	case S_IFCHR:
	case S_IFBLK:
		return REJECT_DEVICE;
	default:
		return REJECT_CHANGED;
	}
}

static const char *refuse(const struct stat *st, uid_t owner)
{
	const char *reason = content_type_reason(st->st_mode);

	if (reason)
		return reason;
	if (st->st_nlink != 1)
		return REJECT_HARD_LINK;
	if (owner != (uid_t)-1 && st->st_uid != owner)
		return REJECT_OWNER;
	if (st->st_mode & (S_ISUID | S_ISGID))
		return REJECT_SET_ID;
	return NULL;
}

/* What the open itself says about a thing that changed since the directory was read; NULL: it is our trouble. */
static const char *refuse_errno(int e)
{
	switch (e) {
	case ELOOP:
		return REJECT_SYMLINK;
	case ENXIO:
		return REJECT_SOCKET;
	case EACCES:
	case EPERM:
		return REJECT_UNREADABLE;
	case ENOENT:
	case ENOTDIR:
		return REJECT_CHANGED;
	case EXDEV:
	case ENODEV:
		return REJECT_OTHER;
	default:
		return NULL;
	}
}

/* Mode 000 by the analysis's own hand, and nothing of it is alive: its owner may read it after all. */
static int unlock(int dirfd, const char *name, uid_t owner)
{
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, O_PATH | O_NOFOLLOW, 0);
	struct stat st;
	char self[64];

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (refuse(&st, owner))
		return 0; /* the second look says so */
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return chmod(self, 0600) < 0 ? -errno : 0;
}

int content_open(int dirfd, const char *name, uid_t owner, struct stat *st, const char **ret_reason)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, flags, 0);

	if (fd == -EACCES && unlock(dirfd, name, owner) == 0)
		fd = file_open_beneath(dirfd, name, flags, 0);
	if (fd < 0) {
		*ret_reason = refuse_errno(-fd);
		return *ret_reason ? -EPERM : fd;
	}
	if (fstat(fd, st) < 0)
		return -errno;
	*ret_reason = refuse(st, owner);
	return *ret_reason ? -EPERM : TAKE_FD(fd);
}

int content_compare(int fd, const struct stat *st)
{
	struct stat now;

	if (fstat(fd, &now) < 0)
		return -errno;
	return now.st_size != st->st_size || now.st_mtim.tv_sec != st->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != st->st_mtim.tv_nsec;
}

int content_hash(int fd, const struct stat *st, char *buffer, size_t room, struct work *work,
		 uint8_t ret[DIGEST_SIZE])
{
	uint64_t left = (uint64_t)st->st_size;
	struct digest digest;

	digest_init(&digest);
	while (left > 0) {
		ssize_t n = pread(fd, buffer, left < room ? (size_t)left : room,
				  (off_t)((uint64_t)st->st_size - left));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 1;
		digest_update(&digest, buffer, (size_t)n);
		left -= (uint64_t)n;
		work_add(work, (uint64_t)n);
	}
	digest_final(&digest, ret);
	return content_compare(fd, st);
}
