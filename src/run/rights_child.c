/*
 * What a submission names of this host, looked at by a child that has become its user (or nobody, where it has none).
 * Each answer is a descriptor of what that user could open, or the reason why not.
 */
#include "rights.h"
#include "caller.h"
#include "clock.h"
#include "file.h"
#include "private.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

enum { ANSWER_TIMEOUT_MS = 30000, ALL_TIMEOUT_MS = 60000, PREFIXES_MAX = 64 };

enum answer_kind { ANSWER_PLACE, ANSWER_PROGRAM, ANSWER_PREFIX, ANSWER_INTO, ANSWER_DONE };

struct child_answer {
	enum answer_kind kind;
	size_t index; /* of a place */
	bool by_user;
	int errnum;
	char reason[80]; /* "": errnum's */
	/* PROGRAM: as program.h has them, "" where there is none, and where its links lead */
	char path[PATH_MAX], relative[PATH_MAX], real[PATH_MAX], user_base[PATH_MAX], note[1024], why[1024];
};

struct child_task {
	const struct hood *hood;
	struct rights *rights;
	const struct request *request;
	const char *into;
};

/* ---- in the child ---- */

/* Readable by us, and a thing that can be shown: 0, or an errno. */
static int check_place(int fd, struct child_answer *a)
{
	struct statfs fs;
	struct stat st;
	char path[32];

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(a->reason, sizeof a->reason, "it is neither a directory nor a regular file");
		return EINVAL;
	}
	if (fs.f_type == FUSE_SUPER_MAGIC) {
		snprintf(a->reason, sizeof a->reason,
			 "its file system is a program, which could stop the worker");
		return EINVAL;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return access(path, S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK) < 0 ? errno : 0;
}

/* -errno as descriptors are; by a path nobody else's link is followed, as everywhere. */
static int open_by(const struct granted_place *p, bool by_user, int listed)
{
	int fd;

	if (by_user)
		return file_open_trusted(p->asked, true);
	if (*p->rest)
		return file_open_within(listed, p->rest, O_PATH);
	fd = fcntl(listed, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

static int open_place(const struct granted_place *p, bool by_user, int listed, struct child_answer *a)
{
	_cleanup_close_ int fd = open_by(p, by_user, listed);

	a->reason[0] = 0;
	a->by_user = by_user;
	a->errnum = fd >= 0 ? check_place(fd, a) : -fd;
	return a->errnum ? -1 : TAKE_FD(fd);
}

/* With the user's own rights first; what he may not and the site lists, beneath what it lists. */
static int answer_place(const struct child_task *t, size_t i, int listed, int socket)
{
	const struct granted_place *p = &t->rights->places[i];
	struct child_answer a = {.kind = ANSWER_PLACE, .index = i, .errnum = EACCES};
	_cleanup_close_ int fd = -1;

	if (t->rights->has_user)
		fd = open_place(p, true, -1, &a);
	if (fd < 0 && listed >= 0)
		fd = open_place(p, false, listed, &a);
	return message_send(socket, &a, sizeof a, fd);
}

static int answer_places(const struct child_task *t, int socket)
{
	for (size_t i = 0; i < t->rights->n_places; i++) {
		_cleanup_close_ int listed = -1;
		char byte;

		/* What is listed was opened by who may. */
		if (t->rights->places[i].listed >= 0 &&
		    (message_receive(socket, &byte, 1, ANSWER_TIMEOUT_MS, &listed) != 1 || listed < 0))
			return -EIO;
		if (answer_place(t, i, listed, socket) < 0)
			return -EIO;
	}
	return 0;
}

static int answer_prefix(const char *prefix, int socket)
{
	struct child_answer a = {.kind = ANSWER_PREFIX};
	_cleanup_close_ int fd = file_open_trusted(prefix, true);

	/* Not his to read: then it is not there for him. */
	if (fd < 0 || check_place(fd, &a) != 0)
		return 0;
	return message_send(socket, &a, sizeof a, fd);
}

/* 0, or it does not fit. */
static int put(char *out, size_t room, const char *text)
{
	return snprintf(out, room, "%s", text ? text : "") < (int)room ? 0 : -ENAMETOOLONG;
}

static int answer_program(const struct child_task *t, int socket)
{
	_cleanup_program_ struct program p = {0};
	struct child_answer a = {.kind = ANSWER_PROGRAM};
	_cleanup_free_ char *search = caller_search(t->request);
	struct error why = ERROR_INIT;
	int r;

	if (!search ||
	    program_find(t->hood, t->request->command[0], t->request->directory, search, &p, &why) < 0)
		return -EIO;
	if (put(a.path, sizeof a.path, p.path) < 0 || put(a.relative, sizeof a.relative, p.relative) < 0 ||
	    put(a.user_base, sizeof a.user_base, p.user_base) < 0)
		return -ENAMETOOLONG;
	(void)put(a.note, sizeof a.note, p.note);
	(void)put(a.why, sizeof a.why, p.why.message);
	if (p.path && !realpath(p.path, a.real))
		a.real[0] = 0;
	r = message_send(socket, &a, sizeof a, -1);
	for (size_t i = 0; r == 0 && p.prefixes && p.prefixes[i]; i++)
		r = answer_prefix(p.prefixes[i], socket);
	return r;
}

/* May the directory be written to, or be made, with the parents that are missing? */
static int check_into(const char *into)
{
	char path[PATH_MAX], *slash;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (strlen(into) >= sizeof path)
		return ENAMETOOLONG;
	memcpy(path, into, strlen(into) + 1);
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	while ((fd = file_open_trusted(path, true)) == -ENOENT && path[1]) {
		slash = strrchr(path, '/');
		slash[slash == path] = 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? -fd : errno;
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return access(path, W_OK | X_OK) < 0 ? errno : 0;
}

static void child_main(void *arg, int socket)
{
	const struct child_task *t = arg;
	const struct rights *rights = t->rights;
	struct child_answer into = {.kind = ANSWER_INTO}, done = {.kind = ANSWER_DONE};

	if (setenv("HOME", rights->who.home, 1) < 0 || answer_places(t, socket) < 0 ||
	    (rights->has_user && answer_program(t, socket) < 0))
		return;
	if (t->into && rights->has_user) {
		into.errnum = check_into(t->into);
		if (message_send(socket, &into, sizeof into, -1) < 0)
			return;
	}
	(void)message_send(socket, &done, sizeof done, -1);
}

/* ---- in the parent ---- */

static int grant_place(struct hood *h, struct rights *rights, struct granted_place *p,
		       const struct child_answer *a, int fd, struct error *err)
{
	char reason[128];
	struct stat st;

	if (a->errnum || fd < 0) {
		snprintf(reason, sizeof reason, "%.79s", a->reason[0] ? a->reason : strerror(a->errnum));
		return rights_refuse(rights, p->option, p->asked, p->key,
				     rights->has_user || p->listed >= 0 ? reason : NULL, err);
	}
	p->path = fd_path(fd);
	if (!p->path)
		return error_memory(err);
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at %s '%s'", p->option, p->path);
	if (!S_ISDIR(st.st_mode) && strcmp(p->key, "ro") != 0)
		return error_set(err, ERROR_REFUSED, "%s '%s' is not a directory", p->option, p->path);
	p->device = st.st_dev;
	p->inode = st.st_ino;
	p->by_user = a->by_user;
	/* Of his groups the one that the place has, so that what he reads by it can be read. */
	p->gid = identity_has_group(&rights->who, st.st_gid) ? st.st_gid : rights->who.gid;
	p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (p->fd < 0)
		return error_system(err, errno, "cannot keep '%s' open", p->path);
	return input_check(h, p->path, p->option, err);
}

/* What nobody named is not worth a refusal. */
static int take_place(struct hood *h, struct rights *rights, struct granted_place *p,
		      const struct child_answer *a, int fd, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = grant_place(h, rights, p, a, fd, p->optional ? &why : err);

	if (r == 0 || !p->optional)
		return r;
	if (why.kind != ERROR_REFUSED) {
		*err = why;
		return r;
	}
	free(p->path);
	p->path = NULL;
	p->fd = fd_close(p->fd);
	return text_set(&p->why, why.message, err);
}

static int take_program(struct granted_program *p, const struct child_answer *a, struct error *err)
{
	if ((a->path[0] && !(p->found.path = strdup(a->path))) ||
	    (a->relative[0] && !(p->found.relative = strdup(a->relative))) ||
	    (a->real[0] && !(p->real = strdup(a->real))) ||
	    (a->user_base[0] && !(p->found.user_base = strdup(a->user_base))) ||
	    (a->note[0] && !(p->found.note = strdup(a->note))))
		return error_memory(err);
	if (a->why[0])
		error_set(&p->found.why, ERROR_REFUSED, "%s", a->why);
	return 0;
}

/* A prefix is shown like anything else that he may read. */
static int take_prefix(struct hood *h, struct rights *rights, struct granted_program *p,
		       const struct child_answer *a, int fd, struct error *err)
{
	struct child_answer place = {.kind = ANSWER_PLACE, .by_user = true};
	struct granted_place *more;
	int r;

	if (strv_length(p->found.prefixes) >= PREFIXES_MAX || fd < 0 || a->errnum)
		return error_set(err, ERROR_SYSTEM, "a program has more prefixes than can be shown");
	more = rights_add_place(rights, "the program's prefix", "ro");
	if (!more || !(more->asked = fd_path(fd)))
		return error_memory(err);
	r = take_place(h, rights, more, &place, fd, err);
	if (r < 0)
		return r;
	return strv_append(&p->found.prefixes, more->path, err);
}

static int take_answer(struct hood *h, struct child_task *t, const struct child_answer *a, int fd,
		       struct error *err)
{
	struct rights *rights = t->rights;

	switch (a->kind) {
	case ANSWER_PLACE:
		if (a->index >= rights->n_places)
			break;
		return take_place(h, rights, &rights->places[a->index], a, fd, err);
	case ANSWER_PROGRAM:
		return take_program(&rights->program, a, err);
	case ANSWER_PREFIX:
		return take_prefix(h, rights, &rights->program, a, fd, err);
	case ANSWER_INTO:
		rights->into = a->errnum ? INTO_NOT_ASKED : INTO_BY_USER;
		return 0;
	case ANSWER_DONE:
		break;
	}
	return 1;
}

/* A file system that hangs, a machine under load, somebody who killed it: this host's, and of this day. That it ended by
 * itself would be the same anywhere. */
static int no_answer(const struct rights *rights, const struct child *child, ssize_t n, struct error *err)
{
	bool is_late = n == MESSAGE_LATE;
	int r = error_set(
		err, ERROR_REFUSED,
		"what '%s' has submitted could not be looked at as its user %u ('%s'): the process that did so %s",
		rights->owner, rights->who.uid, rights->who.name,
		is_late ? "gave no answer in time" : "was ended");

	return is_late || become_was_killed(child) ? error_here(err, r) : r;
}

static int converse(struct hood *h, struct child_task *t, const struct child *child, struct error *err)
{
	const struct rights *rights = t->rights;
	uint64_t end = clock_now() + ALL_TIMEOUT_MS * NSEC_PER_MSEC;
	int r = 0;

	for (size_t i = 0; i < rights->n_places && r == 0; i++)
		if (rights->places[i].listed >= 0)
			r = message_send(child->socket, "", 1, rights->places[i].listed);
	if (r < 0)
		return error_system(err, -r, "cannot speak to the process of the user '%s'",
				    rights->who.name);
	for (;;) {
		_cleanup_close_ int fd = -1;
		struct child_answer a;
		/* Each in time, and all of them. */
		ssize_t n = clock_now() < end
				    ? message_receive(child->socket, &a, sizeof a, ANSWER_TIMEOUT_MS, &fd)
				    : MESSAGE_LATE;

		if (n != sizeof a)
			return no_answer(rights, child, n, err);
		r = take_answer(h, t, &a, fd, err);
		if (r != 0)
			return r == 1 ? 0 : r;
	}
}

/* Nobody's program: by name where the worker's are, by a path only where something is shown. */
static int find_unowned(const struct hood *h, const char *command, struct granted_program *ret,
			struct error *err)
{
	char **field = *command == '/' ? &ret->found.path : &ret->found.relative;

	if (!strchr(command, '/'))
		return program_find(h, command, "/", program_search(), &ret->found, err);
	return text_set(field, command, err);
}

static int check_into_listed(struct hood *h, struct rights *rights, const char *into, bool force,
			     struct error *err)
{
	const json_t *list = json_object_get(h->config.queue_allow, "into"), *item;
	size_t i;

	if (rights->into == INTO_BY_USER)
		return 0;
	json_array_foreach (list, i, item)
		if (rights_rest(into, json_string_value(item))) {
			rights->into = INTO_LISTED;
			/* What lies there may be somebody else's. */
			return force ? error_set(
					       err, ERROR_REFUSED,
					       "--force is not allowed for '%s': '%s' is everybody's, and nobody "
					       "overwrites there",
					       rights->owner, json_string_value(item))
				     : 0;
		}
	return rights_refuse(rights, "--into", into, "into",
			     rights->has_user ? "this user may not write there" : NULL, err);
}

static int ask(struct hood *h, struct child_task *t, struct error *err)
{
	struct child child;
	int r = become_start(&t->rights->who, child_main, t, &child, err);

	if (r < 0)
		return r;
	r = converse(h, t, &child, err);
	become_end(&child);
	return r;
}

int rights_resolve(struct hood *h, struct rights *rights, const struct request *request, const char *into,
		   struct error *err)
{
	struct child_task t = {.hood = h, .rights = rights, .request = request, .into = into};
	int r = 0;

	for (size_t i = 0; i < rights->n_places; i++)
		if (!rights->has_user && rights->places[i].listed < 0 && !rights->places[i].optional)
			return rights_refuse(rights, rights->places[i].option, rights->places[i].asked,
					     rights->places[i].key, NULL, err);
	if ((!rights->has_user && (r = find_unowned(h, request->command[0], &rights->program, err)) < 0) ||
	    ((rights->has_user || rights->n_places > 0) && (r = ask(h, &t, err)) < 0))
		return r;
	return into ? check_into_listed(h, rights, into, request->force, err) : 0;
}
