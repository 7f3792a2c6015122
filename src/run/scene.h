/* What the files of the scene share. */
#ifndef RUN_SCENE_H
#define RUN_SCENE_H

#include "layers.h"

/* scene_system.c: the host's own directories and files, as far as they are everybody's. */
int scene_add_system(struct layers *l, struct error *err);
/* One of its files, if everybody may read it and it is there. */
int scene_add_file_of_host(struct layers *l, const char *path, struct error *err);
/* scene_bare.c: without namespaces. The file that is open, where it is; what every analysis needs of the host beside its programs. */
int scene_add_as_is(struct layers *l, int fd, struct error *err);
int scene_add_bare(struct layers *l, struct error *err);
/* A small file with this content. */
void scene_add_file(struct plan *p, const char *target, const char *content, size_t size);

#endif
