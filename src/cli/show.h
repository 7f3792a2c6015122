/*
 * An attempt as a readable page: for `show`, and nobody else.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli.h"
#include "print.h"

int show_attempt(const struct cli *cli, const struct attempt *a, const json_t *attempts, struct error *err);

#endif
