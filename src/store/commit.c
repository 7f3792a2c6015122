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

#include <stdio.h>
#include <string.h>

#include "array.h"
#include "limit.h"
#include "text.h"

/* What may be written together with others. */
enum { BRIEF_ROWS = 200, BRIEF_BYTES = 1 << 20 };

void commit_done(struct commit *c)
{
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
	c->contents = calloc(n + 1, sizeof *c->contents);
	if (!c->contents)
		return error_memory(err);
	for (size_t i = 0; i < n; i++)
		c->contents[i] = (struct content){&outputs[i], outputs[i].is_object};
	c->n_contents = array_sort_distinct(c->contents, n, sizeof *c->contents, content_compare);
	return 0;
}

/* Makes sure that what must be an object is one; from here to the end of the commit no sweep can take it. */
static int secure_object(struct commit *c, struct content *content, struct error *err)
{
	const struct output *o = content->output;
	uint8_t sha256[DIGEST_SIZE];
	_cleanup_close_ int fd = -1;
	int has;

	if (c->l->backend->only_submits)
		return error_set(
			err, ERROR_REFUSED,
			"an input of a submitter is 16 MiB at most: put a larger one where workers can read it, "
			"and name it with --ro");
	content->is_object = true;
	if (objects_hold(&c->l->objects, err) < 0)
		return -1;
	has = objects_has(&c->l->objects, o->sha256, o->size, err);
	if (has != 0)
		return has < 0 ? has : 0;
	fd = commit_content_open(c, o, err);
	if (fd < 0 || objects_put(&c->l->objects, fd, o->size, sha256, err) < 0)
		return -1;
	return memcmp(sha256, o->sha256, DIGEST_SIZE) == 0 ? 0 : content_changed(c, o, err);
}

static int chunk_source_open(void *arg, void *content, struct error *err)
{
	return commit_content_open(arg, ((struct content *)content)->output, err);
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

	if (commit_blob_states(c, &states, err) < 0)
		return -1;
	for (size_t i = 0; i < c->n_contents; i++) {
		struct content *k = &c->contents[i];

		k->in_chunks =
			(k->is_object || k->output->size > c->l->blob_max) && states[i] != BLOB_IN_DATABASE;
		k->is_object = k->in_chunks;
		if (k->in_chunks && k->output->size > c->l->objects_max)
			return too_large(c, k->output, err);
	}
	return 0;
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

	if (c->n_contents && choose_chunks(c, err) < 0)
		return -1;
	list = commit_chunks(c, &n);
	return list ? chunks_put(c->l, list, n, &source, err) : error_memory(err);
}

static int secure(struct commit *c, struct error *err)
{
	if (c->l->objects_inside && !c->l->backend->only_submits)
		return secure_chunks(c, err);
	for (size_t i = 0; i < c->n_contents; i++)
		if ((c->contents[i].is_object || c->contents[i].output->size > c->l->blob_max) &&
		    secure_object(c, &c->contents[i], err) < 0)
			return -1;
	return 0;
}

/* One that took so long that its contents were swept meanwhile puts them again. */
int commit_secured(struct commit *c, ledger_body body, void *arg, struct error *err)
{
	int rounds = COMMIT_ROUNDS, r;

	do {
		if (secure(c, err) < 0 || commit_stage(c, err) < 0)
			return -1;
		r = (c->is_brief ? ledger_transaction_joint : ledger_transaction)(c->l, body, arg, err);
	} while (r < 0 && err->kind == ERROR_SWEPT && --rounds > 0);
	return r;
}

/* The number that was expected, unless another run of the same id has taken it. */
static int choose_number(struct commit *c, struct error *err)
{
	int64_t taken = c->a->number <= 0, number = c->a->number;

	if (!taken &&
	    ledger_ask(c->l, SQL_NUMBER_TAKEN, &taken, err, value_text(c->a->id), value_integer(number)) < 0)
		return -1;
	if (taken && ledger_ask(c->l, SQL_NUMBER_NEXT, &number, err, value_text(c->a->id)) < 0)
		return -1;
	c->number = (int)number;
	return 0;
}

/* 1 if the token was there already. */
static int transaction(struct ledger *l, void *arg, struct error *err)
{
	struct commit *c = arg;
	const struct attempt *a = c->a;
	struct queue_row queued = {0};
	int has;

	if (attempt_check(a, err) < 0 || (a->queued && queue_lock(l, a->id, &queued, err) < 0) ||
	    ledger_do(l, SQL_ANALYSIS_LOCK, err, value_text(a->id),
		      value_time(a->created ? a->created : clock_utc())) < 0)
		return -1;
	has = ledger_has_token(l, a->token, &c->number, err);
	if (has != 0)
		return has > 0 && a->queued && queue_committed(l, a, err) < 0 ? -1 : has;
	if (choose_number(c, err) < 0 || (a->queued && queue_settle(l, &queued, a, c->number, err) < 0) ||
	    commit_rows(c, err) < 0)
		return -1;
	return commit_posts(c, err);
}

int commit_within(struct ledger *l, const struct attempt *a, int *ret_number, struct error *err)
{
	_cleanup_(commit_done) struct commit c = {.l = l, .a = a};

	if (transaction(l, &c, err) < 0)
		return -1;
	*ret_number = c.number;
	return 0;
}

/* Those who share a transaction with it wait for as long as it takes; rows of a site's have triggers, and fail. */
static bool is_brief(const struct attempt *a, const struct row_source *rows)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		bytes += a->manifest.outputs[i].is_object ? 0 : a->manifest.outputs[i].size;
	return !rows && a->manifest.n_outputs + a->inputs.count <= BRIEF_ROWS && bytes <= BRIEF_BYTES;
}

int ledger_commit(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg, int *ret_number,
		  struct error *err)
{
	return ledger_commit_rows(l, a, open, arg, NULL, ret_number, err);
}

int ledger_commit_rows(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg,
		       const struct row_source *rows, int *ret_number, struct error *err)
{
	_cleanup_(commit_done) struct commit c = {
		.l = l, .a = a, .open = open, .arg = arg, .rows = rows, .is_brief = is_brief(a, rows)};
	int r;

	if (commit_list(&c, a->manifest.outputs, a->manifest.n_outputs, err) < 0)
		return -1;
	r = commit_secured(&c, transaction, &c, err);
	if (r < 0 && commit_wants_staged(&c, err))
		r = ledger_once(l, transaction, &c, err);
	/* A commit that failed keeps its hold: the caller may try again, and closes the ledger in the end. */
	if (r < 0)
		return r;
	objects_unpin(&l->objects, a->token);
	objects_release(&l->objects);
	*ret_number = c.number;
	return 0;
}
