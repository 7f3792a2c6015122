/*
 * The commit: one transaction, fenced and idempotent by the attempt's token.
 *
 * The order within it matters. A queued analysis's row in the queue is locked first: if it is no longer this worker's,
 * nothing is committed (queue_settle.c). Then the analysis's row; whoever else commits to the same id waits there, and
 * sees our token once he goes on. Contents are read, verified and written one at a time, in the order of their
 * digests: two commits with contents in common then wait for each other instead of dying of a deadlock.
 */
#include "commit.h"

#include "queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "text.h"

enum { COMMIT_TRIES = 5 };

void commit_done(struct commit *c)
{
	char **texts[] = {&c->request, &c->plan,    &c->receipt, &c->result,
			  &c->usage,   &c->missing, &c->present};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(*texts[i]);
	free(c->contents);
	buffer_free(&c->scratch);
}

static int content_compare(const void *a, const void *b)
{
	const struct content *x = a, *y = b;

	return memcmp(x->output->sha256, y->output->sha256, DIGEST_SIZE);
}

int commit_list(struct commit *c, const struct output *outputs, size_t n, struct error *err)
{
	size_t distinct = 0;

	c->contents = calloc(n + 1, sizeof *c->contents);
	if (!c->contents)
		return error_memory(err);
	for (size_t i = 0; i < n; i++)
		c->contents[i] = (struct content){&outputs[i], outputs[i].is_object};
	qsort(c->contents, n, sizeof *c->contents, content_compare);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || content_compare(&c->contents[i], &c->contents[distinct - 1]) != 0)
			c->contents[distinct++] = c->contents[i];
	c->n_contents = distinct;
	return 0;
}

/* Makes sure that what must be an object is one; from here to the end of the commit no sweep can take it. */
static int secure_object(struct commit *c, struct content *content, struct error *err)
{
	const struct output *o = content->output;
	uint8_t sha256[DIGEST_SIZE];
	_cleanup_close_ int fd = -1;
	int r;

	if (c->l->backend->only_submits)
		return error_set(
			err, ERROR_REFUSED,
			"an input of a submitter is 16 MiB at most: put a larger one where workers can read it, "
			"and name it with --ro");
	r = objects_hold(&c->l->objects, err);
	content->is_object = true;
	if (r == 0)
		r = objects_has(&c->l->objects, o->sha256, o->size, err);
	if (r != 0)
		return r < 0 ? r : 0;
	fd = commit_content_open(c, o, err);
	if (fd < 0)
		return -EIO;
	r = objects_put(&c->l->objects, fd, o->size, sha256, err);
	if (r < 0)
		return r;
	return memcmp(sha256, o->sha256, DIGEST_SIZE) == 0 ? 0 : content_changed(c, o, err);
}

/* A finished attempt that an older version left may have its objects in a directory, and nowhere else any more. */
static int chunk_source_open(void *arg, void *content, struct error *err)
{
	const struct content *k = content;
	struct commit *c = arg;
	int fd = k->output->is_object ? objects_find(&c->l->objects, k->output->sha256, err) : -ENOENT;

	return fd == -ENOENT ? commit_content_open(c, k->output, err) : fd;
}

static int chunk_source_changed(void *arg, void *content, struct error *err)
{
	return content_changed(arg, ((struct content *)content)->output, err);
}

/* A limit is written as it is given, where a bare number is one of bytes; a sentence says so. */
static const char *size_in_words(uint64_t size, char out[LIMIT_TEXT_SIZE])
{
	size_t n = strlen(limit_format(LIMIT_OUTPUT_MAX, size, out));

	if (out[n - 1] >= '0' && out[n - 1] <= '9')
		snprintf(out + n, LIMIT_TEXT_SIZE - n, " bytes");
	return out;
}

static int too_large(const struct commit *c, const struct output *o, struct error *err)
{
	char path[256], size[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];

	text_escape_into(path, sizeof path, o->path, strlen(o->path));
	size_in_words(o->size, size);
	size_in_words(c->l->objects_max, most);
	return error_set(
		err, ERROR_REFUSED,
		"cannot store '%s' of %s: the ledger %s takes contents up to %s (objects_max=SIZE in its URL); "
		"let it take more, or put %s where every host can read it%s",
		path, size, c->l->backend->name, most, c->a ? "its objects" : "it",
		c->a ? " (objects=DIR)" : " and name it with --ro");
}

/* Which contents are to be in the database's own object store: all large ones, but for those that a larger blob_max has
 * let into their row before. */
static int choose_chunks(struct commit *c, struct error *err)
{
	_cleanup_free_ enum blob_state *states = NULL;
	int r = commit_blob_states(c, &states, err);

	for (size_t i = 0; i < c->n_contents && r == 0; i++) {
		struct content *k = &c->contents[i];

		k->in_chunks =
			(k->is_object || k->output->size > c->l->blob_max) && states[i] != BLOB_IN_DATABASE;
		k->is_object = k->in_chunks;
		if (k->in_chunks && k->output->size > c->l->objects_max)
			r = too_large(c, k->output, err);
	}
	return r;
}

struct chunks_content *commit_chunks(struct commit *c, size_t *ret_n)
{
	struct chunks_content *list = calloc(c->n_contents + 1, sizeof *list);
	size_t n = 0;

	for (size_t i = 0; list && i < c->n_contents; i++) {
		struct content *k = &c->contents[i];

		if (k->in_chunks)
			list[n++] = (struct chunks_content){
				.sha256 = k->output->sha256, .size = k->output->size, .content = k};
	}
	*ret_n = n;
	return list;
}

static int secure_chunks(struct commit *c, struct error *err)
{
	const struct chunks_source source = {c, chunk_source_open, chunk_source_changed};
	_cleanup_free_ struct chunks_content *list = NULL;
	size_t n = 0;
	int r = c->n_contents ? choose_chunks(c, err) : 0;

	if (r < 0)
		return r;
	list = commit_chunks(c, &n);
	return list ? chunks_put(c->l, list, n, &source, err) : error_memory(err);
}

int commit_secure(struct commit *c, struct error *err)
{
	int r = 0;

	if (c->l->objects_inside && !c->l->backend->only_submits)
		return secure_chunks(c, err);
	for (size_t i = 0; i < c->n_contents && r == 0; i++)
		if (c->contents[i].is_object || c->contents[i].output->size > c->l->blob_max)
			r = secure_object(c, &c->contents[i], err);
	return r;
}

/* Takes the reference. NULL is a lack of memory. */
static int dump(json_t *json, char **ret, struct error *err)
{
	if (json)
		*ret = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(json);
	return *ret ? 0 : error_memory(err);
}

static json_t *paths_to_json(char *const *paths)
{
	json_t *array = json_array();

	for (; array && paths && *paths; paths++) {
		json_t *object = json_object();

		if (json_set_path(object, *paths) < 0 || json_array_append(array, object) < 0) {
			json_decref(array);
			array = NULL;
		}
		json_decref(object);
	}
	return array;
}

static int dump_texts(struct commit *c, struct error *err)
{
	const struct attempt *a = c->a;
	int r = a->request ? dump(json_incref(a->request), &c->request, err) : 0;

	if (r == 0 && a->plan)
		r = dump(json_incref(a->plan), &c->plan, err);
	if (r == 0 && a->result)
		r = dump(json_incref(a->result), &c->result, err);
	if (r == 0)
		r = dump(receipt_to_json(&a->receipt), &c->receipt, err);
	if (r == 0)
		r = dump(usage_to_json(&a->usage), &c->usage, err);
	if (r == 0 && a->manifest.missing)
		r = dump(paths_to_json(a->manifest.missing), &c->missing, err);
	if (r == 0 && a->manifest.present)
		r = dump(paths_to_json(a->manifest.present), &c->present, err);
	return r;
}

static int take_integer(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(int *)arg = (int)value_to_integer(row, 0);
	return 0;
}

/* The number that was expected, unless another run of the same id has taken it. */
static int choose_number(struct commit *c, struct error *err)
{
	struct value key[] = {value_text(c->a->id), value_integer(c->a->number)};
	int taken = 0, r = 0;

	if (c->a->number > 0)
		r = ledger_run(c->l, SQL_NUMBER_TAKEN, key, 2, take_integer, &taken, err);
	c->number = c->a->number;
	if (r == 0 && (taken || c->a->number <= 0))
		r = ledger_run(c->l, SQL_NUMBER_NEXT, key, 1, take_integer, &c->number, err);
	return r;
}

/* 1 if the token was there already. */
static int transaction(struct commit *c, struct error *err)
{
	struct value analysis[] = {value_text(c->a->id),
				   value_time(c->a->created ? c->a->created : clock_utc())};
	struct queue_row queued = {0};
	int r = c->a->queued ? queue_lock(c->l, c->a->id, &queued, err) : 0;

	if (r == 0)
		r = ledger_run(c->l, SQL_ANALYSIS_LOCK, analysis, 2, NULL, NULL, err);
	if (r == 0)
		r = ledger_has_token(c->l, c->a->token, &c->number, err);
	if (r == 1 && c->a->queued) {
		int lost = queue_committed(c->l, c->a, err);

		return lost < 0 ? lost : 1;
	}
	if (r == 0)
		r = choose_number(c, err);
	if (r == 0 && c->a->queued)
		r = queue_settle(c->l, &queued, c->a, c->number, err);
	if (r == 0)
		r = commit_rows(c, err);
	return r == 0 ? commit_posts(c, err) : r;
}

static int commit_once(struct commit *c, struct error *err)
{
	struct backend *b = c->l->backend;
	int r = ledger_begin(c->l, err);

	if (r < 0)
		return r;
	r = transaction(c, err);
	if (r == 0)
		r = b->ops->commit(b, err);
	if (r != 0)
		b->ops->rollback(b);
	return r < 0 ? r : 0;
}

/* A commit that took so long that its contents were swept meanwhile puts them again. */
static int secure_and_commit(struct commit *c, struct error *err)
{
	int rounds = COMMIT_TRIES, r;

	do {
		int tries = COMMIT_TRIES;

		r = commit_secure(c, err);
		if (r == 0)
			r = commit_stage(c, err);
		if (r < 0)
			return r;
		do
			r = commit_once(c, err);
		while (r == -EAGAIN && --tries > 0);
	} while (r == -ESTALE && --rounds > 0);
	return r;
}

int commit_within(struct ledger *l, const struct attempt *a, int *ret_number, struct error *err)
{
	_cleanup_(commit_done) struct commit c = {.l = l, .a = a};
	int r = dump_texts(&c, err);

	if (r == 0)
		r = transaction(&c, err);
	*ret_number = c.number;
	return r < 0 ? r : 0;
}

int ledger_commit(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg, int *ret_number,
		  struct error *err)
{
	return ledger_commit_rows(l, a, open, arg, NULL, ret_number, err);
}

int ledger_commit_rows(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg,
		       const struct row_source *rows, int *ret_number, struct error *err)
{
	_cleanup_(commit_done) struct commit c = {.l = l, .a = a, .open = open, .arg = arg, .rows = rows};
	int r = commit_list(&c, a->manifest.outputs, a->manifest.n_outputs, err);

	if (r == 0)
		r = dump_texts(&c, err);
	if (r == 0) {
		r = secure_and_commit(&c, err);
		/* The quick way does not always tell which row it was: once more, for the message. */
		if (r == -EBADMSG && l->backend->failed_row == 0) {
			c.staged = true;
			r = commit_once(&c, err);
		}
	}
	/* A commit that failed keeps its hold: the caller may try again, and closes the ledger in the end. */
	if (r < 0)
		return r;
	objects_unpin(&l->objects, a->token);
	objects_release(&l->objects);
	*ret_number = c.number;
	return 0;
}
