/*
 * Entries of the journal, byte by byte, and when there is one to send to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "macros.h"
#include "journal.h"

static void test_an_entry_has_each_value_with_its_size(void **state UNUSED)
{
	static const char expected[] = "MESSAGE\n\7\0\0\0\0\0\0\0a\nID=b\n\n"
				       "FUMEHOOD_ID\n\3\0\0\0\0\0\0\0a42\n";
	const struct journal_field fields[] = {
		{"MESSAGE", "a\nID=b\n"}, {"FUMEHOOD_VERDICT", NULL}, {"FUMEHOOD_ID", "a42"}, {0}};
	int ends[2];
	char got[256];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(journal_send(ends[0], fields), 0);
	assert_int_equal(recv(ends[1], got, sizeof got, 0), sizeof expected - 1);
	assert_memory_equal(got, expected, sizeof expected - 1);
	fd_close(ends[1]);
	assert_int_equal(journal_send(ends[0], fields), -ECONNREFUSED);
	fd_close(ends[0]);
}

static void test_who_is_redirected_elsewhere_has_no_journal(void **state UNUSED)
{
	struct stat st;
	char other[64];

	unsetenv("JOURNAL_STREAM");
	assert_int_equal(journal_open(), -1);
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(other, sizeof other, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	setenv("JOURNAL_STREAM", other, 1);
	assert_int_equal(journal_open(), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_entry_has_each_value_with_its_size),
		cmocka_unit_test(test_who_is_redirected_elsewhere_has_no_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
