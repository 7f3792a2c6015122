/*
 * What becomes of an attempt whose command is dead: written down, committed. Shared by the story and by
 * recovery, which takes it up where a crash ended the story.
 */
#include "private.h"
#include "attempt_stream.h"
#include "capture.h"
#include "collect.h"
#include "file.h"
#include "spool.h"
#include "steps.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { TEXT_CHUNK = 64 * 1024 };

int ledger_fetch_output(void *arg, const struct output *o, int fd, struct error *err)
{
	return ledger_copy_output(arg, o, fd, err);
}

int ledger_fetch_input(void *arg, const struct input *i, int fd, struct error *err)
{
	struct output content = {.path = i->path, .size = i->size};
	int r;

	memcpy(content.sha256, i->sha256, sizeof content.sha256);
	r = ledger_copy_output(arg, &content, fd, err);
	/* What is wrong with the content, or with what is said of it, stays wrong: nobody tries it again. */
	if (r < 0 && err->is_damaged)
		err->kind = ERROR_REFUSED;
	return r;
}

int ledger_take_object(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err)
{
	return ledger_put_object(arg, fd, size, ret_sha256, err);
}

static int open_content(void *arg, const struct output *o, struct error *err)
{
	return collect_open(*(int *)arg, o, err);
}

/* The analysis has succeeded, its outputs are good; its rows are not. */
static int rows_refused(struct attempt *a, struct error *err)
{
	int r;

	attempt_event(a, "post-process", "failed: %s", err->message);
	attempt_conclude(a, VERDICT_POST_PROCESS_FAILED, "post-process: %s", err->message);
	r = attempt_check(a, err);
	if (r < 0)
		return r;
	a->rows = -1;
	return 0;
}

/* What is an object lies in the store already. */
static uint64_t bytes_to_commit(const struct attempt *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		sum += a->manifest.outputs[i].is_object ? 0 : a->manifest.outputs[i].size;
	return sum;
}

int attempt_commit(struct ledger *l, struct attempt *a, int workspace_fd, struct spool *rows,
		   struct error *err)
{
	struct row_source row_source;
	int number = a->number, r;

	if (rows)
		row_source = spool_source(rows);
	work_begin(ledger_work(l), "committing", bytes_to_commit(a));
	r = ledger_commit_rows(l, a, open_content, &workspace_fd, rows ? &row_source : NULL, &number, err);
	/* Nothing was committed. Without its rows, in a transaction of its own, the attempt is. */
	if (r < 0 && err->kind == ERROR_BAD_ROW) {
		r = rows_refused(a, err);
		if (r < 0)
			return r;
		*err = (struct error){.stage = err->stage};
		r = ledger_commit(l, a, open_content, &workspace_fd, &number, err);
	}
	if (r < 0)
		return r;
	a->number = number;
	a->committed = true;
	return 0;
}

/* Text for a file, some of it still in memory. */
struct text_out {
	int fd;
	struct buffer text;
	int failed;
};

static int text_flush(struct text_out *t)
{
	t->failed = file_write_all(t->fd, t->text.data, t->text.size);
	t->text.size = 0;
	return t->failed;
}

static int text_put(const char *text, size_t size, void *arg)
{
	struct text_out *t = arg;

	if (buffer_append(&t->text, text, size) < 0)
		t->failed = -ENOMEM;
	else if (t->text.size >= TEXT_CHUNK)
		text_flush(t);
	return t->failed < 0 ? -1 : 0;
}

static int text_write(int fd, const struct attempt *a, int write(const struct attempt *, struct text_out *))
{
	struct text_out t = {.fd = fd};
	int r = write(a, &t);

	if (r == 0)
		r = text_flush(&t);
	else if (r != -EFBIG)
		r = t.failed ? t.failed : -ENOMEM;
	buffer_free(&t.text);
	return r;
}

static int write_lines(const struct attempt *a, struct text_out *t)
{
	return attempt_write_lines(a, text_put, t);
}

static int fill_finished(void *arg, int fd)
{
	return text_write(fd, arg, write_lines);
}

static int write_manifest(const struct attempt *a, struct text_out *t)
{
	return attempt_write_manifest(a, JSON_INDENT(1), text_put, t);
}

int manifest_write(const struct attempt *a, int fd)
{
	return text_write(fd, a, write_manifest);
}

bool attempt_wants_keeping(const struct attempt *a)
{
	const char *keep = json_string_value(json_object_get(a->plan, "keep"));

	return keep && (strcmp(keep, keep_name(KEEP_ALWAYS)) == 0 ||
			(strcmp(keep, keep_name(KEEP_ON_FAILURE)) == 0 && a->verdict != VERDICT_SUCCEEDED));
}

int attempt_save(struct workspace *w, const char *name, const struct attempt *a, bool sync, struct error *err)
{
	return file_replace_with(w->run_fd, name, fill_finished, (void *)a, 0600, sync, err);
}

int finished_save(struct workspace *w, const struct attempt *a, bool sync, struct error *err)
{
	return attempt_save(w, FINISHED_NAME, a, sync, err);
}

/* The logs lie beside the record as they were captured. */
static int load_logs(struct workspace *w, size_t step, struct captured logs[STREAM_COUNT], struct error *err)
{
	uint64_t log_max = limit_table[LIMIT_LOG_MAX].built_in;
	char name[LOG_NAME_SIZE];

	for (int i = 0; i < STREAM_COUNT; i++) {
		_cleanup_close_ int fd =
			file_open_beneath(w->run_fd, run_log_name(step, i, name), O_RDONLY, 0);
		struct captured *log = &logs[i];
		int r;

		if (fd < 0 && errno != ENOENT)
			return error_system(err, errno, "cannot open what analysis '%s' wrote", w->record.id);
		if (fd < 0) {
			*log = (struct captured){.omitted = log->head_size + log->tail_size + log->omitted};
			continue;
		}
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

int attempt_load_logs(struct workspace *w, size_t step, struct attempt *a, struct error *err)
{
	return load_logs(w, step, a->logs, err);
}

static int damaged(struct error *err, const char *name, const char *why)
{
	return error_damaged(err, error_set(err, ERROR_SYSTEM,
					    "the finished attempt's record '%s' is damaged: %s", name, why));
}

static int take_line(struct attempt *a, struct attempt_lines *lines, const char *name, const char *text,
		     size_t size, struct error *err)
{
	struct error why = ERROR_INIT;

	if (attempt_read_line(a, lines, text, size, &why) == 0)
		return 0;
	return why.errnum == ENOMEM ? error_memory(err) : damaged(err, name, why.message);
}

/* Takes the whole lines out of b. */
static int take_lines(struct attempt *a, struct attempt_lines *lines, const char *name, struct buffer *b,
		      size_t from, struct error *err)
{
	const char *end;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (end = memchr(b->data + from, '\n', b->size - from))) {
		r = take_line(a, lines, name, b->data + at, (size_t)(end - b->data) - at, err);
		at = from = (size_t)(end - b->data) + 1;
	}
	memmove(b->data, b->data + at, b->size - at);
	b->size -= at;
	return r;
}

/* Each line by itself, however many there are. */
static int read_lines(int fd, const char *name, struct attempt *a, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	struct attempt_lines lines = {0};
	ssize_t n = 1;
	int r = 0;

	while (r == 0 && n > 0) {
		size_t before = b.size;

		if (b.size > (lines.head ? ATTEMPT_LINE_MAX : ATTEMPT_HEAD_MAX))
			return damaged(err, name, "a line of it is too long");
		if (buffer_reserve(&b, TEXT_CHUNK) < 0)
			return error_memory(err);
		do
			n = read(fd, b.data + b.size, TEXT_CHUNK);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return error_system(err, errno, "cannot read '%s'", name);
		b.size += (size_t)n;
		r = take_lines(a, &lines, name, &b, before, err);
	}
	if (r < 0)
		return r;
	return b.size || !attempt_lines_are_whole(&lines) ? damaged(err, name, "its end is missing") : 0;
}

int attempt_read(struct workspace *w, const char *name, struct attempt *a, struct error *err)
{
	_cleanup_close_ int fd = file_open_beneath(w->run_fd, name, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_system(err, errno, "cannot open '%s'", name);
	r = read_lines(fd, name, a, err);
	if (r < 0)
		attempt_done(a);
	return r < 0 ? r : 1;
}

int finished_load(struct workspace *w, struct attempt *a, struct error *err)
{
	int r = attempt_read(w, FINISHED_NAME, a, err);

	if (r <= 0)
		return r;
	r = a->n_steps ? 0 : attempt_load_logs(w, 0, a, err);
	for (size_t i = 0; i < a->n_steps && r == 0; i++)
		r = load_logs(w, i + 1, a->steps[i].logs, err);
	if (r < 0)
		attempt_done(a);
	return r < 0 ? r : 1;
}
