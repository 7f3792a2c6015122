#include "image.h"
#include "file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum { ATTEMPTS = 64, BLOCK = 4096, OVERHEAD = 2 * 1024 * 1024, INODE = 256 };

/* What ext4 keeps for itself of every file system: a 50th, 4096 blocks at the most. */
enum { KEPT_PART = 50, KEPT_MAX = 4096 };

/* Where the superblock is, and the halves of some of its numbers. */
enum {
	SUPERBLOCK = 1024,
	BLOCKS_LOW = 0x4,
	RESERVED_LOW = 0x8,
	FREE_LOW = 0xC,
	BLOCKS_HIGH = 0x150,
	RESERVED_HIGH = 0x154,
	FREE_HIGH = 0x158
};

static uint64_t number_read(const unsigned char *superblock, int low, int high)
{
	uint32_t halves[2];

	memcpy(&halves[0], superblock + low, sizeof halves[0]);
	memcpy(&halves[1], superblock + high, sizeof halves[1]);
	return le32toh(halves[0]) | (uint64_t)le32toh(halves[1]) << 32;
}

/* Reserves for root what is there beyond the limit, so that exactly so much is left for the analysis. */
static int reserve(int fd, uint64_t blocks, struct error *err)
{
	unsigned char superblock[1024];
	uint64_t free, kept, reserved;
	uint32_t halves[2];

	if (pread(fd, superblock, sizeof superblock, SUPERBLOCK) != sizeof superblock)
		return error_system(err, errno, "cannot read the analysis's disk");
	free = number_read(superblock, FREE_LOW, FREE_HIGH);
	kept = number_read(superblock, BLOCKS_LOW, BLOCKS_HIGH) / KEPT_PART;
	kept = kept < KEPT_MAX ? kept : KEPT_MAX;
	if (free < blocks + kept)
		return error_set(err, ERROR_REFUSED, "a disk of that size cannot be made for the analysis");
	reserved = free - kept - blocks;
	halves[0] = htole32((uint32_t)reserved);
	halves[1] = htole32((uint32_t)(reserved >> 32));
	if (pwrite(fd, &halves[0], sizeof halves[0], SUPERBLOCK + RESERVED_LOW) < 0 ||
	    pwrite(fd, &halves[1], sizeof halves[1], SUPERBLOCK + RESERVED_HIGH) < 0)
		return error_system(err, errno, "cannot write the analysis's disk");
	return 0;
}

/* mke2fs on a descriptor: no journal, since nothing of it survives a crash anyway, and no checksum over the superblock,
 * which is changed afterwards. "verity" keeps newer kernels from writing in pieces of a megabyte, each of which would be
 * refused whole on a disk that is nearly full. */
static int format(int fd, uint64_t files, struct error *err)
{
	char target[32], inodes[32];
	char *argv[] = {(char *)"mke2fs",
			(char *)"-q",
			(char *)"-F",
			(char *)"-t",
			(char *)"ext4",
			(char *)"-m",
			(char *)"0",
			(char *)"-b",
			(char *)"4096",
			(char *)"-I",
			(char *)"256",
			(char *)"-N",
			inodes,
			(char *)"-O",
			(char *)"^has_journal,^resize_inode,^metadata_csum,verity",
			(char *)"-E",
			(char *)"lazy_itable_init=1,nodiscard",
			target,
			NULL};
	char *env[] = {(char *)"PATH=/usr/sbin:/sbin:/usr/bin:/bin", NULL};
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
	snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)files + 16);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, 0, 1);
	posix_spawn_file_actions_adddup2(&actions, 0, 2);
	posix_spawn_file_actions_adddup2(&actions, fd, fd); /* the same number, without close-on-exec */
	r = posix_spawn(&pid, "/usr/sbin/mke2fs", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return error_system(err, r,
				    "cannot run 'mke2fs' (package e2fsprogs) to make the analysis's disk");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return error_set(err, ERROR_REFUSED,
				 "'mke2fs' could not make a disk of that size for the analysis");
	return 0;
}

/* A free loop device, made ours. Others look for free ones too: whoever configures it first has it. */
static int attach(int image, char path[32], struct error *err)
{
	_cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (unsigned)image, .block_size = BLOCK, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};

	if (control < 0)
		return error_system(err, errno, "cannot open '/dev/loop-control'");
	for (int i = 0; i < ATTEMPTS; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE), fd;

		if (number < 0)
			return error_system(err, errno, "cannot get a loop device");
		snprintf(path, 32, "/dev/loop%d", number);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return error_system(err, errno, "cannot open '%s'", path);
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return fd;
		if (errno != EBUSY) {
			int saved = errno;

			fd_close(fd);
			return error_system(err, saved, "cannot set up '%s'", path);
		}
		fd_close(fd);
	}
	return error_set(err, ERROR_BUSY, "no loop device is free");
}

int image_open(int root_fd, uint64_t bytes, uint64_t files, char path[32], struct error *err)
{
	_cleanup_close_ int fd = openat(root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	uint64_t size;
	int r;

	if (fd < 0)
		return error_system(err, errno, "cannot make a file for the analysis's disk");
	/* The inodes' tables come on top of what was asked for. */
	size = bytes + bytes / 32 + files * INODE + OVERHEAD;
	if (ftruncate(fd, (off_t)(size & ~(uint64_t)(BLOCK - 1))) < 0)
		return error_system(err, errno, "cannot make a disk of %llu bytes", (unsigned long long)size);
	if ((r = format(fd, files, err)) < 0 || (r = reserve(fd, bytes / BLOCK, err)) < 0)
		return r;
	return attach(fd, path, err);
}

/* ext4 has inodes by the block and by the group, so a few too many; they are given to empty files out of sight. */
int image_trim(int fd, uint64_t files, struct error *err)
{
	_cleanup_close_ int dir = -1;
	struct statvfs st;
	char name[32];
	int r = 0;

	if (mkdirat(fd, "spare", 0700) < 0 || (dir = openat(fd, "spare", O_PATH | O_CLOEXEC)) < 0 ||
	    fstatvfs(fd, &st) < 0)
		return error_system(err, errno, "cannot prepare the analysis's disk");
	for (uint64_t i = files; r == 0 && i < st.f_ffree; i++) {
		snprintf(name, sizeof name, "%llu", (unsigned long long)i);
		r = mknodat(dir, name, S_IFREG, 0);
	}
	return r < 0 ? error_system(err, errno, "cannot prepare the analysis's disk") : 0;
}
