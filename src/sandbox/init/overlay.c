/*
 * What of the host an analysis sees, through overlays of its own: no inode of the host's is behind it. There is no second
 * way: where the kernel makes no overlay, nothing is shown, and the supervisor says why.
 */
#include "fs.h"
#include "init.h"

#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>

static void number_put(char **at, long n)
{
	char digits[20];
	int k = 0;

	do
		digits[k++] = (char)('0' + n % 10);
	while (n /= 10);
	while (k)
		*(*at)++ = digits[--k];
}

static void string_put(char **at, const char *s)
{
	while (*s)
		*(*at)++ = *s++;
}

/*
 * The lower layer with the input's owner mapped to the analysis: what only the owner may read stays readable. It must
 * be attached while the overlay is made (before 6.2 a detached idmapped mount cannot be a layer), so it lies on
 * /.lower for a moment. Returns a descriptor on it, or -errno where the file system cannot be idmapped.
 */
static long lower_idmapped(int source, int idmap)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP,
				  .userns_fd = (uint64_t)(INIT_FD_IDMAP + idmap)};
	long fd = tree_clone(source, 0), r;

	if (fd < 0)
		return fd;
	r = SYS5(__NR_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
	if (r < 0) {
		SYS1(__NR_close, fd);
		return r;
	}
	directories_make("/.lower", 1);
	attach(fd, "/.lower");
	return open_inside("/.lower", O_PATH);
}

static void lower_forget(void)
{
	SYS1(__NR_fchdir, root);
	SYS2(__NR_umount2, ".lower", 2 /* MNT_DETACH */);
	SYS3(__NR_unlinkat, root, ".lower", AT_REMOVEDIR);
	SYS1(__NR_chdir, "/");
}

static long overlay_make(int lower, int empty)
{
	char data[128], *p = data;

	string_put(&p, "lowerdir=/proc/self/fd/");
	number_put(&p, lower);
	string_put(&p, ":/proc/self/fd/");
	number_put(&p, empty);
	*p++ = 0;
	/* user.overlay.* instead of trusted.*: as an ordinary user nothing else is allowed, and as root an input with
	 * trusted.overlay.redirect would lead out of the layer. */
	string_put(&p, "userxattr");
	*p++ = 0;
	*p = 0;
	return filesystem_make("overlay", data, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* The overlay over a directory, with its owner mapped to the analysis where that can be; -errno if there can be none. */
static long overlay_over(int directory, int idmap, const char *target)
{
	long empty = open_inside("/mnt", O_PATH), lower, fd = -EINVAL;

	if (empty < 0)
		fail("open the empty layer", "/mnt", empty);
	if (idmap >= 0) {
		lower = lower_idmapped(directory, idmap);
		if (lower >= 0) {
			fd = overlay_make((int)lower, (int)empty);
			lower_forget();
			SYS1(__NR_close, lower);
		}
		if (fd < 0)
			layer(0, "idmap", target);
	}
	if (fd < 0)
		fd = overlay_make(directory, (int)empty);
	SYS1(__NR_close, empty);
	return fd;
}

/*
 * A single file cannot be a layer, but its directory can: an overlay of that, from which the one file is shown, and
 * which is gone before anybody could look at the rest.
 */
static void file_overlay_mount(const struct spec_mount *m, uint32_t index, int source, int parent)
{
	const char *target = spec_string(m->target), *path = spec_string(m->source),
		   *name = path + strlen(path);
	long overlay = overlay_over(parent, m->idmap, target), directory, file, fd;

	SYS1(__NR_close, parent);
	if (overlay < 0)
		fail_overlay(index, overlay);
	while (name > path && name[-1] != '/')
		name--;
	directories_make("/.lower", 1);
	attach(overlay, "/.lower");
	directory = open_inside("/.lower", O_PATH);
	file = directory < 0 ? directory
			     : open_how((int)directory, name, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	fd = file < 0 ? file : tree_clone((int)file, 0);
	if (fd < 0)
		fail("show the file", path, fd);
	target_make(target, source);
	attach(fd, target);
	SYS1(__NR_close, file);
	SYS1(__NR_close, directory);
	lower_forget();
}

/*
 * An input through an overlay of this analysis alone. Its inodes are its own: connect() to a socket that lies there,
 * FIFOs, locks and leases end at the overlay instead of at the host.
 */
void overlay_mount(const struct spec_mount *m, uint32_t index, int source, int parent)
{
	const char *target = spec_string(m->target);
	long fd;

	if (!is_directory(source)) {
		file_overlay_mount(m, index, source, parent);
		return;
	}
	target_make(target, source);
	fd = overlay_over(source, m->idmap, target);
	if (fd < 0)
		fail_overlay(index, fd);
	attach(fd, target);
}
