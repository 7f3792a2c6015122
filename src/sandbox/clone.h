/*
 * clone() as the C library has it. ThreadSanitizer takes every clone() for a fork, after which it believes no lock any
 * more: a process that shares our memory is none, so that it is not told.
 */
#ifndef SANDBOX_CLONE_H
#define SANDBOX_CLONE_H

#include <sched.h>

#ifdef __SANITIZE_THREAD__
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

#endif
