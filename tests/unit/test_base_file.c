/* Bytes from one descriptor to another: every loop comes to its end, whatever errno was before. */
#include "place.h"

#include <errno.h>

#include "file.h"

static int open_new(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void test_a_file_that_became_shorter_ends_the_copy_whatever_errno_was_before(void **state)
{
	struct place p;
	int from, to;

	(void)state;
	place_open(&p);
	put_file(p.fd, "from", "four");
	from = openat(p.fd, "from", O_RDONLY | O_CLOEXEC);
	to = open_new(p.fd, "to");
	alarm(20); /* instead of for ever */
	errno = EINTR;
	assert_int_equal(file_send(from, to, 100), -ENODATA);
	alarm(0);
	assert_int_equal(lseek(to, 0, SEEK_CUR), 4);
	close(from);
	close(to);
	place_close(&p);
}

static void test_exactly_as_much_is_copied_as_was_asked_for(void **state)
{
	struct place p;
	int from, to;

	(void)state;
	place_open(&p);
	put_file(p.fd, "from", "four and more");
	from = openat(p.fd, "from", O_RDONLY | O_CLOEXEC);
	to = open_new(p.fd, "to");
	errno = EINTR;
	assert_int_equal(file_send(from, to, 4), 0);
	assert_int_equal(file_send(from, to, 0), 0);
	assert_int_equal(lseek(to, 0, SEEK_CUR), 4);
	close(to);
	assert_int_equal(file_send(from, to, 1), -EBADF);
	close(from);
	place_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_became_shorter_ends_the_copy_whatever_errno_was_before),
		cmocka_unit_test(test_exactly_as_much_is_copied_as_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
