#include "attempt_stream.h"

#include <errno.h>
#include <string.h>

#include "member.h"
#include "text.h"

static const struct member lines_members[] = {
	MEMBER(struct attempt_lines, outputs, MEMBER_SIZE),
	MEMBER(struct attempt_lines, rejected, MEMBER_SIZE),
	MEMBER(struct attempt_lines, inputs, MEMBER_SIZE),
};

/* Text on its way out, a level deeper than jansson believes it to be. */
struct writer {
	attempt_put_fn put;
	void *arg;
	size_t flags;
	int depth;
};

static int put_text(struct writer *w, const char *text)
{
	return w->put(text, strlen(text), w->arg);
}

static int put_break(struct writer *w)
{
	size_t indent = w->flags & 0x1f;

	if (indent && put_text(w, "\n") < 0)
		return -1;
	for (size_t i = 0; i < indent * (size_t)w->depth; i++)
		if (put_text(w, " ") < 0)
			return -1;
	return 0;
}

/* Within a text a line break is always written as an escape: one that is seen here separates. */
static int put_deeper(const char *text, size_t size, void *arg)
{
	struct writer *w = arg;

	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t n = end ? (size_t)(end - text) : size;

		if ((n && w->put(text, n, w->arg) < 0) || (end && put_break(w) < 0))
			return -1;
		n += end != NULL;
		text += n;
		size -= n;
	}
	return 0;
}

static int put_value(struct writer *w, const json_t *value)
{
	return value ? json_dump_callback(value, put_deeper, w, w->flags | JSON_ENCODE_ANY) : -1;
}

/* What stands before an entry or a member. */
static int put_between(struct writer *w, bool first)
{
	if (!first && put_text(w, w->flags & JSON_COMPACT || w->flags & 0x1f ? "," : ", ") < 0)
		return -1;
	return put_break(w);
}

/* An array of which each entry lives only as long as it is written. */
static int put_list(struct writer *w, const struct attempt *a, size_t count,
		    json_t *entry(const struct attempt *a, size_t i))
{
	if (put_text(w, "[") < 0)
		return -1;
	w->depth++;
	for (size_t i = 0; i < count; i++) {
		json_auto_t *value = entry(a, i);

		if (put_between(w, i == 0) < 0 || put_value(w, value) < 0)
			return -1;
	}
	w->depth--;
	if (count && put_break(w) < 0)
		return -1;
	return put_text(w, "]");
}

static json_t *output_entry(const struct attempt *a, size_t i)
{
	return output_to_json(&a->manifest.outputs[i], false);
}

static json_t *whole_output_entry(const struct attempt *a, size_t i)
{
	return output_to_json(&a->manifest.outputs[i], true);
}

static json_t *rejected_entry(const struct attempt *a, size_t i)
{
	return rejected_to_json(&a->manifest.rejected[i]);
}

static json_t *input_entry(const struct attempt *a, size_t i)
{
	return input_to_json(&a->inputs.list[i]);
}

static int put_member(struct writer *w, const struct attempt *a, const char *key, const json_t *value,
		      bool first)
{
	json_auto_t *name = json_string(key);

	if (put_between(w, first) < 0 || put_value(w, name) < 0 ||
	    put_text(w, w->flags & JSON_COMPACT ? ":" : ": ") < 0)
		return -1;
	if (strcmp(key, "outputs") == 0)
		return put_list(w, a, a->manifest.n_outputs, output_entry);
	if (strcmp(key, "inputs") == 0)
		return put_list(w, a, a->inputs.count, input_entry);
	return put_value(w, value);
}

/* An object whose lists are empty; they are written from the attempt itself. */
static int put_object(struct writer *w, const struct attempt *a, json_t *object)
{
	const char *key;
	json_t *value;
	bool first = true;

	if (put_text(w, "{") < 0)
		return -1;
	w->depth++;
	json_object_foreach (object, key, value) {
		if (put_member(w, a, key, value, first) < 0)
			return -1;
		first = false;
	}
	w->depth--;
	return put_break(w) < 0 ? -1 : put_text(w, "}");
}

int attempt_write_public(const struct attempt *a, bool full, const json_t *over, size_t flags,
			 attempt_put_fn put, void *arg)
{
	struct writer w = {.put = put, .arg = arg, .flags = flags};
	json_auto_t *object = attempt_head_to_public_json(a, full);

	if (!object || (over && json_object_update(object, (json_t *)over) < 0))
		return -1;
	return put_object(&w, a, object);
}

int attempt_write_manifest(const struct attempt *a, size_t flags, attempt_put_fn put, void *arg)
{
	struct writer w = {.put = put, .arg = arg, .flags = flags};
	json_auto_t *object = json_pack("{s:s, s:i, s:[]}", "id", a->id, "attempt", a->number, "outputs");

	return object ? put_object(&w, a, object) : -1;
}

/* Takes the reference. */
static int put_line(json_t *json, size_t max, attempt_put_fn put, void *arg)
{
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	size_t size = text ? strlen(text) : 0;

	json_decref(json);
	if (!text)
		return -1;
	if (size > max)
		return -EFBIG;
	text[size] = '\n';
	return put(text, size + 1, arg);
}

int attempt_write_lines(const struct attempt *a, attempt_put_fn put, void *arg)
{
	const struct attempt_lines lines = {.outputs = a->manifest.n_outputs,
					    .rejected = a->manifest.n_rejected,
					    .inputs = a->inputs.count};
	json_auto_t *head = attempt_head_to_json(a), *counts = json_object();
	int r;

	if (members_write(counts, lines_members, ARRAY_SIZE(lines_members), &lines) < 0 ||
	    json_object_set(head, "lists", counts) < 0)
		return -1;
	r = put_line(json_incref(head), ATTEMPT_HEAD_MAX, put, arg);
	for (size_t i = 0; r == 0 && i < lines.outputs; i++)
		r = put_line(whole_output_entry(a, i), ATTEMPT_LINE_MAX, put, arg);
	for (size_t i = 0; r == 0 && i < lines.rejected; i++)
		r = put_line(rejected_entry(a, i), ATTEMPT_LINE_MAX, put, arg);
	for (size_t i = 0; r == 0 && i < lines.inputs; i++)
		r = put_line(input_entry(a, i), ATTEMPT_LINE_MAX, put, arg);
	return r;
}

static int read_head(struct attempt *a, struct attempt_lines *l, const json_t *json, struct error *err)
{
	const json_t *lists = json_object_get(json, "lists");

	l->head = true;
	if (attempt_from_json(a, json, err) < 0)
		return -1;
	return lists ? members_read(l, lines_members, ARRAY_SIZE(lines_members), lists, "list", err) : 0;
}

int attempt_read_line(struct attempt *a, struct attempt_lines *l, const char *line, size_t size,
		      struct error *err)
{
	json_error_t where;
	json_auto_t *json = json_loadb(line, size, JSON_REJECT_DUPLICATES, &where);

	if (!json) {
		return error_set(err, ERROR_SYSTEM, "a line is damaged: %s", SHOWN(200, where.text));
	}
	if (!l->head)
		return read_head(a, l, json, err);
	if (l->outputs)
		return l->outputs--, output_read(&a->manifest, json, err);
	if (l->rejected)
		return l->rejected--, rejected_read(&a->manifest, json, err);
	if (l->inputs)
		return l->inputs--, input_read(&a->inputs, json, err);
	return error_set(err, ERROR_SYSTEM, "there are more lines than there should be");
}

bool attempt_lines_are_whole(const struct attempt_lines *l)
{
	return l->head && l->outputs == 0 && l->rejected == 0 && l->inputs == 0;
}
