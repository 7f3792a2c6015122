/* What the files of the scene share. */
#ifndef RUN_SCENE_H
#define RUN_SCENE_H

#include "layers.h"

/* scene_system.c: the host's own directories and files, as far as they are everybody's. */
int scene_add_system(struct layers *l, struct error *err);
/* A small file with this content. */
void scene_add_file(struct plan *p, const char *target, const char *content, size_t size);

#endif
