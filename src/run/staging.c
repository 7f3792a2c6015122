/*
 * Which of the submitter's files go into the workspace: relative arguments that name files below the current
 * directory, and --input. Looks, copies nothing: that is workspace_stage()'s work.
 */
#include "staging.h"
#include "file.h"
#include "private.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { STAGE_FILES_MAX = 100000 };

bool staging_is_shown(const struct staging *s, const char *real)
{
	const struct plan *plan = s->plan;
	const struct request *r = s->request;

	if ((plan->data && path_is_below(real, plan->data)) ||
	    (plan->docs && path_is_below(real, plan->docs)))
		return true;
	for (size_t i = 0; i < r->n_ro; i++)
		if (path_is_below(real, r->ro[i].from))
			return true;
	return false;
}

/* "./a//b" → "a/b" in place; false if it climbs with "..". */
bool path_clean_relative(const char *path, char *out, size_t room)
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

int staging_add(struct staging *s, const char *source, const char *as, const struct stat *st,
		struct error *err)
{
	struct plan *plan = s->plan;

	if (plan_has_stage(plan, source, as))
		return 0;
	if (plan->n_stages >= STAGE_FILES_MAX)
		return error_set(
			err, ERROR_REFUSED,
			"more than %d files to stage, at '%s': name only what is needed, or show the directory with --ro instead",
			STAGE_FILES_MAX, SHOWN(512, source));
	plan_add_stage(plan, source, as, st->st_dev, st->st_ino, (uint64_t)st->st_size);
	return 0;
}

static int refuse_link(const char *path, struct error *err)
{
	return error_set(
		err, ERROR_REFUSED,
		"'%s' is a symbolic link, and links are not staged: name the file that it leads to, with --input FILE:NAME",
		SHOWN(512, path));
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

/* Its last part, trailing slashes aside; "" of "/". */
static int last_part(const char *path, char out[NAME_MAX + 1])
{
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	if (end - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(out, path + start, end - start);
	out[end - start] = 0;
	return 0;
}

/* Its name in the workspace: AS, else as it was given, else its last part. "." is the workspace itself: "". */
static int name_input(const struct pair *input, char *as, size_t room, struct error *err)
{
	const char *wanted = input->to ? input->to : input->from;
	char last[NAME_MAX + 1];

	if (wanted[0] != '/' && path_clean_relative(wanted, as, room))
		return 0;
	if (wanted[0] != '/' && wanted[strspn(wanted, "./")] == 0 && !path_has_dot_dot(wanted)) {
		*as = 0;
		return 0;
	}
	if (!input->to && last_part(input->from, last) == 0 && path_clean_relative(last, as, room))
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"--input '%s': its name in the workspace must be relative, without '..'; give it one, with --input %s:NAME",
		SHOWN(256, wanted), SHOWN(256, input->from));
}

static int add_input(struct staging *s, const struct pair *input, struct error *err)
{
	_cleanup_free_ char *path = path_from(s->request->directory, input->from), *real = NULL;
	_cleanup_close_ int fd = -1;
	char as[PATH_MAX];
	struct stat st;
	int r = name_input(input, as, sizeof as, err);

	if (r < 0)
		return r;
	if (!path)
		return error_memory(err);
	fd = source_find(path, &st, &real);
	if (fd == -ELOOP)
		return error_set(err, ERROR_REFUSED,
				 "cannot use --input '%s': a link of another user's lies on the way",
				 SHOWN(512, path));
	if (fd < 0)
		return error_system(err, -fd, "cannot use --input '%s'", SHOWN(512, path));
	if (S_ISLNK(st.st_mode))
		return refuse_link(path, err);
	if (S_ISDIR(st.st_mode))
		return staging_add_tree(s, fd, real, as, input->from, err);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_REFUSED, "--input '%s' is neither a file nor a directory",
				 SHOWN(512, path));
	if (!*as)
		return error_set(err, ERROR_USAGE, "--input '%s': a file needs a name in the workspace",
				 SHOWN(512, path));
	return staging_add(s, real, as, &st, err);
}

/* An argument that names a file below the current directory. Anything else is just a word. */
static int add_argument(struct staging *s, const char *word, struct error *err)
{
	const struct request *r = s->request;
	_cleanup_free_ char *path = NULL, *real = NULL;
	char as[PATH_MAX], base[PATH_MAX], target[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!*word || *word == '/' || *word == '-' || strlen(word) >= PATH_MAX ||
	    !path_clean_relative(word, as, sizeof as))
		return 0;
	path = path_join(r->directory, as);
	if (!path)
		return error_memory(err);
	fd = source_find(path, &st, &real);
	if (fd < 0)
		return fd == -ENOMEM ? error_memory(err) : 0;
	if (S_ISLNK(st.st_mode)) {
		if (!realpath(path, target) || staging_is_shown(s, target))
			return 0;
		return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? refuse_link(path, err) : 0;
	}
	if (!S_ISREG(st.st_mode) || staging_is_shown(s, real))
		return 0;
	/* A directory on the way may be a link out of the current one: then it is not below it. */
	if (!realpath(r->directory, base) || !path_is_below(real, base))
		return 0;
	return staging_add(s, real, as, &st, err);
}

int plan_add_stages(const struct hood *h, const struct request *r, struct plan *plan, struct error *err)
{
	struct staging s = {.hood = h, .request = r, .plan = plan};
	int e;

	for (size_t i = 0; i < r->n_inputs; i++)
		if ((e = add_input(&s, &r->inputs[i], err)) < 0)
			return e;
	for (size_t i = 0; !r->no_stage && r->command[i]; i++)
		if ((i > 0 || path_is_below(plan->program, plan->workspace)) &&
		    (e = add_argument(&s, r->command[i], err)) < 0)
			return e;
	return plan_check(plan, err);
}
