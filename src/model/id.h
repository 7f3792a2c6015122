/*
 * The name of an analysis: 1–128 of letters, digits, '.', '_', '-', not starting with '.' or '-'. It becomes part
 * of a path, so it is checked once, here, before anything is touched.
 */
#ifndef MODEL_ID_H
#define MODEL_ID_H

#include "error.h"

enum { ID_MAX = 128, ID_ROOM = ID_MAX + 1, TOKEN_SIZE = 33 };

/* 0, or one sentence in err (ERROR_USAGE) in which the id is escaped. */
int id_check(const char *id, struct error *err);

/* A made-up id, sortable by time and readable: "20261115-023408-k7m2qx". */
int id_make(char out[ID_ROOM], struct error *err);

/* 128 random bits in hex: what fences a commit. */
int token_make(char out[TOKEN_SIZE], struct error *err);

#endif
