#include "config_shape.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "file.h"
#include "limit.h"
#include "text.h"

enum { COUNT_MAX = 1000000 };

int shape_amount(const struct node *n, const char *file, const char *name,
		 int (*parse)(const char *text, uint64_t *ret), const char *example, uint64_t *ret,
		 struct error *err)
{
	const char *word = node_read_word(n, file, name, err);
	uint64_t value = LIMIT_NONE;

	if (!word)
		return -EINVAL;
	if (strcmp(word, "none") != 0 && parse(word, &value) < 0)
		return node_error(n, file, err, "%s '%s' makes no sense: write it like %s, or 'none'", name,
				  SHOWN(64, word), example);
	if (ret)
		*ret = value;
	return 0;
}

int shape_count(const struct node *n, const char *file, const char *name, void *ret, struct error *err)
{
	const char *word = node_read_word(n, file, name, err);

	if (!word)
		return -EINVAL;
	if (strcmp(word, "none") == 0) {
		*(int *)ret = 0;
		return 0;
	}
	if (int_parse(word, 1, COUNT_MAX, ret) == 0)
		return 0;
	return node_error(n, file, err, "%s '%s' makes no sense: write a number from 1 to %d, or 'none'",
			  name, SHOWN(64, word), COUNT_MAX);
}

static int shape_text(const struct node *n, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (n->kind != NODE_SCALAR)
		return node_error(n, file, err, "%s must be text", name);
	r = node_read_text(n, file, name, &text, err);
	return r == 0 && !*text ? node_error(n, file, err, "%s is empty", name) : r;
}

static int shape_names(const struct node *n, const char *file, const char *name, void *to, struct error *err)
{
	int r = n->kind == NODE_LIST ? 0 : node_error(n, file, err, "%s must be a list of names", name);

	for (size_t i = 0; r == 0 && i < n->count; i++)
		r = shape_text(&n->items[i], file, name, to, err);
	return r;
}

/* fill: columns that we fill in ourselves, each with a text in which {id} and the like stand. */
static int shape_fill(const struct node *map, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	int r = node_expect_map(map, file, name, err);

	for (size_t i = 0; r == 0 && i < map->count; i++)
		if (map->items[i].kind != NODE_SCALAR)
			r = node_error(&map->items[i], file, err, "fill must give a text for each column");
	return r;
}

static int shape_on_conflict(const struct node *n, const char *file, const char *name UNUSED, void *to UNUSED,
			     struct error *err)
{
	static const char *const known[] = {"update", "ignore", "fail"};

	for (size_t i = 0; n->kind == NODE_SCALAR && i < ARRAY_SIZE(known); i++)
		if (strcmp(n->text, known[i]) == 0)
			return 0;
	return node_error(n, file, err, "on_conflict must be update, ignore or fail");
}

static int shape_table(const struct node *n, const char *file, struct error *err)
{
	static const struct node_key keys[] = {
		{"columns", shape_names},
		{"key", shape_names},
		{"fill", shape_fill},
		{"on_conflict", shape_on_conflict},
		{0},
	};

	if (n->kind == NODE_LIST)
		return shape_names(n, file, "columns", NULL, err);
	if (n->kind != NODE_MAP || !node_find(n, "columns"))
		return node_error(n, file, err, "a table must be a list of columns, or a map with 'columns'");
	return node_read_keys(n, file, "a table", keys, NULL, err);
}

static int shape_tables(const struct node *map, const char *file, const char *name, void *to UNUSED,
			struct error *err)
{
	int r = node_expect_map(map, file, name, err);

	for (size_t i = 0; r == 0 && i < map->count; i++)
		r = shape_table(&map->items[i], file, err);
	return r;
}

static int shape_map(const struct node *n, const char *file, const char *name, void *to UNUSED,
		     struct error *err)
{
	return node_expect_map(n, file, name, err);
}

int shape_post_process(const struct node *map, const char *file, struct error *err)
{
	static const struct node_key keys[] = {
		{"command", shape_text}, {"tables", shape_tables}, {"limits", shape_map}, {0}};

	return node_read_keys(map, file, "post_process", keys, NULL, err);
}

static int shape_time(const struct node *n, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	return shape_amount(n, file, name, duration_parse, "30s", NULL, err);
}

static int shape_bytes(const struct node *n, const char *file, const char *name, void *to UNUSED,
		       struct error *err)
{
	return shape_amount(n, file, name, size_parse, "100M", NULL, err);
}

int shape_query(const struct node *map, const char *file, struct error *err)
{
	static const struct node_key keys[] = {{"role", shape_text},
					       {"passfile", shape_text},
					       {"timeout", shape_time},
					       {"max_bytes", shape_bytes},
					       {0}};

	return node_read_keys(map, file, "query", keys, NULL, err);
}

/* An owner is a role of the database, or a user where the ledger is a file; a user is a name, or a number where it has
 * none. */
int shape_users(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "users", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const struct node *n = &map->items[i];

		if (!*map->keys[i].text)
			r = node_error(&map->keys[i], file, err, "users has an owner without a name");
		else if (n->kind != NODE_SCALAR || node_scalar_type(n) == SCALAR_NULL || !*n->text)
			r = node_error(n, file, err, "users must give a local user for each owner");
	}
	return r;
}

static int shape_place(const struct node *n, const char *file, const char *name, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r = shape_text(n, file, name, NULL, err);

	if (r == 0)
		r = node_read_text(n, file, name, &path, err);
	if (r < 0)
		return r;
	if (path[0] != '/')
		return node_error(n, file, err, "%s must list absolute paths", name);
	if (path_has_dot_dot(path))
		return node_error(n, file, err, "%s must list paths without '..'", name);
	return path[strspn(path, "/")]
		       ? 0
		       : node_error(n, file, err, "%s must not list '/': that would be everything", name);
}

static int shape_variable(const struct node *n, const char *file, const char *name, struct error *err)
{
	int r = shape_text(n, file, name, NULL, err);

	if (r == 0 && strchr(n->text, '='))
		r = node_error(n, file, err, "%s must list names of variables, without values", name);
	return r;
}

static int shape_word(const struct node *n, const char *file, const char *name, struct error *err)
{
	return shape_text(n, file, name, NULL, err);
}

static int shape_list(const struct node *n, const char *file, const char *name,
		      int (*shape)(const struct node *n, const char *file, const char *name,
				   struct error *err),
		      struct error *err)
{
	int r = n->kind == NODE_LIST ? 0 : node_error(n, file, err, "%s must be a list", name);

	for (size_t i = 0; r == 0 && i < n->count; i++)
		r = shape(&n->items[i], file, name, err);
	return r;
}

static int shape_places(const struct node *n, const char *file, const char *name, void *to UNUSED,
			struct error *err)
{
	return shape_list(n, file, name, shape_place, err);
}

static int shape_words(const struct node *n, const char *file, const char *name, void *to UNUSED,
		       struct error *err)
{
	return shape_list(n, file, name, shape_word, err);
}

static int shape_variables(const struct node *n, const char *file, const char *name, void *to UNUSED,
			   struct error *err)
{
	return shape_list(n, file, name, shape_variable, err);
}

static int shape_flag(const struct node *n, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	bool value;

	return node_read_bool(n, file, name, &value, err);
}

int shape_allow(const struct node *map, const char *file, struct error *err)
{
	static const struct node_key keys[] = {
		{"data", shape_places},
		{"docs", shape_places},
		{"ro", shape_places},
		{"into", shape_places},
		{"post_process", shape_words},
		{"env", shape_variables},
		{"query", shape_flag},
		{"keep", shape_flag},
		{"allow_unlimited", shape_flag},
		{"landlock", shape_flag},
		{0},
	};

	return node_read_keys(map, file, "allow", keys, NULL, err);
}

/* ---- slurm ---- */

static int shape_absolute(const struct node *n, const char *file, const char *name, void *to,
			  struct error *err)
{
	int r = shape_text(n, file, name, to, err);

	return r == 0 && n->text[0] != '/' ? node_error(n, file, err, "%s must be an absolute path", name)
					   : r;
}

/* sbatch reads what does not begin so as a script. */
static int shape_option(const struct node *n, const char *file, const char *name, struct error *err)
{
	int r = shape_text(n, file, name, NULL, err);

	if (r == 0 && (strncmp(n->text, "--", 2) != 0 || !n->text[2]))
		r = node_error(n, file, err,
			       "%s must list options of sbatch, each with its value: --NAME=VALUE", name);
	return r;
}

static int shape_options(const struct node *n, const char *file, const char *name, void *to UNUSED,
			 struct error *err)
{
	return shape_list(n, file, name, shape_option, err);
}

static int shape_jobs(const struct node *n, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	const char *word = node_read_word(n, file, name, err);
	int ignored;

	if (!word)
		return -EINVAL;
	return int_parse(word, 1, SLURM_JOBS_MAX, &ignored) == 0
		       ? 0
		       : node_error(n, file, err, "%s '%s' makes no sense: write a number from 1 to %d", name,
				    SHOWN(64, word), SLURM_JOBS_MAX);
}

static int shape_poll(const struct node *n, const char *file, const char *name, void *to UNUSED,
		      struct error *err)
{
	uint64_t ns = 0;
	int r = shape_amount(n, file, name, duration_parse, "2s", &ns, err);

	if (r == 0 && (ns < SLURM_POLL_MIN_NS || ns > SLURM_POLL_MAX_NS))
		r = node_error(n, file, err, "%s must be from 100ms to 10m", name);
	return r;
}

int shape_slurm(const struct node *map, const char *file, struct error *err)
{
	static const struct node_key keys[] = {
		{"partition", shape_text},
		{"account", shape_text},
		{"qos", shape_text},
		{"options", shape_options},
		{"jobs", shape_jobs},
		{"command", shape_absolute},
		{"bin", shape_absolute},
		{"log", shape_absolute},
		{"poll", shape_poll},
		{"submit_as_user", shape_flag},
		{0},
	};

	return node_read_keys(map, file, "slurm", keys, NULL, err);
}
