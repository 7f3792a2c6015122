#include "flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "text.h"

void flow_done(struct flow *f)
{
	free(f->glob);
	free(f->as);
	*f = (struct flow){0};
}

const char *flow_root(const struct flow *f)
{
	return f->as ? f->as : FLOW_ROOT;
}

/* "ID" or "NAME.*". */
static int parse_id(struct flow *f, const char *text, size_t size, const char *whole, struct error *err)
{
	int r;

	if (size > 2 && strncmp(text + size - 2, ".*", 2) == 0) {
		f->is_array = true;
		size -= 2;
	}
	if (memchr(text, '*', size) || memchr(text, '?', size) || memchr(text, '[', size))
		return error_set(
			err, ERROR_USAGE,
			"from '%s' makes no sense: an analysis has one name; of patterns there is only "
			"'NAME.*', the tasks of an array",
			SHOWN(256, whole));
	/* One byte more than an id has: it is refused as too long, not cut. */
	snprintf(f->id, sizeof f->id, "%.*s", (int)(size < sizeof f->id ? size : sizeof f->id - 1), text);
	if (size >= sizeof f->id)
		return error_set(err, ERROR_USAGE, "from '%s' makes no sense: no id is as long as that",
				 SHOWN(256, whole));
	r = id_check(f->id, err);
	return r < 0 ? error_prefix(err, r, "from") : 0;
}

/* Without "." and empty parts. */
static int parse_as(struct flow *f, const char *as, struct error *err)
{
	size_t n = 0;

	f->as = malloc(strlen(as) + 1);
	if (!f->as)
		return error_memory(err);
	for (const char *p = as; *p; p += strspn(p, "/")) {
		size_t part = strcspn(p, "/");

		if (part && !(part == 1 && *p == '.')) {
			if (n)
				f->as[n++] = '/';
			memcpy(f->as + n, p, part);
			n += part;
		}
		p += part;
	}
	f->as[n] = 0;
	if (n > 0 && as[0] != '/' && !path_has_dot_dot(as) && !strchr(as, ':'))
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"from cannot be put at '%s': give a directory below the workspace, without '..' and ':'",
		SHOWN(256, as));
}

static int parse_glob(struct flow *f, const char *glob, size_t size, struct error *err)
{
	f->glob = strndup(glob, size);
	if (!f->glob)
		return error_memory(err);
	if (f->glob[0] != '/' && !path_has_dot_dot(f->glob))
		return 0;
	return error_set(err, ERROR_USAGE,
			 "from cannot match '%s': write a pattern of output paths, relative and without '..'",
			 SHOWN(256, f->glob));
}

int flow_parse(const char *text, struct flow *ret, struct error *err)
{
	_cleanup_flow_ struct flow f = {0};
	const char *first = strchr(text, ':'), *last = strrchr(text, ':');
	bool has_as = first && last != first;
	size_t id = first ? (size_t)(first - text) : strlen(text), glob = 0;
	int r;

	if (id == 0)
		return error_set(err, ERROR_USAGE, "from '%s' makes no sense: write ID[:GLOB[:AS]]",
				 SHOWN(256, text));
	if (first)
		glob = has_as ? (size_t)(last - first - 1) : strlen(first + 1);
	if ((r = parse_id(&f, text, id, text, err)) < 0 ||
	    (glob && (r = parse_glob(&f, first + 1, glob, err)) < 0) ||
	    (has_as && last[1] && (r = parse_as(&f, last + 1, err)) < 0))
		return r;
	*ret = f;
	f = (struct flow){0};
	return 0;
}

int flows_after(char *const *from, char ***after, struct error *err)
{
	for (; from && *from; from++) {
		_cleanup_flow_ struct flow f = {0};
		bool known = false;
		int r = flow_parse(*from, &f, err);

		if (r < 0)
			return r;
		for (char **p = *after; p && *p && !known; p++)
			known = strcmp(*p, f.id) == 0;
		if (!known && (r = strv_append(after, f.id, err)) < 0)
			return r;
	}
	return 0;
}
