#include "post_scene.h"
#include "capture.h"
#include "clock.h"
#include "file.h"
#include "sandbox.h"
#include "supervise.h"
#include "text.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* One post-process under way. */
struct post {
	const struct post_job *job;
	struct plan *plan;
	struct receipt receipt; /* its walls are those of the analysis; only that they stand matters here */
	struct cgroup *cgroup;
	struct sandbox *sandbox;
	struct spool *rows;
	int out[STREAM_COUNT][2];
	int log[STREAM_COUNT];
	int null;
	uint64_t started;
	struct supervise_result result;
	bool rows_failed;
};

void post_result_done(struct post_result *r)
{
	spool_free(r->rows);
	free(r->reason);
	strv_free(r->warnings);
	free(r->log.head);
	free(r->log.tail);
	*r = (struct post_result){0};
}

/* ---- plan ---- */

char *config_directory(const struct hood *h, const char *directory)
{
	return directory[0] == '/' ? strdup(directory) : path_join(h->directory, directory);
}

int post_plan(struct hood *h, const struct post_order *asked, struct plan *plan, struct error *err)
{
	const json_t *site = h->config.post_process, *tables = json_object_get(site, "tables");
	_cleanup_row_tables_ struct row_tables checked = {0};
	_cleanup_free_ char *from = NULL;
	struct post_order order = *asked;
	int r;

	if (!order.command)
		order.command = json_string_value(json_object_get(site, "command"));
	if (!order.command)
		return 0;
	from = !asked->command && h->config.post_process_directory
		       ? config_directory(h, h->config.post_process_directory)
		       : strdup(asked->directory);
	if (!from)
		return error_memory(err);
	order.directory = from;
	if (json_object_size(tables) == 0)
		return error_set(
			err, ERROR_REFUSED,
			"there is a post-process, but no table that it may fill: the configuration's post_process.tables "
			"names them");
	r = row_tables_read(&checked, tables, err);
	if (r == 0)
		r = plan_resolve_post(h, &order, plan, err);
	return r < 0 ? error_prefix(err, r, "post-process") : 1;
}

/* ---- run ---- */

static int open_streams(struct post *p, struct error *err)
{
	static const char *const names[] = {[STREAM_STDOUT] = "post-stdout", [STREAM_STDERR] = "post-stderr"};

	for (int i = 0; i < STREAM_COUNT; i++) {
		p->log[i] = openat(p->job->workspace->run_fd, names[i],
				   O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (p->log[i] < 0)
			return error_system(err, errno, "cannot create the log '%s'", names[i]);
		if (pipe2(p->out[i], O_CLOEXEC) < 0)
			return error_system(err, errno, "cannot make a pipe");
		fcntl(p->out[i][0], F_SETFL, O_NONBLOCK);
	}
	p->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return p->null < 0 ? error_system(err, errno, "cannot open '/dev/null'") : 0;
}

/* The record names its cgroups before they are made, beside those of the analysis. */
static int make_cgroup(struct post *p, struct error *err)
{
	struct record *record = &p->job->workspace->record;
	_cleanup_strv_ char **ours = NULL;
	const struct cgroup_host *host;
	int r = hood_cgroups(p->job->hood, &host, err);

	if (r == 0)
		r = cgroup_foresee(host, p->plan->token, &ours, err);
	for (size_t i = 0; r == 0 && ours && ours[i]; i++)
		if (strv_append(&record->cgroups, ours[i]) < 0)
			r = error_memory(err);
	if (r == 0)
		r = workspace_save(p->job->workspace, err);
	return r < 0 ? r
		     : cgroup_create(host, p->plan->token, &p->plan->limits, p->plan->allow_unlimited,
				     &p->receipt, &p->cgroup, err);
}

static int on_init(void *arg, const struct process_id *init, struct error *err)
{
	struct post *p = arg;
	int r;

	p->job->workspace->record.init = *init;
	r = workspace_save(p->job->workspace, err);
	if (r == 0 && p->job->slot->fd >= 0)
		slot_bind(p->job->slot, init);
	return r < 0 || !p->cgroup ? r : cgroup_adopt(p->cgroup, init->pid, err);
}

static int start(struct post *p, struct error *err)
{
	struct sandbox_hooks hooks = {.arg = p, .on_init = on_init};
	struct sandbox_options o = {
		.host_uid = p->job->uid,
		.host_gid = p->job->gid,
		.stdio = {p->null, p->out[STREAM_STDOUT][1], p->out[STREAM_STDERR][1]},
		.slot_fd = p->job->slot->fd,
	};
	int r;

	if (p->cgroup)
		o.n_join = cgroup_join_fds(p->cgroup, o.join_fds);
	p->started = clock_now();
	r = sandbox_start(p->plan, &o, &hooks, &p->receipt, &p->sandbox, err);
	for (int i = 0; i < STREAM_COUNT; i++)
		p->out[i][1] = fd_close(p->out[i][1]);
	return r;
}

static int job_report(void *arg, struct supervise_report *ret)
{
	return report_read(((struct post *)arg)->sandbox, ret);
}

static void job_terminate(void *arg)
{
	sandbox_terminate(((struct post *)arg)->sandbox);
}

static void job_kill(void *arg)
{
	sandbox_kill(((struct post *)arg)->sandbox);
}

static int job_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct post *p = arg;
	const char *name = strrchr(p->job->workspace->record.scratch, '/') + 1;
	struct tree_size size = {0};
	_cleanup_close_ int fd = tree_open_directory(p->job->workspace->site->root_fd, name);
	int r = fd < 0 ? fd : tree_measure(fd, NULL, &size);

	*ret_bytes = size.bytes;
	*ret_files = size.files;
	return r < 0 ? r : size.hidden ? 1 : size.lost ? -ESTALE : 0;
}

/* Rows as they come. The first bad line ends it: nothing that follows could be committed. */
static void job_output(void *arg, int stream, const char *data, size_t size)
{
	struct post *p = arg;

	if (stream != STREAM_STDOUT || p->rows_failed)
		return;
	if (!spool_feed(p->rows, data, size)) {
		p->rows_failed = true;
		sandbox_kill(p->sandbox);
	}
}

static int watch(struct post *p, struct error *err)
{
	struct supervise_job job = {
		.pidfd = p->sandbox->pidfd,
		.report_fd = p->sandbox->report_fd,
		.out_fd = {p->out[STREAM_STDOUT][0], p->out[STREAM_STDERR][0]},
		.log_fd = {p->log[STREAM_STDOUT], p->log[STREAM_STDERR]},
		.cancel_fd = p->job->cancel_fd,
		.stdin_from = -1,
		.stdin_to = -1,
		.limits = &p->plan->limits,
		.cgroup = p->cgroup,
		.started = p->started,
		.arg = p,
		.read_report = job_report,
		.terminate = job_terminate,
		.kill = job_kill,
		.measure = job_measure,
		.output = job_output,
	};
	int r;

	if (p->sandbox->exec_errno) {
		pidfd_wait(p->sandbox->pidfd, -1);
		r = 0;
	} else {
		r = supervise(&job, &p->result, err);
	}
	sandbox_reap(p->sandbox);
	return r;
}

/* ---- the end ---- */

/* The last line on stderr: what most programs say before they die. */
static int add_last_words(const struct captured *log, struct buffer *b)
{
	const char *text = log->tail_size ? log->tail : log->head;
	size_t size = log->tail_size ? log->tail_size : log->head_size, from;
	char shown[200];

	while (size && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	for (from = size; from && text[from - 1] != '\n';)
		from--;
	if (from == size)
		return 0;
	return buffer_printf(b, ": %s", text_escape_into(shown, sizeof shown, text + from, size - from));
}

static int explain_end(const struct post *p, struct buffer *b)
{
	const struct evidence *e = &p->result.evidence;
	const struct limits *l = &p->plan->limits;
	char text[LIMIT_TEXT_SIZE];
	int r;

	if (p->sandbox->exec_errno)
		return buffer_printf(b, "cannot execute '%s': %s", p->plan->command[0],
				     strerror(p->sandbox->exec_errno));
	if (p->rows_failed)
		return buffer_puts(b, spool_why(p->rows)->message);
	switch (verdict_decide(e)) {
	case VERDICT_SUCCEEDED:
		return 0;
	case VERDICT_TIMED_OUT:
		return buffer_printf(b, "it timed out, the limit is %s",
				     e->cpu_reached
					     ? limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text)
					     : limit_format(LIMIT_WALL, l->value[LIMIT_WALL], text));
	case VERDICT_OUT_OF_MEMORY:
		return buffer_printf(b, "it ran out of memory, the limit is %s",
				     limit_format(LIMIT_MEMORY, l->value[LIMIT_MEMORY], text));
	case VERDICT_OUT_OF_DISK:
		return buffer_puts(b, "it ran out of disk");
	case VERDICT_CANCELLED:
		return buffer_puts(b, "it was cancelled");
	default:
		r = e->signal ? buffer_printf(b, "it was ended by signal %d (%s)", e->signal,
					      strsignal(e->signal))
			      : buffer_printf(b, "exit status %d", e->exit_code);
		return r < 0 ? r : add_last_words(&p->result.logs[STREAM_STDERR], b);
	}
}

static int judge(struct post *p, struct post_result *ret, struct error *err)
{
	_cleanup_buffer_ struct buffer why = {0};

	if (!p->rows_failed && !p->sandbox->exec_errno &&
	    verdict_decide(&p->result.evidence) == VERDICT_SUCCEEDED)
		p->rows_failed = !spool_finish(p->rows);
	/* Not its fault: there was no room for its rows. */
	if (p->rows_failed && error_is_passing(spool_why(p->rows))) {
		*err = *spool_why(p->rows);
		return -EIO;
	}
	if (p->result.read_errno[STREAM_STDOUT])
		return error_system(err, p->result.read_errno[STREAM_STDOUT], "cannot read its rows");
	ret->cancel_signal = p->rows_failed ? 0 : p->result.evidence.cancel_signal;
	ret->warnings = TAKE_PTR(p->receipt.warnings);
	if (explain_end(p, &why) < 0)
		return error_memory(err);
	ret->log = p->result.logs[STREAM_STDERR];
	p->result.logs[STREAM_STDERR] = (struct captured){0};
	if (why.size)
		ret->reason = buffer_take(&why);
	else
		ret->rows = TAKE_PTR(p->rows);
	return 0;
}

static void post_done(struct post *p)
{
	sandbox_free(p->sandbox);
	if (p->cgroup)
		cgroup_remove(TAKE_PTR(p->cgroup), NULL);
	spool_free(p->rows);
	supervise_result_done(&p->result);
	receipt_done(&p->receipt);
	for (int i = 0; i < STREAM_COUNT; i++) {
		fd_close(p->out[i][0]);
		fd_close(p->out[i][1]);
		fd_close(p->log[i]);
	}
	fd_close(p->null);
}

static int whole(struct post *p, struct post_result *ret, struct error *err)
{
	const json_t *tables = json_object_get(p->job->hood->config.post_process, "tables");
	int r = post_scene_make(p->job, p->plan, err);

	if (r == 0)
		r = spool_make(p->job->workspace->run_fd, tables, p->plan->limits.value[LIMIT_OUTPUT_MAX],
			       &p->rows, err);
	if (r == 0)
		r = open_streams(p, err);
	if (r == 0)
		r = make_cgroup(p, err);
	if (r == 0)
		r = start(p, err);
	if (r == 0)
		r = watch(p, err);
	return r < 0 ? r : judge(p, ret, err);
}

int post_run(const struct post_job *job, struct post_result *ret, struct error *err)
{
	struct post p = {.job = job, .plan = job->plan, .null = -1};
	struct error why = ERROR_INIT;

	for (int i = 0; i < STREAM_COUNT; i++)
		p.out[i][0] = p.out[i][1] = p.log[i] = -1;
	*ret = (struct post_result){0};
	/* The analysis has succeeded: what cannot be done here costs its rows and not its outputs; what passes, not even
	 * those, if it is tried again. */
	if (whole(&p, ret, &why) < 0) {
		post_result_done(ret);
		ret->reason = strdup(why.message);
	}
	post_done(&p);
	if (ret->reason && error_is_passing(&why)) {
		post_result_done(ret);
		why.stage = err->stage;
		*err = why;
		return error_prefix(err, -EAGAIN, "the post-process could not be run");
	}
	return ret->rows || ret->reason ? 0 : error_memory(err);
}
