/* One thing beside another: done once, before its owner is told so. */
#include "hand.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

struct note {
	int ready[2], go[2]; /* pipes */
	pthread_t who;
	int times;
};

static void note_it(void *arg)
{
	struct note *n = arg;

	n->who = pthread_self();
	n->times++;
}

static void wait_for_word(void *arg)
{
	struct note *n = arg;
	char c;

	note_it(n);
	assert_int_equal(write(n->ready[1], "r", 1), 1);
	assert_int_equal(read(n->go[0], &c, 1), 1);
}

static void test_without_one_the_caller_does_it(void **state)
{
	struct note n = {0};

	(void)state;
	hand_do(NULL, note_it, &n);
	assert_true(n.times == 1 && pthread_equal(n.who, pthread_self()));
	hand_await(NULL);
	assert_null(hand_free(NULL));
}

static void test_it_works_while_its_owner_does(void **state)
{
	struct hand *h = hand_new();
	struct note n = {0};
	char c;

	(void)state;
	if (!h)
		skip(); /* a single CPU */
	assert_int_equal(pipe(n.ready), 0);
	assert_int_equal(pipe(n.go), 0);
	hand_do(h, wait_for_word, &n);
	assert_int_equal(read(n.ready[0], &c, 1), 1); /* it is at it, and we are here */
	assert_int_equal(write(n.go[1], "g", 1), 1);
	hand_await(h);
	assert_true(n.times == 1 && !pthread_equal(n.who, pthread_self()));
	for (int i = 0; i < 2; i++) {
		close(n.ready[i]);
		close(n.go[i]);
	}
	hand_free(h);
}

static void test_tasks_are_done_one_after_the_other_and_before_its_end(void **state)
{
	struct hand *h = hand_new();
	struct note n = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		hand_do(h, note_it, &n);
	hand_await(h);
	assert_int_equal(n.times, 1000);
	hand_do(h, note_it, &n);
	hand_free(h);
	assert_int_equal(n.times, 1001);
}

static void test_one_that_had_no_task_has_no_thread_to_end(void **state)
{
	struct hand *h = hand_new();

	(void)state;
	hand_await(h);
	assert_null(hand_free(h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_one_the_caller_does_it),
		cmocka_unit_test(test_it_works_while_its_owner_does),
		cmocka_unit_test(test_tasks_are_done_one_after_the_other_and_before_its_end),
		cmocka_unit_test(test_one_that_had_no_task_has_no_thread_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
