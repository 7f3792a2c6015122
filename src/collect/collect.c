#include "collector.h"
#include "content.h"
#include "file.h"
#include "skip.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void level_done(struct level *l)
{
	fd_close(l->fd);
	listing_done(&l->listing);
	ahead_done(&l->ahead);
}

static void collector_free(struct collector *c)
{
	if (!c)
		return;
	while (c->depth > 0)
		level_done(&c->levels[--c->depth]);
	crew_free(c->crew);
	manifest_done(&c->manifest);
	buffer_free(&c->path);
	free(c->hash_room);
	free(c->matched);
	free(c);
}
DEFINE_CLEANUP(struct collector *, collector_free);

static bool is_ours(const struct collector *c, const char *name)
{
	for (const char *const *p = c->rules->ignore; p && *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

static bool matches_any(char *const *patterns, const char *path)
{
	for (; patterns && *patterns; patterns++)
		if (output_glob_match(*patterns, path))
			return true;
	return false;
}

static bool is_wanted(const struct collector *c)
{
	if (!c->declared)
		return !skip_by_default(c->path.data, false);
	return matches_any(c->rules->outputs, c->path.data) ||
	       matches_any(c->rules->optional_outputs, c->path.data);
}

/* A few names for the message, should a declared output be missing. */
static int note_present(struct collector *c)
{
	if (c->measures || !c->declared || c->n_present >= PRESENT_MAX ||
	    skip_by_default(c->path.data, false) ||
	    (c->rules->inputs && inputs_find(c->rules->inputs, c->path.data)))
		return 0;
	c->n_present++;
	return strv_append(&c->manifest.present, c->path.data, c->err);
}

/* Takes fd over, also on failure. */
static int enter(struct collector *c, int fd)
{
	_cleanup_close_ int owned = fd;
	struct level *l = &c->levels[c->depth];
	int r;

	*l = (struct level){.fd = -1, .path_size = c->path.size};
	r = listing_read(&l->listing, owned, c->listed_left);
	if (r < 0)
		return collector_fail(c, -r);
	c->listed_left -= listing_size(&l->listing);
	l->fd = TAKE_FD(owned);
	c->depth++;
	return l->listing.cut ? collector_reject(c, REJECT_NAMES) : 0;
}

static void leave(struct collector *c)
{
	struct level *l = &c->levels[--c->depth];

	c->listed_left += listing_size(&l->listing);
	level_done(l);
}

static int open_directory(int dirfd, const char *name)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW;
	int fd = file_open_beneath(dirfd, name, O_RDONLY | flags, 0);
	struct stat st;

	if (fd == -EACCES && file_unlock(dirfd, name, flags, 0700) == 0)
		fd = file_open_beneath(dirfd, name, O_RDONLY | flags, 0);
	/* Read, but not search: its entries are looked up as well. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0500) != 0500)
		(void)fchmod(fd, 0700);
	return fd;
}

static int collect_directory(struct collector *c, int dirfd, const char *name)
{
	int fd;

	if (!c->declared && skip_by_default(c->path.data, true))
		return 0;
	if (c->depth == DEPTH_MAX)
		return collector_reject(c, REJECT_DEPTH);
	fd = open_directory(dirfd, name);
	if (fd >= 0)
		return buffer_puts(&c->path, "/") < 0 ? (fd_close(fd), error_memory(c->err)) : enter(c, fd);
	switch (fd) {
	case -EACCES:
	case -EPERM:
		return collector_reject(c, REJECT_UNREADABLE);
	case -ELOOP:
	case -ENOTDIR:
	case -ENOENT:
		return collector_reject(c, REJECT_CHANGED);
	case -EXDEV:
		return collector_reject(c, REJECT_OTHER);
	default:
		return collector_fail(c, -fd);
	}
}

/* The path of an entry, in c->path. */
static int name_entry(struct collector *c, const struct level *l, size_t i)
{
	c->path.size = l->path_size;
	return buffer_puts(&c->path, listing_name(&l->listing, i)) < 0 ? error_memory(c->err) : 0;
}

/* The next files of this directory that we are likely to want, hashed by several hands, if there are enough of them. */
static int look_ahead(struct collector *c, struct level *l, size_t i)
{
	size_t end = l->listing.count - i < AHEAD_COUNT ? l->listing.count : i + AHEAD_COUNT;
	int r;

	if (c->files_left == 0 || ahead_begin(&l->ahead, end) < 0)
		return 0;
	for (size_t k = i; k < end; k++) {
		if (!S_ISREG(l->listing.list[k].type))
			continue;
		if ((r = name_entry(c, l, k)) < 0)
			return r;
		if (c->path.size < PATH_MAX && is_wanted(c))
			ahead_add(&l->ahead, k);
	}
	if (!c->has_crew)
		c->crew = crew_new();
	c->has_crew = true;
	ahead_look(&l->ahead, c->crew, l->fd, &l->listing, c->rules->owner, c->bytes_left);
	return name_entry(c, l, i);
}

static int collect_entry(struct collector *c, struct level *l, size_t i)
{
	const char *name = listing_name(&l->listing, i), *reason;
	mode_t type = l->listing.list[i].type;
	int r = name_entry(c, l, i);

	if (r < 0)
		return r;
	if (c->depth == 1 && is_ours(c, name))
		return 0;
	if (c->path.size >= PATH_MAX)
		return collector_reject(c, REJECT_DEPTH);
	if (S_ISDIR(type))
		return collect_directory(c, l->fd, name);
	if (S_ISREG(type)) {
		r = note_present(c);
		if (r < 0)
			return r;
	}
	if (!is_wanted(c))
		return 0;
	reason = content_type_reason(type);
	if (c->measures) {
		if (!reason)
			candidate_measure(c, l->fd, name);
		return 0;
	}
	if (reason)
		return collector_reject(c, reason);
	if (i >= l->ahead.end && (r = look_ahead(c, l, i)) < 0)
		return r;
	return candidate_collect(c, l, i);
}

static int walk(struct collector *c, int workspace_fd)
{
	int r, top = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The analysis may have locked its own directory; our descriptor can still unlock it. */
	if (top < 0 && errno == EACCES && fchmod(workspace_fd, 0700) == 0)
		top = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return error_system(c->err, errno, "cannot open the workspace to collect from it");
	r = enter(c, top);
	while (r == 0 && c->depth > 0) {
		struct level *l = &c->levels[c->depth - 1];

		if (l->next < l->listing.count)
			r = collect_entry(c, l, l->next++);
		else
			leave(c);
	}
	return r;
}

static int name_missing(struct collector *c)
{
	int r;

	for (size_t i = 0; c->rules->outputs && c->rules->outputs[i]; i++)
		if (!c->matched[i] &&
		    (r = strv_append(&c->manifest.missing, c->rules->outputs[i], c->err)) < 0)
			return r;
	if (!c->manifest.missing) {
		strv_free(c->manifest.present);
		c->manifest.present = NULL;
	}
	return 0;
}

static struct collector *collector_new(const struct collect_rules *rules, struct error *err)
{
	_cleanup_(collector_freep) struct collector *c = calloc(1, sizeof *c);
	size_t n_outputs = strv_length(rules->outputs);

	if (!c)
		return NULL;
	c->rules = rules;
	c->err = err;
	c->bytes_left = rules->max_bytes;
	c->files_left = rules->max_files < COLLECT_OUTPUTS_MAX ? rules->max_files : COLLECT_OUTPUTS_MAX;
	c->names_left = COLLECT_NAMES_MAX;
	c->listed_left = LISTED_MAX;
	c->declared = n_outputs + strv_length(rules->optional_outputs) > 0;
	c->matched = calloc(n_outputs + 1, sizeof *c->matched);
	return c->matched ? TAKE_PTR(c) : NULL;
}

/* Somebody watches: the same walk before, which reads nothing. If it fails, so will the other one, and say why. */
static uint64_t measure(int workspace_fd, const struct collect_rules *rules)
{
	struct error ignored = ERROR_INIT;
	_cleanup_(collector_freep) struct collector *c = collector_new(rules, &ignored);

	if (!c)
		return 0;
	c->measures = true;
	return walk(c, workspace_fd) < 0 ? 0 : c->measured;
}

int collect(int workspace_fd, const struct collect_rules *rules, collect_put_fn put, void *arg,
	    struct manifest *ret, struct error *err)
{
	_cleanup_(collector_freep) struct collector *c = collector_new(rules, err);
	int r;

	if (!c)
		return error_memory(err);
	c->put = put;
	c->arg = arg;
	if (rules->work)
		work_begin(rules->work, "collecting", measure(workspace_fd, rules));
	r = walk(c, workspace_fd);
	if (r == 0)
		r = name_missing(c);
	if (r < 0)
		return r;
	manifest_sort(&c->manifest);
	*ret = c->manifest;
	c->manifest = (struct manifest){0};
	return 0;
}

int collect_open(int workspace_fd, const struct output *o, struct error *err)
{
	const char *reason = NULL;
	char shown[512];
	struct stat st;
	int fd = content_open(workspace_fd, o->path, (uid_t)-1, &st, &reason);

	text_escape_into(shown, sizeof shown, o->path, strlen(o->path));
	if (fd < 0 && reason)
		return error_set(err, ERROR_REFUSED, "output '%s' is not what was collected any more: %s",
				 shown, reason),
		       -1;
	if (fd < 0)
		return error_system(err, -fd, "cannot open output '%s'", shown), -1;
	if ((uint64_t)st.st_size != o->size) {
		fd_close(fd);
		return error_set(err, ERROR_REFUSED,
				 "output '%s' has another size than when it was collected", shown),
		       -1;
	}
	return fd;
}
