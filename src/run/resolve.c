/*
 * Request → plan: every default resolved against configuration and host. Looks, touches nothing.
 */
#include "private.h"
#include "ability.h"
#include "caller.h"
#include "file.h"
#include "post_scene.h"
#include "program.h"
#include "rights.h"
#include "sandbox.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DISK_BLOCK = 4096, DISK_FILES_MIN = 1024 };
static const char default_search[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

int plan_resolve_limits(const struct hood *h, const struct request *r, struct plan *plan, struct error *err)
{
	int e;

	plan->limits = r->limits;
	/* Those of the workspace that is held for it. */
	if (r->id && (e = held_limits_load(h->state_dir, r->id, &plan->limits, err)) < 0)
		return e;
	limits_inherit(&plan->limits, &h->config.defaults.limits);
	limits_built_in(&plan->limits);
	return limits_cap(&plan->limits, &h->config.maximum, err);
}

/* Without namespaces no file system of its own can be mounted: what was asked for is refused, what the site sets is watched, and that
 * is said once. */
static int check_bare_disk(struct plan *plan, struct error *err)
{
	const enum limit disk[] = {LIMIT_DISK, LIMIT_FILES};
	char watched[ARRAY_SIZE(disk) * (LIMIT_TEXT_SIZE + 16)] = "", text[LIMIT_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(disk); i++) {
		uint64_t value = plan->limits.value[disk[i]];
		const char *name = limit_table[disk[i]].name;
		size_t n = strlen(watched);

		if (plan->limits.origin[disk[i]] < LIMIT_SITE || value == LIMIT_NONE)
			continue;
		limit_format(disk[i], value, text);
		if (plan->limits.origin[disk[i]] == LIMIT_ASKED && !plan->allow_unlimited)
			return error_set(
				err, ERROR_REFUSED,
				"the %s limit of %s cannot be held with --strength landlock: without a mount namespace "
				"there is no disk of its own, and a deleted file that is still open is not seen; use "
				"--strength full, or pass --allow-unlimited to have it watched",
				name, text);
		snprintf(watched + n, sizeof watched - n, "%s%s %s", n ? ", " : "", name, text);
	}
	if (watched[0])
		plan_note(
			plan,
			"not held, only watched: %s: with --strength landlock there is no disk of its own; what is written "
			"between two looks may exceed it, and a deleted file that is still open is not seen",
			watched);
	return 0;
}

/* Without namespaces: Landlock must be able to hold what it alone holds then. */
static int check_bare(struct plan *plan, struct error *err)
{
	int abi = plan->strength == STRENGTH_LANDLOCK ? sandbox_landlock_abi() : SANDBOX_BARE_ABI;

	if (abi < SANDBOX_BARE_ABI)
		return error_set(
			err, ERROR_REFUSED,
			"--strength landlock needs Landlock of ABI %d (Linux 6.2, or a kernel that has it backported), and "
			"this kernel has %s%.0d: boot a newer one with landlock in lsm=, or use --strength full",
			SANDBOX_BARE_ABI, abi ? "ABI " : "none", abi);
	if (plan->strength == STRENGTH_LANDLOCK && plan->terminal)
		return error_set(
			err, ERROR_REFUSED,
			"a terminal (-t, or a shell) cannot be had with --strength landlock: without a mount namespace there is "
			"none of the command's own; use --strength full, or leave out -t; `fumehood shell ID -- CMD "
			"</dev/null` runs one command in a kept workspace");
	return plan->strength == STRENGTH_LANDLOCK ? check_bare_disk(plan, err) : 0;
}

/* A disk limit that somebody set is held exactly, by a file system of that size; the built-in one is only watched. */
static bool wants_disk(const struct limits *l)
{
	return (l->origin[LIMIT_DISK] >= LIMIT_SITE && l->value[LIMIT_DISK] != LIMIT_NONE) ||
	       (l->origin[LIMIT_FILES] >= LIMIT_SITE && l->value[LIMIT_FILES] != LIMIT_NONE);
}

/* Each file takes room on a disk even if it is empty: as many as there are blocks, unless somebody asked for others. */
static void fit_files(struct limits *l)
{
	uint64_t most = l->value[LIMIT_DISK] / DISK_BLOCK;

	if (most < DISK_FILES_MIN)
		most = DISK_FILES_MIN;
	if (l->origin[LIMIT_FILES] == LIMIT_BUILT_IN && l->value[LIMIT_FILES] > most)
		l->value[LIMIT_FILES] = most;
}

/* Threads that numerical libraries start by themselves: as many as there are CPUs for this analysis. */
static unsigned thread_count(const struct limits *l)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = online > 0 ? (unsigned)online : 1;
	uint64_t limit = l->value[LIMIT_CPUS];

	if (limit != LIMIT_NONE && (limit + 999) / 1000 < n)
		n = (unsigned)((limit + 999) / 1000);
	return n > 0 ? n : 1;
}

static char *search_inside(const struct plan *plan)
{
	_cleanup_buffer_ struct buffer b = {0};

	for (size_t i = 0; plan->prefixes && plan->prefixes[i]; i++) {
		_cleanup_free_ char *bin = path_join(plan->prefixes[i], "bin");

		if (!bin || (access(bin, F_OK) == 0 && buffer_printf(&b, "%s:", bin) < 0))
			return NULL;
	}
	return buffer_puts(&b, default_search) < 0 ? NULL : buffer_take(&b);
}

/* What the caller's own terminal is called: it is what shows the other one. */
static const char *terminal_kind(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._";
	const char *kind = getenv("TERM");

	return kind && *kind && strspn(kind, letters) == strlen(kind) ? kind : "xterm";
}

/* A small allow-list, then what was asked for. */
static int resolve_env(const struct request *r, struct plan *plan, struct error *err)
{
	const char *lang = getenv("LANG"), *tz = getenv("TZ");
	bool bare = plan->strength == STRENGTH_LANDLOCK;
	_cleanup_free_ char *search = search_inside(plan),
			    *tmp = bare ? path_join(plan->scratch, SCRATCH_TMP) : strdup("/tmp"),
			    *cache = tmp ? path_join(tmp, ".cache") : NULL,
			    *matplotlib = tmp ? path_join(tmp, ".matplotlib") : NULL;
	char threads[16], attempt[16];
	const struct {
		const char *name, *value;
	} given[] = {
		{"PATH", search},
		{"HOME", plan->workspace},
		{"TMPDIR", tmp},
		{"XDG_CACHE_HOME", cache},
		{"MPLCONFIGDIR", matplotlib},
		{"MPLBACKEND", "Agg"},
		{"LANG", lang && *lang ? lang : "C.UTF-8"},
		{"TZ", tz && *tz ? tz : NULL},
		{"USER", "analysis"},
		{"LOGNAME", "analysis"},
		{"OMP_NUM_THREADS", threads},
		{"OPENBLAS_NUM_THREADS", threads},
		{"MKL_NUM_THREADS", threads},
		{"NUMEXPR_NUM_THREADS", threads},
		{"FUMEHOOD_ID", plan->id},
		{"FUMEHOOD_ATTEMPT", attempt},
		{"TERM", r->terminal ? terminal_kind() : NULL},
	};

	if (!search || !tmp || !cache || !matplotlib)
		return error_memory(err);
	snprintf(threads, sizeof threads, "%u", thread_count(&plan->limits));
	snprintf(attempt, sizeof attempt, "%d", plan->attempt);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i].value)
			plan_set_env(plan, given[i].name, given[i].value);
	for (size_t i = 0; r->env && r->env[i]; i++) {
		_cleanup_free_ char *name = strndup(r->env[i], strcspn(r->env[i], "="));
		const char *value = strchr(r->env[i], '=');

		if (!name)
			return error_memory(err);
		value = value ? value + 1 : getenv(name);
		if (value)
			plan_set_env(plan, name, value);
	}
	return 0;
}

static bool is_shown(const struct plan *plan, const struct request *r, const char *path)
{
	if (path_is_system(path) || (plan->data && path_is_below(path, plan->data)) ||
	    (plan->docs && path_is_below(path, plan->docs)) || path_is_below(path, plan->workspace))
		return true;
	for (size_t i = 0; plan->prefixes && plan->prefixes[i]; i++)
		if (path_is_below(path, plan->prefixes[i]))
			return true;
	for (size_t i = 0; i < r->n_ro; i++)
		if (path_is_below(path, r->ro[i].to ? r->ro[i].to : r->ro[i].from))
			return true;
	return false;
}

const char *program_search(void)
{
	const char *search = getenv("PATH");

	return search && *search ? search : default_search;
}

static int program_copy(const struct program *from, struct program *to, struct error *err)
{
	int r;

	to->why = from->why;
	if ((r = text_set(&to->path, from->path, err)) < 0 ||
	    (r = text_set(&to->relative, from->relative, err)) < 0 ||
	    (r = text_set(&to->user_base, from->user_base, err)) < 0 ||
	    (r = text_set(&to->note, from->note, err)) < 0)
		return r;
	to->prefixes = strv_copy(from->prefixes);
	return to->prefixes ? 0 : error_memory(err);
}

/* What is executed, as a path inside. What is not found is left to the exec: 127 is the analysis's own failure. granted: as
 * its user finds it; then we do not look ourselves, since even whether it is there is not for everybody to know. */
static int resolve_program(const struct hood *h, const struct request *r,
			   const struct granted_program *granted, const char *search, struct plan *plan,
			   struct error *err)
{
	_cleanup_program_ struct program p = {0};
	int e = granted ? program_copy(&granted->found, &p, err)
			: program_find(h, r->command[0], r->directory, search, &p, err);

	if (e < 0)
		return e;
	plan->prefixes = TAKE_PTR(p.prefixes);
	if (p.note)
		plan_note(plan, "%s", p.note);
	if (p.user_base)
		plan_set_env(plan, "PYTHONUSERBASE", p.user_base);
	plan->command = strv_copy(r->command);
	if (p.path && !is_shown(plan, r, p.path) && (granted || access(p.path, F_OK) == 0)) {
		char room[PATH_MAX], *slash;
		const char *real = granted ? granted->real : realpath(p.path, room);

		/* Its directory, or what its links lead to, may be visible under the real name. Of an environment that is
		 * not shown that would be another program: Python without its packages. */
		if (p.why.message[0] || !real || !is_shown(plan, r, real)) {
			slash = strrchr(p.path, '/');
			return error_set(
				err, ERROR_REFUSED,
				"the program '%s' is not visible to the analysis%s%s: add --ro %.*s (read-only)",
				p.path, p.why.message[0] ? ", since " : "", p.why.message,
				slash == p.path ? 1 : (int)(slash - p.path), p.path);
		}
		plan->program = strdup(real);
	} else if (p.path) {
		plan->program = strdup(p.path);
	} else if (p.relative) {
		plan->program = path_join(plan->workspace, p.relative);
	} else {
		plan->program = strdup(r->command[0]);
	}
	if (!plan->program || !plan->command)
		return error_memory(err);
	/* Interpreters find their prefix by argv[0]: one that was given by a path must name the real place. */
	if (p.path && strchr(plan->command[0], '/')) {
		free(plan->command[0]);
		plan->command[0] = strdup(plan->program);
	}
	return plan->command[0] ? 0 : error_memory(err);
}

static int resolve_identity(struct hood *h, const struct request *r, struct plan *plan, struct error *err)
{
	char scratch[NAME_MAX + 1];
	int e;

	if (r->id)
		snprintf(plan->id, sizeof plan->id, "%s", r->id);
	if ((!r->id && (e = id_make(plan->id, err)) < 0) ||
	    (!plan->token[0] && (e = token_make(plan->token, err)) < 0))
		return e;
	workspace_scratch_name(h->config.workspace_prefix, plan->id, plan->token, scratch, sizeof scratch);
	plan->scratch = path_join(h->config.workspace_root, scratch);
	if (!plan->scratch)
		return error_memory(err);
	return text_print(&plan->workspace, err, "%s/%s%s", h->config.workspace_root,
			  h->config.workspace_prefix, plan->id);
}

int plan_resolve(struct hood *h, const struct request *asked, struct rights *rights, struct plan *plan,
		 struct error *err)
{
	bool own_data = asked->data, own_docs = asked->docs, own_ro = asked->n_ro > 0;
	bool granted = rights && rights->is_bound, queued = rights && rights->is_queued;
	_cleanup_free_ char *search = NULL;
	_cleanup_request_ struct request r;
	int e;

	request_init(&r);
	if ((e = request_inherit(&r, asked, err)) < 0 || (e = request_check(&r, err)) < 0 ||
	    (rights && (e = rights_apply(h, rights, &r, err)) < 0) ||
	    (e = request_inherit(&r, &h->config.defaults, err)) < 0 ||
	    (!r.directory && (e = text_set(&r.directory, h->directory, err)) < 0) ||
	    (e = request_check(&r, err)) < 0 || (e = resolve_identity(h, &r, plan, err)) < 0 ||
	    (e = plan_resolve_limits(h, &r, plan, err)) < 0)
		return e;
	plan->strength = r.strength;
	plan->allow_unlimited = r.allow_unlimited;
	plan->terminal = r.terminal;
	if ((e = check_bare(plan, err)) < 0 ||
	    (e = resolve_inputs(h, &r, rights, own_data, own_docs, own_ro, plan, err)) < 0 ||
	    (!queued && (e = caller_look(h, &r, plan, err)) < 0))
		return e;
	/* Here the caller's own PATH says which comes first; elsewhere what he had does. */
	search = queued ? caller_search(&r) : strdup(program_search());
	if (!search)
		return error_memory(err);
	if ((e = resolve_program(h, &r, granted ? &rights->program : NULL, search, plan, err)) < 0 ||
	    (e = caller_show(h, &r, rights, plan, err)) < 0 || (e = resolve_env(&r, plan, err)) < 0 ||
	    (e = plan_add_stages(h, &r, plan, err)) < 0 || (e = flows_place(&r, plan, err)) < 0 ||
	    (e = flows_resolve(h, &r, rights, plan, err)) < 0)
		return e;
	plan->use_userns_first = plan->strength == STRENGTH_FULL && !ability_is_root();
	plan->own_disk = plan->strength == STRENGTH_FULL && wants_disk(&plan->limits);
	if (plan->own_disk)
		fit_files(&plan->limits);
	plan->stdin_open = r.stdin_open;
	plan->explain = r.explain;
	plan->keep = r.keep == KEEP_UNSET ? KEEP_NEVER : r.keep;
	plan->outputs = strv_copy(r.outputs);
	plan->optional_outputs = strv_copy(r.optional_outputs);
	plan->into = r.into ? path_from(r.directory, r.into) : NULL;
	plan->into_force = r.force;
	plan->ledger = ledger_url_redacted(h->ledger_url);
	plan->submitter_directory = strdup(r.directory);
	if (!plan->outputs || !plan->optional_outputs || (r.into && !plan->into) || !plan->ledger ||
	    !plan->submitter_directory)
		return error_memory(err);
	e = plan_add_scene(h, &r, rights, plan, err);
	return e < 0 || queued ? e : plan_add_hints(&r, plan, err);
}

/* Words without a shell. */
int command_split(const char *text, char ***ret, struct error *err)
{
	int e = words_split(text, ret, err);

	if (e == -EINVAL || (e == 0 && !(*ret)[0]))
		return error_set(err, ERROR_USAGE,
				 "the command '%s' makes no sense: a quote is not closed, or it is empty",
				 text);
	return e;
}

void request_forget_inputs(struct request *r)
{
	for (size_t i = 0; i < r->n_inputs; i++) {
		free(r->inputs[i].from);
		free(r->inputs[i].to);
	}
	r->n_inputs = 0;
}

/* What the site's defaults show to every analysis it sees too; inputs are the analysis's own. */
static int post_request(struct hood *h, const struct post_order *o, struct request *r, struct error *err)
{
	int e;

	if ((e = command_split(o->command, &r->command, err)) < 0 ||
	    (e = text_set(&r->directory, o->directory, err)) < 0 ||
	    (e = request_inherit(r, &h->config.defaults, err)) < 0)
		return e;
	request_forget_inputs(r);
	r->no_stage = o->is_stored;
	r->limits = h->config.post_process_limits;
	return 0;
}

int plan_resolve_post(struct hood *h, const struct post_order *o, struct plan *plan, struct error *err)
{
	_cleanup_request_ struct request r;
	int e;

	request_init(&r);
	if ((e = post_request(h, o, &r, err)) < 0 || (e = token_make(plan->token, err)) < 0)
		return e;
	snprintf(plan->id, sizeof plan->id, "%s", o->id);
	plan->kind = PLAN_POST_PROCESS;
	plan->attempt = o->attempt;
	plan->strength = o->strength == STRENGTH_LANDLOCK ? o->strength : r.strength;
	plan->use_userns_first = plan->strength == STRENGTH_FULL && !ability_is_root();
	plan->allow_unlimited = r.allow_unlimited;
	if ((e = text_set(&plan->scratch, o->scratch, err)) < 0 || (e = post_scene_enter(plan, err)) < 0 ||
	    (e = text_set(&plan->submitter_directory, o->directory, err)) < 0 ||
	    (e = plan_resolve_limits(h, &r, plan, err)) < 0 || (e = resolve_ro(h, &r, err)) < 0 ||
	    (e = resolve_program(h, &r, NULL, program_search(), plan, err)) < 0 ||
	    (e = resolve_env(&r, plan, err)) < 0 || (e = plan_add_stages(h, &r, plan, err)) < 0)
		return e;
	return plan_add_scene(h, &r, NULL, plan, err);
}

/* Its own search path, so that a name means what it meant there. */
static const char *search_of(const struct plan *like)
{
	for (char **e = like->env; e && *e; e++)
		if (strncmp(*e, "PATH=", 5) == 0)
			return *e + 5;
	return default_search;
}

/* What lies in the workspace was staged then: nothing is now. */
static void forget_staged(struct request *r)
{
	request_forget_inputs(r);
	strv_free(TAKE_PTR(r->from));
	r->no_stage = true;
}

static int show_same_prefixes(const struct plan *like, struct plan *plan, struct error *err)
{
	int e = 0;

	for (char **p = like->prefixes; e == 0 && p && *p; p++) {
		bool known = false;

		for (char **q = plan->prefixes; q && *q; q++)
			known |= strcmp(*p, *q) == 0;
		e = known ? 0 : strv_append(&plan->prefixes, *p, err);
	}
	return e;
}

int plan_resolve_shell(struct hood *h, struct request *r, const struct plan *like, struct plan *plan,
		       struct error *err)
{
	int e;

	plan->kind = PLAN_SHELL;
	plan->attempt = like->attempt;
	if ((e = text_set(&r->data, like->data, err)) < 0 || (e = text_set(&r->docs, like->docs, err)) < 0 ||
	    (e = request_inherit(r, &h->config.defaults, err)) < 0)
		return e;
	forget_staged(r);
	if ((e = request_check(r, err)) < 0 || (e = resolve_identity(h, r, plan, err)) < 0 ||
	    (e = plan_resolve_limits(h, r, plan, err)) < 0)
		return e;
	plan->strength = r->strength;
	plan->allow_unlimited = r->allow_unlimited;
	plan->terminal = r->terminal;
	plan->stdin_open = r->stdin_open;
	plan->use_userns_first = plan->strength == STRENGTH_FULL && !ability_is_root();
	plan->env = strv_copy(like->env);
	plan->submitter_directory = strdup(r->directory);
	if (!plan->env || !plan->submitter_directory)
		return error_memory(err);
	if ((plan->terminal && (e = check_bare(plan, err)) < 0) ||
	    (e = resolve_inputs(h, r, NULL, like->data != NULL, like->docs != NULL, true, plan, err)) < 0 ||
	    (e = resolve_program(h, r, NULL, search_of(like), plan, err)) < 0 ||
	    (e = show_same_prefixes(like, plan, err)) < 0)
		return e;
	if (plan->terminal)
		plan_set_env(plan, "TERM", terminal_kind());
	return plan_add_scene(h, r, NULL, plan, err);
}
