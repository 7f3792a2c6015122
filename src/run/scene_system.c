/*
 * What every analysis sees of the host itself: its programs and libraries, and of /etc only what they need to find their own
 * files. What not everybody on the host may read is not shown.
 */
#include "scene.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { COPY_MAX = 4 * 1024 * 1024, SMALL_MAX = 4096 };

struct system_view {
	struct layers *layers;
	char plain[PATH_MAX]; /* see is_plain() */
	size_t plain_length;
};

void scene_add_file(struct plan *p, const char *target, const char *content, size_t size)
{
	char *copy = malloc(size + 1);
	struct mount *m = plan_add_mount(p, MOUNT_FILE, NULL, copy ? target : NULL);

	if (copy)
		memcpy(copy, content, size);
	m->content = copy;
	m->content_size = size;
	m->mode = 0644;
}

/* Not there, or not for us: an analysis does without it. Any other failure would change its results in silence. */
static bool is_absent(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == EACCES || errnum == ELOOP;
}

/* May everybody on this host enter each directory on the way to it? 1, 0, or negative: that cannot be told. */
static int is_reachable(const char *path, struct error *err)
{
	_cleanup_free_ char *at = strdup(path);
	struct stat st;
	char *slash;

	if (!at)
		return error_memory(err);
	while ((slash = strrchr(at, '/')) && slash > at) {
		*slash = 0;
		if (stat(at, &st) < 0)
			return is_absent(errno) ? 0 : error_system(err, errno, "cannot look at '%s'", at);
		if (!(st.st_mode & S_IXOTH))
			return 0;
	}
	return 1;
}

/* What everybody may read is no secret of root's, or of a group that the caller is in. 1, 0, or negative. */
static int is_public(const char *path, int fd, struct error *err)
{
	_cleanup_free_ char *real = fd_path(fd);
	struct stat st;
	int r;

	if (!real || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", path);
	if (!(st.st_mode & S_IROTH) || (S_ISDIR(st.st_mode) && !(st.st_mode & S_IXOTH)))
		return 0;
	r = is_reachable(path, err);
	return r == 1 ? is_reachable(real, err) : r;
}

/*
 * May everybody enter this directory and each above it, and is none of them a link? Most of what is looked at lies beside
 * something that was: the last one that was found so is known.
 */
static bool is_plain(struct system_view *v, const char *directory, size_t length)
{
	char at[PATH_MAX];
	struct stat st;

	if (length == 0)
		return true;
	if (length == v->plain_length && memcmp(directory, v->plain, length) == 0)
		return true;
	if (length >= sizeof at)
		return false;
	for (size_t n = 1; n <= length; n++) {
		if (n < length && directory[n] != '/')
			continue;
		memcpy(at, directory, n);
		at[n] = 0;
		if (lstat(at, &st) < 0 || !S_ISDIR(st.st_mode) || !(st.st_mode & S_IXOTH))
			return false;
	}
	memcpy(v->plain, directory, length);
	v->plain_length = length;
	return true;
}

static bool is_in_plain(struct system_view *v, const char *path)
{
	return is_plain(v, path, (size_t)(strrchr(path, '/') - path));
}

/* 1: it is a part of the overlay over /etc from now on; 0: it cannot be. */
static int add_part(struct system_view *v, const char *path, const struct stat *st)
{
	static const char layer[] = "/etc";
	struct mount *m;

	if (!path_is_below(path, layer) || !layers_can_share(v->layers, layer, path))
		return 0;
	m = layers_share(v->layers, layer, path);
	m->device = st->st_dev;
	m->inode = st->st_ino;
	return 1;
}

/* The content of a file that is open, unless it is too large. */
static int add_content(const struct layers *l, const char *path, int fd, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r = file_read_all(fd, &b, COPY_MAX);

	if (r == -EFBIG)
		return 0;
	if (r < 0)
		return error_system(err, -r, "cannot read '%s'", path);
	scene_add_file(l->plan, path, b.data ? b.data : "", b.size);
	return 0;
}

/* A file of the host: its inode, and so its locks, stay the host's own. A small one as a copy, which costs less than a mount.
 * Missing: passed over. */
static int add_file(struct system_view *v, const char *path, struct error *err)
{
	_cleanup_close_ int fd = -1;
	struct layers *l = v->layers;
	struct stat st;
	bool plain;
	int r;

	if (lstat(path, &st) < 0)
		return is_absent(errno) ? 0 : error_system(err, errno, "cannot look at '%s'", path);
	plain = S_ISREG(st.st_mode) && is_in_plain(v, path);
	if (plain && (!(st.st_mode & S_IROTH) || (st.st_size > SMALL_MAX && add_part(v, path, &st) == 1)))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (plain ? O_NOFOLLOW : 0));
	if (fd < 0 && is_absent(errno))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot open '%s'", path);
	r = !S_ISREG(st.st_mode) ? 0 : plain ? (st.st_mode & S_IROTH) != 0 : is_public(path, fd, err);
	if (r <= 0)
		return r;
	return l->plan->strength == STRENGTH_LANDLOCK ? scene_add_as_is(l, fd, err)
						      : add_content(l, path, fd, err);
}

static int add_link(const struct layers *l, const char *path, struct error *err)
{
	char text[PATH_MAX];
	ssize_t n;

	if (l->plan->strength == STRENGTH_LANDLOCK)
		return 0;
	n = readlink(path, text, sizeof text - 1);
	if (n < 0)
		return error_system(err, errno, "cannot read the link '%s'", path);
	text[n] = 0;
	plan_add_mount(l->plan, MOUNT_LINK, text, path);
	return 0;
}

/* A directory of the host's own: real directories through an overlay, links as links, missing ones not at all. */
static int add_system(struct system_view *v, const char *path, struct error *err)
{
	static const struct reader everybody = {.kind = READER_ANYBODY};
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return is_absent(errno) ? 0 : error_system(err, errno, "cannot look at '%s'", path);
	if (S_ISLNK(st.st_mode))
		return add_link(v->layers, path, err);
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (is_in_plain(v, path)) {
		if (!(st.st_mode & S_IROTH) || !(st.st_mode & S_IXOTH) || add_part(v, path, &st) == 1)
			return 0;
		return layers_show(v->layers, path, path, &everybody, err);
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return is_absent(errno) ? 0 : error_system(err, errno, "cannot open '%s'", path);
	r = is_public(path, fd, err);
	return r <= 0 ? r : layers_show(v->layers, path, path, &everybody, err);
}

static int has_version(const struct dirent *e)
{
	static const char *const patterns[] = {"python3.*", "ImageMagick-*", "java-*-openjdk"};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (fnmatch(patterns[i], e->d_name, FNM_PERIOD) == 0)
			return 1;
	return 0;
}

/* Settings of programs that have their version in the name, which differs from host to host; in the order of names. */
static int add_versioned(struct system_view *v, struct error *err)
{
	struct dirent **found = NULL;
	int n = scandir("/etc", &found, has_version, alphasort), r = 0;

	if (n < 0 && (is_absent(errno) || errno == EACCES))
		return 0;
	if (n < 0)
		return error_system(err, errno, "cannot list '/etc'");
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof path, "/etc/%s", found[i]->d_name);
		if (r == 0)
			r = add_system(v, path, err);
		free(found[i]);
	}
	free(found);
	return r;
}

int scene_add_file_of_host(struct layers *l, const char *path, struct error *err)
{
	return add_file(&(struct system_view){.layers = l}, path, err);
}

int scene_add_system(struct layers *l, struct error *err)
{
	static const char *const directories[] = {
		"/usr",
		"/bin",
		"/sbin",
		"/lib",
		"/lib32",
		"/lib64",
		"/libx32",
		/* of /etc only what programs need to find their own files */
		"/etc/alternatives",
		"/etc/fonts",
		"/etc/R",
		"/etc/python3",
		"/etc/OpenCL",
		"/etc/ld.so.conf.d",
		"/etc/perl",
		"/etc/octave.conf.d",
		"/etc/texmf",
		"/etc/gss",
		"/etc/openmpi",
		"/etc/ssl/certs",
	};
	static const char *const files[] = {
		"/etc/ld.so.cache",  "/etc/ld.so.conf",	     "/etc/localtime",	"/etc/timezone",
		"/etc/protocols",    "/etc/services",	     "/etc/mime.types", "/etc/matplotlibrc",
		"/etc/papersize",    "/etc/magic",	     "/etc/os-release", "/etc/debian_version",
		"/etc/locale.alias", "/etc/ssl/openssl.cnf",
	};
	struct system_view v = {.layers = l};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if ((r = add_system(&v, directories[i], err)) < 0)
			return r;
	r = add_versioned(&v, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = add_file(&v, files[i], err);
	return r;
}
