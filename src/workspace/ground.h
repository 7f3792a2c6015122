/*
 * The ground on which everything here stands, the workspaces' directory and the state's: whether something can be made there, and
 * if not, why and what to do. `doctor` tells it, and `run` refuses with the same words.
 */
#ifndef WORKSPACE_GROUND_H
#define WORKSPACE_GROUND_H

#include "workspace.h"

enum ground { GROUND_WORKSPACES, GROUND_STATE };

struct ground_fault {
	char what[256];
	char remedy[512];
};

const char *ground_name(enum ground which); /* as doctor has it */
/* 0, or the errno with which no file with something in it can be made there. Leaves nothing. */
int ground_try(int dirfd);
void ground_describe(enum ground which, const char *path, int errnum, struct ground_fault *ret);
/* Sets err to that. */
int ground_refuse(enum ground which, const char *path, int errnum, struct error *err);
/* After a workspace could not be opened: where the ground is the reason, err says that instead. Returns r. */
int ground_explain(const struct site *s, const char *state_dir, int r, struct error *err);

#endif
