/*
 * db status and db check. The check reads every content once and hashes it; it holds no transaction open while it
 * reads objects, which may take long.
 */
#include "chunks.h"
#include "queue.h"
#include "store_id.h"

#include <stdio.h>
#include <string.h>

#include "member.h"
#include "text.h"

enum { PAGE_SIZE_ROWS = 256, PROBLEMS_MAX = 1000 };

static int counts_row(void *arg, const struct value *row, struct error *err UNUSED)
{
	static const char *const names[] = {"analyses", "attempts", "outputs", "blobs", "objects"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		json_put(arg, names[i], json_integer(value_to_integer(&row[i], 0)));
	return 0;
}

static int queue_status(struct ledger *l, json_t **status, struct error *err)
{
	uint64_t counts[JOB_STATES];
	json_t *queue;

	if (ledger_queue_counts(l, counts, err) < 0)
		return -1;
	queue = json_object();
	for (int i = 0; i < JOB_STATES; i++)
		json_put(&queue, job_state_name((enum job_state)i), json_integer((json_int_t)counts[i]));
	json_put(status, "queue", queue);
	return 0;
}

static int roles_status(struct ledger *l, json_t **status, struct error *err)
{
	bool has = false;

	if (ledger_has_roles(l, &has, err) < 0)
		return -1;
	json_put(status, "roles", json_boolean(has));
	return 0;
}

int ledger_status(struct ledger *l, json_t **ret, struct error *err)
{
	json_auto_t *status =
		json_pack("{s:s, s:b, s:i, s:i, s:s, s:o, s:I}", "url", l->shown, "pooled",
			  l->backend->is_pooled, "version", l->version, "wanted", sql_version_wanted,
			  "object_store", l->objects_inside ? "postgresql" : l->objects.path, "objects_max",
			  l->objects_inside ? json_integer((json_int_t)l->objects_max) : json_null(),
			  "blob_max", (json_int_t)l->blob_max);

	if (ledger_run(l, SQL_COUNTS, NULL, 0, counts_row, &status, err) < 0 ||
	    roles_status(l, &status, err) < 0)
		return -1;
	json_put(&status, "store", store_status(l));
	if (queue_status(l, &status, err) < 0)
		return -1;
	*ret = json_incref(status);
	return status ? 0 : error_memory(err);
}

struct check {
	struct ledger *l;
	json_t *problems;
	int64_t checked;
	enum store_state store;
	/* A page of blobs: where it ended, and which of it are objects. */
	size_t n_page, n_objects;
	uint8_t last[DIGEST_SIZE];
	struct {
		uint8_t sha256[DIGEST_SIZE];
		uint64_t size;
	} objects[PAGE_SIZE_ROWS];
};

static int PRINTF_LIKE(5, 6) problem(struct check *c, const char *kind, const uint8_t *sha256,
				     struct error *err, const char *format, ...)
{
	char hex[DIGEST_TEXT_SIZE], message[1024];
	json_t *object;
	va_list ap;

	va_start(ap, format);
	vsnprintf(message, sizeof message, format, ap);
	va_end(ap);
	if (sha256)
		hex_encode(sha256, DIGEST_SIZE, hex);
	object = json_pack("{s:s, s:s?, s:s}", "kind", kind, "object", sha256 ? hex : NULL, "message",
			   message);
	return json_array_append_new(c->problems, object) < 0 ? error_memory(err) : 0;
}

static int check_blob(void *arg, const struct value *row, struct error *err)
{
	struct check *c = arg;
	uint64_t size = (uint64_t)value_to_integer(&row[1], 0);
	uint8_t found[DIGEST_SIZE];

	if (value_to_digest(&row[0], c->last, err) < 0)
		return -1;
	c->n_page++;
	c->checked++;
	if (row[2].kind == VALUE_NULL) {
		memcpy(c->objects[c->n_objects].sha256, c->last, DIGEST_SIZE);
		c->objects[c->n_objects++].size = size;
		return 0;
	}
	digest_bytes(row[2].data, row[2].size, found);
	work_add(c->l->objects.work, row[2].size);
	if (row[2].size == size && memcmp(found, c->last, DIGEST_SIZE) == 0)
		return 0;
	return problem(c, "damaged", c->last, err,
		       "a content in the database is damaged: its digest is another now");
}

static int check_object(struct check *c, size_t i, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = ledger_copy_object(c->l, c->objects[i].sha256, c->objects[i].size, -1, &why);

	/* That the whole store is another one has been said. */
	if (r == 0 || (why.kind == ERROR_NOT_FOUND && c->store == STORE_WRONG))
		return 0;
	return problem(c, why.kind == ERROR_NOT_FOUND ? "missing" : "damaged", c->objects[i].sha256, err,
		       "%s", why.message);
}

static int check_contents(struct check *c, struct error *err)
{
	/* Before the smallest digest comes the empty one. */
	size_t last_size = 0;
	int64_t bytes = 0;

	if (c->l->objects.work && ledger_run(c->l, SQL_CONTENT_BYTES, NULL, 0, take_integer, &bytes, err) < 0)
		return -1;
	work_begin(c->l->objects.work, "checking contents", (uint64_t)bytes);
	do {
		struct value params[] = {value_bytes(c->last, last_size), value_integer(PAGE_SIZE_ROWS)};

		c->n_page = c->n_objects = 0;
		if (ledger_run(c->l, SQL_BLOB_PAGE, params, 2, check_blob, c, err) < 0)
			return -1;
		for (size_t i = 0; i < c->n_objects; i++)
			if (check_object(c, i, err) < 0)
				return -1;
		last_size = DIGEST_SIZE;
	} while (c->n_page == PAGE_SIZE_ROWS);
	return 0;
}

static int check_path(void *arg, const struct value *row, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	struct error why = ERROR_INIT;
	struct check *c = arg;

	if (value_to_below(&row[3], &path, &why) == 0 || json_array_size(c->problems) >= PROBLEMS_MAX)
		return 0;
	return problem(c, "database", NULL, err, "%s of %s, attempt %d: %s", value_words(&row[0]),
		       value_words(&row[1]), (int)value_to_integer(&row[2], 0), why.message);
}

static int check_reference(void *arg, const struct value *row, struct error *err)
{
	char path[256];

	text_escape_into(path, sizeof path, row[2].data, row[2].size);
	return problem(arg, "reference", NULL, err, "output '%s' of %s, attempt %d, %s", path,
		       row[0].kind == VALUE_TEXT ? value_words(&row[0]) : "?",
		       (int)value_to_integer(&row[1], 0),
		       row[4].kind == VALUE_NULL   ? "has lost its attempt"
		       : row[3].kind == VALUE_NULL ? "has lost its content"
						   : "has a content of another size");
}

static int check_orphan(void *arg, int dir UNUSED, const char *name, struct error *err)
{
	struct check *c = arg;
	uint8_t sha256[DIGEST_SIZE];

	(void)hex_decode(name, sha256, DIGEST_SIZE);
	c->checked++;
	return problem(c, "orphan", sha256, err,
		       "the object %s in '%s' belongs to nothing: 'fumehood gc' removes it", name,
		       c->l->objects.path);
}

static int check_orphan_chunks(void *arg, const struct value *row, struct error *err)
{
	struct check *c = arg;
	uint8_t sha256[DIGEST_SIZE];
	char hex[DIGEST_TEXT_SIZE];

	if (value_to_digest(&row[0], sha256, err) < 0)
		return -1;
	hex_encode(sha256, DIGEST_SIZE, hex);
	c->checked++;
	return problem(c, "orphan", sha256, err,
		       "the object %s in the database belongs to nothing: 'fumehood gc' removes it", hex);
}

static int check_database(void *arg, const struct value *row, struct error *err)
{
	return problem(arg, "database", NULL, err, "%s",
		       row[0].kind == VALUE_TEXT ? value_words(&row[0]) : "?");
}

static int check_store(struct check *c, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = c->l->objects_inside ? 0 : store_examine(c->l, &c->store, NULL, &why, &why);

	if (r < 0)
		c->store = STORE_WRONG;
	return c->store == STORE_WRONG ? problem(c, "store", NULL, err, "%s", why.message) : 0;
}

/* What stops one part of the check is a finding, too: the other parts go on. */
static int check_part(struct check *c, int r, const struct error *why, struct error *err)
{
	return r < 0 ? problem(c, "database", NULL, err, "%s", why->message) : 0;
}

static int check_all(struct check *c, bool *ret_busy, struct error *err)
{
	struct objects_owner owner = ledger_owner(c->l);
	struct backend *b = c->l->backend;
	struct error why = ERROR_INIT;
	int orphans;

	work_begin(c->l->objects.work, "checking the database", 0);
	if ((b->ops->verify && check_part(c, b->ops->verify(b, check_database, c, &why), &why, err) < 0) ||
	    check_store(c, err) < 0 || check_part(c, check_contents(c, &why), &why, err) < 0 ||
	    check_part(c, ledger_run(c->l, SQL_PATHS, NULL, 0, check_path, c, &why), &why, err) < 0 ||
	    check_part(c, ledger_run(c->l, SQL_DANGLING, NULL, 0, check_reference, c, &why), &why, err) < 0)
		return -1;
	if (ledger_has_chunks(c->l) &&
	    check_part(c, chunks_orphans(c->l, check_orphan_chunks, c, &why), &why, err) < 0)
		return -1;
	if (c->store != STORE_READY)
		return 0;
	orphans = objects_orphans(&c->l->objects, &owner, check_orphan, c, &why);
	*ret_busy = orphans == OBJECTS_BUSY;
	return check_part(c, orphans, &why, err);
}

int ledger_check(struct ledger *l, json_t **ret, struct error *err)
{
	struct check c = {.l = l, .problems = json_array()};
	bool busy = false;
	int r = c.problems ? check_all(&c, &busy, err) : error_memory(err);

	if (r < 0) {
		json_decref(c.problems);
		return r;
	}
	/* busy: commits were going on, so that orphans could not be told from what they are about to refer to. */
	*ret = json_pack("{s:I, s:o, s:b}", "checked", (json_int_t)c.checked, "problems", c.problems, "busy",
			 busy);
	return *ret ? 0 : error_memory(err);
}
