/*
 * The rows of one post-process on their way from its stdout to the ledger: checked line by line as they come, set aside
 * in a file (runs/{id}/rows), read from there by the commit, as often as it needs. Memory stays flat however many
 * there are. The file holds the site's tables too, so that whoever finishes the story after a crash needs nothing
 * else.
 *
 * spool_make, spool_feed …, spool_finish, spool_source; or spool_load, spool_source; spool_free.
 */
#ifndef RUN_SPOOL_H
#define RUN_SPOOL_H

#include "ledger.h"
#include "row.h"

#define SPOOL_NAME "rows"

struct spool;

/* tables: the configuration's. max_bytes: of rows in all. run_fd -1: nobody can take it up after a crash. */
int spool_make(int run_fd, const json_t *tables, uint64_t max_bytes, struct spool **ret, struct error *err);
/* What a dead supervisor left, or 0 rows where it left none. Damage is an error. */
int spool_load(int run_fd, struct spool **ret, struct error *err);
void spool_free(struct spool *s); /* NULL is fine */
DEFINE_CLEANUP(struct spool *, spool_free);
#define _cleanup_spool_ _cleanup_(spool_freep)

/* Bytes of stdout. False once a line was wrong: spool_why says what, all that follows is ignored. */
bool spool_feed(struct spool *s, const char *data, size_t size);
/* The end of stdout. False likewise. */
bool spool_finish(struct spool *s);
const struct error *spool_why(const struct spool *s);

uint64_t spool_rows(const struct spool *s);
struct row_source spool_source(struct spool *s);

#endif
