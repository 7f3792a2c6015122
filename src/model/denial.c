#include "denial.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "member.h"
#include "text.h"

static const struct member denial_members[] = {
	MEMBER(struct denial, layer, MEMBER_TEXT),	    MEMBER(struct denial, operation, MEMBER_TEXT),
	MEMBER(struct denial, path, MEMBER_TEXT),	    MEMBER(struct denial, target, MEMBER_TEXT),
	MEMBER(struct denial, error, MEMBER_TEXT),	    MEMBER(struct denial, hint, MEMBER_TEXT),
	MEMBER_AS("at_ns", struct denial, at, MEMBER_TIME), MEMBER(struct denial, count, MEMBER_COUNT),
};

void denial_done(struct denial *d)
{
	char *texts[] = {d->layer, d->operation, d->path, d->target, d->error, d->hint};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	*d = (struct denial){0};
}

void denials_done(struct denials *d)
{
	for (size_t i = 0; i < d->n; i++)
		denial_done(&d->list[i]);
	free(d->list);
	*d = (struct denials)DENIALS_UNKNOWN;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static struct denial *find(const struct denials *d, const struct denial *one)
{
	for (size_t i = 0; i < d->n; i++) {
		struct denial *known = &d->list[i];

		if (same_text(known->operation, one->operation) && same_text(known->target, one->target) &&
		    same_text(known->error, one->error) && same_text(known->path, one->path) &&
		    same_text(known->layer, one->layer) && same_text(known->hint, one->hint))
			return known;
	}
	return NULL;
}

/* false: memory is out. */
static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static bool append(struct denials *d, const struct denial *one)
{
	struct denial new = {.at = one->at, .count = one->count}, *more;
	bool whole = copy(&new.layer, one->layer) && copy(&new.operation, one->operation) &&
		     copy(&new.path, one->path) && copy(&new.target, one->target) &&
		     copy(&new.error, one->error) && copy(&new.hint, one->hint);

	more = whole && d->n < DENIALS_MAX ? ARRAY_ADD(d->list, d->n) : NULL;
	if (more)
		*more = new;
	else
		denial_done(&new);
	return more;
}

void denials_add(struct denials *d, const struct denial *one)
{
	struct denial *known = find(d, one);

	if (d->more < 0)
		d->more = 0;
	if (known)
		known->count += one->count;
	else if (!append(d, one))
		d->more += one->count;
}

void denials_join(struct denials *d, const struct denials *more)
{
	if (more->more < 0)
		return;
	for (size_t i = 0; i < more->n; i++)
		denials_add(d, &more->list[i]);
	d->more = (d->more < 0 ? 0 : d->more) + more->more;
}

static json_t *stored_to_json(const struct denial *d)
{
	return members_to_json(denial_members, ARRAY_SIZE(denial_members), d);
}

static json_t *list_to_json(const struct denials *d)
{
	return JSON_LIST(d->list, d->n, stored_to_json);
}

json_t *denials_to_json(const struct denials *d)
{
	const struct json_entry entries[] = {
		{"list", list_to_json(d)},
		{"more", d->more < 0 ? json_null() : json_integer(d->more)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

int denials_from_json(struct denials *d, const json_t *json, struct error *err)
{
	const json_t *list = json_object_get(json, "list"), *more = json_object_get(json, "more");

	denials_done(d);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct denial *one = ARRAY_ADD(d->list, d->n);

		if (!one)
			return error_memory(err);
		if (members_read(one, denial_members, ARRAY_SIZE(denial_members), json_array_get(list, i),
				 "denial", err) < 0)
			return -1;
		if (!one->layer || !one->operation || one->count < 0)
			return error_set(
				err, ERROR_SYSTEM,
				"cannot read a stored denial: it has no layer, no operation or no count");
	}
	d->more = json_is_integer(more) && json_integer_value(more) >= 0 ? json_integer_value(more) : -1;
	return 0;
}

static json_t *denial_to_json(const struct denial *d)
{
	const struct json_entry entries[] = {
		{"layer", json_shown(d->layer)},   {"operation", json_shown(d->operation)},
		{"target", json_shown(d->target)}, {"errno", json_shown(d->error)},
		{"count", json_integer(d->count)}, {"hint", json_shown(d->hint)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

json_t *denials_to_public_json(const struct denials *d)
{
	return d->more < 0 ? json_null() : JSON_LIST(d->list, d->n, denial_to_json);
}
