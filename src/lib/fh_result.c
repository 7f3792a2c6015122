#include "lib.h"

#include "attempt_stream.h"
#include "buffer.h"
#include "view.h"

#include <stdio.h>
#include <string.h>

_Static_assert(FH_STDOUT == (int)STREAM_STDOUT && FH_STDERR == (int)STREAM_STDERR &&
		       FH_POST_PROCESS == (int)STREAM_POST,
	       "public streams are the model's");

FH_PUBLIC const char *fh_verdict_name(int verdict)
{
	return verdict_name(verdict >= 0 && verdict < VERDICT_COUNT ? (enum verdict)verdict : VERDICT_NONE);
}

fh_result *result_new(void)
{
	fh_result *result = calloc(1, sizeof *result);

	if (!result)
		return NULL;
	atomic_init(&result->refs, 1);
	attempt_init(&result->attempt);
	return result;
}

fh_result *result_ref(fh_result *result)
{
	atomic_fetch_add(&result->refs, 1);
	return result;
}

FH_PUBLIC void fh_result_free(fh_result *result)
{
	if (!result || atomic_fetch_sub(&result->refs, 1) > 1)
		return;
	attempt_done(&result->attempt);
	free(result);
}

static int captured_copy(struct captured *to, const struct captured *from)
{
	*to = (struct captured){.head = from->head ? malloc(from->head_size + 1) : NULL,
				.head_size = from->head_size,
				.tail = from->tail ? malloc(from->tail_size + 1) : NULL,
				.tail_size = from->tail_size,
				.omitted = from->omitted};
	if ((from->head && !to->head) || (from->tail && !to->tail))
		return -1;
	if (from->head)
		memcpy(to->head, from->head, from->head_size);
	if (from->tail)
		memcpy(to->tail, from->tail, from->tail_size);
	return 0;
}

static int lists_copy(struct attempt *to, const struct attempt *from)
{
	const struct manifest *m = &from->manifest;

	for (size_t i = 0; i < m->n_outputs; i++)
		if (manifest_add(&to->manifest, &m->outputs[i], NULL) < 0)
			return -1;
	for (size_t i = 0; i < m->n_rejected; i++)
		if (manifest_reject(&to->manifest, m->rejected[i].path, m->rejected[i].reason, NULL) < 0)
			return -1;
	for (size_t i = 0; i < from->inputs.count; i++)
		if (inputs_add(&to->inputs, &from->inputs.list[i], NULL) < 0)
			return -1;
	return 0;
}

static int attempt_copy(struct attempt *to, const struct attempt *from)
{
	json_auto_t *json = attempt_head_to_json(from);

	if (!json || attempt_from_json(to, json, NULL) < 0 || lists_copy(to, from) < 0)
		return -1;
	for (int i = 0; i < STREAM_COUNT; i++)
		if (captured_copy(&to->logs[i], &from->logs[i]) < 0)
			return -1;
	return captured_copy(&to->post_log, &from->post_log);
}

fh_result *result_copy(const struct attempt *a)
{
	fh_result *result = result_new();

	if (result && attempt_copy(&result->attempt, a) == 0)
		return result;
	fh_result_free(result);
	return NULL;
}

FH_PUBLIC const char *fh_result_id(const fh_result *result)
{
	return result->attempt.id;
}

FH_PUBLIC int fh_result_attempt(const fh_result *result)
{
	return result->attempt.number;
}

FH_PUBLIC int fh_result_verdict(const fh_result *result)
{
	return (int)result->attempt.verdict;
}

FH_PUBLIC int fh_result_exit_code(const fh_result *result)
{
	return result->attempt.exit_code;
}

FH_PUBLIC int fh_result_signal(const fh_result *result)
{
	return result->attempt.signal;
}

FH_PUBLIC int fh_result_status(const fh_result *result)
{
	return attempt_status(&result->attempt);
}

FH_PUBLIC int fh_result_committed(const fh_result *result)
{
	return result->attempt.committed;
}

FH_PUBLIC int fh_result_pending(const fh_result *result)
{
	return result->attempt.pending;
}

FH_PUBLIC const char *fh_result_reason(const fh_result *result)
{
	return result->attempt.reason;
}

FH_PUBLIC const char *fh_result_workspace(const fh_result *result)
{
	return result->attempt.workspace;
}

FH_PUBLIC const char *fh_result_engine(const fh_result *result, const char *key)
{
	return json_string_value(json_object_get(result->attempt.engine, key));
}

FH_PUBLIC int64_t fh_result_rows(const fh_result *result)
{
	return result->attempt.rows;
}

FH_PUBLIC int64_t fh_result_usage(const fh_result *result, const char *name)
{
	json_t *usage = usage_to_json(&result->attempt.usage), *value = json_object_get(usage, name);
	int64_t number = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;

	json_decref(usage);
	return number;
}

FH_PUBLIC size_t fh_result_outputs(const fh_result *result)
{
	return result->attempt.manifest.n_outputs;
}

FH_PUBLIC int fh_result_output(const fh_result *result, size_t index, fh_output *ret, fh_error *err)
{
	const struct manifest *m = &result->attempt.manifest;
	const struct output *o = index < m->n_outputs ? &m->outputs[index] : NULL;

	if (!o)
		return fail_with(err, FH_USAGE, "there is no output %zu: there are %zu", index, m->n_outputs);
	*ret = (fh_output){.path = o->path, .size = o->size, .media_type = o->media_type};
	hex_encode(o->sha256, DIGEST_SIZE, ret->sha256);
	return 0;
}

FH_PUBLIC size_t fh_result_rejected(const fh_result *result)
{
	return result->attempt.manifest.n_rejected;
}

FH_PUBLIC int fh_result_rejected_output(const fh_result *result, size_t index, const char **ret_path,
					const char **ret_reason, fh_error *err)
{
	const struct manifest *m = &result->attempt.manifest;

	if (index >= m->n_rejected)
		return fail_with(err, FH_USAGE, "there is no refused output %zu: there are %zu", index,
				 m->n_rejected);
	*ret_path = m->rejected[index].path;
	*ret_reason = m->rejected[index].reason;
	return 0;
}

FH_PUBLIC int fh_result_error(const fh_result *result, fh_error *ret)
{
	const struct attempt *a = &result->attempt;
	int code = a->error_message ? (int)error_kind_parse(a->error_code) : FH_OK;

	if (a->error_message && code == FH_OK)
		code = FH_SYSTEM;
	if (!ret)
		return code;
	*ret = (fh_error){.code = code};
	snprintf(ret->stage, sizeof ret->stage, "%s", a->error_stage ? a->error_stage : "");
	snprintf(ret->message, sizeof ret->message, "%s", a->error_message ? a->error_message : "");
	return code;
}

/* The last bytes: of the tail, and where that is shorter and follows directly, of the head too. */
FH_PUBLIC int fh_result_log(const fh_result *result, int stream, size_t max, char **ret_text,
			    size_t *ret_size, fh_error *err)
{
	const struct captured *c;
	size_t tail, head;
	char *text;

	if (stream < 0 || stream > FH_POST_PROCESS)
		return fail_with(err, FH_USAGE, "there is no stream %d", stream);
	c = stream == FH_POST_PROCESS ? &result->attempt.post_log : &result->attempt.logs[stream];
	tail = !c->tail ? 0 : c->tail_size < max ? c->tail_size : max;
	head = !c->head || c->omitted ? 0 : c->head_size < max - tail ? c->head_size : max - tail;
	text = malloc(head + tail + 1);
	if (!text)
		return fail_memory(err);
	if (head)
		memcpy(text, c->head + c->head_size - head, head);
	if (tail)
		memcpy(text + head, c->tail + c->tail_size - tail, tail);
	text[head + tail] = 0;
	*ret_text = text;
	if (ret_size)
		*ret_size = head + tail;
	return 0;
}

FH_PUBLIC int fh_result_explain(const fh_result *result, char **ret_text, fh_error *err)
{
	*ret_text = view_agent(&result->attempt);
	return *ret_text ? 0 : fail_memory(err);
}

static int put_text(const char *text, size_t size, void *arg)
{
	return buffer_append(arg, text, size);
}

FH_PUBLIC int fh_result_json(const fh_result *result, int full, char **ret_json, fh_error *err)
{
	_cleanup_buffer_ struct buffer text = {0};

	if (attempt_write_public(&result->attempt, full != 0, NULL, JSON_COMPACT, put_text, &text) < 0)
		return fail_memory(err);
	*ret_json = buffer_take(&text);
	return *ret_json ? 0 : fail_memory(err);
}

json_t *json_read(const char *text, struct error *err)
{
	json_error_t at;
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);

	if (!json)
		error_set(err, ERROR_USAGE, "the result is not JSON: line %d, column %d: %s", at.line,
			  at.column, at.text);
	return json;
}
