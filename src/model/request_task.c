#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "{task}";

/* Every {task} in *text, which may be NULL, by the number. */
static int text_set_task(char **text, const char *number, struct error *err)
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
		return error_memory(err);
	free(*text);
	*text = made;
	return 0;
}

static int list_set_task(char **list, const char *number, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && list && list[i]; i++)
		r = text_set_task(&list[i], number, err);
	return r;
}

static int pairs_set_task(struct pair *pairs, size_t count, const char *number, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = text_set_task(&pairs[i].from, number, err);
		if (r == 0)
			r = text_set_task(&pairs[i].to, number, err);
	}
	return r;
}

static int id_set_task(char **id, const char *number, struct error *err)
{
	if (!*id || strstr(*id, mark))
		return text_set_task(id, number, err);
	return text_print(id, err, "%s.%s", *id, number);
}

int request_set_task(struct request *r, unsigned task, struct error *err)
{
	char number[16], variable[40];
	int k;

	snprintf(number, sizeof number, "%u", task);
	snprintf(variable, sizeof variable, "FUMEHOOD_TASK=%u", task);
	if ((k = id_set_task(&r->id, number, err)) < 0 || (k = list_set_task(r->command, number, err)) < 0 ||
	    (k = list_set_task(r->env, number, err)) < 0 ||
	    (k = list_set_task(r->outputs, number, err)) < 0 ||
	    (k = list_set_task(r->optional_outputs, number, err)) < 0 ||
	    (k = list_set_task(r->after, number, err)) < 0 || (k = list_set_task(r->from, number, err)) < 0 ||
	    (k = pairs_set_task(r->inputs, r->n_inputs, number, err)) < 0 ||
	    (k = pairs_set_task(r->queries, r->n_queries, number, err)) < 0 ||
	    (k = text_set_task(&r->into, number, err)) < 0)
		return k;
	return strv_append(&r->env, variable, err);
}
