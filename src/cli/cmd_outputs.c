/*
 * fumehood outputs and fumehood get: what came out, and how it is taken.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "array.h"
#include "bar.h"
#include "cli.h"
#include "extract.h"
#include "output_glob.h"
#include "screen.h"

static const char outputs_help[] = "  fumehood outputs a42\n"
				   "  fumehood outputs a42 --json | jq -r '.outputs[].path'\n"
				   "\n"
				   "--attempt N  --db URL  --config FILE  --json\n";

static const char get_help[] =
	"  fumehood get a42                        all of them, below the current directory\n"
	"  fumehood get a42 'tables/*.csv' -o r    some, as r/tables/x.csv and so on\n"
	"  fumehood get a42 plot.png               one, into the current directory\n"
	"  fumehood get a42 plot.png -o fig1.png   under another name\n"
	"  fumehood get a42 tables/x.csv tables/y.csv -o results/\n"
	"                                          as results/tables/x.csv and …/y.csv\n"
	"  fumehood get a42 table.csv -o - | head  to the standard output\n"
	"\n"
	"** is any depth, a directory all below it. A dot-file is taken only by its name.\n"
	"-o FILE_OR_DIR  --force (overwrite)  --attempt N  --db URL  --config FILE  --json\n";

static int outputs_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	int number = 0, r;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number, "N", "that attempt, instead of the latest"}, {0}};

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r == 0)
		r = view_load(cli->hood, cli->id, number, &cli->ledger, &a, err);
	if (r < 0)
		return r;
	return cli->json ? cli_print_json(cli, view_outputs_json(&a), err)
			 : view_outputs_table(stdout, &a.manifest, err);
}

/* ---- which are taken ---- */

struct choice {
	const struct output **list;
	size_t n;
	bool *chosen;	    /* by the place in the manifest: none is taken twice */
	size_t left_out;    /* dot-files that a pattern has met */
	const char *a_left; /* one of them */
};

static void choice_done(struct choice *c)
{
	free(c->list);
	free(c->chosen);
}

static int choose(struct choice *c, const struct manifest *m, const struct output *o, struct error *err)
{
	const struct output **added;
	size_t i = (size_t)(o - m->outputs);

	if (c->chosen[i])
		return 0;
	added = ARRAY_ADD(c->list, c->n);
	if (!added)
		return error_memory(err);
	*added = o;
	c->chosen[i] = true;
	return 0;
}

/* All that a pattern matches (NULL: all there are), but for dot-files, which programs of the user's might obey. */
static int choose_matching(struct choice *c, const struct manifest *m, const char *pattern, bool *ret_any,
			   struct error *err)
{
	for (size_t i = 0; i < m->n_outputs; i++) {
		const char *path = m->outputs[i].path;
		int r;

		if (pattern && !output_glob_match(pattern, path))
			continue;
		*ret_any = true;
		if (*path == '.' || strstr(path, "/.")) {
			c->left_out += !c->chosen[i];
			c->a_left = path;
			continue;
		}
		r = choose(c, m, &m->outputs[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int choose_word(struct choice *c, struct extract *x, const struct attempt *a, const char *word,
		       struct error *err)
{
	const struct output *named = manifest_find(&a->manifest, word);
	bool any = false;
	int r = named	 ? choose(c, &a->manifest, named, err)
		: !*word ? 0
			 : choose_matching(c, &a->manifest, word, &any, err);

	x->keeps_paths |= !named;
	if (r < 0 || named || any)
		return r;
	return error_set(err, ERROR_NOT_FOUND,
			 "%s attempt %d has no output '%s': fumehood outputs %s lists them", a->id, a->number,
			 SHOWN(256, word), a->id);
}

static int choose_all(struct choice *c, struct extract *x, const struct attempt *a, char *const *words,
		      int n_words, struct error *err)
{
	bool any = false;
	int r = 0;

	c->chosen = calloc(a->manifest.n_outputs + 1, sizeof *c->chosen);
	if (!c->chosen)
		return error_memory(err);
	for (int i = 0; r == 0 && i < n_words; i++)
		r = choose_word(c, x, a, words[i], err);
	if (n_words > 0)
		return r;
	x->keeps_paths = true;
	return choose_matching(c, &a->manifest, NULL, &any, err);
}

static void say_left_out(const struct cli *cli, const struct choice *c, const struct attempt *a)
{
	if (c->left_out > 0)
		fprintf(stderr, "fumehood: %zu dot-file%s not taken ('%s'%s): name one to have it\n",
			c->left_out, c->left_out == 1 ? " is" : "s are", SHOWN(256, c->a_left),
			c->left_out > 1 ? " and others" : "");
	if (a->manifest.n_outputs == 0 && !cli->quiet)
		fprintf(stderr, "fumehood: %s attempt %d has no outputs\n", a->id, a->number);
}

/* ---- taking them ---- */

/* A terminal gets what is safe to show, anything else the bytes. */
static int copy_to_stdout(struct cli *cli, const struct output *output, struct bar *bar, struct error *err)
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
	bar_clear(bar);
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
		fprintf(stderr, "fumehood: %s, %s, written to %s\n", path,
			print_size((int64_t)output->size, size), shown);
}

static int take(struct cli *cli, struct extract *x, const struct output *output, json_t *files,
		struct bar *bar, struct error *err)
{
	_cleanup_free_ char *file = NULL;
	int r;

	if (extract_is_stdout(x))
		return copy_to_stdout(cli, output, bar, err);
	r = extract_output(x, cli->ledger, output, &file, err);
	bar_clear(bar);
	if (r < 0)
		return r;
	say(cli, output, file);
	return add_to_json(files, output, file) < 0 ? error_memory(err) : 0;
}

static int take_all(struct cli *cli, struct extract *x, const struct attempt *a, json_t *files,
		    struct error *err)
{
	_cleanup_(choice_done) struct choice c = {0};
	uint64_t bytes = 0;
	struct bar bar;
	int r = choose_all(&c, x, a, cli->o.words + 1, cli->o.n_words - 1, err);

	if (r == 0)
		r = extract_prepare(x, c.n, err);
	/* None is written if one of many would be refused, as far as one can see. */
	for (size_t i = 0; r == 0 && c.n > 1 && i < c.n; i++)
		r = extract_look(x, c.list[i], err);
	for (size_t i = 0; r == 0 && i < c.n; i++)
		bytes += c.list[i]->size;
	ledger_watch(cli->ledger, bar_open(&bar, cli));
	work_begin(ledger_work(cli->ledger), "getting", bytes);
	for (size_t i = 0; r == 0 && i < c.n; i++)
		r = take(cli, x, c.list[i], files, &bar, err);
	bar_clear(&bar);
	ledger_watch(cli->ledger, NULL);
	if (r == 0)
		say_left_out(cli, &c, a);
	return r;
}

static int get_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	json_auto_t *files = json_array();
	struct extract x = {0};
	int number = 0, r;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number, "N", "that attempt, instead of the latest"},
		{"-o", OPTION_TEXT, &x.to, "FILE_OR_DIR", "where to; - is stdout"},
		{"--force", OPTION_FLAG, &x.force, NULL, "overwrites what is there"},
		{0},
	};

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r < 0)
		return r;
	if (cli->json && extract_is_stdout(&x))
		return error_set(err, ERROR_USAGE,
				 "-o - and --json do not go together: both are the standard output");
	r = cli_open(cli, CLI_ID | CLI_HOOD, err);
	if (r == 0)
		r = view_load(cli->hood, cli->id, number, &cli->ledger, &a, err);
	if (r == 0)
		r = take_all(cli, &x, &a, files, err);
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
	.usage = "get ID [PATH_OR_GLOB…] [-o FILE_OR_DIR]",
	.summary = "takes files out of the ledger",
	.help = get_help,
	.main = get_main,
	.words_min = 1,
	.words_max = 1 << 20,
};
