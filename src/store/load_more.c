/*
 * Reading what is large, and only when asked for: all attempts, logs, contents.
 */
#include "store_id.h"

#include <stdio.h>
#include <string.h>

#include "file.h"
#include "member.h"
#include "text.h"

static json_t *time_to_json(const struct value *v)
{
	char text[CLOCK_TEXT_SIZE];

	if (v->kind != VALUE_INTEGER)
		return json_null();
	clock_format(v->integer, text);
	return json_string(text);
}

static json_t *integer_to_json(const struct value *v)
{
	return v->kind == VALUE_INTEGER ? json_integer(v->integer) : json_null();
}

static int attempts_row(void *arg, const struct value *row, struct error *err UNUSED)
{
	json_t *object = json_pack(
		"{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "attempt", integer_to_json(&row[0]), "verdict",
		row[1].kind == VALUE_TEXT ? row[1].data : "none", "exit_code", integer_to_json(&row[2]),
		"signal", integer_to_json(&row[3]), "status", integer_to_json(&row[4]), "created",
		time_to_json(&row[5]), "started", time_to_json(&row[6]), "ended", time_to_json(&row[7]));

	json_push(arg, object);
	return 0;
}

int ledger_attempts(struct ledger *l, const char *id, json_t **ret, struct error *err)
{
	struct value key = value_text(id);
	json_auto_t *array = json_array();

	if (ledger_run(l, SQL_ATTEMPTS, &key, 1, attempts_row, &array, err) < 0)
		return -1;
	*ret = json_incref(array);
	return array ? 0 : error_memory(err);
}

static int log_row(void *arg, const struct value *row, struct error *err)
{
	struct captured *log = arg;

	log->omitted = (uint64_t)value_to_integer(&row[2], 0);
	if (value_to_bytes(&row[0], &log->head, &log->head_size, err) < 0)
		return -1;
	return value_to_bytes(&row[1], &log->tail, &log->tail_size, err);
}

int ledger_load_step_log(struct ledger *l, const struct attempt *a, size_t step, int stream,
			 struct captured *ret, struct error *err)
{
	char name[STREAM_TEXT_SIZE];
	struct value key[] = {
		value_text(a->id),
		value_integer(a->number),
		value_text(stream_step_name(stream, step, name)),
	};
	_cleanup_(captured_done) struct captured log = {0};

	if (ledger_run(l, SQL_LOG, key, ARRAY_SIZE(key), log_row, &log, err) < 0)
		return -1;
	*ret = log;
	log = (struct captured){0};
	return 0;
}

int ledger_load_log(struct ledger *l, const struct attempt *a, int stream, struct captured *ret,
		    struct error *err)
{
	_cleanup_(captured_done) struct captured all = {0};

	if (a->n_steps == 0 || stream == STREAM_POST)
		return ledger_load_step_log(l, a, 0, stream, ret, err);
	for (size_t n = 1; n <= a->n_steps; n++) {
		_cleanup_(captured_done) struct captured one = {0};

		if (ledger_load_step_log(l, a, n, stream, &one, err) < 0)
			return -1;
		if (captured_join(&all, &one, err) < 0)
			return -1;
	}
	*ret = all;
	all = (struct captured){0};
	return 0;
}

struct copy {
	const struct output *output;
	int fd;
	bool found, is_object;
};

static int copy_row(void *arg, const struct value *row, struct error *err)
{
	struct copy *copy = arg;
	uint8_t sha256[DIGEST_SIZE];
	int r;

	copy->found = true;
	copy->is_object = row[0].kind == VALUE_NULL;
	if (value_to_integer(&row[1], -1) != (int64_t)copy->output->size)
		return error_damaged_ledger(err, "it is said to have %llu bytes, and its content has %lld",
					    (unsigned long long)copy->output->size,
					    (long long)value_to_integer(&row[1], -1));
	if (copy->is_object)
		return 0;
	digest_bytes(row[0].data, row[0].size, sha256);
	if (row[0].size != copy->output->size || memcmp(sha256, copy->output->sha256, DIGEST_SIZE) != 0)
		return error_damaged_ledger(
			err, "its content in the ledger is damaged: its digest is another now");
	r = file_write_all(copy->fd, row[0].data, row[0].size);
	return r < 0 ? error_system(err, -r, "cannot write it") : 0;
}

/* What is missing from a directory that is not the ledger's is elsewhere. */
static int copy_object(struct ledger *l, const struct output *o, int fd, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = ledger_copy_object(l, o->sha256, o->size, fd, err);
	enum store_state state;

	if (r < 0 && err->kind == ERROR_NOT_FOUND && !l->objects_inside &&
	    (store_examine(l, &state, NULL, &why, &why) < 0 || state == STORE_WRONG)) {
		why.stage = err->stage;
		*err = why;
	}
	return r;
}

static int copy_output(struct ledger *l, const struct output *o, int fd, struct error *err)
{
	struct value key = value_bytes(o->sha256, DIGEST_SIZE);
	struct copy copy = {.output = o, .fd = fd};

	if (ledger_run(l, SQL_BLOB_CONTENT, &key, 1, copy_row, &copy, err) < 0)
		return -1;
	if (!copy.found)
		return error_damaged_ledger(err, "its content is missing from the ledger %s",
					    l->backend->name);
	if (!copy.is_object)
		work_add(l->objects.work, o->size);
	return copy.is_object ? copy_object(l, o, fd, err) : 0;
}

int ledger_copy_output(struct ledger *l, const struct output *o, int fd, struct error *err)
{
	int r = copy_output(l, o, fd, err);
	char path[256];

	if (r < 0)
		error_prefix(err, r, "cannot get '%s'",
			     text_escape_into(path, sizeof path, o->path, strlen(o->path)));
	return r;
}
