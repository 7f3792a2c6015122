/*
 * Limits and counters of one analysis: cgroup v2, v2 through systemd, v1, or none, behind one interface.
 *
 * cgroup_host_probe once; cgroup_create before the start (limits are set before anything runs in it); the child
 * joins by writing "0" to each join descriptor; cgroup_read any time, also after the last process is gone;
 * cgroup_remove when PID 1's pidfd is readable: it is empty then, or is killed and awaited. A crash leaves empty
 * directories that the workspace's record names.
 */
#ifndef SUPERVISE_CGROUP_H
#define SUPERVISE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "limit.h"
#include "receipt.h"

enum cgroup_way { CGROUP_NONE, CGROUP_V1, CGROUP_V2, CGROUP_SYSTEMD };

struct cgroup_host {
	enum cgroup_way way;
	bool memory, pids, cpu; /* which controllers we can use */
	bool swap;		/* swap is counted with memory */
	bool user_manager;	/* CGROUP_SYSTEMD: the user's, not the system's */
	char why[512];		/* for what is missing: one sentence with what to do */
	char v2_parent[512];	/* where ours are made; "" where systemd makes the place */
	char v1_parent[6][512]; /* memory, pids, cpu, cpuacct, freezer, blkio; "" if not usable */
};

int cgroup_host_probe(struct cgroup_host *ret, struct error *err);
const char *cgroup_way_name(enum cgroup_way way); /* "v1", "v2", "v2 (systemd)", "none" */

struct cgroup;
enum { CGROUP_JOIN_MAX = 6 };

/* The directories that cgroup_create() may make, as far as we and not systemd make them: for the record, which is
 * written before they are. NULL-terminated, newly allocated. */
int cgroup_foresee(const struct cgroup_host *host, const char *name, char ***ret, struct error *err);

/* Makes and limits. A limit that was asked for and cannot be held: ERROR_REFUSED (unless allow_unlimited); a default
 * that cannot be held: a warning and a line in the receipt. An enclosing limit that is as tight counts as held. */
int cgroup_create(const struct cgroup_host *host, const char *name, const struct limits *limits,
		  bool allow_unlimited, struct receipt *receipt, struct cgroup **ret, struct error *err);
/* The directories, NULL-terminated, for the record; owned by the cgroup. */
char *const *cgroup_paths(const struct cgroup *c);
/* Descriptors to which the child, which has a single thread, writes "0" before it changes its uid; owned by the cgroup.
 * Returns the count. */
int cgroup_join_fds(const struct cgroup *c, int fds[CGROUP_JOIN_MAX]);
/* Brings PID 1 to where its children may join: called by the supervisor between clone and the join. Does something
 * only where the kernel forbids an ordinary user the direct way, from a login session into the user manager's tree. */
int cgroup_adopt(const struct cgroup *c, pid_t pid, struct error *err);

/* Counters; -1 for what is not available. */
struct cgroup_counters {
	int64_t cpu_ns, cpu_user_ns, cpu_system_ns, throttled_ns;
	int64_t memory_bytes, memory_peak_bytes, memory_anon_bytes, swap_peak_bytes;
	int64_t pids, pids_peak, pids_hits;
	int64_t oom_kills;
	int64_t read_bytes, written_bytes;
};
void cgroup_read(const struct cgroup *c, struct cgroup_counters *ret);
/* Only what a progress line and the timeline need: cheap. */
void cgroup_sample(const struct cgroup *c, struct cgroup_counters *ret);
/* Kills and awaits what is in it, as far as that can be done: for who has no pid namespace that does. */
void cgroup_empty(const struct cgroup *c);
/* Removes the directories; kills and awaits what is still in them. Frees c in every case. */
int cgroup_remove(struct cgroup *c, struct error *err);

/* Of this process itself: the tightest limit of memory around it (LIMIT_NONE), and how many the kernel has killed for it in its own place (-1: not
 * known). */
void cgroup_memory_around(uint64_t *ret_limit, int64_t *ret_oom_kills);

/* For recovery: kills, awaits and removes one directory that a dead supervisor left; missing is fine. Refuses what is
 * not named like ours. */
int cgroup_remove_path(const char *path, struct error *err);

/* For `doctor --delegate`, as root: gives a user a part of the tree in which the limits of his analyses can be held.
 * With systemd for good, else until the next boot. Twice is fine. done: one sentence on what is so now, and what is
 * left to do. */
enum { CGROUP_DONE_ROOM = 1024 };
int cgroup_delegate(uid_t uid, gid_t gid, char done[CGROUP_DONE_ROOM], struct error *err);

#endif
