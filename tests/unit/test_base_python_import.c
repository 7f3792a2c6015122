/* What a Python program imports, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "macros.h"
#include "python_import.h"

static char found[4096];

static int note(void *arg UNUSED, const char *module, unsigned level)
{
	size_t n = strlen(found);

	snprintf(found + n, sizeof found - n, "%s%.*s%s", n ? " " : "", (int)level, "......", module);
	return 0;
}

static const char *imports(const char *text)
{
	found[0] = 0;
	assert_int_equal(python_imports(text, strlen(text), note, NULL), 0);
	return found;
}

static void test_every_form_of_the_statement_is_found(void **state UNUSED)
{
	assert_string_equal(imports("import a\n"), "a");
	assert_string_equal(imports("import a.b as c, d ; import e\n"), "a.b d e");
	assert_string_equal(imports("from a.b import c, d"), "a.b");
	assert_string_equal(imports("from a import (b,\n  c)\nimport d"), "a d");
	assert_string_equal(imports("import a, \\\n  b\r\nimport c\r\n"), "a b c");
	assert_string_equal(imports("\xef\xbb\xbfimport a"), "a");
}

static void test_any_indentation_counts(void **state UNUSED)
{
	assert_string_equal(imports("try:\n    import a\nexcept ImportError:\n\timport b\n"), "a b");
}

static void test_relative_ones_have_their_level(void **state UNUSED)
{
	assert_string_equal(imports("from . import a, b as c\n"), ".a .b");
	assert_string_equal(imports("from .a.b import c\nfrom .. import (d, # why\n e,\n)\n"),
			    ".a.b ..d ..e");
	assert_string_equal(imports("from .import a"), ".a");
}

static void test_what_is_no_import_is_none(void **state UNUSED)
{
	assert_string_equal(imports("important = 1\nfrom_ = 2\nprint('import x')\n# import y\n"), "");
	assert_string_equal(imports("from here to there\nimport\nimport 5\nfrom import x\nimport a/b"), "a");
	assert_string_equal(imports("import ../etc/passwd\nfrom ...\n"), "");
	assert_string_equal(imports(""), "");
}

static void test_long_names_and_many_of_them_are_bounded(void **state UNUSED)
{
	char text[40000] = "import ";

	memset(text + 7, 'a', 300);
	assert_string_equal(imports(text), "");
	text[0] = 0;
	for (int i = 0; i < 3000; i++)
		strcat(text, "import a\n");
	imports(text);
	assert_int_equal(strlen(found), 2 * PYTHON_IMPORTS_MAX - 1);
}

static int stop(void *arg, const char *module UNUSED, unsigned level UNUSED)
{
	return ++*(int *)arg;
}

static void test_who_has_heard_enough_says_so(void **state UNUSED)
{
	int calls = 0;

	assert_int_equal(python_imports("import a, b\nimport c", 20, stop, &calls), 1);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_form_of_the_statement_is_found),
		cmocka_unit_test(test_any_indentation_counts),
		cmocka_unit_test(test_relative_ones_have_their_level),
		cmocka_unit_test(test_what_is_no_import_is_none),
		cmocka_unit_test(test_long_names_and_many_of_them_are_bounded),
		cmocka_unit_test(test_who_has_heard_enough_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
