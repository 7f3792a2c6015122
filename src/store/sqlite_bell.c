/*
 * The queue's doorbell in SQLite: an empty file beside the ledger, PATH-wake. Who has changed the queue touches it, who
 * waits has an inotify on it. Nothing depends on it, so that ringing never fails.
 */
#include "sqlite_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "macros.h"
#include "text.h"

int sqlite_ring(struct backend *b, struct error *err UNUSED)
{
	sqlite_of(b)->ringing = true;
	return 0;
}

/* The file, with the mode of the ledger: who may write to one may ring the other. */
static int wake_open(const struct sqlite *s, char **ret_path)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int fd = text_print(&path, NULL, "%s-wake", s->path);

	if (fd < 0)
		return fd;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (fd >= 0 && stat(s->path, &st) == 0)
			(void)fchmod(fd, st.st_mode & 0666);
		else if (fd < 0 && errno == EEXIST) /* somebody was faster */
			fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	if (ret_path)
		*ret_path = TAKE_PTR(path);
	return fd;
}

void sqlite_bell_rung(struct sqlite *s)
{
	if (s->ringing) {
		_cleanup_close_ int fd = wake_open(s, NULL);

		if (fd >= 0)
			(void)futimens(fd, NULL);
	}
	s->ringing = false;
}

int sqlite_bell(struct backend *b, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1, bell = -1;

	if (s->bell >= 0)
		return s->bell;
	fd = wake_open(s, &path);
	if (fd < 0)
		return error_system(err, -fd, "cannot watch the ledger %s for news", b->name);
	bell = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (bell < 0 || inotify_add_watch(bell, path, IN_ATTRIB) < 0)
		return error_system(err, errno, "cannot watch the ledger %s for news", b->name);
	return s->bell = TAKE_FD(bell);
}

int sqlite_bell_read(struct backend *b, struct error *err UNUSED)
{
	char events[4096] __attribute__((aligned(8)));
	int any = 0;

	while (sqlite_of(b)->bell >= 0 && read(sqlite_of(b)->bell, events, sizeof events) > 0)
		any = 1;
	return any;
}

void sqlite_bell_end(struct backend *b)
{
	sqlite_of(b)->bell = fd_close(sqlite_of(b)->bell);
}
