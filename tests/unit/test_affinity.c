#include "place.h"

#include "affinity.h"

static int usable_cpus(void)
{
	cpu_set_t usable;

	assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
	return CPU_COUNT(&usable);
}

static void test_each_gets_cpus_of_its_own_until_there_are_none_left(void **state)
{
	int count = usable_cpus();
	struct affinity *taken = calloc((size_t)count, sizeof *taken), more;
	struct error err = ERROR_INIT;
	cpu_set_t all, both;
	struct place p;

	(void)state;
	place_open(&p);
	CPU_ZERO(&all);
	for (int i = 0; i < count; i++) {
		assert_int_equal(affinity_take(p.fd, 1000, &taken[i], &err), 0);
		if (count == 1) { /* one of one is all */
			assert_int_equal(taken[i].count, 0);
			continue;
		}
		assert_int_equal(taken[i].count, 1);
		assert_int_equal(CPU_COUNT(&taken[i].cpus), 1);
		CPU_AND(&both, &all, &taken[i].cpus);
		assert_int_equal(CPU_COUNT(&both), 0);
		CPU_OR(&all, &all, &taken[i].cpus);
	}
	assert_int_equal(affinity_take(p.fd, 1000, &more, &err), 0);
	assert_int_equal(more.count, 0);
	affinity_release(&more);
	for (int i = 0; i < count; i++)
		affinity_release(&taken[i]);
	assert_int_equal(affinity_take(p.fd, 1, &more, &err), 0);
	assert_int_equal(more.count, count == 1 ? 0 : 1);
	affinity_release(&more);
	free(taken);
	place_close(&p);
}

static void test_as_many_as_there_are_or_more_need_no_choice(void **state)
{
	struct error err = ERROR_INIT;
	struct affinity a;
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(affinity_take(p.fd, (uint64_t)usable_cpus() * 1000, &a, &err), 0);
	assert_int_equal(a.count, 0);
	assert_int_equal(affinity_take(p.fd, UINT64_MAX / 2, &a, &err), 0);
	assert_int_equal(a.count, 0);
	assert_int_equal(faccessat(p.fd, "cpus", F_OK, 0), -1);
	place_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_gets_cpus_of_its_own_until_there_are_none_left),
		cmocka_unit_test(test_as_many_as_there_are_or_more_need_no_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
