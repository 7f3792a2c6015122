/*
 * A set of inodes of one file system, for those with several names: each is to be counted, or copied, only once.
 * Zero-initialise.
 */
#ifndef WORKSPACE_SEEN_H
#define WORKSPACE_SEEN_H

#include <stddef.h>
#include <sys/types.h>

struct seen {
	ino_t *slots; /* open addressing, a power of two of them; 0: free */
	size_t room, used;
};

/* 1 if it is new, 0 if it was there, -ENOMEM. */
int seen_add(struct seen *s, ino_t inode);
void seen_done(struct seen *s);

#endif
