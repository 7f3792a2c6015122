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
	assert_redacted("postgresql://h/db?user=u&PASSWORD=s3cret", "postgresql://h/db?user=u");
	assert_redacted("postgresql://h/db?sslpassword=s3cret", "postgresql://h/db");
	assert_redacted("postgresql://:s3cret@/db", "postgresql://@/db");
	/* As libpq reads them: a '?' in a password, a name with escapes, what later versions call a secret. */
	assert_redacted("postgresql://u:s3?cret@h/db?port=1", "postgresql://u@h/db?port=1");
	assert_redacted("postgresql://h/db?p%61ssword=s3cret&port=1", "postgresql://h/db?port=1");
	assert_redacted("postgresql://h/db?port=1&oauth_client_secret=s3cret", "postgresql://h/db?port=1");
	assert_redacted("postgresql://h/db?scram_client_key=s3cret&port=1", "postgresql://h/db?port=1");
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
	assert_int_equal(ledger_url_same("postgresql://u:s@h/db", "postgresql://u:s@h/other"), 0);
	assert_int_equal(ledger_url_same("postgresql://u:s@h/db", "postgresql://u:s@g/db"), 0);
	assert_int_equal(ledger_url_same("postgresql://h/db?objects=/a", "postgresql://h/db?objects=/b"), 0);
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

static void test_the_object_store_follows_the_environment(void **state)
{
	_cleanup_ledger_url_ struct ledger_url a = {0}, b = {0}, c = {0};

	(void)state;
	unsetenv("FUMEHOOD_OBJECTS");
	unsetenv("XDG_DATA_HOME");
	setenv("HOME", "/home/x", 1);
	OK(ledger_url_parse("postgresql://h/db", &a, &err));
	assert_string_equal(a.objects, "/home/x/.local/share/fumehood/objects");
	setenv("XDG_DATA_HOME", "/xdg", 1);
	OK(ledger_url_parse("postgresql://h/db", &b, &err));
	assert_string_equal(b.objects, "/xdg/fumehood/objects");
	setenv("FUMEHOOD_OBJECTS", "/o", 1);
	OK(ledger_url_parse("postgresql://h/db", &c, &err));
	assert_string_equal(c.objects, "/o");
}

static void test_nonsense_is_refused_with_an_example(void **state)
{
	struct ledger_url u;

	(void)state;
	REFUSED(ledger_url_parse("sqlite:", &u, &err), "sqlite:PATH or postgresql://");
	REFUSED(ledger_url_parse("mysql://u:s3cret@h/db", &u, &err), "sqlite:PATH or postgresql://");
	assert_null(strstr(err.message, "s3cret"));
	REFUSED(ledger_url_parse("host=h password=s3cret", &u, &err), "sqlite:PATH or postgresql://");
	assert_null(strstr(err.message, "s3cret"));
	REFUSED(ledger_url_parse(" dbname = x", &u, &err), "sqlite:PATH or postgresql://");
	REFUSED(ledger_url_parse("sqlite:/x?blob_max=1G", &u, &err), "such as 64K");
	REFUSED(ledger_url_parse("sqlite:/x?objects=", &u, &err), "a directory");
	REFUSED(ledger_url_parse("sqlite:/x?objects=%zz", &u, &err), "a directory");
	REFUSED(ledger_url_parse("sqlite:/x?busy=long", &u, &err), "such as 20s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_password_is_never_shown),
		cmocka_unit_test(test_what_holds_no_password_is_shown_as_it_is),
		cmocka_unit_test(test_the_same_ledger_whoever_connects),
		cmocka_unit_test(test_our_parameters_are_taken_out),
		cmocka_unit_test(test_the_object_store_follows_the_environment),
		cmocka_unit_test(test_nonsense_is_refused_with_an_example),
	};

	return cmocka_run_group_tests_name("store's URLs", tests, NULL, NULL);
}
