#include "box.h"
#include "clock.h"
#include "hand.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

void box_init(struct box *b)
{
	*b = (struct box){.null = -1,
			  .disk = {.fd = -1, .loop = -1, .host_workspace = -1},
			  .in = {-1, -1},
			  .pty = {.master = -1}};
	for (int i = 0; i < STREAM_COUNT; i++)
		b->out[i][0] = b->out[i][1] = b->log[i] = -1;
	b->result = (struct supervise_result){.usage = USAGE_UNKNOWN};
}

/* ---- opened ---- */

static int open_streams(struct box *b, struct error *err)
{
	int run_fd = b->order.place->workspace->run_fd;

	for (int i = 0; i < STREAM_COUNT; i++) {
		char name[32];

		snprintf(name, sizeof name, "%s%s", b->order.log_prefix, stream_name(i));
		b->log[i] = file_open_own(run_fd, name, O_RDWR | O_TRUNC);
		if (b->log[i] < 0)
			return error_system(err, -b->log[i], "cannot create the log '%s'", name);
		if (b->order.plan->terminal)
			continue;
		if (pipe2(b->out[i], O_CLOEXEC) < 0)
			return error_system(err, errno, "cannot make a pipe");
		fcntl(b->out[i][0], F_SETFL, O_NONBLOCK);
	}
	if (b->order.plan->stdin_open && !b->order.plan->terminal && b->order.stdin_fd >= 0 &&
	    pipe2(b->in, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe");
	b->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return b->null < 0 ? error_system(err, errno, "cannot open '/dev/null'") : 0;
}

/* How many of the record's are of others who ran in this place before; all of them, unless the last ones are these. */
static size_t count_others(const struct record *r, char *const *paths)
{
	size_t all = strv_length(r->cgroups), n = strv_length(paths);

	if (n > all)
		return all;
	for (size_t i = 0; i < n; i++)
		if (strcmp(r->cgroups[all - n + i], paths[i]) != 0)
			return all;
	return all - n;
}

/* After the first `kept` of the record, which are those of others who ran in this place before. */
static int name_cgroups(struct record *r, size_t kept, char *const *paths, struct error *err)
{
	int e = 0;

	for (size_t i = kept; r->cgroups && r->cgroups[i]; i++) {
		free(r->cgroups[i]);
		r->cgroups[i] = NULL;
	}
	for (size_t i = 0; e == 0 && paths && paths[i]; i++)
		e = strv_append(&r->cgroups, paths[i], err);
	return e;
}

/* What it says of limits waits until the receipt is as far. */
struct cgroup_ahead {
	char name[TOKEN_SIZE];
	struct limits limits;
	bool allow_unlimited;
	const struct cgroup_host *host;
	struct hand *hand;
	struct cgroup *cgroup;
	struct receipt receipt;
	struct error error;
	int result;
};

static void create_ahead(void *arg)
{
	struct cgroup_ahead *a = arg;

	a->result = cgroup_create(a->host, a->name, &a->limits, a->allow_unlimited, &a->receipt, &a->cgroup,
				  &a->error);
}

void box_begin_cgroup(struct box *b, const struct plan *plan, const struct cgroup_host *cgroups,
		      struct hand *hand)
{
	if (!hand || !(b->ahead = calloc(1, sizeof *b->ahead)))
		return;
	*b->ahead = (struct cgroup_ahead){.limits = plan->limits,
					  .allow_unlimited = plan->allow_unlimited,
					  .host = cgroups,
					  .hand = hand,
					  .error = ERROR_INIT};
	memcpy(b->ahead->name, plan->token, sizeof b->ahead->name);
	hand_do(hand, create_ahead, b->ahead);
}

/* As cgroup_create. receipt and err NULL: nobody wants to know any more. */
static int end_cgroup_ahead(struct box *b, struct receipt *receipt, struct error *err)
{
	struct cgroup_ahead *a = TAKE_PTR(b->ahead);
	int r;

	hand_await(a->hand);
	r = a->result;
	b->cgroup = a->cgroup;
	if (receipt)
		receipt_extend(receipt, &a->receipt);
	if (err && r < 0) {
		a->error.stage = err->stage;
		*err = a->error;
	}
	receipt_done(&a->receipt);
	free(a);
	return r;
}

static int create_cgroup(struct box *b, struct error *err)
{
	const struct plan *plan = b->order.plan;

	if (b->ahead)
		return end_cgroup_ahead(b, b->order.receipt, err);
	return cgroup_create(b->order.cgroups, plan->token, &plan->limits, plan->allow_unlimited,
			     b->order.receipt, &b->cgroup, err);
}

/* The record names the cgroups before they are made, perhaps since its beginning; then those that were. */
static int make_cgroup(struct box *b, struct error *err)
{
	const struct plan *plan = b->order.plan;
	struct workspace *w = b->order.place->workspace;
	_cleanup_strv_ char **foreseen = NULL;
	size_t kept;
	int r = cgroup_foresee(b->order.cgroups, plan->token, &foreseen, err);

	if (r < 0)
		return r;
	kept = count_others(&w->record, foreseen);
	if ((kept + strv_length(foreseen) != strv_length(w->record.cgroups) &&
	     ((r = name_cgroups(&w->record, kept, foreseen, err)) < 0 || (r = workspace_save(w, err)) < 0)) ||
	    (r = create_cgroup(b, err)) < 0)
		return r;
	return name_cgroups(&w->record, kept, cgroup_paths(b->cgroup), err);
}

bool box_counts_cpu_time(const struct box *b)
{
	struct cgroup_counters c;

	cgroup_sample(b->cgroup, &c);
	return c.cpu_ns >= 0;
}

static int check_cpu_time(struct box *b, struct error *err)
{
	const struct plan *plan = b->order.plan;
	const struct limits *l = &plan->limits;
	const char *why = b->order.cgroups->why[0] ? b->order.cgroups->why : "this host does not count it";
	char text[LIMIT_TEXT_SIZE];

	if (l->value[LIMIT_CPU_TIME] == LIMIT_NONE || box_counts_cpu_time(b))
		return 0;
	if (l->origin[LIMIT_CPU_TIME] == LIMIT_ASKED && !plan->allow_unlimited)
		return error_set(err, ERROR_REFUSED,
				 "the cpu_time limit of %s cannot be held: %s; or pass --allow-unlimited",
				 limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text), why);
	receipt_warn(b->order.receipt, "not limited: cpu_time: %s", why);
	return 0;
}

static int take_cpus(struct box *b, struct error *err)
{
	uint64_t limit = b->order.plan->limits.value[LIMIT_CPUS];
	int state = b->order.place->workspace->site->state;
	int r = limit == LIMIT_NONE ? 0 : affinity_take(state, limit, &b->affinity, err);

	if (r < 0)
		return r;
	if (b->affinity.count)
		receipt_add(b->order.receipt, "cpu affinity", true, "%d of the CPUs, for it alone",
			    b->affinity.count);
	return 0;
}

int box_open(struct box *b, const struct box_order *order, struct error *err)
{
	int r;

	b->order = *order;
	if ((r = open_streams(b, err)) < 0 || (r = box_learn_mounts(b, err)) < 0)
		return r;
	if (order->plan->own_disk)
		box_make_disk(b);
	if ((r = make_cgroup(b, err)) < 0 || (r = check_cpu_time(b, err)) < 0 || (r = take_cpus(b, err)) < 0)
		return r;
	return receipt_check(order->receipt, err);
}

/* ---- started ---- */

static void note_start(struct box *b)
{
	b->started = clock_now();
	b->started_utc = clock_utc();
}

/* PID 1 exists and waits: from now on a crash leaves somebody to be killed, so the record names it first. */
static int on_init(void *arg, const struct process_id *init, struct error *err)
{
	const struct box *b = arg;
	struct place *place = b->order.place;
	int r;

	place->workspace->record.init = *init;
	r = workspace_save(place->workspace, err);
	if (r < 0)
		return r;
	if (place->slot.fd >= 0)
		slot_bind(&place->slot, init);
	return cgroup_adopt(b->cgroup, init->pid, err);
}

static void on_meanwhile(void *arg)
{
	const struct box_order *o = &((struct box *)arg)->order;

	if (o->meanwhile)
		o->meanwhile(o->arg);
}

/* The file system is mounted, in its namespace and nowhere else. */
static int on_disk(void *arg, int fd, struct error *err)
{
	struct box *b = arg;
	int r = box_enter_disk(b, fd, err);

	note_start(b); /* copying its files in took no time of its own */
	return r;
}

static void on_notice(void *arg, const struct notice *n)
{
	const struct box_order *o = &((struct box *)arg)->order;

	o->on_notice(o->arg, n);
}

/* Nobody has it open: it is made ready before the command sees it. */
static int on_terminal(void *arg, int fd, struct error *err)
{
	struct box *b = arg;

	b->pty = b->order.pty;
	b->pty.master = fd;
	/* What is typed has a descriptor of its own, which is closed when no more comes. */
	b->in[1] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (b->in[1] < 0)
		return error_system(err, errno, "cannot use the command's terminal");
	return pty_prepare(&b->pty, err);
}

/* What its end of a stream is until init has put a terminal there. */
static int stdio_of(const struct box *b, int stream)
{
	return b->out[stream][1] >= 0 ? b->out[stream][1] : b->null;
}

int box_start(struct box *b, struct error *err)
{
	const struct place *place = b->order.place;
	struct sandbox_hooks hooks = {.arg = b,
				      .on_init = on_init,
				      .meanwhile = on_meanwhile,
				      .on_disk = on_disk,
				      .on_notice = on_notice,
				      .on_terminal = on_terminal};
	struct sandbox_options o = {
		.host_uid = place->uid,
		.host_gid = place->gid,
		.stdio = {b->in[0] >= 0 ? b->in[0] : b->null, stdio_of(b, STREAM_STDOUT),
			  stdio_of(b, b->order.merge ? STREAM_STDOUT : STREAM_STDERR)},
		.slot_fd = place->slot.fd,
		.listen = b->order.on_notice ? b->order.listen : FILTER_SILENT,
		.stock = b->order.stock,
		.begun = b->order.begun,
		.hold_mounts = b->order.hand && !b->order.plan->own_disk,
		.facts = b->facts,
	};
	int r;

	o.n_join = cgroup_join_fds(b->cgroup, o.join_fds);
	if (b->affinity.count) {
		o.cpus = &b->affinity.cpus;
		o.n_cpus = sizeof b->affinity.cpus;
	}
	note_start(b);
	r = sandbox_start(b->order.plan, &o, &hooks, b->order.receipt, &b->sandbox, err);
	for (int i = 0; i < STREAM_COUNT; i++)
		b->out[i][1] = fd_close(b->out[i][1]);
	b->in[0] = fd_close(b->in[0]);
	return r;
}

/* ---- watched ---- */

static int job_report(void *arg, struct command_report *ret)
{
	return sandbox_read_report(((struct box *)arg)->sandbox, ret);
}

static int job_hear(void *arg)
{
	return sandbox_hear(((struct box *)arg)->sandbox, on_notice, arg);
}

static void job_terminate(void *arg)
{
	sandbox_terminate(((struct box *)arg)->sandbox);
}

static void job_kill(void *arg)
{
	box_kill(arg);
}

void box_kill(struct box *b)
{
	sandbox_kill(b->sandbox);
}

static void job_output(void *arg, int stream, const char *data, size_t size)
{
	const struct box_order *o = &((struct box *)arg)->order;

	o->output(o->arg, stream, data, size);
}

static void job_progress(void *arg, const struct sample *now, int64_t files)
{
	const struct box_order *o = &((struct box *)arg)->order;

	o->progress(o->arg, now, files);
}

/* Without anybody who types, the end is all that there is to read. */
static void watch_terminal(const struct box *b, struct supervise_job *job)
{
	job->pty = &b->pty;
	job->out_fd[STREAM_STDOUT] = b->pty.master;
	if (job->stdin_from < 0)
		job->stdin_from = b->null;
}

static int watch(struct box *b, struct error *err)
{
	const struct box_order *o = &b->order;
	struct supervise_job job = {
		.pidfd = b->sandbox->pidfd,
		.report_fd = b->sandbox->report_fd,
		.listener_fd = b->sandbox->listener_fd,
		.out_fd = {b->out[STREAM_STDOUT][0], b->out[STREAM_STDERR][0]},
		.log_fd = {b->log[STREAM_STDOUT], b->log[STREAM_STDERR]},
		.cancel_fd = {o->cancel_fd, o->stop_fd},
		.stdin_from = o->stdin_fd,
		.stdin_to = TAKE_FD(b->in[1]), /* supervise's own from here on */
		.limits = &o->plan->limits,
		.cgroup = b->cgroup,
		.started = b->started,
		.arg = b,
		.read_report = job_report,
		.hear = job_hear,
		.terminate = job_terminate,
		.kill = job_kill,
		.measure = box_measure,
		.disk_is_held = o->plan->own_disk,
		.output = o->output ? job_output : NULL,
		.progress = o->progress ? job_progress : NULL,
		.progress_interval_ms = o->progress_interval_ms,
	};
	int r;

	if (b->pty.master >= 0)
		watch_terminal(b, &job);
	r = supervise(&job, &b->result, err);
	b->use.most =
		(struct tree_size){.bytes = b->result.disk_bytes_seen, .files = b->result.disk_files_seen};
	b->use.was_hidden = b->result.disk_was_hidden;
	tree_look_free(TAKE_PTR(b->look));
	return r;
}

/* The command could not be executed: a verdict like any other, with a shell's exit status. */
static void not_executed(struct box *b)
{
	b->result.evidence = (struct evidence){
		.exec_errno = b->sandbox->exec_errno,
		.exit_code = -1,
		.oom_kills = -1,
		.pids_hits = -1,
		.disk_hits = -1,
	};
	pidfd_wait(b->sandbox->pidfd, -1);
}

int box_watch(struct box *b, struct error *err)
{
	int r = 0;

	if (b->sandbox->exec_errno)
		not_executed(b);
	else
		r = watch(b, err);
	sandbox_reap(b->sandbox);
	/* Init has ended all of it, unless somebody has killed init. */
	if (b->sandbox->bare)
		cgroup_empty(b->cgroup);
	box_measure_last(b);
	return r;
}

/* ---- closed ---- */

static void retire(void *arg)
{
	struct box *b = arg;

	b->sandbox->mounts_fd = fd_close(b->sandbox->mounts_fd);
	if (b->cgroup)
		cgroup_remove(TAKE_PTR(b->cgroup), NULL);
}

void box_retire(struct box *b)
{
	if (b->order.hand)
		hand_do(b->order.hand, retire, b);
}

void box_close(struct box *b)
{
	struct error ignored = ERROR_INIT;

	if (b->ahead)
		(void)end_cgroup_ahead(b, NULL, NULL);
	hand_await(b->order.hand);
	(void)box_leave_disk(b, false, &ignored);
	sandbox_free(TAKE_PTR(b->sandbox));
	if (b->cgroup)
		cgroup_remove(TAKE_PTR(b->cgroup), NULL);
	for (int i = 0; i < STREAM_COUNT; i++) {
		b->out[i][0] = fd_close(b->out[i][0]);
		b->out[i][1] = fd_close(b->out[i][1]);
		b->log[i] = fd_close(b->log[i]);
	}
	b->null = fd_close(b->null);
	b->pty.master = fd_close(b->pty.master);
	b->in[0] = fd_close(b->in[0]);
	b->in[1] = fd_close(b->in[1]);
	affinity_release(&b->affinity);
	tree_look_free(TAKE_PTR(b->look));
	free(TAKE_PTR(b->facts));
	supervise_result_done(&b->result);
}
