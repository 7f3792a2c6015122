/* The filter of the other machine, made on this one: its numbers are that machine's, and it allows and refuses what the table says. */
/* arm64 has the numbers of new machines, and these beside them. */
#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SYS_CLONE3
#include <asm-generic/unistd.h>

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "filter.h"

static uint32_t judge(int nr, uint64_t first, uint64_t second, uint64_t third)
{
	struct seccomp_data d = {.nr = nr, .arch = AUDIT_ARCH_AARCH64, .args = {first, second, third}};

	return filter_judge(&filters[FILTER_SILENT], &d);
}

static void test_what_every_program_needs_is_allowed(void **state)
{
	static const int calls[] = {__NR_read,	     __NR_write,  __NR_close,	  __NR_fstat,
				    __NR_newfstatat, __NR_execve, __NR_munmap,	  __NR_exit_group,
				    __NR_futex,	     __NR_brk,	  __NR_getrandom, __NR_rseq};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		assert_int_equal(judge(calls[i], 0, 0, 0), SECCOMP_RET_ALLOW);
}

static void test_what_nobody_may_is_refused(void **state)
{
	static const int calls[] = {__NR_unshare, __NR_setns, __NR_mount,
				    __NR_ptrace,  __NR_bpf,   __NR_kexec_load};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		assert_int_equal(judge(calls[i], 0, 0, 0) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	assert_int_equal(judge(__NR_openat2, 0, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(judge(__NR_clone3, 0, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}

static void test_arguments_decide_as_they_do_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(judge(__NR_clone, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(judge(__NR_clone, CLONE_NEWUSER, 0, 0), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(judge(__NR_mknodat, 0, 0, S_IFIFO), SECCOMP_RET_ALLOW);
	assert_int_equal(judge(__NR_mknodat, 0, 0, S_IFCHR), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(judge(__NR_fchmodat, 0, 0, S_ISUID), SECCOMP_RET_ERRNO | EPERM);
}

static void test_another_machines_calls_do_not_exist(void **state)
{
	static const uint32_t others[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_ARM};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct seccomp_data d = {.nr = __NR_read, .arch = others[i]};

		assert_int_equal(filter_judge(&filters[FILTER_SILENT], &d), SECCOMP_RET_ERRNO | ENOSYS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_every_program_needs_is_allowed),
		cmocka_unit_test(test_what_nobody_may_is_refused),
		cmocka_unit_test(test_arguments_decide_as_they_do_elsewhere),
		cmocka_unit_test(test_another_machines_calls_do_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
