/*
 * An SQLite ledger to a file and back, by SQLite's own way of copying: one snapshot, in which others go on writing; and one transaction.
 */
#include "sqlite_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backup.h"
#include "file.h"
#include "text.h"

enum { WAIT_MS = 20, READ_SIZE = 256 * 1024 };

/* The reader's snapshot is that of the copy, and of what is read beside it. */
int sqlite_dump_begin(struct backend *b, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	int code =
		sqlite3_exec(s->db, "BEGIN; SELECT 1 FROM fumehood_schema_version LIMIT 1", NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "read", err);
}

static int copy_all(struct sqlite *s, sqlite3 *to, sqlite3 *from, const char *doing, struct error *err)
{
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
	int code, waited = 0;

	if (!copy)
		return error_set(err, ERROR_LEDGER, "cannot %s the ledger %s: %s", doing, s->base.name,
				 sqlite3_errmsg(to));
	while (((code = sqlite3_backup_step(copy, -1)) == SQLITE_BUSY || code == SQLITE_LOCKED) &&
	       waited < s->busy_ms)
		waited += sqlite3_sleep(WAIT_MS);
	sqlite3_backup_finish(copy);
	if (code == SQLITE_DONE)
		return 0;
	return error_set(err, ERROR_LEDGER, "cannot %s the ledger %s: %s", doing, s->base.name,
			 sqlite3_errstr(code));
}

/* So that it is one file, and can be read where nothing can be written. */
static int make_plain(struct sqlite *s, sqlite3 *db, struct error *err)
{
	int code = sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);

	return code == SQLITE_OK ? 0
				 : error_set(err, ERROR_LEDGER, "cannot finish the copy of the ledger %s: %s",
					     s->base.name, sqlite3_errmsg(db));
}

static int copy_to(struct sqlite *s, const char *path, sqlite3 *from, struct error *err)
{
	sqlite3 *to = NULL;
	int r = 0;

	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
		r = error_set(err, ERROR_LEDGER, "cannot make '%s': %s", path,
			      to ? sqlite3_errmsg(to) : "memory is out");
	if (r == 0)
		r = copy_all(s, to, from, "copy", err);
	if (r == 0)
		r = make_plain(s, to, err);
	sqlite3_close(to);
	return r;
}

/* Its digest, and that it is on disk. */
static int note_file(int dir, struct backup_files *files, struct error *err)
{
	_cleanup_close_ int fd = openat(dir, "ledger.db", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *room = malloc(READ_SIZE);
	struct backup_file file = {.name = "ledger.db"};
	struct digest d;
	ssize_t n;

	if (!room)
		return error_memory(err);
	digest_init(&d);
	while ((n = fd < 0 ? -1 : read(fd, room, READ_SIZE)) > 0) {
		digest_update(&d, room, (size_t)n);
		file.size += (uint64_t)n;
	}
	if (n < 0 || fchmod(fd, 0600) < 0 || fsync(fd) < 0)
		return error_system(err, errno, "cannot write 'ledger.db' of the backup");
	digest_final(&d, file.sha256);
	return backup_files_add(files, &file, err);
}

int sqlite_dump(struct backend *b, int dir, const char *path, struct backup_files *files, struct error *err)
{
	_cleanup_free_ char *name = path_join(path, "ledger.db");
	int r;

	if (!name)
		return error_memory(err);
	if (unlinkat(dir, "ledger.db", 0) < 0 && errno != ENOENT)
		return error_system(err, errno, "cannot write 'ledger.db' of the backup");
	r = copy_to(sqlite_of(b), name, sqlite_of(b)->db, err);
	return r < 0 ? r : note_file(dir, files, err);
}

/* ---- back ---- */

static int step_once(struct sqlite *s, sqlite3 *db, const char *text, const struct value *values, int n,
		     struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);

	for (int i = 0; code == SQLITE_OK && i < n; i++)
		code = values[i].kind == VALUE_NULL ? sqlite3_bind_null(statement, i + 1)
		       : values[i].kind == VALUE_INTEGER
			       ? sqlite3_bind_int64(statement, i + 1, values[i].integer)
		       : values[i].kind == VALUE_BYTES
			       ? sqlite3_bind_blob64(statement, i + 1, values[i].data, values[i].size,
						     SQLITE_STATIC)
			       : sqlite3_bind_text64(statement, i + 1, values[i].data, values[i].size,
						     SQLITE_STATIC, SQLITE_UTF8);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	sqlite3_finalize(statement);
	return code == SQLITE_DONE || code == SQLITE_ROW
		       ? 0
		       : error_set(err, ERROR_LEDGER, "cannot restore the ledger %s: %s", s->base.name,
				   sqlite3_errmsg(db));
}

struct store_copy {
	struct sqlite *s;
	sqlite3 *to;
};

/* Whose the ledger is, and which store it has, is not the backup's to say. */
static int keep_store(void *arg, const struct value *row, struct error *err)
{
	struct store_copy *c = arg;

	return step_once(
		c->s, c->to,
		"UPDATE fumehood_store SET ledger_id = ?1, store_id = ?2, joined_at = ?3, host = ?4, path = ?5",
		row, 5, err);
}

static int prepare_copy(struct backend *b, sqlite3 *from, const char *path, sqlite3 **ret, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	struct store_copy copy = {.s = s};
	int r = copy_to(s, path, from, err);

	if (r < 0)
		return r;
	if (sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return error_set(err, ERROR_LEDGER, "cannot restore the ledger %s: %s", b->name,
				 sqlite3_errmsg(*ret));
	copy.to = *ret;
	return b->ops->run(b, SQL_STORE_WHOLE, NULL, 0, keep_store, &copy, err);
}

int sqlite_load(struct backend *b, int dir UNUSED, const char *path, const struct backup_files *files UNUSED,
		struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	_cleanup_free_ char *name = path_join(path, "ledger.db"), *beside = NULL;
	sqlite3 *from = NULL, *copy = NULL;
	int r;

	if (!name)
		return error_memory(err);
	if (text_print(&beside, err, "%s-restore", s->path) < 0)
		return -1;
	unlink(beside);
	r = sqlite3_open_v2(name, &from, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
		    ? 0
		    : error_set(err, ERROR_LEDGER, "cannot open '%s': %s", name,
				from ? sqlite3_errmsg(from) : "memory is out");
	if (r == 0)
		r = prepare_copy(b, from, beside, &copy, err);
	if (r == 0)
		r = copy_all(s, s->db, copy, "restore", err);
	sqlite3_close(from);
	sqlite3_close(copy);
	unlink(beside);
	return r;
}

/* Tables of the platform's count: they would go. */
static int count(struct sqlite *s, const char *text, int64_t *ret, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(s->db, text, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	*ret = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
	sqlite3_finalize(statement);
	return code == SQLITE_ROW ? 0 : sqlite_error(s, code, "read", err);
}

int sqlite_is_empty(struct backend *b, bool *ret, struct error *err)
{
	int64_t rows = 0, others = 0;

	if (count(sqlite_of(b),
		  "SELECT EXISTS (SELECT 1 FROM fumehood_attempt) + EXISTS (SELECT 1 FROM fumehood_queue) + "
		  "EXISTS (SELECT 1 FROM fumehood_tombstone)",
		  &rows, err) < 0 ||
	    count(sqlite_of(b),
		  "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'fumehood\\_%' ESCAPE '\\' "
		  "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
		  &others, err) < 0)
		return -1;
	*ret = rows + others == 0;
	return 0;
}
