/*
 * Rows of an attempt that is committed already: its post-process was repeated. Idempotent: what is in the tables
 * afterwards is what one successful post-process leaves. Where a key tells which rows to replace they are replaced;
 * where none does, the same rows again change nothing, and other ones are refused.
 */
#include "commit.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "text.h"

/* The chunks that are there, compared with what the source has now. */
struct comparison {
	const struct row_source *rows;
	size_t table; /* the one that the last chunk was of */
	bool any, differs;
	struct buffer text;
};

static int rebuild(struct comparison *c, int64_t count, struct error *err)
{
	struct row_text text;
	int r = 0;

	c->text.size = 0;
	for (int64_t i = 0; i < count && !c->differs && r == 0; i++) {
		int n = c->rows->next(c->rows->arg, c->table, &text, err);

		if (n < 0)
			return n;
		c->differs = n == 0;
		if (n == 1)
			r = buffer_puts(&c->text, i ? "," : "[");
		if (n == 1 && r == 0)
			r = buffer_append(&c->text, text.fields, text.size);
	}
	return r < 0 || buffer_puts(&c->text, "]") < 0 ? error_memory(err) : 0;
}

static int compare_chunk(void *arg, const struct value *row, struct error *err)
{
	struct comparison *c = arg;
	const struct row_tables *t = c->rows->tables;
	size_t before = c->table;
	int r = 0;

	while (c->table < t->count &&
	       (row[0].kind != VALUE_TEXT || strcmp(t->list[c->table].name, row[0].data) != 0))
		c->table++;
	if (c->table == t->count)
		c->differs = true;
	if (!c->differs && (!c->any || c->table != before))
		r = c->rows->rewind(c->rows->arg, err);
	c->any = true;
	if (r == 0 && !c->differs)
		r = rebuild(c, value_to_integer(&row[1], 0), err);
	if (r == 0 && !c->differs)
		c->differs =
			row[2].size != c->text.size || memcmp(row[2].data, c->text.data, c->text.size) != 0;
	return r;
}

static uint64_t row_sum(const struct row_source *rows)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->tables->count; i++)
		sum += rows->counts[i];
	return sum;
}

static const struct row_table *table_without_key(const struct row_source *rows)
{
	for (size_t i = 0; i < rows->tables->count; i++)
		if (rows->counts[i] && rows->tables->list[i].on_conflict == ROW_FAIL)
			return &rows->tables->list[i];
	return NULL;
}

static int take_sum(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(uint64_t *)arg += (uint64_t)value_to_integer(&row[1], 0);
	return 0;
}

/* 1: post them; 0: there is nothing to do. */
static int decide(struct commit *c, const struct value key[2], struct error *err)
{
	const struct row_table *keyless = table_without_key(c->rows);
	struct comparison same = {.rows = c->rows};
	uint64_t before = 0;
	char shown[128];
	int r = ledger_run(c->l, SQL_POST_CHUNKS, key, 2, take_sum, &before, err);

	if (r < 0 || before == 0 || !keyless)
		return r < 0 ? r : 1;
	r = ledger_run(c->l, SQL_POST_CHUNKS, key, 2, compare_chunk, &same, err);
	buffer_free(&same.text);
	if (r < 0)
		return r;
	if (!same.differs && before == row_sum(c->rows))
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"the rows are not those that were posted before, and table '%s' has no key by which they "
		"could be replaced: give it one, with on_conflict: update; nothing was changed",
		text_escape_into(shown, sizeof shown, keyless->name, strlen(keyless->name)));
}

static int take_integer(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(int64_t *)arg = value_to_integer(row, 0);
	return 0;
}

static int note(struct commit *c, const struct value key[2], struct error *err)
{
	const struct value verdict[] = {key[0], key[1], value_text(verdict_name(VERDICT_SUCCEEDED)),
					value_integer(0), value_text(NULL)};
	struct backend *b = c->l->backend;
	int64_t position = 0;
	int r = ledger_run(c->l, SQL_EVENT_NEXT, key, 2, take_integer, &position, err);

	if (r == 0) {
		const struct value event[] = {key[0],
					      key[1],
					      value_integer(position),
					      value_time(clock_utc()),
					      value_text("post-process"),
					      value_text("repeated")};

		r = b->ops->rows_begin(b, TABLE_EVENT, err);
		if (r == 0)
			r = b->ops->rows_add(b, event, err);
		if (r == 0)
			r = b->ops->rows_end(b, err);
	}
	if (r == 0 && c->a->verdict == VERDICT_POST_PROCESS_FAILED)
		r = ledger_run(c->l, SQL_VERDICT_SET, verdict, ARRAY_SIZE(verdict), NULL, NULL, err);
	return r;
}

/* 1: posted, 0: nothing to do. */
static int transaction(struct commit *c, struct error *err)
{
	const struct value key[] = {value_text(c->a->id), value_integer(c->number)};
	const struct value lock[] = {key[0], value_time(clock_utc())};
	int r = ledger_run(c->l, SQL_ANALYSIS_LOCK, lock, 2, NULL, NULL, err);

	if (r == 0)
		r = decide(c, key, err);
	if (r <= 0)
		return r;
	r = ledger_run(c->l, SQL_POST_FORGET, key, 2, NULL, NULL, err);
	if (r == 0)
		r = commit_posts(c, err);
	if (r == 0)
		r = note(c, key, err);
	return r < 0 ? r : 1;
}

static int post_once(struct commit *c, bool *ret_posted, struct error *err)
{
	struct backend *b = c->l->backend;
	int r = ledger_begin(c->l, err);

	if (r < 0)
		return r;
	r = transaction(c, err);
	*ret_posted = r == 1;
	if (r == 1)
		r = b->ops->commit(b, err);
	if (r < 0 || !*ret_posted)
		b->ops->rollback(b);
	return r < 0 ? r : 0;
}

int ledger_post(struct ledger *l, const struct attempt *a, const struct row_source *rows, bool *ret_posted,
		struct error *err)
{
	struct commit c = {.l = l, .a = a, .rows = rows, .number = a->number};
	int tries = 5, r;

	do
		r = post_once(&c, ret_posted, err);
	while (r == -EAGAIN && --tries > 0);
	if (r == -EBADMSG && l->backend->failed_row == 0) {
		c.staged = true;
		r = post_once(&c, ret_posted, err);
	}
	return r;
}
