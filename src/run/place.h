/*
 * Where a command runs and who it is there: a workspace, whose record names all that a crash would leave, and, as root, a
 * uid of its own for as long as the place is held.
 *
 * place_init, place_take, then the workspace is opened for that uid; place_release when nothing of it is alive.
 */
#ifndef RUN_PLACE_H
#define RUN_PLACE_H

#include "workspace.h"

struct place {
	struct workspace *workspace;
	struct slot slot; /* as root */
	uid_t uid;
	gid_t gid;
};

void place_init(struct place *p, struct workspace *w);
/* The caller's own identity, or, as root, a free slot's. */
int place_take(struct place *p, struct error *err);
void place_release(struct place *p);

#endif
