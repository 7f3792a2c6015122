/*
 * --into DIR: the outputs of an analysis that has succeeded, from the ledger into a directory of the user's. Their names
 * are the analysis's own, so nothing below DIR is followed, nothing that is there is replaced unless he said so, and no
 * dot-file is made, which programs of his might obey, unless he named it.
 */
#include "private.h"
#include "relative.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { SHOWN_SIZE = 512 };

struct into {
	output_fetch_fn fetch;
	void *arg;
	const struct attempt *attempt;
	const struct plan *plan;
	int directory;
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

struct copying {
	const struct into *into;
	const struct output *output;
};

static int fill(void *arg, int fd, struct error *err)
{
	const struct copying *c = arg;

	return c->into->fetch(c->into->arg, c->output, fd, err);
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
		return error_set(err, ERROR_REFUSED,
				 "a link of another user's, or of /proc, lies on the way");
	fd = found < 0 ? found : openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_system(err, found < 0 ? -found : errno, "cannot make or open it") : fd;
}

/* Before anything is copied all are looked at: all or nothing, as far as one can see. */
static int copy_all(const struct into *c, struct error *err)
{
	const struct manifest *m = &c->attempt->manifest;
	bool force = c->plan->into_force;

	for (size_t i = 0; i < 2 * m->n_outputs; i++) {
		const struct output *o = &m->outputs[i % m->n_outputs];
		struct copying copying = {c, o};
		struct relative path;
		int r;

		if (is_left_out(c->plan, o->path))
			continue;
		if ((r = relative_check(o->path, strlen(o->path), &path, err)) < 0 ||
		    (r = i < m->n_outputs
				 ? relative_look(c->directory, path, force, err)
				 : relative_write(c->directory, path, force, fill, &copying, err)) < 0)
			return r;
	}
	return 0;
}

int outputs_copy_into(const struct attempt *a, const struct plan *p, int directory, output_fetch_fn fetch,
		      void *arg, struct error *err)
{
	_cleanup_close_ int fd =
		directory >= 0 ? fcntl(directory, F_DUPFD_CLOEXEC, 3) : open_directory(p->into, err);
	struct into c = {.fetch = fetch, .arg = arg, .attempt = a, .plan = p, .directory = fd};
	int r = fd < 0 ? fd : copy_all(&c, err);

	if (r == 0)
		return 0;
	return error_prefix(err, r, "its outputs are in the ledger, but cannot be copied into '%s'", p->into);
}
