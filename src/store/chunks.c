#include "chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "pq_copy.h"
#include "text.h"

enum {
	CHUNK_SIZE = 256 * 1024,
	PAGE_CHUNKS = 16,      /* read at once, before any of it is written */
	GROUP_SIZE = 64 << 20, /* so much is put by one transaction, unless a single content is larger */
	GROUP_COUNT = 1024,
	PAGE_TRIES = 5,
};

/* ---- digests to and from the database ---- */

static int run_digests(struct ledger *l, enum sql which, const struct chunks_content *list, size_t n,
		       row_fn fn, void *arg, struct error *err)
{
	_cleanup_free_ uint8_t(*digests)[DIGEST_SIZE] = calloc(n, DIGEST_SIZE);
	_cleanup_buffer_ struct buffer array = {0};
	struct value param;

	if (!digests)
		return error_memory(err);
	for (size_t i = 0; i < n; i++)
		memcpy(digests[i], list[i].sha256, DIGEST_SIZE);
	if (copy_digests(&array, (const uint8_t(*)[DIGEST_SIZE])digests, n, err) < 0)
		return -1;
	param = value_bytes(array.data, array.size);
	return ledger_run(l, which, &param, 1, fn, arg, err);
}

/* ---- put ---- */

/* What one transaction puts. */
struct group {
	struct chunks_content *list;
	size_t n;
	const struct chunks_source *source;
	char *room; /* a chunk */
};

static int group_compare(const void *key, const void *member)
{
	return memcmp(key, ((const struct chunks_content *)member)->sha256, DIGEST_SIZE);
}

static int take_new(void *arg, const struct value *row, struct error *err)
{
	const struct group *g = arg;
	struct chunks_content *found;
	uint8_t sha256[DIGEST_SIZE];

	if (value_to_digest(&row[0], sha256, err) < 0)
		return -1;
	found = bsearch(sha256, g->list, g->n, sizeof *g->list, group_compare);
	if (found)
		found->is_new = true;
	return 0;
}

/* The next chunk whole, unless the file ends; its size. */
static ssize_t chunk_read(int fd, char *room, uint64_t at, struct error *err)
{
	size_t size = 0;
	ssize_t n = 1;

	while (size < CHUNK_SIZE && n != 0) {
		n = pread(fd, room + size, CHUNK_SIZE - size, (off_t)(at + size));
		if (n < 0 && errno != EINTR)
			return error_system(err, errno, "cannot read a content that is to be stored");
		size += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)size;
}

static int put_content(struct ledger *l, const struct group *g, const struct chunks_content *c,
		       struct error *err)
{
	_cleanup_close_ int fd = g->source->open(g->source->arg, c->content, err);
	uint8_t sha256[DIGEST_SIZE];
	struct digest d;
	uint64_t at = 0;

	if (fd < 0)
		return -1;
	digest_init(&d);
	for (int position = 0; at <= c->size; position++) {
		ssize_t n = chunk_read(fd, g->room, at, err);
		struct value row[] = {value_bytes(c->sha256, DIGEST_SIZE), value_integer(position),
				      value_bytes(g->room, n < 0 ? 0 : (size_t)n)};

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		digest_update(&d, g->room, (size_t)n);
		at += (uint64_t)n;
		if (ledger_rows_add(l, row, err) < 0)
			return -1;
		work_add(l->objects.work, (uint64_t)n);
	}
	digest_final(&d, sha256);
	if (at != c->size || memcmp(sha256, c->sha256, DIGEST_SIZE) != 0)
		return g->source->changed(g->source->arg, c->content, err);
	return 0;
}

static int put_group(struct ledger *l, void *arg, struct error *err)
{
	struct group *g = arg;
	bool any = false;

	for (size_t i = 0; i < g->n; i++)
		g->list[i].is_new = false;
	if (ledger_run(l, SQL_OBJECT_PATIENTLY, NULL, 0, NULL, NULL, err) < 0 ||
	    run_digests(l, SQL_OBJECT_ADD, g->list, g->n, take_new, g, err) < 0)
		return -1;
	for (size_t i = 0; i < g->n; i++)
		any = any || g->list[i].is_new;
	if (!any)
		return 1;
	if (ledger_rows_begin(l, TABLE_CHUNK, err) < 0)
		return -1;
	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].is_new && put_content(l, g, &g->list[i], err) < 0)
			return -1;
	return ledger_rows_end(l, err);
}

int chunks_put(struct ledger *l, struct chunks_content *list, size_t n, const struct chunks_source *source,
	       struct error *err)
{
	_cleanup_free_ char *room = malloc(CHUNK_SIZE);

	if (!room)
		return error_memory(err);
	for (size_t i = 0; i < n;) {
		struct group g = {.list = list + i, .source = source, .room = room};

		for (uint64_t sum = 0; i < n && g.n < GROUP_COUNT; i++, g.n++) {
			sum += list[i].size;
			if (g.n && sum > GROUP_SIZE)
				break;
		}
		if (ledger_transaction(l, put_group, &g, err) < 0)
			return -1;
	}
	return 0;
}

static int count_row(void *arg, const struct value *row UNUSED, struct error *err UNUSED)
{
	++*(size_t *)arg;
	return 0;
}

int chunks_hold(struct ledger *l, const struct chunks_content *list, size_t n, struct error *err)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i += GROUP_COUNT)
		if (run_digests(l, SQL_OBJECT_LOCK, list + i, n - i < GROUP_COUNT ? n - i : GROUP_COUNT,
				count_row, &found, err) < 0)
			return -1;
	if (found == n)
		return 0;
	return error_set(
		err, ERROR_SWEPT,
		"contents that were put into the ledger %s were removed before they were referred to",
		l->backend->name);
}

/* ---- copy ---- */

struct page {
	struct buffer bytes;
	int64_t next; /* position */
	int count;
	bool is_odd; /* a chunk is missing, or longer than they are */
};

static int take_chunk(void *arg, const struct value *row, struct error *err)
{
	struct page *p = arg;

	if (value_to_integer(&row[0], -1) != p->next || row[1].kind != VALUE_BYTES ||
	    row[1].size > CHUNK_SIZE || p->count == PAGE_CHUNKS) {
		p->is_odd = true;
		return 0;
	}
	p->next++;
	p->count++;
	buffer_append(&p->bytes, row[1].data, row[1].size);
	return buffer_check(&p->bytes, err);
}

/* All of a page before any of it is used: then it can be asked for again, and the server waits for nobody's pipe. */
static int page_read(struct ledger *l, const uint8_t *sha256, struct page *p, struct error *err)
{
	int64_t from = p->next;
	struct value params[] = {value_bytes(sha256, DIGEST_SIZE), value_integer(from),
				 value_integer(PAGE_CHUNKS)};
	int tries = PAGE_TRIES, r;

	do {
		p->next = from;
		p->count = 0;
		p->is_odd = false;
		p->bytes.size = 0;
		r = ledger_run(l, SQL_OBJECT_CHUNKS, params, ARRAY_SIZE(params), take_chunk, p, err);
	} while (r < 0 && err->kind == ERROR_AGAIN && --tries > 0);
	return r;
}

static int damaged(struct ledger *l, const uint8_t *sha256, const char *how, struct error *err)
{
	char hex[DIGEST_TEXT_SIZE];

	hex_encode(sha256, DIGEST_SIZE, hex);
	return error_damaged_ledger(err, "the object %s in the ledger %s is damaged: %s", hex,
				    l->backend->name, how);
}

static int copy_pages(struct ledger *l, const uint8_t *sha256, uint64_t size, int fd, struct page *p,
		      struct error *err)
{
	uint8_t found[DIGEST_SIZE];
	struct digest d;
	uint64_t at = 0;

	digest_init(&d);
	do {
		int r = page_read(l, sha256, p, err);

		if (r < 0)
			return r;
		if (p->next == 0 && !p->is_odd)
			return 0;
		at += p->bytes.size;
		work_add(l->objects.work, p->bytes.size);
		if (p->is_odd || at > size)
			return damaged(l, sha256, "its chunks are not those that were put", err);
		digest_update(&d, p->bytes.data, p->bytes.size);
		r = fd < 0 ? 0 : file_write_all(fd, p->bytes.data, p->bytes.size);
		if (r < 0)
			return error_system(err, -r, "cannot write a content of %llu bytes",
					    (unsigned long long)size);
	} while (p->count == PAGE_CHUNKS);
	digest_final(&d, found);
	if (at != size || memcmp(found, sha256, DIGEST_SIZE) != 0)
		return damaged(l, sha256, "its digest is another now", err);
	return 1;
}

int chunks_copy(struct ledger *l, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd, struct error *err)
{
	struct page p = {0};
	int r = copy_pages(l, sha256, size, fd, &p, err);

	buffer_free(&p.bytes);
	return r;
}

/* ---- sweep ---- */

int chunks_sweep(struct ledger *l, uint64_t *ret_removed, struct error *err)
{
	int64_t n;

	do {
		n = 0;
		if (ledger_ask(l, SQL_OBJECT_SWEEP, &n, err, value_integer(CHUNKS_GRACE_S)) < 0)
			return -1;
		*ret_removed += (uint64_t)n;
	} while (n > 0);
	return 0;
}

int chunks_orphans(struct ledger *l, row_fn fn, void *arg, struct error *err)
{
	const struct value grace = value_integer(CHUNKS_GRACE_S);

	return ledger_run(l, SQL_OBJECT_ORPHANS, &grace, 1, fn, arg, err);
}
