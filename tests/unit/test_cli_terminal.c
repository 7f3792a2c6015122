/*
 * What reaches a terminal from a stranger, and how numbers and tables look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "print.h"
#include "terminal.h"

/* Through a filter, in pieces of the given size. */
static char *filtered(const char *data, size_t size, size_t piece)
{
	struct buffer out = {0};
	struct filter f = {0};

	for (size_t i = 0; i < size; i += piece)
		filter_bytes(&f, data + i, size - i < piece ? size - i : piece, &out);
	filter_end(&f, &out);
	return buffer_take(&out);
}

/* The same whether it comes at once or byte by byte. */
static void assert_filtered(const char *data, size_t size, const char *expected)
{
	for (size_t piece = 1; piece <= size; piece++) {
		_cleanup_free_ char *text = filtered(data, size, piece);

		assert_string_equal(text, expected);
	}
}

#define ASSERT_FILTERED(data, expected) assert_filtered(data, sizeof(data) - 1, expected)

static void test_plain_text_lines_and_tabs_pass(void **state UNUSED)
{
	ASSERT_FILTERED("a\tb\r\nc\b\n", "a\tb\r\nc\b\n");
	ASSERT_FILTERED("Grüße, 漢字 🧪\n", "Grüße, 漢字 🧪\n");
}

static void test_colours_pass_and_are_reset_at_the_end(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n");
	ASSERT_FILTERED("\x1b[38:5:9mred\x1b[m\n", "\x1b[38:5:9mred\x1b[m\n");
	ASSERT_FILTERED("\x1b[31mred\n", "\x1b[31mred\n\x1b[0m");
}

static void test_cursor_and_screen_sequences_become_visible(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H");
	ASSERT_FILTERED("\x1b[?1049h", "\\x1b[?1049h");
	ASSERT_FILTERED("\x1b"
			"c",
			"\\x1bc");
}

static void test_key_modifier_sequences_ending_in_m_become_visible(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b[>4;2m", "\\x1b[>4;2m");
	ASSERT_FILTERED("\x1b[?4m", "\\x1b[?4m");
	ASSERT_FILTERED("\x1b[ 1m", "\\x1b[ 1m");
}

static void test_window_titles_clipboards_and_device_strings_become_visible(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b]0;title\x07", "\\x1b]0;title\\x07");
	ASSERT_FILTERED("\x1b]52;c;aGk=\x1b\\", "\\x1b]52;c;aGk=\\x1b\\");
	ASSERT_FILTERED("\x1bP+q544e\x1b\\", "\\x1bP+q544e\\x1b\\");
}

static void test_c1_controls_become_visible_raw_and_as_utf8(void **state UNUSED)
{
	ASSERT_FILTERED("\x9b"
			"31m",
			"\\x9b31m");
	ASSERT_FILTERED("\xc2\x9b"
			"31m",
			"\\xc2\\x9b31m");
	ASSERT_FILTERED("\xc2\xa0", "\xc2\xa0");
}

static void test_bytes_that_are_no_utf8_become_visible(void **state UNUSED)
{
	ASSERT_FILTERED("\xff\xfe", "\\xff\\xfe");
	ASSERT_FILTERED("\xc3(", "\\xc3(");
	ASSERT_FILTERED("\xe2\x82", "\\xe2\\x82");
	ASSERT_FILTERED("\xed\xa0\x80", "\\xed\\xa0\\x80");
	ASSERT_FILTERED("\0\x7f\x0e", "\\x00\\x7f\\x0e");
}

static void test_an_escape_within_a_sequence_starts_afresh(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b[3\x1b[31mx\x1b[0m", "\\x1b[3\x1b[31mx\x1b[0m");
	ASSERT_FILTERED("\xe2\x1b[2J", "\\xe2\\x1b[2J");
}

static void test_a_colour_sequence_without_end_is_not_held_for_ever(void **state UNUSED)
{
	ASSERT_FILTERED("\x1b[0000000000000000000000000000000000000000m",
			"\\x1b[0000000000000000000000000000000000000000m");
}

static void test_messages_are_made_safe_once(void **state UNUSED)
{
	_cleanup_free_ char *once = text_safe("cannot open 'a\x1b[2Jb\\x07'\n");
	_cleanup_free_ char *twice = text_safe(once);

	assert_string_equal(once, "cannot open 'a\\x1b[2Jb\\x07'\\x0a");
	assert_string_equal(twice, once);
}

static void test_no_colour_is_honoured_and_pipes_have_none(void **state UNUSED)
{
	struct terminal t = {.colour = false};

	assert_string_equal(terminal_style(&t, STYLE_RED), "");
	terminal_probe(&t, -1);
	assert_false(t.is_tty);
	assert_false(t.colour);
	assert_int_equal(terminal_width(&t), 80);
}

static void test_sizes_are_short(void **state UNUSED)
{
	char text[PRINT_ROOM];

	assert_string_equal(print_size(-1, text), "-");
	assert_string_equal(print_size(0, text), "0 B");
	assert_string_equal(print_size(1023, text), "1023 B");
	assert_string_equal(print_size(1536, text), "1.5 KiB");
	assert_string_equal(print_size(45 << 20, text), "45 MiB");
	assert_string_equal(print_size((1 << 20) - 1, text), "1.0 MiB");
	assert_string_equal(print_size(INT64_MAX, text), "8.0 EiB");
}

static void test_durations_are_short(void **state UNUSED)
{
	char text[PRINT_ROOM];

	assert_string_equal(print_duration(-1, text), "-");
	assert_string_equal(print_duration(999, text), "999 ms");
	assert_string_equal(print_duration(1250, text), "1.2 s");
	assert_string_equal(print_duration(200000, text), "3 min 20 s");
	assert_string_equal(print_duration(7500000, text), "2 h 05 min");
	assert_string_equal(print_duration(90000000, text), "1 d 01 h");
}

static void test_columns_are_as_wide_as_a_terminal_counts(void **state UNUSED)
{
	_cleanup_table_ struct table t = {.n_columns = 3, .right = 2};
	_cleanup_free_ char *text = NULL;
	struct error err = ERROR_INIT;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	table_add(&t, "ID", "N", "X");
	table_add(&t, "\x1b[31mä\x1b[0m", "100", NULL);
	assert_int_equal(table_print(&t, to, &err), 0);
	fclose(to);
	assert_string_equal(text, "ID    N  X\n\x1b[31mä\x1b[0m   100  -\n");
}

static void test_bars_keep_their_peak_when_they_are_thinned(void **state UNUSED)
{
	int64_t values[100] = {[42] = 8};
	_cleanup_free_ char *bars = print_bars(values, 100, 10, 8, false);
	_cleanup_free_ char *none = print_bars((int64_t[]){-1, -1}, 2, 2, 0, false);

	assert_string_equal(bars, "....#.....");
	assert_string_equal(none, "  ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_text_lines_and_tabs_pass),
		cmocka_unit_test(test_colours_pass_and_are_reset_at_the_end),
		cmocka_unit_test(test_cursor_and_screen_sequences_become_visible),
		cmocka_unit_test(test_key_modifier_sequences_ending_in_m_become_visible),
		cmocka_unit_test(test_window_titles_clipboards_and_device_strings_become_visible),
		cmocka_unit_test(test_c1_controls_become_visible_raw_and_as_utf8),
		cmocka_unit_test(test_bytes_that_are_no_utf8_become_visible),
		cmocka_unit_test(test_an_escape_within_a_sequence_starts_afresh),
		cmocka_unit_test(test_a_colour_sequence_without_end_is_not_held_for_ever),
		cmocka_unit_test(test_messages_are_made_safe_once),
		cmocka_unit_test(test_no_colour_is_honoured_and_pipes_have_none),
		cmocka_unit_test(test_sizes_are_short),
		cmocka_unit_test(test_durations_are_short),
		cmocka_unit_test(test_columns_are_as_wide_as_a_terminal_counts),
		cmocka_unit_test(test_bars_keep_their_peak_when_they_are_thinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
