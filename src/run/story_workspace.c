/*
 * The story's workspace: made or adopted, filled with what is staged, limited.
 */
#include "story.h"
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* ---- workspace ---- */

/* What recovery needs to know if we die: enough to write down a lost attempt. */
static int note_extra(struct story *s, struct error *err)
{
	json_t *extra = json_pack("{s:i, s:b, s:I, s:I, s:O, s:O}", "attempt", s->plan.attempt, "queued",
				  s->attempt->queued, "created", (json_int_t)s->attempt->created, "log_max",
				  (json_int_t)s->plan.limits.value[LIMIT_LOG_MAX], "request",
				  s->attempt->request, "plan", s->attempt->plan);

	if (!extra)
		return error_memory(err);
	json_decref(s->workspace.record.extra);
	s->workspace.record.extra = extra;
	return 0;
}

static int open_logs(struct story *s, struct error *err)
{
	static const char *const names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

	for (int i = 0; i < STREAM_COUNT; i++) {
		s->log[i] = openat(s->workspace.run_fd, names[i],
				   O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->log[i] < 0)
			return error_system(err, errno, "cannot create the log '%s'", names[i]);
		if (pipe2(s->out[i], O_CLOEXEC) < 0)
			return error_system(err, errno, "cannot make a pipe");
		fcntl(s->out[i][0], F_SETFL, O_NONBLOCK);
	}
	if (s->plan.stdin_open && s->hooks->stdin_fd >= 0 && pipe2(s->in, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe");
	s->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return s->null < 0 ? error_system(err, errno, "cannot open '/dev/null'") : 0;
}

/* The mount points of data/ and docs/ in the working directory. */
static int make_mount_points(struct story *s, struct error *err)
{
	const char *names[] = {s->plan.data ? "data" : NULL, s->plan.docs ? "docs" : NULL};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!names[i])
			continue;
		if (mkdirat(s->workspace.fd, names[i], 0755) < 0 && errno != EEXIST)
			return error_system(err, errno, "cannot create '%s' in the workspace", names[i]);
		if (fstatat(s->workspace.fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return error_set(
				err, ERROR_REFUSED,
				"'%s' in the workspace must be a directory: it is where --%s appears",
				names[i], names[i]);
		if (geteuid() == 0 &&
		    fchownat(s->workspace.fd, names[i], s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0)
			return error_system(err, errno, "cannot give '%s' to the analysis", names[i]);
	}
	return 0;
}

/* The plan was made before these two existed: now the child can be told which ones they are. */
static int note_workspace_identity(struct story *s, struct error *err)
{
	for (size_t i = 0; i < s->plan.n_mounts; i++) {
		struct mount *m = &s->plan.mounts[i];
		struct stat st;

		if (m->kind != MOUNT_BIND || !m->writable)
			continue;
		if (strcmp(m->source, s->plan.workspace) == 0 ? fstat(s->workspace.fd, &st) < 0
							      : lstat(m->source, &st) < 0)
			return error_system(err, errno, "cannot look at '%s'", m->source);
		m->device = st.st_dev;
		m->inode = st.st_ino;
	}
	return 0;
}

/* In a workspace that was held, what lies there counts as staged: it is an output only if the analysis changes it. */
static int note_adopted(struct story *s, struct error *err)
{
	static const char *const none[] = {NULL};
	struct collect_rules everything = {
		.inputs = &s->attempt->inputs,
		.ignore = none,
		.max_bytes = UINT64_MAX,
		.max_files = UINT64_MAX,
		.object_min = UINT64_MAX,
		.owner = (uid_t)-1,
	};
	_cleanup_manifest_ struct manifest found = {0};
	int r = collect(s->workspace.fd, &everything, NULL, NULL, &found, err);

	for (size_t i = 0; r == 0 && i < found.n_outputs; i++) {
		const struct output *o = &found.outputs[i];
		struct input input = {.path = o->path, .source = o->path, .size = o->size, .mode = 0600};

		memcpy(input.sha256, o->sha256, sizeof input.sha256);
		if (inputs_add(&s->attempt->inputs, &input) < 0)
			r = error_memory(err);
	}
	return r;
}

int story_fill_input(void *arg, const struct input *i, int fd, struct error *err)
{
	struct story *s = arg;
	struct output content = {.path = i->path, .size = i->size};

	memcpy(content.sha256, i->sha256, sizeof content.sha256);
	return ledger_copy_output(s->ledger, &content, fd, err);
}

/* What the submitter staged lies in the ledger: he may be gone. */
static int stage_job(struct story *s, uint64_t max, struct error *err)
{
	const struct inputs *in = &s->hooks->job->inputs;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->count; i++)
		if (!in->list[i].for_post)
			r = workspace_stage_content(&s->workspace, &in->list[i], max, s->uid, s->gid,
						    story_fill_input, s, &s->attempt->inputs, err);
	return r;
}

int story_fill_workspace(struct story *s, struct error *err)
{
	uint64_t max = s->plan.limits.value[LIMIT_DISK];
	int r = s->workspace.adopted ? note_adopted(s, err) : 0;

	if (r == 0 && s->hooks->job)
		r = stage_job(s, max, err);
	for (size_t i = 0; r == 0 && i < s->plan.n_stages; i++)
		r = workspace_stage(&s->workspace, &s->plan.stages[i], max, s->uid, s->gid,
				    &s->attempt->inputs, err);
	if (r == 0)
		r = queries_stage(&s->workspace, max, s->uid, s->gid, s->attempt, err);
	return r < 0 ? r : make_mount_points(s, err);
}

/* A disk of exactly the size that was asked for: as root an image on a loop device, else a tmpfs. */
static int prepare_disk(struct story *s, struct error *err)
{
	const struct limits *l = &s->plan.limits;
	struct error why = ERROR_INIT;
	char device[32], text[LIMIT_TEXT_SIZE];
	struct mount *m = NULL;

	if (s->workspace.adopted)
		return error_set(
			err, ERROR_REFUSED,
			"a disk limit cannot be held in a workspace that was held before: leave out --disk and --files");
	for (size_t i = 0; i < s->plan.n_mounts; i++)
		if (s->plan.mounts[i].kind == MOUNT_DISK)
			m = &s->plan.mounts[i];
	limit_format(LIMIT_DISK, l->value[LIMIT_DISK], text);
	if (m && geteuid() == 0 && l->value[LIMIT_DISK] != LIMIT_NONE) {
		s->loop = image_open(s->workspace.site->root_fd, l->value[LIMIT_DISK], l->value[LIMIT_FILES],
				     device, &why);
		if (s->loop >= 0 && !(m->source = strdup(device)))
			return error_memory(err);
	}
	if (receipt_add(&s->attempt->receipt, "limit disk", true, "%s, %s", text,
			s->loop >= 0 ? "a disk image of its own" : "a tmpfs of its own, charged to memory") <
	    0)
		return error_memory(err);
	return 0;
}

/* What somebody holds on this host lies there for him: a submission of the same name gets nothing of it. */
static int refuse_held(struct story *s, struct error *err)
{
	struct error none = ERROR_INIT;
	struct live live = {.log_fd = {-1, -1}};
	bool held;

	if (!s->rights.is_bound || hood_live(s->hood, s->plan.id, &live, &none) < 0)
		return 0;
	held = live.held;
	live_done(&live);
	return held ? error_set(
			      err, ERROR_REFUSED,
			      "'%s' is not allowed for '%s': on this host somebody holds a workspace of that name",
			      s->plan.id, s->rights.owner)
		    : 0;
}

int story_workspace(struct story *s, struct error *err)
{
	struct recovery recovery = {.hood = s->hood};
	struct site *site = NULL;
	int r = hood_site(s->hood, &site, err);

	if (r == 0)
		r = refuse_held(s, err);
	story_tell(s, "workspace");
	s->uid = geteuid();
	s->gid = getegid();
	if (r == 0 && s->uid == 0) {
		r = slot_take(&s->slot, err);
		if (r == 0) {
			s->uid = s->slot.uid;
			s->gid = s->slot.gid;
		}
	}
	s->owner = s->uid;
	if (r == 0)
		r = workspace_open(site, s->plan.id, s->plan.token, s->uid, s->gid, recover_workspace,
				   &recovery, &s->workspace, err);
	if (r < 0)
		return r;
	s->has_workspace = true;
	if (s->workspace.adopted && s->rights.is_bound) /* held since we have looked */
		return error_set(err, ERROR_BUSY, "somebody holds the workspace of '%s'", s->plan.id);
	r = story_next_attempt(s, err);
	if (r == 0)
		r = queries_run(s->hood, s->ledger, s->request, s->workspace.run_fd, s->attempt, err);
	if (r == 0)
		r = s->plan.own_disk ? prepare_disk(s, err) : story_fill_workspace(s, err);
	if (r == 0)
		r = note_workspace_identity(s, err);
	if (r == 0)
		r = open_logs(s, err);
	return r;
}

/* ---- limits ---- */

/* After the first `kept` of the record, which are those that an earlier run left in an adopted workspace. */
static int record_set_cgroups(struct record *r, size_t kept, char *const *paths, struct error *err)
{
	for (size_t i = kept; r->cgroups && r->cgroups[i]; i++) {
		free(r->cgroups[i]);
		r->cgroups[i] = NULL;
	}
	for (size_t i = 0; paths[i]; i++)
		if (strv_append(&r->cgroups, paths[i]) < 0)
			return error_memory(err);
	return 0;
}

/* The record names the cgroups before they are made. */
static int note_cgroups(struct story *s, const struct cgroup_host *host, size_t kept, struct error *err)
{
	_cleanup_strv_ char **foreseen = NULL;
	int r = cgroup_foresee(host, s->plan.token, &foreseen, err);

	if (r < 0 || !foreseen[0])
		return r;
	r = record_set_cgroups(&s->workspace.record, kept, foreseen, err);
	return r < 0 ? r : workspace_save(&s->workspace, err);
}

/* CPU time is counted by the cgroup and by nobody else. */
bool story_counts_cpu_time(const struct story *s)
{
	struct cgroup_counters c;

	cgroup_sample(s->cgroup, &c);
	return c.cpu_ns >= 0;
}

static int check_cpu_time(struct story *s, const struct cgroup_host *host, struct error *err)
{
	const struct limits *l = &s->plan.limits;
	const char *why = host->why[0] ? host->why : "this host does not count it";
	char text[LIMIT_TEXT_SIZE];

	if (l->value[LIMIT_CPU_TIME] == LIMIT_NONE || story_counts_cpu_time(s))
		return 0;
	if (l->origin[LIMIT_CPU_TIME] == LIMIT_ASKED && !s->plan.allow_unlimited)
		return error_set(err, ERROR_REFUSED,
				 "the cpu_time limit of %s cannot be held: %s; or pass --allow-unlimited",
				 limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text), why);
	return receipt_warn(&s->attempt->receipt, "not limited: cpu_time: %s", why) < 0 ? error_memory(err)
											: 0;
}

static int take_cpus(struct story *s, struct error *err)
{
	uint64_t limit = s->plan.limits.value[LIMIT_CPUS];
	int r = limit == LIMIT_NONE ? 0 : affinity_take(s->workspace.site->state, limit, &s->affinity, err);

	if (r == 0 && s->affinity.count &&
	    receipt_add(&s->attempt->receipt, "cpu affinity", true, "%d of the CPUs, for it alone",
			s->affinity.count) < 0)
		r = error_memory(err);
	return r;
}

int story_limits(struct story *s, struct error *err)
{
	struct record *record = &s->workspace.record;
	size_t kept = strv_length(record->cgroups);
	const struct cgroup_host *host;
	int r = hood_cgroups(s->hood, &host, err);

	if (r == 0)
		r = note_cgroups(s, host, kept, err);
	if (r == 0)
		r = cgroup_create(host, s->plan.token, &s->plan.limits, s->plan.allow_unlimited,
				  &s->attempt->receipt, &s->cgroup, err);
	if (r == 0)
		r = check_cpu_time(s, host, err);
	if (r == 0)
		r = take_cpus(s, err);
	if (r < 0)
		return r;
	s->attempt->plan = plan_to_json(&s->plan);
	if (!s->attempt->plan)
		return error_memory(err);
	if (s->cgroup && record_set_cgroups(record, kept, cgroup_paths(s->cgroup), err) < 0)
		return -ENOMEM;
	free(record->ledger);
	record->ledger = ledger_url_redacted(s->hood->ledger_url);
	if (!record->ledger)
		return error_memory(err);
	r = note_extra(s, err);
	/* On a disk of its own the inputs are not known yet: on_disk() reserves. */
	return r < 0 || s->plan.own_disk ? r : ended_reserve(&s->workspace, s->attempt, err);
}
