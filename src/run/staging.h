/*
 * What the files of staging share. Which files are copied into the workspace is decided when the plan is made: each is noted
 * with its canonical path, device and inode, and whoever copies it later refuses another (workspace_stage, submission.c). So
 * nothing that is renamed or swapped for a link in between leads anywhere.
 */
#ifndef RUN_STAGING_H
#define RUN_STAGING_H

#include <sys/stat.h>

#include "plan.h"

struct hood;

struct staging {
	const struct hood *hood;
	const struct request *request;
	struct plan *plan;
	uint64_t tree_bytes; /* of directories so far */
};

int staging_add(struct staging *s, const char *source, const char *as, const struct stat *st,
		struct error *err);
/* "./a//b" is "a/b"; false if it climbs with "..", or nothing is left. */
bool path_clean_relative(const char *path, char *out, size_t room);
/* data, docs and --ro: the analysis sees it anyway. real is canonical. */
bool staging_is_shown(const struct staging *s, const char *real);

/* stage_tree.c: a directory, open at fd (O_PATH): every file below it, but what nobody means by it (repositories' own
 * directories, virtual environments, what is ours, what is shown anyway). Links to files that are copied too become copies of
 * them; other links, and what is no file, are named in a note. as "": the workspace itself. given: as the user wrote it. */
int staging_add_tree(struct staging *s, int fd, const char *real, const char *as, const char *given,
		     struct error *err);

#endif
