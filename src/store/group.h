/*
 * The group that an object store belongs to (group=NAME): several users of one PostgreSQL ledger put their contents into
 * one directory, and each may read and remove what another has put there. They trust each other with all of it.
 */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include <sys/types.h>

#include "error.h"

/* By name or number. Refused if there is none such here, or whoever we are is not in it. */
int group_find(const char *name, gid_t *ret, struct error *err);

#endif
