#include "plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "member.h"

static const struct member plan_members[] = {
	MEMBER(struct plan, id, MEMBER_CHARS),
	MEMBER(struct plan, attempt, MEMBER_INT),
	MEMBER(struct plan, workspace, MEMBER_TEXT),
	MEMBER(struct plan, scratch, MEMBER_TEXT),
	MEMBER(struct plan, command, MEMBER_LIST),
	MEMBER(struct plan, program, MEMBER_TEXT),
	MEMBER(struct plan, env, MEMBER_LIST),
	MEMBER(struct plan, data, MEMBER_TEXT),
	MEMBER(struct plan, docs, MEMBER_TEXT),
	MEMBER(struct plan, prefixes, MEMBER_LIST),
	MEMBER(struct plan, devices, MEMBER_LIST),
	MEMBER(struct plan, left_out, MEMBER_LIST),
	MEMBER_AS("warnings", struct plan, notes, MEMBER_LIST),
	MEMBER_AS("output", struct plan, outputs, MEMBER_LIST),
	MEMBER_AS("optional_output", struct plan, optional_outputs, MEMBER_LIST),
	MEMBER(struct plan, allow_unlimited, MEMBER_BOOL),
	MEMBER_AS("stdin", struct plan, stdin_open, MEMBER_BOOL),
	MEMBER(struct plan, explain, MEMBER_BOOL),
	MEMBER(struct plan, terminal, MEMBER_BOOL),
	MEMBER(struct plan, into, MEMBER_TEXT),
	MEMBER_AS("force", struct plan, into_force, MEMBER_BOOL),
	MEMBER(struct plan, ledger, MEMBER_TEXT),
	MEMBER(struct plan, submitter_directory, MEMBER_TEXT),
	MEMBER(struct plan, own_disk, MEMBER_BOOL),
	MEMBER_AS("user_namespace_first", struct plan, use_userns_first, MEMBER_BOOL),
};

static const struct member stage_members[] = {
	MEMBER(struct stage, source, MEMBER_TEXT),
	MEMBER(struct stage, as, MEMBER_TEXT),
	MEMBER(struct stage, size, MEMBER_SIZE),
};

static const struct member flow_members[] = {
	MEMBER(struct plan_flow, analysis, MEMBER_TEXT), MEMBER(struct plan_flow, attempt, MEMBER_INT),
	MEMBER(struct plan_flow, as, MEMBER_TEXT),	 MEMBER(struct plan_flow, files, MEMBER_SIZE),
	MEMBER(struct plan_flow, bytes, MEMBER_SIZE),
};

static const char *network_name(enum network network)
{
	static const char *const names[] = {[NETWORK_NONE] = "none"};

	return names[network];
}

void plan_init(struct plan *p)
{
	*p = (struct plan){0};
}

void plan_done(struct plan *p)
{
	char **lists[] = {p->command,	       p->env,	    p->prefixes, p->devices,   p->outputs,
			  p->optional_outputs, p->left_out, p->notes,	 p->flow_roots};
	char *texts[] = {p->workspace, p->scratch, p->program, p->data,
			 p->docs,      p->into,	   p->ledger,  p->submitter_directory};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		strv_free(lists[i]);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].source);
		free(p->mounts[i].target);
		free(p->mounts[i].content);
	}
	free(p->lost.content);
	for (size_t i = 0; i < p->n_stages; i++) {
		free(p->stages[i].source);
		free(p->stages[i].as);
	}
	for (size_t i = 0; i < p->n_flows; i++) {
		free(p->flows[i].analysis);
		free(p->flows[i].as);
	}
	free(p->mounts);
	free(p->stages);
	free(p->flows);
	inputs_done(&p->flow_files);
	lookup_done(&p->stage_names);
	*p = (struct plan){0};
}

struct plan *plan_new(void)
{
	struct plan *p = malloc(sizeof *p);

	if (p)
		plan_init(p);
	return p;
}

void plan_free(const struct plan *p)
{
	if (!p)
		return;
	plan_done((struct plan *)p);
	free((struct plan *)p);
}

static bool has_source(enum mount_kind kind)
{
	return kind == MOUNT_LINK || kind == MOUNT_DEVICE || kind == MOUNT_BIND || kind == MOUNT_OVERLAY ||
	       kind == MOUNT_SAME;
}

struct mount *plan_add_mount(struct plan *p, enum mount_kind kind, const char *source, const char *target)
{
	_cleanup_free_ char *from = source ? strdup(source) : NULL, *to = target ? strdup(target) : NULL;
	struct mount *m = to && (from || !has_source(kind)) ? ARRAY_ADD(p->mounts, p->n_mounts) : NULL;

	if (!m) {
		p->failed = true;
		free(p->lost.content);
		p->lost = (struct mount){0};
		return &p->lost;
	}
	*m = (struct mount){.kind = kind, .source = TAKE_PTR(from), .target = TAKE_PTR(to)};
	return m;
}

void plan_add_stage(struct plan *p, const char *source, const char *as, uint64_t device, uint64_t inode,
		    uint64_t size)
{
	_cleanup_free_ char *from = strdup(source), *name = strdup(as);
	struct stage *s = from && name ? ARRAY_ADD(p->stages, p->n_stages) : NULL;

	if (!s || lookup_add(&p->stage_names, as, p->n_stages - 1) < 0) {
		p->n_stages -= s != NULL;
		p->failed = true;
		return;
	}
	*s = (struct stage){.source = TAKE_PTR(from),
			    .as = TAKE_PTR(name),
			    .device = device,
			    .inode = inode,
			    .size = size};
}

void plan_note(struct plan *p, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		text = NULL;
	for (char **known = p->notes; text && known && *known; known++)
		if (strcmp(*known, text) == 0)
			return;
	p->failed |= !text || strv_append(&p->notes, text, NULL) < 0;
}

void plan_add_flow(struct plan *p, const struct plan_flow *f)
{
	_cleanup_free_ char *analysis = strdup(f->analysis), *as = strdup(f->as);
	struct plan_flow *more = analysis && as ? ARRAY_ADD(p->flows, p->n_flows) : NULL;

	if (!more) {
		p->failed = true;
		return;
	}
	*more = *f;
	more->analysis = TAKE_PTR(analysis);
	more->as = TAKE_PTR(as);
}

void plan_set_env(struct plan *p, const char *name, const char *value)
{
	_cleanup_free_ char *entry = NULL;
	size_t n = strlen(name);

	if (text_print(&entry, NULL, "%s=%s", name, value) < 0) {
		p->failed = true;
		return;
	}
	for (size_t i = 0; p->env && p->env[i]; i++)
		if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=') {
			free(p->env[i]);
			p->env[i] = TAKE_PTR(entry);
			return;
		}
	p->failed |= strv_append(&p->env, entry, NULL) < 0;
}

int plan_check(const struct plan *p, struct error *err)
{
	return p->failed ? error_memory(err) : 0;
}

struct wanted_stage {
	const struct plan *plan;
	const char *source;
};

static int is_wanted_stage(const void *arg, size_t i, const char *as)
{
	const struct wanted_stage *w = arg;
	const struct stage *s = &w->plan->stages[i];

	return strcmp(s->as, as) == 0 && (!w->source || strcmp(s->source, w->source) == 0);
}

bool plan_has_stage(const struct plan *p, const char *source, const char *as)
{
	return lookup_find(&p->stage_names, as, is_wanted_stage, &(struct wanted_stage){p, source}) !=
	       SIZE_MAX;
}

static const char *mount_kind_name(enum mount_kind kind)
{
	static const char *const names[] = {
		[MOUNT_DIR] = "directory", [MOUNT_FILE] = "file",	[MOUNT_LINK] = "link",
		[MOUNT_TMPFS] = "tmpfs",   [MOUNT_PROC] = "proc",	[MOUNT_DEVICE] = "device",
		[MOUNT_BIND] = "bind",	   [MOUNT_OVERLAY] = "overlay", [MOUNT_SAME] = "same",
		[MOUNT_DISK] = "disk",	   [MOUNT_PTS] = "terminal",
	};

	return names[kind];
}

/* Only what means something for its kind. */
static json_t *mount_to_json(const struct mount *m)
{
	bool is_tmpfs = m->kind == MOUNT_TMPFS, is_file = m->kind == MOUNT_FILE;
	bool is_own = is_tmpfs || is_file || m->kind == MOUNT_DIR;
	const struct json_entry entries[] = {
		{"kind", json_string(mount_kind_name(m->kind))},
		{"target", json_text(m->target)},
		{"source", m->source ? json_text(m->source) : JSON_ABSENT},
		{"writable", is_tmpfs || m->kind == MOUNT_BIND ? json_boolean(m->writable) : JSON_ABSENT},
		{"optional", m->optional ? json_true() : JSON_ABSENT},
		{"mode", is_own ? json_integer(m->mode) : JSON_ABSENT},
		{"size", is_file    ? json_integer((json_int_t)m->content_size)
			 : is_tmpfs ? json_integer((json_int_t)m->size)
				    : JSON_ABSENT},
		{"inodes", is_tmpfs ? json_integer((json_int_t)m->inodes) : JSON_ABSENT},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *mounts_to_json(const struct plan *p)
{
	return JSON_LIST(p->mounts, p->n_mounts, mount_to_json);
}

static json_t *stage_to_json(const struct stage *s)
{
	return members_to_json(stage_members, ARRAY_SIZE(stage_members), s);
}

static json_t *stages_to_json(const struct plan *p)
{
	return JSON_LIST(p->stages, p->n_stages, stage_to_json);
}

static json_t *flow_to_json(const struct plan_flow *f)
{
	return members_to_json(flow_members, ARRAY_SIZE(flow_members), f);
}

static json_t *flows_to_json(const struct plan *p)
{
	return JSON_LIST(p->flows, p->n_flows, flow_to_json);
}

/* As text for people, as a number in the table's unit for programs, and where it came from. */
static json_t *plan_limit_to_json(const struct limits *l, enum limit which)
{
	bool none = l->origin[which] == LIMIT_UNSET || l->value[which] == LIMIT_NONE;
	char text[LIMIT_TEXT_SIZE];
	const struct json_entry entries[] = {
		{"limit", json_string(limit_format(which, none ? LIMIT_NONE : l->value[which], text))},
		{"value", none ? json_null() : json_integer((json_int_t)l->value[which])},
		{"origin", json_string(limit_origin_name(l->origin[which]))},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *plan_limits_to_json(const struct limits *l)
{
	json_t *object = json_object();

	for (int i = 0; i < LIMIT_COUNT; i++)
		json_put(&object, limit_table[i].name, plan_limit_to_json(l, (enum limit)i));
	return object;
}

json_t *plan_to_json(const struct plan *p)
{
	json_auto_t *object = members_to_json(plan_members, ARRAY_SIZE(plan_members), p);
	const struct json_entry entries[] = {
		{"strength", json_string(strength_name(p->strength))},
		{"keep", json_string(keep_name(p->keep))},
		{"network", json_string(network_name(p->network))},
		{"limits", plan_limits_to_json(&p->limits)},
		{"stage", stages_to_json(p)},
		{"from", flows_to_json(p)},
		{"mounts", mounts_to_json(p)},
	};

	return json_set_entries(object, entries, ARRAY_SIZE(entries)) < 0 || p->failed ? NULL
										       : json_incref(object);
}

static void recall_limits(struct limits *l, const json_t *json)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const json_t *value = json_object_get(json_object_get(json, limit_table[i].name), "value");

		l->value[i] = json_is_integer(value) ? (uint64_t)json_integer_value(value) : LIMIT_NONE;
		l->origin[i] = LIMIT_BUILT_IN;
	}
}

static int recall_keep(enum keep *ret, const char *name)
{
	static const enum keep all[] = {KEEP_NEVER, KEEP_ON_FAILURE, KEEP_ALWAYS};

	for (size_t i = 0; name && i < ARRAY_SIZE(all); i++)
		if (strcmp(name, keep_name(all[i])) == 0) {
			*ret = all[i];
			return 0;
		}
	return -EINVAL;
}

int plan_recall(struct plan *p, const json_t *json, struct error *err)
{
	_cleanup_plan_ struct plan read;
	int r;

	plan_init(&read);
	r = members_read(&read, plan_members, ARRAY_SIZE(plan_members), json, "plan", err);
	if (r == 0 && recall_keep(&read.keep, json_string_value(json_object_get(json, "keep"))) < 0)
		r = error_set(err, ERROR_SYSTEM, "cannot read a stored plan: its 'keep' makes no sense");
	if (r < 0)
		return r;
	recall_limits(&read.limits, json_object_get(json, "limits"));
	plan_done(p);
	*p = read;
	plan_init(&read);
	return 0;
}
