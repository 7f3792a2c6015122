#include "receipt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
static int receipt_append(struct receipt *r, struct layer *l)
{
	struct layer *more =
		l->name && l->detail ? reallocarray(r->layers, r->count + 1, sizeof *more) : NULL;

	if (!more) {
		layer_done(l);
		return -ENOMEM;
	}
	r->layers = more;
	more[r->count++] = *l;
	return 0;
}

int receipt_add(struct receipt *r, const char *name, bool held, const char *detail_format, ...)
{
	struct layer l = {.name = strdup(name), .held = held};
	va_list ap;

	va_start(ap, detail_format);
	if (vasprintf(&l.detail, detail_format, ap) < 0)
		l.detail = NULL;
	va_end(ap);
	return receipt_append(r, &l);
}

int receipt_warn(struct receipt *r, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return strv_append(&r->warnings, text);
}

json_t *receipt_to_json(const struct receipt *r)
{
	json_auto_t *object = json_object(), *layers = json_array();

	for (size_t i = 0; i < r->count; i++) {
		json_auto_t *layer = json_object();

		if (members_write(layer, layer_members, ARRAY_SIZE(layer_members), &r->layers[i]) < 0 ||
		    json_array_append(layers, layer) < 0)
			return NULL;
	}
	if (json_object_set(object, "layers", layers) < 0 ||
	    members_write(object, receipt_members, ARRAY_SIZE(receipt_members), r) < 0)
		return NULL;
	return json_incref(object);
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
		else if (receipt_append(r, &l) < 0)
			k = error_memory(err);
	}
	return k;
}
