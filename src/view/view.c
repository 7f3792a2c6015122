#include "view.h"

#include <stdio.h>
#include <string.h>

#include "member.h"
#include "print.h"
#include "text.h"

int view_json(FILE *to, const struct look *look, const json_t *json, struct error *err)
{
	/* On a terminal everything beyond ASCII is escaped: names may hold what a terminal obeys. */
	size_t flags = JSON_INDENT(2) | JSON_ENCODE_ANY | (look->obeys ? JSON_ENSURE_ASCII : 0);

	if (!json || (json_dumpf(json, to, flags) < 0 && !ferror(to)))
		return error_memory(err);
	fputc('\n', to);
	return 0;
}

/* The ledger does not know it, but this host does. */
static int explain_live(struct hood *h, const char *id, int r, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct live l;
	const char *state;

	if (hood_live(h, id, &l, &ignored) < 0)
		return r;
	state = live_state(&l);
	error_set(err, ERROR_NOT_FOUND, "'%s' is %s here, and nothing of it is in the ledger yet%s", id,
		  state,
		  l.pending	      ? ": fumehood show says why, fumehood gc finishes it"
		  : l.held || l.alive ? ""
				      : ": fumehood gc records what became of it");
	live_done(&l);
	return r;
}

int view_load(struct hood *h, const char *id, int attempt, struct ledger **ret_ledger, struct attempt *ret,
	      struct error *err)
{
	int r = id_check(id, err);

	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, ret_ledger, err);
	if (r < 0)
		return r;
	r = ledger_load(*ret_ledger, id, attempt, ret, err);
	return r < 0 && err->kind == ERROR_NOT_FOUND && attempt == 0 ? explain_live(h, id, r, err) : r;
}

/* ---- outputs ---- */

json_t *view_outputs_json(const struct attempt *a)
{
	const struct json_entry entries[] = {
		{"id", json_string(a->id)},
		{"attempt", json_integer(a->number)},
		{"verdict", json_string(verdict_name(a->verdict))},
		{"outputs", manifest_outputs_to_json(&a->manifest)},
		{"rejected_outputs", manifest_rejected_to_json(&a->manifest)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

int view_outputs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	int r;

	attempt_init(&a);
	r = view_load(h, id, attempt, &ledger, &a, err);
	if (r < 0)
		return r;
	*ret = view_outputs_json(&a);
	return *ret ? 0 : error_memory(err);
}

int view_outputs_table(FILE *to, const struct manifest *m, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .right = 2};
	char size[PRINT_ROOM], digest[DIGEST_TEXT_SIZE];

	table_add(&t, "SHA-256", "SIZE", "TYPE", "PATH");
	for (size_t i = 0; i < m->n_outputs; i++) {
		_cleanup_free_ char *path = print_escape(m->outputs[i].path);

		hex_encode(m->outputs[i].sha256, 8, digest);
		table_add(&t, digest, print_size((int64_t)m->outputs[i].size, size), m->outputs[i].media_type,
			  path);
	}
	if (table_print(&t, to, err) < 0)
		return -1;
	for (size_t i = 0; i < m->n_rejected; i++) {
		_cleanup_free_ char *path = print_escape(m->rejected[i].path);

		fprintf(to, "refused: %s (%s)\n", path, m->rejected[i].reason);
	}
	if (m->n_rejected_more > 0)
		fprintf(to, "refused: %llu more\n", (unsigned long long)m->n_rejected_more);
	return 0;
}

/* ---- logs ---- */

static json_t *captured_json(const struct captured *c)
{
	json_auto_t *json = json_object();

	if (json_set_bytes(json, "head", c->head, c->head_size) ||
	    json_set_bytes(json, "tail", c->tail, c->tail_size) ||
	    json_object_set_new(json, "omitted", json_integer((json_int_t)c->omitted)))
		return NULL;
	return json_incref(json);
}

static int add_stream(json_t **json, int stream, struct ledger *l, const struct attempt *a, int lines,
		      struct error *err)
{
	_cleanup_(captured_done) struct captured c = {0};
	int r = ledger_load_log(l, a, stream, &c, err);

	if (r < 0)
		return r;
	if (lines > 0)
		captured_keep_lines(&c, lines);
	json_put(json, stream_name(stream), captured_json(&c));
	return 0;
}

int view_logs_load(struct ledger *l, const struct attempt *a, const bool wanted[STREAM_POST + 1], int lines,
		   json_t **ret, struct error *err)
{
	json_auto_t *json = json_pack("{s:s, s:i}", "id", a->id, "attempt", a->number);
	int r;

	for (int i = 0; i <= STREAM_POST; i++)
		if (wanted[i] && (r = add_stream(&json, i, l, a, lines, err)) < 0)
			return r;
	*ret = json_incref(json);
	return json ? 0 : error_memory(err);
}

int view_logs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	static const bool all[STREAM_POST + 1] = {true, true, true};
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	int r;

	attempt_init(&a);
	r = view_load(h, id, attempt, &ledger, &a, err);
	return r < 0 ? r : view_logs_load(ledger, &a, all, 0, ret, err);
}

/* ---- the house ---- */

/* What failed is part of the answer: the rest was done all the same. */
static json_t *failure_json(const struct error *err)
{
	_cleanup_free_ char *message = text_safe(err->message);

	return json_pack("{s:s, s:s, s:s}", "stage", err->stage ? err->stage : "gc", "code",
			 error_kind_name(err->kind), "message", message ? message : "?");
}

void view_gc_rows(const struct gc_report *g, struct gc_row rows[GC_ROWS])
{
	const struct gc_row all[GC_ROWS] = {
		{"committed", g->committed, "pending or finished, and now committed"},
		{"lost", g->lost, "recorded as lost"},
		{"given_up", g->given_up, "pending, cancelled, and given up"},
		{"removed", g->removed, "removed"},
		{"pruned", g->pruned, "no longer retained, and removed from the ledger"},
		{"objects", g->objects, "unused objects removed"},
		{"alive", g->alive, "alive, left alone"},
		{"foreign", g->foreign, "not ours, left alone"},
		{"failed", g->failed, "failed"},
	};

	memcpy(rows, all, sizeof all);
}

int view_gc(struct hood *h, json_t **ret, struct error *err)
{
	json_auto_t *json = json_object();
	struct gc_row rows[GC_ROWS];
	struct gc_report g = {0};
	int r = hood_gc(h, &g, err);

	if (r < 0 && g.failed == 0)
		return r;
	view_gc_rows(&g, rows);
	for (size_t i = 0; i < GC_ROWS; i++)
		json_put(&json, rows[i].key, json_integer((json_int_t)rows[i].n));
	if (g.failed > 0)
		json_put(&json, "error", failure_json(err));
	*ret = json_incref(json);
	return json ? g.failed > 0 : error_memory(err);
}

static void on_item(void *arg, const struct doctor_item *item)
{
	_cleanup_free_ char *detail = text_safe(item->detail), *remedy = text_safe(item->remedy);

	json_array_append_new(arg, json_pack("{s:s, s:b, s:b, s:s?, s:s?}", "name", item->name, "ok",
					     item->ok, "required", item->required, "detail", detail, "remedy",
					     remedy && *remedy ? remedy : NULL));
}

static json_t *names_not_held(const json_t *items)
{
	json_t *names = json_array();
	const json_t *item;
	size_t i;

	json_array_foreach (items, i, item)
		if (json_is_false(json_object_get(item, "ok")))
			json_array_append(names, json_object_get(item, "name"));
	return names;
}

int view_doctor(struct hood *h, json_t **ret, struct error *err)
{
	json_t *items = json_array();
	int found = items ? hood_doctor(h, on_item, items, err) : error_memory(err);

	if (found < 0) {
		json_decref(items);
		return found;
	}
	*ret = json_pack("{s:b, s:o?, s:o}", "ok", found == 0, "not_held", names_not_held(items), "items",
			 items);
	return *ret ? found : error_memory(err);
}

struct findings {
	const struct look *look;
	bool quiet;
	struct table *table;
	struct buffer not_held, missing; /* names, with commas between them */
};

static void findings_done(struct findings *f)
{
	buffer_free(&f->not_held);
	buffer_free(&f->missing);
}

static void add_finding(void *arg, const struct doctor_item *item)
{
	struct findings *f = arg;
	_cleanup_free_ char *detail = text_safe(item->detail), *remedy = text_safe(item->remedy),
			    *line = NULL;

	if (!item->ok) {
		struct buffer *b = item->required ? &f->missing : &f->not_held;

		buffer_printf(b, "%s%s", b->size ? ", " : "", item->name);
	}
	if (!detail || !remedy || (f->quiet && item->ok))
		return;
	table_add(f->table, print_mark(f->look, item->ok), item->name, detail);
	if (*remedy && asprintf(&line, "%s%s: %s", f->look->utf8 ? "→ " : "-> ",
				item->required ? "needed" : "better", remedy) >= 0)
		table_add(f->table, "", "", line);
}

/* The last word is what is not held. */
static void conclude(FILE *to, const struct findings *f)
{
	fprintf(to, "\n");
	if (f->missing.size)
		fprintf(to, "Analyses will be refused: what is required is missing: %s.\n", f->missing.data);
	if (f->not_held.size)
		fprintf(to, "%s: %s.\n",
			f->missing.size ? "Not held either" : "Analyses run, but not held here is",
			f->not_held.data);
	if (!f->missing.size && !f->not_held.size)
		fprintf(to, "All of it is held.\n");
}

int view_doctor_page(FILE *to, const struct look *look, bool quiet, struct hood *h, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3};
	_cleanup_(findings_done) struct findings f = {.look = look, .quiet = quiet, .table = &t};
	int found = hood_doctor(h, add_finding, &f, err);

	if (found < 0)
		return found;
	if (table_print(&t, to, err) < 0)
		return -1;
	if (buffer_check(&f.missing, err) < 0 || buffer_check(&f.not_held, err) < 0)
		return -1;
	if (!quiet)
		conclude(to, &f);
	return found;
}
