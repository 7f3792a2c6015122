#include "place.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "slot.h"

static void test_a_slot_is_one_analysis_at_a_time(void **state)
{
	struct error err = ERROR_INIT;
	struct slot slots[4], more;
	bool seen[4] = {false};
	struct place p;

	(void)state;
	place_open(&p);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(slot_take_in(p.fd, 4, &slots[i], &err), 0);
		assert_in_range(slots[i].number, 0, 3);
		assert_false(seen[slots[i].number]);
		seen[slots[i].number] = true;
		assert_int_equal(slots[i].uid, 0x70000000 + (unsigned)slots[i].number);
		assert_int_equal(slots[i].gid, slots[i].uid);
	}
	assert_true(slot_take_in(p.fd, 4, &more, &err) < 0);
	assert_int_equal(err.kind, ERROR_BUSY);
	slot_release(&slots[2]);
	assert_int_equal(slot_take_in(p.fd, 4, &more, &err), 0);
	assert_int_equal(more.number, slots[2].number);
	slot_release(&more);
	for (int i = 0; i < 4; i++)
		slot_release(&slots[i]);
	place_close(&p);
}

enum { TAKERS = 8, EACH = 125 };

static int take_many(int fd, int *numbers, int *arrived)
{
	for (int i = 0; i < EACH; i++) {
		struct error err = ERROR_INIT;
		struct slot s;

		if (slot_take_in(fd, SLOT_COUNT, &s, &err) < 0)
			return 1;
		numbers[i] = s.number;
	}
	/* All hold theirs until all have them. */
	__atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < TAKERS)
		sched_yield();
	return 0;
}

static void test_a_thousand_takers_at_once_all_get_their_own(void **state)
{
	size_t size = sizeof(int) * (TAKERS * EACH + 1);
	int *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool *seen = calloc(SLOT_COUNT, sizeof *seen);
	pid_t pids[TAKERS];
	struct place p;
	int status;

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < TAKERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(take_many(p.fd, shared + 1 + i * EACH, shared));
	}
	for (int i = 0; i < TAKERS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < TAKERS * EACH; i++) {
		assert_in_range(shared[1 + i], 0, SLOT_COUNT - 1);
		assert_false(seen[shared[1 + i]]);
		seen[shared[1 + i]] = true;
	}
	free(seen);
	munmap(shared, size);
	place_close(&p);
}

static void test_a_slot_whose_former_is_dying_is_passed_over(void **state)
{
	struct error err = ERROR_INIT;
	struct process_id former;
	struct slot s, again;
	struct place p;
	int status;
	pid_t pid;

	(void)state;
	place_open(&p);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(process_identify(pid, &former), 0);
	assert_int_equal(slot_take_in(p.fd, 1, &s, &err), 0);
	assert_int_equal(slot_bind(&s, &former), 0);
	slot_release(&s);
	assert_true(slot_take_in(p.fd, 1, &again, &err) < 0);
	assert_int_equal(err.kind, ERROR_BUSY);
	kill(pid, SIGKILL);
	/* A zombie holds nothing any more: it counts as gone before it is waited for. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(slot_take_in(p.fd, 1, &again, &err), 0);
	slot_release(&again);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	place_close(&p);
}

static void test_a_shorter_note_counts_over_a_longer_one(void **state)
{
	const struct process_id longer = {.pid = INT32_MAX, .start = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct process_id me;
	struct slot s;
	struct place p;

	(void)state;
	assert_int_equal(process_identify(getpid(), &me), 0);
	place_open(&p);
	assert_int_equal(slot_take_in(p.fd, 1, &s, &err), 0);
	assert_int_equal(slot_bind(&s, &longer), 0);
	assert_int_equal(slot_bind(&s, &me), 0);
	slot_release(&s);
	assert_true(slot_take_in(p.fd, 1, &s, &err) < 0);
	assert_int_equal(err.kind, ERROR_BUSY);
	place_close(&p);
}

static void test_notes_of_another_life_and_nonsense_do_not_count(void **state)
{
	char boot[BOOT_ID_SIZE], now[256];
	struct process_id me;
	struct place p;

	(void)state;
	assert_int_equal(process_identify(getpid(), &me), 0);
	boot_id(boot);
	place_open(&p);
	for (int i = 0; i < 5; i++) {
		struct error err = ERROR_INIT;
		struct slot s;

		switch (i) {
		case 0:
			snprintf(now, sizeof now, "11111111-2222-3333-4444-555555555555 %d %llu\n",
				 (int)me.pid, (unsigned long long)me.start);
			break;
		case 1:
			snprintf(now, sizeof now, "%s %d %llu\n", boot, (int)me.pid,
				 (unsigned long long)me.start + 1);
			break;
		case 2:
			snprintf(now, sizeof now, "%s -1 0\n", boot);
			break;
		case 3:
			snprintf(now, sizeof now, "%s", "nonsense");
			break;
		default:
			memset(now, 'x', sizeof now - 1);
			now[sizeof now - 1] = 0;
		}
		put_file(p.fd, "0", now);
		assert_int_equal(slot_take_in(p.fd, 1, &s, &err), 0);
		slot_release(&s);
	}
	place_close(&p);
}

static void test_a_planted_link_is_passed_over(void **state)
{
	struct error err = ERROR_INIT;
	struct slot s;
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "precious", "precious");
	put_dir(p.fd, "slots");
	put_link(p.fd, "slots/0", "../precious");
	put_dir(p.fd, "slots/1");
	put_fifo(p.fd, "slots/2");
	{
		int fd = openat(p.fd, "slots", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_int_equal(slot_take_in(fd, 4, &s, &err), 0);
		close(fd);
	}
	assert_int_equal(s.number, 3);
	slot_release(&s);
	assert_content(p.fd, "precious", "precious");
	place_close(&p);
}

static void test_root_takes_a_real_slot_and_others_are_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct slot s;

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(slot_take(&s, &err), 0);
		assert_true(s.uid >= 0x70000000);
		slot_release(&s);
		return;
	}
	assert_true(slot_take(&s, &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slot_is_one_analysis_at_a_time),
		cmocka_unit_test(test_a_thousand_takers_at_once_all_get_their_own),
		cmocka_unit_test(test_a_slot_whose_former_is_dying_is_passed_over),
		cmocka_unit_test(test_a_shorter_note_counts_over_a_longer_one),
		cmocka_unit_test(test_notes_of_another_life_and_nonsense_do_not_count),
		cmocka_unit_test(test_a_planted_link_is_passed_over),
		cmocka_unit_test(test_root_takes_a_real_slot_and_others_are_refused),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
