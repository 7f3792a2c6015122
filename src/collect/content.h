/*
 * One file that a stranger left, opened beneath a directory and found to be inert: regular, with one name, of the
 * right owner, without set-uid bits. What is not is refused with one of the constant reasons of manifest.h.
 */
#ifndef COLLECT_CONTENT_H
#define COLLECT_CONTENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "digest.h"
#include "work.h"

/* Why something of this type cannot be an output; NULL for a regular file. */
const char *content_type_reason(mode_t mode);

/* The descriptor, st filled; or -EPERM with *ret_reason set; or -errno, which is our failure. A file that its owner has
 * locked is unlocked first. owner (uid_t)-1: any. */
int content_open(int dirfd, const char *name, uid_t owner, struct stat *st, const char **ret_reason);

/* Hashes exactly st's size through buffer. 0; 1 if it is not what st says any more; -errno. */
int content_hash(int fd, const struct stat *st, char *buffer, size_t room, struct work *work,
		 uint8_t ret[DIGEST_SIZE]);
/* 0; 1 if it is not what st says any more; -errno. */
int content_compare(int fd, const struct stat *st);

#endif
