/*
 * A directory that is copied into the workspace: a walk from descriptor to descriptor, which follows nothing.
 */
#include "staging.h"
#include "file.h"
#include "private.h"
#include "program.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TREE_DEPTH_MAX = 64, LEFT_OUT_MAX = 64, NAMED_MAX = 4 };

/* What is fumehood's own: it may lie in the tree, and is never copied. Canonical paths, or NULL. */
struct own_places {
	char *state, *ledger, *objects, *root;
	const char *prefix; /* of workspaces, in root */
};

struct tree {
	struct staging *staging;
	const char *given, *root, *as;
	int fd;
	struct own_places own;
	char **links; /* paths below the root, looked at when all files are known */
	size_t n_links;
	struct buffer named; /* what is not copied though its user may want it */
	size_t n_named;
};

static int walk(struct tree *t, int fd, const char *path, const char *as, int depth, struct error *err);

/* ---- what is not copied ---- */

static char *real_or_null(const char *path)
{
	return path ? realpath(path, NULL) : NULL;
}

static int own_places_find(const struct hood *h, struct own_places *ret, struct error *err)
{
	_cleanup_free_ char *objects = NULL;
	uint64_t most;
	int r = ledger_url_objects(h->ledger_url, &objects, &most, err);

	if (r < 0)
		return r;
	ret->state = real_or_null(h->state_dir);
	ret->ledger = strncmp(h->ledger_url, "sqlite:", 7) == 0 ? real_or_null(h->ledger_url + 7) : NULL;
	ret->objects = objects && *objects == '/' ? real_or_null(objects) : NULL;
	ret->root = real_or_null(h->config.workspace_root);
	ret->prefix = h->config.workspace_prefix;
	return 0;
}

static void own_places_done(struct own_places *o)
{
	free(o->state);
	free(o->ledger);
	free(o->objects);
	free(o->root);
}

/* "/tmp/scidex-analysis-a42", "/tmp/.scidex-analysis-a42.MARK" and what is in them. */
static bool is_workspace(const struct own_places *o, const char *path)
{
	size_t n = o->root ? strlen(o->root) : 0;

	if (!n || !path_is_below(path, o->root) || !path[n])
		return false;
	path += n;
	path += strspn(path, "/");
	path += *path == '.';
	return strncmp(path, o->prefix, strlen(o->prefix)) == 0;
}

static bool is_own(const struct own_places *o, const char *path)
{
	size_t n = o->ledger ? strlen(o->ledger) : 0;

	/* The ledger with its -wal, -shm and -journal. */
	if (n && strncmp(path, o->ledger, n) == 0 && (!path[n] || path[n] == '-'))
		return true;
	return (o->state && path_is_below(path, o->state)) ||
	       (o->objects && path_is_below(path, o->objects)) || is_workspace(o, path);
}

/* A worktree's or a submodule's .git is a file. */
static bool is_repository(const char *name)
{
	static const char *const names[] = {".git", ".hg", ".svn"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool has(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *environment_kind(int fd)
{
	return has(fd, "pyvenv.cfg")   ? "a virtual environment"
	       : has(fd, "conda-meta") ? "a conda prefix"
				       : NULL;
}

static bool is_name_or_below(const char *as, const char *name)
{
	size_t n = strlen(name);

	return strncmp(as, name, n) == 0 && (!as[n] || as[n] == '/');
}

/* Under these names the analysis sees data and docs, wherever they lie. */
static bool is_covered(const struct plan *p, const char *as)
{
	return (p->data && is_name_or_below(as, "data")) || (p->docs && is_name_or_below(as, "docs"));
}

/* Why an entry is left out without a word, but in the plan; NULL: it is not. */
static const char *left_out_why(const struct tree *t, const char *name, const char *path, const char *as)
{
	if (is_repository(name))
		return "version control";
	if (is_own(&t->own, path))
		return "fumehood's own";
	if (staging_is_shown(t->staging, path) || is_covered(t->staging->plan, as))
		return "shown, not copied";
	return NULL;
}

static int leave_out(struct tree *t, const char *path, const char *why, struct error *err)
{
	struct plan *p = t->staging->plan;
	_cleanup_free_ char *text = NULL, *shown = text_escape(path, strlen(path));
	int r;

	if (!shown)
		return error_memory(err);
	if (strv_length(p->left_out) >= LEFT_OUT_MAX)
		return 0;
	r = text_print(&text, err, "%s (%s)", shown, why);
	return r < 0 ? r : strv_append(&p->left_out, text, err);
}

/* "'a/pipe' (a FIFO)": for the note, some of them by name. */
static int name_it(struct tree *t, const char *path, const char *why, struct error *err)
{
	const char *below = path + strlen(t->root);

	if (t->n_named++ < NAMED_MAX)
		buffer_printf(&t->named, "%s'%s' (%s)", t->named.size ? ", " : "",
			      SHOWN(160, below + strspn(below, "/")), why);
	return leave_out(t, path, why, err);
}

static void note_named(struct tree *t)
{
	char more[64] = "";

	if (!t->n_named)
		return;
	if (t->n_named > NAMED_MAX)
		snprintf(more, sizeof more, " and %zu more", t->n_named - NAMED_MAX);
	plan_note(
		t->staging->plan,
		"of --input '%s' %s%s %s not copied: only files are, and links to files that are copied too",
		SHOWN(256, t->given), t->named.data ? t->named.data : "?", more,
		t->n_named > 1 ? "are" : "is");
}

/* ---- the walk ---- */

static const char *special_kind(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static int add_file(struct tree *t, const char *path, const char *as, const struct stat *st,
		    struct error *err)
{
	struct staging *s = t->staging;
	uint64_t most = s->plan->limits.value[LIMIT_INPUT_MAX];
	char text[LIMIT_TEXT_SIZE];

	if (__builtin_add_overflow(s->tree_bytes, (uint64_t)st->st_size, &s->tree_bytes) ||
	    s->tree_bytes > most)
		return error_set(
			err, ERROR_REFUSED,
			"--input '%s' holds more than %s, at '%s': name only what is needed, show large directories "
			"with --ro, or allow more with --input-max",
			SHOWN(256, t->given), limit_format(LIMIT_INPUT_MAX, most, text), SHOWN(512, path));
	return staging_add(s, path, as, st, err);
}

static int add_entry(struct tree *t, int dirfd, const char *name, const char *path, const char *as, int depth,
		     struct error *err)
{
	const char *why = left_out_why(t, name, path, as);
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (why)
		return leave_out(t, path, why, err);
	fd = file_open_within(dirfd, name, O_PATH | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) /* gone since it was listed */
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s' of --input '%s'", SHOWN(512, path),
				    SHOWN(256, t->given));
	if (S_ISREG(st.st_mode))
		return add_file(t, path, as, &st, err);
	if (S_ISLNK(st.st_mode))
		return strv_push(&t->links, &t->n_links, path + strlen(t->root) + 1, err);
	if (!S_ISDIR(st.st_mode))
		return name_it(t, path, special_kind(st.st_mode), err);
	why = environment_kind(fd);
	return why ? leave_out(t, path, why, err) : walk(t, fd, path, as, depth + 1, err);
}

static int walk(struct tree *t, int fd, const char *path, const char *as, int depth, struct error *err)
{
	_cleanup_dir_ DIR *dir = NULL;
	const struct dirent *e;
	int r = 0;

	if (depth > TREE_DEPTH_MAX)
		return error_set(
			err, ERROR_REFUSED,
			"--input '%s' is more than %d directories deep, at '%s': name only what is needed, or show it with --ro",
			SHOWN(256, t->given), TREE_DEPTH_MAX, SHOWN(512, path));
	dir = dir_list(fd);
	if (!dir)
		return error_system(
			err, errno,
			"cannot list '%s' of --input '%s' (name only what is needed, or change its mode)",
			SHOWN(512, path), SHOWN(256, t->given));
	while (r == 0 && (errno = 0, e = readdir(dir))) {
		_cleanup_free_ char *below = NULL, *name = NULL;

		if (name_is_dots(e->d_name))
			continue;
		below = path_join(path, e->d_name);
		name = *as ? path_join(as, e->d_name) : strdup(e->d_name);
		r = below && name ? add_entry(t, dirfd(dir), e->d_name, below, name, depth, err)
				  : error_memory(err);
	}
	return r == 0 && errno ? error_system(err, errno, "cannot list '%s'", SHOWN(512, path)) : r;
}

/* A link to a file that is copied is that file under one more name; it may lead there by other links, within the tree. */
static int add_link(struct tree *t, const char *link, struct error *err)
{
	_cleanup_close_ int fd = file_open_within(t->fd, link, O_PATH);
	_cleanup_free_ char *path = path_join(t->root, link), *as = NULL, *target = NULL, *target_as = NULL;
	struct stat st;

	if (!path || !(as = *t->as ? path_join(t->as, link) : strdup(link)))
		return error_memory(err);
	if (fd < 0)
		return name_it(t, path, "a link that leads out of it, or nowhere", err);
	if (fstat(fd, &st) < 0 || !(target = fd_path(fd)))
		return error_system(err, errno, "cannot look at '%s'", SHOWN(512, path));
	if (S_ISDIR(st.st_mode))
		return name_it(t, path, "a link to a directory", err);
	if (!path_is_below(target, t->root) || strcmp(target, t->root) == 0)
		return name_it(t, path, "a link that leads out of it, or nowhere", err);
	target_as = *t->as ? path_join(t->as, target + strlen(t->root) + 1)
			   : strdup(target + strlen(t->root) + 1);
	if (!target_as)
		return error_memory(err);
	if (!S_ISREG(st.st_mode) || !plan_has_stage(t->staging->plan, target, target_as))
		return name_it(t, path, "a link to what is not copied", err);
	return add_file(t, target, as, &st, err);
}

static int check_root(const struct tree *t, struct error *err)
{
	const char *name = strrchr(t->root, '/') + 1, *kind = environment_kind(t->fd);

	if (kind)
		return error_set(
			err, ERROR_REFUSED,
			"--input '%s' is %s, which works only where it lies: activate it before the run, or show it with --ro",
			SHOWN(256, t->given), kind);
	if (is_repository(name))
		return error_set(
			err, ERROR_REFUSED,
			"--input '%s' is a repository's own directory, which is not copied: name what it needs, or show it with --ro",
			SHOWN(256, t->given));
	if (is_own(&t->own, t->root))
		return error_set(err, ERROR_REFUSED,
				 "--input '%s' is refused: '%s' is fumehood's own, not an input",
				 SHOWN(256, t->given), SHOWN(512, t->root));
	return input_check_machine(t->root, "--input", err);
}

int staging_add_tree(struct staging *s, int fd, const char *real, const char *as, const char *given,
		     struct error *err)
{
	struct tree t = {.staging = s, .given = given, .root = real, .as = as, .fd = fd};
	int r = own_places_find(s->hood, &t.own, err);

	if (r == 0)
		r = check_root(&t, err);
	if (r == 0)
		r = walk(&t, fd, real, as, 0, err);
	for (size_t i = 0; r == 0 && i < t.n_links; i++)
		r = add_link(&t, t.links[i], err);
	if (r == 0)
		note_named(&t);
	s->plan->failed |= t.named.failed;
	strv_free(t.links);
	buffer_free(&t.named);
	own_places_done(&t.own);
	return r;
}
