/*
 * The shape of those parts of the configuration that later stages use as JSON: what is checked here with line and
 * column need not be checked there again. Private to the model.
 */
#ifndef MODEL_CONFIG_SHAPE_H
#define MODEL_CONFIG_SHAPE_H

#include <stdint.h>

#include "node.h"

int shape_post_process(const struct node *map, const char *file, struct error *err);
int shape_query(const struct node *map, const char *file, struct error *err);
int shape_users(const struct node *map, const char *file, struct error *err);
int shape_allow(const struct node *map, const char *file, struct error *err);
int shape_slurm(const struct node *map, const char *file, struct error *err);

/* A size or a duration, or "none" (LIMIT_NONE); ret may be NULL. */
int shape_amount(const struct node *n, const char *file, const char *name,
		 int (*parse)(const char *text, uint64_t *ret), const char *example, uint64_t *ret,
		 struct error *err);
/* A number from 1 on, or "none" (0): an int. */
int shape_count(const struct node *n, const char *file, const char *name, void *ret, struct error *err);

/* config_retain.c: a section that is read into a struct config. */
int config_read_retain(const struct node *n, const char *file, const char *key, void *config,
		       struct error *err);

#endif
