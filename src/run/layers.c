#include "layers.h"
#include "ability.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 4 * 1024 * 1024, COPIES_MAX = 16 * 1024 * 1024 };

/* What is shown at the moment: who reads it decides what of it may be copied. */
struct showing {
	struct layers *layers;
	struct reader reader;
};

int layers_init(struct layers *l, struct plan *plan, struct error *err)
{
	/* In a user namespace that does not own the mounts around it, the kernel keeps them as they are. */
	*l = (struct layers){.plan = plan, .locked = plan->use_userns_first};
	return mountinfo_load(&l->mounts, err);
}

void layers_done(struct layers *l)
{
	mountinfo_done(&l->mounts);
}

static const struct mount_point *first_below(const struct layers *l, const char *path)
{
	size_t at = 0;

	return mountinfo_below(&l->mounts, path, &at);
}

static struct mount *add(const struct showing *v, enum mount_kind kind, const char *source,
			 const char *target)
{
	return plan_add_mount(v->layers->plan, kind, source, target);
}

/* 0, as the others. */
static int add_overlay(const struct showing *v, const char *source, const char *target, const struct stat *st)
{
	struct mount *m = add(v, MOUNT_OVERLAY, source, target);

	m->reader = v->reader;
	m->device = st->st_dev;
	m->inode = st->st_ino;
	return 0;
}

/* As its owner, or a given user, is the analysis inside, or as everybody. */
static bool may_read(const struct showing *v, const struct stat *st)
{
	if (st->st_mode & S_IROTH || v->reader.kind == READER_ANYBODY)
		return st->st_mode & S_IROTH;
	return v->layers->plan->use_userns_first || (st->st_uid == v->reader.uid && st->st_mode & S_IRUSR) ||
	       (st->st_gid == v->reader.gid && st->st_mode & S_IRGRP);
}

static int refuse_copy(const struct showing *v, const char *source, const struct mount_point *beside,
		       struct error *err)
{
	char shown[512], point[512];

	text_escape_into(shown, sizeof shown, source, strlen(source));
	if (!beside)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' is a mount by itself: no overlay can be laid over a single file, and it is too "
			"large to be copied; show the directory that it comes from instead",
			shown);
	text_escape_into(point, sizeof point, beside->path, strlen(beside->path));
	return error_set(
		err, ERROR_REFUSED,
		"'%s' lies beside what is mounted at '%s': there no overlay can be laid over it for an ordinary "
		"user, and it is too large to be copied; %s, or run as root",
		shown, point,
		v->reader.kind == READER_ANYBODY ? "unmount that" : "move it into a directory of its own");
}

/* An overlay leaves the time of access alone; so does a copy, of what is ours. */
static int open_unseen(const char *path)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
	    fd = file_open_nolinks(AT_FDCWD, path, flags | O_NOATIME);

	return fd == -EPERM ? file_open_nolinks(AT_FDCWD, path, flags) : fd;
}

/* The content, empty and closed to everybody if the analysis may not read it. */
static int add_copy(const struct showing *v, const char *source, const char *target,
		    const struct mount_point *beside, struct error *err)
{
	_cleanup_close_ int fd = open_unseen(source);
	_cleanup_buffer_ struct buffer content = {0};
	struct mount *m;
	struct stat st = {0};
	bool readable, large = false;
	int r = 0;

	if (fd < 0 && fd != -EACCES && fd != -ENXIO)
		return error_system(err, -fd, "cannot open '%s'", source);
	if (fd >= 0 && fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", source);
	readable = fd >= 0 && S_ISREG(st.st_mode) && may_read(v, &st);
	if (readable && !(large = st.st_size > FILE_MAX))
		r = file_read_all(fd, &content, FILE_MAX);
	if (large || r == -EFBIG || v->layers->copied + content.size > COPIES_MAX)
		return refuse_copy(v, source, beside, err);
	if (r < 0)
		return error_system(err, -r, "cannot read '%s'", source);
	m = add(v, MOUNT_FILE, NULL, target);
	v->layers->copied += content.size;
	m->device = st.st_dev;
	m->inode = st.st_ino;
	m->mode = readable ? 0444 | (st.st_mode & 0111) : 0;
	m->content_size = content.size;
	m->content = TAKE_PTR(content.data);
	return 0;
}

static int add_link(const struct showing *v, const char *source, const char *target, struct error *err)
{
	char text[PATH_MAX];
	ssize_t n = readlink(source, text, sizeof text - 1);

	if (n < 0)
		return error_system(err, errno, "cannot read the link '%s'", source);
	text[n] = 0;
	add(v, MOUNT_LINK, text, target);
	return 0;
}

static int add_parts(const struct showing *v, const char *source, const char *target, const struct stat *st,
		     enum mount_kind kind, struct error *err);

/* One entry of a directory that has a mount somewhere below it. */
static int add_part(const struct showing *v, const char *source, const char *target,
		    const struct mount_point *beside, struct error *err)
{
	struct stat st;

	if (lstat(source, &st) < 0)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : error_system(err, errno, "cannot look at '%s'", source);
	if (S_ISDIR(st.st_mode))
		return first_below(v->layers, source) ? add_parts(v, source, target, &st, MOUNT_DIR, err)
						      : add_overlay(v, source, target, &st);
	if (S_ISLNK(st.st_mode))
		return add_link(v, source, target, err);
	/* Devices, sockets and FIFOs lead nowhere in an overlay either. */
	return S_ISREG(st.st_mode) ? add_copy(v, source, target, beside, err) : 0;
}

static int each_part(const struct showing *v, const char *source, const char *target, struct dirent **entries,
		     int n, struct error *err)
{
	const struct mount_point *beside = first_below(v->layers, source);
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++) {
		const char *name = entries[i]->d_name;
		_cleanup_free_ char *from = path_join(source, name), *to = path_join(target, name);

		if (name_is_dots(name))
			continue;
		r = from && to ? add_part(v, from, to, beside, err) : error_memory(err);
	}
	return r;
}

/* The directory itself is one of a small file system (the outermost), or of its parent's. */
static int add_parts(const struct showing *v, const char *source, const char *target, const struct stat *st,
		     enum mount_kind kind, struct error *err)
{
	struct mount *m = add(v, kind, NULL, target);
	struct dirent **entries = NULL;
	int r, n;

	m->mode = st->st_mode & 0755;
	n = scandir(source, &entries, NULL, alphasort);
	if (n < 0 && errno == EACCES) { /* what we cannot list, the analysis cannot either */
		m->mode = 0;
		return 0;
	}
	if (n < 0)
		return error_system(err, errno, "cannot list '%s'", source);
	r = each_part(v, source, target, entries, n, err);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return r;
}

/* One overlay over everything, then one over each mount below, which the first does not show. */
static int add_whole(const struct showing *v, const char *source, const char *target, const struct stat *st,
		     struct error *err)
{
	size_t at = 0, n = strlen(source);
	const struct mount_point *p;
	int r = add_overlay(v, source, target, st);

	while (r == 0 && (p = mountinfo_below(&v->layers->mounts, source, &at))) {
		_cleanup_free_ char *inside = path_join(target, p->path + n + (source[n - 1] != '/'));
		struct stat below;

		if (lstat(p->path, &below) < 0)
			return error_system(err, errno, "cannot look at '%s'", p->path);
		r = S_ISDIR(below.st_mode) ? add_overlay(v, p->path, inside, &below)
					   : add_copy(v, p->path, inside, NULL, err);
	}
	return r;
}

/* Through its directory, of which nothing else is shown; unless that one has mounts, or is not where the file is from. */
static int add_file(const struct showing *v, const char *source, const char *target, const struct stat *st,
		    struct error *err)
{
	_cleanup_free_ char *directory = strdup(source);
	const struct mount_point *beside;

	if (!directory)
		return error_memory(err);
	*strrchr(directory, '/') = 0;
	if (mountinfo_is_point(&v->layers->mounts, source))
		return add_copy(v, source, target, NULL, err);
	beside = v->layers->locked ? first_below(v->layers, *directory ? directory : "/") : NULL;
	return beside ? add_copy(v, source, target, beside, err) : add_overlay(v, source, target, st);
}

/* May the analysis's own uid, as root, come as far as that? */
static bool is_for_everybody(const char *path, mode_t mode)
{
	_cleanup_free_ char *at = strdup(path);
	struct stat st;
	char *slash;

	if (!(mode & S_IROTH) || (S_ISDIR(mode) && !(mode & S_IXOTH)))
		return false;
	while (at && (slash = strrchr(at, '/')) && slash > at) {
		*slash = 0;
		if (stat(at, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return at;
}

/* Without namespaces: a rule of Landlock's, at the place where it is, for who we are there. */
static int show_bare(const struct layers *l, const char *source, const char *target, const struct stat *st,
		     struct error *err)
{
	struct mount *m;

	if (strcmp(source, target) != 0)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' cannot appear as '%s' with --strength landlock: without a mount namespace everything is "
			"where it is; leave out ':%s', or use --strength full",
			source, target, target);
	if (ability_is_root() && !is_for_everybody(source, st->st_mode))
		plan_note(
			l->plan,
			"'%s' is shown only as far as everybody may read it: with --strength landlock the analysis "
			"is a user of its own",
			source);
	m = plan_add_mount(l->plan, MOUNT_BIND, source, target);
	m->device = st->st_dev;
	m->inode = st->st_ino;
	return 0;
}

int layers_show(struct layers *l, const char *source, const char *target, const struct reader *reader,
		struct error *err)
{
	struct showing v = {.layers = l, .reader = *reader};
	struct stat st;

	if (lstat(source, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", source);
	if (reader->kind == READER_OWNER) {
		v.reader.uid = st.st_uid;
		v.reader.gid = st.st_gid;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return error_set(err, ERROR_REFUSED, "'%s' is neither a directory nor a regular file",
				 source);
	if (l->plan->strength == STRENGTH_LANDLOCK)
		return show_bare(l, source, target, &st, err);
	if (S_ISREG(st.st_mode))
		return add_file(&v, source, target, &st, err);
	if (!first_below(l, source))
		return add_overlay(&v, source, target, &st);
	return l->locked ? add_parts(&v, source, target, &st, MOUNT_TMPFS, err)
			 : add_whole(&v, source, target, &st, err);
}

bool layers_can_share(const struct layers *l, const char *layer, const char *path)
{
	char at[PATH_MAX];
	size_t n = strlen(layer);

	if (l->plan->strength == STRENGTH_LANDLOCK || (l->locked && first_below(l, layer)) ||
	    first_below(l, path) || strlen(path) >= sizeof at)
		return false;
	for (n++; path[n]; n++) {
		n += strcspn(path + n, "/");
		memcpy(at, path, n);
		at[n] = 0;
		if (mountinfo_is_point(&l->mounts, at))
			return false;
		if (!path[n])
			break;
	}
	return true;
}

struct mount *layers_share(struct layers *l, const char *layer, const char *path)
{
	struct mount *m = plan_add_mount(l->plan, MOUNT_OVERLAY, path, path);

	m->layer = layer;
	m->reader.kind = READER_ANYBODY;
	return m;
}
