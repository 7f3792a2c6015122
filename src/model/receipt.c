#include "receipt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "member.h"
#include "text.h"

static const struct member layer_members[] = {
	MEMBER(struct layer, name, MEMBER_TEXT),
	MEMBER(struct layer, held, MEMBER_BOOL),
	MEMBER(struct layer, detail, MEMBER_TEXT),
};

static const struct member receipt_members[] = {
	MEMBER(struct receipt, warnings, MEMBER_LIST),
};

static void layer_done(struct layer *l)
{
	free(l->name);
	free(l->detail);
}

void receipt_done(struct receipt *r)
{
	for (size_t i = 0; i < r->count; i++)
		layer_done(&r->layers[i]);
	free(r->layers);
	strv_free(r->warnings);
	*r = (struct receipt){0};
}

/* Takes what l owns, on failure too. */
static void receipt_append(struct receipt *r, struct layer *l)
{
	struct layer *added = l->name && l->detail ? ARRAY_ADD(r->layers, r->count) : NULL;

	if (added)
		*added = *l;
	else
		layer_done(l);
	r->failed |= !added;
}

void receipt_add(struct receipt *r, const char *name, bool held, const char *detail_format, ...)
{
	struct layer l = {.name = strdup(name), .held = held};
	va_list ap;

	va_start(ap, detail_format);
	if (vasprintf(&l.detail, detail_format, ap) < 0)
		l.detail = NULL;
	va_end(ap);
	receipt_append(r, &l);
}

void receipt_warn(struct receipt *r, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	r->failed |= !text || strv_append(&r->warnings, text, NULL) < 0;
}

int receipt_check(const struct receipt *r, struct error *err)
{
	return r->failed ? error_memory(err) : 0;
}

static struct layer *find_layer(const struct receipt *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->layers[i].name, name) == 0)
			return &r->layers[i];
	return NULL;
}

static bool has_warning(const struct receipt *r, const char *text)
{
	for (char **w = r->warnings; w && *w; w++)
		if (strcmp(*w, text) == 0)
			return true;
	return false;
}

static void set_not_held(struct receipt *r, struct layer *l, const char *why)
{
	r->failed |= text_set(&l->detail, why, NULL) < 0;
	l->held = false;
}

void receipt_join(struct receipt *r, const struct receipt *more)
{
	static const char only_some[] = "not in every step";
	size_t before = r->count;

	for (size_t i = 0; i < before; i++)
		if (r->layers[i].held && !find_layer(more, r->layers[i].name))
			set_not_held(r, &r->layers[i], only_some);
	for (size_t i = 0; i < more->count; i++) {
		const struct layer *l = &more->layers[i];
		struct layer *known = find_layer(r, l->name);

		if (!known && (before == 0 || !l->held))
			receipt_add(r, l->name, l->held, "%s", l->detail);
		else if (!known)
			receipt_add(r, l->name, false, "%s", only_some);
		else if (known->held && !l->held)
			set_not_held(r, known, l->detail);
	}
	for (char **w = more->warnings; w && *w; w++)
		if (!has_warning(r, *w))
			receipt_warn(r, "%s", *w);
	r->failed |= more->failed;
}

void receipt_extend(struct receipt *r, const struct receipt *more)
{
	for (size_t i = 0; i < more->count; i++)
		receipt_add(r, more->layers[i].name, more->layers[i].held, "%s", more->layers[i].detail);
	for (char **w = more->warnings; w && *w; w++)
		receipt_warn(r, "%s", *w);
	r->failed |= more->failed;
}

static json_t *layer_to_json(const struct layer *l)
{
	return members_to_json(layer_members, ARRAY_SIZE(layer_members), l);
}

static json_t *layers_to_json(const struct receipt *r)
{
	return JSON_LIST(r->layers, r->count, layer_to_json);
}

json_t *receipt_to_json(const struct receipt *r)
{
	const struct json_entry entries[] = {
		{"layers", layers_to_json(r)},
		{"warnings", json_text_list(r->warnings)},
	};

	json_auto_t *json = json_from_entries(entries, ARRAY_SIZE(entries));

	return r->failed ? NULL : json_incref(json);
}

int receipt_from_json(struct receipt *r, const json_t *json, struct error *err)
{
	const json_t *layers = json_object_get(json, "layers");
	int k = members_read(r, receipt_members, ARRAY_SIZE(receipt_members), json, "receipt", err);

	for (size_t i = 0; k == 0 && i < json_array_size(layers); i++) {
		struct layer l = {0};

		k = members_read(&l, layer_members, ARRAY_SIZE(layer_members), json_array_get(layers, i),
				 "layer", err);
		if (k == 0 && (!l.name || !l.detail))
			k = error_set(err, ERROR_SYSTEM,
				      "cannot read a stored layer: it has no name or no detail");
		if (k < 0)
			layer_done(&l);
		else
			receipt_append(r, &l);
	}
	return k < 0 ? k : receipt_check(r, err);
}
