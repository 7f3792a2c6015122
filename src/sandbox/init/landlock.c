/*
 * Landlock: the second lock on the doors that the mounts leave, and, where there are none (bare.c), the first.
 */
#include "landlock.h"

#include <linux/fcntl.h>
#include <linux/landlock.h>

/* Newer than Debian 12's headers. */
#define FS_REFER		   (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE		   (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV		   (1ULL << 15) /* ABI 5 */
#define NET_TCP			   3ULL		/* bind and connect: ABI 4 */
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
#define FS_OF_FILES                                                                                  \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	 FS_TRUNCATE | FS_IOCTL_DEV)

long landlock_abi(void)
{
	return SYS3(__NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

void landlock_say(long abi)
{
	char detail[] = "ABI 00";

	if (abi < 10) {
		detail[4] = (char)('0' + abi);
		detail[5] = 0;
	} else {
		detail[4] = (char)('0' + abi / 10 % 10);
		detail[5] = (char)('0' + abi % 10);
	}
	layer(1, "landlock", detail);
}

/* Too large a struct is an error on an old kernel. */
static int ruleset_open(const struct ruleset_attr *attr)
{
	size_t size = attr->scoped ? sizeof *attr : attr->net ? 16 : 8;
	long fd = SYS3(__NR_landlock_create_ruleset, attr, size, 0);

	if (fd < 0)
		fail("make a Landlock ruleset", NULL, fd);
	return (int)fd;
}

static uint64_t all_of_files(long abi)
{
	return FS_READ | FS_WRITE | FS_NEVER | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
	       (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static void rule_add(int ruleset, int fd, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	long r = SYS4(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);

	if (r < 0)
		fail("add a Landlock rule for", path, r);
}

static void rule_add_path(int ruleset, const char *path, uint64_t access)
{
	long fd = SYS4(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);

	if (fd < 0)
		fail("open for Landlock", path, fd);
	rule_add(ruleset, (int)fd, path, access);
	SYS1(__NR_close, fd);
}

/* After the mounts: a rule on a directory does not cover what is mounted over it later. */
int landlock_prepare(void)
{
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};
	static const char *const terminals[] = {"/dev/tty", "/dev/pts"};
	const uint32_t *writable = spec_at(spec->writable);
	long abi = landlock_abi();
	struct ruleset_attr attr = {.fs = all_of_files(abi)};
	int fd;

	if (abi < 1) {
		layer(0, "landlock", "this kernel has none");
		return -1;
	}
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	fd = ruleset_open(&attr);
	rule_add_path(fd, "/", FS_READ);
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		rule_add_path(fd, devices[i],
			      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				      (attr.fs & FS_TRUNCATE));
	for (size_t i = 0; terminal_is_there() && i < sizeof terminals / sizeof terminals[0]; i++)
		rule_add_path(fd, terminals[i],
			      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				      (attr.fs & (FS_TRUNCATE | FS_IOCTL_DEV)));
	for (uint32_t i = 0; i < spec->n_writable; i++)
		rule_add_path(fd, spec_string(writable[i]), attr.fs & ~(FS_NEVER | FS_IOCTL_DEV));
	landlock_say(abi);
	return fd;
}

int landlock_closed(long abi)
{
	struct ruleset_attr attr = {.fs = all_of_files(abi), .net = abi >= 4 ? NET_TCP : 0};

	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	return ruleset_open(&attr);
}

void landlock_open(int ruleset, int fd, const char *path, int directory, enum landlock_use use)
{
	uint64_t access = use == LANDLOCK_READ ? FS_READ
			  : use == LANDLOCK_DEVICE
				  ? LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE
				  : FS_READ | FS_WRITE | FS_REFER | FS_TRUNCATE;

	rule_add(ruleset, fd, path, directory ? access : access & FS_OF_FILES);
}

/* Every ruleset forbids to link or move files from one directory to another, unless it says otherwise. */
void landlock_scope_signals(void)
{
	struct ruleset_attr attr = {.fs = FS_REFER, .scoped = SCOPE_SIGNAL};
	int fd = ruleset_open(&attr);

	rule_add_path(fd, "/", FS_REFER);
	landlock_apply(fd);
	SYS1(__NR_close, fd);
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
