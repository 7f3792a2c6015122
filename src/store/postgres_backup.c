/*
 * A PostgreSQL ledger to files and back: our tables by COPY, in its binary form, out of one snapshot and into one transaction.
 *
 * Who owns a row is a column like any other here, which triggers would write anew: they are off while it is restored, for this
 * transaction, which has the tables to itself. Restoring is for the tables' owner.
 */
#include "postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "backup.h"
#include "file.h"
#include "text.h"

/* What refers to another comes after it. */
static const char tables_text[] =
	"SELECT c.relname::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_class c "
	"JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
	"WHERE c.relnamespace = to_regnamespace('fumehood') AND c.relkind = 'r' AND c.relname NOT IN ('schema_version', 'store') "
	"GROUP BY c.relname ORDER BY coalesce(array_position(ARRAY['analysis', 'attempt', 'blob', 'object'], c.relname::text), 9), "
	"c.relname";

static int take_table(void *arg, struct pq *q, const PGresult *result, struct error *err)
{
	struct backup_files *tables = arg;

	for (int i = 0; i < q->PQntuples(result); i++) {
		struct backup_file file = {.columns = q->PQgetvalue(result, i, 1)};

		snprintf(file.name, sizeof file.name, "tables/%.60s", q->PQgetvalue(result, i, 0));
		if (backup_files_add(tables, &file, err) < 0)
			return -1;
	}
	return 0;
}

static int list_tables(struct postgres *p, struct backup_files *ret, struct error *err)
{
	return pq_query(&p->q, tables_text, take_table, ret, pq_error, err);
}

static const char *table_name(const struct backup_file *file)
{
	return file->name + strlen("tables/");
}

int postgres_dump_begin(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);

	if (b->only_submits)
		return error_set(
			err, ERROR_REFUSED,
			"cannot back up the ledger %s: whoever logs in there sees only what is its own; its owner, or a "
			"worker, sees all of it",
			b->name);
	if ((p->q.lost && postgres_reconnect(p, err) < 0) || b->ops->begin(b, NULL, err) < 0)
		return -1;
	return pq_exec(&p->q, "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
}

/* Rows until the end of the COPY; what follows is its result. */
static int read_rows(struct pq *q, struct backup_writer *w, struct error *err)
{
	for (;;) {
		char *row = NULL;
		int n = q->PQgetCopyData(q->conn, &row, 1), r;

		if (n < 0)
			return n == -1 ? pq_results(q, NULL, NULL, pq_error, err) : pq_lost(q, err);
		r = n > 0 ? backup_writer_put(w, row, (size_t)n, err) : pq_wait(q, err);
		q->PQfreemem(row);
		if (r < 0)
			return r;
	}
}

static int dump_table(struct postgres *p, const struct backup_file *table, int dir,
		      struct backup_files *files, struct error *err)
{
	_cleanup_(backup_writer_done) struct backup_writer w = {.fd = -1};
	_cleanup_free_ char *text = NULL;
	PGresult *result = NULL;
	struct pq *q = &p->q;
	int r = 0;

	if (text_print(&text, err, "COPY fumehood.\"%s\"(%s) TO STDOUT (FORMAT binary)", table_name(table),
		       table->columns) < 0 ||
	    backup_writer_open(&w, dir, table->name, err) < 0)
		return -1;
	w.file.columns = table->columns;
	if (!q->PQsendQuery(q->conn, text))
		return pq_lost(q, err);
	if (pq_result(q, &result, err) < 0)
		return -1;
	if (q->PQresultStatus(result) != PGRES_COPY_OUT)
		r = pq_error(q, result, err);
	q->PQclear(result);
	if (r < 0 || read_rows(q, &w, err) < 0)
		return -1;
	return backup_writer_close(&w, files, err);
}

int postgres_dump(struct backend *b, int dir, const char *path UNUSED, struct backup_files *files,
		  struct error *err)
{
	_cleanup_(backup_files_done) struct backup_files tables = {0};
	int r = dir_make_own(dir, "tables", 0700);

	if (r < 0 && r != -EEXIST)
		return error_system(err, -r, "cannot make 'tables' of the backup");
	if (list_tables(postgres_of(b), &tables, err) < 0)
		return -1;
	for (size_t i = 0; i < tables.n; i++)
		if (dump_table(postgres_of(b), &tables.list[i], dir, files, err) < 0)
			return -1;
	return 0;
}

/* ---- back ---- */

static int load_table(struct postgres *p, const struct backup_file *table, int dir, struct error *err)
{
	_cleanup_close_ int fd = backup_open(dir, table->name, NULL, err);
	_cleanup_free_ char *text = NULL;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	if (text_print(&text, err, "COPY fumehood.\"%s\"(%s) FROM STDIN (FORMAT binary)", table_name(table),
		       table->columns) < 0 ||
	    copy_in_begin(p, text, pq_error, err) < 0)
		return -1;
	while (n > 0) {
		if (buffer_reserve(&p->rows, COPY_CHUNK) < 0)
			return error_memory(err);
		n = read(fd, p->rows.data, COPY_CHUNK);
		if (n < 0)
			return error_system(err, errno, "cannot read '%s' of the backup", table->name);
		p->rows.size = (size_t)n;
		if (n > 0 && copy_in_send(p, err) < 0)
			return -1;
	}
	return copy_in_end(p, pq_error, err);
}

/* A table that only one of them has: what is in it can be given again (`db init --roles`). */
static int check_table(const struct backup_file *here, const struct backup_files *files, struct error *err)
{
	const struct backup_file *there = backup_files_find(files, here->name);

	if (!there)
		return 0;
	if (there->columns && strcmp(there->columns, here->columns) == 0)
		return 1;
	return error_set(
		err, ERROR_REFUSED,
		"the backup has other columns in '%s' than the ledger: restore it with the fumehood that made it",
		here->name);
}

static int for_each(struct postgres *p, const struct backup_files *tables, const char *format,
		    struct error *err)
{
	for (size_t i = 0; i < tables->n; i++) {
		_cleanup_buffer_ struct buffer b = {0};

		buffer_puts(&b, "ALTER TABLE fumehood.\"");
		buffer_puts(&b, table_name(&tables->list[i]));
		buffer_puts(&b, format);
		if (buffer_check(&b, err) < 0 || pq_exec(&p->q, b.data, err) < 0)
			return -1;
	}
	return 0;
}

static int empty_tables(struct postgres *p, const struct backup_files *tables, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};

	for (size_t i = 0; i < tables->n; i++)
		buffer_printf(&b, "%s fumehood.\"%s\"", i ? "," : "TRUNCATE", table_name(&tables->list[i]));
	return buffer_check(&b, err) < 0 ? -1 : pq_exec(&p->q, b.data, err);
}

static int load_all(struct postgres *p, int dir, const struct backup_files *files, struct error *err)
{
	_cleanup_(backup_files_done) struct backup_files tables = {0};
	int r;

	if (list_tables(p, &tables, err) < 0 || empty_tables(p, &tables, err) < 0 ||
	    for_each(p, &tables, "\" DISABLE TRIGGER USER", err) < 0)
		return -1;
	for (size_t i = 0; i < tables.n; i++) {
		r = check_table(&tables.list[i], files, err);
		if (r < 0 || (r == 1 && load_table(p, &tables.list[i], dir, err) < 0))
			return -1;
	}
	if (p->base.ops->run(&p->base, SQL_QUEUE_RESTORED, NULL, 0, NULL, NULL, err) < 0 ||
	    for_each(p, &tables, "\" ENABLE TRIGGER USER", err) < 0)
		return -1;
	return pq_exec(&p->q,
		       "SELECT setval(pg_get_serial_sequence('fumehood.queue', 'seq'), "
		       "(SELECT coalesce(max(seq), 0) + 1 FROM fumehood.queue), false)",
		       err);
}

int postgres_load(struct backend *b, int dir, const struct backup_files *files, struct error *err)
{
	if (b->ops->begin(b, NULL, err) < 0)
		return -1;
	if (load_all(postgres_of(b), dir, files, err) == 0 && b->ops->commit(b, err) == 0)
		return 0;
	b->ops->rollback(b);
	return -1;
}

int postgres_is_empty(struct backend *b, bool *ret, struct error *err)
{
	int rows = 0;

	if (pq_exec_number(&postgres_of(b)->q,
			   "SELECT ((SELECT count(*) FROM (SELECT 1 FROM fumehood.attempt LIMIT 1) a) + "
			   "(SELECT count(*) FROM (SELECT 1 FROM fumehood.queue LIMIT 1) q) + "
			   "(SELECT count(*) FROM (SELECT 1 FROM fumehood.tombstone LIMIT 1) t))::integer",
			   &rows, err) < 0)
		return -1;
	*ret = rows == 0;
	return 0;
}
