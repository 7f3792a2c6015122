/*
 * Capabilities by name, one bit for each. What makes no sense ends the program.
 */
#ifndef SUPPORT_CAPABILITIES_H
#define SUPPORT_CAPABILITIES_H

#include <stdint.h>

uint64_t capability_find(const char *name);    /* "CAP_CHOWN" */
uint64_t capabilities_parse(const char *list); /* "CHOWN,SETUID", "docker": what it leaves to root, "none" */
uint64_t capabilities_now(void);	       /* those that we may have */
void capabilities_keep(uint64_t keep);	       /* whatever is executed later has no others */

#endif
