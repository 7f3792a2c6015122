/*
 * One name is an analysis's or an array's, never both: whoever comes after it, cancels it or waits for it would mean one, and
 * get the other. NAME.N is a task of NAME, however it was submitted, since its end is that of a task.
 *
 * It is looked at when the rows are in, so that a list is held against itself as well, and so that what others have
 * committed by then is seen: of two at the same moment on PostgreSQL neither sees the other.
 */
#include <string.h>

#include "queue_submit.h"
#include "text.h"

static int refuse_named(void *arg UNUSED, const struct value *row, struct error *err)
{
	char id[ID_ROOM], task[ID_ROOM];

	value_to_fixed(&row[0], id, sizeof id);
	value_to_fixed(&row[1], task, sizeof task);
	return error_set(
		err, ERROR_REFUSED,
		"cannot submit '%s': there is an array of this name, with the task '%s'; choose another name",
		id, task);
}

int submit_check_no_array(const struct submit *s, char *const *ids, size_t n, struct error *err)
{
	return queue_run_ids(s->l, SQL_ARRAYS_NAMED, ids, n, NULL, refuse_named, NULL, err);
}

int submit_check_array(const struct submit *s, const char *name, const char *task, struct error *err)
{
	struct known k = {.id = name};

	if (queue_know(s->l, &k, 1, 0, err) < 0)
		return -1;
	if (k.standing == STANDING_UNKNOWN)
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"cannot submit '%s', which is a task of the array '%s': there is an analysis '%s'; choose "
		"another name",
		task, name, name);
}

int submit_check_names(const struct submit *s, struct error *err)
{
	_cleanup_ids_ struct ids fresh = {0};
	char name[ID_ROOM] = "", last[ID_ROOM] = "";

	for (size_t i = 0; i < s->n; i++) {
		const char *id = s->by_id[i]->job->id;

		if (!s->by_id[i]->is_new)
			continue;
		if (ids_add(&fresh, id, err) < 0)
			return -1;
		/* Tasks of one array are mostly side by side. */
		if (!array_of(id, name) || strcmp(name, last) == 0)
			continue;
		memcpy(last, name, sizeof last);
		if (submit_check_array(s, name, id, err) < 0)
			return -1;
	}
	return submit_check_no_array(s, fresh.list, fresh.count, err);
}
