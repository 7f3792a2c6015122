/*
 * A file system of the analysis's own, as large as its disk limit: what is deleted but open, or never had a name,
 * counts like everything else. It holds the workspace and the private /tmp. A tmpfs for an ordinary user, an image on
 * a loop device as root.
 *
 * The supervisor gets a descriptor of it, stages files into it before the command starts, and collects from it when
 * this namespace is long gone.
 */
#include "fs.h"
#include "init.h"

#include <linux/fcntl.h>
#include <linux/mount.h>

static void part_make(int disk, const char *name)
{
	long r = SYS3(__NR_mkdirat, disk, name, 0700);

	if (r >= 0 && !spec->userns_first)
		r = SYS5(__NR_fchownat, disk, name, spec->host_uid, spec->host_gid, 0);
	if (r < 0)
		fail("make a directory in the analysis's own file system:", name, r);
}

static void part_show(const char *path, const char *target)
{
	long at = open_inside(path, O_PATH), fd;

	if (at < 0)
		fail("open", path, at);
	directories_make(target);
	fd = tree_clone((int)at, 0);
	if (fd < 0)
		fail("show the analysis's own file system at", target, fd);
	attach(fd, target);
	SYS1(__NR_close, at);
}

void disk_mount(const struct spec_mount *m)
{
	long disk = filesystem_make(m->source ? "ext4" : "tmpfs", spec_string(m->data),
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	long fd;

	if (disk < 0)
		fail("mount a file system of the analysis's own", NULL, disk);
	fd = SYS3(__NR_fcntl, disk, F_DUPFD_CLOEXEC, 64);
	directories_make("/.disk");
	attach(disk, "/.disk");
	part_make((int)fd, "work");
	part_make((int)fd, "tmp");
	part_show("/.disk/tmp", "/tmp");
	part_show("/.disk/work", spec_string(m->target));
	SYS1(__NR_fchdir, root);
	SYS2(__NR_umount2, ".disk", 2 /* MNT_DETACH */);
	SYS3(__NR_unlinkat, root, ".disk", AT_REMOVEDIR);
	SYS1(__NR_chdir, "/");
	descriptor_send(REPORT_DISK, (int)fd);
	SYS1(__NR_close, fd);
	if (await_control() != CONTROL_GO)
		fail("fill the workspace", NULL, -ECANCELED);
}
