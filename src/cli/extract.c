#include "extract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "process.h"
#include "text.h"

bool extract_is_stdout(const struct extract *x)
{
	return x->to && strcmp(x->to, "-") == 0;
}

/* The user's own words: as mkdir -p. */
static int make_directories(const char *path, struct error *err)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return error_memory(err);
	for (char *end = copy + strspn(copy, "/"); *end; end += strspn(end, "/")) {
		char after;

		end += strcspn(end, "/");
		after = *end;
		*end = 0;
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return error_system(err, errno, "cannot create directory '%s'", SHOWN(512, copy));
		*end = after;
	}
	return 0;
}

int extract_prepare(struct extract *x, size_t count, struct error *err)
{
	struct stat st;
	size_t n = x->to ? strlen(x->to) : 0;

	if (!x->to || extract_is_stdout(x))
		return 0;
	if (n == 0)
		return error_set(err, ERROR_USAGE, "-o wants the name of a file or a directory");
	x->is_directory =
		x->keeps_paths || x->to[n - 1] == '/' || (stat(x->to, &st) == 0 && S_ISDIR(st.st_mode));
	if (x->is_directory)
		return make_directories(x->to, err);
	return count > 1 ? error_set(err, ERROR_USAGE, "-o names one file for %zu outputs: name a directory",
				     count)
			 : 0;
}

bool extract_path_is_inside(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static int fail(struct error *err, int errnum, const char *doing, const char *name)
{
	char shown[512];

	text_escape_into(shown, sizeof shown, name, strlen(name));
	return error_system(err, errnum, "cannot %s '%s'", doing, shown);
}

static int refuse_existing(const char *name, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "'%s' exists: --force overwrites it", SHOWN(512, name));
}

/* A directory on the way, made where it is missing. No link is followed. */
static int step_down(void *path, int at, const char *name, struct error *err)
{
	int fd;

	if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
		return fail(err, errno, "create directory", path);
	fd = file_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? fail(err, -fd, "open the directory of", path) : fd;
}

/* Writes name in dirfd through a sibling of its own, which nobody sees under the final name before it is whole. */
static int write_whole(int dirfd, const char *name, bool force, struct ledger *ledger, const struct output *o,
		       struct error *err)
{
	_cleanup_close_ int fd = -1;
	char temporary[64];
	uint64_t tag;
	int r;

	if (random_bytes(&tag, sizeof tag) < 0)
		return error_set(err, ERROR_SYSTEM, "cannot get random bytes");
	snprintf(temporary, sizeof temporary, ".fumehood-%016llx", (unsigned long long)tag);
	fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail(err, errno, "create a file for", name);
	r = ledger_copy_output(ledger, o, fd, err);
	if (r == 0 && renameat2(dirfd, temporary, dirfd, name, force ? 0 : RENAME_NOREPLACE) < 0) {
		r = errno == EEXIST ? refuse_existing(name, err) : fail(err, errno, "write", name);
	}
	if (r < 0)
		unlinkat(dirfd, temporary, 0);
	return r;
}

/* -o NAME: the user's own words, resolved as any program would. */
static int write_named(const struct extract *x, struct ledger *ledger, const struct output *o,
		       char **ret_file, struct error *err)
{
	const char *slash = strrchr(x->to, '/'), *name = slash ? slash + 1 : x->to;
	_cleanup_free_ char *directory = slash ? strndup(x->to, (size_t)(slash - x->to) + 1) : strdup(".");
	_cleanup_free_ char *file = strdup(x->to);
	_cleanup_close_ int fd = -1;
	int r;

	if (!directory || !file)
		return error_memory(err);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(err, errno, "open directory", directory);
	r = write_whole(fd, name, x->force, ledger, o, err);
	if (r == 0)
		*ret_file = TAKE_PTR(file);
	return r;
}

/* Its path below the place where it is put. */
static const char *path_below(const struct extract *x, const struct output *o)
{
	const char *slash = strrchr(o->path, '/');

	return x->is_directory || x->keeps_paths || !slash ? o->path : slash + 1;
}

int extract_look(const struct extract *x, const struct output *o, struct error *err)
{
	_cleanup_close_ int base = -1, fd = -1;
	const char *path = path_below(x, o);

	if (x->force || extract_is_stdout(x) || (x->to && !x->is_directory) || !extract_path_is_inside(path))
		return 0;
	base = open(x->to ? x->to : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = base < 0 ? -1 : file_open_beneath(base, path, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0 ? refuse_existing(path, err) : 0;
}

int extract_output(const struct extract *x, struct ledger *ledger, const struct output *o, char **ret_file,
		   struct error *err)
{
	const char *path = path_below(x, o), *name = NULL;
	_cleanup_free_ char *file = NULL;
	_cleanup_close_ int base = -1, fd = -1;
	int r;

	if (x->to && !x->is_directory)
		return write_named(x, ledger, o, ret_file, err);
	if (!extract_path_is_inside(path))
		return error_set(err, ERROR_REFUSED,
				 "an output's path leads out of its directory: give it a name with -o");
	base = open(x->to ? x->to : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return fail(err, errno, "open directory", x->to ? x->to : ".");
	file = x->to ? path_join(x->to, path) : strdup(path);
	if (!file)
		return error_memory(err);
	fd = file_open_parent(TAKE_FD(base), path, step_down, (void *)path, &name, err);
	if (fd < 0)
		return fd;
	r = write_whole(fd, name, x->force, ledger, o, err);
	if (r == 0)
		*ret_file = TAKE_PTR(file);
	return r;
}
