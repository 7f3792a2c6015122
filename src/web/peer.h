/*
 * Whose the other end of a connection within this host is.
 */
#ifndef WEB_PEER_H
#define WEB_PEER_H

#include <stdint.h>

/* The uid; -1: it is on another host, in another network namespace, or cannot be told. */
int64_t peer_uid(int fd);

#endif
