/*
 * The walls that stand inside the process itself: identity, capabilities, seccomp.
 */
#include "init.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

/* Effective := permitted, which a change of uid has taken apart. */
static void capabilities_raise(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (SYS2(__NR_capget, &header, data) < 0)
		return;
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	SYS2(__NR_capset, &header, data);
}

/*
 * Who the analysis is. An ordinary user's init lives in its user namespace already. As root the mounts were made with
 * real rights; now we enter a user namespace that maps one identity, the slot's, and take it.
 */
void identity_assume(void)
{
	long r;

	if (!spec->userns_first) {
		r = SYS2(__NR_setgroups, 0, 0);
		if (r < 0)
			fail("drop the supplementary groups", NULL, r);
	}
	if (spec->own_userns) {
		r = SYS1(__NR_unshare, CLONE_NEWUSER);
		if (r < 0)
			fail("make a user namespace", NULL, r);
		if (ask(REPORT_NEED_MAP, 0, 0) != CONTROL_GO)
			fail("get an identity in the user namespace", NULL, -EPERM);
	}
	/* Without a user namespace, leaving uid 0 would take away now what the last steps still need. */
	SYS5(__NR_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);
	r = SYS3(__NR_setresgid, spec->gid, spec->gid, spec->gid);
	if (r >= 0)
		r = SYS3(__NR_setresuid, spec->uid, spec->uid, spec->uid);
	if (r < 0)
		fail("take the analysis's identity", NULL, r);
	capabilities_raise();
	layer(1, "user namespace",
	      spec->userns_first ? "owns all the others"
	      : spec->own_userns ? "one identity"
				 : "none: a uid of its own");
}

void privileges_bound(void)
{
	for (int cap = 0; cap < 64; cap++)
		if (SYS5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
}

void privileges_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};
	long r;

	SYS5(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	SYS5(__NR_prctl, PR_SET_SECUREBITS,
	     SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
		     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
		     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	     0, 0, 0);
	r = SYS2(__NR_capset, &header, none);
	if (r < 0)
		fail("drop the capabilities", NULL, r);
}

static long filter_load(uint32_t at, uint32_t length, unsigned flags)
{
	struct sock_fprog program = {
		.len = (unsigned short)length,
		.filter = (struct sock_filter *)spec_at(at),
	};

	return SYS3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* A filter that asks. With the second flag, who has been heard is not disturbed by signals (Linux 5.19). Not everybody may: one
 * that listens already, around us, is the only one. */
static long filter_listen(void)
{
	long fd = filter_load(spec->teller, spec->n_teller,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (fd == -EINVAL)
		fd = filter_load(spec->teller, spec->n_teller, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	return fd;
}

void filter_apply(void)
{
	long r = spec->teller ? filter_listen() : -ENOSYS;

	if (r >= 0) {
		descriptor_send(REPORT_LISTENER, (int)r);
		SYS1(__NR_close, r);
		return;
	}
	r = filter_load(spec->filter, spec->n_filter, 0);
	if (r < 0)
		fail("load the system call filter", NULL, r);
}
