/*
 * What Slurm's commands say, as data. Pure: text in, a struct or a refusal out. Whatever is not understood is not guessed at.
 */
#ifndef QUEUE_SLURM_PARSE_H
#define QUEUE_SLURM_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLURM_JOB_ROOM = 48, SLURM_WORD_ROOM = 128 };

/* What a state means for an analysis. One that we do not know is SLURM_ACTIVE: it is waited for. */
enum slurm_phase {
	SLURM_PENDING,	 /* it has not started, or is to start again */
	SLURM_ACTIVE,	 /* something of it may be alive */
	SLURM_DONE,	 /* its script has ended, well or badly */
	SLURM_TIMEOUT,	 /* --time */
	SLURM_OOM,	 /* --mem */
	SLURM_CANCELLED, /* scancel */
	SLURM_LOST,	 /* a node failed, or somebody more important came */
};

/* A line of squeue's, asked for SLURM_FIELDS. Fixed room: what is longer makes no line; only what people read is cut. */
#define SLURM_FIELDS "JobArrayID:|,State:|,Reason:|,NodeList:|,exit_code:|,Name:|"
struct slurm_seen {
	char job[SLURM_JOB_ROOM]; /* "123_4", or "123" */
	int index;		  /* 4, or 0 */
	enum slurm_phase phase;
	char state[SLURM_WORD_ROOM];  /* "NODE_FAIL" */
	char reason[SLURM_WORD_ROOM]; /* "" if there is none */
	char node[SLURM_WORD_ROOM];   /* "" before it has one */
	int status;		      /* exit status, or 128 and a signal */
	char name[SLURM_WORD_ROOM];
};
/* size bytes without the line break. -EINVAL: no such line. */
int slurm_seen_parse(const char *line, size_t size, struct slurm_seen *ret);

/* sbatch --parsable: "123", "123;cluster". -EINVAL */
int slurm_job_parse(const char *text, char out[SLURM_JOB_ROOM]);

/* `scontrol show config`: "ClusterName             = test". The value into out; -ENOENT, -EINVAL if it does not fit. */
int slurm_setting_parse(const char *text, const char *key, char *out, size_t room);

/* Why a command failed, from what it said on stderr, as a line for people; and whose matter that is. */
enum slurm_failure {
	SLURM_PASSING, /* nobody answered, or not now */
	SLURM_FULL,    /* it would be too many at once, of all that this array has */
	SLURM_STRANGE, /* in words that we do not know: of this one, as far as we can tell */
	SLURM_REFUSED, /* Slurm understood, and will not have it */
	SLURM_MISUSED, /* our options: the site's configuration, or another Slurm than we know */
};
enum slurm_failure slurm_failure_parse(const char *text, char *out, size_t room);

#endif
