/*
 * An attempt as a readable page: for `show`, and nobody else.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli.h"

void show_queued(const struct cli *cli, const char *id, const struct queue_view *v);
/* What was asked, for one that has no attempt yet. */
int show_request(const struct cli *cli, const struct queue_view *v, struct error *err);

int show_attempt(const struct cli *cli, const struct attempt *a, const json_t *attempts, struct error *err);

#endif
