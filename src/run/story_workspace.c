/*
 * The story's workspace: made or adopted, filled with what is staged; and the box in it.
 */
#include "story.h"
#include "collect.h"
#include "file.h"
#include "ground.h"
#include "steps.h"
#include "stopper.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* ---- workspace ---- */

/* What recovery needs to know if we die: enough to write down a lost attempt. */
static int note_extra(struct story *s, struct error *err)
{
	json_t *extra = json_pack("{s:i, s:b, s:o, s:I, s:I, s:O, s:O, s:I, s:b}", "attempt",
				  s->plan->attempt, "queued", s->attempt->queued, RECORD_WHOSE,
				  rights_to_json(&s->rights, s->workspace.record.ledger), "created",
				  (json_int_t)s->attempt->created, "log_max",
				  (json_int_t)s->plan->limits.value[LIMIT_LOG_MAX], "request",
				  s->attempt->request, "plan", s->attempt->plan, "step", (json_int_t)s->step,
				  RECORD_ENDS_ITSELF, s->plan->strength == STRENGTH_LANDLOCK);

	if (!extra || (s->attempt->engine && json_object_set(extra, "engine", s->attempt->engine) < 0)) {
		json_decref(extra);
		return error_memory(err);
	}
	json_decref(s->workspace.record.extra);
	s->workspace.record.extra = extra;
	return 0;
}

static int refuse_point(const char *name, const char *what, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "'%s' in the workspace must be %s: it is where --%s appears",
			 name, what, name);
}

/* The mount point of data/ or docs/ in the working directory. */
static int make_mount_point(struct story *s, const char *name, struct error *err)
{
	struct stat st;
	int r = dir_make_own(s->workspace.fd, name, 0755);

	if (r < 0 && r != -EEXIST)
		return error_system(err, -r, "cannot create '%s' in the workspace", name);
	if (fstatat(s->workspace.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return refuse_point(name, "a directory", err);
	if (s->place.uid != geteuid() &&
	    fchownat(s->workspace.fd, name, s->place.uid, s->place.gid, AT_SYMLINK_NOFOLLOW) < 0)
		return error_system(err, errno, "cannot give '%s' to the analysis", name);
	return 0;
}

/* Where nothing can be mounted, a link to it. */
static int make_link(struct story *s, const char *name, const char *to, struct error *err)
{
	char text[PATH_MAX];
	ssize_t n;

	if (symlinkat(to, s->workspace.fd, name) == 0)
		return 0;
	if (errno != EEXIST)
		return error_system(err, errno, "cannot link '%s' in the workspace", name);
	n = readlinkat(s->workspace.fd, name, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	return strcmp(text, to) == 0 ? 0 : refuse_point(name, "a link to that directory, or nothing", err);
}

static int make_mount_points(struct story *s, struct error *err)
{
	const char *const points[][2] = {{"data", s->plan->data}, {"docs", s->plan->docs}};
	bool bare = s->plan->strength == STRENGTH_LANDLOCK;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(points); i++)
		if (points[i][1])
			r = bare ? make_link(s, points[i][0], points[i][1], err)
				 : make_mount_point(s, points[i][0], err);
	return r;
}

static bool is_same(const struct output *a, const struct output *b)
{
	return a && b && a->size == b->size && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* Something that is to be staged now has this name. */
static bool comes_in(const struct story *s, const char *path)
{
	if (plan_has_stage(s->plan, NULL, path))
		return true;
	for (size_t i = 0; i < s->attempt->n_queries; i++)
		if (strcmp(s->attempt->queries[i].name, path) == 0)
			return true;
	return false;
}

/* A script that is run once more may have been changed: what a step before has staged is staged anew. What one has made is not
 * replaced. */
static int check_replaced(const struct story *s, const char *path, bool is_made, struct error *err)
{
	if (!is_made || !comes_in(s, path))
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"cannot stage '%s': a step before has made, or changed, a file of that name; give it "
		"another name (--input FILE:NAME), or leave it out (--no-stage)",
		SHOWN(256, path));
}

/* In a workspace that was held, what lies there counts as staged: it is an output only if the analysis changes it, or if a step
 * before has made it. */
static int note_adopted(struct story *s, struct error *err)
{
	_cleanup_manifest_ struct manifest found = {0}, made = {0};
	_cleanup_inputs_ struct inputs staged = {0};
	int r;

	if ((r = step_collect_made(&s->workspace, s->attempt, &found, err)) < 0 ||
	    (r = steps_made(&s->workspace, &made, err)) < 0 ||
	    (r = steps_staged(&s->workspace, &staged, err)) < 0)
		return r;
	for (size_t i = 0; i < found.n_outputs; i++) {
		const struct output *o = &found.outputs[i];
		struct input input = {.path = o->path, .source = o->path, .size = o->size, .mode = 0600};
		bool is_made = is_same(o, manifest_find(&made, o->path));

		r = check_replaced(s, o->path, is_made, err);
		if (r < 0)
			return r;
		if (is_made || (inputs_find(&staged, o->path) && comes_in(s, o->path)))
			continue;
		memcpy(input.sha256, o->sha256, sizeof input.sha256);
		r = inputs_add(&s->attempt->inputs, &input, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int story_fill_input(void *arg, const struct input *i, int fd, struct error *err)
{
	return ledger_fetch_input(((struct story *)arg)->ledger, i, fd, err);
}

/* What the submitter staged lies in the ledger: he may be gone. */
static int stage_job(struct story *s, uint64_t max, struct error *err)
{
	const struct inputs *in = &s->hooks->job->inputs;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->count; i++)
		if (!in->list[i].for_post)
			r = workspace_stage_content(&s->workspace, &in->list[i], max, s->place.uid,
						    s->place.gid, story_fill_input, s, &s->attempt->inputs,
						    err);
	return r;
}

static void on_copied(void *arg, uint64_t bytes)
{
	work_add(arg, bytes);
}

static void watch_staging(struct story *s)
{
	uint64_t total = 0;

	for (size_t i = 0; i < s->plan->n_stages; i++)
		total += s->plan->stages[i].size;
	if (!story_counts(s))
		return;
	work_begin(&s->work, "staging", total);
	s->workspace.copied = on_copied;
	s->workspace.copied_arg = &s->work;
}

/* Its private /tmp is reached by its path where nothing can be mounted; as root it belongs to another than what it lies in. */
static int open_scratch(struct story *s, struct error *err)
{
	const char *path = s->workspace.record.scratch;
	_cleanup_close_ int fd = -1;

	if (s->plan->strength != STRENGTH_LANDLOCK || s->place.uid == geteuid())
		return 0;
	fd = tree_open_directory(s->workspace.site->root_fd, strrchr(path, '/') + 1);
	if (fd < 0 || fchmod(fd, 0711) < 0)
		return error_system(err, fd < 0 ? -fd : errno, "cannot open '%s' to the analysis", path);
	return 0;
}

static int fill_workspace(struct story *s, struct error *err)
{
	uint64_t max = s->plan->limits.value[LIMIT_DISK];
	uid_t uid = s->place.uid;
	gid_t gid = s->place.gid;
	int r;

	if ((r = open_scratch(s, err)) < 0 || (s->step && (r = note_adopted(s, err)) < 0) ||
	    (s->hooks->job && (r = stage_job(s, max, err)) < 0))
		return r;
	watch_staging(s);
	for (size_t i = 0; i < s->plan->n_stages; i++)
		if ((r = workspace_stage(&s->workspace, &s->plan->stages[i], max, uid, gid,
					 &s->attempt->inputs, err)) < 0)
			return r;
	if ((r = queries_stage(&s->workspace, max, uid, gid, s->attempt, err)) < 0 ||
	    (r = flows_stage(&s->workspace, s->plan, s->step > 0, uid, gid, story_fill_input, s,
			     &s->attempt->inputs, err)) < 0)
		return r;
	return make_mount_points(s, err);
}

/* What somebody holds on this host lies there for him: a submission of the same name gets nothing of it. */
static int refuse_held(struct story *s, struct error *err)
{
	struct error none = ERROR_INIT;
	struct live live = {.log_fd = {-1, -1}};
	bool held;

	if (!s->rights.is_bound || hood_live(s->hood, s->plan->id, &live, &none) < 0)
		return 0;
	held = live.held && !live.kept; /* that one moves aside */
	live_done(&live);
	return held ? error_set(
			      err, ERROR_REFUSED,
			      "'%s' is not allowed for '%s': on this host somebody holds a workspace of that name",
			      s->plan->id, s->rights.owner)
		    : 0;
}

int story_workspace(struct story *s, struct error *err)
{
	struct recovery recovery = {.hood = s->hood};
	const struct cgroup_host *host;
	_cleanup_strv_ char **cgroups = NULL;
	struct site *site = NULL;
	int r;

	if ((r = hood_site(s->hood, &site, err)) < 0 || (r = refuse_held(s, err)) < 0 ||
	    (r = hood_cgroups(s->hood, &host, err)) < 0 ||
	    (r = cgroup_foresee(host, s->plan->token, &cgroups, err)) < 0)
		return r;
	story_tell(s, "workspace");
	r = place_take(&s->place, err);
	if (r < 0)
		return r;
	s->owner = s->place.uid;
	r = workspace_open(site, s->plan->id, s->plan->token, s->place.uid, s->place.gid, cgroups,
			   recover_workspace, &recovery, &s->workspace, err);
	if (r < 0)
		return ground_explain(site, s->hood->state_dir, r, err);
	s->has_workspace = true;
	if (!workspace_is_adopted(&s->workspace))
		box_begin_cgroup(&s->box, s->plan, host, s->hood->hand);
	if (workspace_is_adopted(&s->workspace) && s->rights.is_bound) /* held since we have looked */
		return error_set(err, ERROR_BUSY, "somebody holds the workspace of '%s'", s->plan->id);
	/* A run there is a step, which is not committed by itself; of the queue's each is. */
	if (workspace_is_adopted(&s->workspace) && s->hooks->job)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' is held as a workspace on this host: `fumehood run %s` runs in it, `fumehood workspace cleanup %s` "
			"ends it, and a queued analysis has one of its own",
			s->plan->id, s->plan->id, s->plan->id);
	pulse_open(&s->pulse, s->workspace.run_fd, &s->plan->limits);
	pulse_beat(&s->pulse, "staging", NULL);
	/* A worker's is cancelled in the queue. */
	if (!s->hooks->job && (r = s->stop_fd = stopper_make(s->workspace.run_fd, err)) < 0)
		return r;
	if ((workspace_is_adopted(&s->workspace) &&
	     (r = steps_begin(s->ledger, &s->workspace, &s->step, err)) < 0) ||
	    (r = story_plan_again(s, err)) < 0 ||
	    (r = queries_run(s->hood, s->ledger, s->request, s->workspace.run_fd, s->attempt, err)) < 0)
		return r;
	return s->plan->own_disk ? 0 : fill_workspace(s, err);
}

/* ---- box ---- */

static int note_begin(struct story *s, struct error *err)
{
	int r = s->step ? step_note_begin(&s->workspace, s->attempt, err) : 0;

	return r < 0 ? r : ended_reserve(&s->workspace, s->attempt, err);
}

/* On a disk of its own the inputs are known, and so is the room that its end will take, only when it is mounted. */
static int on_fill(void *arg, struct error *err)
{
	struct story *s = arg;
	int r = s->step ? step_move_in(&s->workspace, s->box.disk.host_workspace, s->place.uid, s->place.gid,
				       err)
			: 0;

	if (r < 0 || (r = fill_workspace(s, err)) < 0)
		return r;
	return note_begin(s, err);
}

/* A step is committed with the others, later. */
static void on_meanwhile(void *arg)
{
	const struct story *s = arg;

	if (!s->step && s->ledger)
		ledger_foresee_commit(s->ledger);
}

static void on_notice(void *arg, const struct notice *n)
{
	notices_on(&((struct story *)arg)->notices, n);
}

/* Of what lies outside only he hears who could look for himself. */
static void listen(struct story *s, struct box_order *order)
{
	s->notices.plan = s->plan;
	s->notices.denials = &s->attempt->denials;
	s->notices.looks_outside = !s->rights.is_bound || s->rights.has_user;
	s->notices.directory = s->rights.is_bound ? NULL : s->request->directory;
	order->listen = s->plan->explain ? FILTER_EXPLAIN : FILTER_TELL;
	order->on_notice = on_notice;
}

struct pty_job pty_of(const struct run_terminal *t)
{
	return (struct pty_job){.master = -1,
				.like_fd = t ? t->like_fd : -1,
				.window_fd = t ? t->window_fd : -1,
				.room_fd = t ? t->room_fd : -1};
}

int story_box(struct story *s, struct error *err)
{
	struct record *record = &s->workspace.record;
	const struct run_hooks *hooks = s->hooks;
	struct box_order order = {
		.plan = s->plan,
		.place = &s->place,
		.stock = s->hood->stock,
		.begun = &s->begun,
		.hand = s->hood->hand,
		.receipt = &s->attempt->receipt,
		.log_prefix = step_prefix(s->step, s->log_prefix),
		.cancel_fd = hooks->cancel_fd,
		.stop_fd = s->stop_fd,
		.stdin_fd = hooks->stdin_fd,
		.merge = hooks->merge,
		.pty = pty_of(hooks->terminal),
		.arg = s,
		.fill = on_fill,
		.meanwhile = on_meanwhile,
		.output = hooks->output ? story_on_output : NULL,
		.progress = story_on_progress,
		.progress_interval_ms =
			story_tells_progress(s) ? hooks->progress_interval_ms : PULSE_INTERVAL_MS,
	};
	int r;

	listen(s, &order);
	s->attempt->step = (int)s->step;
	if ((r = hood_cgroups(s->hood, &order.cgroups, err)) < 0 || (r = box_open(&s->box, &order, err)) < 0)
		return r;
	s->attempt->plan = plan_to_json(s->plan);
	free(record->ledger);
	record->ledger = ledger_url_redacted(s->hood->ledger_url);
	if (!s->attempt->plan || !record->ledger)
		return error_memory(err);
	r = note_extra(s, err);
	return r < 0 || s->plan->own_disk ? r : note_begin(s, err);
}
