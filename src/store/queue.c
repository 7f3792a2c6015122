#include "queue_private.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "text.h"

enum { IDS_AT_ONCE = 4096 };

int queue_now(struct ledger *l, int64_t *ret, struct error *err)
{
	if (l->backend->ops->dialect != SQL_SQLITE)
		return ledger_run(l, SQL_NOW, NULL, 0, take_integer, ret, err);
	*ret = clock_utc();
	return 0;
}

int queue_lock_for(struct ledger *l, unsigned ms, struct error *err)
{
	char text[16];

	snprintf(text, sizeof text, "%u", ms);
	return l->backend->ops->dialect == SQL_SQLITE ? 0 : ledger_do(l, SQL_LOCK_FOR, err, value_text(text));
}

void ids_done(struct ids *ids)
{
	for (size_t i = 0; i < ids->count; i++)
		free(ids->list[i]);
	free(ids->list);
	*ids = (struct ids){0};
}

int ids_add(struct ids *ids, const char *id, struct error *err)
{
	char **more = ARRAY_ADD(ids->list, ids->count);

	if (more)
		*more = strdup(id);
	return more && *more ? 0 : error_memory(err);
}

int ids_take(void *arg, const struct value *row, struct error *err)
{
	return row[0].kind == VALUE_TEXT ? ids_add(arg, row[0].data, err) : 0;
}

int queue_run_ids(struct ledger *l, enum sql which, char *const *ids, size_t n, const struct value *extra,
		  row_fn fn, void *arg, struct error *err)
{
	_cleanup_buffer_ struct buffer json = {0};

	for (size_t i = 0; i < n;) {
		struct value params[2];
		size_t last = n - i < IDS_AT_ONCE ? n : i + IDS_AT_ONCE;

		json.size = 0;
		/* Nothing in an id needs to be escaped. */
		for (const char *before = "["; i < last; i++, before = ",")
			buffer_printf(&json, "%s\"%s\"", before, ids[i]);
		buffer_puts(&json, "]");
		if (buffer_check(&json, err) < 0)
			return -1;
		params[0] = value_text(json.data);
		if (extra)
			params[1] = *extra;
		if (ledger_run(l, which, params, extra ? 2 : 1, fn, arg, err) < 0)
			return -1;
	}
	return 0;
}

int known_compare(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->id, ((const struct known *)b)->id);
}

struct look {
	struct known *list;
	size_t n;
	int64_t stamp;
};

static struct known *look_find(const struct look *look, const struct value *id)
{
	struct known key = {.id = value_words(id)};

	return bsearch(&key, look->list, look->n, sizeof key, known_compare);
}

static int take_known(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct known *k = look_find(arg, &row[0]);

	if (k && k->standing != STANDING_ACTIVE)
		k->standing = value_to_integer(&row[1], 0) ? STANDING_SUCCEEDED : STANDING_ENDED;
	return 0;
}

static int take_state(void *arg, const struct value *row, struct error *err UNUSED)
{
	const struct look *look = arg;
	struct known *k = look_find(look, &row[0]);
	enum job_state state = JOB_WAITING;

	if (!k || row[1].kind != VALUE_TEXT || job_state_parse(row[1].data, &state) < 0)
		return 0;
	k->is_mine = look->stamp && value_to_integer(&row[2], 0) == look->stamp;
	k->standing = state == JOB_FINISHED || state == JOB_CANCELLED ? STANDING_ENDED : STANDING_ACTIVE;
	return 0;
}

/* Rows of the queue are locked first: what has ended by then has its attempt in the ledger. */
int queue_know(struct ledger *l, struct known *list, size_t n, int64_t stamp, struct error *err)
{
	struct look look = {list, n, stamp};
	_cleanup_free_ char **ids = calloc(n + 1, sizeof *ids);

	if (!ids)
		return error_memory(err);
	for (size_t i = 0; i < n; i++) {
		ids[i] = (char *)list[i].id;
		list[i].standing = STANDING_UNKNOWN;
		list[i].is_mine = false;
	}
	if (queue_run_ids(l, SQL_QUEUE_STATES, ids, n, NULL, take_state, &look, err) < 0)
		return -1;
	return queue_run_ids(l, SQL_KNOWN, ids, n, NULL, take_known, &look, err);
}

static int load_inputs(struct inputs *ret, const struct value *v, struct error *err)
{
	json_auto_t *json = NULL;

	if (value_to_json(v, &json, err) < 0)
		return -1;
	if (!json_is_array(json))
		return error_set(err, ERROR_LEDGER,
				 "the ledger holds inputs that are no list: it is damaged");
	if (inputs_from_json(ret, json, err) < 0)
		return -1;
	/* A submitter's files are of his host, whatever his row says. */
	inputs_forget_from(ret);
	for (size_t i = 0; i < ret->count; i++)
		if (!ret->list[i].source)
			return error_set(
				err, ERROR_LEDGER,
				"the ledger holds an input that does not say where it was: it is damaged");
	return 0;
}

/* What a row says is its submitter's word, who need not have used our `submit`: what makes no sense is his failure, not
 * that of who claims it. It is claimed, and refused. */
static int load_words(struct job *ret, const struct value *row, struct error *err)
{
	struct error why = ERROR_INIT;

	if (value_to_json(&row[QUEUE_REQUEST], &ret->request, &why) == 0 &&
	    (ret->request ||
	     error_set(&why, ERROR_LEDGER, "the ledger holds no request: it is damaged") == 0) &&
	    load_inputs(&ret->inputs, &row[QUEUE_INPUTS], &why) == 0)
		return 0;
	if (why.errnum == ENOMEM) {
		*err = why;
		return -1;
	}
	inputs_done(&ret->inputs);
	return text_set(&ret->unreadable, why.message, err);
}

int queue_job_load(struct job *ret, const struct value *row, struct error *err)
{
	job_init(ret);
	value_to_fixed(&row[QUEUE_ID], ret->id, sizeof ret->id);
	value_to_fixed(&row[QUEUE_TOKEN], ret->token, sizeof ret->token);
	ret->priority = (int)value_to_integer(&row[QUEUE_PRIORITY], 0);
	ret->retries = (int)value_to_integer(&row[QUEUE_RETRIES], 0);
	ret->retry_on = (unsigned)value_to_integer(&row[QUEUE_RETRY_ON], 0);
	ret->again = value_to_integer(&row[QUEUE_AGAIN], 0) != 0;
	ret->tries = (int)value_to_integer(&row[QUEUE_TRIES], 0);
	ret->memory_bytes = (uint64_t)value_to_integer(&row[QUEUE_MEMORY], 0);
	ret->cpus_milli = (uint64_t)value_to_integer(&row[QUEUE_CPUS], 0);
	ret->submitted = value_to_integer(&row[QUEUE_SUBMITTED], 0);
	ret->attempt = (int)value_to_integer(&row[QUEUE_ATTEMPT], 0);
	if (value_to_text(&row[QUEUE_SUBMITTER], &ret->submitter, err) < 0 ||
	    value_to_text(&row[QUEUE_OWNER], &ret->owner, err) < 0)
		return -1;
	return load_words(ret, row, err);
}

void ledger_hurry(struct ledger *l, uint64_t lease_ns)
{
	if (l->backend->ops->hurry)
		l->backend->ops->hurry(l->backend, lease_ns / 3 / NSEC_PER_MSEC);
}

int ledger_bell(struct ledger *l, struct error *err)
{
	int fd = l->backend->ops->bell(l->backend, err);

	return fd < 0 ? -1 : fd;
}

void ledger_bell_end(struct ledger *l)
{
	l->backend->ops->bell_end(l->backend);
}

int ledger_bell_read(struct ledger *l, struct error *err)
{
	return l->backend->ops->bell_read(l->backend, err);
}
