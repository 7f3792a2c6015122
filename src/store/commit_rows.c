#include "commit.h"

#include <errno.h>
#include <string.h>

#include "columns.h"
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

static int add_attempt(struct commit *c, struct error *err)
{
	_cleanup_(column_texts_done) struct column_texts texts = {0};
	struct value row[ATTEMPT_COLUMNS];

	if (columns_write(TABLE_ATTEMPT, c->a, row, &texts) < 0)
		return error_memory(err);
	row[ATTEMPT_NUMBER] = value_integer(c->number);
	row[ATTEMPT_COMMITTED] = value_time(clock_utc());
	if (ledger_rows_begin(c->l, TABLE_ATTEMPT, err) < 0 || ledger_rows_add(c->l, row, err) < 0)
		return -1;
	return ledger_rows_end(c->l, err);
}

/* The content of a small output, read whole and verified. */
static int read_content(struct commit *c, const struct output *o, struct error *err)
{
	_cleanup_close_ int fd = commit_content_open(c, o, err);
	uint8_t sha256[DIGEST_SIZE];
	ssize_t n = 1;

	if (fd < 0)
		return -1;
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
		if (read_content(c, o, err) < 0)
			return -1;
		row[2] = value_bytes(c->scratch.data, o->size);
		work_add(c->l->objects.work, o->size);
	}
	return ledger_rows_add(c->l, row, err);
}

int commit_blob_states(struct commit *c, enum blob_state **ret, struct error *err)
{
	_cleanup_free_ uint8_t(*digests)[DIGEST_SIZE] = calloc(c->n_contents, DIGEST_SIZE);
	_cleanup_free_ enum blob_state *states = calloc(c->n_contents, sizeof *states);

	if (!digests || !states)
		return error_memory(err);
	for (size_t i = 0; i < c->n_contents; i++)
		memcpy(digests[i], c->contents[i].output->sha256, DIGEST_SIZE);
	if (c->l->backend->ops->blob_states(c->l->backend, (const uint8_t(*)[DIGEST_SIZE])digests,
					    c->n_contents, states, err) < 0)
		return -1;
	*ret = TAKE_PTR(states);
	return 0;
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

	if (hold_chunks(c, err) < 0)
		return -1;
	if (c->n_contents == 0)
		return 0;
	if (commit_blob_states(c, &states, err) < 0 || ledger_rows_begin(c->l, TABLE_BLOB, err) < 0)
		return -1;
	for (size_t i = 0; i < c->n_contents; i++)
		if (states[i] == BLOB_UNKNOWN && commit_blob_add(c, &c->contents[i], err) < 0)
			return -1;
	if (ledger_rows_end(c->l, err) < 0)
		return -1;
	return commit_unstage(c, err);
}

/* What it has many of: each row has its key and its position first. */
static int add_list(struct commit *c, enum sql_table table, const void *list, size_t count, struct error *err)
{
	struct value row[ROW_MAX] = {value_text(c->a->id), value_integer(c->number)};

	if (count == 0)
		return 0;
	if (ledger_rows_begin(c->l, table, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		_cleanup_(column_texts_done) struct column_texts texts = {0};

		row[2] = value_integer((int64_t)i);
		if (columns_write(table, (const char *)list + i * columns_of[table].size, row + 3, &texts) <
		    0)
			return error_memory(err);
		if (ledger_rows_add(c->l, row, err) < 0)
			return -1;
	}
	return ledger_rows_end(c->l, err);
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

	return ledger_rows_add(c->l, row, err);
}

static int add_step_logs(struct commit *c, struct error *err)
{
	char name[STREAM_TEXT_SIZE];

	for (size_t n = 0; n < c->a->n_steps; n++)
		for (int i = 0; i < STREAM_COUNT; i++)
			if (add_log(c, stream_step_name(i, n + 1, name), &c->a->steps[n].logs[i], err) < 0)
				return -1;
	return 0;
}

static int add_logs(struct commit *c, struct error *err)
{
	if (ledger_rows_begin(c->l, TABLE_LOG, err) < 0 || add_step_logs(c, err) < 0)
		return -1;
	for (int i = 0; i < STREAM_COUNT && c->a->n_steps == 0; i++)
		if (add_log(c, stream_name(i), &c->a->logs[i], err) < 0)
			return -1;
	if (c->a->post_log.head_size && add_log(c, stream_name(STREAM_POST), &c->a->post_log, err) < 0)
		return -1;
	return ledger_rows_end(c->l, err);
}

int commit_rows(struct commit *c, struct error *err)
{
	const struct attempt *a = c->a;
	const struct manifest *m = &a->manifest;

	if (add_attempt(c, err) < 0 || commit_blobs(c, err) < 0 ||
	    add_list(c, TABLE_OUTPUT, m->outputs, m->n_outputs, err) < 0 ||
	    add_list(c, TABLE_REJECTED, m->rejected, m->n_rejected, err) < 0 ||
	    add_list(c, TABLE_INPUT, a->inputs.list, a->inputs.count, err) < 0 ||
	    add_list(c, TABLE_QUERY, a->queries, a->n_queries, err) < 0 || add_logs(c, err) < 0 ||
	    add_list(c, TABLE_EVENT, a->events, a->n_events, err) < 0 ||
	    add_list(c, TABLE_DENIAL, a->denials.list, a->denials.n, err) < 0 ||
	    add_list(c, TABLE_STEP, a->steps, a->n_steps, err) < 0)
		return -1;
	return a->timeline ? add_list(c, TABLE_SAMPLE, a->timeline->samples, (size_t)a->timeline->count, err)
			   : 0;
}
