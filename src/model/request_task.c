#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "{task}";

/* Every {task} in *text, which may be NULL, by the number. */
static int text_set_task(char **text, const char *number)
{
	_cleanup_buffer_ struct buffer b = {0};
	const char *rest = *text, *at;
	char *made;

	if (!rest || !strstr(rest, mark))
		return 0;
	for (; (at = strstr(rest, mark)); rest = at + strlen(mark)) {
		buffer_append(&b, rest, (size_t)(at - rest));
		buffer_puts(&b, number);
	}
	buffer_puts(&b, rest);
	made = buffer_take(&b);
	if (!made)
		return -ENOMEM;
	free(*text);
	*text = made;
	return 0;
}

static int list_set_task(char **list, const char *number)
{
	int r = 0;

	for (size_t i = 0; r == 0 && list && list[i]; i++)
		r = text_set_task(&list[i], number);
	return r;
}

static int pairs_set_task(struct pair *pairs, size_t count, const char *number)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = text_set_task(&pairs[i].from, number);
		if (r == 0)
			r = text_set_task(&pairs[i].to, number);
	}
	return r;
}

static int id_set_task(char **id, const char *number)
{
	char *made;

	if (!*id || strstr(*id, mark))
		return text_set_task(id, number);
	if (asprintf(&made, "%s.%s", *id, number) < 0)
		return -ENOMEM;
	free(*id);
	*id = made;
	return 0;
}

int request_set_task(struct request *r, unsigned task, struct error *err)
{
	char number[16], variable[40];

	snprintf(number, sizeof number, "%u", task);
	snprintf(variable, sizeof variable, "FUMEHOOD_TASK=%u", task);
	if (id_set_task(&r->id, number) < 0 || list_set_task(r->command, number) < 0 ||
	    list_set_task(r->env, number) < 0 || list_set_task(r->outputs, number) < 0 ||
	    list_set_task(r->optional_outputs, number) < 0 || list_set_task(r->after, number) < 0 ||
	    pairs_set_task(r->inputs, r->n_inputs, number) < 0 ||
	    pairs_set_task(r->queries, r->n_queries, number) < 0 || text_set_task(&r->into, number) < 0 ||
	    strv_append(&r->env, variable) < 0)
		return error_memory(err);
	return 0;
}
