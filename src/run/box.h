/*
 * One command under the hood: an analysis, a post-process, whatever comes. The story only says which, where and when.
 *
 * Theory of operation. A box is opened with a plan, which it never changes, and a place. From then on it owns what one
 * command needs: pipes and logs, a cgroup, CPUs, a disk if the plan wants one, the sandbox. What can only be learned
 * late (which inode the workspace is, which loop device its disk) is kept here, and handed to the sandbox beside the
 * plan.
 *
 *   box_init → box_open: streams, limits, all that can be refused     the record names the cgroups before they are made
 *            → box_start: the walls, then the command                the record names PID 1 before it does anything
 *            → box_watch: until nothing of it is alive               evidence, usage, logs, disk
 *            → box_close: whatever is left of all this               also after a failure, and twice
 *
 * Between box_watch and box_close the workspace can be read: on a disk of its own it is there as long as the box is. A
 * crash at any instant leaves what the place's record names, and gc removes that.
 */
#ifndef RUN_BOX_H
#define RUN_BOX_H

#include "affinity.h"
#include "cgroup.h"
#include "place.h"
#include "sandbox.h"
#include "supervise.h"
#include "tree.h"

struct box_order {
	const struct plan *plan;
	struct place *place;
	const struct cgroup_host *cgroups;
	struct stock *stock;	 /* what is made ahead; NULL: nothing is */
	struct hand *hand;	 /* for what need not be waited for; or NULL */
	struct spare **begun;	 /* its init, if that was begun already; taken as it starts */
	struct receipt *receipt; /* gets a line for each wall and limit */
	const char *log_prefix;	 /* its logs' names in the folder of runs begin with it */
	int cancel_fd, stop_fd;	 /* either ends it; -1: none */
	int stdin_fd;		 /* -1: none */
	bool merge;		 /* its stderr is its stdout */
	struct pty_job pty;	 /* for a plan with a terminal, all but its master */

	void *arg;
	void (*meanwhile)(
		void *arg); /* its walls are being raised: what need not be done before or after; NULL: nothing */
	/* The disk of its own is mounted, and the workspace is a directory on it: copies in what is staged. */
	int (*fill)(void *arg, struct error *err);
	void (*output)(void *arg, int stream, const char *data, size_t size); /* NULL: log only */
	void (*progress)(void *arg, const struct sample *now, int64_t files); /* NULL: none */
	int progress_interval_ms;
	enum filter_kind listen;			      /* for on_notice: to what */
	void (*on_notice)(void *arg, const struct notice *n); /* NULL: nobody listens */
};

/* How much of its disk it used. */
struct disk_use {
	struct tree_size most;	      /* that was seen */
	bool was_full, files_were_up; /* a disk of its own had no byte, no file more */
	bool was_hidden;	      /* it was ended for what could not be looked into */
};

/* A disk of its own. The workspace's descriptor then is a directory on it, and the host's is kept here. */
struct box_disk {
	int fd, loop, host_workspace;
	struct tree_size empty; /* what it holds before anything is in it */
};

struct box {
	struct box_order order;
	int out[STREAM_COUNT][2]; /* pipes */
	int log[STREAM_COUNT];
	int null;
	int in[2];	    /* the caller's stdin is poured through this pipe, or into the terminal */
	struct pty_job pty; /* the command's terminal; master -1: it has none */
	struct cgroup *cgroup;
	struct cgroup_ahead *ahead; /* is being made by the other hand; or NULL */
	struct affinity affinity;
	struct mount_fact *facts; /* one for each mount of the plan */
	char loop_path[32];
	struct box_disk disk;
	struct tree_look *look; /* at plain directories, under way */
	struct sandbox *sandbox;
	uint64_t started;    /* clock_now() */
	int64_t started_utc; /* ns */
	/* From box_watch on. */
	struct supervise_result result; /* may be taken from */
	struct disk_use use;
};

void box_init(struct box *b);
/* Before box_open, if there is another hand: its cgroup is made meanwhile. The place's record names it already; token and limits
 * of the plan, and cgroups, are those of the order to come. */
void box_begin_cgroup(struct box *b, const struct plan *plan, const struct cgroup_host *cgroups,
		      struct hand *hand);
int box_open(struct box *b, const struct box_order *order, struct error *err);
/* 0 also when the command could not be executed: that is evidence. Negative: a wall could not be raised, nothing is alive. */
int box_start(struct box *b, struct error *err);
int box_watch(struct box *b, struct error *err);
void box_kill(struct box *b); /* while it is watched */
/* Where the disk of its own goes, keep: what lies on it is copied to the host's directory first. */
int box_leave_disk(struct box *b, bool keep, struct error *err);
void box_close(struct box *b);
/* Nothing of it is alive, and nothing more will be asked of it: its mounts and its cgroup go, by the other hand. box_close awaits it. */
void box_retire(struct box *b);

/* Is the workspace somewhere else than where its path says? */
bool box_is_away(const struct box *b);
/* CPU time is counted by the cgroup and by nobody else. */
bool box_counts_cpu_time(const struct box *b);

/* box_disk.c, for box.c: which inodes and devices the mounts are, now that they exist. */
int box_learn_mounts(struct box *b, struct error *err);
void box_make_disk(struct box *b);
int box_enter_disk(struct box *b, int fd, struct error *err); /* fd becomes the box's */
/* supervise's measure; arg is the box. */
enum look box_measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files);
/* At the most that was seen, with a last look now that nothing moves any more. */
void box_measure_last(struct box *b);

#endif
