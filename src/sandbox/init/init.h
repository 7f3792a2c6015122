/*
 * Init: PID 1 of every analysis. A static program without a C library, embedded in fumehood and executed from a
 * memfd. It raises the walls that the spec describes (mounts.c, walls.c), starts the one command, and then only
 * waits: for the command, for the deadline, for the supervisor's death.
 *
 * Why there is a PID 1 of ours at all: the kernel treats PID 1 in a special way (signals without a handler are
 * ignored, orphans are handed to it), and its death is what empties the namespace. The command is never PID 1.
 *
 * Every failure before the command runs ends in fail(), which reports and exits: half a wall is never used.
 */
#ifndef INIT_INIT_H
#define INIT_INIT_H

#include <linux/errno.h>

#include "spec.h"
#include "sys.h"

extern const struct spec *spec;

static inline const char *spec_string(uint32_t offset)
{
	return offset ? (const char *)spec + offset : NULL;
}

static inline const void *spec_at(uint32_t offset)
{
	return (const char *)spec + offset;
}

/* The blob that is INIT_FD_SPEC now becomes `spec`. */
void spec_map(void);

/* Reports. layer() says what stands; fail() ends everything: "cannot <what>[ '<name>']". r is -errno. */
void layer(int held, const char *name, const char *detail);
void fail(const char *what, const char *name, long r) __attribute__((noreturn));
void fail_replaced(const char *path) __attribute__((noreturn));
/* Ends everything as well: this mount of the spec cannot be an overlay. */
void fail_overlay(uint32_t index, long r) __attribute__((noreturn));
/* Reports and waits for the supervisor's answer; its byte. Dies if the supervisor is gone. */
char ask(uint32_t kind, int32_t value, long r);
char await_control(void);
void await_word(void); /* until there is something to read from it; dies if it is gone */
void report(const struct report *r);
void die(int status) __attribute__((noreturn));
void descriptor_send(uint32_t kind, int fd); /* a report that it comes along with */

/* mounts.c: the new root, empty; what the spec puts on it; then pivot_root, after which nothing of the old one is left. */
void mounts_begin(void);
void mounts_add(void);
void mounts_end(void);
/* struct iovec and struct msghdr, as the kernel wants them. */
struct message_part {
	void *base;
	size_t size;
};
struct message {
	void *name;
	int name_size, pad;
	struct message_part *parts;
	size_t n_parts;
	void *control;
	size_t control_size;
	unsigned flags;
};

/* spare.c: waits to be told whose init it is; another spec comes, with its descriptors. Ends with the supervisor. */
void spare_wait(void);
/* overlay.c: a directory, or a file by way of its directory (parent, else -1); or what is a part of a layer (source), which
 * is shared until another comes, or the end of it is said. */
void overlay_mount(const struct spec_mount *m, uint32_t index, int source, int parent);
void overlay_share_end(void);
/* disk.c: the file system that holds workspace and private /tmp, where the disk limit is held exactly. */
void disk_mount(const struct spec_mount *m);
/* terminal.c: the command's own, if it has one: made with the mounts, and then, in the command's process, its stdin, stdout,
 * stderr and controlling terminal. */
void terminal_mount(const struct spec_mount *m);
int terminal_is_there(void);
void terminal_enter(void);

/* bare.c: in place of all that, where there are no namespaces. */
int bare_begin(void);	/* the ruleset's descriptor */
void bare_settle(void); /* the command runs */
void bare_end(void);	/* kills and awaits whatever is left of it */

/* walls.c, landlock.c: in the process that becomes the command, in this order. */
int landlock_prepare(void); /* the ruleset's descriptor, or -1 where the kernel has none */
void landlock_apply(int ruleset);
void identity_assume(void);  /* groups, user namespace, uid, gid */
void privileges_bound(void); /* the bounding set: by init, and what it starts inherits that */
void privileges_drop(void);  /* capabilities of every set, securebits */
void filter_apply(void);

#endif
