#include "post_scene.h"
#include "box.h"
#include "file.h"
#include "reason.h"
#include "text.h"

#include <errno.h>
#include <string.h>

/* One post-process under way. */
struct post {
	const struct post_job *job;
	struct box box;
	struct receipt receipt; /* its walls are those of the analysis; only that they stand matters here */
	struct spool *rows;
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

int post_plan(struct hood *h, const struct post_order *asked, struct plan *plan, struct error *err)
{
	const json_t *site = h->config.post_process, *tables = json_object_get(site, "tables");
	_cleanup_row_tables_ struct row_tables checked = {0};
	_cleanup_free_ char *from = NULL;
	struct post_order order = *asked;
	const char *beside;
	int r;

	if (!order.command)
		order.command = json_string_value(json_object_get(site, "command"));
	if (!order.command)
		return 0;
	beside = asked->is_sites  ? h->config.queue_allow_directory
		 : asked->command ? NULL
				  : h->config.post_process_directory;
	from = beside ? path_from(h->directory, beside) : strdup(asked->directory);
	if (!from)
		return error_memory(err);
	order.directory = from;
	if (json_object_size(tables) == 0)
		return error_set(
			err, ERROR_REFUSED,
			"there is a post-process, but no table that it may fill: the configuration's post_process.tables "
			"names them");
	if ((r = row_tables_read(&checked, tables, err)) < 0 ||
	    (r = plan_resolve_post(h, &order, plan, err)) < 0)
		return error_prefix(err, r, "post-process");
	return 1;
}

/* ---- run ---- */

/* Rows as they come. The first bad line ends it: nothing that follows could be committed. */
static void on_output(void *arg, int stream, const char *data, size_t size)
{
	struct post *p = arg;

	if (stream != STREAM_STDOUT || p->rows_failed)
		return;
	if (!spool_feed(p->rows, data, size)) {
		p->rows_failed = true;
		box_kill(&p->box);
	}
}

static int run_box(struct post *p, struct error *err)
{
	struct box_order order = {
		.plan = p->job->plan,
		.place = p->job->place,
		.stock = p->job->hood->stock,
		.receipt = &p->receipt,
		.log_prefix = "post-",
		.cancel_fd = p->job->cancel_fd,
		.stop_fd = p->job->stop_fd,
		.stdin_fd = -1,
		.arg = p,
		.output = on_output,
	};
	int r;

	if ((r = hood_cgroups(p->job->hood, &order.cgroups, err)) < 0 ||
	    (r = box_open(&p->box, &order, err)) < 0 || (r = box_start(&p->box, err)) < 0)
		return r;
	return box_watch(&p->box, err);
}

/* ---- the end ---- */

/* The last line on stderr: what most programs say before they die. */
static void add_last_words(const struct captured *log, struct buffer *b)
{
	const char *text = log->tail_size ? log->tail : log->head;
	size_t size = log->tail_size ? log->tail_size : log->head_size, from;
	char shown[200];

	while (size && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	for (from = size; from && text[from - 1] != '\n';)
		from--;
	if (from < size)
		buffer_printf(b, ": %s", text_escape_into(shown, sizeof shown, text + from, size - from));
}

static void explain_end(const struct post *p, struct buffer *b)
{
	static const char *const what[] = {
		[VERDICT_TIMED_OUT] = "it timed out: ",
		[VERDICT_OUT_OF_MEMORY] = "it ran out of memory: ",
		[VERDICT_OUT_OF_DISK] = "it ran out of disk: ",
		[VERDICT_OUT_OF_PROCESSES] = "it ran out of processes: ",
		[VERDICT_CANCELLED] = "it was cancelled ",
	};
	const struct supervise_result *result = &p->box.result;
	enum verdict verdict = verdict_decide(&result->evidence);
	struct end end = {
		.plan = p->job->plan,
		.evidence = &result->evidence,
		.usage = &result->usage,
		.disk = &p->box.use,
		.workspace = -1,
		.maximum = &p->job->hood->config.maximum,
	};

	if (p->rows_failed) {
		buffer_puts(b, spool_why(p->rows)->message);
		return;
	}
	if ((size_t)verdict < ARRAY_SIZE(what) && what[verdict])
		buffer_puts(b, what[verdict]);
	end_reason(&end, b);
	if (verdict == VERDICT_FAILED && !result->evidence.exec_errno)
		add_last_words(&result->logs[STREAM_STDERR], b);
}

static int judge(struct post *p, struct post_result *ret, struct error *err)
{
	struct supervise_result *result = &p->box.result;
	_cleanup_buffer_ struct buffer why = {0};

	if (!p->rows_failed && verdict_decide(&result->evidence) == VERDICT_SUCCEEDED)
		p->rows_failed = !spool_finish(p->rows);
	/* Not its fault: there was no room for its rows. */
	if (p->rows_failed && error_is_passing(spool_why(p->rows))) {
		*err = *spool_why(p->rows);
		return -EIO;
	}
	if (result->read_errno[STREAM_STDOUT])
		return error_system(err, result->read_errno[STREAM_STDOUT], "cannot read its rows");
	ret->cancel_signal = p->rows_failed ? 0 : result->evidence.cancel_signal;
	ret->warnings = TAKE_PTR(p->receipt.warnings);
	explain_end(p, &why);
	if (buffer_check(&why, err) < 0)
		return -ENOMEM;
	ret->log = result->logs[STREAM_STDERR];
	result->logs[STREAM_STDERR] = (struct captured){0};
	if (why.size)
		ret->reason = buffer_take(&why);
	else
		ret->rows = TAKE_PTR(p->rows);
	return 0;
}

static int whole(struct post *p, struct post_result *ret, struct error *err)
{
	const struct post_job *job = p->job;
	const json_t *tables = json_object_get(job->hood->config.post_process, "tables");
	int r = post_scene_make(job, err);

	if (r < 0)
		return r;
	r = spool_make(job->place->workspace->run_fd, tables, job->plan->limits.value[LIMIT_OUTPUT_MAX],
		       &p->rows, err);
	if (r < 0)
		return r;
	r = run_box(p, err);
	return r < 0 ? r : judge(p, ret, err);
}

int post_run(const struct post_job *job, struct post_result *ret, struct error *err)
{
	struct post p = {.job = job};
	struct error why = ERROR_INIT;

	box_init(&p.box);
	*ret = (struct post_result){0};
	/* The analysis has succeeded: what cannot be done here costs its rows and not its outputs; what passes, not even
	 * those, if it is tried again. */
	if (whole(&p, ret, &why) < 0) {
		post_result_done(ret);
		ret->reason = strdup(why.message);
	}
	box_close(&p.box);
	spool_free(p.rows);
	receipt_done(&p.receipt);
	if (ret->reason && error_is_passing(&why)) {
		post_result_done(ret);
		why.stage = err->stage;
		*err = why;
		return error_prefix(err, -EAGAIN, "the post-process could not be run");
	}
	return ret->rows || ret->reason ? 0 : error_memory(err);
}
