/*
 * A tree of scalars, lists and maps in which every node knows its line and column, so that whoever reads it can
 * point at what is wrong. Made by document.h from YAML or from JSON; private to the model. node_done() frees it.
 *
 * The node_read_* functions are all that readers need: each takes the key's name for the message, and writes its
 * result only on success. Errors are ERROR_USAGE, "file:line:column: …".
 */
#ifndef MODEL_NODE_H
#define MODEL_NODE_H

#include <jansson.h>
#include <stdbool.h>

#include "error.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool plain;	    /* SCALAR: without quotes, so that it may be a number, a truth value or null */
	char *text;	    /* SCALAR */
	struct node *keys;  /* MAP: scalars, as many as items */
	struct node *items; /* LIST, MAP */
	size_t count;
	unsigned line, column; /* from 1; 0: not from a text */
};

void node_done(struct node *n);
#define _cleanup_node_ _cleanup_(node_done)

/* One more item, with its key in a map; both are moved. */
int node_append(struct node *parent, struct node *key, struct node *item, struct error *err);
/* The value of a map's key, or NULL. */
const struct node *node_find(const struct node *map, const char *key);

/* What a scalar is by YAML 1.2's core schema; other kinds of node are none of these. */
enum scalar_type { SCALAR_TEXT, SCALAR_NULL, SCALAR_BOOL, SCALAR_INTEGER, SCALAR_REAL };
enum scalar_type node_scalar_type(const struct node *n);

int node_error(const struct node *n, const char *file, struct error *err, const char *format, ...)
	PRINTF_LIKE(4, 5);
int node_unknown_key(const struct node *key, const char *file, const char *where, struct error *err);
/* One of the keys that a map may have: who reads it, and where what it reads lies in what the map is read into. */
struct node_key {
	const char *key; /* NULL ends a list */
	int (*read)(const struct node *n, const char *file, const char *key, void *to, struct error *err);
	size_t offset;
};
/* A map's keys, each by its row of keys; name is what the map is called. Others are errors. */
int node_read_keys(const struct node *map, const char *file, const char *name, const struct node_key *keys,
		   void *to, struct error *err);
int node_expect_map(const struct node *n, const char *file, const char *name, struct error *err);

/* Text: a quoted or plain scalar that is no number, truth value or null; or {b64: …} for bytes that are not UTF-8.
 * Newly allocated. */
int node_read_text(const struct node *n, const char *file, const char *name, char **ret, struct error *err);
/* One text or a list of them, appended to *list, which may have grown on failure. words: bare numbers and truth
 * values in a list are words as they stand, as in [sleep, 5]. */
int node_read_list(const struct node *n, const char *file, const char *name, bool words, char ***list,
		   struct error *err);
int node_read_bool(const struct node *n, const char *file, const char *name, bool *ret, struct error *err);
/* A scalar as it stands, quoted or not, for values with a grammar of their own; NULL and err on anything else. */
const char *node_read_word(const struct node *n, const char *file, const char *name, struct error *err);

json_t *node_to_json(const struct node *n); /* new reference; NULL if memory is out */

#endif
