/*
 * A container runtime's seccomp profile (JSON, as Docker and Kubernetes take it), loaded as the runtime would: the groups that
 * hold for this architecture and for the capabilities that the container has. One way only; ends the program if it cannot.
 */
#ifndef SUPPORT_PROFILE_H
#define SUPPORT_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* skip: NULL, or groups whose comment begins with this are left out. capabilities: a bit for each. */
void profile_load(const char *path, const char *skip, uint64_t capabilities);

/* One call gets this errno, all others pass. */
void profile_refuse(const char *call, int errnum);

#endif
