/*
 * The write-ahead log of an SQLite file: how long it gets, and who folds it into the file.
 */
#include "sqlite_private.h"

#include <sys/stat.h>

enum {
	LOG_PAGES_KEPT = 100,
	LOG_PAGES_MOST = 1000,
	LOG_BYTES_KEPT = 4 << 20,
	LOG_BYTES_MOST = 8 * LOG_BYTES_KEPT,
};

/* The log as a file is as long as it ever was; what is in it may be less, or nothing. */
static bool is_longer(const struct sqlite *s, off_t most)
{
	struct stat st;

	return stat(sqlite3_filename_wal(sqlite3_db_filename(s->db, "main")), &st) == 0 && st.st_size > most;
}

/* Folded in first, which holds up nobody, however long it takes; cut only when that was all. While somebody reads what is in
 * it, it stays as it is, for the next one who comes by here. */
static void shorten(struct sqlite *s)
{
	int pages = -1, folded = -1;

	sqlite3_busy_timeout(s->db, 0);
	if (sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &folded) == SQLITE_OK &&
	    pages == folded)
		sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_busy_timeout(s->db, s->busy_ms);
}

/* After each commit: how long the log is now. A process that stays, such as a worker, folds it in as SQLite would, and what
 * a large commit has left of it, cuts. */
int sqlite_log_note(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct sqlite *s = arg;

	sqlite_turn_give(s); /* it is committed */
	s->log_pages = pages;
	if (pages >= LOG_PAGES_MOST)
		sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (is_longer(s, LOG_BYTES_MOST))
		shorten(s);
	return SQLITE_OK;
}

/* Every run opens and closes the ledger. If each close folded the log into the file, each run would pay for several
 * fsyncs instead of one; if none did, each open would read a log that grows for ever, since who opens it first cannot
 * know what of it was folded in already. Whoever is at work with it now does it instead, so nobody waits. */
void sqlite_log_fold(struct sqlite *s)
{
	if (!s->db)
		return;
	if (s->log_pages >= LOG_PAGES_KEPT || is_longer(s, LOG_BYTES_KEPT))
		shorten(s);
}
