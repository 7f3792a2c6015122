/*
 * A request as a worker can run it when its submitter is gone: paths absolute, the values of environment variables filled
 * in, the files to stage listed. What is the worker's to decide (limits of its site, where its programs lie) is left.
 */
#include "private.h"
#include "caller.h"
#include "field.h"
#include "file.h"
#include "program.h"
#include "rights.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int make_absolute(char **path, const char *directory, struct error *err)
{
	char *full;

	if (!*path || **path == '/')
		return 0;
	full = path_join(directory, *path);
	if (!full)
		return error_memory(err);
	free(*path);
	*path = full;
	return 0;
}

/* ./data and ./docs are the submitter's, where he has them and neither he nor the site names others. */
static int choose_input(char **field, const char *site, const char *name, const char *directory,
			struct error *err)
{
	_cleanup_free_ char *path = NULL;
	char real[PATH_MAX];
	struct stat st;
	int r;

	if (*field || site)
		return make_absolute(field, directory, err);
	path = path_join(directory, name);
	if (!path)
		return error_memory(err);
	if (!realpath(path, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	r = default_check(directory, name, real, err);
	if (r < 0)
		return r;
	*field = TAKE_PTR(path);
	return 0;
}

/* "NAME" becomes "NAME=VALUE" with the submitter's value, or nothing if he has none. */
static int fill_env(struct request *r, struct error *err)
{
	_cleanup_strv_ char **filled = NULL;
	int e;

	for (size_t i = 0; r->env && r->env[i]; i++) {
		const char *value = strchr(r->env[i], '=') ? NULL : getenv(r->env[i]);
		_cleanup_free_ char *entry = NULL;

		if (!strchr(r->env[i], '=') && !value)
			continue;
		if ((e = text_print(&entry, err, "%s%s%s", r->env[i], value ? "=" : "", value ? value : "")) <
			    0 ||
		    (e = strv_append(&filled, entry, err)) < 0)
			return e;
	}
	strv_free(r->env);
	r->env = TAKE_PTR(filled);
	return 0;
}

static int resolve_paths(const struct hood *h, struct request *r, struct error *err)
{
	const struct request *site = &h->config.defaults;
	int e;

	if ((e = choose_input(&r->data, site->data, "data", r->directory, err)) < 0 ||
	    (e = choose_input(&r->docs, site->docs, "docs", r->directory, err)) < 0)
		return e;
	for (size_t i = 0; i < r->n_ro; i++)
		if ((e = make_absolute(&r->ro[i].from, r->directory, err)) < 0)
			return e;
	e = make_absolute(&r->into, r->directory, err);
	return e < 0 ? e : fill_env(r, err);
}

/* Just enough of a plan to tell which files are staged. */
static int sketch_plan(const struct hood *h, const struct request *r, struct plan *plan, struct error *err)
{
	_cleanup_program_ struct program p = {0};
	const char *search = getenv("PATH");
	char real[PATH_MAX];
	int e = program_find(h, r->command[0], r->directory, search ? search : "", &p, err);

	if (e < 0 || (e = plan_resolve_limits(h, r, plan, err)) < 0)
		return e;
	plan->data = r->data && realpath(r->data, real) ? strdup(real) : NULL;
	plan->docs = r->docs && realpath(r->docs, real) ? strdup(real) : NULL;
	plan->workspace = strdup("/workspace");
	plan->program = p.relative ? path_join("/workspace", p.relative) : strdup(r->command[0]);
	return plan->workspace && plan->program ? 0 : error_memory(err);
}

static int list_inputs(const struct plan *plan, bool for_post, struct inputs *inputs, struct error *err)
{
	for (size_t i = 0; i < plan->n_stages; i++) {
		const struct stage *stage = &plan->stages[i];
		struct input input = {.path = stage->as, .source = stage->source, .for_post = for_post};
		const struct input *before = inputs_find(inputs, stage->as);
		_cleanup_close_ int fd = -1;
		struct stat st;
		int e;

		if (before)
			return error_set(err, ERROR_USAGE,
					 "cannot stage '%s' as '%s': another input has that name already",
					 stage->source, stage->as);
		fd = file_open_nolinks(AT_FDCWD, stage->source, O_PATH | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &st) < 0)
			return error_system(err, fd < 0 ? -fd : errno, "cannot look at input '%s'",
					    stage->source);
		if (!S_ISREG(st.st_mode) || st.st_dev != stage->device || st.st_ino != stage->inode)
			return error_set(err, ERROR_REFUSED,
					 "input '%s' is not the file any more that it was", stage->source);
		input.device = stage->device;
		input.inode = stage->inode;
		input.size = (uint64_t)st.st_size;
		input.mode = st.st_mode & 0111 ? 0700 : 0600;
		e = inputs_add(inputs, &input, err);
		if (e < 0)
			return e;
	}
	return 0;
}

/* The post-process's own files, as those of the analysis: the worker never looks for them where he was. */
static int list_post_inputs(const struct hood *h, const struct request *r, struct inputs *ret,
			    struct error *err)
{
	_cleanup_request_ struct request post;
	_cleanup_plan_ struct plan plan;
	_cleanup_(inputs_done) struct inputs files = {0};
	int e;

	request_init(&post);
	plan_init(&plan);
	if (!r->post_process)
		return 0;
	if ((e = command_split(r->post_process, &post.command, err)) < 0 ||
	    (e = text_set(&post.directory, r->directory, err)) < 0)
		return e;
	if ((e = sketch_plan(h, &post, &plan, err)) < 0 || (e = plan_add_stages(h, &post, &plan, err)) < 0 ||
	    (e = list_inputs(&plan, true, &files, err)) < 0)
		return error_prefix(err, e, "post-process");
	for (size_t i = 0; i < files.count; i++)
		if ((e = inputs_add(ret, &files.list[i], err)) < 0)
			return error_prefix(err, e, "post-process");
	return 0;
}

/* What somebody asked for must be free on a host. A default that nobody asked for is a fence, not a need. */
static uint64_t need(const struct limits *l, enum limit which)
{
	return l->origin[which] >= LIMIT_SITE && l->value[which] != LIMIT_NONE ? l->value[which] : 0;
}

static void resolve_needs(const struct plan *plan, struct job *job)
{
	job->memory_bytes = need(&plan->limits, LIMIT_MEMORY);
	job->cpus_milli = need(&plan->limits, LIMIT_CPUS);
}

static int job_fill(struct hood *h, struct request *r, struct job *job, struct error *err)
{
	/* Tried again: its files are in the ledger, its caller was looked at. */
	bool is_stored = field_is_set(field_by_key("shown", FIELD_IN_STORE), r);
	_cleanup_plan_ struct plan plan;
	char made[ID_ROOM];
	int e;

	plan_init(&plan);
	if (!r->directory && (e = text_set(&r->directory, h->directory, err)) < 0)
		return e;
	e = request_check(r, err);
	if (e < 0)
		return e;
	if (r->stdin_open)
		return error_set(
			err, ERROR_REFUSED,
			"a queued analysis has no standard input, its submitter may be gone: put it into a file, and name that");
	if (r->terminal)
		return error_set(
			err, ERROR_REFUSED,
			"a queued analysis has no terminal, since nobody looks at it: `fumehood run -t` gives it one");
	if ((e = resolve_paths(h, r, err)) < 0 || (e = sketch_plan(h, r, &plan, err)) < 0 ||
	    (e = plan_add_stages(h, r, &plan, err)) < 0 || (e = flows_place(r, &plan, err)) < 0 ||
	    (!is_stored && (e = plan_add_hints(r, &plan, err)) < 0) ||
	    (e = caller_look(h, r, &plan, err)) < 0 ||
	    (e = list_inputs(&plan, false, &job->inputs, err)) < 0 ||
	    (e = list_post_inputs(h, r, &job->inputs, err)) < 0 ||
	    (!r->id && ((e = id_make(made, err)) < 0 || (e = text_set(&r->id, made, err)) < 0)))
		return e;
	if (rights_lack_post(h, r->post_process))
		plan_note(
			&plan,
			"a worker of another user refuses --post-process '%s', unless its configuration lists it in "
			"queue: {allow: {post_process: …}}, as the one here does not",
			SHOWN(256, r->post_process));
	resolve_needs(&plan, job);
	job->notes = TAKE_PTR(plan.notes);
	/* The files are in the job now. */
	request_forget_inputs(r);
	r->no_stage = true;
	snprintf(job->id, sizeof job->id, "%s", r->id);
	job->again = r->again;
	job->request = request_to_json(r);
	return job->request ? 0 : error_memory(err);
}

int hood_job(struct hood *h, const struct request *asked, struct job *ret, struct error *err)
{
	_cleanup_request_ struct request r;
	_cleanup_job_ struct job job;
	int e;

	request_init(&r);
	job_init(&job);
	e = request_inherit(&r, asked, err);
	if (e < 0)
		return e;
	e = job_fill(h, &r, &job, err);
	if (e < 0)
		return e;
	*ret = job;
	job_init(&job);
	return 0;
}
