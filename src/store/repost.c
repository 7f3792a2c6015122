/*
 * Rows of an attempt that is committed already: its post-process was repeated. Idempotent: what is in the tables
 * afterwards is what one successful post-process leaves. Where a key tells which rows to replace they are replaced;
 * where none does, the same rows again change nothing, and other ones are refused.
 */
#include "commit.h"

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

	c->text.size = 0;
	for (int64_t i = 0; i < count && !c->differs; i++) {
		int n = c->rows->next(c->rows->arg, c->table, &text, err);

		if (n < 0)
			return n;
		c->differs = n == 0;
		if (n == 1) {
			buffer_puts(&c->text, i ? "," : "[");
			buffer_append(&c->text, text.fields, text.size);
		}
	}
	buffer_puts(&c->text, "]");
	return buffer_check(&c->text, err);
}

static int compare_chunk(void *arg, const struct value *row, struct error *err)
{
	struct comparison *c = arg;
	const struct row_tables *t = c->rows->tables;
	size_t before = c->table;

	while (c->table < t->count &&
	       (row[0].kind != VALUE_TEXT || strcmp(t->list[c->table].name, row[0].data) != 0))
		c->table++;
	if (c->table == t->count)
		c->differs = true;
	if (c->differs)
		return 0;
	if ((!c->any || c->table != before) && c->rows->rewind(c->rows->arg, err) < 0)
		return -1;
	c->any = true;
	if (rebuild(c, value_to_integer(&row[1], 0), err) < 0)
		return -1;
	if (!c->differs)
		c->differs =
			row[2].size != c->text.size || memcmp(row[2].data, c->text.data, c->text.size) != 0;
	return 0;
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

/* 0: post them; 1: there is nothing to do. */
static int decide(struct commit *c, const struct value key[2], struct error *err)
{
	const struct row_table *keyless = table_without_key(c->rows);
	struct comparison same = {.rows = c->rows};
	uint64_t before = 0;
	char shown[128];
	int r = ledger_run(c->l, SQL_POST_CHUNKS, key, 2, take_sum, &before, err);

	if (r < 0 || before == 0 || !keyless)
		return r;
	r = ledger_run(c->l, SQL_POST_CHUNKS, key, 2, compare_chunk, &same, err);
	buffer_free(&same.text);
	if (r < 0)
		return r;
	if (!same.differs && before == row_sum(c->rows))
		return 1;
	return error_set(
		err, ERROR_REFUSED,
		"the rows are not those that were posted before, and table '%s' has no key by which they "
		"could be replaced: give it one, with on_conflict: update; nothing was changed",
		text_escape_into(shown, sizeof shown, keyless->name, strlen(keyless->name)));
}

static int note(struct commit *c, const struct value key[2], struct error *err)
{
	struct value event[] = {key[0],
				key[1],
				{.kind = VALUE_INTEGER},
				value_time(clock_utc()),
				value_text("post-process"),
				value_text("repeated")};

	if (ledger_ask(c->l, SQL_EVENT_NEXT, &event[2].integer, err, key[0], key[1]) < 0 ||
	    ledger_rows_begin(c->l, TABLE_EVENT, err) < 0 || ledger_rows_add(c->l, event, err) < 0 ||
	    ledger_rows_end(c->l, err) < 0)
		return -1;
	if (c->a->verdict != VERDICT_POST_PROCESS_FAILED)
		return 0;
	return ledger_do(c->l, SQL_VERDICT_SET, err, key[0], key[1],
			 value_text(verdict_name(VERDICT_SUCCEEDED)), value_integer(0), value_text(NULL));
}

/* 1: nothing to do. */
static int transaction(struct ledger *l, void *arg, struct error *err)
{
	struct commit *c = arg;
	const struct value key[] = {value_text(c->a->id), value_integer(c->number)};
	int r;

	c->is_posted = false;
	if (ledger_do(l, SQL_ANALYSIS_LOCK, err, key[0], value_time(clock_utc())) < 0)
		return -1;
	r = decide(c, key, err);
	if (r != 0)
		return r;
	c->is_posted = true;
	if (ledger_do(l, SQL_POST_FORGET, err, key[0], key[1]) < 0 || commit_posts(c, err) < 0)
		return -1;
	return note(c, key, err);
}

int ledger_post(struct ledger *l, const struct attempt *a, const struct row_source *rows, bool *ret_posted,
		struct error *err)
{
	struct commit c = {.l = l, .a = a, .rows = rows, .number = a->number};
	int r = ledger_transaction(l, transaction, &c, err);

	if (r < 0 && commit_wants_staged(&c, err))
		r = ledger_once(l, transaction, &c, err);
	*ret_posted = r == 0 && c.is_posted;
	return r;
}
