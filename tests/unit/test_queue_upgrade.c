/* A queue of an older ledger, and of one that is upgraded meanwhile. */
#include "test_queue.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The tables that the list of steps begins with, by this number. */
static void make_older(const struct place *p, int version)
{
	static const char mark[] = "%owner%", owner[] = "'anna' ";
	char sqlite[128], postgres[128], *tables = strdup(sql_migrations[0].script[SQL_SQLITE]), *at = tables;

	assert_non_null(tables);
	while ((at = strstr(at, mark)))
		memcpy(at, owner, strlen(mark));
	place_sql(p, "", "CREATE SCHEMA fumehood");
	place_sql(p, tables, sql_migrations[0].script[SQL_POSTGRES]);
	free(tables);
	snprintf(sqlite, sizeof sqlite, "INSERT INTO fumehood_schema_version VALUES (%d, 0, 'x')", version);
	snprintf(postgres, sizeof postgres, "INSERT INTO fumehood.schema_version VALUES (%d, now(), 'x')",
		 version);
	place_sql(p, sqlite, postgres);
}

static void test_an_older_ledger_is_refused_until_it_is_upgraded(void **state)
{
	static const unsigned ways[] = {0, LEDGER_CREATE, LEDGER_READ_ONLY};
	const struct place *p = *state;
	struct ledger *l = NULL;

	make_older(p, SQL_VERSION_FIRST);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		err = (struct error)ERROR_INIT;
		assert_true(ledger_open(p->url, ways[i], &l, &err) < 0);
		assert_int_equal(err.kind, ERROR_SCHEMA);
		assert_non_null(strstr(err.message, "schema 8, this one needs"));
		assert_non_null(strstr(err.message, "'fumehood db upgrade'"));
	}
	OK(ledger_open(p->url, LEDGER_UPGRADE, &l, &err));
	submit(l, "a", NULL);
	assert_claims(l, "a");
	ledger_close(l);
	OK(ledger_open(p->url, LEDGER_READ_ONLY, &l, &err));
	ledger_close(l);
}

static void test_what_is_older_than_the_first_step_is_not_upgraded(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;

	make_older(p, SQL_VERSION_FIRST - 1);
	assert_true(ledger_open(p->url, LEDGER_UPGRADE, &l, &err) < 0);
	assert_int_equal(err.kind, ERROR_SCHEMA);
	assert_non_null(strstr(err.message, "never released"));
	err = (struct error)ERROR_INIT;
}

static void test_nothing_is_claimed_of_a_ledger_that_was_upgraded_meanwhile(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[1];
	size_t n = 7;

	submit(l, "a", NULL);
	place_sql(p, "INSERT INTO fumehood_schema_version VALUES (99, 0, 'x')",
		  "INSERT INTO fumehood.schema_version VALUES (99, now(), 'x')");
	err = (struct error)ERROR_INIT;
	assert_true(ledger_claim(l, &anything, jobs, 1, &n, NULL, &err) < 0);
	assert_int_equal(err.kind, ERROR_SCHEMA);
	assert_non_null(strstr(err.message, "newer fumehood (schema 99"));
	assert_int_equal(count(l, JOB_QUEUED), 1);
	ledger_close(l);
}

static void test_ten_upgrades_at_once_are_one(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;
	pid_t pids[10];
	int how;

	make_older(p, SQL_VERSION_FIRST);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(ledger_open(p->url, LEDGER_UPGRADE, &l, &err) < 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
		assert_int_equal(how, 0);
	}
	l = place_open(p);
	submit(l, "a", NULL);
	assert_claims(l, "a");
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(an_older_ledger_is_refused_until_it_is_upgraded),
		ROW(what_is_older_than_the_first_step_is_not_upgraded),
		ROW(nothing_is_claimed_of_a_ledger_that_was_upgraded_meanwhile),
		ROW(ten_upgrades_at_once_are_one),
	};

	return RUN_ON_BOTH("upgrades of the queue", tests);
}
