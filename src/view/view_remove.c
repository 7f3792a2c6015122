/*
 * `rm` and `prune`: what went, or would go.
 */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "member.h"
#include "text.h"

int view_remove_age(struct remove_order *o, const char *older, const char *verdicts, struct error *err)
{
	struct view_filter f = {0};
	uint64_t age;
	size_t n = older ? strlen(older) : 0;

	/* A number alone would be seconds, which nobody means who thinks of days. */
	if (n == 0 || (older[n - 1] >= '0' && older[n - 1] <= '9') || duration_parse(older, &age) < 0 ||
	    age >= (uint64_t)clock_utc())
		return error_set(err, ERROR_USAGE,
				 "'%s' is no age: write how old it must be, such as 90d, 12h or 30m",
				 SHOWN(64, older ? older : ""));
	if (verdicts && view_filter_set(&f, "verdict", verdicts, err) < 0)
		return -1;
	o->before = clock_utc() - (int64_t)age;
	o->verdicts = f.verdicts;
	return 0;
}

static json_t *names_json(const struct remove_report *r)
{
	json_auto_t *names = json_array();

	for (size_t i = 0; i < r->n_names; i++)
		if (json_array_append_new(names, json_string(r->names[i])) < 0)
			return NULL;
	return json_incref(names);
}

json_t *view_removed_json(const struct remove_order *o, const struct remove_report *r)
{
	const struct json_entry entries[] = {
		{"dry_run", json_boolean(o->dry_run)},
		{"analyses", json_integer((json_int_t)r->analyses)},
		{"attempts", json_integer((json_int_t)r->attempts)},
		{"outputs", json_integer((json_int_t)r->outputs)},
		{"bytes", json_integer((json_int_t)r->bytes)},
		{"queue_rows", json_integer((json_int_t)r->queued)},
		{"busy", json_integer((json_int_t)r->busy)},
		{"built_on", json_integer((json_int_t)r->built_on)},
		{"first", names_json(r)},
		{"contents_freed", o->dry_run ? json_null() : json_integer((json_int_t)r->contents)},
		{"bytes_freed", o->dry_run ? json_null() : json_integer((json_int_t)r->freed)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static void add_names(struct buffer *b, const struct remove_report *r)
{
	for (size_t i = 0; i < r->n_names; i++)
		buffer_printf(b, "%s%s", i ? ", " : ": ", r->names[i]);
	buffer_puts(b, r->attempts + r->queued > r->n_names && r->n_names == REMOVE_NAMES ? ", …\n" : "\n");
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

char *view_removed(const struct remove_order *o, const struct remove_report *r)
{
	const char *verb = o->dry_run ? "would go" : "removed";
	_cleanup_buffer_ struct buffer b = {0};
	char size[PRINT_ROOM];

	if (r->attempts + r->queued == 0)
		buffer_puts(&b, "nothing to remove\n");
	if (r->attempts) {
		print_size((int64_t)r->bytes, size);
		if (o->keeps_outputs)
			buffer_printf(&b, "%llu attempt%s: logs and records %s (%s), outputs stay",
				      (unsigned long long)r->attempts, plural(r->attempts), verb, size);
		else
			buffer_printf(&b, "%llu attempt%s with %llu output%s (%s) %s",
				      (unsigned long long)r->attempts, plural(r->attempts),
				      (unsigned long long)r->outputs, plural(r->outputs), size, verb);
		add_names(&b, r);
	}
	if (r->queued)
		buffer_printf(&b, "%llu ended row%s of the queue %s\n", (unsigned long long)r->queued,
			      plural(r->queued), verb);
	if (r->busy)
		buffer_printf(&b, "%llu not ended, left alone\n", (unsigned long long)r->busy);
	if (r->built_on)
		buffer_printf(&b, "%llu that others build on, left alone (--force takes them too)\n",
			      (unsigned long long)r->built_on);
	if (r->contents)
		buffer_printf(&b, "%llu content%s freed (%s)\n", (unsigned long long)r->contents,
			      plural(r->contents), print_size((int64_t)r->freed, size));
	return buffer_take(&b);
}

int view_remove(struct hood *h, char *const *words, const struct remove_order *o, json_t **ret,
		struct error *err)
{
	struct remove_report report;
	int r = hood_remove(h, words, o, &report, err);

	if (r < 0)
		return r;
	*ret = view_removed_json(o, &report);
	return *ret ? 0 : error_memory(err);
}
