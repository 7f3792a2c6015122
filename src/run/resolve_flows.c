/*
 * --from: outputs of other analyses as inputs of this one. They are copied out of the ledger, which verifies them, into
 * directories of the workspace in which is nothing else, and which the scene shows read-only; so they are inert files,
 * counted like all that is staged, and no outputs of this one.
 */
#include "private.h"
#include "file.h"
#include "flow.h"
#include "lineage.h"
#include "output_glob.h"
#include "rights.h"
#include "text.h"

#include <fcntl.h>
#include <string.h>

enum { FLOW_FILES_MAX = 100000, FLOW_ROOTS_MAX = 100 };

/* ---- where ---- */

static bool overlaps(const char *a, const char *b)
{
	return path_is_below(a, b) || path_is_below(b, a);
}

/* Outer ones only: what lies in one that is there is read-only with it. */
static int add_root(struct plan *plan, const char *root, struct error *err)
{
	size_t n = 0;

	for (char **p = plan->flow_roots; p && *p; p++)
		if (path_is_below(root, *p))
			return 0;
	for (char **p = plan->flow_roots; p && *p; p++) {
		if (path_is_below(*p, root))
			free(*p);
		else
			plan->flow_roots[n++] = *p;
	}
	if (plan->flow_roots)
		plan->flow_roots[n] = NULL;
	if (n >= FLOW_ROOTS_MAX)
		return error_set(err, ERROR_REFUSED,
				 "--from wants more than %d directories: put several below the same one",
				 FLOW_ROOTS_MAX);
	return strv_append(&plan->flow_roots, root, err);
}

static int refuse_taken(const char *root, const char *option, const char *name, struct error *err)
{
	return error_set(
		err, ERROR_REFUSED,
		"--from cannot put outputs at '%s': %s is there ('%s'); give another AS, --from ID:GLOB:AS",
		SHOWN(256, root), option, SHOWN(256, name));
}

/* Nothing of anybody else's lies in a root, or it would be read-only as well. */
static int check_root(const struct request *r, const struct plan *plan, const char *root, struct error *err)
{
	if (plan->data && overlaps(root, "data"))
		return refuse_taken(root, "--data", "data", err);
	if (plan->docs && overlaps(root, "docs"))
		return refuse_taken(root, "--docs", "docs", err);
	for (size_t i = 0; i < r->n_queries; i++)
		if (overlaps(root, r->queries[i].from))
			return refuse_taken(root, "--query", r->queries[i].from, err);
	for (size_t i = 0; i < plan->n_stages; i++)
		if (overlaps(root, plan->stages[i].as))
			return refuse_taken(root, "a staged input", plan->stages[i].as, err);
	return 0;
}

int flows_place(const struct request *r, struct plan *plan, struct error *err)
{
	int e;

	for (size_t i = 0; r->from && r->from[i]; i++) {
		_cleanup_flow_ struct flow f = {0};

		if ((e = flow_parse(r->from[i], &f, err)) < 0 || (e = add_root(plan, flow_root(&f), err)) < 0)
			return e;
	}
	for (char **p = plan->flow_roots; p && *p; p++)
		if ((e = check_root(r, plan, *p, err)) < 0)
			return e;
	return 0;
}

/* ---- what ---- */

struct resolving {
	struct ledger *ledger;
	const char *owner; /* whose they must be; NULL: the caller sees what he may */
	struct plan *plan;
	const struct flow *flow;
};

static int add_file(struct resolving *v, const struct output *o, const char *id, int number, const char *as,
		    struct error *err)
{
	_cleanup_free_ char *path = path_join(as, o->path);
	struct inputs *files = &v->plan->flow_files;
	struct input in = {.path = path,
			   .source = o->path,
			   .size = o->size,
			   .mode = 0444,
			   .from_analysis = (char *)id,
			   .from_attempt = number};
	const struct input *before;

	if (!path)
		return error_memory(err);
	before = inputs_find(files, path);
	if (before)
		return error_set(
			err, ERROR_REFUSED,
			"--from would put '%s' there twice, from '%s' and from '%s': give each another "
			"AS, --from ID:GLOB:AS",
			SHOWN(256, path), before->from_analysis, id);
	if (files->count >= FLOW_FILES_MAX)
		return error_set(err, ERROR_REFUSED,
				 "--from brings more than %d files: choose some with --from ID:GLOB",
				 FLOW_FILES_MAX);
	memcpy(in.sha256, o->sha256, sizeof in.sha256);
	return inputs_add(files, &in, err);
}

/* Those of one attempt that are wanted, below as. */
static int add_outputs(struct resolving *v, const char *id, int number, const char *as, struct error *err)
{
	_cleanup_manifest_ struct manifest m = {0};
	uint64_t files = 0, bytes = 0;
	int e = ledger_load_outputs(v->ledger, id, number, &m, err);

	if (e < 0)
		return e;
	for (size_t i = 0; i < m.n_outputs; i++) {
		const struct output *o = &m.outputs[i];

		if (v->flow->glob && !output_glob_match(v->flow->glob, o->path))
			continue;
		e = add_file(v, o, id, number, as, err);
		if (e < 0)
			return e;
		files++;
		bytes += o->size;
	}
	if (files)
		plan_add_flow(v->plan, &(struct plan_flow){(char *)id, number, (char *)as, files, bytes});
	return 0;
}

static int refuse_none(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_REFUSED,
		"--from '%s' has nothing to give: no attempt of it has succeeded yet, or it is not yours",
		id);
}

static int add_tasks(struct resolving *v, const struct successes *tasks, struct error *err)
{
	const char *root = flow_root(v->flow);

	for (size_t i = 0; i < tasks->count; i++) {
		const struct success *task = &tasks->list[i];
		_cleanup_free_ char *as = path_join(root, task->id);
		int e;

		if (!as)
			return error_memory(err);
		if (task->number == 0)
			return refuse_none(task->id, err);
		e = add_outputs(v, task->id, task->number, as, err);
		if (e < 0)
			return e;
	}
	return 0;
}

/* 0: there is no analysis of this name that has succeeded. */
static int add_analysis(struct resolving *v, struct error *err)
{
	const struct flow *f = v->flow;
	_cleanup_free_ char *own = f->as ? NULL : path_join(FLOW_ROOT, f->id);
	int number = 0, e;

	if (!f->as && !own)
		return error_memory(err);
	e = ledger_success(v->ledger, f->id, v->owner, &number, err);
	if (e <= 0)
		return e;
	e = add_outputs(v, f->id, number, f->as ? f->as : own, err);
	return e < 0 ? e : 1;
}

/* A name that no analysis has may be an array's. */
static int add_flow(struct resolving *v, struct error *err)
{
	_cleanup_(successes_done) struct successes tasks = {0};
	size_t before = v->plan->flow_files.count;
	int e = v->flow->is_array ? 0 : add_analysis(v, err);

	if (e == 0) {
		e = ledger_successes(v->ledger, v->flow->id, v->owner, &tasks, err);
		if (e == 0)
			e = tasks.count ? add_tasks(v, &tasks, err) : refuse_none(v->flow->id, err);
	}
	if (e < 0)
		return e;
	if (v->plan->flow_files.count > before)
		return 0;
	return error_set(err, ERROR_REFUSED,
			 "--from '%s' matches nothing: `fumehood outputs %s` lists what there is%s%s%s",
			 v->flow->id, tasks.count ? tasks.list[0].id : v->flow->id,
			 v->flow->glob ? ", none of it is '" : "",
			 v->flow->glob ? SHOWN(256, v->flow->glob) : "", v->flow->glob ? "'" : "");
}

int flows_resolve(struct hood *h, const struct request *r, const struct rights *rights, struct plan *plan,
		  struct error *err)
{
	struct resolving v = {.plan = plan, .owner = rights && rights->is_queued ? rights->owner : NULL};
	int e = r->from && r->from[0] ? hood_ledger(h, 0, &v.ledger, err) : 0;

	for (size_t i = 0; e == 0 && r->from && r->from[i]; i++) {
		_cleanup_flow_ struct flow f = {0};

		e = flow_parse(r->from[i], &f, err);
		v.flow = &f;
		if (e == 0)
			e = add_flow(&v, err);
	}
	return e < 0 ? e : plan_check(plan, err);
}

/* ---- there ---- */

static bool is_same(const struct input *a, const struct input *b)
{
	return a->size == b->size && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* What a step has made is not among the inputs of the next one. */
static bool lies_there(const struct workspace *w, const char *path)
{
	_cleanup_close_ int fd = file_open_beneath(w->fd, path, O_PATH | O_NOFOLLOW, 0);

	return fd >= 0;
}

/* 1: an earlier step of the held workspace has it already. */
static int is_there(const struct workspace *w, const struct input *i, struct inputs *inputs,
		    struct error *err)
{
	const struct input *before = inputs_find(inputs, i->path);
	int e;

	if (!before && !lies_there(w, i->path))
		return 0;
	if (!before || !is_same(before, i))
		return error_set(
			err, ERROR_REFUSED,
			"--from '%s' cannot put '%s' there: the workspace has another file of that name; "
			"give another AS, --from ID:GLOB:AS",
			i->from_analysis, SHOWN(256, i->path));
	e = inputs_set_from(inputs, i->path, i->from_analysis, i->from_attempt, err);
	return e < 0 ? e : 1;
}

/* What a submission has staged is known only here. */
static int check_staged(const struct plan *plan, const struct inputs *inputs, struct error *err)
{
	for (char **p = plan->flow_roots; p && *p; p++)
		for (size_t i = 0; i < inputs->count; i++)
			if (overlaps(*p, inputs->list[i].path))
				return refuse_taken(*p, "a staged input", inputs->list[i].path, err);
	return 0;
}

int flows_stage(struct workspace *w, const struct plan *plan, bool step, uid_t uid, gid_t gid,
		workspace_fill_fn fill, void *arg, struct inputs *inputs, struct error *err)
{
	uint64_t max = plan->limits.value[LIMIT_DISK];
	int e = step ? 0 : check_staged(plan, inputs, err);

	for (size_t i = 0; e >= 0 && i < plan->flow_files.count; i++) {
		const struct input *in = &plan->flow_files.list[i];

		e = step ? is_there(w, in, inputs, err) : 0;
		if (e == 0)
			e = workspace_stage_content(w, in, max, uid, gid, fill, arg, inputs, err);
	}
	return e < 0 ? e : 0;
}
