/*
 * A YAML document (JSON is a subset) read into a tree of nodes. Strict on purpose: duplicate keys, anchors, aliases,
 * tags, NUL bytes, a second document, deep nesting and large texts are errors. Private to the model.
 */
#ifndef MODEL_DOCUMENT_H
#define MODEL_DOCUMENT_H

#include "node.h"

enum { DOCUMENT_SIZE_MAX = 1 << 20, DOCUMENT_DEPTH_MAX = 64, DOCUMENT_KEYS_MAX = 1000 };

/* An empty text is an empty map. file names it in errors: "file:line:column: …". */
int document_parse(const char *text, size_t size, const char *file, struct node *ret, struct error *err);
/* The same tree from JSON that is already parsed; its nodes have no line. */
int document_from_json(const json_t *json, const char *file, struct node *ret, struct error *err);

#endif
