#include "manifest.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "member.h"
#include "relative.h"
#include "text.h"

static const struct member output_members[] = {
	MEMBER(struct output, sha256, MEMBER_DIGEST),
	MEMBER(struct output, size, MEMBER_SIZE),
	MEMBER(struct output, is_object, MEMBER_BOOL),
};

static const struct member input_members[] = {
	MEMBER(struct input, source, MEMBER_TEXT),
	MEMBER(struct input, sha256, MEMBER_DIGEST),
	MEMBER(struct input, size, MEMBER_SIZE),
	MEMBER(struct input, mode, MEMBER_INT),
};

static const struct member from_members[] = {
	MEMBER(struct input, from_analysis, MEMBER_TEXT),
	MEMBER(struct input, from_attempt, MEMBER_INT),
};

static const struct member manifest_members[] = {
	MEMBER_AS("rejected_more", struct manifest, n_rejected_more, MEMBER_SIZE),
	MEMBER(struct manifest, missing, MEMBER_LIST),
	MEMBER(struct manifest, present, MEMBER_LIST),
};

void manifest_done(struct manifest *m)
{
	for (size_t i = 0; i < m->n_outputs; i++)
		free(m->outputs[i].path);
	for (size_t i = 0; i < m->n_rejected; i++)
		free(m->rejected[i].path);
	free(m->outputs);
	free(m->rejected);
	strv_free(m->missing);
	strv_free(m->present);
	*m = (struct manifest){0};
}

int manifest_add(struct manifest *m, const struct output *o, struct error *err)
{
	_cleanup_free_ char *path = strdup(o->path);
	struct output *added = path ? ARRAY_ADD(m->outputs, m->n_outputs) : NULL;

	if (!added)
		return error_memory(err);
	*added = *o;
	added->path = TAKE_PTR(path);
	return 0;
}

int manifest_reject(struct manifest *m, const char *path, const char *reason, struct error *err)
{
	_cleanup_free_ char *copy = strdup(path);
	struct rejected_output *added = copy ? ARRAY_ADD(m->rejected, m->n_rejected) : NULL;

	if (!added)
		return error_memory(err);
	*added = (struct rejected_output){.path = TAKE_PTR(copy), .reason = reason};
	return 0;
}

static int compare_outputs(const void *a, const void *b)
{
	return strcmp(((const struct output *)a)->path, ((const struct output *)b)->path);
}

static int compare_rejected(const void *a, const void *b)
{
	return strcmp(((const struct rejected_output *)a)->path, ((const struct rejected_output *)b)->path);
}

void manifest_sort(struct manifest *m)
{
	bool unsorted = false;

	/* A walk gives them sorted, and sorting a million takes as much memory again. */
	for (size_t i = 1; i < m->n_outputs && !unsorted; i++)
		unsorted = compare_outputs(&m->outputs[i - 1], &m->outputs[i]) > 0;
	if (unsorted)
		qsort(m->outputs, m->n_outputs, sizeof *m->outputs, compare_outputs);
	if (m->n_rejected)
		qsort(m->rejected, m->n_rejected, sizeof *m->rejected, compare_rejected);
}

const struct output *manifest_find(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->n_outputs; i++)
		if (strcmp(m->outputs[i].path, path) == 0)
			return &m->outputs[i];
	return NULL;
}

void inputs_done(struct inputs *in)
{
	for (size_t i = 0; i < in->count; i++) {
		free(in->list[i].path);
		free(in->list[i].source);
		free(in->list[i].from_analysis);
	}
	free(in->list);
	lookup_done(&in->names);
	*in = (struct inputs){0};
}

int inputs_add(struct inputs *in, const struct input *i, struct error *err)
{
	_cleanup_free_ char *path = strdup(i->path), *source = i->source ? strdup(i->source) : NULL,
			    *from = i->from_analysis ? strdup(i->from_analysis) : NULL;
	bool whole = path && (source || !i->source) && (from || !i->from_analysis);
	struct input *added = whole ? ARRAY_ADD(in->list, in->count) : NULL;

	if (!added || lookup_add(&in->names, i->path, in->count - 1) < 0) {
		in->count -= added != NULL;
		return error_memory(err);
	}
	*added = *i;
	added->path = TAKE_PTR(path);
	added->source = TAKE_PTR(source);
	added->from_analysis = TAKE_PTR(from);
	return 0;
}

static int is_input(const void *arg, size_t i, const char *path)
{
	return strcmp(((const struct inputs *)arg)->list[i].path, path) == 0;
}

const struct input *inputs_find(const struct inputs *in, const char *path)
{
	size_t i = lookup_find(&in->names, path, is_input, in);

	return i == SIZE_MAX ? NULL : &in->list[i];
}

int inputs_set_from(struct inputs *in, const char *path, const char *analysis, int attempt, struct error *err)
{
	struct input *i = (struct input *)inputs_find(in, path);

	i->from_attempt = attempt;
	return text_set(&i->from_analysis, analysis, err);
}

void inputs_forget_from(struct inputs *in)
{
	for (size_t i = 0; i < in->count; i++) {
		free(in->list[i].from_analysis);
		in->list[i].from_analysis = NULL;
		in->list[i].from_attempt = 0;
	}
}

int json_set_path(json_t *object, const char *path)
{
	size_t size = strlen(path);
	_cleanup_free_ char *escaped = NULL, *b64 = NULL;

	if (utf8_valid(path, size))
		return json_object_set_new(object, "path", json_string(path));
	escaped = text_escape(path, size);
	b64 = base64_encode(path, size);
	if (!escaped || !b64 || json_object_set_new(object, "path", json_string(escaped)) < 0)
		return -1;
	return json_object_set_new(object, "path_b64", json_string(b64));
}

char *json_get_path(const json_t *object, struct error *err)
{
	const json_t *b64 = json_object_get(object, "path_b64");
	const char *plain = json_string_value(json_object_get(object, "path"));
	_cleanup_free_ char *path = NULL;
	size_t size = 0;

	if (b64) {
		path = json_is_string(b64) ? base64_decode(json_string_value(b64), &size) : NULL;
	} else if (plain) {
		path = strdup(plain);
		size = strlen(plain);
	}
	if (!path || strlen(path) != size || size == 0) {
		error_set(err, ERROR_SYSTEM, "cannot read a stored path: it makes no sense");
		return NULL;
	}
	return TAKE_PTR(path);
}

static char *get_path_below(const json_t *object, struct error *err)
{
	_cleanup_free_ char *path = json_get_path(object, err);
	struct relative checked;

	return path && relative_check(path, strlen(path), &checked, err) == 0 ? TAKE_PTR(path) : NULL;
}

json_t *output_to_json(const struct output *o, bool whole)
{
	json_auto_t *object = json_object();

	if (json_set_path(object, o->path) < 0 ||
	    members_write(object, output_members, whole ? 3 : 2, o) < 0 ||
	    json_object_set_new(object, "media_type",
				json_string(o->media_type ? o->media_type : media_type_of(o->path))) < 0)
		return NULL;
	return json_incref(object);
}

static json_t *whole_output_to_json(const struct output *o)
{
	return output_to_json(o, true);
}

static json_t *shown_output_to_json(const struct output *o)
{
	return output_to_json(o, false);
}

json_t *manifest_outputs_to_json(const struct manifest *m)
{
	return JSON_LIST(m->outputs, m->n_outputs, shown_output_to_json);
}

json_t *rejected_to_json(const struct rejected_output *rejected)
{
	json_auto_t *object = json_object();

	if (json_set_path(object, rejected->path) < 0 ||
	    json_object_set_new(object, "reason", json_string(rejected->reason)) < 0)
		return NULL;
	return json_incref(object);
}

json_t *manifest_rejected_to_json(const struct manifest *m)
{
	return JSON_LIST(m->rejected, m->n_rejected, rejected_to_json);
}

json_t *manifest_head_to_json(const struct manifest *m)
{
	return members_to_json(manifest_members, ARRAY_SIZE(manifest_members), m);
}

static json_t *whole_outputs_to_json(const struct manifest *m)
{
	return JSON_LIST(m->outputs, m->n_outputs, whole_output_to_json);
}

json_t *manifest_to_json(const struct manifest *m)
{
	json_auto_t *object = manifest_head_to_json(m);
	const struct json_entry entries[] = {
		{"outputs", whole_outputs_to_json(m)},
		{"rejected", manifest_rejected_to_json(m)},
	};

	return json_set_entries(object, entries, ARRAY_SIZE(entries)) < 0 ? NULL : json_incref(object);
}

int output_read(struct manifest *m, const json_t *json, struct error *err)
{
	const char *type = json_string_value(json_object_get(json, "media_type"));
	_cleanup_free_ char *path = get_path_below(json, err);
	struct output o = {.path = path};
	int r;

	if (!path)
		return -EINVAL;
	o.media_type = type ? media_type_known(type) : media_type_of(path);
	r = members_read(&o, output_members, ARRAY_SIZE(output_members), json, "output", err);
	return r < 0 ? r : manifest_add(m, &o, err);
}

int rejected_read(struct manifest *m, const json_t *json, struct error *err)
{
	const char *reason = json_string_value(json_object_get(json, "reason"));
	_cleanup_free_ char *path = json_get_path(json, err);

	if (!path)
		return -EINVAL;
	return manifest_reject(m, path, reject_reason_known(reason ? reason : ""), err);
}

int manifest_from_json(struct manifest *m, const json_t *json, struct error *err)
{
	const json_t *outputs = json_object_get(json, "outputs"),
		     *rejected = json_object_get(json, "rejected");
	int r = members_read(m, manifest_members, ARRAY_SIZE(manifest_members), json, "manifest", err);

	for (size_t i = 0; r == 0 && i < json_array_size(outputs); i++)
		r = output_read(m, json_array_get(outputs, i), err);
	for (size_t i = 0; r == 0 && i < json_array_size(rejected); i++)
		r = rejected_read(m, json_array_get(rejected, i), err);
	return r;
}

json_t *input_to_json(const struct input *in)
{
	json_auto_t *object = json_object();

	if (json_set_path(object, in->path) < 0 ||
	    members_write(object, input_members, ARRAY_SIZE(input_members), in) < 0 ||
	    (in->from_analysis && members_write(object, from_members, ARRAY_SIZE(from_members), in) < 0) ||
	    (in->for_post && json_object_set_new(object, "post_process", json_true()) < 0))
		return NULL;
	return json_incref(object);
}

json_t *inputs_to_json(const struct inputs *in)
{
	return JSON_LIST(in->list, in->count, input_to_json);
}

int input_read(struct inputs *in, const json_t *object, struct error *err)
{
	_cleanup_free_ char *path = get_path_below(object, err);
	struct input read = {.path = path, .for_post = json_is_true(json_object_get(object, "post_process"))};
	int r;

	if (!path)
		return -EINVAL;
	r = members_read(&read, input_members, ARRAY_SIZE(input_members), object, "input", err);
	if (r == 0 && json_object_get(object, "from_analysis"))
		r = members_read(&read, from_members, ARRAY_SIZE(from_members), object, "input", err);
	if (r == 0)
		r = inputs_add(in, &read, err);
	free(read.source);
	free(read.from_analysis);
	return r;
}

int inputs_from_json(struct inputs *in, const json_t *json, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(json); i++)
		r = input_read(in, json_array_get(json, i), err);
	return r;
}
