#include "ended.h"
#include "buffer.h"
#include "clock.h"
#include "file.h"
#include "rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Usage, timeline, evidence, what the receipt still gets; and the second line, which is always so long. */
enum { LEARNED_ROOM = 64 * 1024, PENDING_ROOM = 8 * 1024, ENDED_MAX = 256 * 1024 * 1024, MESSAGE_MAX = 1000 };

void ended_init(struct ended *e)
{
	*e = (struct ended){0};
	attempt_init(&e->attempt);
}

void ended_done(struct ended *e)
{
	attempt_done(&e->attempt);
	inputs_done(&e->stored);
	json_decref(e->whose);
}

void pending_done(struct pending *p)
{
	free(p->stage);
	free(p->code);
	free(p->message);
	*p = (struct pending){0};
}

/* ---- written ---- */

static int take_room(int fd, off_t size)
{
	static const char zeros[4096];
	int r;

	do
		r = fallocate(fd, 0, 0, size);
	while (r < 0 && errno == EINTR);
	if (r == 0 || errno != EOPNOTSUPP)
		return r < 0 ? -errno : 0;
	for (off_t at = 0; r == 0 && at < size; at += (off_t)sizeof zeros)
		r = file_write_all(fd, zeros, sizeof zeros);
	return r;
}

int ended_reserve(struct workspace *w, const struct attempt *a, struct error *err)
{
	json_t *json = attempt_to_json(a);
	size_t known = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
	_cleanup_close_ int fd = -1;
	int r;

	json_decref(json);
	if (known == 0)
		return error_memory(err);
	fd = file_open_own(w->run_fd, ENDED_ROOM, O_WRONLY | O_TRUNC);
	r = fd < 0 ? fd : take_room(fd, 2 * (off_t)known + LEARNED_ROOM + PENDING_ROOM);
	return r < 0 ? error_system(err, -r, "cannot reserve room for the end of analysis '%s'", a->id) : 0;
}

static json_t *ended_to_json(const struct attempt *a, const struct ended *e)
{
	json_t *attempt = attempt_to_json(a), *evidence = evidence_to_json(&e->evidence),
	       *stored = inputs_to_json(&e->stored);

	if (!attempt || !evidence || !stored) {
		json_decref(attempt);
		json_decref(evidence);
		json_decref(stored);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:I, s:b, s:b, s:b, s:b, s:I, s:I, s:b, s:b, s:O?, s:o}", "attempt",
			 attempt, "evidence", evidence, "uid", (json_int_t)e->uid, "own_disk", e->own_disk,
			 "disk_was_full", e->disk.was_full, "files_were_up", e->disk.files_were_up,
			 "disk_was_hidden", e->disk.was_hidden, "disk_bytes", (json_int_t)e->disk.most.bytes,
			 "disk_files", (json_int_t)e->disk.most.files, "post", e->has_post, "deferred",
			 e->deferred, RECORD_WHOSE, e->whose, "stored", stored);
}

/* Into the room that was taken, which then gets its name: the line appears whole, or not at all. */
int ended_save(struct workspace *w, const struct attempt *a, const struct ended *e, struct error *err)
{
	json_t *json = ended_to_json(a, e);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	_cleanup_close_ int fd = -1;
	size_t size;
	int r;

	json_decref(json);
	if (!text)
		return error_memory(err);
	size = strlen(text);
	text[size] = '\n'; /* in place of its 0: the length is known */
	fd = file_open_own(w->run_fd, ENDED_ROOM, O_WRONLY);
	r = fd < 0 ? fd : file_write_at(fd, text, size + 1, 0);
	if (r == 0 && renameat(w->run_fd, ENDED_ROOM, w->run_fd, ENDED_NAME) < 0)
		r = -errno;
	return r < 0 ? error_system(err, -r, "cannot write down how analysis '%s' ended", a->id) : 0;
}

static json_t *pending_to_json(const struct pending *p)
{
	char message[MESSAGE_MAX];

	snprintf(message, sizeof message, "%s", p->message ? p->message : "");
	return json_pack("{s:s?, s:s?, s:s, s:I, s:b, s:i, s:I}", "stage", p->stage, "code", p->code,
			 "message", message, "since", (json_int_t)p->since, "copied", p->copied, "holder",
			 (int)p->holder.pid, "holder_start", (json_int_t)p->holder.start);
}

/* Where the first line ends; 0: it does not. */
static int first_line(int fd, struct buffer *text, size_t *ret_size)
{
	int r = file_read_all(fd, text, ENDED_MAX);
	const char *end = r == 0 && text->data ? memchr(text->data, '\n', text->size) : NULL;

	*ret_size = end ? (size_t)(end - text->data) : 0;
	return r;
}

int ended_set_pending(struct workspace *w, const struct pending *p, struct error *err)
{
	_cleanup_close_ int fd = openat(w->run_fd, ENDED_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_buffer_ struct buffer text = {0};
	json_t *json = pending_to_json(p);
	char line[PENDING_ROOM];
	size_t size = json ? json_dumpb(json, line, sizeof line, JSON_COMPACT | JSON_ENSURE_ASCII) : 0,
	       at = 0;
	int r;

	json_decref(json);
	if (size == 0)
		return error_memory(err);
	if (size >= sizeof line)
		return error_set(err, ERROR_SYSTEM, "cannot write down why analysis '%s' is pending",
				 w->record.id);
	memset(line + size, ' ', sizeof line - size);
	line[sizeof line - 1] = '\n';
	r = fd < 0 ? -errno : first_line(fd, &text, &at);
	if (r == 0 && (r = at == 0 ? -EINVAL : file_write_at(fd, line, sizeof line, (off_t)at + 1)) == 0 &&
	    (fsync(fd) < 0 || fsync(w->run_fd) < 0))
		r = -errno;
	return r < 0 ? error_system(err, -r, "cannot write down why analysis '%s' is pending", w->record.id)
		     : 0;
}

/* ---- read ---- */

/* One of the two lines; 1, 0: it is not there or not whole. */
static int line_load(int run_fd, int number, json_t **ret, struct error *err)
{
	_cleanup_close_ int fd =
		openat(run_fd, ENDED_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_buffer_ struct buffer text = {0};
	const char *line, *end;
	size_t size;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : error_system(err, errno, "cannot open '%s'", ENDED_NAME);
	r = first_line(fd, &text, &size);
	if (r < 0)
		return error_system(err, -r, "cannot read '%s'", ENDED_NAME);
	if (size == 0)
		return 0;
	line = number == 1 ? text.data : text.data + size + 1;
	end = memchr(line, '\n', text.size - (size_t)(line - text.data));
	if (!end)
		return 0;
	*ret = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 1 : 0;
}

bool ended_exists(int run_fd)
{
	return faccessat(run_fd, ENDED_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int copy_text(const json_t *json, const char *key, char **ret, struct error *err)
{
	return text_set(ret, json_string_value(json_object_get(json, key)), err);
}

static int ended_from_json(struct ended *e, const json_t *json, struct error *err)
{
	json_int_t uid = json_integer_value(json_object_get(json, "uid"));
	int r;

	if ((r = attempt_from_json(&e->attempt, json_object_get(json, "attempt"), err)) < 0 ||
	    (r = evidence_from_json(&e->evidence, json_object_get(json, "evidence"), err)) < 0)
		return r;
	if (uid < 0 || uid >= UINT32_MAX)
		return error_set(err, ERROR_SYSTEM, "cannot read how an attempt ended: its uid is not one");
	e->uid = (uid_t)uid;
	e->own_disk = json_is_true(json_object_get(json, "own_disk"));
	e->disk.was_full = json_is_true(json_object_get(json, "disk_was_full"));
	e->disk.files_were_up = json_is_true(json_object_get(json, "files_were_up"));
	e->disk.was_hidden = json_is_true(json_object_get(json, "disk_was_hidden"));
	e->disk.most.bytes = (uint64_t)json_integer_value(json_object_get(json, "disk_bytes"));
	e->disk.most.files = (uint64_t)json_integer_value(json_object_get(json, "disk_files"));
	e->has_post = json_is_true(json_object_get(json, "post"));
	e->deferred = json_is_true(json_object_get(json, "deferred"));
	e->whose = json_incref(json_object_get(json, RECORD_WHOSE));
	return inputs_from_json(&e->stored, json_object_get(json, "stored"), err);
}

int ended_load(int run_fd, struct ended *ret, struct error *err)
{
	json_t *json = NULL;
	int r = line_load(run_fd, 1, &json, err);

	if (r <= 0)
		return r;
	r = ended_from_json(ret, json, err);
	json_decref(json);
	return r < 0 ? r : 1;
}

int pending_load(int run_fd, struct pending *ret, struct error *err)
{
	struct pending p = {0};
	json_t *json = NULL;
	json_int_t pid;
	int r = line_load(run_fd, 2, &json, err);

	if (r <= 0)
		return r;
	pid = json_integer_value(json_object_get(json, "holder"));
	p.since = json_integer_value(json_object_get(json, "since"));
	p.copied = json_is_true(json_object_get(json, "copied"));
	p.holder.pid = pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
	p.holder.start = (uint64_t)json_integer_value(json_object_get(json, "holder_start"));
	if ((r = copy_text(json, "stage", &p.stage, err)) < 0 ||
	    (r = copy_text(json, "code", &p.code, err)) < 0 ||
	    (r = copy_text(json, "message", &p.message, err)) < 0)
		pending_done(&p);
	else
		*ret = p;
	json_decref(json);
	return r < 0 ? r : 1;
}
