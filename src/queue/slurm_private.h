/* What the files of Slurm share. */
#ifndef QUEUE_SLURM_PRIVATE_H
#define QUEUE_SLURM_PRIVATE_H

#include "slurm.h"

/* slurm_site.c: the script of a batch. */
int slurm_script(const struct slurm *s, const char *batch, char **ret, struct error *err);

/* slurm.c: cluster, array_max. */
int slurm_ask_site(struct slurm *s, struct error *err);

#endif
