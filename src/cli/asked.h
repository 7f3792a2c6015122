/*
 * What was asked on the command line: an id, options of a request, a command, a file. For `run` and `submit`.
 */
#ifndef CLI_ASKED_H
#define CLI_ASKED_H

#include "cli.h"

/* Begins such a command (see cli_begin): r's options are known beside its own rows, and then are applied. */
int asked_begin(struct cli *cli, const struct option_row *own, struct request *r, struct error *err);
/* The id and the command, which are words and not options, into r. may_lack: a file may have the command. */
int asked_take_words(struct cli *cli, struct request *r, bool may_lack, struct error *err);
/* A request file's values (NULL: there is none) where r has none; "-" is stdin. Relative paths start where the caller is. */
int asked_complete(struct request *r, const char *file, struct error *err);

#endif
