/*
 * The story while the command runs: the walls are raised, it is started, and watched to its end.
 */
#include "story.h"
#include "clock.h"
#include "file.h"
#include "image.h"
#include "sandbox.h"
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

static const uint64_t LOOK_SLICE_NS = 10 * NSEC_PER_MSEC;

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
	r = story_fill_workspace(s, err);
	if (r == 0)
		r = ended_reserve(&s->workspace, s->attempt, err);
	note_start(s); /* copying its files in took no time of the analysis's own */
	return r;
}

int story_sandbox(struct story *s, struct error *err)
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

/* The workspace and the private /tmp, which the analysis may have locked: neither is out of our sight for that. */
static int look_begin(struct story *s)
{
	const struct limits *l = &s->plan.limits;
	struct tree_size most = {.bytes = l->value[LIMIT_DISK], .files = l->value[LIMIT_FILES]};
	const char *name = strrchr(s->plan.scratch, '/') + 1;
	_cleanup_close_ int scratch = tree_open_directory(s->workspace.site->root_fd, name);
	_cleanup_close_ int tmp = scratch < 0 ? scratch : tree_open_directory(scratch, SCRATCH_TMP);

	if (tmp < 0 && tmp != -ENOENT)
		return tmp;
	return tree_look_open((const int[]){s->workspace.fd, tmp}, 2, &most, &s->look);
}

/* A slice of a look, so that whoever cancels is heard in between. */
static int look_on(struct story *s, uint64_t until, struct tree_size *ret)
{
	int r = s->look ? 0 : look_begin(s);

	if (r == 0)
		r = tree_look_on(s->look, until, ret);
	if (r == 1)
		return -EINPROGRESS;
	tree_look_free(s->look);
	s->look = NULL;
	return r;
}

static int job_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct tree_size size = {0};
	int r = look_on(arg, clock_now() + LOOK_SLICE_NS, &size);

	*ret_bytes = size.bytes;
	*ret_files = size.files;
	return r < 0 ? r : size.hidden ? 1 : size.lost ? -ESTALE : 0;
}

static void pass_on(const struct story *s, int stream, const char *data, size_t size)
{
	if (size)
		s->hooks->output(s->hooks->arg, stream, data, size);
}

/* Where the caller's copy of a stream ends, so that he does not take it for the whole. */
static void pass_on_end(const struct story *s, int stream, bool in_line)
{
	char note[400], text[LIMIT_TEXT_SIZE];
	int n = snprintf(
		note, sizeof note,
		"%s[fumehood: %s is longer than log_max, %s: its head and tail are kept, see fumehood logs %s]\n",
		in_line ? "\n" : "", stream == STREAM_STDOUT ? "stdout" : "stderr",
		limit_format(LIMIT_LOG_MAX, s->plan.limits.value[LIMIT_LOG_MAX], text), s->plan.id);

	pass_on(s, stream, note, (size_t)n);
}

/* Whoever captures what we pass on has no other bound. */
static void job_output(void *arg, int stream, const char *data, size_t size)
{
	struct story *s = arg;
	uint64_t max = s->plan.limits.value[LIMIT_LOG_MAX], left = max - s->passed_on[stream];

	if (s->passed_end[stream])
		return;
	if (size <= left) {
		pass_on(s, stream, data, size);
		s->passed_on[stream] += size;
		s->in_line[stream] = data[size - 1] != '\n';
		return;
	}
	pass_on(s, stream, data, (size_t)left);
	pass_on_end(s, stream, left ? data[left - 1] != '\n' : s->in_line[stream]);
	s->passed_end[stream] = true;
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
		r = receipt_add(&s->attempt->receipt, "limit cpu_time", story_counts_cpu_time(s),
				"%s, sampled", limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text));
	if (r == 0 && l->value[LIMIT_DISK] != LIMIT_NONE && !s->plan.own_disk)
		r = receipt_add(
			&s->attempt->receipt, "limit disk", true,
			"%s, watched: what is written between two looks (0.2 to 5 s apart) may exceed it, files without a name are not seen; "
			"%s was seen",
			limit_format(LIMIT_DISK, l->value[LIMIT_DISK], text),
			limit_format(LIMIT_DISK, s->disk_most.bytes, seen));
	return r;
}

static void note_logs(struct story *s, const int errnums[STREAM_COUNT])
{
	static const char *const names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

	for (int i = 0; i < STREAM_COUNT; i++)
		if (errnums[i])
			(void)receipt_warn(&s->attempt->receipt, "the log of %s is not whole: %s", names[i],
					   strerror(errnums[i]));
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

int story_supervise(struct story *s, struct error *err)
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
		story_tell(s, "running");
		s->in[1] = -1; /* supervise's own from here on */
		r = supervise(&job, &result, err);
		s->evidence = result.evidence;
		a->usage = result.usage;
		a->timeline = TAKE_PTR(result.timeline);
		memcpy(a->logs, result.logs, sizeof a->logs);
		note_logs(s, result.log_errno);
		s->disk_most =
			(struct tree_size){.bytes = result.disk_bytes_seen, .files = result.disk_files_seen};
		s->disk_was_hidden = result.disk_was_hidden;
		tree_look_free(s->look);
		s->look = NULL;
	}
	a->ended = clock_utc();
	sandbox_reap(s->sandbox);
	/* It has run: nothing of it is given up for a line in its receipt. */
	if (r == 0)
		(void)note_watched_limits(s);
	return r;
}

/* At the most that was seen, with a last look now that nothing moves any more. */
void story_note_disk_use(struct story *s)
{
	struct tree_size *most = &s->disk_most, now = {0};

	if ((s->plan.own_disk ? disk_measure(s, &now.bytes, &now.files) : look_on(s, UINT64_MAX, &now)) < 0)
		return;
	if (s->plan.own_disk)
		s->evidence.disk_hits = s->disk_was_full || s->files_were_up;
	most->bytes = now.bytes > most->bytes ? now.bytes : most->bytes;
	most->files = now.files > most->files ? now.files : most->files;
	s->attempt->usage.disk_bytes = (int64_t)most->bytes;
	s->attempt->usage.disk_files = (int64_t)most->files;
}
