/*
 * The story of one analysis, from top to bottom:
 *
 *   plan ─► workspace ─► limits ─► sandbox ─► supervise ─► collect ─► finished ─► commit ─► clean up
 *
 * Each stage is one function below, in this order; hood_run() at the end calls them. Whatever goes wrong before the
 * command has run ends the story with an error and nothing left behind. Once it has run there is a verdict: it is
 * written to disk before the commit, so that whoever comes after a crash (recover.c) can finish the story.
 */
#include "private.h"
#include "affinity.h"
#include "capture.h"
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "image.h"
#include "post.h"
#include "sandbox.h"
#include "supervise.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

struct story {
	struct hood *hood;
	const struct request *request;
	const struct run_hooks *hooks;
	struct plan plan, post_plan;
	bool has_post; /* a post-process */
	struct post_result post;
	struct ledger *ledger;
	struct workspace workspace;
	bool has_workspace;
	struct slot slot; /* as root: the uid of this analysis */
	uid_t uid;
	gid_t gid;
	struct cgroup *cgroup;
	struct affinity affinity;
	int out[STREAM_COUNT][2]; /* pipes */
	int log[STREAM_COUNT];
	int null;
	int in[2]; /* -i: the caller's stdin is poured through this pipe */
	/* A disk of its own: the workspace's descriptor then is a directory on it, and the host's is kept here. */
	int disk, host_workspace, loop;
	struct tree_size disk_empty;	   /* what it holds before anything is in it */
	bool disk_was_full, files_were_up; /* no byte, no file more */
	struct tree_size disk_most;	   /* in use, at the most that was seen */
	struct sandbox *sandbox;
	struct evidence evidence;
	struct attempt *attempt; /* what it all ends in */
	uint64_t started;
};

static void tell(const struct story *s, const char *stage)
{
	struct progress p = {.cpu_ms = -1, .memory_bytes = -1, .pids = -1, .disk_files = -1, .stage = stage};

	if (s->started)
		p.elapsed_ms = (int64_t)((clock_now() - s->started) / NSEC_PER_MSEC);
	if (s->hooks->progress && s->hooks->progress_interval_ms)
		s->hooks->progress(s->hooks->arg, &p);
}

/* ---- plan ---- */

/* What cannot be post-processed is refused now, not when it has run. */
static int plan_post(struct story *s, struct error *err)
{
	const char *directory = s->request->directory ? s->request->directory : s->hood->directory;
	const char *command =
		s->request->post_process ? s->request->post_process : s->hood->config.defaults.post_process;
	int r = post_plan(s->hood, command, directory, s->plan.id, s->plan.attempt, s->plan.scratch,
			  &s->post_plan, err);

	s->has_post = r == 1;
	return r < 0 ? r : 0;
}

/* Asked twice: for the plan, and again when the id is ours alone, since another run of it may have ended in between. */
static int next_attempt(struct story *s, struct error *err)
{
	struct analysis_state known;
	int r;

	if (!s->request->id)
		return 0;
	r = ledger_analysis(s->ledger, s->request->id, &known, err);
	if (r < 0)
		return r;
	if (known.succeeded && !s->request->again)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' has already succeeded: --again makes another attempt, `fumehood show %s` shows the last one",
			s->request->id, s->request->id);
	s->plan.attempt = s->post_plan.attempt = s->attempt->number = known.last_attempt + 1;
	if (plan_set_attempt(&s->plan) < 0 || (s->has_post && plan_set_attempt(&s->post_plan) < 0))
		return error_memory(err);
	return 0;
}

static int stage_plan(struct story *s, struct error *err)
{
	int r = hood_ledger(s->hood, LEDGER_CREATE, &s->ledger, err);

	if (r == 0 && s->request->id)
		r = id_check(s->request->id, err);
	if (r < 0)
		return r;
	s->plan.attempt = 1;
	r = next_attempt(s, err);
	if (r < 0)
		return r;
	r = plan_resolve(s->hood, s->request, &s->plan, err);
	if (r < 0)
		return r;
	r = plan_post(s, err);
	if (r == 0)
		r = queries_check(s->hood, s->request, err);
	if (r < 0)
		return r;
	snprintf(s->attempt->id, sizeof s->attempt->id, "%s", s->plan.id);
	memcpy(s->attempt->token, s->plan.token, sizeof s->plan.token);
	s->attempt->number = s->plan.attempt;
	for (size_t i = 0; s->plan.prefixes && s->plan.prefixes[i]; i++)
		if (receipt_add(&s->attempt->receipt, "interpreter", true, "'%s' is shown read-only",
				s->plan.prefixes[i]) < 0)
			return error_memory(err);
	s->attempt->request = request_to_json(s->request);
	s->attempt->workspace = strdup(s->plan.workspace);
	return s->attempt->request && s->attempt->workspace ? 0 : error_memory(err);
}

/* ---- workspace ---- */

/* What recovery needs to know if we die: enough to write down a lost attempt. */
static int note_extra(struct story *s, struct error *err)
{
	json_t *extra = json_pack("{s:i, s:I, s:I, s:O, s:O}", "attempt", s->plan.attempt, "created",
				  (json_int_t)s->attempt->created, "log_max",
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

static int fill_workspace(struct story *s, struct error *err)
{
	uint64_t max = s->plan.limits.value[LIMIT_DISK];
	int r = s->workspace.adopted ? note_adopted(s, err) : 0;

	for (size_t i = 0; r == 0 && i < s->plan.n_stages; i++)
		r = workspace_stage(&s->workspace, s->plan.stages[i].source, s->plan.stages[i].as, max,
				    s->uid, s->gid, &s->attempt->inputs, err);
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

static int stage_workspace(struct story *s, struct error *err)
{
	struct recovery recovery = {.hood = s->hood};
	struct site *site = NULL;
	int r = hood_site(s->hood, &site, err);

	tell(s, "workspace");
	s->uid = geteuid();
	s->gid = getegid();
	if (r == 0 && s->uid == 0) {
		r = slot_take(&s->slot, err);
		if (r == 0) {
			s->uid = s->slot.uid;
			s->gid = s->slot.gid;
		}
	}
	if (r == 0)
		r = workspace_open(site, s->plan.id, s->plan.token, s->uid, s->gid, recover_workspace,
				   &recovery, &s->workspace, err);
	if (r < 0)
		return r;
	s->has_workspace = true;
	r = next_attempt(s, err);
	if (r == 0)
		r = queries_run(s->hood, s->ledger, s->request, s->workspace.run_fd, s->attempt, err);
	if (r == 0)
		r = s->plan.own_disk ? prepare_disk(s, err) : fill_workspace(s, err);
	if (r == 0)
		r = note_workspace_identity(s, err);
	if (r == 0)
		r = open_logs(s, err);
	return r;
}

/* ---- limits ---- */

/* The record names the cgroups before they are made. */
static int note_cgroups(struct story *s, const struct cgroup_host *host, struct error *err)
{
	struct record *record = &s->workspace.record;

	strv_free(record->cgroups);
	record->cgroups = NULL;
	if (cgroup_foresee(host, s->plan.token, &record->cgroups, err) < 0)
		return -EINVAL;
	return strv_length(record->cgroups) ? workspace_save(&s->workspace, err) : 0;
}

/* CPU time is counted by the cgroup and by nobody else. */
static bool cpu_time_is_counted(const struct story *s)
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

	if (l->value[LIMIT_CPU_TIME] == LIMIT_NONE || cpu_time_is_counted(s))
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

static int stage_limits(struct story *s, struct error *err)
{
	struct record *record = &s->workspace.record;
	const struct cgroup_host *host;
	int r = hood_cgroups(s->hood, &host, err);

	if (r == 0)
		r = note_cgroups(s, host, err);
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
	strv_free(record->cgroups);
	record->cgroups = s->cgroup ? strv_copy(cgroup_paths(s->cgroup)) : NULL;
	free(record->ledger);
	record->ledger = strdup(s->hood->ledger_url);
	if ((s->cgroup && !record->cgroups) || !record->ledger)
		return error_memory(err);
	return note_extra(s, err);
}

/* ---- sandbox ---- */

/* PID 1 exists and waits: from now on a crash leaves somebody to be killed, so the record names it first. */
static int on_init(void *arg, const struct process_id *init, struct error *err)
{
	struct story *s = arg;
	int r;

	s->workspace.record.init = *init;
	r = workspace_save(&s->workspace, err);
	if (r == 0 && s->slot.fd >= 0)
		slot_bind(&s->slot, init);
	return r < 0 || !s->cgroup ? r : cgroup_adopt(s->cgroup, init->pid, err);
}

static void note_start(struct story *s)
{
	s->started = clock_now();
	s->attempt->started = clock_utc();
}

/* The disk of its own holds the limit; what is left to see is how full it is, and whether it ever was. */
static int disk_measure(struct story *s, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct statvfs st;

	if (fstatvfs(s->disk, &st) < 0)
		return -errno;
	*ret_bytes = (uint64_t)(st.f_blocks - st.f_bfree) * st.f_frsize - s->disk_empty.bytes;
	*ret_files = st.f_files - st.f_ffree - s->disk_empty.files;
	s->disk_was_full |= st.f_blocks && st.f_bavail == 0;
	s->files_were_up |= st.f_files && st.f_ffree == 0;
	return 0;
}

/* The analysis's own file system is mounted, in its namespace and nowhere else. Now the workspace is there. */
static int on_disk(void *arg, int fd, struct error *err)
{
	struct story *s = arg;
	int r;

	s->disk = fd;
	r = s->loop < 0 ? 0 : image_trim(fd, s->plan.limits.value[LIMIT_FILES], err);
	if (r < 0)
		return r;
	disk_measure(s, &s->disk_empty.bytes, &s->disk_empty.files);
	s->host_workspace = s->workspace.fd;
	s->workspace.fd = file_open_beneath(fd, "work", O_RDONLY | O_DIRECTORY, 0);
	if (s->workspace.fd < 0)
		return error_system(err, -s->workspace.fd, "cannot open the workspace on its own disk");
	r = fill_workspace(s, err);
	note_start(s); /* copying its files in took no time of the analysis's own */
	return r;
}

static int stage_sandbox(struct story *s, struct error *err)
{
	struct sandbox_hooks hooks = {.arg = s, .on_init = on_init, .on_disk = on_disk};
	struct sandbox_options o = {
		.host_uid = s->uid,
		.host_gid = s->gid,
		.stdio = {s->in[0] >= 0 ? s->in[0] : s->null, s->out[STREAM_STDOUT][1],
			  s->out[STREAM_STDERR][1]},
		.slot_fd = s->slot.fd,
	};
	int r;

	if (s->cgroup)
		o.n_join = cgroup_join_fds(s->cgroup, o.join_fds);
	if (s->affinity.count) {
		o.cpus = &s->affinity.cpus;
		o.n_cpus = sizeof s->affinity.cpus;
	}
	note_start(s);
	r = sandbox_start(&s->plan, &o, &hooks, &s->attempt->receipt, &s->sandbox, err);
	for (int i = 0; i < STREAM_COUNT; i++)
		s->out[i][1] = fd_close(s->out[i][1]);
	s->in[0] = fd_close(s->in[0]);
	return r;
}

/* ---- supervise ---- */

static int job_report(void *arg, struct supervise_report *ret)
{
	return report_read(((struct story *)arg)->sandbox, ret);
}

int report_read(struct sandbox *s, struct supervise_report *ret)
{
	struct sandbox_report r;
	int n = sandbox_read_report(s, &r);

	if (n == 1)
		*ret = (struct supervise_report){
			.deadline = r.deadline,
			.ended = r.ended,
			.status = r.status,
			.cpu_user_ns = (int64_t)(r.cpu_user_us * NSEC_PER_USEC),
			.cpu_system_ns = (int64_t)(r.cpu_system_us * NSEC_PER_USEC),
			.maxrss_bytes = (int64_t)(r.maxrss_kib * 1024),
		};
	return n;
}

static void job_terminate(void *arg)
{
	sandbox_terminate(((struct story *)arg)->sandbox);
}

static void job_kill(void *arg)
{
	sandbox_kill(((struct story *)arg)->sandbox);
}

static int job_disk_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	return disk_measure(arg, ret_bytes, ret_files);
}

static int job_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct story *s = arg;
	struct tree_size most = {s->plan.limits.value[LIMIT_DISK], s->plan.limits.value[LIMIT_FILES]},
			 workspace, scratch;
	_cleanup_close_ int fd = open(s->plan.scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = tree_measure(s->workspace.fd, &most, &workspace);

	if (r == 0 && fd >= 0)
		r = tree_measure(fd, &most, &scratch);
	else
		scratch = (struct tree_size){0};
	*ret_bytes = workspace.bytes + scratch.bytes;
	*ret_files = workspace.files + scratch.files;
	return r;
}

static void job_output(void *arg, int stream, const char *data, size_t size)
{
	struct story *s = arg;

	s->hooks->output(s->hooks->arg, stream, data, size);
}

static void job_progress(void *arg, const struct sample *now, int64_t files)
{
	struct story *s = arg;
	struct progress p = {
		.elapsed_ms = now->at_ms,
		.cpu_ms = now->cpu_ms,
		.memory_bytes = now->memory_bytes,
		.pids = now->pids,
		.disk_files = files,
		.stage = "running",
	};

	s->hooks->progress(s->hooks->arg, &p);
}

/* What the watch over plain directories can and cannot hold is part of the receipt. */
static int note_watched_limits(struct story *s)
{
	const struct limits *l = &s->plan.limits;
	char text[LIMIT_TEXT_SIZE], seen[LIMIT_TEXT_SIZE];
	int r = 0;

	if (l->value[LIMIT_WALL] != LIMIT_NONE)
		r = receipt_add(&s->attempt->receipt, "limit wall", true, "%s, kept by PID 1",
				limit_format(LIMIT_WALL, l->value[LIMIT_WALL], text));
	if (r == 0 && l->value[LIMIT_CPU_TIME] != LIMIT_NONE)
		r = receipt_add(&s->attempt->receipt, "limit cpu_time", cpu_time_is_counted(s), "%s, sampled",
				limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text));
	if (r == 0 && l->value[LIMIT_DISK] != LIMIT_NONE && !s->plan.own_disk)
		r = receipt_add(
			&s->attempt->receipt, "limit disk", true,
			"%s, watched: what is written between two looks (0.2 to 5 s apart) may exceed it, %s was seen",
			limit_format(LIMIT_DISK, l->value[LIMIT_DISK], text),
			limit_format(LIMIT_DISK, s->disk_most.bytes, seen));
	return r;
}

/* The command could not be executed: a verdict like any other, with a shell's exit status. */
static void not_executed(struct story *s)
{
	s->evidence = (struct evidence){
		.exec_errno = s->sandbox->exec_errno,
		.exit_code = -1,
		.oom_kills = -1,
		.pids_hits = -1,
		.disk_hits = -1,
	};
	pidfd_wait(s->sandbox->pidfd, -1);
}

static int stage_supervise(struct story *s, struct error *err)
{
	struct attempt *a = s->attempt;
	struct supervise_job job = {
		.pidfd = s->sandbox->pidfd,
		.report_fd = s->sandbox->report_fd,
		.out_fd = {s->out[STREAM_STDOUT][0], s->out[STREAM_STDERR][0]},
		.log_fd = {s->log[STREAM_STDOUT], s->log[STREAM_STDERR]},
		.cancel_fd = s->hooks->cancel_fd,
		.stdin_from = s->hooks->stdin_fd,
		.stdin_to = s->in[1],
		.limits = &s->plan.limits,
		.cgroup = s->cgroup,
		.started = s->started,
		.arg = s,
		.read_report = job_report,
		.terminate = job_terminate,
		.kill = job_kill,
		.measure = s->plan.own_disk ? job_disk_measure : job_measure,
		.disk_is_held = s->plan.own_disk,
		.output = s->hooks->output ? job_output : NULL,
		.progress = s->hooks->progress && s->hooks->progress_interval_ms ? job_progress : NULL,
		.progress_interval_ms = s->hooks->progress_interval_ms,
	};
	struct supervise_result result;
	int r;

	if (s->sandbox->exec_errno) {
		not_executed(s);
		r = 0;
	} else {
		tell(s, "running");
		s->in[1] = -1; /* supervise's own from here on */
		r = supervise(&job, &result, err);
		s->evidence = result.evidence;
		a->usage = result.usage;
		a->timeline = TAKE_PTR(result.timeline);
		memcpy(a->logs, result.logs, sizeof a->logs);
		s->disk_most = (struct tree_size){result.disk_bytes_seen, result.disk_files_seen};
	}
	a->ended = clock_utc();
	sandbox_reap(s->sandbox);
	if (r == 0 && note_watched_limits(s) < 0)
		r = error_memory(err);
	return r;
}

/* ---- collect ---- */

static int put_object(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err)
{
	struct story *s = arg;

	return ledger_put_object(s->ledger, fd, size, ret_sha256, err);
}

/* At the most that was seen, with a last look now that nothing moves any more. */
static void note_disk_use(struct story *s)
{
	struct tree_size *most = &s->disk_most;
	uint64_t bytes, files;

	if ((s->plan.own_disk ? job_disk_measure : job_measure)(s, &bytes, &files) < 0)
		return;
	if (s->plan.own_disk)
		s->evidence.disk_hits = s->disk_was_full || s->files_were_up;
	most->bytes = bytes > most->bytes ? bytes : most->bytes;
	most->files = files > most->files ? files : most->files;
	s->attempt->usage.disk_bytes = (int64_t)most->bytes;
	s->attempt->usage.disk_files = (int64_t)most->files;
}

static int stage_collect(struct story *s, struct error *err)
{
	const char *ours[3] = {0};
	int n_ours = 0;
	struct collect_rules rules = {
		.outputs = s->plan.outputs,
		.optional_outputs = s->plan.optional_outputs,
		.inputs = &s->attempt->inputs,
		.ignore = ours,
		.max_bytes = s->plan.limits.value[LIMIT_OUTPUT_MAX],
		.max_files = s->plan.limits.value[LIMIT_FILES],
		.object_min = ledger_blob_max(s->ledger),
		.owner = s->uid,
	};
	int r;

	if (s->plan.data)
		ours[n_ours++] = "data";
	if (s->plan.docs)
		ours[n_ours++] = "docs";
	tell(s, "collecting");
	note_disk_use(s);
	r = collect(s->workspace.fd, &rules, put_object, s, &s->attempt->manifest, err);
	s->evidence.output_missing = s->attempt->manifest.missing && s->attempt->manifest.missing[0];
	return r;
}

/* ---- post-process ---- */

static int copy_output(void *arg, const struct output *o, int to, struct error *err)
{
	struct story *s = arg;
	_cleanup_close_ int from = collect_open(s->workspace.fd, o, err);
	uint64_t left = o->size;

	if (from < 0)
		return from;
	while (left > 0) {
		ssize_t n = sendfile(to, from, NULL, left < INT_MAX ? (size_t)left : INT_MAX);

		if (n <= 0 && errno != EINTR)
			return error_system(err, n < 0 ? errno : EIO,
					    "cannot copy an output for the post-process");
		left -= n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

static int stage_post(struct story *s, struct error *err)
{
	struct attempt *a = s->attempt;
	struct post_job job = {
		.hood = s->hood,
		.plan = &s->post_plan,
		.workspace = &s->workspace,
		.slot = &s->slot,
		.uid = s->uid,
		.gid = s->gid,
		.attempt = a,
		.cancel_fd = s->hooks->cancel_fd,
		.fetch = copy_output,
		.arg = s,
	};
	int r;

	if (!s->has_post || verdict_decide(&s->evidence) != VERDICT_SUCCEEDED)
		return 0;
	tell(s, "post-processing");
	r = post_run(&job, &s->post, err);
	if (r < 0)
		return r;
	s->evidence.cancel_signal = s->post.cancel_signal;
	s->evidence.post_process_failed = s->post.reason != NULL;
	for (size_t i = 0; s->post.warnings && s->post.warnings[i]; i++)
		if (receipt_warn(&a->receipt, "post-process: %s", s->post.warnings[i]) < 0)
			return error_memory(err);
	a->post_log = s->post.log;
	s->post.log = (struct captured){0};
	if (s->post.rows)
		a->rows = (int64_t)spool_rows(s->post.rows);
	r = s->post.reason ? attempt_event(a, "post-process", "failed: %s", s->post.reason)
			   : attempt_event(a, "post-process", "%lld rows", (long long)a->rows);
	return r < 0 ? error_memory(err) : 0;
}

/* ---- finished ---- */

static int list_some(struct buffer *b, char *const *list, size_t most)
{
	char shown[128];
	int r = 0;

	for (size_t i = 0; r == 0 && list && list[i]; i++) {
		if (i == most)
			return buffer_puts(b, ", …");
		r = buffer_printf(b, "%s'%s'", i ? ", " : "",
				  text_escape_into(shown, sizeof shown, list[i], strlen(list[i])));
	}
	return r;
}

static int reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	int r = buffer_puts(b, "no output matches ");

	if (r == 0)
		r = list_some(b, m->missing, 5);
	if (r == 0)
		r = buffer_puts(b,
				m->present && m->present[0] ? "; there was " : "; there was no file at all");
	return r == 0 && m->present ? list_some(b, m->present, 8) : r;
}

/* Who was killed: the command itself, or others that it had started; the counter says how many in all. */
static int reason_memory(const struct story *s, struct buffer *b)
{
	char limit[LIMIT_TEXT_SIZE], peak[LIMIT_TEXT_SIZE], shown[128];
	const char *name = strrchr(s->plan.program, '/');
	const struct usage *u = &s->attempt->usage;
	bool itself = s->evidence.signal == SIGKILL;
	int64_t others = u->oom_kills - itself;
	int r;

	name = text_escape_into(shown, sizeof shown, name ? name + 1 : s->plan.program,
				strlen(name ? name + 1 : s->plan.program));
	limit_format(LIMIT_MEMORY, s->plan.limits.value[LIMIT_MEMORY], limit);
	if (u->memory_peak_bytes < 0)
		r = buffer_printf(b, "the limit is %s; ", limit);
	else
		r = buffer_printf(b, "it used %s of %s; ",
				  limit_format(LIMIT_MEMORY, (uint64_t)u->memory_peak_bytes, peak), limit);
	if (r == 0 && itself)
		r = buffer_printf(b, "the kernel killed '%s'", name);
	if (r == 0 && others > 0)
		r = buffer_printf(b, "%s%lld of its child processes", itself ? " and " : "the kernel killed ",
				  (long long)others);
	return r;
}

/* Bytes or files; where they were only watched, how much it came to. */
static int reason_disk(const struct story *s, struct buffer *b)
{
	const struct limits *l = &s->plan.limits;
	enum limit which =
		s->disk_was_full || s->disk_most.bytes > l->value[LIMIT_DISK] ? LIMIT_DISK : LIMIT_FILES;
	uint64_t used = which == LIMIT_DISK ? s->disk_most.bytes : s->disk_most.files;
	char limit[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];

	limit_format(which, l->value[which], limit);
	if (s->plan.own_disk)
		return buffer_printf(b, "the limit is %s%s, and it was full", limit,
				     which == LIMIT_FILES ? " files" : "");
	return buffer_printf(b, "the limit is %s%s; when it was stopped there were %s", limit,
			     which == LIMIT_FILES ? " files" : "", limit_format(which, used, most));
}

/* One line of evidence for people. */
static int reason(const struct story *s, struct buffer *b)
{
	const struct evidence *e = &s->evidence;
	const struct limits *l = &s->plan.limits;
	char text[LIMIT_TEXT_SIZE], shown[256];

	switch (s->attempt->verdict) {
	case VERDICT_FAILED:
		if (e->exec_errno)
			return buffer_printf(
				b, "cannot execute '%s': %s%s",
				text_escape_into(shown, sizeof shown, s->plan.program,
						 strlen(s->plan.program)),
				strerror(e->exec_errno),
				e->exec_errno == ENOENT
					? " (it, or the interpreter that it names, is not there; --ro shows more)"
					: "");
		return e->signal
			       ? buffer_printf(b, "ended by signal %d (%s)", e->signal, strsignal(e->signal))
			       : buffer_printf(b, "exit status %d", e->exit_code);
	case VERDICT_TIMED_OUT:
		return e->cpu_reached
			       ? buffer_printf(b, "cpu time: the limit is %s",
					       limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text))
			       : buffer_printf(b, "the limit is %s",
					       limit_format(LIMIT_WALL, l->value[LIMIT_WALL], text));
	case VERDICT_OUTPUT_MISSING:
		return reason_missing(s, b);
	case VERDICT_OUT_OF_MEMORY:
		return reason_memory(s, b);
	case VERDICT_OUT_OF_PROCESSES:
		return buffer_printf(
			b, "the limit is %s; starting processes or threads was refused (%lld times)",
			limit_format(LIMIT_PIDS, l->value[LIMIT_PIDS], text), (long long)e->pids_hits);
	case VERDICT_OUT_OF_DISK:
		return reason_disk(s, b);
	case VERDICT_POST_PROCESS_FAILED:
		return buffer_printf(b, "post-process: %s", s->post.reason);
	case VERDICT_CANCELLED:
		return buffer_printf(b, "by %s",
				     e->cancel_signal == SIGINT ? "Ctrl-C" : strsignal(e->cancel_signal));
	default:
		return 0;
	}
}

/* Objects that no transaction references yet are pinned first: a sweep must not take what the record promises. */
static int finish_save(struct story *s, bool sync, struct error *err)
{
	int r = ledger_pin(s->ledger, s->attempt, err);

	return r < 0 ? r : finished_save(&s->workspace, s->attempt, sync, err);
}

static int stage_finish(struct story *s, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct attempt *a = s->attempt;
	struct utsname host;

	a->verdict = verdict_decide(&s->evidence);
	a->status = verdict_exit_status(a->verdict, &s->evidence);
	a->exit_code = s->evidence.exit_code;
	a->signal = s->evidence.signal;
	uname(&host);
	a->host = strdup(host.nodename);
	if (!a->host || reason(s, &text) < 0)
		return error_memory(err);
	a->reason = text.size ? buffer_take(&text) : NULL;
	if (attempt_event(a, "finished", "%s%s%s", verdict_name(a->verdict), a->reason ? ": " : "",
			  a->reason ? a->reason : "") < 0)
		return error_memory(err);
	/* What lies on a disk that dies with us is not finished yet: save_outputs() makes it so if the commit fails. */
	return s->plan.own_disk ? 0 : finish_save(s, false, err);
}

/* ---- commit ---- */

/* The ledger cannot be reached, and the outputs lie on a file system that goes with us: into the object store with
 * them, so that the verdict on disk is a finished attempt. */
static int save_outputs(struct story *s, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && s->plan.own_disk && i < s->attempt->manifest.n_outputs; i++) {
		struct output *o = &s->attempt->manifest.outputs[i];
		_cleanup_close_ int fd = -1;

		if (o->is_object)
			continue;
		fd = collect_open(s->workspace.fd, o, err);
		r = fd < 0 ? fd : ledger_put_object(s->ledger, fd, o->size, o->sha256, err);
		o->is_object = r == 0;
	}
	return r;
}

static int stage_commit(struct story *s, struct error *err)
{
	int r;

	tell(s, "committing");
	r = attempt_commit(s->ledger, s->attempt, s->workspace.fd, s->post.rows, err);
	if (r == 0 && s->plan.into && s->attempt->verdict == VERDICT_SUCCEEDED)
		r = outputs_copy_into(s->ledger, s->attempt, s->plan.into, err);
	return r;
}

/* ---- clean up ---- */

static bool wants_keeping(const struct story *s)
{
	return s->plan.keep == KEEP_ALWAYS ||
	       (s->plan.keep == KEEP_ON_FAILURE && s->attempt->verdict != VERDICT_SUCCEEDED);
}

/* Nothing is alive any more. keep: the attempt has a verdict and the user wants to look at it; finished but not
 * committed: everything stays as it is, for gc. */
static int clean_up(struct story *s, bool has_verdict, struct error *err)
{
	bool keep = has_verdict && s->attempt->committed && wants_keeping(s), cgroup_left = false;
	int r = 0;

	tell(s, "cleaning up");
	if (has_verdict && !s->attempt->committed)
		r = save_outputs(s, err);
	if (s->host_workspace >= 0) {
		if (keep && r == 0)
			r = tree_copy(s->workspace.fd, s->host_workspace, err);
		fd_close(s->workspace.fd);
		s->workspace.fd = TAKE_FD(s->host_workspace);
	}
	s->disk = fd_close(s->disk);
	s->loop = fd_close(s->loop);
	sandbox_free(s->sandbox);
	s->sandbox = NULL;
	if (s->cgroup) {
		int e = cgroup_remove(TAKE_PTR(s->cgroup), r < 0 ? NULL : err);

		cgroup_left = e < 0;
		r = r < 0 ? r : e;
	}
	if (!has_verdict && s->ledger)
		ledger_unpin(s->ledger, s->attempt);
	for (int i = 0; i < STREAM_COUNT; i++) {
		s->out[i][0] = fd_close(s->out[i][0]);
		s->out[i][1] = fd_close(s->out[i][1]);
		s->log[i] = fd_close(s->log[i]);
	}
	s->null = fd_close(s->null);
	s->in[0] = fd_close(s->in[0]);
	s->in[1] = fd_close(s->in[1]);
	if (s->has_workspace) {
		int e = 0;

		if (has_verdict && !s->attempt->committed) {
			e = finish_save(s, true, err);
		} else if (cgroup_left) {
			/* Only the record names it: with all the rest it is left to gc, which tries again. */
		} else if (keep) {
			e = workspace_keep(&s->workspace, clock_utc() + (int64_t)s->hood->config.keep_for_ns,
					   err);
			s->attempt->kept = e == 0;
		} else if (!has_verdict && s->workspace.adopted) {
			e = workspace_give_back(&s->workspace, err);
		} else {
			e = workspace_remove(&s->workspace, err);
		}
		workspace_close(&s->workspace);
		s->has_workspace = false;
		r = r < 0 ? r : e;
	}
	slot_release(&s->slot);
	affinity_release(&s->affinity);
	return r;
}

/* ---- the story ---- */

static int to_the_start(struct story *s, struct error *err)
{
	int r;

	err->stage = "plan";
	r = stage_plan(s, err);
	if (r < 0)
		return r;
	err->stage = "workspace";
	r = stage_workspace(s, err);
	if (r < 0)
		return r;
	err->stage = "limits";
	r = stage_limits(s, err);
	if (r < 0)
		return r;
	err->stage = "sandbox";
	return stage_sandbox(s, err);
}

static int to_the_verdict(struct story *s, struct error *err)
{
	int r;

	err->stage = "supervise";
	r = stage_supervise(s, err);
	if (r < 0)
		return r;
	err->stage = "collect";
	r = stage_collect(s, err);
	if (r < 0)
		return r;
	err->stage = "post-process";
	r = stage_post(s, err);
	if (r < 0)
		return r;
	err->stage = "finish";
	return stage_finish(s, err);
}

static void story_init(struct story *s, struct hood *h, const struct request *r,
		       const struct run_hooks *hooks, struct attempt *ret)
{
	*s = (struct story){.hood = h,
			    .request = r,
			    .hooks = hooks,
			    .attempt = ret,
			    .null = -1,
			    .disk = -1,
			    .host_workspace = -1,
			    .loop = -1};
	plan_init(&s->plan);
	plan_init(&s->post_plan);
	s->slot.fd = s->in[0] = s->in[1] = -1;
	for (int i = 0; i < STREAM_COUNT; i++)
		s->out[i][0] = s->out[i][1] = s->log[i] = -1;
	ret->created = clock_utc();
	ret->exit_code = -1;
	ret->verdict = VERDICT_REFUSED;
	if (r->id)
		snprintf(ret->id, sizeof ret->id, "%s", r->id);
}

static void story_done(struct story *s)
{
	plan_done(&s->plan);
	plan_done(&s->post_plan);
	post_result_done(&s->post);
}

int hood_run(struct hood *h, const struct request *request, const struct run_hooks *hooks,
	     struct attempt *ret, struct error *err)
{
	struct error later = ERROR_INIT;
	struct story s;
	int r;

	attempt_init(ret);
	story_init(&s, h, request, hooks, ret);
	r = to_the_start(&s, err);
	if (r == 0)
		r = to_the_verdict(&s, err);
	if (r < 0) {
		/* Nothing is recorded: the caller hears why, and all that was made is unmade. */
		clean_up(&s, false, &later);
		ret->verdict = VERDICT_REFUSED;
		story_done(&s);
		return r;
	}
	err->stage = NULL;
	later.stage = "commit";
	if (stage_commit(&s, &later) < 0)
		attempt_set_error(ret, &later);
	later = (struct error){.stage = "clean up"};
	if (clean_up(&s, true, &later) < 0 && !ret->error_message)
		attempt_set_error(ret, &later);
	story_done(&s);
	return 0;
}
