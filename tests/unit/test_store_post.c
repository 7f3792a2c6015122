/* Rows into the site's tables: the same for every database, but for its types. */
#include "test_store.h"

#include <errno.h>

/* Rows that lie in memory, all of one printed text. */
struct memory {
	struct row_tables tables;
	uint64_t counts[8];
	struct {
		size_t table;
		char *fields;
	} rows[16];
	size_t count, at;
};

static int memory_rewind(void *arg, struct error *e)
{
	(void)e;
	((struct memory *)arg)->at = 0;
	return 0;
}

static int memory_next(void *arg, size_t table, struct row_text *ret, struct error *e)
{
	struct memory *m = arg;

	(void)e;
	while (m->at < m->count) {
		size_t i = m->at++;

		if (m->rows[i].table != table)
			continue;
		*ret = (struct row_text){m->rows[i].fields, strlen(m->rows[i].fields), i + 1};
		return 1;
	}
	return 0;
}

static struct row_source memory_source(struct memory *m)
{
	return (struct row_source){m, &m->tables, m->counts, memory_rewind, memory_next};
}

/* Lines as they are printed, ended by NULL. */
static struct memory *memory_make(const char *site, const char *const *lines)
{
	json_auto_t *json = json_loads(site, 0, NULL);
	struct memory *m = calloc(1, sizeof *m);

	OK(row_tables_read(&m->tables, json, &err));
	for (; *lines; lines++) {
		_cleanup_row_ struct row row = {0};

		OK(row_parse_line(&m->tables, *lines, strlen(*lines), &row, &err));
		m->rows[m->count].table = row.table_index;
		m->rows[m->count++].fields = strndup(row.fields, row.fields_size);
		m->counts[row.table_index]++;
	}
	return m;
}

static void memory_free(struct memory *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->rows[i].fields);
	row_tables_done(&m->tables);
	free(m);
}

static void sql_is_true(const struct place *p, const char *condition)
{
	char text[2048];

	snprintf(text, sizeof text,
		 p->is_postgres ? "SELECT 1 / (CASE WHEN %s THEN 1 ELSE 0 END)"
				: "SELECT CASE WHEN %s THEN 1 ELSE abs(-9223372036854775808) END",
		 condition);
	place_sql(p, text, text);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Commits an attempt with these rows. */
static int commit_lines(const struct place *p, const char *id, const char *site, const char *const *lines)
{
	struct memory *m = memory_make(site, lines);
	struct row_source source = memory_source(m);
	_cleanup_attempt_ struct attempt a;
	struct ledger *l = place_open(p);
	int number, r;

	attempt_make(&a, id);
	err = (struct error)ERROR_INIT;
	r = ledger_commit_rows(l, &a, NULL, NULL, &source, &number, &err);
	ledger_close(l);
	memory_free(m);
	return r;
}

static const char scores[] =
	"{\"scores\": {\"columns\": [\"gene\", \"value\"], \"fill\": {\"analysis_id\": \"{id}\", "
	"\"n\": \"{attempt}\"}}}";
static const char keyed[] =
	"{\"scores\": {\"columns\": [\"gene\", \"value\"], \"fill\": {\"analysis_id\": \"{id}\"}, "
	"\"key\": [\"gene\"], \"on_conflict\": \"update\"}}";

static int post_setup(void **state)
{
	int r = place_setup(state);
	const struct place *p = *state;

	ledger_close(place_open(p));
	place_sql(
		p,
		"CREATE TABLE genes(gene TEXT PRIMARY KEY); INSERT INTO genes VALUES ('TP53'), ('BRCA1');"
		"CREATE TABLE scores(id INTEGER PRIMARY KEY, gene TEXT UNIQUE REFERENCES genes(gene), value REAL "
		"CHECK (value < 10), analysis_id TEXT, n INTEGER)",
		"CREATE TABLE public.genes(gene text PRIMARY KEY); INSERT INTO public.genes VALUES ('TP53'), ('BRCA1');"
		"CREATE TABLE public.scores(id serial PRIMARY KEY, gene text UNIQUE REFERENCES public.genes(gene), "
		"value double precision CHECK (value < 10), analysis_id text, n integer)");
	return r;
}

static int post_teardown(void **state)
{
	const struct place *p = *state;

	if (p->is_postgres)
		place_sql(p, NULL, "DROP TABLE public.scores; DROP TABLE public.genes");
	return place_teardown(state);
}

static void test_rows_and_attempt_are_one(void **state)
{
	const struct place *p = *state;

	if (commit_lines(p, "a1", scores,
			 LINES("{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\",\"value\":0.5}}",
			       "{\"table\":\"scores\",\"row\":{\"value\":2,\"gene\":null}}")) < 0)
		fail_msg("%s", err.message);
	sql_is_true(p, p->is_postgres
			       ? "(SELECT count(*) FROM public.scores WHERE analysis_id = 'a1' AND n = 1) = 2"
			       : "(SELECT count(*) FROM scores WHERE analysis_id = 'a1' AND n = 1) = 2");
	sql_is_true(
		p,
		p->is_postgres
			? "(SELECT fields->>'gene' FROM fumehood.posted_row WHERE analysis_id = 'a1' AND attempt = 1 "
			  "AND position = 0 AND target = 'scores') = 'TP53'"
			: "(SELECT json_extract(fields, '$[0].gene') FROM fumehood_posted_chunk WHERE analysis_id = 'a1' "
			  "AND attempt = 1 AND position = 0 AND target = 'scores') = 'TP53'");
}

static void assert_nothing(const struct place *p)
{
	sql_is_true(p, p->is_postgres
			       ? "NOT EXISTS (SELECT 1 FROM public.scores) AND NOT EXISTS (SELECT 1 FROM "
				 "fumehood.attempt) AND NOT EXISTS (SELECT 1 FROM fumehood.posted_row)"
			       : "NOT EXISTS (SELECT 1 FROM scores) AND NOT EXISTS (SELECT 1 FROM "
				 "fumehood_attempt) AND NOT EXISTS (SELECT 1 FROM fumehood_posted_chunk)");
}

/* The rows are at fault, and that is told. */
static void assert_bad_row(int r)
{
	assert_true(r < 0);
	assert_int_equal(err.kind, ERROR_BAD_ROW);
	assert_string_equal(error_kind_name(err.kind), "ledger");
}

static void assert_line_fails(const struct place *p, const char *site, const char *second, const char *words)
{
	int r = commit_lines(p, "bad", site,
			     LINES("{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\",\"value\":1}}", second,
				   "{\"table\":\"scores\",\"row\":{\"gene\":\"BRCA1\",\"value\":1}}"));

	assert_bad_row(r);
	if (strncmp(err.message, "line 2: ", 8) != 0 || !strstr(err.message, words))
		fail_msg("%d: %s\n  is not line 2: … %s", r, err.message, words);
	assert_nothing(p);
}

static void test_a_row_that_the_table_refuses_is_named_and_nothing_is_committed(void **state)
{
	static const char *const sites[] = {scores, keyed};
	const struct place *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		assert_line_fails(p, sites[i], "{\"table\":\"scores\",\"row\":{\"value\":11}}",
				  p->is_postgres ? "check constraint" : "CHECK");
		assert_line_fails(p, sites[i], "{\"table\":\"scores\",\"row\":{\"value\":\"x\"}}",
				  "does not take text");
		assert_line_fails(p, sites[i], "{\"table\":\"scores\",\"row\":{\"gene\":5}}",
				  "does not take a number");
		assert_line_fails(p, sites[i], "{\"table\":\"scores\",\"row\":{\"value\":true}}",
				  "does not take a truth value");
		assert_line_fails(p, sites[i], "{\"table\":\"scores\",\"row\":{\"gene\":\"nobody\"}}",
				  p->is_postgres ? "foreign key" : "FOREIGN KEY");
	}
	assert_line_fails(p, scores, "{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\"}}",
			  p->is_postgres ? "unique" : "UNIQUE");
}

static void test_a_key_replaces_and_the_last_of_equal_rows_counts(void **state)
{
	const struct place *p = *state;

	for (int i = 0; i < 2; i++) {
		if (commit_lines(p, i ? "b" : "a", keyed,
				 LINES("{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\",\"value\":1}}",
				       "{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\",\"value\":2}}")) < 0)
			fail_msg("%s", err.message);
	}
	sql_is_true(p,
		    p->is_postgres
			    ? "(SELECT string_agg(gene || value || analysis_id, ',') FROM public.scores) = "
			      "'TP532b'"
			    : "(SELECT group_concat(gene || value || analysis_id) FROM scores) = 'TP532.0b'");
}

static void test_a_table_or_column_that_is_not_there_is_said(void **state)
{
	const struct place *p = *state;
	int r = commit_lines(p, "x", "{\"nowhere\": [\"a\"]}", LINES("{\"table\":\"nowhere\",\"row\":{}}"));

	assert_bad_row(r);
	assert_non_null(strstr(err.message, "no table 'nowhere'"));
	r = commit_lines(p, "x", "{\"scores\": [\"gene\", \"a\"]}",
			 LINES("{\"table\":\"scores\",\"row\":{}}"));
	assert_bad_row(r);
	assert_non_null(strstr(err.message, "no column 'a'"));
	assert_nothing(p);
}

static int post_lines(const struct place *p, struct attempt *a, const char *site, const char *const *lines,
		      bool *ret)
{
	struct memory *m = memory_make(site, lines);
	struct row_source source = memory_source(m);
	struct ledger *l = place_open(p);
	int r;

	err = (struct error)ERROR_INIT;
	r = ledger_post(l, a, &source, ret, &err);
	ledger_close(l);
	memory_free(m);
	return r;
}

static void test_posting_again_changes_nothing(void **state)
{
	const char *const *lines = LINES("{\"table\":\"scores\",\"row\":{\"gene\":\"TP53\",\"value\":0.5}}");
	const char *const *others =
		LINES("{\"table\":\"scores\",\"row\":{\"gene\":\"BRCA1\",\"value\":0.5}}");
	const struct place *p = *state;
	_cleanup_attempt_ struct attempt a, back;
	struct ledger *l = place_open(p);
	bool posted = false;
	int number;

	attempt_make(&a, "again");
	attempt_init(&back);
	a.verdict = VERDICT_POST_PROCESS_FAILED;
	a.status = 123;
	OK(ledger_commit(l, &a, NULL, NULL, &number, &err));
	OK(post_lines(p, &a, scores, lines, &posted));
	assert_true(posted);
	OK(ledger_load(l, "again", 0, &back, &err));
	assert_int_equal(back.verdict, VERDICT_SUCCEEDED);
	assert_int_equal(back.status, 0);
	OK(post_lines(p, &back, scores, lines, &posted));
	assert_false(posted);
	assert_true(post_lines(p, &back, scores, others, &posted) < 0);
	assert_non_null(strstr(err.message, "has no key"));
	sql_is_true(p, p->is_postgres ? "(SELECT count(*) FROM public.scores) = 1"
				      : "(SELECT count(*) FROM scores) = 1");
	ledger_close(l);
}

static void test_values_have_the_databases_own_types(void **state)
{
	const struct place *p = *state;

	if (!p->is_postgres) {
		place_sql(p, "CREATE TABLE types(i INTEGER, r REAL, t TEXT, b BOOLEAN, j JSON, w TIMESTAMP)",
			  NULL);
		if (commit_lines(
			    p, "t", "{\"types\": [\"i\", \"r\", \"t\", \"b\", \"j\", \"w\"]}",
			    LINES("{\"table\":\"types\",\"row\":{\"i\":9007199254740993,\"r\":1,\"t\":\"'; drop table "
				  "types; --\",\"b\":true,\"j\":{\"a\":[1]},\"w\":\"2026-11-15\"}}")) < 0)
			fail_msg("%s", err.message);
		sql_is_true(
			p,
			"(SELECT i = 9007199254740993 AND typeof(r) = 'real' AND t = '''; drop table types; --' AND b = 1 "
			"AND j ->> '$.a[0]' = 1 FROM types)");
		return;
	}
	place_sql(
		p, NULL,
		"CREATE TYPE public.mood AS ENUM ('sad', 'happy'); CREATE TABLE public.types(i smallint, n numeric(40,5), "
		"t varchar(30), b boolean, j jsonb, k json, w timestamptz, d date, a integer[], s text[], m public.mood, "
		"u uuid, f real)");
	if (commit_lines(
		    p, "t",
		    "{\"public.types\": [\"i\", \"n\", \"t\", \"b\", \"j\", \"k\", \"w\", \"d\", \"a\", \"s\", \"m\", "
		    "\"u\", \"f\"]}",
		    LINES("{\"table\":\"public.types\",\"row\":{\"i\":-7,\"n\":123456789012345678901234567890.12345,"
			  "\"t\":\"'; drop table types; --\",\"b\":false,\"j\":\"text\",\"k\":[1,{\"a\":null}],"
			  "\"w\":\"2026-11-15T02:34:08+02:00\",\"d\":\"2026-11-15\",\"a\":[[1,null],[2,3]],"
			  "\"s\":[\"a\\\"\\\\,\\t{}\",null,\"NULL\"],\"m\":\"happy\","
			  "\"u\":\"00000000-0000-0000-0000-000000000001\",\"f\":0.5}}")) < 0)
		fail_msg("%s", err.message);
	sql_is_true(
		p,
		"(SELECT i = -7 AND n = 123456789012345678901234567890.12345 AND t = '''; drop table types; --' AND "
		"NOT b AND j = '\"text\"' AND k->1->>'a' IS NULL AND w = '2026-11-15 00:34:08Z' AND a[2][2] = 3 AND "
		"s[1] = E'a\"\\\\,\\t{}' AND s[2] IS NULL AND s[3] = 'NULL' AND m = 'happy' AND f = 0.5 FROM "
		"public.types)");
	place_sql(
		p, NULL,
		"DROP TABLE public.types; CREATE TABLE public.types(h smallint, i integer, l bigint, f real, "
		"d double precision, b boolean, t text, v varchar(3), j jsonb, k json)");
	if (commit_lines(
		    p, "t2",
		    "{\"public.types\": [\"h\", \"i\", \"l\", \"f\", \"d\", \"b\", \"t\", \"v\", \"j\", \"k\"]}",
		    LINES("{\"table\":\"public.types\",\"row\":{\"h\":-7,\"i\":2147483647,\"l\":-9223372036854775808,"
			  "\"f\":0.5,\"d\":1e-300,\"b\":true,\"t\":\"\\u00e9\\n\",\"v\":\"abc\",\"j\":{\"x\":1},"
			  "\"k\":\"s\"}}")) < 0)
		fail_msg("%s", err.message);
	sql_is_true(
		p,
		"(SELECT h = -7 AND i = 2147483647 AND l = -9223372036854775808 AND f = 0.5 AND d = 1e-300 AND b AND "
		"t = E'\\u00e9\\n' AND v = 'abc' AND j->>'x' = '1' FROM public.types)");
	assert_bad_row(commit_lines(p, "t3", "{\"public.types\": [\"h\"]}",
				    LINES("{\"table\":\"public.types\",\"row\":{\"h\":40000}}")));
	assert_bad_row(commit_lines(p, "t3", "{\"public.types\": [\"v\"]}",
				    LINES("{\"table\":\"public.types\",\"row\":{\"v\":\"too long\"}}")));
	place_sql(p, NULL, "DROP TABLE public.types; DROP TYPE public.mood");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, post_setup, post_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows_and_attempt_are_one),
		TEST(test_a_row_that_the_table_refuses_is_named_and_nothing_is_committed),
		TEST(test_a_key_replaces_and_the_last_of_equal_rows_counts),
		TEST(test_a_table_or_column_that_is_not_there_is_said),
		TEST(test_posting_again_changes_nothing),
		TEST(test_values_have_the_databases_own_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
