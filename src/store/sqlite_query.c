/*
 * A stranger's query on SQLite: a connection of its own that can only read, an authorizer that lets it read the platform's
 * tables and nothing else, and a clock that ends it. The answer is CSV as PostgreSQL writes it.
 */
#include "sqlite_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "ledger.h"
#include "query.h"
#include "sqlite_file.h"
#include "text.h"

enum { TICK = 10000, VALUE_MAX = 16 * 1024 * 1024, SQL_MAX = 1024 * 1024 };

struct asking {
	sqlite3 *db;
	uint64_t deadline, max_bytes;
	char refused[160]; /* what the authorizer would not let it do */
};

static bool is_ours(const char *table)
{
	return strncasecmp(table, "fumehood_", 9) == 0 || strncasecmp(table, "sqlite_", 7) == 0;
}

static int refuse(struct asking *a, const char *what, const char *name)
{
	char shown[100];

	snprintf(a->refused, sizeof a->refused, "it may not %s '%s'", what,
		 text_escape_into(shown, sizeof shown, name ? name : "", strlen(name ? name : "")));
	return SQLITE_DENY;
}

static int authorize(void *arg, int action, const char *first, const char *second, const char *database,
		     const char *trigger UNUSED)
{
	static const char *const functions[] = {"load_extension", "fts3_tokenizer", "readfile", "writefile",
						"edit"};
	struct asking *a = arg;

	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_READ:
		/* With no column it is a table that is only counted. */
		if (first && is_ours(first))
			return refuse(a, "read the ledger's own table", first);
		return !database || strcmp(database, "main") == 0 ? SQLITE_OK
								  : refuse(a, "read the database", database);
	case SQLITE_FUNCTION:
		for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
			if (second && strcasecmp(second, functions[i]) == 0)
				return refuse(a, "call", second);
		return SQLITE_OK;
	}
	return refuse(a, "do anything but SELECT:", first);
}

static int tick(void *arg)
{
	return clock_now() >= ((struct asking *)arg)->deadline;
}

static int query_fail(struct asking *a, int code, struct error *err)
{
	const char *said = sqlite3_errmsg(a->db);
	char shown[400];

	if ((code & 0xff) == SQLITE_NOMEM)
		return error_set(err, ERROR_REFUSED,
				 "it takes more memory than it may, query.max_bytes or not");
	if ((code & 0xff) == SQLITE_INTERRUPT)
		return error_set(err, ERROR_REFUSED, "it took longer than query.timeout allows");
	if (a->refused[0])
		return error_set(err, ERROR_REFUSED, "%s", a->refused);
	return error_set(err, ERROR_REFUSED, "%s", text_escape_into(shown, sizeof shown, said, strlen(said)));
}

static int open_own(struct asking *a, const char *path, int busy_ms, struct error *err)
{
	int code = sqlite3_open_v2(path, &a->db,
				   SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
				   sqlite_vfs_name());

	if (!a->db)
		return error_memory(err);
	if (code != SQLITE_OK || (code = sqlite3_busy_timeout(a->db, busy_ms)) != SQLITE_OK ||
	    (code = sqlite3_exec(a->db, "PRAGMA query_only = 1; PRAGMA cell_size_check = 1", NULL, NULL,
				 NULL)) != SQLITE_OK ||
	    (code = sqlite3_db_config(a->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL)) != SQLITE_OK ||
	    (code = sqlite3_db_config(a->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL)) != SQLITE_OK)
		return query_fail(a, code, err);
	sqlite3_limit(a->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(a->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_limit(a->db, SQLITE_LIMIT_SQL_LENGTH, SQL_MAX);
	sqlite3_set_authorizer(a->db, authorize, a);
	sqlite3_progress_handler(a->db, TICK, tick, a);
	return 0;
}

/* The shortest text that is the same number again. */
static int put_real(struct buffer *b, double d)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	return buffer_puts(b, text);
}

static int put_blob(struct buffer *b, const uint8_t *data, size_t size)
{
	buffer_puts(b, "\\x");
	for (size_t i = 0; i < size; i++)
		buffer_printf(b, "%02x", data[i]);
	return buffer_check(b, NULL);
}

static int put_column(struct buffer *b, sqlite3_stmt *statement, int i)
{
	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_NULL:
		return 0;
	case SQLITE_FLOAT:
		return put_real(b, sqlite3_column_double(statement, i));
	case SQLITE_BLOB: {
		const uint8_t *data = sqlite3_column_blob(statement, i);

		return put_blob(b, data, (size_t)sqlite3_column_bytes(statement, i));
	}
	}
	{
		const char *text = (const char *)sqlite3_column_text(statement, i);

		return text ? csv_put(b, text, (size_t)sqlite3_column_bytes(statement, i)) : buffer_fail(b);
	}
}

/* A line that is longer than the whole answer may be is cut: it is refused all the same. */
static int give_line(struct asking *a, struct buffer *b, sqlite3_stmt *statement, bool header,
		     query_line_fn fn, void *arg, struct error *err)
{
	int n = sqlite3_column_count(statement);

	b->size = 0;
	for (int i = 0; i < n && b->size <= a->max_bytes; i++) {
		const char *name = header ? sqlite3_column_name(statement, i) : "";

		if (i)
			buffer_puts(b, ",");
		if (header)
			csv_put(b, name ? name : "", strlen(name ? name : ""));
		else
			put_column(b, statement, i);
	}
	buffer_puts(b, "\n");
	if (buffer_check(b, err) < 0)
		return -1;
	return fn(arg, b->data, b->size, err);
}

static int give_all(struct asking *a, sqlite3_stmt *statement, query_line_fn fn, void *arg, struct error *err)
{
	_cleanup_buffer_ struct buffer line = {0};
	int code;

	if (give_line(a, &line, statement, true, fn, arg, err) < 0)
		return -1;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW)
		if (give_line(a, &line, statement, false, fn, arg, err) < 0)
			return -1;
	return code == SQLITE_DONE ? 0 : query_fail(a, code, err);
}

static int ask(struct asking *a, const char *sql, size_t size, query_line_fn fn, void *arg, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(a->db, sql, (int)size, &statement, NULL), r;

	if (code != SQLITE_OK)
		r = query_fail(a, code, err);
	else if (!statement || !sqlite3_stmt_readonly(statement) || sqlite3_column_count(statement) == 0)
		r = error_set(err, ERROR_REFUSED, "it is no SELECT");
	else
		r = give_all(a, statement, fn, arg, err);
	sqlite3_finalize(statement);
	return r;
}

int sqlite_query(struct backend *b, const struct ledger_query *query, query_line_fn fn, void *arg,
		 struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	struct asking a = {.deadline = clock_now() + query->timeout_ms * NSEC_PER_MSEC,
			   .max_bytes = query->max_bytes};
	size_t size = 0;
	int r;

	if (query_trim(query->sql, &size, err) < 0)
		return -1;
	if (size > SQL_MAX)
		return error_set(err, ERROR_REFUSED, "it is longer than %d bytes", SQL_MAX);
	r = open_own(&a, s->path, s->busy_ms, err);
	if (r == 0)
		r = ask(&a, query->sql, size, fn, arg, err);
	sqlite3_close(a.db);
	return r;
}
