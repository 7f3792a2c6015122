/*
 * Queries: what the analysis wants to know of the platform's database, asked before it starts, with the rights that the
 * site gives to strangers. Each answer waits as a CSV file beside the record (runs/{id}/query-N), is staged into the
 * workspace like any other input, and written down with the attempt. The analysis itself never touches the database.
 */
#include "private.h"
#include "clock.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const uint64_t default_timeout_ns = 30 * NSEC_PER_SEC;
static const uint64_t default_max_bytes = 256ULL << 20;

/* Like every list of a request: its own, else the site's default. */
static const struct request *asker(const struct hood *h, const struct request *r)
{
	return r->n_queries ? r : &h->config.defaults;
}

static uint64_t amount(const json_t *site, const char *key, int (*parse)(const char *, uint64_t *),
		       uint64_t fallback)
{
	const json_t *value = json_object_get(site, key);
	char number[32];
	uint64_t n;

	snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
	if (!value || parse(json_is_string(value) ? json_string_value(value) : number, &n) < 0)
		return fallback;
	return n;
}

int queries_check(const struct hood *h, const struct request *request, struct error *err)
{
	const struct request *r = asker(h, request);

	if (r->n_queries == 0)
		return 0;
	if (!h->config.query ||
	    (strncmp(h->ledger_url, "sqlite:", 7) != 0 && !json_object_get(h->config.query, "role")))
		return error_set(
			err, ERROR_REFUSED,
			"queries are refused here: nobody has said with which rights they may run; the configuration's "
			"query: {role: NAME} does");
	for (size_t i = 0; i < r->n_queries; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(r->queries[i].from, r->queries[k].from) == 0)
				return error_set(err, ERROR_USAGE, "two queries are named '%s'",
						 r->queries[i].from);
	return 0;
}

static int file_name(size_t i, char out[32])
{
	return snprintf(out, 32, "query-%zu", i);
}

static int run_one(struct hood *h, struct ledger *l, int run_fd, size_t i, struct query *q, struct error *err)
{
	const json_t *site = h->config.query;
	struct ledger_query query = {
		.sql = q->sql,
		.role = json_string_value(json_object_get(site, "role")),
		.passfile = json_string_value(json_object_get(site, "passfile")),
		.timeout_ms = amount(site, "timeout", duration_parse, default_timeout_ns) / NSEC_PER_MSEC,
		.max_bytes = amount(site, "max_bytes", size_parse, default_max_bytes),
	};
	uint64_t begun = clock_now();
	_cleanup_close_ int fd = -1;
	char name[32];
	int r;

	if (query.timeout_ms > 24 * 3600 * 1000 || query.timeout_ms == 0)
		query.timeout_ms = 24 * 3600 * 1000;
	file_name(i, name);
	fd = file_open_own(run_fd, name, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return error_system(err, -fd, "cannot make a file for the answer of query '%s'", q->name);
	q->started = clock_utc();
	r = ledger_query(l, &query, fd, &q->rows, err);
	q->duration_ms = (int64_t)((clock_now() - begun) / NSEC_PER_MSEC);
	return r < 0 ? error_prefix(err, r, "query '%s'", q->name) : 0;
}

int queries_run(struct hood *h, struct ledger *l, const struct request *request, int run_fd,
		struct attempt *a, struct error *err)
{
	const struct request *r = asker(h, request);
	for (size_t i = 0; i < r->n_queries; i++) {
		struct query *q = attempt_add_query(a, r->queries[i].from, r->queries[i].to);
		int e = q ? run_one(h, l, run_fd, i, q, err) : error_memory(err);

		if (e < 0)
			return e;
	}
	return 0;
}

static int note_input(struct attempt *a, struct query *q, struct error *err)
{
	struct input *in = (struct input *)inputs_find(&a->inputs, q->name);
	char *source = NULL;

	if (!in || asprintf(&source, "query:%s", q->name) < 0)
		return error_memory(err);
	free(in->source);
	in->source = source;
	memcpy(q->sha256, in->sha256, sizeof q->sha256);
	q->size = in->size;
	return 0;
}

int queries_stage(struct workspace *w, uint64_t max, uid_t uid, gid_t gid, struct attempt *a,
		  struct error *err)
{
	_cleanup_free_ char *runs = a->n_queries ? fd_path(w->run_fd) : NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n_queries; i++) {
		_cleanup_free_ char *path = NULL;
		char name[32];

		file_name(i, name);
		path = runs ? path_join(runs, name) : NULL;
		if (!path)
			return error_memory(err);
		r = workspace_stage(w, &(struct stage){.source = path, .as = a->queries[i].name}, max, uid,
				    gid, &a->inputs, err);
		r = r < 0 ? r : note_input(a, &a->queries[i], err);
		unlinkat(w->run_fd, name, 0);
	}
	return r;
}
