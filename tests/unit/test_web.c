/* What the page makes of a stranger's words: addresses, hosts, cookies, text and tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"
#include "csv.h"
#include "guard.h"
#include "html.h"

static struct error err = ERROR_INIT;

static void test_an_address_is_taken_apart(void **state)
{
	struct ask a;

	(void)state;
	assert_int_equal(ask_parse(&a, "/a/x%20y?path=b+c%2Fd&attempt=2&empty=&alone#more", &err), 0);
	assert_int_equal(a.n_parts, 2);
	assert_string_equal(a.parts[0], "a");
	assert_string_equal(a.parts[1], "x y");
	assert_null(a.parts[2]);
	assert_string_equal(ask_param(&a, "path"), "b c/d");
	assert_string_equal(ask_param(&a, "attempt"), "2");
	assert_null(ask_param(&a, "empty"));
	assert_null(ask_param(&a, "alone"));
	assert_null(ask_param(&a, "pat"));
	assert_int_equal(ask_parse(&a, "/", &err), 0);
	assert_int_equal(a.n_parts, 0);
	assert_int_equal(ask_parse(&a, "//a//b", &err), 0);
	assert_int_equal(a.n_parts, 2);
}

static void test_an_address_that_is_none(void **state)
{
	static const char *const bad[] = {"",	  "x",	  "*",	      "http://h/",  "/%",   "/%4",
					  "/%4g", "/%00", "/a?b=%00", "/1/2/3/4/5", "/?%zz"};
	char many[256] = "/?", longer[ASK_TEXT_MAX + 2];
	struct ask a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(ask_parse(&a, bad[i], &err) < 0);
	for (int i = 0; i <= ASK_PARAMS_MAX; i++)
		strcat(many, "a=b&");
	assert_true(ask_parse(&a, many, &err) < 0);
	memset(longer, 'x', sizeof longer);
	longer[0] = '/';
	longer[ASK_TEXT_MAX] = 0;
	assert_true(ask_parse(&a, longer, &err) < 0);
	longer[ASK_TEXT_MAX - 1] = 0;
	assert_int_equal(ask_parse(&a, longer, &err), 0);
}

static void test_who_wants_json(void **state)
{
	(void)state;
	assert_true(ask_wants_json("application/json"));
	assert_true(ask_wants_json("application/json, */*;q=0.1"));
	assert_false(ask_wants_json("text/html,application/xhtml+xml,application/json;q=0.9"));
	assert_false(ask_wants_json("*/*"));
	assert_false(ask_wants_json(NULL));
}

static void test_a_guard_knows_its_own(void **state)
{
	char cookies[256], session[GUARD_SESSION + 1];
	struct guard g;
	int64_t uid;

	(void)state;
	assert_int_equal(guard_open(&g, 80, &err), 0);
	assert_int_equal(guard_add_host(&g, "127.0.0.1:80", &err), 0);
	assert_true(guard_knows_host(&g, "127.0.0.1:80"));
	assert_false(guard_knows_host(&g, "127.0.0.1:8"));
	assert_false(guard_knows_host(&g, "127.0.0.1:800"));
	assert_false(guard_knows_host(&g, ""));
	assert_false(guard_knows_host(&g, NULL));
	assert_true(guard_knows_token(&g, g.token));
	assert_false(guard_knows_token(&g, ""));
	assert_false(guard_knows_token(&g, NULL));
	guard_session(&g, 1000, session);
	snprintf(cookies, sizeof cookies, "x=y; fumehood-80=%s", session);
	assert_true(guard_knows_cookie(&g, cookies, &uid));
	assert_int_equal(uid, 1000);
	snprintf(cookies, sizeof cookies, "fumehood-80=0%s; fumehood-80=1001%s", session, session + 4);
	assert_false(guard_knows_cookie(&g, cookies, &uid));
	snprintf(cookies, sizeof cookies, "fumehood-80=%sx", session);
	assert_false(guard_knows_cookie(&g, cookies, &uid));
	snprintf(cookies, sizeof cookies, "fumehood-8=%s; fumehood-801=%s", session, session);
	assert_false(guard_knows_cookie(&g, cookies, &uid));
	assert_false(guard_knows_cookie(&g, "fumehood-80=", &uid));
	assert_false(guard_knows_cookie(&g, ";;; ; =", &uid));
	assert_false(guard_knows_cookie(&g, NULL, &uid));
	assert_true(guard_is_own_page(&g, "http://127.0.0.1:80", "same-origin"));
	assert_true(guard_is_own_page(&g, NULL, NULL));
	assert_false(guard_is_own_page(&g, "null", NULL));
	assert_false(guard_is_own_page(&g, "http://evil.example", NULL));
	assert_false(guard_is_own_page(&g, "http://127.0.0.1:80", "cross-site"));
	assert_false(guard_is_own_page(&g, NULL, "none"));
	guard_done(&g);
}

static void check_text(const char *text, const char *wanted)
{
	struct html h = {0};

	html_text(&h, text);
	assert_string_equal(h.out.size ? h.out.data : "", wanted);
	html_done(&h);
}

static void test_text_is_never_markup(void **state)
{
	struct html h = {0};

	(void)state;
	check_text("<b a='1' c=\"2\">&amp;", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;");
	check_text("a\tb\nc", "a\tb\nc");
	check_text("\x1b[31m\r\x07", "\\x1b[31m\\x0d\\x07");
	check_text("\xff\xc0\x80", "\\xff\\xc0\\x80");
	check_text("\xe2\x80\xae"
		   "abc",
		   "\\xe2\\x80\\xaeabc");
	check_text("é€😀", "é€😀");
	check_text(NULL, "");
	html_attr(&h, "value", "\" onload=\"x");
	html_attr(&h, "none", NULL);
	html_href(&h, "/a/", "x\"y z/<", "path", "é&=");
	assert_string_equal(h.out.data,
			    " value=\"&quot; onload=&quot;x\" href=\"/a/x%22y%20z%2F%3C?path=%C3%A9%26%3D\"");
	html_done(&h);
}

static void check_fields(const char *text, const char *const *wanted)
{
	const char *at = text, *end = text + strlen(text);

	for (; *wanted; wanted++) {
		struct buffer field = {0};
		bool is_last = csv_field(&at, end, &field);

		assert_string_equal(field.size ? field.data : "", *wanted);
		assert_int_equal(is_last, !wanted[1] || strcmp(wanted[1], "|") == 0);
		wanted += wanted[1] && strcmp(wanted[1], "|") == 0;
		buffer_free(&field);
	}
	assert_ptr_equal(at, end);
}

static void test_fields_of_a_table(void **state)
{
	(void)state;
	check_fields("a,b\r\nc,", (const char *[]){"a", "b", "|", "c", "", NULL});
	check_fields("\"a,\"\"b\"\"\nc\",d\n", (const char *[]){"a,\"b\"\nc", "d", NULL});
	check_fields("\"open", (const char *[]){"open", NULL});
	check_fields("\"a\"b,c", (const char *[]){"ab", "c", NULL});
	check_fields("\"", (const char *[]){"", NULL});
	check_fields("\r", (const char *[]){"", NULL});
	check_fields("", (const char *[]){"", NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_address_is_taken_apart),
		cmocka_unit_test(test_an_address_that_is_none),
		cmocka_unit_test(test_who_wants_json),
		cmocka_unit_test(test_a_guard_knows_its_own),
		cmocka_unit_test(test_text_is_never_markup),
		cmocka_unit_test(test_fields_of_a_table),
	};

	return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
