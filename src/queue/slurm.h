/*
 * Slurm, by its commands: what the site has configured, and the four that are asked (sbatch, squeue, scancel, scontrol). Each of them is
 * asked for many jobs at once. They block, with a deadline.
 *
 *     slurm_open → slurm_options for each analysis → slurm_submit for those with the same → slurm_look, slurm_cancel → slurm_close
 *
 * A job of ours is an array of `fumehood worker --take BATCH`, one task for each analysis of the batch (store/handover.h). It carries no
 * secret: what it is told of the ledger is an address, and where a password file lies.
 */
#ifndef QUEUE_SLURM_H
#define QUEUE_SLURM_H

#include "hood.h"
#include "slurm_parse.h"

/* What the hood needs beside its analysis, within Slurm's own limits, so that ours are reached first. */
#define SLURM_MEMORY_OVERHEAD (64ULL << 20)
#define SLURM_TIME_OVERHEAD   (120 * NSEC_PER_SEC)

enum { SLURM_JOBS_DEFAULT = 1000 };

struct slurm {
	char *bin;	/* the directory that sbatch is in */
	char *command;	/* fumehood, on the nodes */
	char *log;	/* a directory, on the nodes; NULL: nowhere */
	char **options; /* of every job, as the site has them: partition, account, qos, options */
	char **env;	/* of the commands */
	char *script;	/* of every job, but for the batch's name at its end */
	json_t *users;	/* queue.users, where jobs are submitted as those; else NULL */
	int jobs;	/* how many at once */
	uint64_t poll_ns;
	char cluster[SLURM_WORD_ROOM];
	int array_max; /* tasks in an array; 1: arrays are not to be had */
};

/* Can nodes use this ledger, and may they be told its address? Before it is opened. */
int slurm_check_ledger(const char *url, struct error *err);

/* h: its configuration and ledger. Asks Slurm what it is called. lease_ns 0: the nodes' own. */
int slurm_open(struct hood *h, const char *config_file, uint64_t lease_ns, struct slurm **ret,
	       struct error *err);
struct slurm *slurm_close(struct slurm *s);

/* sbatch's options for one analysis: equal lists may be one array. ERROR_REFUSED: not with these. */
int slurm_options(const struct slurm *s, const struct config *c, const struct job *job, char ***ret,
		  struct error *err);

/* One array of count tasks. 0 with its id; negative: err has why, in Slurm's own words, and *ret_failure whose matter it is. A batch
 * whose answer did not come may be there all the same. */
int slurm_submit(const struct slurm *s, const char *batch, size_t count, char *const *options,
		 char job[SLURM_JOB_ROOM], enum slurm_failure *ret_failure, struct error *err);

/* All that Slurm still knows of the jobs of these batches, ended ones too, one task at a time. jobs: of these alone, "123_4" each, and
 * batches has as many; NULL: of all. squeue's list of all is not complete: of seven pending tasks or more of an array in equal steps
 * ("123_[0-12:2]", as cancelling every second one makes them) it does not have the last (22.05). Asked for by its name it has it. */
typedef int (*slurm_seen_fn)(void *arg, const struct slurm_seen *seen, struct error *err);
int slurm_look(const struct slurm *s, char *const *batches, char *const *jobs, slurm_seen_fn fn, void *arg,
	       struct error *err);

/* Ends these, "123_4" each. One that is not there any more is no matter. */
int slurm_cancel(const struct slurm *s, char *const *jobs, struct error *err);

#define SLURM_NAME "fumehood-" /* of a job, before the batch's */

#endif
