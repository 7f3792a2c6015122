/*
 * The walls that stand inside the process itself: Landlock, identity, capabilities, seccomp.
 */
#include "init.h"

#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

/* Newer than Debian 12's headers. */
#define FS_REFER		   (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE		   (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV		   (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)	/* ABI 6 */
#define SCOPE_SIGNAL		   (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define FS_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_WRITE                                                                                          \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |       \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define FS_NEVER (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

static void rule_add(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access};
	long fd = SYS4(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), r;

	if (fd < 0)
		fail("open for Landlock", path, fd);
	rule.parent_fd = (int)fd;
	r = SYS4(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (r < 0)
		fail("add a Landlock rule for", path, r);
	SYS1(__NR_close, fd);
}

/* After the mounts: a rule on a directory does not cover what is mounted over it later. */
int landlock_prepare(void)
{
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};
	const uint32_t *writable = spec_at(spec->writable);
	long abi = SYS3(__NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION), fd;
	struct ruleset_attr attr = {.fs = FS_READ | FS_WRITE | FS_NEVER};
	size_t size = 8; /* too large a struct is an error on an old kernel */
	char detail[] = "ABI 00";

	if (abi < 1) {
		layer(0, "landlock", "this kernel has none");
		return -1;
	}
	if (abi >= 2)
		attr.fs |= FS_REFER;
	if (abi >= 3)
		attr.fs |= FS_TRUNCATE;
	if (abi >= 5)
		attr.fs |= FS_IOCTL_DEV;
	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof attr;
	}
	fd = SYS3(__NR_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		fail("make a Landlock ruleset", NULL, fd);
	rule_add((int)fd, "/", FS_READ);
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		rule_add((int)fd, devices[i],
			 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				 (attr.fs & FS_TRUNCATE));
	for (uint32_t i = 0; i < spec->n_writable; i++)
		rule_add((int)fd, spec_string(writable[i]), attr.fs & ~(FS_NEVER | FS_IOCTL_DEV));
	if (abi < 10) {
		detail[4] = (char)('0' + abi);
		detail[5] = 0;
	} else {
		detail[4] = (char)('0' + abi / 10 % 10);
		detail[5] = (char)('0' + abi % 10);
	}
	layer(1, "landlock", detail);
	return (int)fd;
}

void landlock_apply(int ruleset)
{
	long r;

	if (ruleset < 0)
		return;
	r = SYS2(__NR_landlock_restrict_self, ruleset, 0);
	if (r < 0)
		fail("enforce Landlock", NULL, r);
}

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

void privileges_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};
	long r;

	SYS5(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int cap = 0; cap < 64; cap++)
		if (SYS5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
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
