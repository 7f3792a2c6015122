#include "relative.h"
#include "process.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool is_clean(const char *text, size_t size)
{
	size_t n;

	if (size >= PATH_MAX || strnlen(text, size) != size)
		return false;
	for (;; text += n + 1) {
		n = strcspn(text, "/");
		if (n == 0 || n > NAME_MAX || (n <= 2 && strspn(text, ".") >= n))
			return false;
		if (!text[n])
			return true;
	}
}

int relative_check(const char *text, size_t size, struct relative *ret, struct error *err)
{
	char shown[512];

	if (!is_clean(text, size))
		return error_set(
			err, ERROR_USAGE,
			"'%s' is not a path below a directory: it is empty, absolute or too long, or has an "
			"empty part, '.' or '..'",
			text_escape_into(shown, sizeof shown, text, size));
	ret->text = text;
	return 0;
}

int dir_make(int at, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (mkdirat(at, name, 0700) < 0)
		return -errno;
	/* A umask may have locked it for us, too. */
	fd = file_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -EACCES)
		fd = (r = file_unlock(at, name, O_DIRECTORY, 0700)) < 0
			     ? r
			     : file_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	/* In a sticky directory nobody can have exchanged it. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0) ||
	    (uid != geteuid() && fchown(fd, uid, gid) < 0))
		return -errno;
	return TAKE_FD(fd);
}

static int step_down(int at, const char *name, const struct relative_make *make)
{
	if (make && make->is_exact) {
		int fd = dir_make(at, name, make->mode, make->uid, make->gid);

		if (fd != -EEXIST)
			return fd;
	} else if (make && mkdirat(at, name, make->mode) < 0 && errno != EEXIST) {
		return -errno;
	}
	return file_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
}

int relative_open_parent(int top, struct relative path, const struct relative_make *make,
			 const char **ret_name)
{
	_cleanup_close_ int at = fcntl(top, F_DUPFD_CLOEXEC, 3);
	const char *p = path.text, *slash;

	if (at < 0)
		return -errno;
	for (; (slash = strchr(p, '/')); p = slash + 1) {
		char name[NAME_MAX + 1];
		int next;

		memcpy(name, p, (size_t)(slash - p));
		name[slash - p] = 0;
		next = step_down(at, name, make);
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
	}
	*ret_name = p;
	return TAKE_FD(at);
}

/* ---- a file of the user's ---- */

static int fail(struct error *err, int errnum, const char *doing, struct relative path)
{
	return error_system(err, errnum, "cannot %s '%s'", doing, SHOWN(512, path.text));
}

static int fail_exists(struct error *err, struct relative path)
{
	return error_set(err, ERROR_REFUSED, "'%s' exists: --force overwrites it", SHOWN(512, path.text));
}

static int fail_way(struct error *err, int errnum, struct relative path)
{
	if (errnum == ELOOP || errnum == ENOTDIR)
		return error_set(err, ERROR_REFUSED, "the directory of '%s' there is a link or no directory",
				 SHOWN(512, path.text));
	return fail(err, errnum, "make or enter the directory of", path);
}

int relative_look(int top, struct relative path, bool force, struct error *err)
{
	const char *name = NULL;
	_cleanup_close_ int parent = relative_open_parent(top, path, NULL, &name);
	struct stat st;

	if (parent < 0)
		return parent == -ENOENT ? 0 : fail_way(err, -parent, path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(err, errno, "look at", path);
	if (S_ISDIR(st.st_mode))
		return fail(err, EISDIR, "overwrite", path);
	return force ? 0 : fail_exists(err, path);
}

int relative_write(int top, struct relative path, bool force, relative_fill_fn fill, void *arg,
		   struct error *err)
{
	const char *name = NULL;
	_cleanup_close_ int parent = relative_open_parent(top, path, &(struct relative_make){.mode = 0777},
							  &name),
			    fd = -1;
	char temporary[64];
	uint64_t tag;
	int r;

	if (parent < 0)
		return fail_way(err, -parent, path);
	if (random_bytes(&tag, sizeof tag) < 0)
		return error_set(err, ERROR_SYSTEM, "cannot get random bytes");
	snprintf(temporary, sizeof temporary, ".fumehood-%016llx~", (unsigned long long)tag);
	fd = file_open_beneath(parent, temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return fail(err, -fd, "make a file for", path);
	r = fill(arg, fd, err);
	if (r == 0) {
		int named = !force ? file_name_new(parent, temporary, parent, name)
			    : renameat(parent, temporary, parent, name) < 0 ? -errno
									    : 0;

		if (named < 0)
			r = named == -EEXIST ? fail_exists(err, path) : fail(err, -named, "write", path);
	}
	if (r < 0)
		unlinkat(parent, temporary, 0);
	return r;
}
