/*
 * Whether this host lets each layer be raised: tried by itself, in a child that does nothing else. It leaves nothing.
 *
 * `doctor` tries them all. A start that has failed tries them in this order, and the first that cannot be raised is the reason
 * that is given (cause.h): so both say the same.
 */
#ifndef SANDBOX_PROBE_H
#define SANDBOX_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

enum probe {
	PROBE_OPENAT2, /* calls that every strength needs */
	PROBE_PIDFD_OPEN,
	PROBE_CLOSE_RANGE,
	PROBE_PRLIMIT,
	PROBE_EXECVEAT,
	PROBE_SIGNALFD,
	PROBE_CAPSET,
	PROBE_SETGROUPS, /* where the analysis is somebody else than we are */
	PROBE_MEMORY,	 /* programs in memory: init is one */
	PROBE_USER,	 /* a user namespace */
	PROBE_UNSHARE,	 /* as root it is entered in the end */
	PROBE_IDENTITY,	 /* in which the analysis has an identity */
	PROBE_PROCESSES, /* pid, ipc and uts namespaces */
	PROBE_NETWORK,	 /* a network namespace, and its loopback */
	PROBE_MOUNTS,	 /* a mount namespace, a tmpfs in it */
	PROBE_ROOT,	 /* which becomes the root */
	PROBE_PROC,	 /* a fresh /proc */
	PROBE_OVERLAY,
	PROBE_SECCOMP,
	PROBE_LANDLOCK, /* a second lock: nothing is refused without it */
	PROBE_COUNT
};

/* Who would be tried for. */
struct probe_identity {
	bool userns; /* as one who is not root: all of it below a user namespace */
	bool bare;   /* strength landlock: no namespaces at all */
	uid_t uid;   /* the analysis's, on the host */
	gid_t gid;
};

/* As doctor and receipts name the layer. */
const char *probe_name(enum probe which);
/* Does nothing run without it? */
bool probe_is_required(enum probe which, bool bare);
/* 0, or the errno with which it cannot be raised; that of a layer below it, where that one cannot be. */
int probe_try(enum probe which, const struct probe_identity *who);
/* The same of those that start no child and need to know nobody; 0 for the others. */
int probe_try_here(enum probe which);

#endif
