#include "tree.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { DEPTH_MAX = 256 };

static int copy_content(int from, int to)
{
	char data[65536];

	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
		int r;

		if (n > 0)
			continue;
		if (n == 0)
			return 0;
		if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP)
			return -errno;
		n = read(from, data, sizeof data);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = file_write_all(to, data, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int copy_file(int from, int to, const char *name, mode_t mode, struct error *err)
{
	_cleanup_close_ int in = file_open_beneath(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0),
			    out = -1;
	int r;

	if (in < 0)
		return 0; /* a file that cannot be read is not worth losing the others for */
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
	if (out < 0)
		return error_system(err, errno, "cannot create a file of the kept workspace");
	r = copy_content(in, out);
	return r < 0 ? error_system(err, -r, "cannot copy a file of the kept workspace") : 0;
}

static int copy_link(int from, int to, const char *name, struct error *err)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(from, name, text, sizeof text - 1);

	if (n < 0)
		return 0;
	text[n] = 0;
	return symlinkat(text, to, name) < 0
		       ? error_system(err, errno, "cannot copy a link of the kept workspace")
		       : 0;
}

static int copy_below(int from, int to, int depth, struct error *err);

static int copy_directory(int from, int to, const char *name, int depth, struct error *err)
{
	_cleanup_close_ int in = -1, out = -1;

	if (depth >= DEPTH_MAX)
		return 0;
	in = file_open_beneath(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (in < 0)
		return 0;
	if (mkdirat(to, name, 0700) < 0 && errno != EEXIST)
		return error_system(err, errno, "cannot make a directory of the kept workspace");
	out = file_open_beneath(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (out < 0)
		return error_system(err, -out, "cannot open a directory of the kept workspace");
	return copy_below(in, out, depth + 1, err);
}

static int copy_below(int from, int to, int depth, struct error *err)
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		fd_close(fd);
		return 0;
	}
	while (r == 0 && (e = readdir(dir))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			r = copy_file(from, to, e->d_name, st.st_mode, err);
		else if (S_ISLNK(st.st_mode))
			r = copy_link(from, to, e->d_name, err);
		else if (S_ISDIR(st.st_mode))
			r = copy_directory(from, to, e->d_name, depth, err);
	}
	closedir(dir);
	return r;
}

int tree_copy(int from, int to, struct error *err)
{
	return copy_below(from, to, 0, err);
}
