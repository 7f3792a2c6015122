/*
 * Which of the submitter's files go into the workspace: relative arguments that name files below the current
 * directory, and --input. Looks, copies nothing: that is workspace_stage()'s work.
 */
#include "private.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { STAGE_DEPTH_MAX = 32, STAGE_FILES_MAX = 100000 };

static bool below_inputs(const struct plan *plan, const struct request *r, const char *real)
{
	if ((plan->data && path_is_below(real, plan->data)) ||
	    (plan->docs && path_is_below(real, plan->docs)))
		return true;
	for (size_t i = 0; i < r->n_ro; i++)
		if (path_is_below(real, r->ro[i].from))
			return true;
	return false;
}

/* "./a//b" → "a/b" in place; false if it climbs with "..". */
static bool clean_relative(const char *path, char *out, size_t room)
{
	size_t n = 0;

	while (*path) {
		size_t part = strcspn(path, "/");

		if (part == 2 && strncmp(path, "..", 2) == 0)
			return false;
		if (part && !(part == 1 && *path == '.')) {
			if (n + part + 2 > room)
				return false;
			if (n)
				out[n++] = '/';
			memcpy(out + n, path, part);
			n += part;
		}
		path += part;
		path += strspn(path, "/");
	}
	out[n] = 0;
	return n > 0;
}

static int add(struct plan *plan, const char *source, const char *as, const struct stat *st,
	       struct error *err)
{
	if (plan_has_stage(plan, source, as))
		return 0;
	if (plan->n_stages >= STAGE_FILES_MAX)
		return error_set(err, ERROR_REFUSED,
				 "more than %d files to stage: show the directory with --ro instead",
				 STAGE_FILES_MAX);
	plan_add_stage(plan, source, as, st->st_dev, st->st_ino);
	return 0;
}

static int refuse_link(const char *path, struct error *err)
{
	return error_set(
		err, ERROR_REFUSED,
		"'%s' is a symbolic link, and links are not staged: name the file that it leads to, with --input FILE:NAME",
		SHOWN(512, path));
}

static int add_entry(struct plan *plan, int dirfd, const char *name, const char *path, const char *as,
		     int depth, struct error *err);

/* A directory given with --input: everything below it, from descriptor to descriptor. */
static int add_tree(struct plan *plan, int fd, const char *source, const char *as, int depth,
		    struct error *err)
{
	_cleanup_dir_ DIR *dir = dir_list(fd);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return error_system(err, errno, "cannot list --input '%s'", source);
	while (r == 0 && (e = readdir(dir))) {
		_cleanup_free_ char *path = NULL, *name = NULL;

		if (name_is_dots(e->d_name))
			continue;
		path = path_join(source, e->d_name);
		name = path_join(as, e->d_name);
		r = path && name ? add_entry(plan, dirfd(dir), e->d_name, path, name, depth, err)
				 : error_memory(err);
	}
	return r;
}

static int add_entry(struct plan *plan, int dirfd, const char *name, const char *path, const char *as,
		     int depth, struct error *err)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at --input '%s'", path);
	if (S_ISLNK(st.st_mode))
		return refuse_link(path, err);
	if (S_ISDIR(st.st_mode) && depth < STAGE_DEPTH_MAX)
		return add_tree(plan, fd, path, as, depth + 1, err);
	if (S_ISREG(st.st_mode))
		return add(plan, path, as, &st, err);
	return error_set(err, ERROR_REFUSED,
			 "--input '%s' is neither a file nor a directory, or lies too deep", path);
}

/* What a path of the user's leads to: an O_PATH descriptor, what it is, and its canonical name. -errno. */
static int source_find(const char *path, struct stat *st, char **ret_real)
{
	_cleanup_close_ int fd = file_open_trusted(path, false);

	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	*ret_real = fd_path(fd);
	return *ret_real ? TAKE_FD(fd) : -ENOMEM;
}

static int add_input(const struct request *r, struct plan *plan, const struct pair *input, struct error *err)
{
	_cleanup_free_ char *path = path_from(r->directory, input->from), *real = NULL;
	const char *slash = strrchr(input->from, '/'), *base = slash && slash[1] ? slash + 1 : input->from;
	const char *wanted = input->to ? input->to : input->from[0] == '/' ? base : input->from;
	_cleanup_close_ int fd = -1;
	char as[PATH_MAX];
	struct stat st;

	if (!path)
		return error_memory(err);
	if (wanted[0] == '/' || !clean_relative(wanted, as, sizeof as)) {
		if (input->to || !clean_relative(base, as, sizeof as))
			return error_set(
				err, ERROR_USAGE,
				"--input '%s': its name in the workspace must be relative, without '..'",
				wanted);
	}
	fd = source_find(path, &st, &real);
	if (fd == -ELOOP)
		return error_set(err, ERROR_REFUSED,
				 "cannot use --input '%s': a link of another user's lies on the way", path);
	if (fd < 0)
		return error_system(err, -fd, "cannot use --input '%s'", path);
	if (S_ISLNK(st.st_mode))
		return refuse_link(path, err);
	return S_ISDIR(st.st_mode) ? add_tree(plan, fd, real, as, 0, err) : add(plan, real, as, &st, err);
}

/* An argument that names a file below the current directory. Anything else is just a word. */
static int add_argument(const struct request *r, struct plan *plan, const char *word, struct error *err)
{
	_cleanup_free_ char *path = NULL, *real = NULL;
	char as[PATH_MAX], base[PATH_MAX], target[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!*word || *word == '/' || *word == '-' || strlen(word) >= PATH_MAX ||
	    !clean_relative(word, as, sizeof as))
		return 0;
	path = path_join(r->directory, as);
	if (!path)
		return error_memory(err);
	fd = source_find(path, &st, &real);
	if (fd < 0)
		return fd == -ENOMEM ? error_memory(err) : 0;
	if (S_ISLNK(st.st_mode)) {
		if (!realpath(path, target) || below_inputs(plan, r, target))
			return 0;
		return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? refuse_link(path, err) : 0;
	}
	if (!S_ISREG(st.st_mode) || below_inputs(plan, r, real))
		return 0;
	/* A directory on the way may be a link out of the current one: then it is not below it. */
	if (!realpath(r->directory, base) || !path_is_below(real, base))
		return 0;
	return add(plan, real, as, &st, err);
}

int plan_add_stages(const struct request *r, struct plan *plan, struct error *err)
{
	int e;

	for (size_t i = 0; i < r->n_inputs; i++)
		if ((e = add_input(r, plan, &r->inputs[i], err)) < 0)
			return e;
	for (size_t i = 0; !r->no_stage && r->command[i]; i++)
		if ((i > 0 || path_is_below(plan->program, plan->workspace)) &&
		    (e = add_argument(r, plan, r->command[i], err)) < 0)
			return e;
	return plan_check(plan, err);
}
