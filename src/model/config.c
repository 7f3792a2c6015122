#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_shape.h"
#include "document.h"
#include "field.h"
#include "member.h"

enum { SET_KEEP_MAX_BYTES = 1, SET_KEEP_FOR = 2, SET_CAP = 4, SET_JOBS = 8, SET_LEASE = 16 };
enum { PREFIX_MAX = 64 }; /* with an id it stays well below NAME_MAX */

static const uint64_t default_keep_max_bytes = 10ULL << 30;
static const uint64_t default_lease_ns = 30 * NSEC_PER_SEC;
static const uint64_t default_keep_for_ns = 7 * 24 * 3600 * NSEC_PER_SEC;

void config_init(struct config *c)
{
	*c = (struct config){0};
}

void config_done(struct config *c)
{
	free(c->ledger);
	free(c->state_dir);
	free(c->workspace_root);
	free(c->workspace_prefix);
	request_done(&c->defaults);
	json_decref(c->post_process);
	free(c->post_process_directory);
	json_decref(c->query);
	json_decref(c->slurm);
	free(c->retain);
	json_decref(c->queue_users);
	json_decref(c->queue_allow);
	free(c->queue_allow_directory);
	*c = (struct config){0};
}

#define AT(field) offsetof(struct config, field)

static int read_filled(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = node_read_text(n, file, key, &text, err);

	if (r < 0)
		return r;
	if (!*text)
		return node_error(n, file, err, "%s is empty", key);
	*(char **)to = TAKE_PTR(text);
	return 0;
}

static int read_absolute(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = read_filled(n, file, key, &text, err);

	if (r < 0)
		return r;
	if (text[0] != '/')
		return node_error(n, file, err, "%s must be an absolute path", key);
	for (size_t size = strlen(text); size > 1 && text[size - 1] == '/'; size--)
		text[size - 1] = 0;
	*(char **)to = TAKE_PTR(text);
	return 0;
}

/* The prefix and an id make one name: the prefix is checked as the start of one. */
static int read_prefix(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	_cleanup_free_ char *prefix = NULL;
	struct error problem = ERROR_INIT;
	int r = node_read_text(n, file, key, &prefix, err);

	if (r < 0)
		return r;
	if (id_check(prefix, &problem) < 0)
		return node_error(n, file, err, "prefix must be the start of a name like an id: %s",
				  problem.message);
	if (strlen(prefix) > PREFIX_MAX)
		return node_error(n, file, err, "prefix has more than %d characters", PREFIX_MAX);
	*(char **)to = TAKE_PTR(prefix);
	return 0;
}

static int read_workspace(const struct node *map, const char *file, const char *key, void *config,
			  struct error *err)
{
	static const struct node_key keys[] = {{"root", read_absolute, AT(workspace_root)},
					       {"prefix", read_prefix, AT(workspace_prefix)},
					       {0}};

	return node_read_keys(map, file, key, keys, config, err);
}

static int read_defaults(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	return request_read(to, n, file, key, FIELD_IN_DEFAULTS, LIMIT_SITE, err);
}

static int read_maximum(const struct node *n, const char *file, const char *key UNUSED, void *to,
			struct error *err)
{
	return limits_read(to, n, file, LIMIT_SITE, err);
}

static int read_kept_bytes(const struct node *n, const char *file, const char *key, void *to,
			   struct error *err)
{
	return shape_amount(n, file, key, size_parse, "10G", to, err);
}

static int read_kept_time(const struct node *n, const char *file, const char *key, void *to,
			  struct error *err)
{
	return shape_amount(n, file, key, duration_parse, "7d", to, err);
}

static int read_keep(const struct node *map, const char *file, const char *key, void *config,
		     struct error *err)
{
	static const struct node_key keys[] = {{"max_bytes", read_kept_bytes, AT(keep_max_bytes)},
					       {"for", read_kept_time, AT(keep_for_ns)},
					       {0}};
	struct config *c = config;

	if (node_find(map, "max_bytes"))
		c->set |= SET_KEEP_MAX_BYTES;
	if (node_find(map, "for"))
		c->set |= SET_KEEP_FOR;
	return node_read_keys(map, file, key, keys, c, err);
}

static int keep_as_json(const struct node *n, json_t **ret, struct error *err)
{
	*ret = node_to_json(n);
	return *ret ? 0 : error_memory(err);
}

static int directory_of(const char *file, char **ret, struct error *err)
{
	const char *slash = strrchr(file, '/');

	return slash ? text_print(ret, err, "%.*s", (int)(slash - file) + 1, file) : text_set(ret, ".", err);
}

static int read_post_process(const struct node *n, const char *file, const char *key UNUSED, void *config,
			     struct error *err)
{
	struct config *c = config;
	const struct node *limits;
	int r = shape_post_process(n, file, err);

	if (r < 0)
		return r;
	limits = node_find(n, "limits");
	if (limits)
		r = limits_read(&c->post_process_limits, limits, file, LIMIT_SITE, err);
	if (r == 0)
		r = keep_as_json(n, &c->post_process, err);
	return r == 0 && node_find(n, "command") ? directory_of(file, &c->post_process_directory, err) : r;
}

static int read_query(const struct node *n, const char *file, const char *key UNUSED, void *to,
		      struct error *err)
{
	int r = shape_query(n, file, err);

	return r < 0 ? r : keep_as_json(n, to, err);
}

static int read_slurm(const struct node *n, const char *file, const char *key UNUSED, void *to,
		      struct error *err)
{
	int r = shape_slurm(n, file, err);

	return r < 0 ? r : keep_as_json(n, to, err);
}

static int read_users(const struct node *n, const char *file, const char *key UNUSED, void *to,
		      struct error *err)
{
	json_auto_t *users = json_object();
	int r = shape_users(n, file, err);

	if (r < 0)
		return r;
	/* As they stand: a number is a user's too, and a role may be named like one. */
	for (size_t i = 0; i < n->count; i++)
		json_put(&users, n->keys[i].text, json_string(n->items[i].text));
	*(json_t **)to = json_incref(users);
	return users ? 0 : error_memory(err);
}

static int read_allow(const struct node *n, const char *file, const char *key UNUSED, void *config,
		      struct error *err)
{
	struct config *c = config;
	int r = shape_allow(n, file, err);

	if (r == 0)
		r = keep_as_json(n, &c->queue_allow, err);
	return r == 0 && node_find(n, "post_process") ? directory_of(file, &c->queue_allow_directory, err)
						      : r;
}

static int read_lease(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	uint64_t *lease = to;
	int r = shape_amount(n, file, key, duration_parse, "30s", lease, err);

	if (r == 0 && (*lease < QUEUE_LEASE_MIN_NS || *lease > QUEUE_LEASE_MAX_NS))
		r = node_error(n, file, err, "lease must be from 1s to 1h");
	return r;
}

static int read_queue(const struct node *map, const char *file, const char *key, void *config,
		      struct error *err)
{
	static const struct node_key keys[] = {
		{"cap", shape_count, AT(queue_cap)},
		{"jobs", shape_count, AT(queue_jobs)},
		{"lease", read_lease, AT(queue_lease_ns)},
		{"users", read_users, AT(queue_users)},
		{"allow", read_allow, 0},
		{0},
	};
	struct config *c = config;

	if (node_find(map, "cap"))
		c->set |= SET_CAP;
	if (node_find(map, "jobs"))
		c->set |= SET_JOBS;
	if (node_find(map, "lease"))
		c->set |= SET_LEASE;
	return node_read_keys(map, file, key, keys, c, err);
}

static const struct node_key sections[] = {
	{"ledger", read_filled, AT(ledger)},
	{"state_dir", read_absolute, AT(state_dir)},
	{"workspace", read_workspace, 0},
	{"defaults", read_defaults, AT(defaults)},
	{"maximum", read_maximum, AT(maximum)},
	{"keep", read_keep, 0},
	{"post_process", read_post_process, 0},
	{"query", read_query, AT(query)},
	{"queue", read_queue, 0},
	{"retain", config_read_retain, 0},
	{"slurm", read_slurm, AT(slurm)},
	{0},
};

static void merge_text(char **to, char **from)
{
	if (!*to)
		*to = TAKE_PTR(*from);
}

/* Key by key; the site's own word on `fixed` stands above what others said. */
static int merge_json(json_t **to, json_t *from, const char *fixed, bool is_site, struct error *err)
{
	json_t *site = fixed && is_site ? json_object_get(from, fixed) : NULL;

	if (!from)
		return 0;
	if (!*to) {
		*to = json_incref(from);
		return 0;
	}
	if (json_object_update_missing(*to, from) < 0 || (site && json_object_set(*to, fixed, site) < 0))
		return error_memory(err);
	return 0;
}

static void merge_maximum(struct limits *to, const struct limits *from, bool is_site)
{
	for (int i = 0; is_site && i < LIMIT_COUNT; i++)
		if (from->origin[i] != LIMIT_UNSET && to->origin[i] != LIMIT_UNSET &&
		    to->value[i] > from->value[i])
			to->value[i] = from->value[i];
	limits_inherit(to, from);
}

static void merge_keep(struct config *to, const struct config *from)
{
	unsigned missing = from->set & ~to->set;

	if (missing & SET_KEEP_MAX_BYTES)
		to->keep_max_bytes = from->keep_max_bytes;
	if (missing & SET_KEEP_FOR)
		to->keep_for_ns = from->keep_for_ns;
	to->set |= missing;
}

/* Who is whom, and what anybody may name: one file says it, and the site's before all others. */
static void merge_rights(struct config *to, struct config *from, bool is_site)
{
	if (from->queue_users && (is_site || !to->queue_users)) {
		json_decref(to->queue_users);
		to->queue_users = TAKE_PTR(from->queue_users);
	}
	if (from->queue_allow && (is_site || !to->queue_allow)) {
		json_decref(to->queue_allow);
		free(to->queue_allow_directory);
		to->queue_allow = TAKE_PTR(from->queue_allow);
		to->queue_allow_directory = TAKE_PTR(from->queue_allow_directory);
	}
}

static void merge_queue(struct config *to, const struct config *from)
{
	unsigned missing = from->set & ~to->set;

	if (missing & SET_CAP)
		to->queue_cap = from->queue_cap;
	if (missing & SET_JOBS)
		to->queue_jobs = from->queue_jobs;
	if (missing & SET_LEASE)
		to->queue_lease_ns = from->queue_lease_ns;
}

static int config_merge(struct config *to, struct config *from, bool is_site, struct error *err)
{
	int r;

	merge_text(&to->ledger, &from->ledger);
	merge_text(&to->state_dir, &from->state_dir);
	merge_text(&to->workspace_root, &from->workspace_root);
	merge_text(&to->workspace_prefix, &from->workspace_prefix);
	/* The directory goes with the command. */
	if (!json_object_get(to->post_process, "command"))
		merge_text(&to->post_process_directory, &from->post_process_directory);
	limits_inherit(&to->post_process_limits, &from->post_process_limits);
	merge_maximum(&to->maximum, &from->maximum, is_site);
	merge_rights(to, from, is_site);
	merge_queue(to, from);
	merge_keep(to, from);
	if (!to->retain) {
		to->retain = TAKE_PTR(from->retain);
		to->n_retain = from->n_retain;
	}
	if ((r = request_inherit(&to->defaults, &from->defaults, err)) < 0 ||
	    (r = merge_json(&to->post_process, from->post_process, "tables", is_site, err)) < 0 ||
	    (r = merge_json(&to->query, from->query, "role", is_site, err)) < 0)
		return r;
	return merge_json(&to->slurm, from->slurm, NULL, is_site, err);
}

int config_parse(struct config *c, const char *text, size_t size, const char *file, bool is_site,
		 struct error *err)
{
	_cleanup_node_ struct node root = {0};
	_cleanup_config_ struct config read = {0};
	int r = document_parse(text, size, file, &root, err);

	if (r == 0)
		r = node_read_keys(&root, file, "the configuration", sections, &read, err);
	return r < 0 ? r : config_merge(c, &read, is_site, err);
}

int config_finish(struct config *c, struct error *err)
{
	if (!c->workspace_root)
		c->workspace_root = strdup("/tmp");
	if (!c->workspace_prefix)
		c->workspace_prefix = strdup("scidex-analysis-");
	if (!(c->set & SET_KEEP_MAX_BYTES))
		c->keep_max_bytes = default_keep_max_bytes;
	if (!(c->set & SET_KEEP_FOR))
		c->keep_for_ns = default_keep_for_ns;
	if (!(c->set & SET_LEASE))
		c->queue_lease_ns = default_lease_ns;
	c->set |= SET_KEEP_MAX_BYTES | SET_KEEP_FOR | SET_LEASE;
	return c->workspace_root && c->workspace_prefix ? 0 : error_memory(err);
}
