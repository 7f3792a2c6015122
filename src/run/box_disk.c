/*
 * What a box knows of its disk: a file system of its own, or directories of the host's that are looked at now and then.
 */
#include "box.h"
#include "ability.h"
#include "clock.h"
#include "file.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static const uint64_t LOOK_SLICE_NS = 10 * NSEC_PER_MSEC;

bool box_is_away(const struct box *b)
{
	return b->disk.host_workspace >= 0;
}

/* ---- which ones they are ---- */

/* The plan was made before these existed: now the child can be told which ones they are, and refuses others. */
int box_learn_mounts(struct box *b, struct error *err)
{
	const struct plan *plan = b->order.plan;
	const struct workspace *w = b->order.place->workspace;

	b->facts = calloc(plan->n_mounts + 1, sizeof *b->facts);
	if (!b->facts)
		return error_memory(err);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount *m = &plan->mounts[i];
		struct stat st;

		if (m->kind != MOUNT_BIND || m->inode)
			continue;
		if (strcmp(m->source, w->record.path) == 0 ? fstat(w->fd, &st) < 0
							   : lstat(m->source, &st) < 0)
			return error_system(err, errno, "cannot look at '%s'", m->source);
		b->facts[i] = (struct mount_fact){.device = st.st_dev, .inode = st.st_ino};
	}
	return 0;
}

/* ---- a disk of its own ---- */

/* Of exactly the size that was asked for: as root an image on a loop device, else a tmpfs. */
void box_make_disk(struct box *b)
{
	const struct plan *plan = b->order.plan;
	const struct workspace *w = b->order.place->workspace;
	const uint64_t *limit = plan->limits.value;
	struct error why = ERROR_INIT;
	char text[LIMIT_TEXT_SIZE];

	if (ability_is_root() && limit[LIMIT_DISK] != LIMIT_NONE)
		b->disk.loop = image_open(w->site->root_fd, limit[LIMIT_DISK], limit[LIMIT_FILES],
					  b->loop_path, &why);
	for (size_t i = 0; b->disk.loop >= 0 && i < plan->n_mounts; i++)
		if (plan->mounts[i].kind == MOUNT_DISK)
			b->facts[i].source = b->loop_path;
	receipt_add(b->order.receipt, "limit disk", true, "%s, %s",
		    limit_format(LIMIT_DISK, limit[LIMIT_DISK], text),
		    b->disk.loop >= 0 ? "a disk image of its own" : "a tmpfs of its own, charged to memory");
}

/* It holds the limit; what is left to see is how full it is, and whether it ever was. */
static enum look disk_measure(struct box *b, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct statvfs st;

	if (fstatvfs(b->disk.fd, &st) < 0)
		return LOOK_MISSED;
	*ret_bytes = (uint64_t)(st.f_blocks - st.f_bfree) * st.f_frsize - b->disk.empty.bytes;
	*ret_files = st.f_files - st.f_ffree - b->disk.empty.files;
	b->use.was_full |= st.f_blocks && st.f_bavail == 0;
	b->use.files_were_up |= st.f_files && st.f_ffree == 0;
	return LOOK_WHOLE;
}

int box_enter_disk(struct box *b, int fd, struct error *err)
{
	struct workspace *w = b->order.place->workspace;
	int r;

	b->disk.fd = fd;
	r = b->disk.loop < 0 ? 0 : image_trim(fd, b->order.plan->limits.value[LIMIT_FILES], err);
	if (r < 0)
		return r;
	disk_measure(b, &b->disk.empty.bytes, &b->disk.empty.files);
	b->disk.host_workspace = w->fd;
	w->fd = file_open_beneath(fd, "work", O_RDONLY | O_DIRECTORY, 0);
	if (w->fd < 0)
		return error_system(err, -w->fd, "cannot open the workspace on its own disk");
	return b->order.fill(b->order.arg, err);
}

int box_leave_disk(struct box *b, bool keep, struct error *err)
{
	int r = 0;

	if (box_is_away(b)) {
		struct workspace *w = b->order.place->workspace;

		if (keep)
			r = tree_copy(w->fd, b->disk.host_workspace, err);
		fd_close(w->fd);
		w->fd = TAKE_FD(b->disk.host_workspace);
	}
	b->disk.fd = fd_close(b->disk.fd);
	b->disk.loop = fd_close(b->disk.loop);
	return r;
}

/* ---- plain directories ---- */

/* One that the command may write, which it may have locked: it is not out of our sight for that. */
static int open_writable(const struct box *b, const struct mount *m)
{
	const struct workspace *w = b->order.place->workspace;
	const char *scratch = w->record.scratch;
	_cleanup_close_ int fd = -1;

	if (!path_is_below(m->source, scratch))
		return fcntl(w->fd, F_DUPFD_CLOEXEC, 3);
	fd = tree_open_directory(w->site->root_fd, strrchr(scratch, '/') + 1);
	return fd < 0 ? fd : tree_open_directory(fd, m->source + strlen(scratch) + 1);
}

enum { WRITABLE_MAX = 2 };

/* All that it may write: the workspace and the private /tmp. */
static int look_begin(struct box *b, bool is_alive)
{
	const struct plan *plan = b->order.plan;
	const uint64_t *limit = plan->limits.value;
	struct tree_size most = {.bytes = limit[LIMIT_DISK], .files = limit[LIMIT_FILES]};
	int fds[WRITABLE_MAX], r = 0;
	size_t n = 0;

	for (size_t i = 0; r == 0 && i < plan->n_mounts && n < ARRAY_SIZE(fds); i++) {
		if (plan->mounts[i].kind != MOUNT_BIND || !plan->mounts[i].writable)
			continue;
		fds[n] = open_writable(b, &plan->mounts[i]);
		if (fds[n] < 0 && fds[n] != -ENOENT)
			r = fds[n];
		n++;
	}
	r = r < 0 ? r : tree_look_open(fds, n, &most, &b->look);
	if (r == 0 && is_alive)
		tree_look_at_held(b->look, b->sandbox->init.pid);
	while (n > 0)
		fd_close(fds[--n]);
	return r;
}

/* A slice of a look, so that whoever cancels is heard in between. */
static enum look look_on(struct box *b, uint64_t until, struct tree_size *ret)
{
	int r = b->look ? 0 : look_begin(b, until != UINT64_MAX);

	if (r == 0)
		r = tree_look_on(b->look, until, ret);
	if (r == 1)
		return LOOK_GOES_ON;
	tree_look_free(TAKE_PTR(b->look));
	if (r < 0)
		return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? LOOK_STARVED : LOOK_MISSED;
	return ret->hidden ? LOOK_HIDDEN : ret->lost ? LOOK_MISSED : LOOK_WHOLE;
}

/* ---- either ---- */

enum look box_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct box *b = arg;
	struct tree_size size = {0};
	enum look look;

	if (b->order.plan->own_disk)
		return disk_measure(b, ret_bytes, ret_files);
	look = look_on(b, clock_now() + LOOK_SLICE_NS, &size);
	*ret_bytes = size.bytes;
	*ret_files = size.files;
	return look;
}

void box_measure_last(struct box *b)
{
	struct tree_size *most = &b->use.most, now = {0};
	bool own = b->order.plan->own_disk;
	enum look look = own ? disk_measure(b, &now.bytes, &now.files) : look_on(b, UINT64_MAX, &now);

	if (look == LOOK_STARVED || (look == LOOK_MISSED && !now.lost))
		return;
	if (own)
		b->result.evidence.disk_hits = b->use.was_full || b->use.files_were_up;
	most->bytes = now.bytes > most->bytes ? now.bytes : most->bytes;
	most->files = now.files > most->files ? now.files : most->files;
	b->result.usage.disk_bytes = (int64_t)most->bytes;
	b->result.usage.disk_files = (int64_t)most->files;
}
