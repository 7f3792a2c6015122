/*
 * The kinds of things that a root is made of. The plan has them, and so has init, which is built without a C library: this
 * header includes nothing.
 */
#ifndef MODEL_MOUNT_KIND_H
#define MODEL_MOUNT_KIND_H

enum mount_kind {
	MOUNT_DIR,     /* an empty directory of the root's own tmpfs */
	MOUNT_FILE,    /* a small file with content, likewise */
	MOUNT_LINK,    /* a symbolic link to source, likewise */
	MOUNT_TMPFS,   /* size, inodes; not writable: sealed when everything is in its place */
	MOUNT_PROC,    /* a fresh procfs, masked */
	MOUNT_DEVICE,  /* one device node of the host: null, zero, … */
	MOUNT_BIND,    /* source at target, with what is mounted below it */
	MOUNT_OVERLAY, /* source read-only through an overlay of this analysis alone, or not at all */
	MOUNT_DISK, /* a file system of its own for workspace (target) and private /tmp; source: a block device, NULL: a tmpfs */
	MOUNT_PTS,  /* a devpts with one terminal in it, the command's own */
	MOUNT_SAME, /* what is already at `source` inside the new root appears at target too */
};

#endif
