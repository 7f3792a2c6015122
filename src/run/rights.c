#include "rights.h"
#include "ability.h"
#include "array.h"
#include "file.h"
#include "private.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_SIZE = 256, SHOWN_PLACES_MAX = 64 };

void rights_init(struct rights *r)
{
	*r = (struct rights){0};
}

void rights_done(struct rights *r)
{
	for (size_t i = 0; i < r->n_places; i++) {
		free(r->places[i].asked);
		free(r->places[i].path);
		free(r->places[i].rest);
		free(r->places[i].why);
		fd_close(r->places[i].fd);
		fd_close(r->places[i].listed);
	}
	free(r->places);
	free(r->owner);
	identity_done(&r->who);
	program_done(&r->program.found);
	free(r->program.real);
	*r = (struct rights){0};
}

/* ---- who ---- */

/* 1: the local user that it maps to; 0: none, why says so. */
static int find_user(struct hood *h, const struct job *job, struct rights *ret, struct error *err)
{
	bool is_file = strncmp(h->ledger_url, "sqlite:", 7) == 0;
	struct error problem = ERROR_INIT;
	const char *user;
	char shown[SHOWN_SIZE];
	struct ledger *ledger;
	int r = is_file ? hood_ledger(h, LEDGER_CREATE, &ledger, err) : 0;

	if (r < 0)
		return r;
	if (is_file && ledger_is_own(ledger))
		return (r = identity_of(geteuid(), &ret->who, err)) < 0 ? r : 1;
	if (is_file) {
		snprintf(
			ret->why, sizeof ret->why,
			"others than the worker's user own or can write the ledger '%.200s' or a directory on its way",
			h->ledger_url + strlen("sqlite:"));
		ret->remedy =
			", or a worker of its owner to run it, if nobody else may write there (chmod go-w)";
		return 0;
	}
	text_escape_into(shown, sizeof shown, job->owner ? job->owner : "",
			 strlen(job->owner ? job->owner : ""));
	ret->remedy = ", or to give this owner a user in queue: {users: …}";
	user = job->owner ? json_string_value(json_object_get(h->config.queue_users, job->owner)) : NULL;
	if (!user) {
		snprintf(ret->why, sizeof ret->why, "queue.users maps '%s' to no user of this host", shown);
		return 0;
	}
	r = identity_find(user, &ret->who, &problem);
	if (r < 0 && problem.kind == ERROR_NOT_FOUND) {
		snprintf(ret->why, sizeof ret->why,
			 "queue.users maps '%s' to '%.100s', whom this host does not know", shown, user);
		return 0;
	}
	if (r < 0)
		*err = problem;
	return r < 0 ? r : 1;
}

static int become_nobody(struct identity *who, struct error *err)
{
	identity_done(who);
	return ability_is_root() ? identity_nobody(who, err) : identity_of(geteuid(), who, err);
}

int rights_find(struct hood *h, const struct job *job, const struct request *request, struct rights *ret,
		struct error *err)
{
	int r;

	if (!job)
		return 0;
	if (!request->id || strcmp(request->id, job->id) != 0)
		return error_set(err, ERROR_REFUSED,
				 "the request of '%s' in the queue is another analysis's: it names '%s'",
				 job->id, SHOWN(SHOWN_SIZE, request->id ? request->id : ""));
	ret->is_queued = true;
	r = text_set(&ret->owner, job->owner ? job->owner : "", err);
	if (r < 0)
		return r;
	r = find_user(h, job, ret, err);
	if (r < 0)
		return r;
	ret->is_bound = r == 0 || ret->who.uid != geteuid();
	ret->has_user = r == 1 && (!ret->is_bound || ability_is_root());
	if (!ret->is_bound || ret->has_user)
		return 0;
	if (r == 1) {
		ret->remedy = ", or a worker of that user or of root to run it";
		snprintf(
			ret->why, sizeof ret->why,
			"'%s' is the local user %u, and only a worker that is root can act for other users than its own",
			SHOWN(SHOWN_SIZE, ret->owner), ret->who.uid);
	}
	return become_nobody(&ret->who, err);
}

json_t *rights_to_json(const struct rights *r, const char *ledger)
{
	json_t *uid = !r->is_bound  ? json_integer(geteuid())
		      : r->has_user ? json_integer(r->who.uid)
				    : json_null();

	return json_pack("{s:s?, s:o, s:b, s:s?}", "owner", r->owner, "uid", uid, "bound", r->is_bound,
			 "ledger", ledger);
}

int rights_recall(const json_t *whose, struct rights *ret, struct error *err)
{
	const char *owner = json_string_value(json_object_get(whose, "owner"));
	const json_t *uid = json_object_get(whose, "uid");
	json_int_t number = json_integer_value(uid);

	ret->is_queued = owner != NULL;
	ret->is_bound = !json_is_false(json_object_get(whose, "bound"));
	ret->has_user = json_is_integer(uid);
	if (!(ret->is_bound ? ret->is_queued : ret->has_user) || number < 0 || number >= UINT32_MAX)
		return error_set(err, ERROR_REFUSED, "its record does not tell whose it is");
	if (ret->has_user && number != geteuid() && !(ret->is_bound && ability_is_root()))
		return error_set(err, ERROR_REFUSED,
				 "it was begun as the user %lld, for whom only %s can go on with it",
				 (long long)number, ret->is_bound ? "root" : "that user");
	snprintf(ret->why, sizeof ret->why, "it was begun for nobody whom this host knows");
	if (owner && text_set(&ret->owner, owner, err) < 0)
		return -ENOMEM;
	return ret->has_user ? identity_of((uid_t)number, &ret->who, err) : become_nobody(&ret->who, err);
}

/* ---- what ---- */

int rights_refuse(const struct rights *rights, const char *option, const char *value, const char *key,
		  const char *reason, struct error *err)
{
	char what[SHOWN_SIZE], who[SHOWN_SIZE], user[SHOWN_SIZE] = "";

	text_escape_into(what, sizeof what, value, strlen(value));
	text_escape_into(who, sizeof who, rights->owner, strlen(rights->owner));
	if (rights->has_user)
		snprintf(user, sizeof user, " (here the user '%.100s', %u)", rights->who.name,
			 rights->who.uid);
	return error_set(
		err, ERROR_REFUSED,
		"%s%s%s%s is not allowed for '%s'%s: %s; the worker's configuration would have to list it in "
		"queue: {allow: {%s: …}}%s",
		option, *what ? " '" : "", what, *what ? "'" : "", who, user, reason ? reason : rights->why,
		key, rights->has_user || !rights->remedy ? "" : rights->remedy);
}

static const json_t *allowed(const struct hood *h, const char *key)
{
	return json_object_get(h->config.queue_allow, key);
}

static bool is_listed(const struct hood *h, const char *key, const char *word)
{
	const json_t *item;
	size_t i;

	json_array_foreach (allowed(h, key), i, item)
		if (strcmp(json_string_value(item), word) == 0)
			return true;
	return false;
}

const char *rights_rest(const char *path, const char *base)
{
	size_t n = strlen(base);

	while (n > 1 && base[n - 1] == '/')
		n--;
	if (strncmp(path, base, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n + strspn(path + n, "/");
}

/* The first of the list that it lies in and that is there, opened as whoever we are: how it is reached is the site's word. */
static int find_listed(const struct hood *h, struct granted_place *p, struct error *err)
{
	const json_t *item;
	size_t i;

	json_array_foreach (allowed(h, p->key), i, item) {
		const char *listed = json_string_value(item);
		const char *rest = rights_rest(p->asked, listed);
		char real[PATH_MAX];
		int fd;

		if (!rest || !realpath(listed, real))
			continue;
		fd = file_open_nolinks(AT_FDCWD, real, O_PATH);
		if (fd < 0)
			continue;
		p->listed = fd;
		return text_set(&p->rest, rest, err);
	}
	return 0;
}

struct granted_place *rights_add_place(struct rights *rights, const char *option, const char *key)
{
	struct granted_place *p = ARRAY_ADD(rights->places, rights->n_places);

	if (p)
		*p = (struct granted_place){.option = option, .key = key, .fd = -1, .listed = -1};
	return p;
}

static int ask_place(struct hood *h, struct rights *rights, const char *option, const char *key,
		     const char *directory, const char *path, struct error *err)
{
	struct granted_place *p = rights_add_place(rights, option, key);

	if (!p || !(p->asked = path_from(directory, path)))
		return error_memory(err);
	return find_listed(h, p, err);
}

const struct granted_place *rights_place(const struct rights *rights, const char *path)
{
	for (size_t i = 0; rights && i < rights->n_places; i++)
		if (rights->places[i].path && strcmp(rights->places[i].path, path) == 0)
			return &rights->places[i];
	return NULL;
}

static int check_flag(struct hood *h, const struct rights *rights, bool is_asked, const char *option,
		      const char *key, struct error *err)
{
	if (!is_asked || json_is_true(allowed(h, key)))
		return 0;
	return rights_refuse(rights, option, "", key,
			     "it is a right of this host that no user of it has by himself", err);
}

/* A variable without a value is the worker's own, whoever the submitter is. */
static int fill_env(struct hood *h, const struct rights *rights, struct request *r, struct error *err)
{
	_cleanup_strv_ char **filled = NULL;
	int e;

	for (size_t i = 0; r->env && r->env[i]; i++) {
		_cleanup_free_ char *entry = NULL;
		const char *value;

		if (strchr(r->env[i], '=')) {
			if ((e = strv_append(&filled, r->env[i], err)) < 0)
				return e;
			continue;
		}
		if (!is_listed(h, "env", r->env[i]))
			return rights_refuse(rights, "--env", r->env[i], "env",
					     "without a value it is a variable of the worker", err);
		value = getenv(r->env[i]);
		if (value && ((e = text_print(&entry, err, "%s=%s", r->env[i], value)) < 0 ||
			      (e = strv_append(&filled, entry, err)) < 0))
			return e;
	}
	strv_free(r->env);
	r->env = TAKE_PTR(filled);
	return 0;
}

/* A listed command is the site's, its files are too. No other makes rows for a stranger: they would be the worker's. */
int rights_choose_post(const struct hood *h, struct rights *rights, const char *command, struct error *err)
{
	rights->post_is_own = command && !rights->is_bound;
	rights->post_is_sites = command && rights->is_bound && is_listed(h, "post_process", command);
	if (!command || rights->post_is_own || rights->post_is_sites)
		return 0;
	return rights_refuse(rights, "--post-process", command, "post_process",
			     "rows of others than the worker's own user come from what the site lists", err);
}

/* SQLite's is his own, and so is one whose role is his. */
bool rights_lack_post(const struct hood *h, const char *command)
{
	bool own = !command || is_listed(h, "post_process", command) ||
		   strncmp(h->ledger_url, "postgres", strlen("postgres")) != 0;
	struct error ignored = ERROR_INIT;
	const char *owner;
	json_t *user;

	json_object_foreach (h->config.queue_users, owner, user) {
		_cleanup_identity_ struct identity who = {0};

		own |= identity_find(json_string_value(user), &who, &ignored) == 0 && who.uid == geteuid();
	}
	return !own;
}

static int ask_places(struct hood *h, struct rights *rights, const struct request *r, struct error *err)
{
	int e = 0;

	if ((r->data && (e = ask_place(h, rights, "--data", "data", r->directory, r->data, err)) < 0) ||
	    (r->docs && (e = ask_place(h, rights, "--docs", "docs", r->directory, r->docs, err)) < 0))
		return e;
	for (size_t i = 0; e == 0 && i < r->n_ro; i++)
		e = ask_place(h, rights, "--ro", "ro", r->directory, r->ro[i].from, err);
	for (size_t i = 0; e == 0 && r->shown && r->shown[i] && i < SHOWN_PLACES_MAX; i++) {
		e = ask_place(h, rights, "the environment", "ro", "/", r->shown[i], err);
		if (e == 0)
			rights->places[rights->n_places - 1].optional = true;
	}
	return e;
}

/* The request's own words become what was granted, in the order in which they were asked. */
static int take_places(const struct rights *rights, struct request *r, struct error *err)
{
	const struct granted_place *p = rights->places;
	int e = 0;

	if ((r->data && (e = text_set(&r->data, (p++)->path, err)) < 0) ||
	    (r->docs && (e = text_set(&r->docs, (p++)->path, err)) < 0))
		return e;
	for (size_t i = 0; e == 0 && i < r->n_ro; i++, p++) {
		if (!r->ro[i].to && (e = text_set(&r->ro[i].to, p->asked, err)) < 0)
			return e;
		if (r->ro[i].to[0] != '/')
			return error_set(err, ERROR_USAGE, "--ro: the place inside must be an absolute path");
		e = text_set(&r->ro[i].from, p->path, err);
	}
	return e;
}

static int apply_bound(struct hood *h, struct rights *rights, struct request *r, struct error *err)
{
	_cleanup_free_ char *into = NULL;
	bool keeps = r->keep == KEEP_ON_FAILURE || r->keep == KEEP_ALWAYS;
	bool lowers = r->strength == STRENGTH_LANDLOCK && h->config.defaults.strength != STRENGTH_LANDLOCK;
	int e;

	if ((e = check_flag(h, rights, r->n_queries > 0, "--query", "query", err)) < 0 ||
	    (e = check_flag(h, rights, keeps, "--keep", "keep", err)) < 0 ||
	    (e = check_flag(h, rights, r->allow_unlimited, "--allow-unlimited", "allow_unlimited", err)) <
		    0 ||
	    (e = check_flag(h, rights, lowers, "--strength landlock", "landlock", err)) < 0 ||
	    (e = fill_env(h, rights, r, err)) < 0 || (e = ask_places(h, rights, r, err)) < 0)
		return e;
	if (r->into && !(into = path_from(r->directory, r->into)))
		return error_memory(err);
	if ((e = rights_resolve(h, rights, r, into, err)) < 0 || (e = take_places(rights, r, err)) < 0)
		return e;
	free(r->into);
	r->into = TAKE_PTR(into);
	/* Nothing else is looked for where he says that he was; the site's own words start where the worker is. */
	return text_set(&r->directory, h->directory, err);
}

int rights_apply(struct hood *h, struct rights *rights, struct request *r, struct error *err)
{
	int e;

	if (!rights->is_queued)
		return 0;
	/* Whoever wrote the row: `submit` puts what is staged into the ledger. */
	if (r->n_inputs > 0)
		return error_set(
			err, ERROR_REFUSED,
			"a queued analysis cannot stage '%s' from the worker's host: what is staged must be in the "
			"ledger, where `fumehood submit` puts it",
			SHOWN(SHOWN_SIZE, r->inputs[0].from));
	if (!r->directory && (e = text_set(&r->directory, "/", err)) < 0)
		return e;
	e = rights_choose_post(h, rights, r->post_process, err);
	if (e < 0)
		return e;
	r->no_stage = true;
	return rights->is_bound ? apply_bound(h, rights, r, err) : 0;
}
