/*
 * Counters: every row of a dialect's table is a file of the kernel's, read whole and taken apart by key.
 */
#include "cgroup_private.h"
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTER_TEXT_ROOM = 8192 };

#define COUNTERS_UNKNOWN                                               \
	{                                                              \
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 \
	}

static int64_t number_parse(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	return end == text || n > INT64_MAX ? -1 : (int64_t)n;
}

/* The numbers after each whole word `key`, "key N" or "key=N", added up; -1 if there is none. */
static int64_t keyed_parse(const char *text, const char *key)
{
	size_t length = strlen(key);
	int64_t sum = -1;

	for (const char *p = text; (p = strstr(p, key)); p += length) {
		int64_t n;

		if ((p > text && p[-1] != '\n' && p[-1] != ' ') || (p[length] != ' ' && p[length] != '='))
			continue;
		n = number_parse(p + length + 1);
		if (n >= 0)
			sum = (sum < 0 ? 0 : sum) + n;
	}
	return sum;
}

static ssize_t counter_text(const struct cgroup *c, size_t row, char *out, size_t room)
{
	const struct counter_file *file = &c->dialect->counters[row];
	int dir = cgroup_dir(c, file->controller);
	int *fd = &c->counters[row];
	ssize_t n;

	if (dir < 0)
		return -ENOENT;
	if (!file->sampled)
		return file_read_small(dir, file->name, out, room);
	if (*fd < 0)
		*fd = file_open_beneath(dir, file->name, O_RDONLY, 0);
	if (*fd < 0)
		return -errno;
	n = pread(*fd, out, room - 1, 0);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return n;
}

static void row_read(const struct cgroup *c, size_t row, struct cgroup_counters *ret)
{
	const struct counter_file *file = &c->dialect->counters[row];
	char text[COUNTER_TEXT_ROOM];

	if (counter_text(c, row, text, sizeof text) < 0)
		return;
	for (int i = 0; i < file->n_values; i++) {
		const char *key = file->values[i].key;
		int64_t n = key ? keyed_parse(text, key) : number_parse(text);
		int64_t *field = (int64_t *)(void *)((char *)ret + file->values[i].field);

		if (n < 0 && file->sums)
			n = 0;
		if (n >= 0)
			*field = (*field < 0 ? 0 : *field) + n * file->values[i].scale;
	}
}

void cgroup_counters_read(const struct cgroup *c, struct cgroup_counters *ret, bool sample_only)
{
	*ret = (struct cgroup_counters)COUNTERS_UNKNOWN;
	if (!c->dialect)
		return;
	assert(c->dialect->n_counters <= COUNTER_FILES_MAX);
	for (size_t i = 0; i < c->dialect->n_counters; i++)
		if (!sample_only || c->dialect->counters[i].sampled)
			row_read(c, i, ret);
	/* Too short for the kernel's clock ticks: how it was split is not known. */
	if (ret->cpu_user_ns == 0 && ret->cpu_system_ns == 0 && ret->cpu_ns != 0)
		ret->cpu_user_ns = ret->cpu_system_ns = -1;
}
