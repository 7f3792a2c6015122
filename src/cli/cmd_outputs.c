/*
 * fumehood outputs and fumehood get: what came out, and how it is taken.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli.h"
#include "extract.h"
#include "screen.h"

static const char outputs_help[] = "  fumehood outputs a42\n"
				   "  fumehood outputs a42 --json | jq -r '.outputs[].path'\n"
				   "\n"
				   "--attempt N  --db URL  --config FILE  --json\n";

static const char get_help[] =
	"  fumehood get a42 plot.png               into the current directory\n"
	"  fumehood get a42 plot.png -o fig1.png   under another name\n"
	"  fumehood get a42 tables/x.csv tables/y.csv -o results/\n"
	"                                          as results/tables/x.csv and …/y.csv\n"
	"  fumehood get a42 table.csv -o - | head  to the standard output\n"
	"\n"
	"-o FILE_OR_DIR  --force (overwrite)  --attempt N  --db URL  --config FILE  --json\n";

static int outputs_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	int number = 0, r;
	const struct option_row own[] = {{"--attempt", OPTION_NUMBER, &number}, {0}};

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r == 0)
		r = view_load(cli->hood, cli->id, number, &cli->ledger, &a, err);
	if (r < 0)
		return r;
	return cli->json ? cli_print_json(cli, view_outputs_json(&a), err)
			 : view_outputs_table(stdout, &a.manifest, err);
}

static const struct output *find_output(const struct attempt *a, const char *path, struct error *err)
{
	const struct output *found = manifest_find(&a->manifest, path);

	if (found)
		return found;
	error_set(err, ERROR_NOT_FOUND, "%s attempt %d has no output '%s': fumehood outputs %s lists them",
		  a->id, a->number, SHOWN(256, path), a->id);
	return NULL;
}

/* A terminal gets what is safe to show, anything else the bytes. */
static int copy_to_stdout(struct cli *cli, const struct output *output, struct error *err)
{
	struct screen screen = {.fd = STDOUT_FILENO, .is_terminal = true};
	_cleanup_close_ int fd = -1;
	char data[16384];
	ssize_t n;
	int r;

	if (!cli->out.is_tty)
		return ledger_copy_output(cli->ledger, output, STDOUT_FILENO, err);
	fd = memfd_create("output", MFD_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "cannot make room for an output");
	r = ledger_copy_output(cli->ledger, output, fd, err);
	for (off_t at = 0; r == 0 && (n = pread(fd, data, sizeof data, at)) > 0; at += n)
		if (screen_output(&screen, 0, data, (size_t)n) < 0)
			return error_system(err, EIO, "cannot write to the terminal");
	screen_end(&screen);
	return r;
}

static int add_to_json(json_t *files, const struct output *output, const char *file)
{
	_cleanup_free_ char *shown = print_escape(file);
	char digest[DIGEST_TEXT_SIZE];
	json_t *row;

	hex_encode(output->sha256, DIGEST_SIZE, digest);
	row = json_pack("{s:s, s:s, s:I}", "file", shown, "sha256", digest, "size", (json_int_t)output->size);
	if (row && json_set_path(row, output->path) < 0) {
		json_decref(row);
		row = NULL;
	}
	return json_array_append_new(files, row);
}

static void say(const struct cli *cli, const struct output *output, const char *file)
{
	_cleanup_free_ char *path = print_escape(output->path), *shown = print_escape(file);
	char size[PRINT_ROOM];

	if (!cli->quiet && !cli->json)
		fprintf(stderr, "fumehood: %s, %s, is now %s\n", path,
			print_size((int64_t)output->size, size), shown);
}

static int take(struct cli *cli, struct extract *x, const struct output *output, json_t *files,
		struct error *err)
{
	_cleanup_free_ char *file = NULL;
	int r;

	if (extract_is_stdout(x))
		return copy_to_stdout(cli, output, err);
	r = extract_output(x, cli->ledger, output, &file, err);
	if (r < 0)
		return r;
	say(cli, output, file);
	return add_to_json(files, output, file) < 0 ? error_memory(err) : 0;
}

static int get_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	json_auto_t *files = json_array();
	struct extract x = {0};
	int number = 0, r;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number},
		{"-o", OPTION_TEXT, &x.to},
		{"--force", OPTION_FLAG, &x.force},
		{0},
	};

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r < 0)
		return r;
	if (cli->json && extract_is_stdout(&x))
		return error_set(err, ERROR_USAGE,
				 "-o - and --json do not go together: both are the standard output");
	r = extract_prepare(&x, cli->o.n_words - 1, err);
	if (r == 0)
		r = cli_open(cli, CLI_ID | CLI_HOOD, err);
	if (r == 0)
		r = view_load(cli->hood, cli->id, number, &cli->ledger, &a, err);
	for (int i = 1; r == 0 && i < cli->o.n_words; i++) {
		const struct output *output = find_output(&a, cli->o.words[i], err);

		r = output ? take(cli, &x, output, files, err) : -ENOENT;
	}
	if (r < 0 || !cli->json)
		return r;
	return cli_print_json(
		cli, json_pack("{s:s, s:i, s:O}", "id", a.id, "attempt", a.number, "files", files), err);
}

const struct command command_outputs = {
	.name = "outputs",
	.usage = "outputs ID [--attempt N]",
	.summary = "lists the files that came out",
	.help = outputs_help,
	.main = outputs_main,
	.words_min = 1,
	.words_max = 1,
	.opens = CLI_ID | CLI_HOOD,
};

const struct command command_get = {
	.name = "get",
	.usage = "get ID PATH… [-o FILE_OR_DIR]",
	.summary = "takes files out of the ledger",
	.help = get_help,
	.main = get_main,
	.words_min = 2,
	.words_max = 1 << 20,
};
