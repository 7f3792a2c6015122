/*
 * The places of a post-process, made in the scratch directory of a run in which nothing is alive any more: work/ and
 * tmp/, which it may write; outputs/ and manifest.json, which it may only read.
 */
#ifndef RUN_POST_SCENE_H
#define RUN_POST_SCENE_H

#include "post_process.h"

/* Where it finds itself. */
#define POST_DIRECTORY "/post-process"
#define POST_WORK      "work" /* what that is on the host, in the scratch directory */
/* The plan's workspace: that, or where there are no namespaces the directory itself. */
int post_scene_enter(struct plan *plan, struct error *err);

/* Its mounts, beside what every scene has. */
void post_scene_plan(struct plan *plan, const char *scratch);
/* Empties scratch and furnishes it. */
int post_scene_make(const struct post_job *job, struct error *err);

#endif
