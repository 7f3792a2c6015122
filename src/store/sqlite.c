/*
 * SQLite, linked in. One connection, one thread. WAL with synchronous=FULL: a commit is one fsync and is durable.
 * Writers always begin IMMEDIATE, so that a transaction never fails half-way because it read before it wrote.
 */
#include "sqlite_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "buffer.h"
#include "ledger.h"
#include "owned.h"
#include "sqlite_file.h"
#include "text.h"

enum {
	WAL_RETRY_MS = 5,
	MEMORY_BASE = 128 << 20, /* of what SQLite takes in all, besides VALUE_SIZE_MAX for each connection */
	PROGRESS_STEPS = 100000, /* of its machine, between two looks at the clock */
};

int sqlite_error(struct sqlite *s, int code, const char *doing, struct error *err)
{
	const char *name = s->base.name, *said = sqlite3_errmsg(s->db);
	int errnum = sqlite3_system_errno(s->db);

	/* A reader, too, writes -shm; SQLite then reports whatever file it looked for last. */
	if ((code & 0xff) == SQLITE_CANTOPEN && sqlite_file_read_only(s->path))
		code = SQLITE_READONLY;
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return error_memory(err);
	case SQLITE_READONLY:
		return error_set(
			err, ERROR_LEDGER,
			"cannot %s the ledger %s: it is read-only; make the file and its directory writable "
			"for this user, or name another with --db",
			doing, name);
	case SQLITE_NOTADB:
		return error_set(
			err, ERROR_LEDGER,
			"%s is not a ledger: it is not an SQLite database; name another file with --db",
			name);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return error_set(
			err, ERROR_LEDGER,
			"cannot %s the ledger %s: others have kept it locked for %d ms; find and end them, then "
			"try again",
			doing, name, s->busy_ms);
	case SQLITE_FULL:
		return error_set(err, ERROR_LEDGER,
				 "cannot write to the ledger %s: no space is left there; free some", name);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_IOERR:
		return error_set(err, ERROR_LEDGER, "cannot %s the ledger %s: %s", doing, name,
				 errnum ? strerror(errnum) : said);
	case SQLITE_CORRUPT:
		return error_set(err, ERROR_LEDGER, "the ledger %s is damaged (%s): restore it from a backup",
				 name, said);
	}
	if (strncmp(said, "no such table: ", 15) == 0 || strncmp(said, "no such column: ", 16) == 0)
		return error_set(
			err, ERROR_LEDGER,
			"the ledger %s is incomplete (%s): restore it from a backup or name another with --db",
			name, said);
	return error_set(err, ERROR_LEDGER, "cannot %s the ledger %s: %s", doing, name, said);
}

static int sqlite_exec(struct sqlite *s, const char *text, struct error *err)
{
	int code = sqlite3_exec(s->db, text, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "write to", err);
}

/* Takes the text; NULL: memory is out. */
static int prepare(struct sqlite *s, sqlite3_stmt **ret, char *text, struct error *err)
{
	int code = text ? sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL)
			: SQLITE_NOMEM;

	free(text);
	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "read", err);
}

static int bind_value(sqlite3_stmt *statement, int i, const struct value *v)
{
	switch (v->kind) {
	case VALUE_NULL:
		return sqlite3_bind_null(statement, i);
	case VALUE_INTEGER:
	case VALUE_BOOL:
	case VALUE_TIME:
		return sqlite3_bind_int64(statement, i, v->integer);
	case VALUE_TEXT:
	case VALUE_JSON:
		return sqlite3_bind_text64(statement, i, v->data, v->size, SQLITE_STATIC, SQLITE_UTF8);
	case VALUE_BYTES:
		return sqlite3_bind_blob64(statement, i, v->data, v->size, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static int bind_values(struct sqlite *s, sqlite3_stmt *statement, const struct value *values, size_t n,
		       struct error *err)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < n && code == SQLITE_OK; i++)
		code = bind_value(statement, (int)i + 1, &values[i]);
	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "write to", err);
}

static struct value column_value(sqlite3_stmt *statement, int i)
{
	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		return value_integer(sqlite3_column_int64(statement, i));
	case SQLITE_TEXT: {
		const char *text = (const char *)sqlite3_column_text(statement, i);

		return (struct value){VALUE_TEXT, 0, text, (size_t)sqlite3_column_bytes(statement, i)};
	}
	case SQLITE_BLOB: {
		const void *data = sqlite3_column_blob(statement, i);

		return value_bytes(data, (size_t)sqlite3_column_bytes(statement, i));
	}
	}
	return (struct value){.kind = VALUE_NULL};
}

static int step_rows(struct sqlite *s, sqlite3_stmt *statement, row_fn fn, void *arg, struct error *err)
{
	struct value row[ROW_MAX];
	int n = sqlite3_column_count(statement), code, r = 0;

	assert(n <= ROW_MAX);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++)
			row[i] = column_value(statement, i);
		if (fn)
			r = fn(arg, row, err);
	}
	if (r >= 0 && code != SQLITE_DONE)
		r = sqlite_error(s, code, sqlite3_stmt_readonly(statement) ? "read" : "write to", err);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return r < 0 ? r : 0;
}

static int sqlite_run(struct backend *b, enum sql which, const struct value *params, size_t n_params,
		      row_fn fn, void *arg, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	sqlite3_stmt **statement = &s->statements[which];

	if ((!*statement && prepare(s, statement, sql_expand(which, SQL_SQLITE), err) < 0) ||
	    bind_values(s, *statement, params, n_params, err) < 0)
		return -1;
	return step_rows(s, *statement, fn, arg, err);
}

static int sqlite_version(struct backend *b, int *ret, struct error *err);

static void sqlite_take_turns(struct backend *b, pthread_mutex_t *turn)
{
	sqlite_of(b)->turn = turn;
}

static int turn_take(struct sqlite *s, struct error *err)
{
	struct timespec until;

	if (!s->turn)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += s->busy_ms / 1000;
	until.tv_nsec += s->busy_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	if (pthread_mutex_clocklock(s->turn, CLOCK_MONOTONIC, &until) != 0)
		return sqlite_error(s, SQLITE_BUSY, "write to", err);
	s->has_turn = true;
	return 0;
}

void sqlite_turn_give(struct sqlite *s)
{
	if (s->has_turn)
		pthread_mutex_unlock(s->turn);
	s->has_turn = false;
}

static int sqlite_begin(struct backend *b, int *ret_version, struct error *err)
{
	struct sqlite *s = sqlite_of(b);

	if (turn_take(s, err) < 0)
		return -1;
	if (sqlite_exec(s, "BEGIN IMMEDIATE", err) == 0) {
		if (!ret_version || sqlite_version(b, ret_version, err) == 0)
			return 0;
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	sqlite_turn_give(s);
	return -1;
}

/* What is open would take it, with a log of its own, and nobody would ever read it. */
static bool has_moved(struct sqlite *s)
{
	int moved = 0;

	return sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}

static int sqlite_commit(struct backend *b, struct error *err)
{
	if (has_moved(sqlite_of(b)))
		return error_set(
			err, ERROR_LEDGER,
			"the ledger %s was removed or replaced while it was open, and nothing was written to it: put it back, and "
			"start again what has it open",
			b->name);
	if (sqlite_exec(sqlite_of(b), "COMMIT", err) < 0)
		return -1;
	sqlite_turn_give(sqlite_of(b));
	sqlite_bell_rung(sqlite_of(b));
	return 0;
}

static void sqlite_rollback(struct backend *b)
{
	sqlite_post_forget(sqlite_of(b));
	sqlite_of(b)->ringing = false;
	if (!sqlite3_get_autocommit(sqlite_of(b)->db))
		sqlite3_exec(sqlite_of(b)->db, "ROLLBACK", NULL, NULL, NULL);
	sqlite_turn_give(sqlite_of(b));
}

static bool sqlite_is_writable(struct backend *b)
{
	struct sqlite *s = sqlite_of(b);
	bool is;

	sqlite3_busy_timeout(s->db, 0);
	is = sqlite3_exec(s->db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) == SQLITE_OK;
	sqlite3_busy_timeout(s->db, s->busy_ms);
	return is;
}

static const char *owner_of(struct sqlite *s)
{
	char name[USER_ROOM];

	if (!s->owner)
		s->owner = strdup(user_name(s->uid, name));
	return s->owner;
}

static void give_owner(sqlite3_context *context, int n UNUSED, sqlite3_value **values UNUSED)
{
	const char *owner = owner_of(sqlite3_user_data(context));

	if (owner)
		sqlite3_result_text(context, owner, -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_error_nomem(context);
}

/* Hex as bytes: what SQLite has only since 3.41. Null for what is none. */
static void give_bytes(sqlite3_context *context, int n UNUSED, sqlite3_value **values)
{
	const char *text = (const char *)sqlite3_value_text(values[0]);
	uint8_t sha256[DIGEST_SIZE];

	if (text && hex_decode(text, sha256, sizeof sha256) == 0)
		sqlite3_result_blob(context, sha256, sizeof sha256, SQLITE_TRANSIENT);
}

void ledger_bound_memory(void)
{
	if (sqlite3_hard_heap_limit64(-1) == 0)
		sqlite3_hard_heap_limit64(MEMORY_BASE);
}

/* A connection comes or goes, and what it may need with it, where there is a bound. SQLite keeps the number. */
static void bound_move(int64_t by)
{
	sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
	int64_t bound;

	sqlite3_mutex_enter(mutex);
	bound = sqlite3_hard_heap_limit64(-1);
	if (bound > 0)
		sqlite3_hard_heap_limit64(bound + by);
	sqlite3_mutex_leave(mutex);
}

/* "%owner%" in it is the file's owner, as a default of a column must have him. */
static int sqlite_script(struct backend *b, const char *text, struct error *err)
{
	static const char mark[] = "%owner%";
	struct sqlite *s = sqlite_of(b);
	char *quoted = owner_of(s) ? sqlite3_mprintf("%Q", s->owner) : NULL;
	_cleanup_buffer_ struct buffer script = {0};

	for (const char *at; quoted && (at = strstr(text, mark)); text = at + strlen(mark))
		buffer_printf(&script, "%.*s%s", (int)(at - text), text, quoted);
	if (!quoted || buffer_puts(&script, text) < 0) {
		sqlite3_free(quoted);
		return error_memory(err);
	}
	sqlite3_free(quoted);
	return sqlite_exec(s, script.data, err);
}

/* The journal mode stays with the file. To change it SQLite wants the file for itself, and its busy handler is not
 * asked when another first use does the same at this moment. */
static int sqlite_migrate_prepare(struct backend *b, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	int code;

	for (int waited = 0;; waited += WAL_RETRY_MS) {
		code = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		if ((code & 0xff) != SQLITE_BUSY || waited >= s->busy_ms)
			break;
		sqlite3_sleep(WAL_RETRY_MS);
	}
	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "write to", err);
}

static int sqlite_version(struct backend *b, int *ret, struct error *err)
{
	struct error why = ERROR_INIT;
	int64_t version = 0;

	if (sqlite_run(b, SQL_VERSION, NULL, 0, take_integer, &version, &why) < 0 &&
	    !strstr(sqlite3_errmsg(sqlite_of(b)->db), "no such table: fumehood_schema_version")) {
		*err = why;
		return -1;
	}
	*ret = version < 0 || version > INT32_MAX ? INT32_MAX : (int)version;
	return 0;
}

static int sqlite_rows_begin(struct backend *b, enum sql_table table, struct error *err)
{
	struct sqlite *s = sqlite_of(b);

	s->filling = table;
	return s->inserts[table] ? 0 : prepare(s, &s->inserts[table], sql_insert(table), err);
}

static int sqlite_rows_add(struct backend *b, const struct value *row, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	sqlite3_stmt *insert = s->inserts[s->filling];

	if (bind_values(s, insert, row, strlen(sql_tables[s->filling].types), err) < 0)
		return -1;
	return step_rows(s, insert, NULL, NULL, err);
}

/* Who owns the file, and what every commit runs. */
static void sqlite_foresee_commit(struct backend *b)
{
	static const enum sql statements[] = {SQL_ANALYSIS_LOCK, SQL_TOKEN, SQL_NUMBER_TAKEN};
	static const enum sql_table tables[] = {TABLE_ATTEMPT, TABLE_LOG, TABLE_EVENT, TABLE_SAMPLE};
	struct sqlite *s = sqlite_of(b);
	struct error ignored = ERROR_INIT;

	(void)owner_of(s);
	for (size_t i = 0; i < ARRAY_SIZE(statements); i++)
		if (!s->statements[statements[i]])
			(void)prepare(s, &s->statements[statements[i]], sql_expand(statements[i], SQL_SQLITE),
				      &ignored);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (!s->inserts[tables[i]])
			(void)prepare(s, &s->inserts[tables[i]], sql_insert(tables[i]), &ignored);
}

static int take_state(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(enum blob_state *)arg = value_to_integer(row, 0) ? BLOB_OBJECT : BLOB_IN_DATABASE;
	return 0;
}

static int sqlite_blob_states(struct backend *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
			      enum blob_state *ret, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct value key = value_bytes(sha256[i], DIGEST_SIZE);

		ret[i] = BLOB_UNKNOWN;
		if (sqlite_run(b, SQL_BLOB_STATE, &key, 1, take_state, &ret[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Now and then while one statement takes long. */
static int on_progress(void *work)
{
	work_add(work, 0);
	return 0;
}

static int sqlite_verify(struct backend *b, row_fn fn, void *arg, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(s->db,
				      "SELECT integrity_check FROM pragma_integrity_check(100) "
				      "WHERE integrity_check <> 'ok'",
				      -1, &statement, NULL);
	int r;

	if (code != SQLITE_OK)
		return sqlite_error(s, code, "read", err);
	sqlite3_progress_handler(s->db, PROGRESS_STEPS, b->work ? on_progress : NULL, b->work);
	r = step_rows(s, statement, fn, arg, err);
	sqlite3_progress_handler(s->db, 0, NULL, NULL);
	sqlite3_finalize(statement);
	return r;
}

static struct backend *sqlite_close(struct backend *b)
{
	struct sqlite *s = sqlite_of(b);

	if (!b)
		return NULL;
	sqlite_post_forget(s);
	for (size_t i = 0; i < SQL_COUNT; i++)
		sqlite3_finalize(s->statements[i]);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(s->inserts[i]);
	sqlite_log_fold(s);
	if (sqlite3_close(s->db) == SQLITE_OK && s->db)
		bound_move(-VALUE_SIZE_MAX);
	fd_close(s->bell);
	free(s->path);
	free(s->owner);
	free(b->name);
	free(s);
	return NULL;
}
DEFINE_CLEANUP(struct backend *, sqlite_close);

static const struct backend_ops sqlite_ops = {
	.dialect = SQL_SQLITE,
	.close = sqlite_close,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.migrate_prepare = sqlite_migrate_prepare,
	.script = sqlite_script,
	.version = sqlite_version,
	.run = sqlite_run,
	.rows_begin = sqlite_rows_begin,
	.rows_add = sqlite_rows_add,
	.blob_states = sqlite_blob_states,
	.post_begin = sqlite_post_begin,
	.post_add = sqlite_post_add,
	.post_end = sqlite_post_end,
	.query = sqlite_query,
	.ring = sqlite_ring,
	.bell = sqlite_bell,
	.bell_read = sqlite_bell_read,
	.bell_end = sqlite_bell_end,
	.verify = sqlite_verify,
	.dump_begin = sqlite_dump_begin,
	.dump = sqlite_dump,
	.load = sqlite_load,
	.is_empty = sqlite_is_empty,
	.is_writable = sqlite_is_writable,
	.take_turns = sqlite_take_turns,
	.foresee_commit = sqlite_foresee_commit,
};

static int configure(struct sqlite *s, struct error *err)
{
	sqlite3 *db = s->db;
	int code;

	sqlite3_extended_result_codes(db, 1);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_SIZE_MAX);
	sqlite3_wal_hook(db, sqlite_log_note, s);
	if ((code = sqlite3_busy_timeout(db, s->busy_ms)) != SQLITE_OK ||
	    (code = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL)) != SQLITE_OK ||
	    /* What else lies in the file is the platform's: its schema is not ours to trust, nor what somebody planted on our tables. */
	    (code = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL)) != SQLITE_OK ||
	    (code = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL)) != SQLITE_OK ||
	    (code = sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL)) != SQLITE_OK ||
	    /* Whoever writes the log from its beginning again cuts what is left of an earlier, longer one. */
	    (code = sqlite3_exec(db, "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 4194304", NULL,
				 NULL, NULL)) != SQLITE_OK ||
	    /* sqlite_close() decides about checkpoints. */
	    (code = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL)) != SQLITE_OK ||
	    /* Not for the schema's own views and triggers, which are the platform's to write. */
	    (code = sqlite3_create_function_v2(db, "fumehood_owner", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, s,
					       give_owner, NULL, NULL, NULL)) != SQLITE_OK ||
	    (code = sqlite3_create_function_v2(db, "fumehood_bytes", 1,
					       SQLITE_UTF8 | SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC, s,
					       give_bytes, NULL, NULL, NULL)) != SQLITE_OK)
		return sqlite_error(s, code, "open", err);
	return 0;
}

/* Of the file that is open, not of another that has taken its place. */
static int find_owner(struct sqlite *s, struct error *err)
{
	const char *path = sqlite3_db_filename(s->db, "main");
	int64_t computed = 0;
	struct stat st;

	if (stat(path, &st) < 0)
		return error_system(err, errno, "cannot open the ledger %s", s->base.name);
	s->uid = st.st_uid;
	s->base.is_own = sqlite_file_is_own(path, &st);
	if (!s->base.is_own && sqlite_run(&s->base, SQL_COMPUTED, NULL, 0, take_integer, &computed, err) < 0)
		return -1;
	if (computed)
		return error_set(err, ERROR_LEDGER,
				 "the ledger %s has columns that somebody computes: it is not read",
				 s->base.name);
	if (has_moved(s))
		return error_set(err, ERROR_LEDGER,
				 "the ledger %s was replaced while it was opened: try again", s->base.name);
	return 0;
}

int sqlite_open(const struct ledger_url *url, unsigned flags, struct backend **ret, struct error *err)
{
	_cleanup_(sqlite_closep) struct backend *b = NULL;
	const char *path = url->location, *file;
	char shown[512];
	int code;

	b = calloc(1, sizeof(struct sqlite));
	if (!b)
		return error_memory(err);
	b->ops = &sqlite_ops;
	sqlite_of(b)->bell = -1;
	sqlite_of(b)->busy_ms = (int)url->busy_ms;
	text_escape_into(shown, sizeof shown, path, strlen(path));
	/* "./" because SQLite has its own ideas of "file:…" and ":memory:". */
	if (text_print(&b->name, err, "'%s'", shown) < 0 ||
	    text_print(&sqlite_of(b)->path, err, "%s%s", path[0] == '/' ? "" : "./", path) < 0)
		return -1;
	file = sqlite_of(b)->path;
	code = owned_check("ledger", file, OWNED_FILE | (flags & LEDGER_CREATE ? OWNED_MAKE : 0), err);
	if (code == -ENOENT) /* in the words of who looks for it, if it is still missing */
		(void)sqlite_file_check(file, b->name, url->any_filesystem, err);
	if (code < 0 ||
	    (flags & LEDGER_CREATE && sqlite_file_make(file, b->name, url->any_filesystem, err) < 0) ||
	    sqlite_file_check(file, b->name, url->any_filesystem, err) < 0)
		return -1;
	bound_move(VALUE_SIZE_MAX);
	/* Read-only is our promise, not a mode of opening: SQLite must be able to recover a WAL in order to read. */
	code = sqlite3_open_v2(file, &sqlite_of(b)->db,
			       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
			       sqlite_vfs_name());
	if (!sqlite_of(b)->db)
		bound_move(-VALUE_SIZE_MAX);
	if (code != SQLITE_OK)
		return sqlite_of(b)->db
			       ? sqlite_error(sqlite_of(b), sqlite3_extended_errcode(sqlite_of(b)->db),
					      "open", err)
			       : error_memory(err);
	if (configure(sqlite_of(b), err) < 0 || find_owner(sqlite_of(b), err) < 0)
		return -1;
	if (flags & LEDGER_LOOK) {
		code = sqlite3_exec(sqlite_of(b)->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
		if (code != SQLITE_OK)
			return sqlite_error(sqlite_of(b), code, "open", err);
	}
	*ret = TAKE_PTR(b);
	return 0;
}
