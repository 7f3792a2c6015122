/*
 * fumehood report: analyses as one file that stands alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "file.h"
#include "report.h"

static const char help[] =
	"  fumehood report a42 -o a42.html\n"
	"  fumehood report a41 a42 sweep. -o report.html   and all whose ids begin with sweep.\n"
	"  fumehood report a42 -o - | mail …\n"
	"\n"
	"One page of HTML without scripts, which asks for nothing: verdicts, usage over time, logs, inputs, lineage, plan; outputs\n"
	"by their SHA-256, pictures small. At most 5 MiB: what does not fit is told in less.\n"
	"\n"
	"-o FILE  --force (overwrite)  --db URL  --config FILE  --json\n";

/* file_replace() gives exactly what it is told. */
static mode_t mode_of_new_files(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int write_report(const char *to, bool force, const struct buffer *page, struct error *err)
{
	int r;

	if (strcmp(to, "-") == 0) {
		r = file_write_all(STDOUT_FILENO, page->data, page->size);
		return r < 0 ? error_system(err, -r, "cannot write the report to the standard output") : 0;
	}
	if (!force && faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return error_set(err, ERROR_REFUSED, "'%s' is there already: --force overwrites it", to);
	return file_replace(AT_FDCWD, to, page->data, page->size, mode_of_new_files(), false, err);
}

static int report_main(struct cli *cli, struct error *err)
{
	_cleanup_buffer_ struct buffer page = {0};
	const char *to = NULL;
	bool force = false;
	size_t count = 0;
	const struct option_row own[] = {
		{"-o", OPTION_TEXT, &to, "FILE", "where to; - is stdout"},
		{"--force", OPTION_FLAG, &force, NULL, "overwrites what is there"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (!to)
		return error_set(err, ERROR_USAGE, "where to? Give the report a name: -o report.html");
	if (cli->json && strcmp(to, "-") == 0)
		return error_set(err, ERROR_USAGE,
				 "-o - and --json do not go together: both are the standard output");
	r = report_make(cli->hood, cli->o.words, &page, &count, err);
	if (r == 0)
		r = write_report(to, force, &page, err);
	if (r < 0 || !cli->json)
		return r;
	return cli_print_json(cli,
			      json_pack("{s:s, s:I, s:I}", "file", to, "bytes", (json_int_t)page.size,
					"analyses", (json_int_t)count),
			      err);
}

const struct command command_report = {
	.name = "report",
	.usage = "report ID|PREFIX… -o FILE [--force]",
	.summary = "writes analyses as one page that stands alone",
	.help = help,
	.main = report_main,
	.words_min = 1,
	.words_max = INT32_MAX,
	.opens = CLI_LEDGER,
};
