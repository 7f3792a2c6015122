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

/* struct msghdr and struct cmsghdr with one descriptor, as the kernel wants them. */
struct descriptor_message {
	size_t length;
	int level, type;
	int fd, pad;
};

static void descriptor_send(uint32_t kind, int fd)
{
	struct report r = {.kind = kind};
	struct {
		void *base;
		size_t size;
	} part = {&r, sizeof r};
	struct descriptor_message control = {.length = sizeof(size_t) + 3 * sizeof(int),
					     .level = 1 /* SOL_SOCKET */,
					     .type = 1 /* SCM_RIGHTS */,
					     .fd = fd};
	struct {
		void *name;
		int name_size, pad;
		void *parts;
		size_t n_parts;
		void *control;
		size_t control_size;
		unsigned flags;
	} message = {.parts = &part, .n_parts = 1, .control = &control, .control_size = sizeof control};
	long n = SYS3(__NR_sendmsg, INIT_FD_REPORT, &message, 0);

	if (n < 0)
		fail("hand over the analysis's own file system", NULL, n);
}

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
	directories_make(target, 1);
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
	directories_make("/.disk", 1);
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
