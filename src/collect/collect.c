#include "collect.h"
#include "content.h"
#include "file.h"
#include "listing.h"
#include "skip.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 256, /* levels, each with a descriptor */
	REJECTED_MAX = 1000,
	PRESENT_MAX = 20,
	HASH_SIZE = 1024 * 1024,
	LISTED_MAX = 64 * 1024 * 1024, /* bytes of all listings that are open */
};

struct level {
	int fd;
	struct listing listing;
	size_t next;
	size_t path_size; /* of the path up to here, its slash included */
};

struct collector {
	const struct collect_rules *rules;
	collect_put_fn put;
	void *arg;
	struct manifest manifest;
	char *hash_room;
	bool declared; /* any patterns at all */
	bool *matched; /* by rules->outputs */
	size_t n_present;
	uint64_t bytes_left, files_left, names_left;
	size_t listed_left; /* bytes */
	struct level levels[DEPTH_MAX];
	size_t depth;
	struct buffer path; /* of the entry in hand */
	bool measures;	    /* only adds up what there is to read */
	uint64_t measured;
	struct error *err;
};

static void collector_free(struct collector *c)
{
	if (!c)
		return;
	while (c->depth > 0) {
		fd_close(c->levels[--c->depth].fd);
		listing_done(&c->levels[c->depth].listing);
	}
	manifest_done(&c->manifest);
	buffer_free(&c->path);
	free(c->hash_room);
	free(c->matched);
	free(c);
}
DEFINE_CLEANUP(struct collector *, collector_free);

static int fail(struct collector *c, int errnum)
{
	char shown[512];

	text_escape_into(shown, sizeof shown, c->path.data ? c->path.data : "", c->path.size);
	return error_system(c->err, errnum, "cannot collect '%s'", shown);
}

static int reject(struct collector *c, const char *reason)
{
	if (c->measures)
		return 0;
	if (c->manifest.n_rejected >= REJECTED_MAX) {
		c->manifest.n_rejected_more++;
		return 0;
	}
	return manifest_reject(&c->manifest, c->path.data, reason, c->err);
}

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

static int hash(struct collector *c, int fd, const struct stat *st, uint8_t ret[DIGEST_SIZE])
{
	int r;

	if (!c->hash_room && !(c->hash_room = malloc(HASH_SIZE)))
		return error_memory(c->err);
	r = content_hash(fd, st, c->hash_room, HASH_SIZE, c->rules->work, ret);
	return r < 0 ? fail(c, -r) : r;
}

/* One that is no output as long as it is as it was: what another analysis made never is, the rest unless it was declared. */
static const struct input *staged_input(const struct collector *c)
{
	const struct input *in = c->rules->flows ? inputs_find(c->rules->flows, c->path.data) : NULL;

	if (in && in->from_analysis)
		return in;
	return c->rules->inputs && !c->declared ? inputs_find(c->rules->inputs, c->path.data) : NULL;
}

/* 1: it was staged and is as it was. */
static int is_untouched_input(struct collector *c, int fd, const struct stat *st)
{
	const struct input *in = staged_input(c);
	uint8_t sha256[DIGEST_SIZE];
	int r;

	if (!in || in->size != (uint64_t)st->st_size)
		return 0;
	r = hash(c, fd, st, sha256);
	if (r != 0)
		return r < 0 ? r : 0;
	return memcmp(sha256, in->sha256, DIGEST_SIZE) == 0;
}

/* What does not fit, found before a byte of it is read: a sparse file may claim any size. */
static const char *over_limit(const struct collector *c, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, name = c->path.size;

	if (c->files_left == 0)
		return REJECT_FILES;
	if (name >= c->names_left)
		return REJECT_NAMES;
	if (size > c->rules->content_max)
		return REJECT_LARGE;
	if (name <= c->bytes_left && size <= c->bytes_left - name)
		return NULL;
	return name + (uint64_t)st->st_blocks * 512 <= c->bytes_left ? REJECT_SPARSE : REJECT_BYTES;
}

/* Content to the object store or only to the digest. 1: it changed meanwhile. */
static int take_content(struct collector *c, int fd, const struct stat *st, struct output *o)
{
	int r;

	if (!c->put || o->size <= c->rules->object_min)
		return hash(c, fd, st, o->sha256);
	r = c->put(c->arg, fd, o->size, o->sha256, c->err);
	if (r < 0)
		return r;
	o->is_object = true;
	r = content_compare(fd, st);
	return r < 0 ? fail(c, -r) : r;
}

static int accept_output(struct collector *c, const struct output *o)
{
	int r = manifest_add(&c->manifest, o, c->err);

	if (r < 0)
		return r;
	c->files_left--;
	c->bytes_left -= o->size + c->path.size;
	c->names_left -= c->path.size + 1;
	for (size_t i = 0; c->rules->outputs && c->rules->outputs[i]; i++)
		c->matched[i] = c->matched[i] || output_glob_match(c->rules->outputs[i], o->path);
	return 0;
}

static int collect_file(struct collector *c, int dirfd, const char *name)
{
	_cleanup_close_ int fd = -1;
	const char *reason = NULL;
	struct output o = {0};
	struct stat st;
	int r;

	fd = content_open(dirfd, name, c->rules->owner, &st, &reason);
	if (fd < 0)
		return reason ? reject(c, reason) : fail(c, -fd);
	r = is_untouched_input(c, fd, &st);
	if (r != 0)
		return r < 0 ? r : 0;
	reason = over_limit(c, &st);
	if (reason)
		return reject(c, reason);
	o.path = c->path.data;
	o.size = (uint64_t)st.st_size;
	o.media_type = media_type_of(o.path);
	r = take_content(c, fd, &st, &o);
	if (r == 1)
		return reject(c, REJECT_CHANGED);
	return r < 0 ? r : accept_output(c, &o);
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
		return fail(c, -r);
	c->listed_left -= listing_size(&l->listing);
	l->fd = TAKE_FD(owned);
	c->depth++;
	return l->listing.cut ? reject(c, REJECT_NAMES) : 0;
}

static void leave(struct collector *c)
{
	struct level *l = &c->levels[--c->depth];

	c->listed_left += listing_size(&l->listing);
	listing_done(&l->listing);
	fd_close(l->fd);
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
		return reject(c, REJECT_DEPTH);
	fd = open_directory(dirfd, name);
	if (fd >= 0)
		return buffer_puts(&c->path, "/") < 0 ? (fd_close(fd), error_memory(c->err)) : enter(c, fd);
	switch (fd) {
	case -EACCES:
	case -EPERM:
		return reject(c, REJECT_UNREADABLE);
	case -ELOOP:
	case -ENOTDIR:
	case -ENOENT:
		return reject(c, REJECT_CHANGED);
	case -EXDEV:
		return reject(c, REJECT_OTHER);
	default:
		return fail(c, -fd);
	}
}

/* As over_limit() will have it: what is not read does not count. */
static int measure_file(struct collector *c, int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 || st.st_nlink != 1 ||
	    over_limit(c, &st))
		return 0;
	c->measured += (uint64_t)st.st_size;
	c->files_left--;
	c->bytes_left -= (uint64_t)st.st_size + c->path.size;
	c->names_left -= c->path.size + 1;
	return 0;
}

static int collect_entry(struct collector *c, struct level *l, size_t i)
{
	const char *name = listing_name(&l->listing, i), *reason;
	mode_t type = l->listing.list[i].type;
	int r;

	c->path.size = l->path_size;
	if (buffer_puts(&c->path, name) < 0)
		return error_memory(c->err);
	if (c->depth == 1 && is_ours(c, name))
		return 0;
	if (c->path.size >= PATH_MAX)
		return reject(c, REJECT_DEPTH);
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
	if (c->measures)
		return reason ? 0 : measure_file(c, l->fd, name);
	return reason ? reject(c, reason) : collect_file(c, l->fd, name);
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
