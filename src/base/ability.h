/*
 * What this process may do, as the kernel has it. A uid of 0 says little: a container's root has few of root's rights, and the
 * root of a user namespace has all of them over nothing but what is mapped there.
 *
 * Asked anew each time: a host program may give up rights while it runs.
 */
#ifndef BASE_ABILITY_H
#define BASE_ABILITY_H

#include <stdbool.h>
#include <sys/types.h>

/* A capability of <linux/capability.h>, in effect now, in the user namespace that we are in. */
bool ability_has(int capability);

/* Root in the sense that counts here: can give each analysis a uid of its own, act for every user, and make namespaces and
 * mounts without a user namespace. Nobody else is; whoever is not does all of it with the identity that he has. */
bool ability_is_root(void);

/* Every uid and gid there can be means the same here as on the host: we are in no user namespace that hides some. */
bool ability_sees_all_ids(void);

/* Our uid as the user namespace around this one has it: on the host, unless that is nested too. */
uid_t ability_outer_uid(void);

#endif
