/*
 * Inputs and files: mounts, roots and namespaces as a way round a read-only mount, and inputs that are chosen badly.
 * Each sequence stops at its first refusal, so that it counts only if the mechanism itself worked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

/* Directly, without a namespace of one's own: what root without the hood can do. The bind that the control needs
 * is made on a directory of the workspace. */
ACT(remount_writable)
{
	const char *data = targets_text(t, "data");
	int r = own_mounts();
	if (r)
		return r;
	if (mount(data, data, NULL, MS_BIND, NULL) || mount(NULL, data, NULL, MS_BIND | MS_REMOUNT, NULL))
		return -errno;
	return spoil(targets_text(t, "data.file"));
}

ACT(remount_in_place)
{
	if (mount(NULL, targets_text(t, "data"), NULL, MS_REMOUNT | MS_BIND, NULL) && errno != EINVAL)
		return -errno; /* EINVAL: it is no mount at all, as in the control */
	return spoil(targets_text(t, "data.file"));
}

ACT(bind_elsewhere)
{
	int r = own_mounts();
	if (r || mkdir("elsewhere", 0755) || mount(targets_text(t, "data"), "elsewhere", NULL, MS_BIND, NULL))
		return r ? r : -errno;
	return spoil("elsewhere/genes.csv");
}

ACT(uncover)
{
	int r = own_mounts();
	if (r)
		return r;
	mkdir("cover", 0755);
	if (mount("none", "cover", "tmpfs", 0, NULL)) /* a mount must be possible at all */
		return -errno;
	while (!umount2(targets_text(t, "data"), MNT_DETACH))
		;
	return spoil(targets_text(t, "data.file"));
}

ACT(clone_tree)
{
	int r = own_mounts();
	if (r)
		return r;
	_cleanup_close_ int tree =
		(int)syscall(SYS_open_tree, AT_FDCWD, targets_text(t, "data"), OPEN_TREE_CLONE);
	if (tree < 0)
		return -errno;
	struct {
		unsigned long long set, clear, propagation, userns;
	} attributes = {.clear = 1 /* MOUNT_ATTR_RDONLY */};
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)))
		return -errno;
	return spoil_at(tree, "genes.csv", O_WRONLY);
}

/* The classic: a root of one's own below an open directory, then up from there. */
ACT(break_chroot)
{
	if (chroot(".") && (unshare(CLONE_NEWUSER) || chroot(".")))
		return -errno;
	if (mkdir("jail", 0755) && errno != EEXIST)
		return -errno;
	if (chroot("jail"))
		return -errno;
	for (int i = 0; i < 40; i++)
		if (chdir(".."))
			return -errno;
	if (chroot("."))
		return -errno;
	return show_file(targets_text(t, "secret"));
}

ACT(join_mounts)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", getppid() ? getppid() : 1);
	_cleanup_close_ int fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNS))
		return -errno;
	return show_file(targets_text(t, "secret"));
}

ACT(mount_type)
{
	int r = own_mounts();
	if (!r && mkdir("mounted", 0755))
		r = -errno;
	if (!r && mount("none", "mounted", a->arg, 0, NULL))
		r = -errno;
	return r ? r : reached("%s can be mounted", a->arg);
}

ACT(open_filesystem)
{
	_cleanup_close_ int fd = (int)syscall(SYS_fsopen, a->arg, 0);
	return fd < 0 ? -errno : reached("fsopen(%s)", a->arg);
}

/* In a nested user namespace there are capabilities again, and with them most of the kernel. */
ACT(nested_namespace)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	return reached("a nested user namespace");
}

ACT(write_submount)
{
	return spoil(targets_text(t, a->arg));
}

ACT(read_others)
{
	static const char *const what[] = {"others.file", "ledger", "state.file"};
	int r = -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(what); i++)
		r = show_file(targets_text(t, what[i])) ? r : 0;
	return r;
}

#define MOUNT(n, how, fn, e, ...)                                                \
	{                                                                        \
		.name = n, .mechanism = how, .run = fn, .effect = e, __VA_ARGS__ \
	}

static const struct attack table[] = {
	MOUNT("remount", "mount(MS_REMOUNT) of an input in place", remount_in_place, EFFECT_TREE,
	      .flags = ROOT_ONLY),
	MOUNT("bind-remount", "a bind of an input in namespaces of one's own, remounted writable",
	      remount_writable, EFFECT_TREE),
	MOUNT("bind-elsewhere", "a second bind of an input in the workspace", bind_elsewhere, EFFECT_TREE),
	MOUNT("uncover", "umount2(MNT_DETACH) of what covers an input", uncover, EFFECT_TREE),
	MOUNT("clone-tree", "open_tree(OPEN_TREE_CLONE) and mount_setattr()", clone_tree, EFFECT_TREE),
	MOUNT("chroot-break", "chroot() out of a chroot", break_chroot, EFFECT_SECRET, .flags = ROOT_ONLY),
	MOUNT("join-mounts", "setns() into the parent's mount namespace", join_mounts, EFFECT_SECRET,
	      .flags = ROOT_ONLY),
	MOUNT("nested-userns", "unshare(CLONE_NEWUSER): capabilities again", nested_namespace, EFFECT_CLAIM),
	MOUNT("mount-tmpfs", "mount() of a tmpfs", mount_type, EFFECT_CLAIM, .arg = "tmpfs"),
	MOUNT("mount-proc", "a fresh, unmasked procfs", mount_type, EFFECT_CLAIM, .arg = "proc",
	      .flags = ROOT_ONLY),
	MOUNT("mount-sysfs", "a fresh sysfs", mount_type, EFFECT_CLAIM, .arg = "sysfs", .flags = ROOT_ONLY),
	MOUNT("mount-debugfs", "debugfs", mount_type, EFFECT_CLAIM, .arg = "debugfs", .flags = ROOT_ONLY),
	MOUNT("mount-devpts", "devpts", mount_type, EFFECT_CLAIM, .arg = "devpts", .flags = ROOT_ONLY),
	MOUNT("fsopen", "fsopen(), the new way to mount", open_filesystem, EFFECT_CLAIM, .arg = "tmpfs",
	      .flags = ROOT_ONLY),
	MOUNT("submount", "a writable file system mounted below an input", write_submount, EFFECT_TREE,
	      .arg = "data.mounted", .flags = ROOT_ONLY | REFUSAL_HOLDS),
	MOUNT("data-is-tmp", "--data /tmp: the workspaces of others", read_others, EFFECT_SECRET,
	      .options = "--data /tmp", .flags = REFUSAL_HOLDS),
	MOUNT("data-is-root", "--data /: everything", read_others, EFFECT_SECRET, .options = "--data /",
	      .flags = REFUSAL_HOLDS),
	MOUNT("data-has-ledger", "--data with the ledger in it", read_others, EFFECT_SECRET,
	      .options = "--data %P", .flags = REFUSAL_HOLDS),
};

const struct attack_family inputs_mount = {.name = "inputs", .title = "inputs and files", FAMILY(table)};
