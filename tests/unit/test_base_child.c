#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "clock.h"

static int shell(const char *script, const char *input, uint64_t timeout_ns, size_t max,
		 struct child_end *ret)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"GIVEN=yes", "PATH=/usr/bin:/bin", NULL};
	struct error err = ERROR_INIT;
	const struct child_order o = {.path = "/bin/sh",
				      .argv = argv,
				      .env = env,
				      .input = input,
				      .input_size = input ? strlen(input) : 0,
				      .timeout_ns = timeout_ns,
				      .output_max = max};

	return child_run(&o, ret, &err);
}

static void test_what_it_says_and_how_it_ends(void **state)
{
	_cleanup_child_ struct child_end end;

	(void)state;
	assert_int_equal(
		shell("cat; echo $GIVEN $HOME; echo bad >&2; exit 7", "fed\n", 10 * NSEC_PER_SEC, 1000, &end),
		0);
	assert_int_equal(end.status, 7);
	assert_false(end.is_late);
	assert_string_equal(end.out.data, "fed\nyes\n");
	assert_string_equal(end.err.data, "bad\n");
}

static void test_a_file_is_read_from_its_beginning(void **state)
{
	static const char *const argv[] = {"cat", NULL}, *const env[] = {NULL};
	_cleanup_close_ int fd = memfd_create("input", MFD_CLOEXEC);
	_cleanup_child_ struct child_end end;
	struct error err = ERROR_INIT;
	const struct child_order o = {.path = "/bin/cat",
				      .argv = argv,
				      .env = env,
				      .reads_fd = true,
				      .input_fd = fd,
				      .timeout_ns = 60 * NSEC_PER_SEC,
				      .output_max = 1000};

	(void)state;
	assert_int_equal(write(fd, "whole", 5), 5);
	assert_int_equal(child_run(&o, &end, &err), 0);
	assert_string_equal(end.out.data, "whole");
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

static void test_late_is_killed_with_what_it_started(void **state)
{
	_cleanup_child_ struct child_end end;
	uint64_t begun = clock_now();

	(void)state;
	assert_int_equal(shell("echo before; sleep 100 & sleep 100", NULL, NSEC_PER_SEC / 2, 1000, &end), 0);
	assert_true(end.is_late);
	assert_int_equal(end.status, 128 + 9);
	assert_string_equal(end.out.data, "before\n");
	assert_true(clock_now() - begun < 60 * NSEC_PER_SEC);
}

static void test_a_descendant_with_its_streams_is_not_waited_for(void **state)
{
	_cleanup_child_ struct child_end end;

	(void)state;
	assert_int_equal(shell("sleep 3 & echo $!", NULL, 100 * NSEC_PER_SEC, 1000, &end), 0);
	assert_int_equal(end.status, 0);
	assert_false(end.is_late);
	assert_true(end.out.size > 1);
}

static void test_too_much_is_cut_and_said(void **state)
{
	_cleanup_child_ struct child_end end;

	(void)state;
	assert_int_equal(shell("head -c 100000 /dev/zero | tr '\\0' x", NULL, 10 * NSEC_PER_SEC, 1000, &end),
			 0);
	assert_int_equal(end.status, 0);
	assert_true(end.is_cut);
	assert_int_equal(end.out.size, 1000);
}

static void test_what_is_not_there_is_an_error(void **state)
{
	const char *const argv[] = {"none", NULL};
	struct error err = ERROR_INIT;
	const struct child_order o = {
		.path = "/nowhere/none", .argv = argv, .env = argv + 1, .timeout_ns = NSEC_PER_SEC};
	struct child_end end;

	(void)state;
	assert_int_equal(child_run(&o, &end, &err), -ENOENT);
	assert_string_equal(err.message, "cannot execute '/nowhere/none': No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_says_and_how_it_ends),
		cmocka_unit_test(test_a_file_is_read_from_its_beginning),
		cmocka_unit_test(test_late_is_killed_with_what_it_started),
		cmocka_unit_test(test_a_descendant_with_its_streams_is_not_waited_for),
		cmocka_unit_test(test_too_much_is_cut_and_said),
		cmocka_unit_test(test_what_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
