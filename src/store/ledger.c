#include "chunks.h"
#include "store_id.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "group.h"
#include "lending.h"
#include "queue_private.h"
#include "text.h"
#include "url.h"

enum { TRANSACTION_TRIES = 5 };

struct ledger *ledger_close(struct ledger *l)
{
	if (!l)
		return NULL;
	if (l->backend)
		l->backend->ops->close(l->backend);
	claim_memory_forget(l);
	objects_done(&l->objects);
	free(l->shown);
	free(l);
	return NULL;
}

static int other_schema(const struct ledger *l, int version, struct error *err)
{
	if (version > sql_version_wanted)
		return error_set(
			err, ERROR_SCHEMA,
			"the ledger %s was made by a newer fumehood (schema %d, this one knows %d): upgrade fumehood",
			l->backend->name, version, sql_version_wanted);
	return error_set(
		err, ERROR_SCHEMA,
		"the ledger %s was made by an older fumehood (schema %d, this one needs %d): %s",
		l->backend->name, version, sql_version_wanted,
		version < SQL_VERSION_FIRST
			? "it was never released, and cannot be upgraded; 'fumehood db init' makes a new one elsewhere"
			: "stop its workers, then upgrade it with 'fumehood db upgrade'");
}

/* 1: it is to be made or upgraded. */
static int schema_decide(const struct ledger *l, int version, unsigned flags, struct error *err)
{
	if (version == sql_version_wanted)
		return 0;
	if (version == 0 && flags & LEDGER_CREATE)
		return 1;
	if (version == 0)
		return error_set(
			err, ERROR_NOT_FOUND,
			"there are no tables of fumehood in %s yet: the first run makes them, or 'fumehood db init'",
			l->backend->name);
	return version < sql_version_wanted && version >= SQL_VERSION_FIRST && flags & LEDGER_UPGRADE
		       ? 1
		       : other_schema(l, version, err);
}

/* Inside the transaction: another first use, or upgrade, may have been faster. */
static int migrate_locked(struct ledger *l, unsigned flags, struct error *err)
{
	struct backend *b = l->backend;
	int r;

	if ((b->ops->migrate_lock && b->ops->migrate_lock(b, err) < 0) ||
	    b->ops->version(b, &l->version, err) < 0)
		return -1;
	r = schema_decide(l, l->version, flags, err);
	if (r <= 0)
		return r;
	if (l->version == 0)
		l->version = SQL_VERSION_FIRST - 1;
	for (; l->version < sql_version_wanted; l->version++) {
		const struct sql_migration *step = &sql_migrations[l->version - (SQL_VERSION_FIRST - 1)];

		if (b->ops->script(b, step->script[b->ops->dialect], err) < 0 ||
		    ledger_do(l, SQL_VERSION_ADD, err, value_integer(l->version + 1), value_time(clock_utc()),
			      value_text(FUMEHOOD_VERSION)) < 0)
			return -1;
	}
	return 0;
}

int ledger_has_roles(struct ledger *l, bool *ret, struct error *err)
{
	int64_t has = 0;
	int r = l->backend->ops->dialect == SQL_POSTGRES
			? ledger_run(l, SQL_ROLES_THERE, NULL, 0, take_integer, &has, err)
			: 0;

	*ret = has != 0;
	return r;
}

/* With the roles that there are, a table that is new has its rules from the first moment. */
static int migrate_all(struct ledger *l, unsigned flags, struct error *err)
{
	bool has_roles = flags & LEDGER_ROLES;

	if (migrate_locked(l, flags, err) < 0 || (!has_roles && ledger_has_roles(l, &has_roles, err) < 0))
		return -1;
	return has_roles ? l->backend->ops->script(l->backend, sql_postgres_roles, err) : 0;
}

static int migrate(struct ledger *l, unsigned flags, struct error *err)
{
	struct backend *b = l->backend;

	if ((b->ops->migrate_prepare && b->ops->migrate_prepare(b, err) < 0) ||
	    b->ops->begin(b, NULL, err) < 0)
		return -1;
	if (migrate_all(l, flags, err) == 0 && b->ops->commit(b, err) == 0)
		return 0;
	b->ops->rollback(b);
	return -1;
}

static int schema_check(struct ledger *l, unsigned flags, struct error *err)
{
	int r;

	if (l->backend->ops->version(l->backend, &l->version, err) < 0)
		return -1;
	r = schema_decide(l, l->version, flags, err);
	l->is_changed = r > 0;
	return r > 0 ? migrate(l, flags, err) : r;
}

int ledger_roles(struct ledger *l, struct error *err)
{
	if (l->backend->ops->dialect != SQL_POSTGRES)
		return error_set(
			err, ERROR_REFUSED,
			"an SQLite ledger has no roles: who may write the file %s may do everything; "
			"several users share a PostgreSQL ledger",
			l->backend->name);
	return migrate(l, LEDGER_ROLES, err);
}

int ledger_begin(struct ledger *l, struct error *err)
{
	struct backend *b = l->backend;
	int version = 0, r = b->ops->begin(b, &version, err);

	if (r < 0 || version == l->version)
		return r;
	b->ops->rollback(b);
	return other_schema(l, version, err);
}

int ledger_once(struct ledger *l, ledger_body body, void *arg, struct error *err)
{
	struct backend *b = l->backend;
	int r = ledger_begin(l, err);

	if (r < 0)
		return r;
	r = body(l, arg, err);
	if (r == 0)
		r = b->ops->commit(b, err);
	if (r != 0)
		b->ops->rollback(b);
	return r < 0 ? r : 0;
}

int ledger_transaction(struct ledger *l, ledger_body body, void *arg, struct error *err)
{
	int tries = TRANSACTION_TRIES, r;

	assert(err); /* its kind decides */
	do
		r = ledger_once(l, body, arg, err);
	while (r < 0 && err->kind == ERROR_AGAIN && --tries > 0);
	return r;
}

static int objects_join(void *arg, struct error *err)
{
	return store_join(arg, err);
}

/* A ledger that was just made, or upgraded, takes the directory that it was given; if it cannot, its status says why. Beside
 * a file there is only one place: where there is nothing, nothing is made before it is needed. */
static void store_adopt(struct ledger *l)
{
	struct error ignored = ERROR_INIT;

	if (l->backend->ops->dialect != SQL_SQLITE || objects_open(&l->objects, &ignored) > 0)
		(void)store_join(l, &ignored);
}

/* In a file everything is whoever's the file is: what others of the group would submit would run as him. */
static int group_take(const struct ledger_url *u, struct ledger *l, struct error *err)
{
	if (!u->group)
		return 0;
	if (!u->is_postgres)
		return error_set(
			err, ERROR_REFUSED,
			"an SQLite ledger has no group: whoever may write the file does everything as its owner; "
			"several users share a PostgreSQL ledger");
	return group_find(u->group, &l->objects.group, err);
}

static int backend_open(const struct ledger_url *u, unsigned flags, struct lending *from,
			struct backend **ret, struct error *err)
{
	if (from)
		return lending_lend(from, flags, ret, err);
	return (u->is_postgres ? postgres_open : sqlite_open)(u, flags, ret, err);
}

static int open_of(const char *url, unsigned flags, struct lending *from, struct ledger **ret,
		   struct error *err)
{
	_cleanup_ledger_url_ struct ledger_url u = {0};
	_cleanup_ledger_ struct ledger *l = NULL;

	if (ledger_url_parse(url, &u, err) < 0)
		return -1;
	l = calloc(1, sizeof *l);
	if (!l)
		return error_memory(err);
	objects_init(&l->objects, TAKE_PTR(u.objects));
	l->objects.busy_ms = u.busy_ms;
	l->objects_inside = u.objects_inside;
	l->objects_max = u.objects_inside ? u.objects_max : UINT64_MAX;
	l->objects.join = objects_join;
	l->inside_by_default = u.objects_unsaid;
	l->store_named = u.objects_named;
	l->objects.join_arg = l;
	l->blob_max = u.blob_max;
	l->lending = from;
	l->shown = ledger_url_redacted(url);
	if (!l->shown)
		return error_memory(err);
	if (group_take(&u, l, err) < 0 || backend_open(&u, flags, from, &l->backend, err) < 0 ||
	    schema_check(l, flags, err) < 0)
		return -1;
	/* Objects are files, and the worker's. */
	if (l->backend->only_submits)
		l->blob_max = BLOB_MAX_MOST;
	if (l->is_changed && !l->objects_inside)
		store_adopt(l);
	*ret = TAKE_PTR(l);
	return 0;
}

int ledger_open(const char *url, unsigned flags, struct ledger **ret, struct error *err)
{
	return open_of(url, flags, NULL, ret, err);
}

int ledger_open_lent(struct lending *from, unsigned flags, struct ledger **ret, struct error *err)
{
	return open_of(lending_url(from), flags, from, ret, err);
}

bool ledger_is_own(const struct ledger *l)
{
	return l->backend->is_own;
}

int ledger_is_mine(struct ledger *l, const struct attempt *a, struct error *err)
{
	int64_t mine = l->backend->is_own;

	if (l->backend->ops->dialect != SQL_SQLITE &&
	    ledger_ask(l, SQL_IS_MINE, &mine, err, value_text(a->owner ? a->owner : "")) < 0)
		return -1;
	return mine != 0;
}

int ledger_may_commit(struct ledger *l, const char *id, struct error *err)
{
	if (!l->backend->only_submits)
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"cannot commit '%s' to the ledger %s: whoever logs in there may submit or read, and not commit; 'fumehood "
		"submit' leaves it to a worker",
		id, l->backend->name);
}

void ledger_foresee_commit(struct ledger *l)
{
	if (l->backend->ops->foresee_commit)
		l->backend->ops->foresee_commit(l->backend);
}

uint64_t ledger_object_min(const struct ledger *l)
{
	return l->objects_inside ? UINT64_MAX : l->blob_max;
}

uint64_t ledger_content_max(const struct ledger *l)
{
	return l->objects_max > l->blob_max ? l->objects_max : l->blob_max;
}

static int take_state(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct analysis_state *state = arg;

	state->known = true;
	state->last_attempt = (int)value_to_integer(&row[0], 0);
	state->succeeded = value_to_integer(&row[2], 0) != 0;
	if (row[1].kind == VALUE_TEXT && verdict_parse(row[1].data, &state->last_verdict) < 0)
		state->last_verdict = VERDICT_NONE;
	return 0;
}

int ledger_analysis(struct ledger *l, const char *id, struct analysis_state *ret, struct error *err)
{
	struct analysis_state state = {.last_verdict = VERDICT_NONE};
	struct value key = value_text(id);
	int64_t next = 1;
	int r = ledger_run(l, SQL_ANALYSIS_STATE, &key, 1, take_state, &state, err);

	if (r == 0)
		r = ledger_ask(l, SQL_NUMBER_NEXT, &next, err, key);
	if (r < 0)
		return r;
	state.next_attempt = (int)next;
	*ret = state;
	return 0;
}

int ledger_has_token(struct ledger *l, const char *token, int *ret_number, struct error *err)
{
	int64_t number = 0;

	if (ledger_ask(l, SQL_TOKEN, &number, err, value_text(token)) < 0)
		return -1;
	if (number && ret_number)
		*ret_number = (int)number;
	return number != 0;
}

int ledger_put_object(struct ledger *l, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE],
		      struct error *err)
{
	if (l->objects_inside)
		return error_set(err, ERROR_REFUSED,
				 "the ledger %s takes contents when they are committed, and not before",
				 l->backend->name);
	return objects_put(&l->objects, fd, size, ret_sha256, err);
}

int ledger_copy_object(struct ledger *l, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		       struct error *err)
{
	int r = l->objects_inside ? 0 : objects_has(&l->objects, sha256, size, err);
	char hex[DIGEST_TEXT_SIZE];

	if (r < 0)
		return r;
	if (r == 0 && ledger_has_chunks(l)) {
		r = chunks_copy(l, sha256, size, fd, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	if (!l->objects_inside)
		return objects_copy(&l->objects, sha256, size, fd, err);
	if (store_check_inside(l, true, err) < 0)
		return -1;
	hex_encode(sha256, DIGEST_SIZE, hex);
	error_set(err, ERROR_NOT_FOUND, "the object %s is missing from the ledger %s", hex, l->backend->name);
	return error_here(err, -ENOENT);
}

int ledger_pin(struct ledger *l, const struct attempt *a, struct error *err)
{
	_cleanup_free_ uint8_t(*list)[DIGEST_SIZE] = NULL;
	size_t n = 0;

	if (l->objects_inside) /* they lie in the workspace until the commit */
		return 0;
	list = calloc(a->manifest.n_outputs + 1, DIGEST_SIZE);
	if (!list)
		return error_memory(err);
	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		if (a->manifest.outputs[i].is_object)
			memcpy(list[n++], a->manifest.outputs[i].sha256, DIGEST_SIZE);
	return n ? objects_pin(&l->objects, a->token, list, n, err) : 0;
}

void ledger_unpin(struct ledger *l, const struct attempt *a)
{
	objects_unpin(&l->objects, a->token);
	objects_release(&l->objects);
}

static int referred(void *arg, const uint8_t (*sha256)[DIGEST_SIZE], size_t n, bool *ret, struct error *err)
{
	struct ledger *l = arg;
	_cleanup_free_ enum blob_state *states = calloc(n, sizeof *states);

	if (!states)
		return error_memory(err);
	if (l->backend->ops->blob_states(l->backend, sha256, n, states, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		ret[i] = states[i] == BLOB_OBJECT;
	return 0;
}

static int committed(void *arg, const char *token, struct error *err)
{
	return ledger_has_token(arg, token, NULL, err);
}

struct objects_owner ledger_owner(struct ledger *l)
{
	return (struct objects_owner){.arg = l, .referred = referred, .committed = committed};
}

void ledger_watch(struct ledger *l, struct work *w)
{
	l->objects.work = l->backend->work = w;
}

struct work *ledger_work(const struct ledger *l)
{
	return l->objects.work;
}

int ledger_sweep(struct ledger *l, uint64_t *ret_removed, struct error *err)
{
	struct objects_owner owner = ledger_owner(l);
	enum store_state state = STORE_NEW;
	uint64_t removed = 0, contents = 0, bytes = 0;

	*ret_removed = 0;
	if (!l->objects_inside && store_examine(l, &state, NULL, err, err) < 0)
		return -1;
	if (state == STORE_WRONG)
		return -1;
	/* Of a directory that is nobody's yet nothing is ours to remove. */
	if (ledger_sweep_loose(l, &contents, &bytes, err) < 0 ||
	    (state == STORE_READY && objects_sweep(&l->objects, &owner, &removed, err) < 0) ||
	    (ledger_has_chunks(l) && !l->backend->only_submits && chunks_sweep(l, &removed, err) < 0) ||
	    ledger_sweep_staged(l, &removed, err) < 0)
		return -1;
	*ret_removed = removed;
	return 0;
}
