/*
 * What the supervisor hands to init, and what init reports back. Both sides of one binary are built from this header,
 * so it needs no versioning; it has no pointers, so that it can cross an exec in a memfd.
 *
 * Offsets count from the start of the blob; strings end in NUL; offset 0 is "no string" (the header lies there).
 */
#ifndef SANDBOX_SPEC_H
#define SANDBOX_SPEC_H

#include <stdint.h>

#include "mount_kind.h"

#define SPEC_MAGIC 0x66756d65686f6f64ULL

/* Descriptors with which init starts. */
enum {
	INIT_FD_CONTROL = 3,	/* bytes from the supervisor: CONTROL_*; end of file: die */
	INIT_FD_REPORT = 4,	/* messages of struct report */
	INIT_FD_SPEC = 5,	/* this blob */
	INIT_FD_SUPERVISOR = 6, /* its pidfd: readable when it is dead */
	INIT_FD_SLOT = 7,	/* the lock of the uid, held for as long as init lives; may be closed */
	INIT_FD_JOIN = 8,	/* up to 6: files of cgroups, to which the command writes "0" */
	INIT_FD_IDMAP = 14,	/* up to 4: user namespaces for idmapped lower layers */
	INIT_FD_END = 18,
};

enum { CONTROL_GO = 'g', CONTROL_NO = 'n', CONTROL_TERMINATE = 't' };

enum { SPEC_WRITABLE = 1, SPEC_OPTIONAL = 2 };

struct spec_mount {
	uint32_t kind, flags;	 /* enum mount_kind, SPEC_* */
	uint32_t source, target; /* strings */
	uint32_t content, content_size;
	uint32_t mode;
	int32_t idmap; /* index of an INIT_FD_IDMAP, or -1 */
	uint32_t
		data; /* mount options as "key=value" strings, NUL-separated, ended by an empty one; 0: none */
	/* An overlay's: the directory that it is laid over, of which the source is a part. Those that share one have the same
	 * offset; 0: the source itself. */
	uint32_t layer;
	uint64_t device, inode;
};

struct spec_rlimit {
	uint32_t resource, pad;
	uint64_t value; /* both soft and hard */
};

struct spec {
	uint64_t magic;
	uint32_t size;
	uint32_t
		spare; /* made ahead: when its mounts are there, init waits for a handover and another spec */
	uint32_t bare; /* no namespaces: Landlock's rules are made of the mounts (init/bare.c) */
	uint32_t userns_first; /* init starts in a user namespace that owns all the others */
	uint32_t own_userns;   /* else: enter one before the command, after the mounts */
	uint32_t uid, gid;     /* inside */
	uint32_t host_uid, host_gid;
	uint32_t mounts, n_mounts;
	uint32_t made;	       /* so many of them, the first, are there already: it was a spare */
	uint32_t argv, n_argv; /* arrays of string offsets */
	uint32_t env, n_env;
	uint32_t program, directory, hostname;
	uint32_t writable, n_writable; /* string offsets: what Landlock leaves writable */
	uint32_t filter, n_filter;     /* struct sock_filter */
	uint32_t teller, n_teller;     /* the same, asking a listener; 0: none */
	uint32_t rlimits, n_rlimits;
	uint32_t n_join;
	uint32_t stdin_null;	    /* stdin is the analysis's own /dev/null */
	uint32_t cpus, n_cpus;	    /* affinity mask bytes; 0: as it is */
	uint64_t wall_ns, grace_ns; /* UINT64_MAX: none */
};

/* To a spare, over its control channel: which descriptors come along, in the order of the numbers that they get (bit i: number i).
 * Those of 0, 1, 2 and from INIT_FD_SPEC on that do not come are none. The supervisor's stays. */
struct handover {
	uint32_t present;
};

/* Reports, up to so many in a message: layers, then what they come before. text is a sentence fragment for a person. */
enum { REPORTS_MAX = 16 };
enum report_kind {
	REPORT_READY,	 /* a spare waits for its handover */
	REPORT_NEED_MAP, /* in a new user namespace: write my maps, then CONTROL_GO */
	REPORT_NO_OVERLAY, /* value: index of a mount that cannot be an overlay's layer: errnum; it is the end */
	REPORT_DISK, /* a descriptor of the analysis's own file system comes along: fill it, then CONTROL_GO */
	REPORT_LISTENER, /* a descriptor of the filter's listener comes along */
	REPORT_TERMINAL, /* a descriptor of the command's terminal, the side of who looks at it, comes along */
	REPORT_LAYER,	 /* value 1: held, 0: not; text "name\0detail" */
	REPORT_FAILED,	 /* the walls could not be raised: text says which, errnum why */
	REPORT_EXEC,	 /* the walls stand; the command could not be executed: errnum */
	REPORT_STARTED,	 /* the command runs; value: its pid inside */
	REPORT_DEADLINE, /* wall time is over: SIGTERM has been sent */
	REPORT_ENDED,	 /* value: wait status; usage in the numbers */
};

struct report {
	uint32_t kind;
	int32_t value;
	int32_t errnum;
	uint32_t pad;
	uint64_t cpu_user_us, cpu_system_us; /* ENDED: of the command and what it waited for */
	char text[208];
};

#endif
