/*
 * The mount table as text, with every name that it can have, and of this very process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "mountinfo.h"

static void parse(const char *text, struct mountinfo *ret)
{
	char *copy = strdup(text);

	assert_int_equal(mountinfo_parse(copy, ret, NULL), 0);
	free(copy);
}

static void test_names_are_unescaped(void **state)
{
	static const char *const names[][2] = {
		{"/a\\040b", "/a b"},	  {"/a\\011b\\012c", "/a\tb\nc"}, {"/a\\134040", "/a\\040"},
		{"/a\\043b", "/a#b"},	  {"/plain", "/plain"},		  {"/end\\", "/end\\"},
		{"/end\\04", "/end\\04"}, {"/not\\489", "/not\\489"},	  {"/\\303\\274", "/ü"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct mountinfo_line l;
		char text[96];

		snprintf(text, sizeof text, "40 23 0:30 %s %s rw - tmpfs x rw", names[i][0], names[i][0]);
		assert_true(mountinfo_parse_line(text, &l));
		assert_string_equal(l.root, names[i][1]);
		assert_string_equal(l.point, names[i][1]);
	}
}

static void test_lines_with_any_number_of_optional_fields_come_outer_ones_first(void **state)
{
	struct mountinfo m;

	(void)state;
	parse("40 23 0:30 / /data/in\\040ner rw shared:9 master:3 - tmpfs x rw,size=1\n"
	      "31 23 8:1 / / rw - ext4 /dev/sda1 rw\n"
	      "not a line\n"
	      "50 23 0:31 / /data rw shared:1 - overlay y ro\n",
	      &m);
	assert_int_equal(m.count, 3);
	assert_string_equal(m.points[0].path, "/");
	assert_string_equal(m.points[0].type, "ext4");
	assert_string_equal(m.points[1].path, "/data");
	assert_string_equal(m.points[2].path, "/data/in ner");
	assert_string_equal(m.points[2].type, "tmpfs");
	assert_int_equal(m.points[2].id, 40);
	mountinfo_done(&m);
}

static void test_an_empty_table_has_nothing_below_anything(void **state)
{
	struct mountinfo m;
	size_t at = 0;

	(void)state;
	parse("", &m);
	assert_null(mountinfo_below(&m, "/", &at));
	assert_false(mountinfo_is_point(&m, "/"));
	assert_string_equal(mountinfo_type(&m, "/"), "");
	mountinfo_done(&m);
}

/* Of a table that is not this machine's nothing is in sight: a mount that another hides has another number. */
static void test_what_another_mount_hides_is_not_below(void **state)
{
	struct mountinfo m;
	size_t at = 0;

	(void)state;
	parse("999999 1 0:5 / /proc rw - proc proc rw\n999998 1 0:6 / /nowhere/at/all rw - tmpfs x rw\n", &m);
	assert_null(mountinfo_below(&m, "/", &at));
	mountinfo_done(&m);
}

static void test_our_own_table_has_proc(void **state)
{
	const struct mount_point *p;
	struct error err = ERROR_INIT;
	struct mountinfo m;
	size_t at = 0;
	int found = 0;

	(void)state;
	assert_int_equal(mountinfo_load(&m, &err), 0);
	while ((p = mountinfo_below(&m, "/", &at)))
		found += strcmp(p->path, "/proc") == 0;
	assert_int_equal(found, 1);
	assert_true(mountinfo_is_point(&m, "/proc"));
	assert_false(mountinfo_is_point(&m, "/proc/self"));
	assert_string_equal(mountinfo_type(&m, "/proc/self/stat"), "proc");
	mountinfo_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_unescaped),
		cmocka_unit_test(test_lines_with_any_number_of_optional_fields_come_outer_ones_first),
		cmocka_unit_test(test_an_empty_table_has_nothing_below_anything),
		cmocka_unit_test(test_what_another_mount_hides_is_not_below),
		cmocka_unit_test(test_our_own_table_has_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
