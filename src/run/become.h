/*
 * A child of ours that has become another user of this host: what is done for a stranger is done with the stranger's
 * rights, so that no check of ours can be wrong about them.
 *
 * identity_find, become_start, messages over the socket until its end, become_end. The child is a copy of us: it cannot be
 * traced, leaves no core, has no capability and no descriptor but its socket. Its user may stop or kill it; whoever waits
 * for it therefore waits with a deadline. If we die, it is killed.
 */
#ifndef RUN_BECOME_H
#define RUN_BECOME_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "message.h"

struct identity {
	char *name; /* "" where the host has none for it */
	char *home; /* likewise "/" */
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all of them */
	int n_groups;
};
void identity_done(struct identity *i);
#define _cleanup_identity_ _cleanup_(identity_done)

/* By name, or by number. ERROR_NOT_FOUND: no user of this host. A number without an entry has no group but nogroup's. */
int identity_find(const char *user, struct identity *ret, struct error *err);
int identity_of(uid_t uid, struct identity *ret, struct error *err);
/* Whoever is nobody in particular: what it may do, everybody may. */
int identity_nobody(struct identity *ret, struct error *err);
bool identity_has_group(const struct identity *i, gid_t gid);

struct child {
	pid_t pid;
	uid_t uid;
	int pidfd;
	int socket; /* SOCK_SEQPACKET; end of file: it is over */
};

/* fn runs in the child, which ends when it returns: with the memory of this thread as it is now, no other thread, and
 * nothing that it changes seen here. Only root can become somebody else; for all others who must be themselves. NULL: as we are,
 * with all that we may. */
typedef void (*become_fn)(void *arg, int socket);
int become_start(const struct identity *who, become_fn fn, void *arg, struct child *ret, struct error *err);
/* Kills it if it is alive. One that does not die, since a file system of its user's does not answer, is left behind, and
 * after a few of them become_start refuses more for that user until they are gone. */
void become_end(struct child *c);
/* Of one whose socket is at its end: did somebody end it? Before become_end. */
bool become_was_killed(const struct child *c);

#endif
