/*
 * What the site says of Slurm, and what becomes of an analysis's limits there: the configuration's `slurm`, the script of a job, its
 * options.
 */
#include "slurm.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ability.h"
#include "become.h"
#include "file.h"
#include "slurm_private.h"
#include "text.h"
#include "url.h"

static const uint64_t poll_default_ns = 2 * NSEC_PER_SEC;
static const char path_default[] = "/usr/local/bin:/usr/bin:/bin";

/* ---- the ledger, as a node finds it ---- */

/* "postgresql://user:secret@host/…?password=secret" */
static bool has_password(const char *url)
{
	const char *authority = strstr(url, "://"), *at, *colon, *query;
	size_t size;

	if (!authority)
		return false;
	authority += 3;
	size = strcspn(authority, "/?");
	at = memrchr(authority, '@', size);
	colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
	if (colon && colon + 1 < at)
		return true;
	query = strchr(authority, '?');
	return query && (strcasestr(query, "?password=") || strcasestr(query, "&password=") ||
			 strcasestr(query, "sslpassword="));
}

int slurm_check_ledger(const char *url, struct error *err)
{
	_cleanup_ledger_url_ struct ledger_url parsed = {0};
	int r = ledger_url_parse(url, &parsed, err);

	if (r < 0)
		return r;
	if (!parsed.is_postgres)
		return error_set(
			err, ERROR_REFUSED,
			"Slurm's nodes need a ledger in PostgreSQL: a ledger in a file is on one host, and the nodes commit by "
			"themselves; give --db postgresql://… (docs/SLURM.md)");
	if (has_password(url))
		return error_set(
			err, ERROR_REFUSED,
			"the ledger's URL has a password in it, and everybody can read what a Slurm job is given: put it into a "
			"password file that the nodes can read, and name that in PGPASSFILE");
	if (getenv("PGPASSWORD"))
		return error_set(
			err, ERROR_REFUSED,
			"PGPASSWORD does not reach the nodes, since everybody can read what a Slurm job is given: put the password "
			"into a file that the nodes can read, and name that in PGPASSFILE");
	return 0;
}

/* ---- the script ---- */

static void put_quoted(struct buffer *b, const char *word)
{
	buffer_puts(b, "'");
	for (; *word; word++)
		if (*word == '\'')
			buffer_puts(b, "'\\''");
		else
			buffer_append(b, word, 1);
	buffer_puts(b, "'");
}

/* Paths and names; a secret is in none of them. */
static void put_environment(struct buffer *b)
{
	static const char *const passed[] = {"PGPASSFILE",    "PGSERVICE", "PGSERVICEFILE", "PGSSLMODE",
					     "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY",	    "PGUSER",
					     "PGHOST",	      "PGPORT"};

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		const char *value = getenv(passed[i]);

		if (!value || !*value)
			continue;
		buffer_printf(b, "export %s=", passed[i]);
		put_quoted(b, value);
		buffer_puts(b, "\n");
	}
}

/* Homes are often one directory on all nodes, and what a node has to remember is its own. */
static void put_state(struct buffer *b)
{
	buffer_puts(
		b,
		"[ -z \"$HOME\" ] || export XDG_STATE_HOME=\"$HOME/.local/state/fumehood-nodes/$SLURMD_NODENAME\"\n");
}

static int script_make(struct slurm *s, const char *url, const char *config_file, uint64_t lease_ns,
		       struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "#!/bin/sh\n");
	put_environment(&b);
	put_state(&b);
	buffer_puts(&b, "exec ");
	put_quoted(&b, s->command);
	buffer_puts(&b, " worker --db ");
	put_quoted(&b, url);
	if (config_file) {
		char real[PATH_MAX];

		buffer_puts(&b, " --config ");
		put_quoted(&b, realpath(config_file, real) ? real : config_file);
	}
	if (lease_ns)
		buffer_printf(&b, " --lease %llums", (unsigned long long)(lease_ns / NSEC_PER_MSEC));
	buffer_puts(&b, " --take ");
	if (buffer_check(&b, err) < 0)
		return -ENOMEM;
	s->script = buffer_take(&b);
	return s->script ? 0 : error_memory(err);
}

int slurm_script(const struct slurm *s, const char *batch, char **ret, struct error *err)
{
	return text_print(ret, err, "%s%s\n", s->script, batch);
}

/* ---- the configuration ---- */

static int set_word(char ***list, const char *option, const json_t *value, struct error *err)
{
	_cleanup_free_ char *word = NULL;

	if (!value)
		return 0;
	return text_print(&word, err, "--%s=%s", option, json_string_value(value)) < 0 ||
			       strv_append(list, word, err) < 0
		       ? -1
		       : 0;
}

static int read_options(struct slurm *s, const json_t *config, struct error *err)
{
	static const char *const keys[] = {"partition", "account", "qos"};
	const json_t *options = json_object_get(config, "options");
	const json_t *word;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (set_word(&s->options, keys[i], json_object_get(config, keys[i]), err) < 0)
			return -1;
	json_array_foreach (options, i, word)
		if (strv_append(&s->options, json_string_value(word), err) < 0)
			return -1;
	return 0;
}

/* The directory on our PATH that has this command; NULL: none. */
static int find_on_path(const char *name, char **ret, struct error *err)
{
	const char *path = getenv("PATH");

	for (path = path && *path ? path : path_default; *path; path += *path == ':') {
		size_t size = strcspn(path, ":");
		_cleanup_free_ char *candidate = NULL;

		if (text_print(&candidate, err, "%.*s/%s", (int)size, path, name) < 0)
			return -1;
		if (*path == '/' && access(candidate, X_OK) == 0)
			return text_print(ret, err, "%.*s", (int)size, path);
		path += size;
	}
	return 0;
}

/* Where sbatch is: as configured, else on our PATH. */
static int find_bin(struct slurm *s, const json_t *config, struct error *err)
{
	const char *set = json_string_value(json_object_get(config, "bin"));

	if (set)
		return text_set(&s->bin, set, err);
	if (find_on_path("sbatch", &s->bin, err) < 0)
		return -1;
	return s->bin ? 0
		      : error_set(
				err, ERROR_REFUSED,
				"sbatch is not to be found on PATH: install Slurm's commands here, or say where they are in "
				"slurm: {bin: DIR}");
}

/* Ourselves, unless we are a library in somebody else's program. */
static int find_command(struct slurm *s, const json_t *config, struct error *err)
{
	const char *set = json_string_value(json_object_get(config, "command")), *slash;
	_cleanup_free_ char *directory = NULL;
	char self[PATH_MAX];
	ssize_t n;

	if (set)
		return text_set(&s->command, set, err);
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = 0;
	slash = strrchr(self, '/');
	if (slash && strcmp(slash + 1, "fumehood") == 0)
		return text_set(&s->command, self, err);
	if (find_on_path("fumehood", &directory, err) < 0)
		return -1;
	return directory
		       ? text_print(&s->command, err, "%s/fumehood", directory)
		       : error_set(
				 err, ERROR_REFUSED,
				 "the nodes need the command fumehood, and it is not on PATH here: say where they have it "
				 "in slurm: {command: PATH}");
}

static int add_env(struct slurm *s, const char *name, const char *value, struct error *err)
{
	_cleanup_free_ char *entry = NULL;

	if (!value || !*value)
		return 0;
	return text_print(&entry, err, "%s=%s", name, value) < 0 || strv_append(&s->env, entry, err) < 0 ? -1
													 : 0;
}

/* Nothing of ours but this: SBATCH_* would be options, and all the rest the job's. */
static int make_env(struct slurm *s, struct error *err)
{
	struct passwd entry, *found = NULL;
	char room[8192];
	const char *home = getenv("HOME");

	if (getpwuid_r(geteuid(), &entry, room, sizeof room, &found) != 0)
		found = NULL;
	return add_env(s, "PATH", path_default, err) < 0 ||
			       add_env(s, "HOME",
				       home    ? home
				       : found ? found->pw_dir
					       : NULL,
				       err) < 0 ||
			       add_env(s, "USER", found ? found->pw_name : NULL, err) < 0 ||
			       add_env(s, "LOGNAME", found ? found->pw_name : NULL, err) < 0 ||
			       add_env(s, "LANG", "C.UTF-8", err) < 0 ||
			       add_env(s, "SLURM_CONF", getenv("SLURM_CONF"), err) < 0
		       ? -1
		       : 0;
}

static int read_users(struct slurm *s, const struct config *c, struct error *err)
{
	if (!json_is_true(json_object_get(c->slurm, "submit_as_user")))
		return 0;
	if (!ability_is_root())
		return error_set(
			err, ERROR_REFUSED,
			"slurm.submit_as_user is for a dispatcher that is root: only root can submit as somebody else");
	s->users = c->queue_users ? json_incref(c->queue_users) : json_object();
	return s->users ? 0 : error_memory(err);
}

static int read_config(struct slurm *s, const struct config *c, struct error *err)
{
	const json_t *jobs = json_object_get(c->slurm, "jobs"), *poll = json_object_get(c->slurm, "poll");
	const char *log = json_string_value(json_object_get(c->slurm, "log"));
	char text[32];

	s->jobs = jobs ? (int)json_integer_value(jobs) : SLURM_JOBS_DEFAULT;
	s->poll_ns = poll_default_ns;
	if (json_is_string(poll))
		(void)duration_parse(json_string_value(poll), &s->poll_ns);
	else if (json_is_number(poll)) {
		snprintf(text, sizeof text, "%g", json_number_value(poll));
		(void)duration_parse(text, &s->poll_ns);
	}
	if ((log && text_set(&s->log, log, err) < 0) || read_options(s, c->slurm, err) < 0 ||
	    find_bin(s, c->slurm, err) < 0 || find_command(s, c->slurm, err) < 0 || make_env(s, err) < 0)
		return -1;
	return read_users(s, c, err);
}

int slurm_open(struct hood *h, const char *config_file, uint64_t lease_ns, struct slurm **ret,
	       struct error *err)
{
	struct slurm *s = calloc(1, sizeof *s);

	if (!s)
		return error_memory(err);
	if (slurm_check_ledger(hood_ledger_url(h), err) < 0 || read_config(s, hood_config(h), err) < 0 ||
	    script_make(s, hood_ledger_url(h), config_file, lease_ns, err) < 0 ||
	    slurm_ask_site(s, err) < 0) {
		slurm_close(s);
		return -1;
	}
	*ret = s;
	return 0;
}

/* ---- an analysis's options ---- */

static int add_number(char ***list, const char *option, uint64_t n, const char *unit, struct error *err)
{
	char word[64];

	snprintf(word, sizeof word, "%s=%llu%s", option, (unsigned long long)n, unit);
	return strv_append(list, word, err);
}

/* So large that ours is reached first; whole MiB, whole CPUs, whole minutes. */
static int add_limits(const struct limits *l, char ***list, struct error *err)
{
	uint64_t memory = l->value[LIMIT_MEMORY], cpus = l->value[LIMIT_CPUS], wall = l->value[LIMIT_WALL];
	uint64_t minute = 60 * NSEC_PER_SEC, grace = l->value[LIMIT_GRACE];

	if (memory != LIMIT_NONE && memory < INT64_MAX &&
	    add_number(list, "--mem", (memory + SLURM_MEMORY_OVERHEAD + (1 << 20) - 1) >> 20, "M", err) < 0)
		return -1;
	if (cpus != LIMIT_NONE && add_number(list, "--cpus-per-task", (cpus + 999) / 1000, "", err) < 0)
		return -1;
	if (wall != LIMIT_NONE && wall < INT64_MAX && grace < INT64_MAX / 4 &&
	    add_number(list, "--time", (wall + grace + SLURM_TIME_OVERHEAD + minute - 1) / minute, "", err) <
		    0)
		return -1;
	return 0;
}

static int add_user(const struct slurm *s, const struct job *job, char ***list, struct error *err)
{
	const char *user =
		s->users && job->owner ? json_string_value(json_object_get(s->users, job->owner)) : NULL;
	_cleanup_identity_ struct identity who = {0};

	if (!s->users)
		return 0;
	if (!user)
		return error_set(
			err, ERROR_REFUSED,
			"it cannot be submitted to Slurm: this dispatcher submits as its owner's user, and queue.users maps '%s' "
			"to none; add it there",
			SHOWN(128, job->owner ? job->owner : ""));
	if (identity_find(user, &who, err) < 0)
		return error_prefix(err, -1, "it cannot be submitted to Slurm as its owner's user");
	/* Without a group it would have root's. */
	return add_number(list, "--uid", who.uid, "", err) < 0 ||
			       add_number(list, "--gid", who.gid, "", err) < 0
		       ? -1
		       : 0;
}

/* The last word of an option holds: the site's over what its limits make, the request's over the site's. */
int slurm_options(const struct slurm *s, const struct config *c, const struct job *job, char ***ret,
		  struct error *err)
{
	_cleanup_request_ struct request r;
	_cleanup_strv_ char **list = NULL;
	struct limits limits;
	struct error ignored = ERROR_INIT;

	request_init(&r);
	if (job->unreadable)
		return error_set(err, ERROR_REFUSED, "what was submitted cannot be read: %s",
				 job->unreadable);
	if (request_from_json(&r, job->request, err) < 0 || request_check(&r, err) < 0)
		return -1;
	limits = r.limits;
	limits_inherit(&limits, &c->defaults.limits);
	limits_built_in(&limits);
	/* Above what the site allows: the node says so. */
	(void)limits_cap(&limits, &c->maximum, &ignored);
	if (add_limits(&limits, &list, err) < 0 || add_user(s, job, &list, err) < 0)
		return -1;
	for (size_t i = 0; s->options && s->options[i]; i++)
		if (strv_append(&list, s->options[i], err) < 0)
			return -1;
	for (size_t i = 0; r.slurm && r.slurm[i]; i++) {
		_cleanup_free_ char *word = NULL;

		if (text_print(&word, err, "--%s", r.slurm[i]) < 0 || strv_append(&list, word, err) < 0)
			return -1;
	}
	*ret = TAKE_PTR(list);
	return 0;
}
