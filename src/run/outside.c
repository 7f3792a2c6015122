#include "outside.h"
#include "array.h"
#include "clock.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATHS_MAX = 4096, DEADLINE_MS = 3000 };

void outside_done(struct outside *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->list[i].path);
		free(o->list[i].near);
	}
	free(o->list);
	lookup_done(&o->names);
	*o = (struct outside){0};
}

struct wanted {
	const struct outside *outside;
	enum outside_kind kind;
	const char *operation;
};

static int is_same(const void *arg, size_t position, const char *path)
{
	const struct wanted *w = arg;
	const struct outside_path *p = &w->outside->list[position];

	return p->kind == w->kind && strcmp(p->operation, w->operation) == 0 && strcmp(p->path, path) == 0;
}

void outside_note(struct outside *o, enum outside_kind kind, const char *operation, const char *path,
		  const char *near, int errnum)
{
	struct wanted wanted = {o, kind, operation};
	size_t known = lookup_find(&o->names, path, is_same, &wanted);
	struct outside_path p = {.kind = kind, .operation = operation, .errnum = errnum, .count = 1}, *more;

	if (known != SIZE_MAX) {
		o->list[known].count++;
		return;
	}
	o->was_cut |= o->n >= PATHS_MAX;
	if (o->n >= PATHS_MAX)
		return;
	p.at = clock_utc();
	p.path = strdup(path);
	p.near = near ? strdup(near) : NULL;
	more = p.path && (p.near || !near) ? ARRAY_ADD(o->list, o->n) : NULL;
	if (!more) {
		free(p.path);
		free(p.near);
		return;
	}
	*more = p;
	(void)lookup_add(&o->names, path, o->n - 1);
}

/* ---- the look ---- */

struct answer {
	uint32_t position, found;
};

struct task {
	const struct outside *outside;
	outside_judge_fn judge;
	const void *arg;
};

static void child_main(void *arg, int socket)
{
	const struct task *t = arg;
	struct answer a = {0};

	for (; a.position < t->outside->n; a.position++) {
		a.found = t->judge(t->arg, &t->outside->list[a.position]);
		if (a.found != FOUND_NOTHING && message_send(socket, &a, sizeof a, -1) < 0)
			return;
	}
	a.found = FOUND_NOTHING; /* that was all */
	(void)message_send(socket, &a, sizeof a, -1);
}

static int left_ms(uint64_t deadline)
{
	uint64_t now = clock_now();

	return now >= deadline ? 0 : (int)((deadline - now) / NSEC_PER_MSEC);
}

static int receive(struct outside *o, int socket, struct error *err)
{
	uint64_t deadline = clock_now() + DEADLINE_MS * NSEC_PER_MSEC;

	for (;;) {
		struct answer a;
		int fd;
		ssize_t n = message_receive(socket, &a, sizeof a, left_ms(deadline), &fd);

		fd_close(fd);
		if (n == MESSAGE_LATE)
			return error_set(err, ERROR_SYSTEM, "a file system did not answer within %d s",
					 DEADLINE_MS / 1000);
		if (n != sizeof a)
			return error_set(err, ERROR_SYSTEM, "who looked for it has died");
		if (a.position >= o->n)
			return 0;
		o->list[a.position].found =
			a.found <= FOUND_THERE ? (enum outside_found)a.found : FOUND_NOTHING;
	}
}

int outside_look(struct outside *o, const struct identity *who, outside_judge_fn judge, const void *arg,
		 struct error *err)
{
	struct task task = {o, judge, arg};
	struct child child;
	int r;

	if (o->n == 0)
		return 0;
	r = become_start(who, child_main, &task, &child, err);
	if (r < 0)
		return r;
	r = receive(o, child.socket, err);
	become_end(&child);
	return r;
}
