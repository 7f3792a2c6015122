#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_shape.h"
#include "document.h"
#include "field.h"

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
	json_decref(c->queue_users);
	json_decref(c->queue_allow);
	free(c->queue_allow_directory);
	*c = (struct config){0};
}

static int read_filled(const struct node *n, const char *file, const char *name, char **ret,
		       struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = node_read_text(n, file, name, &text, err);

	if (r == 0 && !*text)
		r = node_error(n, file, err, "%s is empty", name);
	if (r == 0)
		*ret = TAKE_PTR(text);
	return r;
}

static int read_absolute(const struct node *n, const char *file, const char *name, char **ret,
			 struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = read_filled(n, file, name, &text, err);

	if (r == 0 && text[0] != '/')
		r = node_error(n, file, err, "%s must be an absolute path", name);
	if (r < 0)
		return r;
	for (size_t size = strlen(text); size > 1 && text[size - 1] == '/'; size--)
		text[size - 1] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

static int read_ledger(struct config *c, const struct node *n, const char *file, struct error *err)
{
	return read_filled(n, file, "ledger", &c->ledger, err);
}

static int read_state_dir(struct config *c, const struct node *n, const char *file, struct error *err)
{
	return read_absolute(n, file, "state_dir", &c->state_dir, err);
}

/* The prefix and an id make one name: the prefix is checked as the start of one. */
static int read_prefix(struct config *c, const struct node *n, const char *file, struct error *err)
{
	_cleanup_free_ char *prefix = NULL;
	struct error problem = ERROR_INIT;
	int r = node_read_text(n, file, "prefix", &prefix, err);

	if (r < 0)
		return r;
	if (id_check(prefix, &problem) < 0)
		return node_error(n, file, err, "prefix must be the start of a name like an id: %s",
				  problem.message);
	if (strlen(prefix) > PREFIX_MAX)
		return node_error(n, file, err, "prefix has more than %d characters", PREFIX_MAX);
	c->workspace_prefix = TAKE_PTR(prefix);
	return 0;
}

static int read_workspace(struct config *c, const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "workspace", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const char *key = map->keys[i].text;

		if (strcmp(key, "root") == 0)
			r = read_absolute(&map->items[i], file, "root", &c->workspace_root, err);
		else if (strcmp(key, "prefix") == 0)
			r = read_prefix(c, &map->items[i], file, err);
		else
			r = node_unknown_key(&map->keys[i], file, "workspace", err);
	}
	return r;
}

static int read_defaults(struct config *c, const struct node *n, const char *file, struct error *err)
{
	return request_read(&c->defaults, n, file, "defaults", FIELD_IN_DEFAULTS, LIMIT_SITE, err);
}

static int read_maximum(struct config *c, const struct node *n, const char *file, struct error *err)
{
	return limits_read(&c->maximum, n, file, LIMIT_SITE, err);
}

static int read_keep(struct config *c, const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "keep", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const char *key = map->keys[i].text;

		if (strcmp(key, "max_bytes") == 0) {
			r = shape_amount(&map->items[i], file, key, size_parse, "10G", &c->keep_max_bytes,
					 err);
			c->set |= SET_KEEP_MAX_BYTES;
		} else if (strcmp(key, "for") == 0) {
			r = shape_amount(&map->items[i], file, key, duration_parse, "7d", &c->keep_for_ns,
					 err);
			c->set |= SET_KEEP_FOR;
		} else {
			r = node_unknown_key(&map->keys[i], file, "keep", err);
		}
	}
	return r;
}

static int keep_as_json(const struct node *n, json_t **ret, struct error *err)
{
	*ret = node_to_json(n);
	return *ret ? 0 : error_memory(err);
}

static int directory_of(const char *file, char **ret, struct error *err)
{
	const char *slash = strrchr(file, '/');

	*ret = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
	return *ret ? 0 : error_memory(err);
}

static int read_post_process(struct config *c, const struct node *n, const char *file, struct error *err)
{
	const struct node *limits;
	int r = shape_post_process(n, file, err);

	limits = r == 0 ? node_find(n, "limits") : NULL;
	if (limits)
		r = limits_read(&c->post_process_limits, limits, file, LIMIT_SITE, err);
	if (r == 0)
		r = keep_as_json(n, &c->post_process, err);
	if (r == 0 && node_find(n, "command"))
		r = directory_of(file, &c->post_process_directory, err);
	return r;
}

static int read_query(struct config *c, const struct node *n, const char *file, struct error *err)
{
	int r = shape_query(n, file, err);

	return r < 0 ? r : keep_as_json(n, &c->query, err);
}

static int read_slurm(struct config *c, const struct node *n, const char *file, struct error *err)
{
	int r = node_expect_map(n, file, "slurm", err);

	return r < 0 ? r : keep_as_json(n, &c->slurm, err);
}

static int read_users(struct config *c, const struct node *n, const char *file, struct error *err)
{
	int r = shape_users(n, file, err);

	c->queue_users = r == 0 ? json_object() : NULL;
	/* As they stand: a number is a user's too, and a role may be named like one. */
	for (size_t i = 0; r == 0 && i < n->count; i++)
		if (json_object_set_new(c->queue_users, n->keys[i].text, json_string(n->items[i].text)) < 0)
			r = error_memory(err);
	return r;
}

static int read_allow(struct config *c, const struct node *n, const char *file, struct error *err)
{
	int r = shape_allow(n, file, err);

	if (r == 0)
		r = keep_as_json(n, &c->queue_allow, err);
	if (r == 0 && node_find(n, "post_process"))
		r = directory_of(file, &c->queue_allow_directory, err);
	return r;
}

static int read_queue(struct config *c, const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "queue", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const struct node *n = &map->items[i];
		const char *key = map->keys[i].text;

		if (strcmp(key, "cap") == 0) {
			r = shape_count(n, file, key, &c->queue_cap, err);
			c->set |= SET_CAP;
		} else if (strcmp(key, "jobs") == 0) {
			r = shape_count(n, file, key, &c->queue_jobs, err);
			c->set |= SET_JOBS;
		} else if (strcmp(key, "lease") == 0) {
			r = shape_amount(n, file, key, duration_parse, "30s", &c->queue_lease_ns, err);
			c->set |= SET_LEASE;
			if (r == 0 && (c->queue_lease_ns < QUEUE_LEASE_MIN_NS ||
				       c->queue_lease_ns > QUEUE_LEASE_MAX_NS))
				r = node_error(n, file, err, "lease must be from 1s to 1h");
		} else if (strcmp(key, "users") == 0) {
			r = read_users(c, n, file, err);
		} else if (strcmp(key, "allow") == 0) {
			r = read_allow(c, n, file, err);
		} else {
			r = node_unknown_key(&map->keys[i], file, "queue", err);
		}
	}
	return r;
}

static const struct section {
	const char *key;
	int (*read)(struct config *c, const struct node *n, const char *file, struct error *err);
} sections[] = {
	{"ledger", read_ledger},
	{"state_dir", read_state_dir},
	{"workspace", read_workspace},
	{"defaults", read_defaults},
	{"maximum", read_maximum},
	{"keep", read_keep},
	{"post_process", read_post_process},
	{"query", read_query},
	{"queue", read_queue},
	{"slurm", read_slurm},
};

static const struct section *section_find(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (strcmp(sections[i].key, key) == 0)
			return &sections[i];
	return NULL;
}

static int config_read(struct config *c, const struct node *root, const char *file, struct error *err)
{
	int r = node_expect_map(root, file, "the configuration", err);

	for (size_t i = 0; r == 0 && i < root->count; i++) {
		const struct section *s = section_find(root->keys[i].text);

		r = s ? s->read(c, &root->items[i], file, err)
		      : node_unknown_key(&root->keys[i], file, "the configuration", err);
	}
	return r;
}

static void merge_text(char **to, char **from)
{
	if (!*to)
		*to = TAKE_PTR(*from);
}

/* Key by key; the site's own word on `fixed` stands above what others said. */
static int merge_json(json_t **to, json_t *from, const char *fixed, bool is_site)
{
	json_t *site = fixed && is_site ? json_object_get(from, fixed) : NULL;

	if (!from)
		return 0;
	if (!*to) {
		*to = json_incref(from);
		return 0;
	}
	if (json_object_update_missing(*to, from) < 0 || (site && json_object_set(*to, fixed, site) < 0))
		return -ENOMEM;
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

static int config_merge(struct config *to, struct config *from, bool is_site)
{
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
	if (request_inherit(&to->defaults, &from->defaults) < 0 ||
	    merge_json(&to->post_process, from->post_process, "tables", is_site) < 0 ||
	    merge_json(&to->query, from->query, "role", is_site) < 0 ||
	    merge_json(&to->slurm, from->slurm, NULL, is_site) < 0)
		return -ENOMEM;
	return 0;
}

int config_parse(struct config *c, const char *text, size_t size, const char *file, bool is_site,
		 struct error *err)
{
	_cleanup_node_ struct node root = {0};
	_cleanup_config_ struct config read = {0};
	int r = document_parse(text, size, file, &root, err);

	if (r == 0)
		r = config_read(&read, &root, file, err);
	if (r == 0 && config_merge(c, &read, is_site) < 0)
		r = error_memory(err);
	return r;
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
