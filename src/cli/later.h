/*
 * What a request may ask for by name that this version does not do.
 */
#ifndef CLI_LATER_H
#define CLI_LATER_H

#include "request.h"

/* 0, or ERROR_REFUSED in one sentence. */
int later_check(const struct request *r, struct error *err);

#endif
