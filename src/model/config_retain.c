/*
 * `retain`: what gc and workers remove from the ledger by themselves.
 */
#include "config_shape.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "array.h"
#include "config.h"
#include "text.h"
#include "verdict.h"

static int read_older(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	uint64_t *older = to;
	const char *word = node_read_word(n, file, key, err);
	size_t size = word ? strlen(word) : 0;

	if (!word)
		return -EINVAL;
	if (size > 0 && (word[size - 1] < '0' || word[size - 1] > '9') && duration_parse(word, older) == 0)
		return 0;
	return node_error(n, file, err, "%s '%s' is no age: write it like 90d, 12h or 30m", key,
			  SHOWN(64, word));
}

static int add_verdict(const struct node *n, const char *file, const char *key, unsigned *to,
		       struct error *err)
{
	const char *word = node_read_word(n, file, key, err);
	enum verdict v;

	if (!word)
		return -EINVAL;
	if (verdict_parse(word, &v) < 0 || v == VERDICT_NONE)
		return node_error(n, file, err, "there is no verdict '%s'", SHOWN(64, word));
	*to |= 1U << v;
	return 0;
}

static int read_verdicts(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	int r = 0;

	if (n->kind != NODE_LIST)
		return add_verdict(n, file, key, to, err);
	for (size_t i = 0; r == 0 && i < n->count; i++)
		r = add_verdict(&n->items[i], file, key, to, err);
	return r;
}

static int read_flag(const struct node *n, const char *file, const char *key, void *to, struct error *err)
{
	return node_read_bool(n, file, key, to, err);
}

static int read_rule(const struct node *n, const char *file, struct retain_rule *to, struct error *err)
{
	static const struct node_key keys[] = {
		{"older", read_older, offsetof(struct retain_rule, older_ns)},
		{"verdict", read_verdicts, offsetof(struct retain_rule, verdicts)},
		{"keep_outputs", read_flag, offsetof(struct retain_rule, keeps_outputs)},
		{0},
	};
	int r = node_expect_map(n, file, "retain", err);

	if (r == 0)
		r = node_read_keys(n, file, "retain", keys, to, err);
	if (r == 0 && !node_find(n, "older"))
		r = node_error(n, file, err, "a rule of retain needs 'older', such as {older: 90d}");
	return r;
}

int config_read_retain(const struct node *n, const char *file, const char *key, void *config,
		       struct error *err)
{
	struct config *c = config;

	if (n->kind != NODE_LIST)
		return node_error(n, file, err, "%s must be a list of {older, verdict, keep_outputs}", key);
	for (size_t i = 0; i < n->count; i++) {
		struct retain_rule *rule = ARRAY_ADD(c->retain, c->n_retain);

		if (!rule)
			return error_memory(err);
		*rule = (struct retain_rule){0};
		if (read_rule(&n->items[i], file, rule, err) < 0)
			return -EINVAL;
	}
	return 0;
}
