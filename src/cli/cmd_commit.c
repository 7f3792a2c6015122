/*
 * fumehood commit: what lies in a held workspace becomes an attempt in the ledger.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "bar.h"
#include "cli.h"
#include "file.h"

enum { RESULT_MAX = 64 << 20 };

static const char help[] =
	"  fumehood commit a42                             every file in its workspace\n"
	"  fumehood commit a42 --output '*.csv' --result summary.json\n"
	"  echo '{\"score\": 0.93}' | fumehood commit a42 --result -\n"
	"\n"
	"The workspace is one of 'fumehood workspace create', and stays until it is cleaned up. What was\n"
	"run in it ('fumehood run a42 …') are the steps of this attempt; the first that failed decides\n"
	"the verdict, unless --verdict says otherwise.\n"
	"\n"
	"--output GLOB  --result FILE.json (- is stdin)  --verdict VERDICT  --again  --db URL  --config FILE  --json\n";

static int load_result(const char *file, json_t **ret, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	bool is_stdin = strcmp(file, "-") == 0;
	char shown[256];
	json_error_t at;
	int r;

	if (!is_stdin) {
		r = file_load(AT_FDCWD, file, RESULT_MAX, &text, err);
	} else {
		r = file_read_all(STDIN_FILENO, &text, RESULT_MAX);
		if (r < 0)
			r = error_system(err, -r, "cannot read the result from the standard input");
	}
	if (r < 0)
		return r;
	*ret = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
			  &at);
	if (*ret)
		return 0;
	text_escape_into(shown, sizeof shown, file, strlen(file));
	return error_set(err, ERROR_USAGE, "'%s' is not JSON: line %d, column %d: %s",
			 is_stdin ? "stdin" : shown, at.line, at.column, at.text);
}

static int print_commit(struct cli *cli, const struct attempt *a, struct error *err)
{
	int status = a->committed ? a->status : STATUS_OURS;
	bool is_held = a->workspace && !a->kept && a->n_steps > 0;
	char outputs[PRINT_ROOM];

	if (cli->json) {
		int r = cli_print_attempt(cli, a, false, NULL, err);

		return r < 0 ? r : status;
	}
	if (!a->committed) {
		_cleanup_free_ char *message =
			text_safe(a->error_message ? a->error_message : "the ledger did not answer");

		return error_set(err, ERROR_LEDGER, "%s is not committed: %s%s", a->id,
				 message ? message : "?",
				 a->pending ? "; it is pending, and `fumehood gc` commits it" : "");
	}
	if (!cli->quiet)
		printf("%s attempt %d %s, %s committed%s%s\n", a->id, a->number, verdict_name(a->verdict),
		       print_count(a->manifest.n_outputs, "output", outputs),
		       is_held ? "; when the workspace is done with: fumehood workspace cleanup " : "",
		       is_held ? a->id : "");
	return status;
}

static int take_verdict(const char *word, enum verdict *ret, struct error *err)
{
	return verdict_parse(word, ret) == 0 && *ret != VERDICT_NONE
		       ? 0
		       : error_set(
				 err, ERROR_USAGE,
				 "--verdict wants what an analysis can come to, such as succeeded or failed, not '%s'",
				 SHOWN(64, word));
}

static int commit_watched(struct cli *cli, const struct commit_order *order, struct attempt *ret,
			  struct error *err)
{
	struct bar bar;
	int r;

	hood_watch(cli->hood, bar_open(&bar, cli));
	r = hood_commit(cli->hood, cli->id, order, ret, err);
	bar_clear(&bar);
	return r;
}

static int commit_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_strv_ char **globs = NULL;
	const char *file = NULL, *verdict = NULL;
	enum verdict said = VERDICT_NONE;
	bool again = false;
	const struct option_row own[] = {
		{"--output", OPTION_LIST, &globs, "GLOB",
		 "a file that must be there, and is taken; else everything is"},
		{"--result", OPTION_TEXT, &file, "FILE", "a result as JSON, beside the files"},
		{"--verdict", OPTION_TEXT, &verdict, "VERDICT",
		 "what it came to, instead of what its steps say"},
		{"--again", OPTION_FLAG, &again, NULL, "another attempt although one has succeeded"},
		{0},
	};
	json_auto_t *result = NULL;
	int r;

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r == 0 && verdict)
		r = take_verdict(verdict, &said, err);
	if (r == 0 && file)
		r = load_result(file, &result, err);
	if (r == 0)
		r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	r = commit_watched(
		cli,
		&(struct commit_order){.outputs = globs, .result = result, .verdict = said, .again = again},
		&a, err);
	return r < 0 ? r : print_commit(cli, &a, err);
}

const struct command command_commit = {
	.name = "commit",
	.usage = "commit ID [--result FILE.json] [--output GLOB]… [--verdict VERDICT]",
	.summary = "commits what lies in a held workspace",
	.help = help,
	.main = commit_main,
	.words_min = 1,
	.words_max = 1,
	.opens = CLI_ID,
	.is_attempt = true,
};
