/*
 * What was asked on the command line: an id, options of a request, a command, a file. For `run` and `submit`.
 */
#ifndef CLI_ASKED_H
#define CLI_ASKED_H

#include "cli.h"

/* The id and the command, which are words and not options, into r. may_lack: a file may have the command. */
int asked_take_words(struct cli *cli, struct request *r, const struct options *o, bool may_lack,
		     struct error *err);
/* A request file's values where r has none; "-" is stdin. */
int asked_load_file(struct request *r, const char *file, struct error *err);
/* Relative paths start where the caller is. */
int asked_set_directory(struct request *r, struct error *err);
/* For `others_name` and `others_apply`: the i-th option of a request, or NULL; one of them, applied. */
const char *asked_option_name(size_t i);
int asked_apply_option(void *request, const char *name, const char *value, struct error *err);

#endif
