#include "ground.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* As much as an analysis that does nothing takes. */
enum { TRY_SIZE = 16 * 1024, TRY_FILES = 4 };

static const struct {
	const char *name, *other;
} rows[] = {
	[GROUND_WORKSPACES] = {"workspaces",
			       "choose another directory with workspace: {root: DIR} in the configuration"},
	[GROUND_STATE] = {"state directory",
			  "choose another with XDG_STATE_HOME, or state_dir: DIR in the configuration"},
};

const char *ground_name(enum ground which)
{
	return rows[which].name;
}

/* Without a name, so that nothing is left; or, on a file system that cannot do that, gone at once. */
static int file_make(int dirfd)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char name[64];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	snprintf(name, sizeof name, ".fumehood-try-%d", (int)getpid());
	fd = file_open_beneath(dirfd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -errno;
	unlinkat(dirfd, name, 0);
	return fd;
}

int ground_try(int dirfd)
{
	static const char zeros[TRY_SIZE];
	int fds[TRY_FILES], n = 0, r = 0;

	for (; r == 0 && n < TRY_FILES; n += fds[n] >= 0)
		r = (fds[n] = file_make(dirfd)) < 0 ? fds[n]
						    : file_write_all(fds[n], zeros, sizeof zeros / TRY_FILES);
	while (n > 0)
		fd_close(fds[--n]);
	return -r;
}

void ground_describe(enum ground which, const char *path, int errnum, struct ground_fault *ret)
{
	const char *shown = SHOWN(160, path), *other = rows[which].other, *why = strerror(errnum);
	char *what = ret->what, *remedy = ret->remedy;

	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
		snprintf(what, sizeof ret->what, "'%s' is full (%s)", shown, why);
		snprintf(remedy, sizeof ret->remedy,
			 "make room there (`df -h %s` and `df -i %s` tell what is left), or %s", shown, shown,
			 other);
		return;
	case EROFS:
		snprintf(what, sizeof ret->what, "'%s' is read-only (%s)", shown, why);
		snprintf(remedy, sizeof ret->remedy, "mount it writable, or %s", other);
		return;
	default:
		snprintf(what, sizeof ret->what, "nothing can be written to '%s' (%s)", shown, why);
		snprintf(remedy, sizeof ret->remedy, "let this user write there, or %s", other);
	}
}

int ground_refuse(enum ground which, const char *path, int errnum, struct error *err)
{
	struct ground_fault fault;

	ground_describe(which, path, errnum, &fault);
	return error_refuse_here(err, "no %s: %s; %s", ground_name(which), fault.what, fault.remedy);
}

int ground_explain(const struct site *s, const char *state_dir, int r, struct error *err)
{
	int errnum;

	if (!err || err->kind != ERROR_SYSTEM)
		return r;
	if ((errnum = ground_try(s->root_fd)))
		ground_refuse(GROUND_WORKSPACES, s->root, errnum, err);
	else if ((errnum = ground_try(s->runs)))
		ground_refuse(GROUND_STATE, state_dir, errnum, err);
	return r;
}
