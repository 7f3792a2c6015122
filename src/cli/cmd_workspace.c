/*
 * fumehood workspace create and cleanup: for analyses that run inside the platform's own process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "process.h"

static const char help[] =
	"  dir=$(fumehood workspace create a42)            held while this shell lives\n"
	"  fumehood workspace create a42 --for 24h         held for a day, whoever lives\n"
	"  fumehood workspace create a42 --owner 4711      held while process 4711 lives\n"
	"  fumehood workspace create a42 --disk 2G         each step may fill 2 GiB, all that lies there counted\n"
	"  fumehood workspace cleanup a42                  removes it; doing it twice is fine\n"
	"  fumehood workspace cleanup a42 --discard        the same, and what ran in it is not recorded\n"
	"\n"
	"The owner is the process that called fumehood, unless --owner or --for says otherwise. What is\n"
	"held is left alone by gc. Each 'fumehood run a42' in it is a step; files stay between steps, and\n"
	"'fumehood commit', cleanup or the owner's end commits them all as one attempt.\n"
	"\n"
	"--for TIME  --owner PID  --disk SIZE  --files COUNT  --discard  --db URL  --config FILE  --json\n";

struct asked_holding {
	const char *duration; /* --for, or NULL */
	int owner;	      /* --owner, or 0: who called us */
	bool discard;	      /* --discard: what ran is not committed */
	const char *disk, *files;
};

/* Either an owner or an instant. */
static int resolve(const struct asked_holding *h, struct process_id *ret_owner, int64_t *ret_until,
		   struct error *err)
{
	pid_t pid = h->owner ? h->owner : getppid();
	uint64_t ns;

	*ret_until = 0;
	if (h->duration && h->owner)
		return error_set(err, ERROR_USAGE,
				 "--for and --owner do not go together: it is held by one or the other");
	if (h->duration) {
		if (duration_parse(h->duration, &ns) < 0 || ns == 0 || ns > INT64_MAX / 2)
			return error_set(err, ERROR_USAGE, "--for wants a time such as 24h, not '%s'",
					 SHOWN(64, h->duration));
		*ret_until = clock_utc() + (int64_t)ns;
		return 0;
	}
	if (process_identify(pid, ret_owner) < 0)
		return error_set(err, ERROR_REFUSED,
				 "there is no process %d to hold the workspace: use --owner PID or --for 24h",
				 (int)pid);
	return 0;
}

static int take_limit(enum limit which, const char *text, struct limits *l, struct error *err)
{
	if (!text)
		return 0;
	l->origin[which] = LIMIT_ASKED;
	return limit_parse(which, text, &l->value[which], err);
}

static int create(struct cli *cli, const struct asked_holding *holding, struct error *err)
{
	_cleanup_free_ char *path = NULL, *shown = NULL;
	struct process_id owner = {0};
	struct limits limits = {0};
	int64_t until;
	int r = resolve(holding, &owner, &until, err);

	if (r == 0 && (r = take_limit(LIMIT_DISK, holding->disk, &limits, err)) == 0)
		r = take_limit(LIMIT_FILES, holding->files, &limits, err);
	if (r == 0)
		r = hood_workspace_create(cli->hood, cli->id, until ? NULL : &owner, until,
					  holding->disk || holding->files ? &limits : NULL, &path, err);
	if (r < 0)
		return r;
	shown = print_escape(path);
	if (cli->json)
		return cli_print_json(cli, json_pack("{s:s, s:s}", "id", cli->id, "workspace", shown), err);
	/* For "$(…)": the bytes, unless a person looks at them. */
	printf("%s\n", cli->out.is_tty ? shown : path);
	return 0;
}

static int cleanup(struct cli *cli, bool discard, struct error *err)
{
	int r = hood_workspace_cleanup(cli->hood, cli->id, discard, err);

	if (r < 0 || !cli->json)
		return r;
	return cli_print_json(cli, json_pack("{s:s, s:b}", "id", cli->id, "removed", 1), err);
}

static int workspace_main(struct cli *cli, struct error *err)
{
	struct asked_holding holding = {0};
	const struct option_row own[] = {
		{"--for", OPTION_TEXT, &holding.duration, "TIME", "held for so long, whoever lives"},
		{"--owner", OPTION_NUMBER, &holding.owner, "PID", "held while that process lives"},
		{"--disk", OPTION_TEXT, &holding.disk, "SIZE", "of each step: what may lie in it"},
		{"--files", OPTION_TEXT, &holding.files, "COUNT",
		 "of each step: how many files may lie in it"},
		{"--discard", OPTION_FLAG, &holding.discard, NULL, "what ran in it is not recorded"},
		{0}};
	const char *verb;
	bool is_create;
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	verb = cli->o.words[0];
	is_create = strcmp(verb, "create") == 0;
	if (!is_create && strcmp(verb, "cleanup") != 0)
		return cli_usage_error(cli, err);
	if (!is_create && (holding.duration || holding.owner || holding.disk || holding.files))
		return error_set(err, ERROR_USAGE,
				 "--for, --owner, --disk and --files belong to 'workspace create'");
	if (is_create && holding.discard)
		return error_set(err, ERROR_USAGE, "--discard belongs to 'workspace cleanup'");
	r = cli_take_id(cli, cli->o.words[1], err);
	if (r == 0)
		r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	return is_create ? create(cli, &holding, err) : cleanup(cli, holding.discard, err);
}

const struct command command_workspace = {
	.name = "workspace",
	.usage = "workspace create|cleanup ID [--for TIME | --owner PID] [--disk SIZE] [--files COUNT]",
	.summary = "makes or removes a workspace for an analysis that runs elsewhere",
	.help = help,
	.main = workspace_main,
	.words_min = 2,
	.words_max = 2,
};
