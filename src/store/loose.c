/*
 * Contents that nobody refers to any more.
 *
 * Who removes something marks the contents that it referred to (blob_loose), in the same transaction. Who refers to one takes its mark
 * away, in the same transaction too. So a sweep writes its own name into the marks, then looks, without a lock and for as long as
 * it takes, which of them anything refers to, and removes the others, as far as they have its name still: one that was marked
 * anew in between has lost it, and one that is referred to since has no mark. What PostgreSQL needs in locks for that is in schema_removal.h.
 *
 * Digests and not references are looked for: an index of outputs by digest would cost every commit more than a sweep costs now and
 * then. A crash leaves marks, which the next sweep takes over.
 */
#include "pq_copy.h"
#include "store.h"

#include <string.h>
#include <time.h>

#include "array.h"
#include "clock.h"

enum { PAGE = 512 };
/* As commit_stage.c has it, and why. */
static const uint64_t HOLD_NS = 150 * NSEC_PER_MSEC;
static const struct timespec PAUSE = {.tv_nsec = 120 * NSEC_PER_MSEC};

struct loose {
	char sweep[TOKEN_SIZE];
	uint8_t (*kept)[DIGEST_SIZE];
	size_t n_kept;
	/* A page of marks, the digest before it, and which of it nothing refers to. */
	uint8_t page[PAGE][DIGEST_SIZE], after[DIGEST_SIZE];
	size_t n_page, after_size;
	uint64_t removed, bytes;
};

static void loose_done(struct loose **x)
{
	if (*x)
		free((*x)->kept);
	free(*x);
}

static int digest_compare(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SIZE);
}

static int take_page(void *arg, const struct value *row, struct error *err)
{
	struct loose *x = arg;

	return x->n_page < PAGE ? value_to_digest(&row[0], x->page[x->n_page++], err) : 0;
}

static int take_kept(void *arg, const struct value *row, struct error *err)
{
	struct loose *x = arg;
	uint8_t(*more)[DIGEST_SIZE] = ARRAY_ADD(x->kept, x->n_kept);

	return more ? value_to_digest(&row[0], *more, err) : error_memory(err);
}

static void page_begin(struct loose *x)
{
	x->n_page = 0;
}

static void page_passed(struct loose *x)
{
	memcpy(x->after, x->page[x->n_page - 1], DIGEST_SIZE);
	x->after_size = DIGEST_SIZE;
}

static int claim_page(struct ledger *l, void *arg, struct error *err)
{
	struct loose *x = arg;

	page_begin(x);
	if (ledger_run(l, SQL_LOOSE_PAGE,
		       LEDGER_VALUES(value_bytes(x->after, x->after_size), value_integer(PAGE)), take_page, x,
		       err) < 0)
		return -1;
	if (x->n_page == 0)
		return 1;
	return ledger_do(l, SQL_LOOSE_CLAIM, err, value_text(x->sweep), value_bytes(x->after, x->after_size),
			 value_bytes(x->page[x->n_page - 1], DIGEST_SIZE));
}

static int claim_all(struct ledger *l, struct loose *x, struct error *err)
{
	do {
		if (ledger_transaction(l, claim_page, x, err) < 0)
			return -1;
		if (x->n_page)
			page_passed(x);
	} while (x->n_page == PAGE);
	x->after_size = 0;
	return 0;
}

static bool is_kept(const struct loose *x, const uint8_t sha256[DIGEST_SIZE])
{
	return x->n_kept && bsearch(sha256, x->kept, x->n_kept, DIGEST_SIZE, digest_compare);
}

static int take_swept(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct loose *x = arg;

	x->removed += (uint64_t)value_to_integer(&row[0], 0);
	x->bytes += (uint64_t)value_to_integer(&row[1], 0);
	return 0;
}

/* ---- PostgreSQL: a page in two statements ---- */

static int sweep_page_postgres(struct ledger *l, struct loose *x, struct error *err)
{
	_cleanup_buffer_ struct buffer kept = {0}, free_ones = {0};
	uint8_t list[PAGE][DIGEST_SIZE];
	size_t n = 0, left = 0;

	for (size_t i = 0; i < x->n_page; i++)
		if (is_kept(x, x->page[i]))
			memcpy(list[n++], x->page[i], DIGEST_SIZE);
	if (n && (copy_digests(&kept, (const uint8_t(*)[DIGEST_SIZE])list, n, err) < 0 ||
		  ledger_do(l, SQL_LOOSE_FORGET, err, value_bytes(kept.data, kept.size),
			    value_text(x->sweep)) < 0))
		return -1;
	for (size_t i = 0; i < x->n_page; i++)
		if (!is_kept(x, x->page[i]))
			memcpy(list[left++], x->page[i], DIGEST_SIZE);
	if (left == 0)
		return 0;
	if (copy_digests(&free_ones, (const uint8_t(*)[DIGEST_SIZE])list, left, err) < 0)
		return -1;
	return ledger_run(l, SQL_LOOSE_SWEEP,
			  LEDGER_VALUES(value_text(x->sweep), value_bytes(free_ones.data, free_ones.size)),
			  take_swept, x, err);
}

/* ---- SQLite: one by one ---- */

static int sweep_one(struct ledger *l, struct loose *x, const uint8_t sha256[DIGEST_SIZE], struct error *err)
{
	struct value key = value_bytes(sha256, DIGEST_SIZE), mine = value_text(x->sweep);
	int64_t size = -1;

	if (!is_kept(x, sha256)) {
		if (ledger_ask(l, SQL_LOOSE_SIZE, &size, err, key, mine) < 0 ||
		    (size >= 0 && ledger_do(l, SQL_LOOSE_SWEEP, err, key) < 0))
			return -1;
		x->removed += size >= 0;
		x->bytes += size > 0 ? (uint64_t)size : 0;
	}
	return ledger_do(l, SQL_LOOSE_FORGET, err, key, mine);
}

/* Until its time is over: what is left of the page comes with the next. */
static int sweep_page_sqlite(struct ledger *l, struct loose *x, struct error *err)
{
	uint64_t begun = clock_now();
	size_t i = 0;

	while (i < x->n_page && (i == 0 || clock_now() - begun < HOLD_NS))
		if (sweep_one(l, x, x->page[i++], err) < 0)
			return -1;
	x->n_page = i;
	return 0;
}

static int sweep_page(struct ledger *l, void *arg, struct error *err)
{
	struct loose *x = arg;

	page_begin(x);
	if (ledger_run(l, SQL_LOOSE_LEFT,
		       LEDGER_VALUES(value_text(x->sweep), value_bytes(x->after, x->after_size),
				     value_integer(PAGE)),
		       take_page, x, err) < 0)
		return -1;
	if (x->n_page == 0)
		return 1;
	return ledger_has_chunks(l) ? sweep_page_postgres(l, x, err) : sweep_page_sqlite(l, x, err);
}

static int sweep_all(struct ledger *l, struct loose *x, struct error *err)
{
	do {
		uint64_t removed = x->removed, bytes = x->bytes;
		int r = ledger_once(l, sweep_page, x, err);

		/* What it did may have been undone: then it is found again. */
		if (r < 0) {
			x->removed = removed;
			x->bytes = bytes;
			return r;
		}
		if (x->n_page) {
			page_passed(x);
			if (!ledger_has_chunks(l))
				nanosleep(&PAUSE, NULL);
		}
	} while (x->n_page);
	return 0;
}

static int sweep_marked(struct ledger *l, struct loose *x, struct error *err)
{
	struct value mine = value_text(x->sweep);
	bool trusts = !ledger_has_chunks(l);
	int r;

	if (claim_all(l, x, err) < 0 || ledger_run(l, SQL_LOOSE_KEPT, &mine, 1, take_kept, x, err) < 0)
		return -1;
	if (x->n_kept)
		x->n_kept = array_sort_distinct(x->kept, x->n_kept, DIGEST_SIZE, digest_compare);
	/* To have it proved for each that no output refers to it would be a walk through all of them. */
	if (trusts && l->backend->ops->script(l->backend, sql_sqlite_trusting, err) < 0)
		return -1;
	r = sweep_all(l, x, err);
	if (trusts && l->backend->ops->script(l->backend, sql_sqlite_checking, r < 0 ? NULL : err) < 0)
		r = -1;
	return r;
}

int ledger_sweep_loose(struct ledger *l, uint64_t *removed, uint64_t *bytes, struct error *err)
{
	_cleanup_(loose_done) struct loose *x = NULL;
	int64_t any = 0;
	int r;

	if (l->backend->only_submits)
		return 0;
	if (ledger_run(l, SQL_LOOSE_ANY, NULL, 0, take_integer, &any, err) < 0)
		return -1;
	if (!any)
		return 0;
	x = calloc(1, sizeof *x);
	if (!x)
		return error_memory(err);
	r = token_make(x->sweep, err);
	r = r < 0 ? r : sweep_marked(l, x, err);
	*removed += x->removed;
	*bytes += x->bytes;
	return r;
}
