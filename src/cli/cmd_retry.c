/*
 * fumehood retry: once more, from the request as it was submitted, with the files as they were then.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "queue_words.h"
#include "submission.h"

static const char help[] =
	"  fumehood retry a42\n"
	"  fumehood retry sweep                every task of an array that did not succeed\n"
	"  fumehood retry --restored           all that `ls --state restored` shows, out of a backup\n"
	"\n"
	"For what failed, was cancelled or restored. The files are those of the submission; of what `run` has run, those\n"
	"that it had: if one has changed since, that is said, and nothing is queued.\n"
	"--db URL  --config FILE  --json  --quiet\n";

struct retry {
	bool found, is_alive, succeeded;
	enum job_state state;
	char whose[64]; /* what the backup says */
};

static int note(void *arg, const struct queued *q, struct error *err UNUSED)
{
	struct retry *look = arg;

	*look = (struct retry){
		.found = true,
		.is_alive = q->state == JOB_WAITING || q->state == JOB_QUEUED || q->state == JOB_RUNNING,
		.succeeded = q->state == JOB_FINISHED && q->verdict == VERDICT_SUCCEEDED,
		.state = q->state,
	};
	if (q->state == JOB_RESTORED && q->submitter)
		text_escape_into(look->whose, sizeof look->whose, q->submitter, strlen(q->submitter));
	return 0;
}

struct retry_ids {
	char ***list;
	size_t n;
};

static int note_id(void *arg, const struct queued *q, struct error *err)
{
	struct retry_ids *ids = arg;

	return strv_push(ids->list, &ids->n, q->id, err);
}

/* skips: one of many tasks, of which those that succeeded are left alone. */
static int retry_one(struct cli *cli, const char *id, bool skips, json_t *answers, struct error *err)
{
	char *const ids[] = {(char *)id, NULL};
	char submitter[SUBMITTER_ROOM];
	struct retry look = {0};
	int r = ledger_queue_look(cli->ledger, ids, note, &look, err);

	if (r == 0 && !look.found)
		r = ledger_ended_look(cli->ledger, ids, note, &look, err);
	if (r < 0 || (skips && look.succeeded))
		return r;
	r = submitter_default(submitter, sizeof submitter, err);
	if (r == 0 && !look.is_alive)
		r = submission_retry(cli->hood, submitter, id, err);
	if (r < 0)
		return r;
	if (cli->json)
		return json_array_append_new(answers, json_pack("{s:s, s:s}", "id", id, "was",
								job_state_name(look.state))) < 0
			       ? error_memory(err)
			       : 0;
	if (!cli->quiet)
		printf("%s%s%s is %s%s\n", id, *look.whose ? " of " : "", look.whose,
		       look.is_alive ? job_state_name(look.state) : "queued",
		       look.is_alive ? " already" : " again");
	return 0;
}

static int retry_all(struct cli *cli, char *const *ids, bool skips, struct error *err)
{
	json_auto_t *answers = json_array();
	struct error first = ERROR_INIT;
	int r = 0;

	for (size_t i = 0; ids && ids[i]; i++) {
		struct error why = ERROR_INIT;

		if (retry_one(cli, ids[i], skips, answers, &why) < 0 && r == 0) {
			first = why;
			r = -1;
		}
	}
	if (r < 0) {
		*err = first;
		return r;
	}
	return cli->json ? cli_print_json(cli, json_pack("{s:O}", "analyses", answers), err) : 0;
}

static int retry_main(struct cli *cli, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	bool restored = false;
	const struct option_row own[] = {
		{"--restored", OPTION_FLAG, &restored, NULL, "all that were restored from a backup"}, {0}};
	int r = queue_begin(cli, own, true, &ids, err);

	if (r < 0)
		return r;
	if (restored == (cli->o.n_words > 0))
		return cli_usage_error(cli, err);
	if (restored && ledger_queue_list(cli->ledger, JOB_RESTORED, NULL, 0, note_id,
					  &(struct retry_ids){&ids, 0}, err) < 0)
		return -1;
	return retry_all(cli, ids, strv_length(ids) > (size_t)cli->o.n_words, err);
}

const struct command command_retry = {
	.name = "retry",
	.usage = "retry ID…|--restored",
	.summary = "queues failed and cancelled analyses again",
	.help = help,
	.main = retry_main,
	.words_max = 1 << 30,
	.opens = CLI_LEDGER,
};
