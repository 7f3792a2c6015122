/*
 * Why an overlay cannot be laid over a directory, and what to do: the kernel says EINVAL to most of it.
 */
#ifndef SANDBOX_OVERLAY_REFUSED_H
#define SANDBOX_OVERLAY_REFUSED_H

#include "error.h"

/* Sets err and returns its value. */
int overlay_refused(const char *source, int errnum, struct error *err);

#endif
