/*
 * fumehood outputs and fumehood get: what came out, and how it is taken.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli.h"
#include "extract.h"
#include "print.h"
#include "screen.h"
#include "view.h"

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

/* The attempt that the words name, with the ledger that has it. */
static int load(struct cli *cli, const char *id, int number, struct hood **ret_hood,
		struct ledger **ret_ledger, struct attempt *ret, struct error *err)
{
	int r = cli_take_id(cli, id, err);

	if (r == 0)
		r = cli_hood(cli, ret_hood, err);
	return r < 0 ? r : view_load(*ret_hood, id, number, ret_ledger, ret, err);
}

static int print_outputs(const struct manifest *m, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .right = 2};
	char size[PRINT_ROOM], digest[DIGEST_TEXT_SIZE];

	table_add(&t, "SHA-256", "SIZE", "TYPE", "PATH");
	for (size_t i = 0; i < m->n_outputs; i++) {
		_cleanup_free_ char *path = cli_escape(m->outputs[i].path);

		hex_encode(m->outputs[i].sha256, 8, digest);
		table_add(&t, digest, print_size((int64_t)m->outputs[i].size, size), m->outputs[i].media_type,
			  path);
	}
	if (table_print(&t, stdout, err) < 0)
		return -1;
	for (size_t i = 0; i < m->n_rejected; i++) {
		_cleanup_free_ char *path = cli_escape(m->rejected[i].path);

		printf("refused: %s (%s)\n", path, m->rejected[i].reason);
	}
	if (m->n_rejected_more > 0)
		printf("refused: %llu more\n", (unsigned long long)m->n_rejected_more);
	return 0;
}

static int outputs_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_hood_ struct hood *hood = NULL;
	struct ledger *ledger;
	int number = 0, r;
	const struct option_row table[] = {CLI_OPTIONS(cli), {"--attempt", OPTION_NUMBER, &number}, {0}};
	_cleanup_options_ struct options o = {.table = table};

	attempt_init(&a);
	r = cli_parse(cli, &o, argc, argv, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = load(cli, o.words[0], number, &hood, &ledger, &a, err);
	if (r < 0)
		return r;
	return cli->json ? cli_print_json(cli, view_outputs_json(&a), err) : print_outputs(&a.manifest, err);
}

static const struct output *find_output(const struct attempt *a, const char *path, struct error *err)
{
	char shown[256];

	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		if (strcmp(a->manifest.outputs[i].path, path) == 0)
			return &a->manifest.outputs[i];
	error_set(err, ERROR_NOT_FOUND, "%s attempt %d has no output '%s': fumehood outputs %s lists them",
		  a->id, a->number, text_escape_into(shown, sizeof shown, path, strlen(path)), a->id);
	return NULL;
}

/* A terminal gets what is safe to show, anything else the bytes. */
static int copy_to_stdout(struct cli *cli, struct ledger *ledger, const struct output *output,
			  struct error *err)
{
	struct screen screen = {.fd = STDOUT_FILENO, .is_terminal = true};
	_cleanup_close_ int fd = -1;
	char data[16384];
	ssize_t n;
	int r;

	if (!cli->out.is_tty)
		return ledger_copy_output(ledger, output, STDOUT_FILENO, err);
	fd = memfd_create("output", MFD_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "cannot make room for an output");
	r = ledger_copy_output(ledger, output, fd, err);
	for (off_t at = 0; r == 0 && (n = pread(fd, data, sizeof data, at)) > 0; at += n)
		if (screen_output(&screen, 0, data, (size_t)n) < 0)
			return error_system(err, EIO, "cannot write to the terminal");
	screen_end(&screen);
	return r;
}

static int add_to_json(json_t *files, const struct output *output, const char *file)
{
	_cleanup_free_ char *shown = cli_escape(file);
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
	_cleanup_free_ char *path = cli_escape(output->path), *shown = cli_escape(file);
	char size[PRINT_ROOM];

	if (!cli->quiet && !cli->json)
		fprintf(stderr, "fumehood: %s, %s, is now %s\n", path,
			print_size((int64_t)output->size, size), shown);
}

static int take(struct cli *cli, struct extract *x, struct ledger *ledger, const struct output *output,
		json_t *files, struct error *err)
{
	_cleanup_free_ char *file = NULL;
	int r;

	if (extract_is_stdout(x))
		return copy_to_stdout(cli, ledger, output, err);
	r = extract_output(x, ledger, output, &file, err);
	if (r < 0)
		return r;
	say(cli, output, file);
	return add_to_json(files, output, file) < 0 ? error_memory(err) : 0;
}

static int get_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_hood_ struct hood *hood = NULL;
	struct ledger *ledger;
	struct extract x = {0};
	int number = 0, r;
	const struct option_row table[] = {
		CLI_OPTIONS(cli),
		{"--attempt", OPTION_NUMBER, &number},
		{"-o", OPTION_TEXT, &x.to},
		{"--force", OPTION_FLAG, &x.force},
		{0},
	};
	_cleanup_options_ struct options o = {.table = table};
	json_t *files;

	attempt_init(&a);
	r = cli_parse(cli, &o, argc, argv, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (cli->json && extract_is_stdout(&x))
		return error_set(err, ERROR_USAGE,
				 "-o - and --json do not go together: both are the standard output");
	r = extract_prepare(&x, o.n_words - 1, err);
	if (r == 0)
		r = load(cli, o.words[0], number, &hood, &ledger, &a, err);
	files = json_array();
	for (int i = 1; r == 0 && i < o.n_words; i++) {
		const struct output *output = find_output(&a, o.words[i], err);

		r = output ? take(cli, &x, ledger, output, files, err) : -ENOENT;
	}
	if (r == 0 && cli->json)
		return cli_print_json(
			cli, json_pack("{s:s, s:i, s:o}", "id", a.id, "attempt", a.number, "files", files),
			err);
	json_decref(files);
	return r;
}

const struct command command_outputs = {
	.name = "outputs",
	.usage = "outputs ID [--attempt N]",
	.summary = "lists the files that came out",
	.help = outputs_help,
	.main = outputs_main,
	.words_min = 1,
	.words_max = 1,
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
