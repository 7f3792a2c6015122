/*
 * Runs that are going on and workspaces that are held, from their records. Only looks: takes no lock, so that looking
 * never makes a run fail.
 */
#include "private.h"
#include "ended.h"
#include "file.h"
#include "pulse.h"
#include "rights.h"
#include "steps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { RECORD_MAX = 64 * 1024 * 1024 };

void live_done(struct live *l)
{
	free(l->path);
	free(l->why);
	free(l->ledger);
	for (int i = 0; i < STREAM_COUNT; i++)
		fd_close(l->log_fd[i]);
	*l = (struct live){.log_fd = {-1, -1}};
}

const char *live_state(const struct live *l)
{
	return l->held ? "held" : l->pending ? "pending" : l->alive ? "running" : "dead";
}

static bool process_lives(const struct process_id *id)
{
	_cleanup_close_ int fd = process_open(id);

	return fd >= 0;
}

/* A dead supervisor's, or one that lives on, as a worker does, and has said why it could not be finished. */
static int live_fill_pending(int run_fd, struct live *l, struct error *err)
{
	_cleanup_pending_ struct pending p = {0};
	int r = l->held ? 0 : pending_load(run_fd, &p, err);

	if (r < 0)
		return r;
	l->pending =
		r == 1 ||
		(!l->held && !l->alive &&
		 (ended_exists(run_fd) || faccessat(run_fd, FINISHED_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0));
	l->alive = l->alive && !l->pending;
	l->why = TAKE_PTR(p.message);
	return 0;
}

static int live_fill(int run_fd, const struct record *r, struct live *ret, struct error *err)
{
	char name[LOG_NAME_SIZE];

	*ret = (struct live){
		.attempt = (int)json_integer_value(json_object_get(r->extra, "attempt")),
		.created = json_integer_value(json_object_get(r->extra, "created")),
		.alive = r->owner == OWNER_SUPERVISOR && process_lives(&r->process),
		.held = r->owner != OWNER_SUPERVISOR || r->held.owner == OWNER_KEPT,
		.kept = r->owner == OWNER_KEPT || r->held.owner == OWNER_KEPT,
		.queued = json_is_true(json_object_get(r->extra, "queued")),
		.whose = json_object_get(r->extra, RECORD_WHOSE) != NULL,
		.ledger = r->ledger ? strdup(r->ledger) : NULL,
		.path = strdup(r->path ? r->path : ""),
	};
	snprintf(ret->id, sizeof ret->id, "%s", r->id);
	memcpy(ret->token, r->token, sizeof ret->token);
	ret->step = record_step(r);
	ret->supervisor = r->process;
	ret->has_pulse = ret->alive && pulse_read(run_fd, &ret->pulse) == 0;
	for (int i = 0; i < STREAM_COUNT; i++)
		ret->log_fd[i] =
			file_open_beneath(run_fd, run_log_name(record_step(r), i, name), O_RDONLY, 0);
	if (!ret->path || (r->ledger && !ret->ledger))
		return error_memory(err);
	return live_fill_pending(run_fd, ret, err);
}

static int live_load(int runs, const char *id, struct live *ret, struct error *err)
{
	_cleanup_close_ int fd = file_open_beneath(runs, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	_cleanup_buffer_ struct buffer text = {0};
	struct record record;
	int r;

	*ret = (struct live){.log_fd = {-1, -1}};
	if (fd < 0 || faccessat(fd, "record.json", F_OK, 0) < 0)
		return error_set(err, ERROR_NOT_FOUND, "'%s' has no workspace now", id);
	r = file_load(fd, "record.json", RECORD_MAX, &text, err);
	if (r < 0)
		return r;
	record_init(&record);
	r = record_parse(&record, text.data ? text.data : "", text.size, err);
	if (r == 0)
		r = json_object_get(record.extra, "repeats")
			    ? error_set(err, ERROR_NOT_FOUND, "'%s' is no analysis", id)
			    : live_fill(fd, &record, ret, err);
	if (r < 0)
		live_done(ret);
	record_done(&record);
	return r;
}

int hood_live(struct hood *h, const char *id, struct live *ret, struct error *err)
{
	struct site *site = NULL;
	int r;

	if ((r = id_check(id, err)) < 0 || (r = hood_site(h, &site, err)) < 0)
		return r;
	return live_load(site->runs, id, ret, err);
}

int hood_live_each(struct hood *h, int (*fn)(void *arg, const struct live *l), void *arg, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct dirent *e;
	struct site *site = NULL;
	_cleanup_dir_ DIR *dir = NULL;
	int r = hood_site(h, &site, err);

	if (r < 0)
		return r;
	dir = dir_list(site->runs);
	if (!dir)
		return error_system(err, errno, "cannot list the runs in '%s'", h->state_dir);
	while (r == 0 && (e = readdir(dir))) {
		struct live live;

		/* What vanishes between the listing and the look has ended; what is none of ours is gc's business. */
		if (!folder_name_is_one(e->d_name) || live_load(site->runs, e->d_name, &live, &ignored) < 0)
			continue;
		r = fn(arg, &live);
		live_done(&live);
	}
	return r;
}
