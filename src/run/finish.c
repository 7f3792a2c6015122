/*
 * What becomes of an attempt whose command is dead: written down, committed. Shared by the story and by
 * recovery, which takes it up where a crash ended the story.
 */
#include "private.h"
#include "capture.h"
#include "collect.h"
#include "file.h"
#include "spool.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char finished_name[] = "finished.json";
enum { FINISHED_MAX = 256 * 1024 * 1024 };

static int attempt_content_open(void *arg, const struct output *o, struct error *err)
{
	const struct content_source *source = arg;

	return collect_open(source->workspace_fd, o, err);
}

/* The analysis has succeeded, its outputs are good; its rows are not. */
static int rows_refused(struct attempt *a, const struct error *why)
{
	_cleanup_free_ char *reason = NULL;

	if (asprintf(&reason, "post-process: %s", why->message) < 0 ||
	    attempt_event(a, "post-process", "failed: %s", why->message) < 0)
		return -ENOMEM;
	free(a->reason);
	a->reason = TAKE_PTR(reason);
	a->verdict = VERDICT_POST_PROCESS_FAILED;
	a->status = verdict_exit_status(a->verdict, NULL);
	a->rows = -1;
	return 0;
}

int attempt_commit(struct ledger *l, struct attempt *a, int workspace_fd, struct spool *rows,
		   struct error *err)
{
	struct content_source source = {workspace_fd};
	struct row_source row_source;
	int number = a->number, r;

	if (rows)
		row_source = spool_source(rows);
	r = ledger_commit_rows(l, a, attempt_content_open, &source, rows ? &row_source : NULL, &number, err);
	/* Nothing was committed. Without its rows, in a transaction of its own, the attempt is. */
	if (r == -EBADMSG) {
		if (rows_refused(a, err) < 0)
			return error_memory(err);
		*err = (struct error){.stage = err->stage};
		r = ledger_commit(l, a, attempt_content_open, &source, &number, err);
	}
	if (r < 0)
		return r;
	a->number = number;
	a->committed = true;
	return 0;
}

int finished_save(struct workspace *w, const struct attempt *a, bool sync, struct error *err)
{
	json_t *json = attempt_to_json(a);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	if (!text)
		return error_memory(err);
	return file_replace(w->run_fd, finished_name, text, strlen(text), 0600, sync, err);
}

/* The logs lie beside the record as they were captured. */
static int logs_load(struct workspace *w, struct attempt *a, uint64_t log_max, struct error *err)
{
	static const char *const names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

	for (int i = 0; i < STREAM_COUNT; i++) {
		_cleanup_close_ int fd = openat(w->run_fd, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		struct captured *log = &a->logs[i];
		int r;

		if (fd < 0)
			continue;
		if (log->head_size || log->tail_size) {
			struct capture c = {.fd = fd, .head = log->head_size, .tail = log->tail_size};

			/* Sizes are known from the record: the total tells where the ring begins. */
			c.total = log->head_size + log->tail_size + log->omitted;
			if (log->tail_size == 0)
				c.tail = 0;
			r = capture_finish(&c, log, err);
		} else {
			r = capture_recover(fd, log_max, log, err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int finished_load(struct workspace *w, struct attempt *a, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	json_error_t where;
	json_t *json;
	int r;

	if (faccessat(w->run_fd, finished_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = file_load(w->run_fd, finished_name, FINISHED_MAX, &text, err);
	if (r < 0)
		return r;
	json = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &where);
	if (!json)
		return error_set(err, ERROR_SYSTEM, "the finished attempt's record '%s' is damaged: %s",
				 finished_name, where.text);
	r = attempt_from_json(a, json, err);
	json_decref(json);
	if (r == 0)
		r = logs_load(w, a, limit_table[LIMIT_LOG_MAX].built_in, err);
	return r < 0 ? r : 1;
}
