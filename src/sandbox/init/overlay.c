/*
 * What of the host an analysis sees, through overlays of its own: no inode of the host's is behind it. There is no second
 * way: where the kernel makes no overlay, nothing is shown, and the supervisor says why.
 */
#include "fs.h"
#include "init.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>

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
 * be attached while the overlay is made (before 6.2 a detached idmapped mount cannot be a layer). Returns a descriptor on it,
 * or -errno where the file system cannot be idmapped.
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
	attach_outside((int)fd);
	return fd;
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
	long lower, fd = -EINVAL;

	if (idmap >= 0) {
		lower = lower_idmapped(directory, idmap);
		if (lower >= 0) {
			fd = overlay_make((int)lower, empty_layer);
			SYS1(__NR_close, lower);
		}
		if (fd < 0)
			layer(0, "idmap", target);
	}
	if (fd < 0)
		fd = overlay_make(directory, empty_layer);
	return fd;
}

/*
 * A single file cannot be a layer, but its directory can: an overlay of that, from which the one file is shown, and
 * which stays outside.
 */
static void file_overlay_mount(const struct spec_mount *m, uint32_t index, int source, int parent)
{
	const char *target = spec_string(m->target), *path = spec_string(m->source),
		   *name = path + strlen(path);
	long overlay = overlay_over(parent, m->idmap, target), file, fd;

	SYS1(__NR_close, parent);
	if (overlay < 0)
		fail_overlay(index, overlay);
	while (name > path && name[-1] != '/')
		name--;
	attach_outside((int)overlay);
	file = open_how((int)overlay, name, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	fd = file < 0 ? file : tree_clone((int)file, 0);
	if (fd < 0)
		fail("show the file", path, fd);
	target_make(target, is_directory(source));
	attach(fd, target);
	SYS1(__NR_close, file);
	SYS1(__NR_close, overlay);
}

/*
 * Parts of one directory through an overlay over all of it, which stays outside: nothing else of it is reachable. A clone's
 * root is the part itself, and there is no way up from it but into what it lies on.
 */
static struct {
	int layer; /* the host's directory */
	int overlay;
} shared = {-1, -1};

static void share_begin(const struct spec_mount *m, uint32_t index, int layer)
{
	long fd = overlay_over(layer, -1, spec_string(m->target));

	if (fd < 0)
		fail_overlay(index, fd);
	attach_outside((int)fd);
	shared.layer = layer;
	shared.overlay = (int)fd;
}

void overlay_share_end(void)
{
	if (shared.overlay < 0)
		return;
	SYS1(__NR_close, shared.overlay);
	SYS1(__NR_close, shared.layer);
	shared.layer = shared.overlay = -1;
}

static void part_mount(const struct spec_mount *m, uint32_t index, int layer)
{
	const char *source = spec_string(m->source), *path = source + strlen(spec_string(m->layer)) + 1;
	struct stat st;
	long r, part, fd;

	if (shared.layer != layer) {
		overlay_share_end();
		share_begin(m, index, layer);
	}
	r = SYS4(__NR_newfstatat, layer, path, &st, AT_SYMLINK_NOFOLLOW);
	if (r == -ENOENT && m->flags & SPEC_OPTIONAL)
		return;
	if (r < 0)
		fail("look at", source, r);
	if (m->inode && (st.st_ino != m->inode || st.st_dev != m->device))
		fail_replaced(source);
	part = open_how(shared.overlay, path, O_PATH,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	fd = part < 0 ? part : tree_clone((int)part, 0);
	if (fd < 0)
		fail("show", source, fd);
	SYS1(__NR_close, part);
	target_make(spec_string(m->target), (st.st_mode & S_IFMT) == S_IFDIR);
	attach(fd, spec_string(m->target));
}

/*
 * An input through an overlay of this analysis alone. Its inodes are its own: connect() to a socket that lies there,
 * FIFOs, locks and leases end at the overlay instead of at the host.
 */
void overlay_mount(const struct spec_mount *m, uint32_t index, int source, int parent)
{
	const char *target = spec_string(m->target);
	long fd;

	if (m->layer) {
		part_mount(m, index, source);
		return;
	}
	if (parent >= 0) {
		file_overlay_mount(m, index, source, parent);
		return;
	}
	target_make(target, 1);
	fd = overlay_over(source, m->idmap, target);
	if (fd < 0)
		fail_overlay(index, fd);
	attach(fd, target);
}
