/*
 * --into DIR: the outputs of an analysis that has succeeded, from the ledger into a directory of the user's. Their names
 * are the analysis's own, so nothing below DIR is followed, nothing that is there is replaced unless he said so, and no
 * dot-file is made, which programs of his might obey, unless he named it.
 */
#include "private.h"
#include "file.h"
#include "process.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_SIZE = 512 };

struct into {
	output_fetch_fn fetch;
	void *arg;
	const struct attempt *attempt;
	const struct plan *plan;
	int directory;
	struct error *err;
};

static const char *shown(char out[SHOWN_SIZE], const char *path)
{
	return text_escape_into(out, SHOWN_SIZE, path, strlen(path));
}

/* ---- which ---- */

static bool has_dot_name(const char *path)
{
	return *path == '.' || strstr(path, "/.");
}

/* "./a//b" names "a/b"; a pattern, or a directory, names no file. */
static bool names_exactly(const char *pattern, const char *path)
{
	if (strpbrk(pattern, "*?[\\"))
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		while (*pattern == '/' || strncmp(pattern, "./", 2) == 0)
			pattern++;
		if (strcspn(pattern, "/") != n || strncmp(pattern, path, n) != 0)
			return false;
		pattern += n;
		path += n;
		if (!*path || !*pattern)
			return *path == *pattern;
		path++;
	}
}

static bool is_named(char *const *patterns, const char *path)
{
	for (; patterns && *patterns; patterns++)
		if (names_exactly(*patterns, path))
			return true;
	return false;
}

static bool is_left_out(const struct plan *p, const char *path)
{
	return has_dot_name(path) && !is_named(p->outputs, path) && !is_named(p->optional_outputs, path);
}

void into_warn(const struct plan *p, struct attempt *a)
{
	const char *first = NULL;
	char name[SHOWN_SIZE];
	size_t n = 0;

	for (size_t i = 0; p->into && i < a->manifest.n_outputs; i++)
		if (is_left_out(p, a->manifest.outputs[i].path)) {
			first = first ? first : a->manifest.outputs[i].path;
			n++;
		}
	if (n > 0)
		receipt_warn(
			&a->receipt,
			"%zu dot-file%s not copied into '%s' ('%s'%s): --output with the very name of one has it "
			"copied",
			n, n == 1 ? " is" : "s are", p->into, shown(name, first), n > 1 ? " and others" : "");
}

/* ---- where ---- */

static int fail(const struct into *c, int errnum, const char *doing, const char *path)
{
	char name[SHOWN_SIZE];

	return error_system(c->err, errnum, "cannot %s '%s'", doing, shown(name, path));
}

static int fail_exists(const struct into *c, const char *path)
{
	char name[SHOWN_SIZE];

	return error_set(c->err, ERROR_REFUSED, "'%s' exists there: --force overwrites it",
			 shown(name, path));
}

/* An output on its way: its directory below DIR, made where it is missing unless we only look. */
struct way {
	const struct into *copying;
	const char *path;
	bool make, missing;
};

static int step_down(void *arg, int at, const char *name, struct error *err UNUSED)
{
	struct way *way = arg;
	const struct into *c = way->copying;
	char whole[SHOWN_SIZE];
	int fd;

	if (way->make && mkdirat(at, name, 0777) < 0 && errno != EEXIST)
		return fail(c, errno, "make the directory of", way->path);
	fd = file_open_beneath(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	way->missing = fd == -ENOENT && !way->make;
	if (way->missing)
		return fd;
	if (fd == -ELOOP || fd == -ENOTDIR)
		return error_set(c->err, ERROR_REFUSED,
				 "the directory of '%s' there is a link or no directory",
				 shown(whole, way->path));
	return fd < 0 ? fail(c, -fd, "enter the directory of", way->path) : fd;
}

static int open_parent(struct way *way, const char **ret_name)
{
	const struct into *c = way->copying;
	int at = fcntl(c->directory, F_DUPFD_CLOEXEC, 3);

	if (at < 0)
		return fail(c, errno, "open the directory of", way->path);
	return file_open_parent(at, way->path, step_down, way, ret_name, c->err);
}

/* Before anything is copied: all or nothing, as far as one can see. */
static int look(const struct into *c, const char *path)
{
	struct way way = {.copying = c, .path = path};
	_cleanup_close_ int parent = -1;
	const char *name = NULL;
	struct stat st;

	parent = open_parent(&way, &name);
	if (parent < 0)
		return way.missing ? 0 : parent;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(c, errno, "look at", path);
	if (S_ISDIR(st.st_mode))
		return fail(c, EISDIR, "overwrite", path);
	return c->plan->into_force ? 0 : fail_exists(c, path);
}

/* Where the file system cannot rename without replacing, a second name does the same. As system calls return, with errno. */
static int put_name(int parent, const char *temporary, const char *name, bool force)
{
	if (force)
		return renameat(parent, temporary, parent, name);
	if (renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL || linkat(parent, temporary, parent, name, 0) < 0)
		return -1;
	return unlinkat(parent, temporary, 0);
}

/* Nobody sees it under its name before it is whole. */
static int copy(const struct into *c, const struct output *o)
{
	struct way way = {.copying = c, .path = o->path, .make = true};
	_cleanup_close_ int parent = -1, fd = -1;
	const char *name = NULL;
	char temporary[64];
	uint64_t tag;
	int r;

	parent = open_parent(&way, &name);
	if (parent < 0)
		return parent;
	if (random_bytes(&tag, sizeof tag) < 0)
		return error_set(c->err, ERROR_SYSTEM, "cannot get random bytes");
	snprintf(temporary, sizeof temporary, ".fumehood-%016llx~", (unsigned long long)tag);
	fd = openat(parent, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(c, errno, "make a file for", o->path);
	r = c->fetch(c->arg, o, fd, c->err);
	if (r == 0 && put_name(parent, temporary, name, c->plan->into_force) < 0)
		r = errno == EEXIST ? fail_exists(c, o->path) : fail(c, errno, "write", o->path);
	if (r < 0)
		unlinkat(parent, temporary, 0);
	return r;
}

/* What is missing of it is made, parents too. A link on the way that is somebody else's is not the user's choice. -errno. */
static int make_directory(char *path)
{
	_cleanup_close_ int at = -1;
	char *name = path, *end;

	do {
		int next;
		char after;

		end = name + strcspn(name, "/");
		after = *end;
		*end = 0;
		next = file_open_trusted(*path ? path : "/", true);
		if (next == -ENOENT && at >= 0) {
			if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
				return -errno;
			next = file_open_trusted(path, true);
		}
		*end = after;
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
		name = end + strspn(end, "/");
	} while (*name);
	return TAKE_FD(at);
}

static int open_directory(const char *path, struct error *err)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int found = -1;
	int fd;

	if (!copy)
		return error_memory(err);
	if (!path[strspn(path, "/")])
		return error_set(err, ERROR_USAGE,
				 "the top directory takes no outputs: name a directory below it");
	found = make_directory(copy);
	if (found == -ELOOP)
		return error_set(err, ERROR_REFUSED, "a link of another user's lies on the way");
	fd = found < 0 ? found : openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_system(err, found < 0 ? -found : errno, "cannot make or open it") : fd;
}

static int copy_all(struct into *c)
{
	const struct manifest *m = &c->attempt->manifest;
	int r;

	for (size_t i = 0; i < m->n_outputs; i++)
		if (!is_left_out(c->plan, m->outputs[i].path) && (r = look(c, m->outputs[i].path)) < 0)
			return r;
	for (size_t i = 0; i < m->n_outputs; i++)
		if (!is_left_out(c->plan, m->outputs[i].path) && (r = copy(c, &m->outputs[i])) < 0)
			return r;
	return 0;
}

int outputs_copy_into(const struct attempt *a, const struct plan *p, int directory, output_fetch_fn fetch,
		      void *arg, struct error *err)
{
	_cleanup_close_ int fd =
		directory >= 0 ? fcntl(directory, F_DUPFD_CLOEXEC, 3) : open_directory(p->into, err);
	struct into c = {.fetch = fetch, .arg = arg, .attempt = a, .plan = p, .directory = fd, .err = err};
	int r = fd < 0 ? fd : copy_all(&c);

	if (r == 0)
		return 0;
	return error_prefix(err, r, "its outputs are in the ledger, but cannot be copied into '%s'", p->into);
}
