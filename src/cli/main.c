/*
 * fumehood: the command. A table of commands, what they share at the start and at the end, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

const struct command *const commands[] = {
	&command_run,	       &command_submit,	   &command_wait,
	&command_cancel,       &command_retry,	   &command_worker,
	&command_workers,      &command_top,	   &command_web,
	&command_report,       &command_shell,	   &command_ls,
	&command_show,	       &command_logs,	   &command_outputs,
	&command_get,	       &command_workspace, &command_commit,
	&command_post_process, &command_gc,	   &command_rm,
	&command_prune,	       &command_doctor,	   &command_db,
	&command_version,      &command_help,	   NULL,
};

/* Asked for by programs of ours. */
static const struct command *const unlisted[] = {&command_complete, &command_picture};

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	for (size_t i = 0; i < ARRAY_SIZE(unlisted); i++)
		if (strcmp(unlisted[i]->name, name) == 0)
			return unlisted[i];
	return NULL;
}

static int refuse_command(const char *name, struct error *err)
{
	const char *names[ARRAY_SIZE(commands)], *meant;
	char shown[64];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i] ? commands[i]->name : NULL;
	meant = options_suggest(name, names);
	text_escape_into(shown, sizeof shown, name, strlen(name));
	if (meant)
		return error_set(err, ERROR_USAGE, "unknown command '%s': did you mean %s?", shown, meant);
	return error_set(err, ERROR_USAGE, "unknown command '%s': fumehood help lists what there is", shown);
}

static void print_overview(const struct cli *cli)
{
	printf("%sfumehood%s runs untrusted analyses under a hood and puts their results into a ledger.\n\n"
	       "  fumehood run a42 -- python3 analysis.py     run it: walls around it, limits, a verdict\n"
	       "  fumehood show a42                           what it did, used and left\n"
	       "  fumehood get a42 result.csv                 take a result out\n\n",
	       terminal_style(&cli->out, STYLE_BOLD), terminal_style(&cli->out, STYLE_RESET));
	for (size_t i = 0; commands[i]; i++)
		printf("  %-14s%s\n", commands[i]->name, commands[i]->summary);
	printf("\nfumehood help COMMAND has examples and every option.\n");
}

static int help_main(struct cli *cli, struct error *err)
{
	const struct command *c;
	int r = cli_begin(cli, NULL, err);

	if (r < 0)
		return r;
	if (cli->o.n_words == 0) {
		print_overview(cli);
		return 0;
	}
	c = command_find(cli->o.words[0]);
	if (!c)
		return refuse_command(cli->o.words[0], err);
	cli_print_help(cli, c);
	return 0;
}

const struct command command_help = {
	.name = "help",
	.usage = "help [COMMAND]",
	.summary = "this list, or one command's page",
	.help = "  fumehood help run\n",
	.main = help_main,
	.words_max = 1,
};

static int version_main(struct cli *cli, struct error *err)
{
	int r = cli_begin(cli, NULL, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, json_pack("{s:s}", "version", FUMEHOOD_VERSION), err);
	printf("fumehood %s\n", FUMEHOOD_VERSION);
	return 0;
}

const struct command command_version = {
	.name = "version",
	.usage = "version",
	.summary = "which version this is",
	.help = "  fumehood version\n  fumehood version --json\n",
	.main = version_main,
};

/* Where one of the three is closed, the next file that is opened would become it: a ledger must never be stdout. */
static int keep_standard_descriptors(struct error *err)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return error_system(err, errno, "cannot open '/dev/null'");
	fd_close(fd);
	return 0;
}

/* Before any option is parsed: an error in the first of them has to be JSON as well. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int dispatch(struct cli *cli, int argc, char **argv, struct error *err)
{
	const char *name = argc > 1 ? argv[1] : "";
	int r;

	if (!*name)
		return error_set(err, ERROR_USAGE, "which command? fumehood help lists what there is");
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	cli->command = command_find(name);
	if (!cli->command)
		return refuse_command(name, err);
	cli->argc = argc - 1;
	cli->argv = argv + 1;
	ledger_bound_memory();
	r = cli->command->main(cli, err);
	cli_end(cli);
	return r < 0 && cli->help ? 0 : r;
}

/* An answer that did not arrive is a failure, unless its reader has gone away on purpose (`| head`). */
static int flush_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return status;
	fprintf(stderr, "fumehood: cannot write to the standard output: %s\n", strerror(errno));
	return STATUS_OURS;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct cli cli = {0};
	int status;

	cli.json = wants_json(argc, argv);
	status = keep_standard_descriptors(&err);
	signal(SIGPIPE, SIG_IGN);
	/* A limit on the size of files (ulimit -f) is an error of the write, and said. */
	signal(SIGXFSZ, SIG_IGN);
	terminal_probe(&cli.out, STDOUT_FILENO);
	terminal_probe(&cli.err, STDERR_FILENO);
	if (status == 0)
		status = dispatch(&cli, argc, argv, &err);
	if (status < 0)
		status = cli_fail(&cli, &err);
	free(cli.whole_db);
	return flush_stdout(status);
}
