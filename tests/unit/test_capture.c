#include "place.h"

#include <errno.h>
#include <string.h>

#include "capture.h"

enum { PIECES_MAX = 7 };

/* Captures `total` bytes that count up, in pieces of uneven sizes, and looks at what was kept. */
static void capture_counting(int fd, uint64_t max, size_t total, struct captured *ret)
{
	struct error err = ERROR_INIT;
	struct capture c;
	size_t piece = 1;

	assert_int_equal(ftruncate(fd, 0), 0);
	capture_init(&c, fd, max);
	for (size_t at = 0; at < total; at += piece) {
		char data[PIECES_MAX];

		piece = 1 + at % PIECES_MAX;
		piece = piece < total - at ? piece : total - at;
		for (size_t i = 0; i < piece; i++)
			data[i] = (char)(at + i);
		capture_add(&c, data, piece);
	}
	assert_int_equal(capture_finish(&c, ret, &err), 0);
}

static void test_the_first_bytes_and_the_last_are_kept_and_the_rest_is_counted(void **state)
{
	static const size_t limits[] = {0, 1, 2, 7, 16, 33};
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	fd = openat(p.fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (size_t l = 0; l < ARRAY_SIZE(limits); l++)
		for (size_t total = 0; total < 100; total++) {
			size_t max = limits[l], kept = total < max ? total : max;
			struct captured c;

			capture_counting(fd, max, total, &c);
			assert_int_equal(c.head_size + c.tail_size, kept);
			assert_int_equal(c.omitted, total - kept);
			for (size_t i = 0; i < c.head_size; i++)
				assert_int_equal(c.head[i], (char)i);
			for (size_t i = 0; i < c.tail_size; i++)
				assert_int_equal(c.tail[i], (char)(total - c.tail_size + i));
			captured_done(&c);
		}
	close(fd);
	place_close(&p);
}

static void test_a_log_never_takes_more_room_than_its_limit(void **state)
{
	struct captured c;
	struct place p;
	struct stat st;
	int fd;

	(void)state;
	place_open(&p);
	fd = openat(p.fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	capture_counting(fd, 64, 100000, &c);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 64);
	captured_done(&c);
	close(fd);
	place_close(&p);
}

static void test_what_a_dead_supervisor_left_has_at_least_its_head_in_order(void **state)
{
	struct error err = ERROR_INIT;
	struct captured c;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	fd = openat(p.fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	capture_counting(fd, 64, 1000, &c);
	captured_done(&c);
	assert_int_equal(capture_recover(fd, 64, &c, &err), 0);
	assert_int_equal(c.head_size, 32);
	assert_int_equal(c.tail_size, 32);
	for (size_t i = 0; i < c.head_size; i++)
		assert_int_equal(c.head[i], (char)i);
	captured_done(&c);
	close(fd);
	place_close(&p);
}

static void test_what_cannot_be_written_is_counted_and_what_was_is_kept(void **state)
{
	struct error err = ERROR_INIT;
	struct captured kept;
	struct capture c;
	struct place p;
	int full = open("/dev/full", O_RDWR | O_CLOEXEC), fd;

	(void)state;
	place_open(&p);
	assert_true(full >= 0);
	fd = openat(p.fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	capture_init(&c, fd, 16);
	capture_add(&c, "abcde", 5);
	c.fd = full; /* the disk is full now */
	capture_add(&c, "fghijklmnopqrstuvwxyz", 21);
	c.fd = fd;
	assert_int_equal(c.write_errno, ENOSPC);
	assert_int_equal(capture_finish(&c, &kept, &err), 0);
	assert_int_equal(kept.head_size, 5);
	assert_memory_equal(kept.head, "abcde", 5);
	assert_int_equal(kept.tail_size, 0);
	assert_int_equal(kept.omitted, 21);
	captured_done(&kept);
	close(fd);
	close(full);
	place_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_bytes_and_the_last_are_kept_and_the_rest_is_counted),
		cmocka_unit_test(test_a_log_never_takes_more_room_than_its_limit),
		cmocka_unit_test(test_what_a_dead_supervisor_left_has_at_least_its_head_in_order),
		cmocka_unit_test(test_what_cannot_be_written_is_counted_and_what_was_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
