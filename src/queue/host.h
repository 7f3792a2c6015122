/*
 * How much of this host analyses may use together: its memory and its CPUs, or what a container or a service manager
 * leaves of them.
 */
#ifndef QUEUE_HOST_H
#define QUEUE_HOST_H

#include <stdint.h>

uint64_t host_memory(void); /* bytes; 0: not known */
int host_cpus(void);	    /* at least 1 */

#endif
