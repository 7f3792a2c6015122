/*
 * User namespaces that exist only to translate one owner: as root, an input's owner becomes the analysis, so that what
 * only the owner may read stays readable. Maps are one to one: everybody else is "other". Private to the sandbox.
 */
#ifndef SANDBOX_IDMAP_H
#define SANDBOX_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct idmap {
	int fd; /* of the namespace */
	pid_t holder;
	void *stack; /* of the holder, which shares our memory */
};

/* A user namespace in which from_uid/from_gid of a file system appear as to_uid/to_gid. others: all other
 * ids appear as themselves, not as nobody's: a reader whose files have several groups needs that, since of a file with an
 * id that is nobody's not even the overlay's own rights are enough to read it. */
int idmap_open(uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid, bool others, struct idmap *ret,
	       struct error *err);
/* Awaits the end of the process that it was made with, which is under way since it is open: better done later than at once. */
void idmap_close(struct idmap *map);

/* Writes /proc/PID/{setgroups,uid_map,gid_map}: one identity, inside ↔ outside. */
int identity_map(pid_t pid, uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid,
		 struct error *err);

#endif
