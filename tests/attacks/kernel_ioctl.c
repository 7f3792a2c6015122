/*
 * Kernel surface: ioctl(). Behind this one call every file system and every driver has calls of its own, most of which no
 * analysis needs. The first rows work on every kernel; the others need the file system that they are about.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

/* As long as the kernel reads it: a libc would cut the number to an int. */
static int order(const struct attack *a, int fd, unsigned long request, void *arg)
{
	return syscall(SYS_ioctl, fd, request, arg) < 0 ? -errno : reached("%s", a->name);
}

ACT(ask_namespace)
{
	_cleanup_close_ int fd = open("/proc/self/ns/user", O_RDONLY);
	return fd < 0 ? -errno : order(a, fd, (unsigned long)a->number, NULL);
}

static int make_file(void)
{
	int fd = open("layout", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd >= 0 && (write(fd, "x", 1) != 1 || fsync(fd))) {
		close(fd);
		return -1;
	}
	return fd;
}

ACT(ask_layout)
{
	struct fiemap map = {.fm_length = 4096, .fm_extent_count = 0};
	_cleanup_close_ int fd = make_file();
	return fd < 0 ? -errno : order(a, fd, FS_IOC_FIEMAP, &map);
}

ACT(ask_block)
{
	int block = 0;
	_cleanup_close_ int fd = make_file();
	return fd < 0 ? -errno : order(a, fd, FIBMAP, &block);
}

ACT(ask_label)
{
	char label[FSLABEL_MAX];
	_cleanup_close_ int fd = open(".", O_RDONLY | O_DIRECTORY);
	return fd < 0 ? -errno : order(a, fd, FS_IOC_GETFSLABEL, label);
}

/* Another device for whoever counts, and no rmdir() removes it: what lies in it counts for nobody. */
ACT(make_subvolume)
{
	struct btrfs_ioctl_vol_args args = {.name = "subvolume"};
	_cleanup_close_ int fd = open(".", O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? -errno : order(a, fd, BTRFS_IOC_SUBVOL_CREATE | (unsigned long)a->number, &args);
	if (!r)
		ioctl(fd, BTRFS_IOC_SNAP_DESTROY, &args);
	return r;
}

/* A file that looks empty, with as much beyond its end as one likes. */
ACT(reserve_space)
{
	struct space_resv {
		short type, whence;
		long long start, length;
		int system;
		unsigned pid;
		int pad[4];
	} space = {.length = 1 << 20};
	_cleanup_close_ int fd = open("reserved", O_RDWR | O_CREAT, 0600);
	return fd < 0 ? -errno : order(a, fd, _IOW('X', 42, struct space_resv), &space);
}

#define ORDER(n, how, fn, ...)                                                              \
	{                                                                                   \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_CLAIM, __VA_ARGS__ \
	}

static const struct attack table[] = {
	ORDER("ioctl-namespace", "ioctl(NS_GET_NSTYPE) on a namespace", ask_namespace,
	      .number = NS_GET_NSTYPE),
	ORDER("ioctl-namespace-high", "ioctl(NS_GET_NSTYPE | 1 << 32)", ask_namespace,
	      .number = NS_GET_NSTYPE | 1L << 32),
	ORDER("ioctl-layout", "ioctl(FS_IOC_FIEMAP): where on the disk a file lies", ask_layout),
	ORDER("ioctl-block", "ioctl(FIBMAP): where on the disk a file lies", ask_block, .flags = ROOT_ONLY),
	ORDER("ioctl-label", "ioctl(FS_IOC_GETFSLABEL)", ask_label),
	ORDER("ioctl-reserve", "ioctl(FS_IOC_RESVSP): space without a size", reserve_space),
	ORDER("ioctl-subvolume", "ioctl(BTRFS_IOC_SUBVOL_CREATE): a directory outside the disk limit",
	      make_subvolume),
	ORDER("ioctl-subvolume-high", "ioctl(BTRFS_IOC_SUBVOL_CREATE | 1 << 32)", make_subvolume,
	      .number = 1L << 32),
};

const struct attack_family kernel_ioctl = {.name = "kernel", .title = "kernel surface", FAMILY(table)};
