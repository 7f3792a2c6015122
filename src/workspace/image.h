/*
 * A disk of a given size for one analysis, as root: a sparse file without a name, an ext4 in it, a loop device on it that
 * goes away by itself when nobody has it mounted. A crash at any instant leaves nothing.
 */
#ifndef WORKSPACE_IMAGE_H
#define WORKSPACE_IMAGE_H

#include <stdint.h>

#include "error.h"

/* The loop device's descriptor, to be held until it is mounted, and its path. -ENODEV where the host has no loop devices
 * or no mke2fs: err says which. */
int image_open(int root_fd, uint64_t bytes, uint64_t files, char path[32], struct error *err);
/* Once it is mounted, with the analysis's directories in it: leaves room for so many files and no more. */
int image_trim(int fd, uint64_t files, struct error *err);

#endif
