#include "walk.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static int refuse(const char *path, const char *name, const char *what, struct error *err)
{
	char shown[256];

	return error_set(
		err, ERROR_REFUSED,
		"no overlay can be laid over '%s' on this host, and it contains %s ('%s'), which a read-only bind would "
		"leave open: move it out of the input",
		path, what, text_escape_into(shown, sizeof shown, name, strlen(name)));
}

static int walk(int fd, const char *path, int depth, struct error *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		r = errno;
		close(fd);
		return error_system(err, r, "cannot list '%s'", path);
	}
	while (r == 0 && (e = readdir(dir))) {
		struct stat st;
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode))
			r = refuse(path, e->d_name, S_ISSOCK(st.st_mode) ? "a socket" : "a FIFO", err);
		if (!S_ISDIR(st.st_mode))
			continue;
		if (depth == DEPTH_MAX) {
			r = refuse(path, e->d_name, "directories too deep to be searched", err);
			continue;
		}
		sub = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue; /* what we cannot enter, the analysis cannot either */
		r = walk(sub, path, depth + 1, err);
	}
	closedir(dir);
	return r;
}

int walk_for_doors(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return error_system(err, errno, "cannot open '%s'", path);
	return walk(fd, path, 0, err);
}
