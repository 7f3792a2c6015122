/*
 * Outputs on their way into a directory of the host that a submission names: written by a child that has become the
 * submission's user, or beneath what the site lists. The child asks for one content after the other; each is fetched into
 * a file without a name and handed over. It says how far it is: it may be slow, but not silent.
 */
#include "rights.h"
#include "file.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

enum { SILENCE_MS = 60000, PIECE = 8 * 1024 * 1024 };

enum word { WORD_WANT, WORD_PROGRESS, WORD_DONE, WORD_FAILED };

struct message {
	enum word word;
	size_t index; /* WANT: of the output */
	struct error why;
};

struct delivery {
	const struct attempt *attempt;
	const struct plan *plan;
	int socket; /* the child's */
};

/* ---- in the child ---- */

static int pour(int from, int to, uint64_t size, int socket, struct error *err)
{
	struct message going = {.word = WORD_PROGRESS};

	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, size < PIECE ? (size_t)size : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_system(err, n < 0 ? errno : EIO, "cannot write it");
		size -= (uint64_t)n;
		if (message_send(socket, &going, sizeof going, -1) < 0)
			return error_set(err, ERROR_SYSTEM, "the worker is gone");
	}
	return 0;
}

static int fetch_from_parent(void *arg, const struct output *o, int fd, struct error *err)
{
	const struct delivery *d = arg;
	struct message m = {.word = WORD_WANT, .index = (size_t)(o - d->attempt->manifest.outputs)};
	_cleanup_close_ int from = -1;

	if (message_send(d->socket, &m, sizeof m, -1) < 0 ||
	    message_receive(d->socket, &m, sizeof m, -1, &from) != sizeof m)
		return error_set(err, ERROR_SYSTEM, "the worker is gone");
	if (from < 0) {
		*err = m.why;
		return -EIO;
	}
	return pour(from, fd, o->size, d->socket, err);
}

static void child_main(void *arg, int socket)
{
	struct delivery d = *(struct delivery *)arg;
	struct message end = {.word = WORD_DONE};

	d.socket = socket;
	if (outputs_copy_into(d.attempt, d.plan, -1, fetch_from_parent, &d, &end.why) < 0)
		end.word = WORD_FAILED;
	(void)message_send(socket, &end, sizeof end, -1);
}

/* ---- in the parent ---- */

/* A file without a name. */
static int open_unnamed(int state, struct error *err)
{
	int fd = openat(state, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("fumehood-into", MFD_CLOEXEC);
	return fd < 0 ? error_system(err, errno, "cannot make a file for an output on its way") : fd;
}

static int deliver_one(const struct delivery *d, size_t index, struct ledger *l, int state, int socket,
		       struct error *err)
{
	struct message m = {.word = WORD_WANT, .index = index};
	_cleanup_close_ int fd = -1;
	int r = -EINVAL;

	if (index < d->attempt->manifest.n_outputs) {
		fd = open_unnamed(state, &m.why);
		r = fd < 0 ? fd : ledger_copy_output(l, &d->attempt->manifest.outputs[index], fd, &m.why);
	}
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = error_system(&m.why, errno, "cannot read an output again");
	/* What went wrong comes back as the child's own failure, when it has tidied up. */
	r = message_send(socket, &m, sizeof m, r < 0 ? -1 : fd);
	return r < 0 ? error_system(err, -r, "cannot hand over an output") : 0;
}

static int serve(const struct delivery *d, struct ledger *l, int state, int socket, struct error *err)
{
	for (;;) {
		struct message m;
		int fd, r = 0;
		ssize_t n = message_receive(socket, &m, sizeof m, SILENCE_MS, &fd);

		fd_close(fd);
		if (n != sizeof m)
			return error_set(
				err, ERROR_SYSTEM,
				"its outputs are in the ledger, but cannot be copied into '%s': the process of its user %s",
				d->plan->into, n == MESSAGE_LATE ? "has not answered in time" : "was ended");
		if (m.word == WORD_WANT)
			r = deliver_one(d, m.index, l, state, socket, err);
		if (r < 0 || m.word == WORD_DONE)
			return r;
		if (m.word == WORD_FAILED) {
			m.why.message[sizeof m.why.message - 1] = 0;
			return error_set(err, ERROR_REFUSED, "%s", m.why.message);
		}
	}
}

static int copy_as_user(const struct rights *rights, struct ledger *l, const struct attempt *a,
			const struct plan *p, int state, struct error *err)
{
	struct delivery d = {.attempt = a, .plan = p};
	struct child child;
	int r = become_start(&rights->who, child_main, &d, &child, err);

	if (r < 0)
		return r;
	r = serve(&d, l, state, child.socket, err);
	become_end(&child);
	return r;
}

/* A directory on the way, by its whole path; the last one is no link. -errno. */
static int open_part(int listed, const char *path, int at, const char *name, bool is_last)
{
	return is_last ? file_open_beneath(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
		       : file_open_within(listed, path, O_RDONLY | O_DIRECTORY);
}

/* The directory, made with its parents where they are missing; never out of what is listed, whatever lies in between. -errno. */
static int open_beneath(int listed, const char *rest)
{
	_cleanup_free_ char *path = strdup(rest);
	_cleanup_close_ int at = file_open_within(listed, ".", O_RDONLY | O_DIRECTORY);

	if (!path)
		return -ENOMEM;
	for (char *name = path, *next; at >= 0 && *name; name = next) {
		char *end = name + strcspn(name, "/"), after = *end;
		int fd;

		next = end + strspn(end, "/");
		*end = 0;
		fd = open_part(listed, path, at, name, !*next);
		if (fd == -ENOENT) {
			if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
				return -errno;
			fd = open_part(listed, path, at, name, !*next);
		}
		*end = after;
		if (fd < 0)
			return fd;
		fd_close(at);
		at = fd;
	}
	return at < 0 ? at : TAKE_FD(at);
}

static int copy_listed(const struct hood *h, struct ledger *l, const struct attempt *a, const struct plan *p,
		       struct error *err)
{
	const json_t *item;
	int r = -ENOENT;
	size_t i;

	json_array_foreach (json_object_get(h->config.queue_allow, "into"), i, item) {
		const char *rest = rights_rest(p->into, json_string_value(item));
		_cleanup_close_ int listed = -1, fd = -1;
		char real[PATH_MAX];

		if (!rest || !realpath(json_string_value(item), real))
			continue;
		listed = file_open_nolinks(AT_FDCWD, real, O_RDONLY | O_DIRECTORY);
		fd = listed < 0 ? listed : open_beneath(listed, rest);
		if (fd >= 0)
			return outputs_copy_into(a, p, fd, ledger_fetch_output, l, err);
		r = fd;
	}
	return error_system(err, -r, "its outputs are in the ledger, but cannot be copied into '%s'",
			    p->into);
}

int rights_copy_into(const struct hood *h, const struct rights *rights, struct ledger *l,
		     const struct attempt *a, const struct plan *p, int state, struct error *err)
{
	if (!rights->is_bound || rights->into == INTO_NOT_ASKED)
		return outputs_copy_into(a, p, -1, ledger_fetch_output, l, err);
	if (rights->into == INTO_BY_USER)
		return copy_as_user(rights, l, a, p, state, err);
	return copy_listed(h, l, a, p, err);
}
