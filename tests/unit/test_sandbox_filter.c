/* The programs that are made of one table allow and refuse the same: who listens changes nothing but who answers. */
#include <errno.h>
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "filter.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

static uint32_t judge(const struct filter *set, enum filter_kind kind, const struct seccomp_data *d)
{
	return filter_judge(&set[kind], d);
}

static uint64_t some_number(void)
{
	uint64_t r = ((uint64_t)(unsigned)rand() << 32) ^ (unsigned)rand();

	switch (rand() % 5) {
	case 0:
		return r % 64;
	case 1:
		return 1ULL << r % 64;
	case 2:
		return (r & 0xffff) | (rand() % 2 ? 1ULL << 40 : 0);
	case 3:
		return 0;
	}
	return r;
}

static void check(const struct filter *set, const struct seccomp_data *d)
{
	uint32_t silent = judge(set, FILTER_SILENT, d), tell = judge(set, FILTER_TELL, d),
		 explain = judge(set, FILTER_EXPLAIN, d);

	if (silent == SECCOMP_RET_ALLOW) {
		assert_int_equal(tell, SECCOMP_RET_ALLOW);
		assert_true(explain == SECCOMP_RET_ALLOW || explain == SECCOMP_RET_USER_NOTIF);
		return;
	}
	assert_int_equal(silent & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	assert_true(tell == silent || tell == SECCOMP_RET_USER_NOTIF);
	assert_int_equal(tell, explain);
	/* The C library must not be slowed down, or made to wait, where it only tries. */
	if ((silent & SECCOMP_RET_DATA) == ENOSYS || (silent & SECCOMP_RET_DATA) == 0)
		assert_int_equal(tell, silent);
}

static void test_all_kinds_allow_and_refuse_the_same(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < 2000000; i++) {
		struct seccomp_data d = {.nr = rand() % (FILTER_CALLS + 16), .arch = NATIVE};

		if (i % 97 == 0)
			d.arch = AUDIT_ARCH_I386;
		for (int arg = 0; arg < 6; arg++)
			d.args[arg] = some_number();
		check(filters, &d);
		check(filters_bare, &d);
	}
}

static void test_what_is_refused_is_told_unless_it_is_usual(void **state)
{
	struct seccomp_data unshare = {.nr = SYS_unshare, .arch = NATIVE},
			    clone3 = {.nr = SYS_clone3, .arch = NATIVE},
			    open = {.nr = SYS_openat, .arch = NATIVE},
			    socket = {.nr = SYS_socket, .arch = NATIVE, .args = {AF_ALG, SOCK_SEQPACKET}},
			    unknown = {.nr = 999, .arch = NATIVE}, read = {.nr = SYS_read, .arch = NATIVE};

	(void)state;
	assert_int_equal(judge(filters, FILTER_SILENT, &unshare), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(judge(filters, FILTER_TELL, &unshare), SECCOMP_RET_USER_NOTIF);
	assert_int_equal(judge(filters, FILTER_TELL, &socket), SECCOMP_RET_USER_NOTIF);
	assert_int_equal(judge(filters, FILTER_TELL, &clone3), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(judge(filters, FILTER_TELL, &unknown), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(judge(filters, FILTER_TELL, &open), SECCOMP_RET_ALLOW);
	assert_int_equal(judge(filters, FILTER_EXPLAIN, &open), SECCOMP_RET_USER_NOTIF);
	assert_int_equal(judge(filters, FILTER_EXPLAIN, &read), SECCOMP_RET_ALLOW);
	assert_string_equal(filter_names[SYS_unshare], "unshare");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds_allow_and_refuse_the_same),
		cmocka_unit_test(test_what_is_refused_is_told_unless_it_is_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
