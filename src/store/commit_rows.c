#include "commit.h"

#include <errno.h>
#include <string.h>

#include "text.h"

int content_changed(const struct commit *c, const struct output *o, struct error *err)
{
	char path[256];

	text_escape_into(path, sizeof path, o->path, strlen(o->path));
	return error_set(err, ERROR_LEDGER,
			 c->a ? "cannot commit the output '%s': its content is not what was collected"
			      : "cannot store the input '%s': its content is not what it was",
			 path);
}

int commit_content_open(struct commit *c, const struct output *o, struct error *err)
{
	if (!c->open)
		return content_changed(c, o, err);
	return c->open(c->arg, o, err);
}

static struct value integer_or_null(int64_t n, int64_t null)
{
	struct value none = {.kind = VALUE_NULL};

	return n == null ? none : value_integer(n);
}

static int rows_begin(struct commit *c, enum sql_table table, struct error *err)
{
	return c->l->backend->ops->rows_begin(c->l->backend, table, err);
}

static int rows_add(struct commit *c, const struct value *row, struct error *err)
{
	return c->l->backend->ops->rows_add(c->l->backend, row, err);
}

static int rows_end(struct commit *c, int r, struct error *err)
{
	return r < 0 ? r : c->l->backend->ops->rows_end(c->l->backend, err);
}

static int add_attempt(struct commit *c, struct error *err)
{
	const struct attempt *a = c->a;
	const struct value row[ATTEMPT_COLUMNS] = {
		[ATTEMPT_ID] = value_text(a->id),
		[ATTEMPT_NUMBER] = value_integer(c->number),
		[ATTEMPT_TOKEN] = value_text(a->token),
		[ATTEMPT_VERDICT] = value_text(a->verdict == VERDICT_NONE ? NULL : verdict_name(a->verdict)),
		[ATTEMPT_EXIT_CODE] = integer_or_null(a->exit_code, -1),
		[ATTEMPT_SIGNAL] = integer_or_null(a->signal, 0),
		[ATTEMPT_STATUS] = value_integer(a->status),
		[ATTEMPT_CREATED] = value_time(a->created),
		[ATTEMPT_STARTED] = value_time(a->started),
		[ATTEMPT_ENDED] = value_time(a->ended),
		[ATTEMPT_WORKSPACE] = value_path(a->workspace),
		[ATTEMPT_KEPT] = value_bool(a->kept),
		[ATTEMPT_HOST] = value_text(a->host),
		[ATTEMPT_REASON] = value_text(a->reason),
		[ATTEMPT_USAGE] = value_json(c->usage),
		[ATTEMPT_ERROR_STAGE] = value_text(a->error_stage),
		[ATTEMPT_ERROR_CODE] = value_text(a->error_code),
		[ATTEMPT_ERROR_MESSAGE] = value_text(a->error_message),
		[ATTEMPT_REQUEST] = value_json(c->request),
		[ATTEMPT_PLAN] = value_json(c->plan),
		[ATTEMPT_RECEIPT] = value_json(c->receipt),
		[ATTEMPT_RESULT] = value_json(c->result),
		[ATTEMPT_MISSING] = value_json(c->missing),
		[ATTEMPT_PRESENT] = value_json(c->present),
		[ATTEMPT_REJECTED_MORE] = value_integer((int64_t)a->manifest.n_rejected_more),
		[ATTEMPT_SAMPLE_INTERVAL] = integer_or_null(a->timeline ? a->timeline->interval_ms : -1, -1),
		[ATTEMPT_COMMITTED] = value_time(clock_utc()),
	};
	int r = rows_begin(c, TABLE_ATTEMPT, err);

	if (r == 0)
		r = rows_add(c, row, err);
	return rows_end(c, r, err);
}

/* The content of a small output, read whole and verified. */
static int read_content(struct commit *c, const struct output *o, struct error *err)
{
	_cleanup_close_ int fd = commit_content_open(c, o, err);
	uint8_t sha256[DIGEST_SIZE];
	ssize_t n = 1;

	if (fd < 0)
		return -EIO;
	c->scratch.size = 0;
	if (buffer_reserve(&c->scratch, o->size + 1) < 0)
		return error_memory(err);
	while (n > 0 && c->scratch.size <= o->size) {
		n = pread(fd, c->scratch.data + c->scratch.size, o->size + 1 - c->scratch.size,
			  (off_t)c->scratch.size);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return error_system(err, errno, "cannot read an output");
		else
			c->scratch.size += (size_t)n;
	}
	digest_bytes(c->scratch.data, c->scratch.size, sha256);
	if (c->scratch.size != o->size || memcmp(sha256, o->sha256, DIGEST_SIZE) != 0)
		return content_changed(c, o, err);
	return 0;
}

int commit_blob_add(struct commit *c, const struct content *content, struct error *err)
{
	const struct output *o = content->output;
	struct value row[] = {
		value_bytes(o->sha256, DIGEST_SIZE),
		value_integer((int64_t)o->size),
		{.kind = VALUE_NULL},
	};

	if (!content->is_object) {
		int r = read_content(c, o, err);

		if (r < 0)
			return r;
		row[2] = value_bytes(c->scratch.data, o->size);
	}
	return rows_add(c, row, err);
}

int commit_blob_states(struct commit *c, enum blob_state **ret, struct error *err)
{
	_cleanup_free_ uint8_t(*digests)[DIGEST_SIZE] = calloc(c->n_contents, DIGEST_SIZE);
	_cleanup_free_ enum blob_state *states = calloc(c->n_contents, sizeof *states);
	int r;

	if (!digests || !states)
		return error_memory(err);
	for (size_t i = 0; i < c->n_contents; i++)
		memcpy(digests[i], c->contents[i].output->sha256, DIGEST_SIZE);
	r = c->l->backend->ops->blob_states(c->l->backend, (const uint8_t(*)[DIGEST_SIZE])digests,
					    c->n_contents, states, err);
	if (r == 0)
		*ret = TAKE_PTR(states);
	return r;
}

/* What was put before this transaction is still there, and stays. */
static int hold_chunks(struct commit *c, struct error *err)
{
	_cleanup_free_ struct chunks_content *list = NULL;
	size_t n = 0;

	list = commit_chunks(c, &n);
	return list ? chunks_hold(c->l, list, n, err) : error_memory(err);
}

int commit_blobs(struct commit *c, struct error *err)
{
	_cleanup_free_ enum blob_state *states = NULL;
	int r = hold_chunks(c, err);

	if (r == 0 && c->n_contents)
		r = commit_blob_states(c, &states, err);
	if (r < 0 || c->n_contents == 0)
		return r;
	r = rows_begin(c, TABLE_BLOB, err);
	for (size_t i = 0; i < c->n_contents && r == 0; i++)
		if (states[i] == BLOB_UNKNOWN)
			r = commit_blob_add(c, &c->contents[i], err);
	r = rows_end(c, r, err);
	return r < 0 ? r : commit_unstage(c, err);
}

static int add_outputs(struct commit *c, struct error *err)
{
	const struct manifest *m = &c->a->manifest;
	int r = m->n_outputs ? rows_begin(c, TABLE_OUTPUT, err) : 0;

	for (size_t i = 0; i < m->n_outputs && r == 0; i++) {
		const struct output *o = &m->outputs[i];
		struct value row[] = {
			value_text(c->a->id),
			value_integer(c->number),
			value_integer((int64_t)i),
			value_path(o->path),
			value_bytes(o->sha256, DIGEST_SIZE),
			value_integer((int64_t)o->size),
			value_text(o->media_type),
		};

		r = rows_add(c, row, err);
	}
	return m->n_outputs ? rows_end(c, r, err) : 0;
}

static int add_rejected(struct commit *c, struct error *err)
{
	const struct manifest *m = &c->a->manifest;
	int r = m->n_rejected ? rows_begin(c, TABLE_REJECTED, err) : 0;

	for (size_t i = 0; i < m->n_rejected && r == 0; i++) {
		struct value row[] = {
			value_text(c->a->id),
			value_integer(c->number),
			value_integer((int64_t)i),
			value_path(m->rejected[i].path),
			value_text(m->rejected[i].reason),
		};

		r = rows_add(c, row, err);
	}
	return m->n_rejected ? rows_end(c, r, err) : 0;
}

static int add_inputs(struct commit *c, struct error *err)
{
	const struct inputs *in = &c->a->inputs;
	int r = in->count ? rows_begin(c, TABLE_INPUT, err) : 0;

	for (size_t i = 0; i < in->count && r == 0; i++) {
		const struct input *input = &in->list[i];
		struct value row[] = {
			value_text(c->a->id),
			value_integer(c->number),
			value_integer((int64_t)i),
			value_path(input->path),
			value_path(input->source),
			value_bytes(input->sha256, DIGEST_SIZE),
			value_integer((int64_t)input->size),
			value_integer(input->mode),
		};

		r = rows_add(c, row, err);
	}
	return in->count ? rows_end(c, r, err) : 0;
}

static int add_queries(struct commit *c, struct error *err)
{
	int r = c->a->n_queries ? rows_begin(c, TABLE_QUERY, err) : 0;

	for (size_t i = 0; i < c->a->n_queries && r == 0; i++) {
		const struct query *q = &c->a->queries[i];
		struct value row[] = {
			value_text(c->a->id),
			value_integer(c->number),
			value_integer((int64_t)i),
			value_text(q->name),
			value_text(q->sql),
			value_bytes(q->sha256, DIGEST_SIZE),
			value_integer((int64_t)q->size),
			value_integer((int64_t)q->rows),
			value_time(q->started),
			value_integer(q->duration_ms),
		};

		r = rows_add(c, row, err);
	}
	return c->a->n_queries ? rows_end(c, r, err) : 0;
}

static int add_log(struct commit *c, const char *name, const struct captured *log, struct error *err)
{
	struct value row[] = {
		value_text(c->a->id),
		value_integer(c->number),
		value_text(name),
		value_bytes(log->head, log->head_size),
		value_bytes(log->tail, log->tail_size),
		value_integer((int64_t)log->omitted),
	};

	return rows_add(c, row, err);
}

static int add_logs(struct commit *c, struct error *err)
{
	int r = rows_begin(c, TABLE_LOG, err);

	for (int i = 0; i < STREAM_COUNT && r == 0; i++)
		r = add_log(c, stream_name(i), &c->a->logs[i], err);
	if (r == 0 && c->a->post_log.head_size)
		r = add_log(c, stream_name(STREAM_POST), &c->a->post_log, err);
	return rows_end(c, r, err);
}

static int add_events(struct commit *c, struct error *err)
{
	int r = c->a->n_events ? rows_begin(c, TABLE_EVENT, err) : 0;

	for (size_t i = 0; i < c->a->n_events && r == 0; i++) {
		const struct event *e = &c->a->events[i];
		struct value row[] = {
			value_text(c->a->id), value_integer(c->number), value_integer((int64_t)i),
			{VALUE_TIME, e->at},  value_text(e->stage),	value_text(e->text),
		};

		r = rows_add(c, row, err);
	}
	return c->a->n_events ? rows_end(c, r, err) : 0;
}

static int add_samples(struct commit *c, struct error *err)
{
	const struct timeline *t = c->a->timeline;
	int n = t ? t->count : 0, r = n ? rows_begin(c, TABLE_SAMPLE, err) : 0;

	for (int i = 0; i < n && r == 0; i++) {
		const struct sample *s = &t->samples[i];
		struct value row[] = {
			value_text(c->a->id),
			value_integer(c->number),
			value_integer(i),
			value_integer(s->at_ms),
			integer_or_null(s->cpu_ms, -1),
			integer_or_null(s->memory_bytes, -1),
			integer_or_null(s->pids, -1),
		};

		r = rows_add(c, row, err);
	}
	return n ? rows_end(c, r, err) : 0;
}

int commit_rows(struct commit *c, struct error *err)
{
	static int (*const steps[])(struct commit *, struct error *) = {
		add_attempt, commit_blobs, add_outputs, add_rejected, add_inputs,
		add_queries, add_logs,	   add_events,	add_samples,
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](c, err);
	return r;
}
