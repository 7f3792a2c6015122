/*
 * The ids that the queue's commands are given. The name of an array stands for all its tasks.
 */
#ifndef CLI_QUEUE_WORDS_H
#define CLI_QUEUE_WORDS_H

#include "cli.h"
#include "queue.h"

/* Begins such a command (see cli_begin), whose words are all ids: checked, in their order, each once. and_ledger: tasks too that are in the queue no more. */
int queue_begin(struct cli *cli, const struct option_row *own, bool and_ledger, char ***ret,
		struct error *err);

/* Says it in one line, a warning, if nobody is there to run what is queued (has_queued) or runs (else). *ret_alive (NULL is fine):
 * how many workers are alive. True: it was said; with --json nothing is. */
bool warn_of_no_worker(const struct cli *cli, bool has_queued, unsigned *ret_alive);

#endif
