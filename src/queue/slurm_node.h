/*
 * A worker that is a job of Slurm's: what it knows of that by its environment, and what Slurm says when something of it has been ended.
 *
 * Slurm sends SIGTERM to all processes of a job, ours and the analysis's, and what it says of the job at that moment tells why. scontrol is
 * asked once, for a few seconds at most: a controller that does not answer is no reason to keep a node. A controller that was restarted may
 * have given the number of a job to another one: its name tells them apart.
 */
#ifndef QUEUE_SLURM_NODE_H
#define QUEUE_SLURM_NODE_H

#include <stdatomic.h>

#include "hood.h"

/* A job as `scontrol -o show job` tells it, as far as it tells it. */
struct slurm_job_said {
	char name[128];
	char state[32];	 /* COMPLETING */
	char reason[64]; /* TimeLimit; "" for None */
	char limit[32];	 /* 00:02:00 */
	bool is_preempted;
	bool has_end; /* when it ends is known */
	int restarts; /* how often it was started again, with what is to come */
};
/* -EINVAL: these are not its words. */
int slurm_job_read(const char *text, struct slurm_job_said *ret);
/* What that means for an analysis whose job it was, which had been started again so often then; reason: for people. */
enum manager_said slurm_job_means(const struct slurm_job_said *j, int restarts,
				  char reason[MANAGER_REASON_SIZE]);

struct slurm_node {
	struct run_manager manager;
	atomic_bool is_told; /* that it is to end: SIGTERM */
	char job[64];	     /* "123_4"; "": in no job of Slurm's */
	char job_id[32];     /* as scontrol knows it */
	char node[256];
};
/* By the environment. n stays where it is: the manager refers to it. */
void slurm_node_init(struct slurm_node *n);
/* {"engine": "slurm", "job": …}; NULL: in no job, or memory is out. */
json_t *slurm_node_handle(const struct slurm_node *n);
/* Which of an array this is; 0 without one. */
int slurm_node_index(void);

#endif
