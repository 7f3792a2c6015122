/*
 * Looking into another process: its memory, and where it is. It may be hostile and may be gone: what is read is its word, bounded
 * and copied once.
 */
#ifndef BASE_PEEK_H
#define BASE_PEEK_H

#include <stdint.h>
#include <sys/types.h>

/* As many bytes as can be read; negative: none. */
ssize_t peek_bytes(pid_t pid, uint64_t address, void *out, size_t size);
/* A string with its NUL: its length; -ENAMETOOLONG: it does not end within room; -EFAULT. */
ssize_t peek_string(pid_t pid, uint64_t address, char *out, size_t room);
/* Where a descriptor of its leads (-100, AT_FDCWD: where it is), as a path in its own mounts. Its length, -errno. */
ssize_t peek_directory(pid_t pid, int fd, char *out, size_t room);
/* Its root, O_PATH. -errno. */
int peek_root(pid_t pid);

#endif
