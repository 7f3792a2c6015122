#include "collector.h"
#include "content.h"
#include "text.h"

#include <fcntl.h>
#include <string.h>

int collector_fail(struct collector *c, int errnum)
{
	char shown[512];

	text_escape_into(shown, sizeof shown, c->path.data ? c->path.data : "", c->path.size);
	return error_system(c->err, errnum, "cannot collect '%s'", shown);
}

int collector_reject(struct collector *c, const char *reason)
{
	if (c->measures)
		return 0;
	if (c->manifest.n_rejected >= REJECTED_MAX) {
		c->manifest.n_rejected_more++;
		return 0;
	}
	return manifest_reject(&c->manifest, c->path.data, reason, c->err);
}

/* The file in hand. */
struct candidate {
	int fd; /* -1: hashed ahead, and closed again */
	struct stat st;
	bool hashed;
	uint8_t sha256[DIGEST_SIZE];
};

static void candidate_done(struct candidate *f)
{
	f->fd = fd_close(f->fd);
}

/* Once, whoever asks. 1: it changed meanwhile. */
static int hash(struct collector *c, struct candidate *f)
{
	int r;

	if (f->hashed)
		return 0;
	if (!c->hash_room && !(c->hash_room = malloc(HASH_SIZE)))
		return error_memory(c->err);
	r = content_hash(f->fd, &f->st, c->hash_room, HASH_SIZE, c->rules->work, f->sha256);
	f->hashed = r == 0;
	return r < 0 ? collector_fail(c, -r) : r;
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
static int is_untouched_input(struct collector *c, struct candidate *f)
{
	const struct input *in = staged_input(c);
	int r;

	if (!in || in->size != (uint64_t)f->st.st_size)
		return 0;
	r = hash(c, f);
	if (r != 0)
		return r < 0 ? r : 0;
	return memcmp(f->sha256, in->sha256, DIGEST_SIZE) == 0;
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

static bool is_for_store(const struct collector *c, uint64_t size)
{
	return c->put && size > c->rules->object_min;
}

/* Content to the object store or only to the digest. 1: it changed meanwhile. */
static int take_content(struct collector *c, struct candidate *f, struct output *o)
{
	int r;

	if (!is_for_store(c, o->size)) {
		r = hash(c, f);
		memcpy(o->sha256, f->sha256, DIGEST_SIZE);
		return r;
	}
	r = c->put(c->arg, f->fd, o->size, o->sha256, c->err);
	if (r < 0)
		return r;
	o->is_object = true;
	r = content_compare(f->fd, &f->st);
	return r < 0 ? collector_fail(c, -r) : r;
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

/* 1, or 0 if it was rejected. */
static int candidate_open(struct collector *c, struct level *l, size_t i, struct candidate *f)
{
	const struct glance *g = ahead_find(&l->ahead, i);
	const char *reason = NULL;
	int r;

	if (g && !is_for_store(c, (uint64_t)g->size)) {
		f->st = (struct stat){.st_size = g->size, .st_blocks = g->blocks};
		f->hashed = true;
		memcpy(f->sha256, g->sha256, DIGEST_SIZE);
		work_add(c->rules->work, (uint64_t)g->size);
		return 1;
	}
	f->fd = content_open(l->fd, listing_name(&l->listing, i), c->rules->owner, &f->st, &reason);
	if (f->fd >= 0)
		return 1;
	r = f->fd;
	f->fd = -1;
	return reason ? collector_reject(c, reason) : collector_fail(c, -r);
}

int candidate_collect(struct collector *c, struct level *l, size_t i)
{
	_cleanup_(candidate_done) struct candidate f = {.fd = -1};
	const char *reason;
	struct output o = {0};
	int r;

	if ((r = candidate_open(c, l, i, &f)) <= 0)
		return r;
	r = is_untouched_input(c, &f);
	if (r != 0)
		return r < 0 ? r : 0;
	reason = over_limit(c, &f.st);
	if (reason)
		return collector_reject(c, reason);
	o.path = c->path.data;
	o.size = (uint64_t)f.st.st_size;
	o.media_type = media_type_of(o.path);
	r = take_content(c, &f, &o);
	if (r == 1)
		return collector_reject(c, REJECT_CHANGED);
	return r < 0 ? r : accept_output(c, &o);
}

/* As over_limit() will have it: what is not read does not count. */
void candidate_measure(struct collector *c, int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 || st.st_nlink != 1 ||
	    over_limit(c, &st))
		return;
	c->measured += (uint64_t)st.st_size;
	c->files_left--;
	c->bytes_left -= (uint64_t)st.st_size + c->path.size;
	c->names_left -= c->path.size + 1;
}
