/*
 * The ids that the queue's commands are given. The name of an array stands for all its tasks.
 */
#ifndef CLI_QUEUE_WORDS_H
#define CLI_QUEUE_WORDS_H

#include "cli.h"
#include "queue.h"

/* Begins such a command (see cli_begin), whose words are all ids: checked, in their order, each once. and_ledger: tasks too that are in the queue no more. */
int queue_begin(struct cli *cli, bool and_ledger, char ***ret, struct error *err);

#endif
