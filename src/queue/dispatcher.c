#include "dispatcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>

#include "file.h"
#include "owned.h"
#include "id.h"
#include "process.h"
#include "text.h"

static int name_make(char out[DISPATCHER_NAME_ROOM], struct error *err)
{
	char boot[BOOT_ID_SIZE], token[TOKEN_SIZE];
	struct utsname host;

	if (token_make(token, err) < 0)
		return -1;
	uname(&host);
	boot_id(boot);
	snprintf(out, DISPATCHER_NAME_ROOM, "%s %s %s", host.nodename, boot, token);
	return 0;
}

/* "HOST BOOT TOKEN", and a line break: one that a crash cut short is none. */
static bool name_read(const char *text, char out[DISPATCHER_NAME_ROOM])
{
	size_t size = strcspn(text, "\n");

	if (text[size] != '\n' || size < TOKEN_SIZE || size >= DISPATCHER_NAME_ROOM)
		return false;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] >= 127)
			return false;
	memcpy(out, text, size);
	out[size] = 0;
	return true;
}

/* The lock is on a file that is never replaced; the name is another, which is. */
static int name_find(int dirfd, const char *path, char out[DISPATCHER_NAME_ROOM], struct error *err)
{
	char text[DISPATCHER_NAME_ROOM + 1], line[DISPATCHER_NAME_ROOM + 1];
	ssize_t n = file_read_small(dirfd, "dispatcher", text, sizeof text);

	if (n >= 0 && name_read(text, out))
		return 0;
	if (n < 0 && n != -ENOENT)
		return error_system(err, (int)-n, "cannot read '%s/dispatcher'", path);
	if (name_make(out, err) < 0)
		return -1;
	snprintf(line, sizeof line, "%s\n", out);
	return file_replace(dirfd, "dispatcher", line, strlen(line), 0600, true, err);
}

int dispatcher_open(const char *state_dir, const char *engine, const char *cluster, struct dispatcher *ret,
		    struct error *err)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int dirfd = -1, fd = -1;

	if (text_print(&path, err, "%s/%s/%s", state_dir, engine, cluster) < 0 ||
	    dir_make_private(path, err) < 0)
		return -1;
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = dirfd < 0 ? -1 : file_open_own(dirfd, "lock", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, dirfd < 0 ? errno : -fd, "cannot open '%s/lock'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? error_set(
					 err, ERROR_BUSY,
					 "another dispatcher for the cluster '%s' lives with this state directory ('%s'): one "
					 "is enough for all its nodes",
					 cluster, state_dir)
			       : error_system(err, errno, "cannot lock '%s/lock'", path);
	if (name_find(dirfd, path, ret->name, err) < 0)
		return -1;
	ret->fd = TAKE_FD(fd);
	return 0;
}

void dispatcher_close(struct dispatcher *d)
{
	d->fd = fd_close(d->fd);
}
