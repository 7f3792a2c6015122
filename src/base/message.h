/*
 * One message over a socket that keeps them apart (SOCK_SEQPACKET), with a descriptor or without.
 */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

#include <sys/types.h>

/* fd -1: none. -errno. */
int message_send(int socket, const void *data, size_t size, int fd);
/* Its size, 0: the other side has ended; negative. *ret_fd is the caller's, -1: none came along. timeout_ms -1: for ever. */
enum { MESSAGE_LATE = -1, MESSAGE_FAILED = -2 };
ssize_t message_receive(int socket, void *data, size_t room, int timeout_ms, int *ret_fd);

#endif
