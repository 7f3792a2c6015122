/*
 * An SQLite ledger to a file, by SQLite's own way of copying: one snapshot, in which others go on writing. And back, row by row, into the
 * tables that we have made, in one transaction: the file is a stranger's.
 */
#include "sqlite_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backup.h"
#include "file.h"
#include "sqlite_file.h"
#include "text.h"

enum { WAIT_MS = 20 };

/* The reader's snapshot is that of the copy, and of what is read beside it. */
int sqlite_dump_begin(struct backend *b, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	int code =
		sqlite3_exec(s->db, "BEGIN; SELECT 1 FROM fumehood_schema_version LIMIT 1", NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : sqlite_error(s, code, "read", err);
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
	sqlite3_backup *copy;
	sqlite3 *to = NULL;
	int r = 0, code = SQLITE_NOMEM, waited = 0;

	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, sqlite_vfs_name()) !=
	    SQLITE_OK)
		r = error_set(err, ERROR_LEDGER, "cannot make '%s': %s", path,
			      to ? sqlite3_errmsg(to) : "memory is out");
	copy = r == 0 ? sqlite3_backup_init(to, "main", from, "main") : NULL;
	while (copy && ((code = sqlite3_backup_step(copy, -1)) == SQLITE_BUSY || code == SQLITE_LOCKED) &&
	       waited < s->busy_ms)
		waited += sqlite3_sleep(WAIT_MS);
	sqlite3_backup_finish(copy);
	if (r == 0 && code != SQLITE_DONE)
		r = error_set(err, ERROR_LEDGER, "cannot copy the ledger %s: %s", s->base.name,
			      sqlite3_errstr(code));
	if (r == 0)
		r = make_plain(s, to, err);
	sqlite3_close(to);
	return r;
}

/* Its digest, and that it is on disk. */
static int note_file(int dir, struct backup_files *files, struct error *err)
{
	_cleanup_close_ int fd = openat(dir, "ledger.db", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct backup_file file = {.name = "ledger.db"};
	int r = fd < 0 || fchmod(fd, 0600) < 0 ? -errno : backup_sum(fd, -1, UINT64_MAX, &file);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		return error_system(err, -r, "cannot write 'ledger.db' of the backup");
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

/* Rows come out of it, and nothing else: what a view says, or an expression of a column, is not run; nor is there a virtual table. */
static int only_rows(void *arg UNUSED, int action, const char *table UNUSED, const char *column UNUSED,
		     const char *database UNUSED, const char *view)
{
	return action == SQLITE_SELECT || (action == SQLITE_READ && !view) ? SQLITE_OK : SQLITE_DENY;
}

static int load_error(struct sqlite *s, sqlite3 *db, struct error *err)
{
	return error_set(err, ERROR_LEDGER, "cannot restore the ledger %s: %s; nothing was restored",
			 s->base.name, db ? sqlite3_errmsg(db) : "memory is out");
}

/* A file of ours, which nobody exchanges or changes while it is read. A backup's has no log beside it, nor wants one. */
static int take_copy(struct sqlite *s, int dir, const struct backup_files *files, const char *path,
		     sqlite3 **ret, struct error *err)
{
	const struct backup_file *file = backup_files_find(files, "ledger.db");
	_cleanup_close_ int fd = -1;
	char modes[2] = "";

	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_system(err, errno, "cannot make '%s'", path);
	if (file && backup_read(dir, file, fd, err) < 0)
		return -1;
	if (!file || pread(fd, modes, 2, 18) != 2 || memcmp(modes, "\1\1", 2) != 0)
		return error_set(err, ERROR_REFUSED,
				 "the backup has no 'ledger.db' that `db backup` has made");
	if (sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, sqlite_vfs_name()) !=
		    SQLITE_OK ||
	    sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) != SQLITE_OK ||
	    sqlite3_drop_modules(*ret, NULL) != SQLITE_OK ||
	    sqlite3_set_authorizer(*ret, only_rows, NULL) != SQLITE_OK)
		return load_error(s, *ret, err);
	return 0;
}

/* For each table of ours what empties, reads and fills it; what refers to another comes after it. Whose the ledger is, and which store it
 * has, is not the backup's to say. */
static const char load_plan[] =
	"SELECT 'DELETE FROM main.' || t.name, 'SELECT ' || group_concat(c.name) || ' FROM main.' || t.name, "
	"'INSERT INTO main.' || t.name || '(' || group_concat(c.name) || ') VALUES (' || group_concat('?') || ')' "
	"FROM (SELECT printf('\"%w\"', name) AS name, name AS plain FROM main.sqlite_master WHERE type = 'table' AND name GLOB 'fumehood_*' "
	"AND name NOT IN ('fumehood_schema_version', 'fumehood_store')) t, "
	"(SELECT m.name AS plain, printf('\"%w\"', i.name) AS name FROM main.sqlite_master m, pragma_table_info(m.name) i) c "
	"WHERE c.plain = t.plain GROUP BY t.plain ORDER BY CASE t.plain "
	"WHEN 'fumehood_analysis' THEN 0 WHEN 'fumehood_attempt' THEN 1 WHEN 'fumehood_blob' THEN 2 ELSE 3 END, t.plain";

static int copy_rows(struct sqlite *s, sqlite3 *backup, const char *select, const char *insert,
		     struct error *err)
{
	sqlite3_stmt *from = NULL, *to = NULL;
	int r = 0, code = SQLITE_DONE;

	if (sqlite3_prepare_v2(backup, select, -1, &from, NULL) != SQLITE_OK)
		r = load_error(s, backup, err);
	else if (sqlite3_prepare_v2(s->db, insert, -1, &to, NULL) != SQLITE_OK)
		r = load_error(s, s->db, err);
	while (r == 0 && (code = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		if (sqlite3_step(to) != SQLITE_DONE || sqlite3_reset(to) != SQLITE_OK)
			r = load_error(s, s->db, err);
	}
	if (r == 0 && code != SQLITE_DONE)
		r = load_error(s, backup, err);
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	return r;
}

static int load_tables(struct backend *b, sqlite3 *backup, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	char **plan = NULL; /* its first row is a title */
	int n = 0, r = 0;

	if (sqlite3_get_table(s->db, load_plan, &plan, &n, NULL, NULL) != SQLITE_OK)
		return load_error(s, s->db, err);
	for (int i = n; r == 0 && i > 0; i--)
		if (sqlite3_exec(s->db, plan[3 * i], NULL, NULL, NULL) != SQLITE_OK)
			r = load_error(s, s->db, err);
	for (int i = 1; r == 0 && i <= n; i++)
		r = copy_rows(s, backup, plan[3 * i + 1], plan[3 * i + 2], err);
	sqlite3_free_table(plan);
	return r < 0 ? r : b->ops->run(b, SQL_QUEUE_RESTORED, NULL, 0, NULL, NULL, err);
}

int sqlite_load(struct backend *b, int dir, const struct backup_files *files, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	_cleanup_free_ char *beside = NULL;
	sqlite3 *backup = NULL;
	int r;

	if (text_print(&beside, err, "%s-restore", s->path) < 0)
		return -1;
	r = take_copy(s, dir, files, beside, &backup, err);
	if (r == 0 && (r = b->ops->begin(b, NULL, err)) == 0) {
		/* What the platform has hung on our tables is about what happens, not about what is put back. */
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
		r = load_tables(b, backup, err);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);
		if (r < 0 || (r = b->ops->commit(b, err)) < 0)
			b->ops->rollback(b);
	}
	sqlite3_close(backup);
	unlink(beside);
	return r;
}

int sqlite_is_empty(struct backend *b, bool *ret, struct error *err)
{
	char **found = NULL; /* a title, and a number */
	int code = sqlite3_get_table(
		sqlite_of(b)->db,
		"SELECT EXISTS (SELECT 1 FROM fumehood_attempt) + EXISTS (SELECT 1 FROM fumehood_queue) + "
		"EXISTS (SELECT 1 FROM fumehood_tombstone)",
		&found, NULL, NULL, NULL);

	*ret = code == SQLITE_OK && strcmp(found[1], "0") == 0;
	sqlite3_free_table(found);
	return code == SQLITE_OK ? 0 : sqlite_error(sqlite_of(b), code, "read", err);
}
