/* Work that several hands do: all of it, once, and what comes out is what one hand would have made. */
#include "crew.h"
#include "hasher.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES = 10007 };

struct tally {
	atomic_uchar seen[PIECES];
	atomic_size_t largest;
};

static void count(void *arg, size_t from, size_t to)
{
	struct tally *t = arg;

	if (to - from > t->largest)
		t->largest = to - from;
	for (size_t i = from; i < to; i++)
		t->seen[i]++;
}

static void check_each(struct crew *c, size_t n, size_t grain)
{
	static struct tally t;

	memset(&t, 0, sizeof t);
	crew_each(c, n, grain, count, &t);
	for (size_t i = 0; i < PIECES; i++)
		assert_int_equal(t.seen[i], i < n);
	if (c)
		assert_true(t.largest <= grain);
}

static void test_every_piece_is_done_once(void **state UNUSED)
{
	_cleanup_crew_ struct crew *c = crew_new();

	for (int round = 0; round < 200; round++) {
		check_each(c, PIECES, 7);
		check_each(c, 0, 7);
		check_each(c, 1, 7);
		check_each(c, 8, 7);
	}
}

static void test_a_crew_may_be_the_caller_alone(void **state UNUSED)
{
	check_each(NULL, PIECES, 7);
	crew_free(NULL);
}

static void test_who_has_one_cpu_works_alone(void **state UNUSED)
{
	cpu_set_t before, one;

	assert_return_code(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_return_code(sched_setaffinity(0, sizeof one, &one), 0);
	assert_null(crew_new());
	assert_return_code(sched_setaffinity(0, sizeof before, &before), 0);
}

/* In pieces of any size, as a file is read. */
static void check_hasher(size_t size, size_t piece, uint64_t announced)
{
	_cleanup_hasher_ struct hasher *h = hasher_new(announced);
	_cleanup_free_ char *text = malloc(size + 1);
	uint8_t expected[DIGEST_SIZE], found[DIGEST_SIZE];

	assert_non_null(h);
	assert_non_null(text);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)(i * 31 + i / 4096);
	digest_bytes(text, size, expected);
	for (size_t at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		memcpy(hasher_room(h), text + at, n);
		hasher_feed(h, n);
	}
	hasher_final(h, found);
	assert_memory_equal(expected, found, DIGEST_SIZE);
}

static void test_a_stream_has_the_digest_of_its_bytes(void **state UNUSED)
{
	check_hasher(0, HASHER_ROOM, 0);
	check_hasher(0, HASHER_ROOM, UINT64_MAX);
	check_hasher(100000, 1000, 100000);
	check_hasher(100000, 1000, UINT64_MAX);
	check_hasher(9 * 1024 * 1024 + 17, HASHER_ROOM, 9 * 1024 * 1024 + 17);
}

static void test_a_stream_may_be_given_up(void **state UNUSED)
{
	struct hasher *h = hasher_new(UINT64_MAX);

	assert_non_null(h);
	memset(hasher_room(h), 1, HASHER_ROOM);
	hasher_feed(h, HASHER_ROOM);
	hasher_free(h);
	hasher_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_piece_is_done_once),
		cmocka_unit_test(test_a_crew_may_be_the_caller_alone),
		cmocka_unit_test(test_who_has_one_cpu_works_alone),
		cmocka_unit_test(test_a_stream_has_the_digest_of_its_bytes),
		cmocka_unit_test(test_a_stream_may_be_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
