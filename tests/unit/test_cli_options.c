/*
 * How the words of a command line are sorted, and what is said about the wrong ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "macros.h"
#include "options.h"
#include "text.h"

struct parsed {
	bool json;
	const char *db, *file;
	char **globs;
	int attempt;
	char other[64]; /* the last option that was somebody else's, "--memory=2G" */
	struct options o;
	struct error err;
	int r;
};

static int other_takes_value(const char *name)
{
	return strcmp(name, "--memory") == 0 ? 1 : strcmp(name, "-i") == 0 ? 0 : -1;
}

static int other_apply(void *arg, const char *name, const char *value, struct error *err)
{
	struct parsed *p = arg;

	if (value && strcmp(value, "bad") == 0)
		return error_set(err, ERROR_USAGE, "--memory wants a size");
	snprintf(p->other, sizeof p->other, "%s=%s", name, value ? value : "");
	return 1;
}

static const char *other_name(size_t i)
{
	static const char *const names[] = {"--memory", "--optional-output"};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

static void parse(struct parsed *p, int argc, const char *const *argv)
{
	const struct option_row table[] = {
		{"--json", OPTION_FLAG, &p->json},
		{"--db", OPTION_TEXT, &p->db},
		{"-f", OPTION_TEXT, &p->file},
		{"--output", OPTION_LIST, &p->globs},
		{"--attempt", OPTION_NUMBER, &p->attempt},
		{0},
	};

	*p = (struct parsed){
		.o = {.table = table,
		      .others_take_value = other_takes_value,
		      .others_apply = other_apply,
		      .others_arg = p,
		      .others_name = other_name},
	};
	p->r = options_parse(&p->o, argc, (char **)argv, &p->err);
	p->o.table = NULL;
}

#define PARSE(p, ...)                                                          \
	do {                                                                   \
		static const char *const words[] = {"run", __VA_ARGS__, NULL}; \
		parse(p, (int)ARRAY_SIZE(words) - 1, words);                   \
	} while (0)

static void parsed_done(struct parsed *p)
{
	options_done(&p->o);
	strv_free(p->globs);
}

static void assert_refused(struct parsed *p, const char *message)
{
	assert_true(p->r < 0);
	assert_int_equal(p->err.kind, ERROR_USAGE);
	assert_string_equal(p->err.message, message);
	parsed_done(p);
}

static void test_values_stand_apart_or_behind_an_equals_sign(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "--db", "one", "--output=*.csv", "--output", "a=b", "-ffile", "--attempt", "3", "--db=two");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.db, "two");
	assert_string_equal(p.file, "file");
	assert_string_equal(p.globs[0], "*.csv");
	assert_string_equal(p.globs[1], "a=b");
	assert_int_equal(p.attempt, 3);
	assert_int_equal(p.o.n_words, 0);
	parsed_done(&p);
}

static void test_words_may_stand_between_options(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "--json", "a42", "-f", "x", "-");
	assert_int_equal(p.r, 0);
	assert_true(p.json);
	assert_int_equal(p.o.n_words, 2);
	assert_string_equal(p.o.words[0], "a42");
	assert_string_equal(p.o.words[1], "-");
	assert_null(p.o.rest);
	parsed_done(&p);
}

static void test_two_dashes_end_the_options(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "a42", "--", "python3", "--json", "--");
	assert_int_equal(p.r, 0);
	assert_false(p.json);
	assert_string_equal(p.o.rest[0], "python3");
	assert_string_equal(p.o.rest[2], "--");
	assert_null(p.o.rest[3]);
	parsed_done(&p);
}

static void test_other_options_reach_their_owner(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "-i", "--memory=2G");
	assert_int_equal(p.r, 0);
	assert_string_equal(p.other, "--memory=2G");
	parsed_done(&p);
	PARSE(&p, "--memory", "bad");
	assert_refused(&p, "--memory wants a size");
}

static void test_a_typing_error_gets_a_suggestion(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "--memroy", "2G");
	assert_refused(&p, "unknown option '--memroy': did you mean --memory?");
	PARSE(&p, "--jsn");
	assert_refused(&p, "unknown option '--jsn': did you mean --json?");
	PARSE(&p, "--optional=x");
	assert_refused(&p, "unknown option '--optional': did you mean --optional-output?");
	PARSE(&p, "--colour");
	assert_refused(&p, "unknown option '--colour': fumehood help run lists what there is");
}

static void test_unknown_options_are_shown_escaped(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "-\x1b[2J");
	assert_refused(&p, "unknown option '-\\x1b[2J': fumehood help run lists what there is");
}

static void test_missing_and_superfluous_values_are_refused(void **state UNUSED)
{
	struct parsed p;

	PARSE(&p, "--db");
	assert_refused(&p, "--db wants a value");
	PARSE(&p, "--db", "--", "true");
	assert_refused(&p, "--db wants a value");
	PARSE(&p, "--json=yes");
	assert_refused(&p, "--json takes no value");
	PARSE(&p, "--attempt", "0");
	assert_refused(&p, "--attempt wants a number from 1 on, not '0'");
	PARSE(&p, "--attempt", "2x");
	assert_refused(&p, "--attempt wants a number from 1 on, not '2x'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_stand_apart_or_behind_an_equals_sign),
		cmocka_unit_test(test_words_may_stand_between_options),
		cmocka_unit_test(test_two_dashes_end_the_options),
		cmocka_unit_test(test_other_options_reach_their_owner),
		cmocka_unit_test(test_a_typing_error_gets_a_suggestion),
		cmocka_unit_test(test_unknown_options_are_shown_escaped),
		cmocka_unit_test(test_missing_and_superfluous_values_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
