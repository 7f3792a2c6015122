/*
 * What passes from the terminal of an analysis to the user's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "passage.h"
#include "terminal.h"
#include "text.h"

/* In pieces of this size; the result is the caller's. */
static char *pass(const char *text, size_t size, size_t piece, bool end)
{
	struct passage p = {0};
	struct buffer out = {0};

	for (size_t i = 0; i < size; i += piece)
		passage_bytes(&p, text + i, size - i < piece ? size - i : piece, &out);
	if (end)
		passage_end(&p, &out);
	buffer_append(&out, "", 1);
	return out.data;
}

static void check(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		char *seen = pass(text, strlen(text), piece, false);

		assert_string_equal(seen, expected);
		free(seen);
	}
}

static void test_what_draws_passes(void **state)
{
	static const char *const good[] = {"text\tand\r\nlines\b\a",
					   "\x1b[31;1mred\x1b[m",
					   "\x1b[38:5:9mx",
					   "\x1b[2J\x1b[5;7H",
					   "\x1b[?25l\x1b[?1049;2004h",
					   "\x1b[3 q\x1b[!p\x1b[4h",
					   "\x1b"
					   "7\x1b"
					   "8\x1bM\x1b(0\x1b)B\x0e\x0f",
					   "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\x80",
					   "\x1b[?2J\x1b[K\x1b[s\x1b[u"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		check(good[i], good[i]);
}

static void test_what_a_terminal_would_answer_or_obey_vanishes(void **state)
{
	static const char *const bad[] = {"\x1b]0;title\a", "\x1b]52;c;aGk=\x1b\\",
					  "\x1bP$qm\x1b\\", "\x1b_Gi=1\x1b\\",
					  "\x1b^x\x1b\\",   "\x1bXx\x1b\\",
					  "\x1b[c",	    "\x1b[>c",
					  "\x1b[=c",	    "\x1b[6n",
					  "\x1b[?6n",	    "\x1b[5n",
					  "\x1b[21t",	    "\x1b[14t",
					  "\x1b[?u",	    "\x1b[>1u",
					  "\x1b[>q",	    "\x1b[?25$p",
					  "\x1b[1$w",	    "\x1b[x",
					  "\x1b[i",	    "\x1b[?2048h",
					  "\x1b[?25;2048h", "\x1b[?h",
					  "\x1b[20h",	    "\x1bZ",
					  "\x1b[>4;2m",	    "\x05",
					  "\x7f",	    "\xc2\x9b",
					  "\x9b",	    "\xff",
					  "\xc3",	    "\x1b%G",
					  "\x1b(Z",	    "\x1b["};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(bad[i], "");
	check("a\x1b]0;b\x1b[31mc", "a\x1b[31mc");
	check("a\x1b\x1b[31mb", "a\x1b[31mb");
	check("\x1b[6\x1b[1mn", "\x1b[1mn");
}

/* "\x9b" begins a sequence there, in whatever letter it stands. */
static void test_a_terminal_of_8_bits_gets_no_control_in_a_letter(void **state)
{
	(void)state;
	terminal_is_8bit = true;
	check("gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x8d\x80 \xe2\x80\x9b"
	      "31m",
	      "gr\xc3\xbc 31m");
	terminal_is_8bit = false;
}

static void test_modes_are_taken_back_at_the_end(void **state)
{
	char *seen = pass("\x1b[?1000h", 8, 8, true), *plain = pass("plain", 5, 5, true);

	(void)state;
	assert_non_null(strstr(seen, "\x1b[?1000l"));
	assert_string_equal(plain, "plain");
	free(seen);
	free(plain);
}

/* Whatever comes, each ESC that leaves is followed by what may follow it, and no piece is looked at in another way than the whole. */
static void test_anything_at_all(void **state)
{
	static const char letters[] = "\x1b\x1b\x1b[[]?;0123456789cntmhlPX_\\\a\x05\xc2\x9b\xe2\x82 $>q";
	char text[256];

	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t size = (size_t)rand() % sizeof text;
		char *whole, *parts;

		for (size_t i = 0; i < size; i++)
			text[i] = letters[(size_t)rand() % (sizeof letters - 1)];
		whole = pass(text, size, size ? size : 1, false);
		parts = pass(text, size, 1 + (size_t)rand() % 7, false);
		assert_string_equal(whole, parts);
		for (const char *at = whole; (at = strchr(at, '\x1b')); at++)
			assert_non_null(strchr("[78=>DEHMc()", at[1]));
		assert_null(strstr(whole, "\xc2\x9b"));
		assert_null(strchr(whole, '\x05'));
		free(whole);
		free(parts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_draws_passes),
		cmocka_unit_test(test_what_a_terminal_would_answer_or_obey_vanishes),
		cmocka_unit_test(test_a_terminal_of_8_bits_gets_no_control_in_a_letter),
		cmocka_unit_test(test_modes_are_taken_back_at_the_end),
		cmocka_unit_test(test_anything_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
