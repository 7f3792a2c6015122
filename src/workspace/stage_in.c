#include "folder.h"
#include "relative.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COPY_SIZE = 1024 * 1024 };

/* One file on its way in. */
struct staging {
	const char *source, *as;
	struct relative path;		       /* as, checked */
	uint64_t device, inode;		       /* inode 0: any */
	char shown_source[512], shown_as[512]; /* for messages */
	const struct workspace *workspace;
	uint64_t max;
	uid_t uid;
	gid_t gid;
	struct input input;
};

static const char *kind_of(mode_t mode)
{
	return S_ISLNK(mode)	? "a symbolic link"
	       : S_ISDIR(mode)	? "a directory"
	       : S_ISFIFO(mode) ? "a FIFO"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device";
}

/* Looked at before it is opened: opening a FIFO or a device can already do something. */
static int open_source(const struct staging *s, struct stat *st, struct error *err)
{
	_cleanup_close_ int path = file_open_nolinks(AT_FDCWD, s->source, O_PATH | O_NOFOLLOW);
	char self[64];
	int fd;

	if (path == -ELOOP)
		return error_set(
			err, ERROR_REFUSED,
			"a directory on the way to input '%s' has become a symbolic link: it is not followed",
			s->shown_source);
	if (path < 0)
		return error_system(err, -path, "cannot open input '%s'", s->shown_source);
	if (fstat(path, st) < 0)
		return error_system(err, errno, "cannot look at input '%s'", s->shown_source);
	if (s->inode && (st->st_dev != s->device || st->st_ino != s->inode))
		return error_set(err, ERROR_REFUSED,
				 "input '%s' has been replaced since it was looked at: try again",
				 s->shown_source);
	if (!S_ISREG(st->st_mode))
		return error_set(err, ERROR_REFUSED, "input '%s' is %s, not a regular file", s->shown_source,
				 kind_of(st->st_mode));
	if ((uint64_t)st->st_size > s->max)
		return error_set(err, ERROR_REFUSED,
				 "input '%s' has %" PRIu64 " bytes, more than the %" PRIu64 " allowed",
				 s->shown_source, (uint64_t)st->st_size, s->max);
	snprintf(self, sizeof self, "/proc/self/fd/%d", path);
	fd = open(self, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? error_system(err, errno, "cannot open input '%s'", s->shown_source) : fd;
}

/* A new file always: what lay there is replaced, never written into. */
static int create_target(int dirfd, const char *name, const struct staging *s, struct error *err)
{
	for (int tries = 0; tries < 3; tries++) {
		int fd = file_open_beneath(dirfd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return error_system(err, errno, "cannot stage '%s'", s->shown_as);
		if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno == EISDIR)
			return error_set(err, ERROR_USAGE,
					 "cannot stage '%s': a directory of that name is there", s->shown_as);
		return error_system(err, errno, "cannot replace '%s'", s->shown_as);
	}
	return error_set(err, ERROR_BUSY, "cannot stage '%s': somebody else keeps making it", s->shown_as);
}

static int copy(int from, int to, struct staging *s, uint64_t expected, struct error *err)
{
	size_t room = expected < COPY_SIZE ? (size_t)expected + 1 : COPY_SIZE;
	_cleanup_free_ char *chunk = malloc(room);
	struct digest digest;
	ssize_t n;
	int r;

	if (!chunk)
		return error_memory(err);
	digest_init(&digest);
	while ((n = read(from, chunk, room)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(err, errno, "cannot read input '%s'", s->shown_source);
		s->input.size += (uint64_t)n;
		if (s->input.size > s->max)
			return error_set(err, ERROR_REFUSED,
					 "input '%s' grew to more than the %" PRIu64 " bytes allowed",
					 s->shown_source, s->max);
		digest_update(&digest, chunk, (size_t)n);
		r = file_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return error_system(err, -r, "cannot write '%s' in the workspace", s->shown_as);
		if (s->workspace->copied)
			s->workspace->copied(s->workspace->copied_arg, (uint64_t)n);
	}
	digest_final(&digest, s->input.sha256);
	return 0;
}

/* Where the content of a file comes from. */
struct stage_content {
	int fd; /* a file of the host; -1: fill writes it */
	uint64_t size;
	workspace_fill_fn fill;
	void *arg;
};

static int fill_target(int to, struct staging *s, const struct stage_content *c, struct error *err)
{
	int r = c->fill ? c->fill(c->arg, &s->input, to, err) : copy(c->fd, to, s, c->size, err);

	if (r < 0)
		return r;
	if (fchmod(to, s->input.mode) < 0)
		return error_system(err, errno, "cannot set the mode of '%s'", s->shown_as);
	if (s->uid != geteuid() && fchown(to, s->uid, s->gid) < 0)
		return error_system(err, errno, "cannot give '%s' to user %u", s->shown_as, (unsigned)s->uid);
	return 0;
}

static int write_target(struct workspace *w, struct staging *s, const struct stage_content *c,
			struct error *err)
{
	const struct relative_make make = {0700, .is_exact = true, s->uid, s->gid};
	_cleanup_close_ int dir = -1, to = -1;
	const char *name;
	int r;

	dir = relative_open_parent(w->fd, s->path, &make, &name);
	if (dir == -ENOTDIR || dir == -ELOOP)
		return error_set(err, ERROR_USAGE, "cannot stage '%s': what is on the way is not a directory",
				 s->shown_as);
	if (dir < 0)
		return error_system(err, -dir, "cannot stage '%s'", s->shown_as);
	to = create_target(dir, name, s, err);
	if (to < 0)
		return to;
	r = fill_target(to, s, c, err);
	if (r < 0)
		unlinkat(dir, name, 0);
	return r;
}

static int stage_file(struct workspace *w, struct staging *s, struct error *err)
{
	_cleanup_close_ int from = -1;
	struct stat st;

	from = open_source(s, &st, err);
	if (from < 0)
		return from;
	s->input.mode = st.st_mode & 0111 ? 0700 : 0600;
	return write_target(w, s, &(struct stage_content){.fd = from, .size = (uint64_t)st.st_size}, err);
}

/* 1: it is to be staged; 0: it is there already. */
static int staging_check(struct staging *s, const struct inputs *inputs, struct error *err)
{
	const struct input *before;

	text_escape_into(s->shown_source, sizeof s->shown_source, s->source, strlen(s->source));
	text_escape_into(s->shown_as, sizeof s->shown_as, s->as, strlen(s->as));
	if (relative_check(s->as, strlen(s->as), &s->path, err) < 0)
		return error_prefix(err, -1, "cannot stage");
	before = inputs_find(inputs, s->as);
	if (before && strcmp(before->source, s->source) == 0)
		return 0;
	if (before)
		return error_set(err, ERROR_USAGE,
				 "cannot stage '%s' as '%s': another input has that name already",
				 s->shown_source, s->shown_as);
	return 1;
}

static int staging_note(struct staging *s, struct inputs *inputs, struct error *err)
{
	s->input.path = (char *)s->as;
	s->input.source = (char *)s->source;
	return inputs_add(inputs, &s->input, err);
}

int workspace_stage(struct workspace *w, const struct stage *what, uint64_t max, uid_t uid, gid_t gid,
		    struct inputs *inputs, struct error *err)
{
	struct staging s = {.source = what->source,
			    .as = what->as,
			    .device = what->device,
			    .inode = what->inode,
			    .workspace = w,
			    .max = max,
			    .uid = uid,
			    .gid = gid};
	int r = staging_check(&s, inputs, err);

	if (r <= 0)
		return r;
	r = stage_file(w, &s, err);
	return r < 0 ? r : staging_note(&s, inputs, err);
}

int workspace_stage_content(struct workspace *w, const struct input *i, uint64_t max, uid_t uid, gid_t gid,
			    workspace_fill_fn fill, void *arg, struct inputs *inputs, struct error *err)
{
	struct staging s = {
		.source = i->source, .as = i->path, .max = max, .uid = uid, .gid = gid, .input = *i};
	int r = staging_check(&s, inputs, err);

	if (r <= 0)
		return r;
	if (i->size > max)
		return error_set(err, ERROR_REFUSED,
				 "input '%s' has %" PRIu64 " bytes, more than the %" PRIu64 " allowed",
				 s.shown_source, i->size, max);
	s.input.mode = i->from_analysis ? 0444 : i->mode & 0111 ? 0700 : 0600;
	r = write_target(w, &s, &(struct stage_content){.fd = -1, .fill = fill, .arg = arg}, err);
	return r < 0 ? r : staging_note(&s, inputs, err);
}
