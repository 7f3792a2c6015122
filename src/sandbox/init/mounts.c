/*
 * The root of an analysis: a tmpfs on which the spec's mounts are put one by one, then pivot_root.
 *
 * All sources are opened before the first of them is shown, by canonical path, following no link, and compared with what the
 * supervisor saw: nobody can swap a directory for a link in between. The new root covers the host's /tmp, so what lies there
 * is reached by a descriptor. Targets lie in a tmpfs that only we write, or in the workspace, where no link is followed either.
 */
#include "fs.h"
#include "init.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>

enum { MOUNTS_MAX = 900 }; /* a descriptor for each, and 1024 is what a process usually has */

static int sources[MOUNTS_MAX];
static int parents[MOUNTS_MAX]; /* of a single file that wants an overlay: its directory */
static int covered = -1;	/* the host's /tmp, below the new root */

void fail_replaced(const char *path)
{
	fail("use a path that was replaced by another file a moment ago:", path, -ESTALE);
}

static long source_open(const char *path)
{
	static const char cover[] = "/tmp";
	size_t n = 0;

	while (cover[n] && path[n] == cover[n])
		n++;
	if (cover[n] || (path[n] && path[n] != '/'))
		return open_how(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	while (path[n] == '/')
		n++;
	return open_how(covered, path[n] ? path + n : ".", O_PATH,
			RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* The directory is found by its name, a second time: it counts only if that very file lies in it. Whoever may rename
 * directories on the way could put another in its place, which its user may not enter. */
static int parent_open(const char *path, const struct stat *file)
{
	char directory[4096];
	size_t n = strlen(path);
	struct stat st;
	long fd, r;

	while (n > 1 && path[n - 1] != '/')
		n--;
	if (n >= sizeof directory)
		fail("open the directory of", path, -ENAMETOOLONG);
	memcpy(directory, path, n);
	directory[n] = 0;
	fd = source_open(directory);
	if (fd < 0)
		fail("open", directory, fd);
	r = open_how((int)fd, path + n, O_PATH,
		     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (r < 0 || SYS2(__NR_fstat, r, &st) < 0 || st.st_ino != file->st_ino || st.st_dev != file->st_dev)
		fail_replaced(path);
	SYS1(__NR_close, r);
	return (int)fd;
}

static void sources_open(void)
{
	const struct spec_mount *m = spec_at(spec->mounts);
	uint32_t layer = 0;
	int layer_fd = -1;

	if (spec->n_mounts > MOUNTS_MAX)
		fail("mount more than 900 things", NULL, -E2BIG);
	for (uint32_t i = spec->made; i < spec->n_mounts; i++) {
		const char *source = spec_string(m[i].layer ? m[i].layer : m[i].source);
		struct stat st;
		long fd, r;

		sources[i] = parents[i] = -1;
		if (m[i].kind != MOUNT_BIND && m[i].kind != MOUNT_OVERLAY && m[i].kind != MOUNT_DEVICE)
			continue;
		if (m[i].layer && m[i].layer == layer) {
			sources[i] = layer_fd;
			continue;
		}
		if (m[i].layer) {
			layer = m[i].layer;
			layer_fd = -1;
		}
		fd = source_open(source);
		if (fd == -ENOENT && m[i].flags & SPEC_OPTIONAL)
			continue;
		if (fd < 0)
			fail("open", source, fd);
		sources[i] = (int)fd;
		if (m[i].layer) { /* which part of it is looked at when that is shown */
			layer_fd = (int)fd;
			continue;
		}
		r = SYS2(__NR_fstat, fd, &st);
		if (r < 0)
			fail("look at", source, r);
		if (m[i].inode && (st.st_ino != m[i].inode || st.st_dev != m[i].device))
			fail_replaced(source);
		if (m[i].kind == MOUNT_OVERLAY && (st.st_mode & S_IFMT) != S_IFDIR)
			parents[i] = parent_open(source, &st);
	}
}

static void bind_mount(const struct spec_mount *m, int source)
{
	const char *target = spec_string(m->target);
	uint64_t set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	long fd, r;

	target_make(target, is_directory(source));
	fd = tree_clone(source, 1);
	if (fd < 0)
		fail("bind", target, fd);
	if (!(m->flags & SPEC_WRITABLE))
		set |= MOUNT_ATTR_RDONLY;
	r = attributes_set((int)fd, set, 1);
	if (r < 0)
		fail("make read-only", target, r);
	attach(fd, target);
}

static void tmpfs_mount(const struct spec_mount *m)
{
	const char *target = spec_string(m->target);
	long fd;

	directories_make(target);
	fd = filesystem_make("tmpfs", spec_string(m->data), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		fail("mount a tmpfs at", target, fd);
	attach(fd, target);
}

/* What of /proc no analysis needs, and some kernels let anybody read. */
static const char *const masked_directories[] = {"acpi", "asound", "bus",  "driver",
						 "fs",	 "irq",	   "scsi", "tty"};
static const char *const masked_files[] = {
	"kcore",	 "keys",       "key-users",   "kmsg",	     "kallsyms", "modules",
	"sysrq-trigger", "timer_list", "locks",	      "sched_debug", "slabinfo", "swaps",
	"partitions",	 "diskstats",  "vmallocinfo", "interrupts",
};

/* Each is covered by a clone. The first one gets the attributes, and the others are copies of it, with them. */
static void proc_mask(int proc, const char *const *names, size_t n_names, int cover)
{
	int of = cover;
	long fd = -1, r;

	for (size_t i = 0; i < n_names; i++) {
		if (fd < 0)
			fd = tree_clone(of, 0);
		if (fd < 0)
			fail("mask in /proc", names[i], fd);
		if (of == cover)
			attributes_set((int)fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
		r = SYS5(__NR_move_mount, fd, "", proc, names[i], MOVE_MOUNT_F_EMPTY_PATH);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			fail("mask in /proc", names[i], r);
		if (of == cover)
			of = (int)fd;
		else
			SYS1(__NR_close, fd);
		fd = -1;
	}
	if (fd >= 0)
		SYS1(__NR_close, fd);
	if (of != cover)
		SYS1(__NR_close, of);
}

/* Fresh, read-only, without what no analysis needs. Needs a procfs of the host that is not itself masked: the kernel
 * refuses a new one in a user namespace otherwise. */
static void proc_mount(const struct spec_mount *m)
{
	const char *target = spec_string(m->target);
	long fd, proc, null;

	directories_make(target);
	fd = filesystem_make("proc", NULL,
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		fail("mount a fresh /proc (is the host's own masked, as in a container?) at", target, fd);
	attach(fd, target);
	proc = open_inside(target, O_PATH);
	null = open_inside("/dev/null", O_PATH);
	if (proc < 0 || null < 0)
		fail("mask what is in", target, proc < 0 ? proc : null);
	proc_mask((int)proc, masked_directories, sizeof masked_directories / sizeof masked_directories[0],
		  empty_layer);
	proc_mask((int)proc, masked_files, sizeof masked_files / sizeof masked_files[0], (int)null);
	SYS1(__NR_close, proc);
	SYS1(__NR_close, null);
}

static int devices_are_own = 1;

/* As root a node of its own, so that not even its lock is shared; else the host's, bound. */
static void device_mount(const struct spec_mount *m, int source)
{
	const char *target = spec_string(m->target), *name;
	int at = directory_of(target, &name);
	struct stat st;
	long r, fd;

	r = SYS2(__NR_fstat, source, &st);
	if (r < 0 || (st.st_mode & S_IFMT) != S_IFCHR)
		fail("use as a device", target, r < 0 ? r : -ENODEV);
	if (!spec->userns_first && SYS4(__NR_mknodat, at, name, S_IFCHR | 0666, st.st_rdev) == 0)
		return;
	devices_are_own = 0;
	target_make(target, 0);
	fd = tree_clone(source, 0);
	if (fd < 0)
		fail("bind", target, fd);
	/* Read-only: a device is written to all the same, but its times are the host's. */
	attributes_set((int)fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
	attach(fd, target);
}

static long file_create(int at, const char *name, uint32_t mode)
{
	return SYS4(__NR_openat, at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Over a file of an overlay: made elsewhere, and then put upon it. */
static void file_cover(const char *target)
{
	long at = open_inside("/.file", O_PATH), fd = at < 0 ? at : tree_clone((int)at, 0);

	if (fd >= 0)
		attributes_set((int)fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
	if (fd < 0)
		fail("show a copy at", target, fd);
	attach(fd, target);
	SYS1(__NR_close, at);
	SYS3(__NR_unlinkat, root, ".file", 0);
}

static void file_make(const struct spec_mount *m)
{
	const char *target = spec_string(m->target), *at = spec_at(m->content), *name;
	int directory = directory_of(target, &name), covers = 0;
	uint32_t left = m->content_size;
	long fd, n;

	fd = file_create(directory, name, m->mode);
	if (fd == -EEXIST || fd == -EROFS) {
		covers = 1;
		fd = file_create(root, ".file", m->mode);
	}
	if (fd < 0)
		fail("create", target, fd);
	for (; left; left -= (uint32_t)n, at += n) {
		n = SYS3(__NR_write, fd, at, left);
		if (n <= 0)
			fail("write", target, n);
	}
	SYS1(__NR_close, fd);
	if (covers)
		file_cover(target);
}

static void link_make(const struct spec_mount *m)
{
	const char *target = spec_string(m->target), *name;
	int at = directory_of(target, &name);
	long r = SYS3(__NR_symlinkat, spec_string(m->source), at, name);

	if (r < 0 && r != -EEXIST)
		fail("link", target, r);
}

static void same_mount(const struct spec_mount *m)
{
	const char *target = spec_string(m->target);
	long source = open_inside(spec_string(m->source), O_PATH), fd, r;

	if (source < 0)
		fail("open inside", spec_string(m->source), source);
	target_make(target, is_directory((int)source));
	fd = tree_clone((int)source, 1);
	/* Where it is put together from parts, it is a tmpfs of ours, and not yet sealed. */
	if (fd >= 0)
		fd = (r = attributes_set((int)fd, MOUNT_ATTR_RDONLY, 1)) < 0 ? r : fd;
	if (fd < 0)
		fail("show a second time", target, fd);
	attach(fd, target);
	SYS1(__NR_close, source);
}

static void directory_make(const struct spec_mount *m)
{
	const char *target = spec_string(m->target), *name;
	int at = directory_of(target, &name);

	directories_make(target);
	if (*name)
		SYS4(__NR_fchmodat, at, name, m->mode, 0);
}

/* What was put together from parts is whole now. */
static void tmpfs_seal(const struct spec_mount *m)
{
	long at = open_inside(spec_string(m->target), O_PATH);
	long r = at < 0 ? at : attributes_set((int)at, MOUNT_ATTR_RDONLY, 0);

	if (r < 0)
		fail("make read-only", spec_string(m->target), r);
	SYS1(__NR_close, at);
}

/* While inputs are shown nothing may be put into it; then it is /mnt, unless one of them is there. */
static const char empty_name[] = "/.empty";

static void empty_settle(void)
{
	SYS5(__NR_renameat2, root, empty_name + 1, root, "mnt", 1 /* RENAME_NOREPLACE */);
}

void mounts_begin(void)
{
	static const char data[] = "mode=0755\0size=32m\0nr_inodes=4096\0";
	long fd, r;

	covered = (int)open_how(AT_FDCWD, "/tmp", O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (covered < 0)
		fail("open", "/tmp", covered);
	r = SYS5(__NR_mount, 0, "/", 0, 0x4000 /* MS_REC */ | 0x40000 /* MS_PRIVATE */, 0);
	if (r < 0)
		fail("make the mounts private", NULL, r);
	/* Devices may lie in /dev, which is part of it; nothing else can make any. */
	fd = filesystem_make("tmpfs", data, MOUNT_ATTR_NOSUID);
	if (fd < 0)
		fail("mount a tmpfs for the new root", NULL, fd);
	r = SYS5(__NR_move_mount, fd, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH);
	if (r < 0)
		fail("mount the new root at", "/tmp", r);
	root = (int)fd;
	directories_make(empty_name);
	fd = open_inside(empty_name, O_PATH);
	if (fd < 0)
		fail("open the empty layer", empty_name, fd);
	empty_layer = (int)fd;
}

static void root_enter(void)
{
	long r = SYS1(__NR_fchdir, root);

	if (r >= 0)
		r = SYS2(__NR_pivot_root, ".", ".");
	if (r >= 0)
		r = SYS2(__NR_umount2, ".", 2 /* MNT_DETACH */);
	if (r >= 0)
		r = SYS1(__NR_chdir, "/");
	if (r >= 0)
		r = attributes_set(root, MOUNT_ATTR_RDONLY, 0);
	if (r < 0)
		fail("enter the new root", NULL, r);
	SYS1(__NR_close, root);
	SYS1(__NR_close, covered);
}

void mounts_add(void)
{
	const struct spec_mount *m = (const struct spec_mount *)spec_at(spec->mounts) + spec->made;

	sources_open();
	for (uint32_t i = spec->made; i < spec->n_mounts; i++, m++) {
		int host = m->kind == MOUNT_BIND || m->kind == MOUNT_OVERLAY || m->kind == MOUNT_DEVICE;

		if (host && sources[i] < 0)
			continue;
		switch (m->kind) {
		case MOUNT_DIR:
			directory_make(m);
			break;
		case MOUNT_FILE:
			file_make(m);
			break;
		case MOUNT_LINK:
			link_make(m);
			break;
		case MOUNT_TMPFS:
			tmpfs_mount(m);
			break;
		case MOUNT_PROC:
			proc_mount(m);
			break;
		case MOUNT_DEVICE:
			device_mount(m, sources[i]);
			break;
		case MOUNT_BIND:
			bind_mount(m, sources[i]);
			break;
		case MOUNT_OVERLAY:
			overlay_mount(m, i, sources[i], parents[i]);
			break;
		case MOUNT_SAME:
			same_mount(m);
			break;
		case MOUNT_PTS:
			terminal_mount(m);
			break;
		case MOUNT_DISK:
			disk_mount(m);
			break;
		}
		if (host && !m->layer)
			SYS1(__NR_close, sources[i]);
	}
	overlay_share_end();
}

void mounts_end(void)
{
	const struct spec_mount *m = spec_at(spec->mounts);

	for (uint32_t i = 0; i < spec->n_mounts; i++, m++)
		if (m->kind == MOUNT_TMPFS && !(m->flags & SPEC_WRITABLE))
			tmpfs_seal(m);
	targets_done();
	empty_settle();
	root_enter();
	layer(1, "mount namespace", "a root of its own, read-only");
	layer(devices_are_own, "devices",
	      devices_are_own ? "nodes of its own" : "the host's own nodes: a lock on one is felt outside");
}
