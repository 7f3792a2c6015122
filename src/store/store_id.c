#include "store_id.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "clock.h"
#include "text.h"

/* The row. */
struct store_row {
	struct store_id id;
	char host[256], path[512];
};

static int row_take(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct store_row *k = arg;

	value_to_fixed(&row[0], k->id.ledger, sizeof k->id.ledger);
	value_to_fixed(&row[1], k->id.store, sizeof k->id.store);
	value_to_fixed(&row[2], k->host, sizeof k->host);
	text_escape_into(k->path, sizeof k->path, row[3].data ? row[3].data : "", row[3].size);
	return 0;
}

static bool is_id(const char *text)
{
	return strlen(text) == TOKEN_SIZE - 1 && text[strspn(text, "0123456789abcdef")] == 0;
}

static int row_load(struct ledger *l, enum sql which, struct store_row *ret, struct error *err)
{
	*ret = (struct store_row){0};
	if (ledger_run(l, which, NULL, 0, row_take, ret, err) < 0)
		return -1;
	if (!is_id(ret->id.ledger) || (ret->id.store[0] && !is_id(ret->id.store)))
		return error_set(
			err, ERROR_LEDGER,
			"the table 'store' of the ledger %s has lost its row, or what it has is no id",
			l->backend->name);
	return 0;
}

enum { SHOWN_ROOM = 400 };

/* For messages. */
static const char *shown(const struct ledger *l, char room[SHOWN_ROOM])
{
	const char *path = l->objects.path ? l->objects.path : "";

	return text_escape_into(room, SHOWN_ROOM, path, strlen(path));
}

static int wrong(const struct ledger *l, const struct store_row *k, const struct store_id *found,
		 struct error *why)
{
	char has[64] = "has no id", room[SHOWN_ROOM];

	if (l->objects.dir < 0)
		snprintf(has, sizeof has, "is not there");
	else if (found->store[0])
		snprintf(has, sizeof has, "has the id %s", found->store);
	error_set(
		why, ERROR_REFUSED,
		"the object store '%s' %s, and the ledger %s has one with the id %s (at first '%s' on %s): name that "
		"directory with objects=DIR in the ledger's URL",
		shown(l, room), has, l->backend->name, k->id.store, k->path, k->host);
	return error_here(why, -EINVAL);
}

static int anothers(const struct ledger *l, const struct store_row *k, const struct store_id *found,
		    struct error *why)
{
	char room[SHOWN_ROOM];

	error_set(
		why, ERROR_REFUSED,
		"the object store '%s' is that of another ledger, with the id %s, and not of %s, which has the id %s: "
		"name a directory of its own with objects=DIR in the ledger's URL; or, if it is the same ledger, put back "
		"from a copy that had no id yet, and nobody uses the other one, remove the file 'id' in it",
		shown(l, room), found->ledger, l->backend->name, k->id.ledger);
	return error_here(why, -EINVAL);
}

/* What the two say together. negative only if the directory cannot be read. */
static int judge(struct ledger *l, const struct store_row *k, struct store_id *ret_found,
		 enum store_state *ret, struct error *why, struct error *err)
{
	struct store_id found;
	int r = objects_id_read(&l->objects, &found, err);

	if (r < 0)
		return r;
	*ret = STORE_NEW;
	if (k->id.store[0])
		*ret = strcmp(k->id.store, found.store) == 0 ? STORE_READY : STORE_WRONG;
	else if (found.ledger[0] && strcmp(k->id.ledger, found.ledger) != 0)
		*ret = STORE_WRONG;
	if (*ret == STORE_WRONG)
		(k->id.store[0] ? wrong : anothers)(l, k, &found, why);
	*ret_found = found;
	return 0;
}

int store_examine(struct ledger *l, enum store_state *ret, struct store_id *ret_id, struct error *why,
		  struct error *err)
{
	struct store_id found;
	struct store_row known;

	if (row_load(l, SQL_STORE, &known, err) < 0)
		return -1;
	if (ret_id)
		*ret_id = known.id;
	return judge(l, &known, &found, ret, why, err);
}

static int row_save(struct ledger *l, const struct store_id *id, struct error *err)
{
	struct utsname host;

	uname(&host);
	return ledger_do(l, SQL_STORE_SET, err, value_text(id->store), value_time(clock_utc()),
			 value_text(host.nodename), value_path(l->objects.path));
}

/* The directory gets an id, and is this ledger's then. */
static int make_store(struct ledger *l, const struct store_row *known, struct store_id *ret,
		      struct error *err)
{
	int r;

	*ret = known->id;
	if (token_make(ret->store, err) < 0)
		return -1;
	r = objects_make(&l->objects, ret, err);
	if (r <= 0)
		return r;
	/* It is another ledger's, since this moment. */
	(void)objects_id_read(&l->objects, ret, err);
	return anothers(l, known, ret, err);
}

/* Holds the row: nobody else joins before we have. */
static int join(struct ledger *l, void *arg UNUSED, struct error *err)
{
	enum store_state state = STORE_NEW;
	struct store_id found = {0};
	struct store_row known;

	if (row_load(l, SQL_STORE_LOCK, &known, err) < 0 || judge(l, &known, &found, &state, err, err) < 0)
		return -1;
	if (state != STORE_NEW)
		return state == STORE_READY ? 0 : -1;
	if (!found.store[0] && make_store(l, &known, &found, err) < 0)
		return -1;
	return row_save(l, &found, err);
}

/* Examined with an error of its own, which is the caller's if the store is another one. */
static int check_store(struct ledger *l, enum store_state *ret, struct error *err)
{
	struct error why = ERROR_INIT;

	if (store_examine(l, ret, NULL, &why, err) < 0)
		return -1;
	if (*ret != STORE_WRONG)
		return 0;
	why.stage = err->stage;
	*err = why;
	return -1;
}

int store_join(struct ledger *l, struct error *err)
{
	enum store_state state = STORE_NEW;

	if (l->objects.joined)
		return 0;
	if (check_store(l, &state, err) < 0 ||
	    (state == STORE_NEW && ledger_transaction(l, join, NULL, err) < 0))
		return -1;
	l->objects.joined = true;
	return 0;
}

int store_check_inside(struct ledger *l, bool anyway, struct error *err)
{
	struct store_row known;

	if (!anyway && !l->inside_by_default)
		return 0;
	if (row_load(l, SQL_STORE, &known, err) < 0)
		return -1;
	if (!known.id.store[0])
		return 0;
	error_set(
		err, ERROR_REFUSED,
		"the ledger %s has an object store with the id %s (at first '%s' on %s), and its URL names none here: name "
		"that directory with objects=DIR; or say objects=postgresql, and what is made here lies in the ledger itself",
		l->backend->name, known.id.store, known.path, known.host);
	return error_here(err, -EINVAL);
}

int ledger_store_ready(struct ledger *l, struct error *err)
{
	enum store_state state = STORE_NEW;

	if (l->backend->only_submits)
		return 0;
	if (l->objects_inside)
		return store_check_inside(l, false, err);
	if (l->backend->ops->dialect != SQL_SQLITE || l->store_named)
		return store_join(l, err);
	/* Beside a file: who has the one has the other. It is made when it is needed. */
	return check_store(l, &state, err);
}

int ledger_store_describe(struct ledger *l, char *ret, size_t room, struct error *err)
{
	enum store_state state = STORE_NEW;
	struct store_id id;
	char path[SHOWN_ROOM];

	if (l->objects_inside) {
		snprintf(ret, room, "in the ledger itself");
		return store_check_inside(l, false, err);
	}
	snprintf(ret, room, "%s", shown(l, path));
	if (store_examine(l, &state, &id, err, err) < 0 || state == STORE_WRONG)
		return -1;
	if (state == STORE_NEW)
		snprintf(ret, room, "%.180s, not used yet", path);
	else
		snprintf(ret, room, "%.180s, id %s", path, id.store);
	return 0;
}

json_t *store_status(struct ledger *l)
{
	static const char *const names[] = {[STORE_NEW] = "new",
					    [STORE_READY] = "ready",
					    [STORE_WRONG] = "wrong",
					    [STORE_INSIDE] = "inside"};
	struct error why = ERROR_INIT;
	struct store_id id = {0};
	enum store_state state = STORE_NEW;
	int r = store_examine(l, &state, &id, &why, &why);

	if (l->objects_inside) {
		r = store_check_inside(l, false, &why);
		state = STORE_INSIDE;
	}
	if (r < 0)
		state = STORE_WRONG;
	return json_pack("{s:s, s:s?, s:s?, s:s?}", "state", names[state], "id",
			 id.store[0] ? id.store : NULL, "ledger_id", id.ledger[0] ? id.ledger : NULL,
			 "problem", state == STORE_WRONG ? why.message : NULL);
}
