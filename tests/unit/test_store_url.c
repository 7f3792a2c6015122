/* Where a ledger is, and what may be shown of it. */
#include "test_store.h"

static void assert_redacted(const char *url, const char *want)
{
	_cleanup_free_ char *shown = ledger_url_redacted(url);

	assert_string_equal(shown, want);
}

static void test_a_password_is_never_shown(void **state)
{
	(void)state;
	assert_redacted("postgresql://u:s3cret@h:5432/db", "postgresql://u@h:5432/db");
	assert_redacted("postgres://u:s3/cr@et@h/db?sslmode=require", "postgres://u@h/db?sslmode=require");
	assert_redacted("postgresql://u@h/db?password=s3cret&application_name=x",
			"postgresql://u@h/db?application_name=x");
	assert_redacted("postgresql://u:s3cret", "postgresql://u");
	assert_redacted("postgresql://u:s3cr/et+=@h/db", "postgresql://u@h/db");
	assert_redacted("postgresql://u:a@h/db?password=s3@cret", "postgresql://u");
	assert_redacted("postgresql://h/db?user=u&PASSWORD=s3cret", "postgresql://h/db?user=u");
	assert_redacted("postgresql://h/db?sslpassword=s3cret", "postgresql://h/db");
	assert_redacted("postgresql://:s3cret@/db", "postgresql://@/db");
	/* As libpq reads them: a '?' in a password, a name with escapes, what later versions call a secret. */
	assert_redacted("postgresql://u:s3?cret@h/db?port=1", "postgresql://u@h/db?port=1");
	assert_redacted("postgresql://h/db?p%61ssword=s3cret&port=1", "postgresql://h/db?port=1");
	assert_redacted("postgresql://h/db?port=1&oauth_client_secret=s3cret", "postgresql://h/db?port=1");
	assert_redacted("postgresql://h/db?scram_client_key=s3cret&port=1", "postgresql://h/db?port=1");
	assert_redacted("postgresql://u:s3?cr@h/db", "postgresql://u@h/db");
	assert_redacted("postgresql://u:s3?cr&e#t@h/db?sslmode=require",
			"postgresql://u@h/db?sslmode=require");
	assert_redacted("postgresql://h/db?user=u&password=s3&cr/et&host=x", "postgresql://h/db?user=u");
	assert_redacted("postgresql://h/db?user=u&pass%77ord=s3cret", "postgresql://h/db?user=u");
	assert_redacted("postgresql://h/db?s3cret", "postgresql://h/db");
	assert_redacted("postgresql://h:5432/db?objects=/a@b", "postgresql://h");
	assert_redacted("postgresql://h:5432/db?objects=/a%40b", "postgresql://h:5432/db?objects=/a%40b");
	assert_redacted("postgresql://u:5432/x?y@h/db", "postgresql://u@h/db");
}

/* Whatever a password is made of, and wherever it stands. */
static void test_no_password_however_odd_is_shown_or_said(void **state)
{
	static const char alphabet[] = "?@/:&=#%[]+,;. '\"\\ab12";
	static const char *const words[] = {"?objects=", "?busy=x", "://", "@h", "?sslmode=", "?password="};
	static const char *const forms[] = {
		"postgresql://u:%s@h/db", "postgres://u:%s@h:5432/db?sslmode=require",
		"postgresql://h/db?user=u&password=%s", "postgresql://:%s@/db?host=/x&password=%s",
		"postgresql://h/db?sslpassword=%s&connect_timeout=3"};
	unsigned seed = 20261115;

	(void)state;
	for (int n = 0; n < 200000; n++) {
		char password[64] = "", url[512];
		_cleanup_ledger_url_ struct ledger_url u = {0};
		_cleanup_free_ char *shown = NULL;

		/* A mark that is found again, with anything before and behind it. */
		for (int i = 0; i < 8; i++) {
			size_t at = strlen(password);

			seed = seed * 1664525u + 1013904223u;
			if (i == 4)
				strcat(password, "s3cret");
			else if (seed >> 28 == 0 && at < 40)
				strcat(password, words[(seed >> 8) % ARRAY_SIZE(words)]);
			else
				password[at] = alphabet[(seed >> 8) % (sizeof alphabet - 1)];
		}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(url, sizeof url, forms[n % ARRAY_SIZE(forms)], password, password);
#pragma GCC diagnostic pop
		shown = ledger_url_redacted(url);
		if (strstr(shown, "s3cret"))
			fail_msg("%s is shown as %s", url, shown);
		err = (struct error)ERROR_INIT;
		if (ledger_url_parse(url, &u, &err) < 0 && strstr(err.message, "s3cret"))
			fail_msg("of %s it is said: %s", url, err.message);
	}
}

/* How libpq is told elsewhere: as a path it would be shown, and made. */
static void test_a_password_that_is_no_part_of_a_url_is_refused(void **state)
{
	static const char *const urls[] = {
		"host=h user=u password=s3cret",
		"sqlite:host=h password=s3cret",
		"sqlite:postgresql://u:s3cret@h/db",
		"sqlite://u:s3cret@h/db",
		"//u:s3cret@h/db",
		"u:s3cret@h/db",
		"PostgreSQL://u:s3cret@h/db",
		"postgresql+psycopg2://u:s3cret@h/db",
		"jdbc:postgresql://h/db?password=s3cret",
		"postgresql:u:s3cret@h/db",
		"mysql:u:s3cret@h",
		"mysql://u:s3cret@h/db",
		"Server=h;Uid=u;Pwd=s3cret",
		"file:x?password=s3cret",
	};
	struct ledger_url u;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		REFUSED(ledger_url_parse(urls[i], &u, &err), "postgresql://");
		assert_null(strstr(err.message, "s3cret"));
		assert_redacted(urls[i], "…");
	}
}

static void test_a_refused_scheme_is_named_with_the_right_form(void **state)
{
	struct ledger_url u;

	(void)state;
	REFUSED(ledger_url_parse("postgresql+psycopg2://h/db", &u, &err),
		"'postgresql+psycopg2://', as other programs write it: write postgresql://USER@HOST");
	REFUSED(ledger_url_parse("mysql://h/db", &u, &err), "behind 'mysql://': write sqlite:PATH");
	REFUSED(ledger_url_parse("mysql:db", &u, &err), "write sqlite:PATH for a file of that name");
	REFUSED(ledger_url_parse("dbname=db", &u, &err), "not by a connection string");
}

static void test_a_file_may_have_any_name(void **state)
{
	static const char *const urls[] = {"sqlite:mysql:x", "./mysql:x", "sqlite:./user=x.db",
					   "a/b:c",	     "7:x",	  "ledger.db",
					   "/a/b@c",	     "//a/b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		_cleanup_ledger_url_ struct ledger_url u = {0};

		err = (struct error)ERROR_INIT;
		if (ledger_url_parse(urls[i], &u, &err) < 0)
			fail_msg("%s: %s", urls[i], err.message);
		assert_false(u.is_postgres);
	}
}

static void test_what_holds_no_password_is_shown_as_it_is(void **state)
{
	static const char *const urls[] = {
		"postgresql://",
		"postgresql:///db?host=/run/sock&user=a@b",
		"postgresql://h1:1,h2:2/db",
		"postgresql://[::1]:5432/db",
		"sqlite:/a/b:c@d",
		"/a/b?password=x",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++)
		assert_redacted(urls[i], urls[i]);
}

static void test_the_same_ledger_whoever_connects(void **state)
{
	(void)state;
	assert_int_equal(ledger_url_same("postgresql://u:s3cret@h/db?port=1", "postgres://h/db?port=1"), 1);
	assert_int_equal(
		ledger_url_same("postgresql://h/db?user=u&password=s&port=1", "postgresql://v@h/db?port=1"),
		1);
	assert_int_equal(ledger_url_same("postgresql://u:s@h/db?busy=1s&statement=2s", "postgresql://h/db"),
			 1);
	assert_int_equal(ledger_url_same("postgresql://u:s@h/db", "postgresql://u:s@h/other"), 0);
	assert_int_equal(ledger_url_same("postgresql://u:s@h/db", "postgresql://u:s@g/db"), 0);
	/* Which directory is the ledger's does the ledger know. */
	assert_int_equal(ledger_url_same("postgresql://h/db?objects=/a", "postgresql://h/db?objects=/b"), 1);
	assert_int_equal(ledger_url_same("sqlite:/a?objects=/x", "sqlite:///a?objects=/y&busy=1s"), 1);
	assert_int_equal(ledger_url_same("sqlite:/a?objects=/x", "/a"), 1);
	assert_int_equal(ledger_url_same("sqlite:/a?b", "sqlite:/a"), 0);
	assert_int_equal(ledger_url_same("/a?objects=/x", "/a"), 0);
	assert_int_equal(ledger_url_same("postgresql://", "postgresql://u:s@"), 1);
	assert_int_equal(ledger_url_same("sqlite:/a", "sqlite:/a"), 1);
	assert_int_equal(ledger_url_same("sqlite:/a", "sqlite:/b"), 0);
	assert_int_equal(ledger_url_same("sqlite:/a", "postgresql:///a"), 0);
}

static void test_our_parameters_are_taken_out(void **state)
{
	static const struct {
		const char *url, *location, *objects;
		uint64_t blob_max;
	} rows[] = {
		{"/x/l.db", "/x/l.db", "/x/l.db.objects", BLOB_MAX_DEFAULT},
		{"/x/l?objects=y", "/x/l?objects=y", "/x/l?objects=y.objects", BLOB_MAX_DEFAULT},
		{"sqlite:l.db", "l.db", "l.db.objects", BLOB_MAX_DEFAULT},
		{"sqlite:///x/l.db", "/x/l.db", "/x/l.db.objects", BLOB_MAX_DEFAULT},
		{"sqlite:/x/l?q", "/x/l?q", "/x/l?q.objects", BLOB_MAX_DEFAULT},
		{"sqlite:/x/l.db?objects=/o%20o&blob_max=1M", "/x/l.db", "/o o", 1024 * 1024},
		{"postgresql://h/db?a=1&objects=/o&b=2", "postgresql://h/db?a=1&b=2", "/o", BLOB_MAX_DEFAULT},
		{"postgresql://h/db?objects=/o", "postgresql://h/db", "/o", BLOB_MAX_DEFAULT},
		{"postgresql://h/db?blob_max=0&b=2&objects=/o", "postgresql://h/db?b=2", "/o", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_ledger_url_ struct ledger_url u = {0};

		OK(ledger_url_parse(rows[i].url, &u, &err));
		assert_string_equal(u.location, rows[i].location);
		assert_string_equal(u.objects, rows[i].objects);
		assert_int_equal(u.blob_max, rows[i].blob_max);
	}
}

static void test_the_object_store_is_what_the_url_says(void **state)
{
	_cleanup_ledger_url_ struct ledger_url a = {0}, d = {0}, e = {0};

	(void)state;
	/* Nothing of the environment names a directory. */
	setenv("XDG_DATA_HOME", "/xdg", 1);
	setenv("FUMEHOOD_OBJECTS", "/o", 1);
	OK(ledger_url_parse("postgresql://h/db", &a, &err));
	assert_true(a.objects_inside && a.objects_unsaid);
	assert_int_equal(a.objects_max, 1024 * 1024 * 1024);
	assert_null(a.objects);
	OK(ledger_url_parse("postgresql://h/db?objects=postgresql&objects_max=5M&x=1", &d, &err));
	assert_true(d.objects_inside && !d.objects_unsaid);
	assert_null(d.objects);
	assert_string_equal(d.location, "postgresql://h/db?x=1");
	assert_int_equal(d.objects_max, 5 << 20);
	OK(ledger_url_parse("postgresql://h/db?objects=/p", &e, &err));
	assert_false(e.objects_inside);
	assert_string_equal(e.objects, "/p");
	unsetenv("FUMEHOOD_OBJECTS");
	unsetenv("XDG_DATA_HOME");
}

static void test_nonsense_is_refused_with_an_example(void **state)
{
	struct ledger_url u;

	(void)state;
	REFUSED(ledger_url_parse("sqlite:", &u, &err), "sqlite:PATH or postgresql://");
	REFUSED(ledger_url_parse(" dbname = x", &u, &err), "write postgresql://");
	REFUSED(ledger_url_parse("sqlite:/x?blob_max=1G", &u, &err), "such as 64K");
	REFUSED(ledger_url_parse("sqlite:/x?objects=", &u, &err), "a directory");
	REFUSED(ledger_url_parse("sqlite:/x?objects=%zz", &u, &err), "a directory");
	REFUSED(ledger_url_parse("sqlite:/x?objects=postgresql", &u, &err), "a directory");
	REFUSED(ledger_url_parse("postgresql://h/db?objects=postgres", &u, &err), "the word postgresql");
	REFUSED(ledger_url_parse("postgresql://h/db?objects=PostgreSQL", &u, &err), "its absolute path");
	REFUSED(ledger_url_parse("postgresql://h/db?objects_max=2T", &u, &err), "such as 1G");
	REFUSED(ledger_url_parse("postgresql://h/db?objects_max=much", &u, &err), "such as 1G");
	REFUSED(ledger_url_parse("sqlite:/x?busy=long", &u, &err), "such as 20s");
	REFUSED(ledger_url_parse("postgresql://h/db?statement=0s", &u, &err), "such as 1h");
	REFUSED(ledger_url_parse("postgresql://h/db?statement=25h", &u, &err), "such as 1h");
	REFUSED(ledger_url_parse("sqlite:/x?filesystem=some", &u, &err), "after 'filesystem=' must be any");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_password_is_never_shown),
		cmocka_unit_test(test_no_password_however_odd_is_shown_or_said),
		cmocka_unit_test(test_a_password_that_is_no_part_of_a_url_is_refused),
		cmocka_unit_test(test_a_refused_scheme_is_named_with_the_right_form),
		cmocka_unit_test(test_a_file_may_have_any_name),
		cmocka_unit_test(test_what_holds_no_password_is_shown_as_it_is),
		cmocka_unit_test(test_the_same_ledger_whoever_connects),
		cmocka_unit_test(test_our_parameters_are_taken_out),
		cmocka_unit_test(test_the_object_store_is_what_the_url_says),
		cmocka_unit_test(test_nonsense_is_refused_with_an_example),
	};

	return cmocka_run_group_tests_name("store's URLs", tests, NULL, NULL);
}
