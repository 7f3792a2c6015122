/* The system call filter, compiled from policy.c's table at build time. */
#ifndef SANDBOX_FILTER_H
#define SANDBOX_FILTER_H

#include <linux/filter.h>

extern const struct sock_filter filter_code[];
extern const unsigned short filter_length;

#endif
