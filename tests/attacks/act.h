/*
 * What attacks are made of, in the attacker's process: show what was read, claim what was reached, visit every
 * process, leave the namespaces.
 */
#ifndef ATTACK_ACT_H
#define ATTACK_ACT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mechanism.h"

/* The head of a row's run function. */
#define ACT(name) static int name(UNUSED const struct targets *t, UNUSED const struct attack *a)

/* Prints what was read; the suite looks for the secret in it. */
void show(const void *data, size_t size);
int show_fd(int fd);		 /* everything that can be read at once; 0 or -errno */
int show_file(const char *path); /* 0 or -errno */
int show_file_at(int dirfd, const char *path);
int show_names(const char *path); /* what a directory lists */

/* "REACHED …": the kernel did what it should have refused. Returns 0. */
int reached(const char *format, ...) PRINTF_LIKE(1, 2);

/* -errno of the call that has just failed, 0 if r is not negative. */
int result(long r);
/* The call was refused as a denied call is: EPERM, EACCES, ENOSYS …; anything else means that it got through. */
bool refused(int r);

/* Opens path for writing and writes a byte; 0 or -errno. */
int spoil(const char *path);
int spoil_at(int dirfd, const char *path, int flags);

/* Calls fn for every process there is to see but this one, until it returns 0; in a control only for those of the
 * platform. 0, or the last -errno. */
int each_process(int (*fn)(const struct targets *t, pid_t pid), const struct targets *t);

/* New user and mount namespaces, or a mount namespace alone where root may; propagation private. 0 or -errno. */
int own_mounts(void);

/* Waits without a busy loop for the suite to look at what is being held; longer on a slow machine. */
void linger(int milliseconds);
void linger_scale(long slowness);

/* Joined in a static buffer that the next call overwrites: for one path at a time. */
const char *text(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
