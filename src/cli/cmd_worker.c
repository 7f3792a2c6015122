/*
 * fumehood worker: runs what is queued, until it is told to stop.
 */
#include "worker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli.h"
#include "journal.h"
#include "signals.h"
#include "slurm_node.h"

enum { OPEN_FILES_ENOUGH = 1 << 18 };

static const char help[] =
	"  fumehood worker                     as many at once as there are CPUs, until SIGTERM\n"
	"  fumehood worker --drain             until nothing is queued any more\n"
	"  fumehood worker --jobs 8 --metrics /run/fumehood.prom\n"
	"\n"
	"--engine slurm   gives them to Slurm's nodes instead (docs/SLURM.md)\n"
	"--jobs N         so many at once, as far as memory and CPUs of this host reach\n"
	"--drain          ends when nothing can be claimed any more; SIGTERM lets what runs end\n"
	"--lease TIME     how long it may be silent before others take its analyses (30s)\n"
	"--take BATCH     on a node of a cluster: runs the one analysis that was handed over to it so, and ends\n"
	"--index N        which one of the batch (SLURM_ARRAY_TASK_ID, else 0)\n"
	"--metrics FILE   counters for Prometheus, in a text file\n"
	"--db URL  --config FILE  --quiet\n"
	"\n"
	"SIGTERM hands back what runs, for other workers to start again; with --drain a second one does.\n"
	"Any number of workers on any number of hosts share one ledger.\n";

struct voice {
	const struct cli *cli;
	int journal;  /* -1: stderr is all */
	char *warned; /* the last warning of a quiet one, which is mostly that of the next analysis, too */
};

/* A limit that is not held is no progress. */
static void warn(struct voice *v, const struct engine_end *end)
{
	char *warnings =
		end->outcome == OUTCOME_SETTLED ? view_warnings(&end->attempt, v->cli->err.colour) : NULL;

	if (!warnings || !*warnings || (v->warned && strcmp(v->warned, warnings) == 0)) {
		free(warnings);
		return;
	}
	fputs(warnings, stderr);
	free(v->warned);
	v->warned = warnings;
}

/* How it ended, as lines; NULL or "": nothing is to be said. */
static char *end_text(const struct cli *cli, const struct engine_end *end)
{
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_free_ char *id = print_escape(end->id), *why = text_safe(end->why.message);

	if (end->where[0] && end->outcome == OUTCOME_SETTLED) {
		_cleanup_free_ char *reason = text_safe(end->attempt.reason ? end->attempt.reason : "");

		buffer_printf(&b, "fumehood: %s %s (%s)%s%s\n", id, verdict_name(end->attempt.verdict),
			      end->where, reason && *reason ? ": " : "", reason && *reason ? reason : "");
		return buffer_take(&b);
	}
	switch (end->outcome) {
	case OUTCOME_LEFT:
		if (why && *why)
			buffer_printf(&b, "fumehood: %s: %s\n", id, why);
		break;
	case OUTCOME_SETTLED:
		return view_line(&end->attempt, cli->err.colour, false);
	case OUTCOME_UNSETTLED:
		if (end->attempt.verdict == VERDICT_NONE)
			buffer_printf(&b, "fumehood: %s has ended, and is pending\n", id);
		else
			buffer_printf(&b, "fumehood: %s %s, and is pending until it can be committed\n", id,
				      verdict_name(end->attempt.verdict));
		break;
	case OUTCOME_LOST:
		buffer_printf(&b, "fumehood: %s became another worker's: nothing of it was committed here\n",
			      id);
		break;
	default:
		buffer_printf(&b, "fumehood: %s is handed back: %s\n", id, why ? why : "?");
	}
	return buffer_take(&b);
}

/* A failed analysis is the analyst's matter, one that is not in the ledger the operator's: syslog's numbers. */
static const char *priority(const struct engine_end *end)
{
	if (end->outcome != OUTCOME_SETTLED)
		return "4";
	return end->attempt.verdict == VERDICT_SUCCEEDED ? "6" : "5";
}

/* To the journal with what it can be searched by; else, or if that fails, to stderr. */
static void tell(const struct voice *v, char *lines, const struct engine_end *end)
{
	bool has_verdict = end->attempt.verdict != VERDICT_NONE &&
			   (end->outcome == OUTCOME_SETTLED || end->outcome == OUTCOME_UNSETTLED);
	size_t size = strlen(lines);
	const struct journal_field fields[] = {
		{"MESSAGE", lines},
		{"PRIORITY", priority(end)},
		{"SYSLOG_IDENTIFIER", "fumehood"},
		{"FUMEHOOD_ID", end->id},
		{"FUMEHOOD_VERDICT", has_verdict ? verdict_name(end->attempt.verdict) : NULL},
		{0},
	};

	if (v->journal >= 0) {
		lines[size - 1] = 0; /* an entry is no line */
		if (journal_send(v->journal, fields) == 0)
			return;
		lines[size - 1] = '\n';
	}
	fputs(lines, stderr);
}

static void on_end(void *arg, const struct engine_end *end)
{
	struct voice *voice = arg;
	_cleanup_free_ char *lines = NULL;

	if (voice->cli->quiet) {
		warn(voice, end);
		return;
	}
	lines = end_text(voice->cli, end);
	if (lines && *lines)
		tell(voice, lines, end);
}

static void on_say(void *arg, const char *line)
{
	const struct cli *cli = ((struct voice *)arg)->cli;
	_cleanup_free_ char *safe = text_safe(line);

	if (!cli->quiet)
		fprintf(stderr, "fumehood: %s\n", safe ? safe : "?");
}

static int read_lease(const char *text, uint64_t *ret, struct error *err)
{
	if (!text)
		return 0;
	if (duration_parse(text, ret) < 0 || *ret < QUEUE_LEASE_MIN_NS || *ret > QUEUE_LEASE_MAX_NS)
		return error_set(err, ERROR_USAGE, "--lease wants a time from 1s to 1h, not '%s'",
				 SHOWN(64, text));
	return 0;
}

static int read_engine(const char *text, enum engine_kind *ret, struct error *err)
{
	if (text && engine_kind_parse(text, ret) < 0)
		return error_set(err, ERROR_USAGE, "--engine wants local or slurm, not '%s'",
				 SHOWN(64, text));
	return 0;
}

static int read_index(const char *text, int *ret, struct error *err)
{
	char *end = NULL;
	long n = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;

	if (n < 0 || n > INT_MAX || *end)
		return error_set(err, ERROR_USAGE, "--index wants a number from 0 on, not '%s'",
				 SHOWN(64, text));
	*ret = (int)n;
	return 0;
}

/* A batch is named by a dispatcher, for its own script: who mistypes it is told so. */
static int read_take(const char *index, struct worker_take *take, struct worker_options *w, struct error *err)
{
	if (!take->batch)
		return index ? error_set(err, ERROR_USAGE, "--index is for --take BATCH only") : 0;
	if (strlen(take->batch) != TOKEN_SIZE - 1 ||
	    strspn(take->batch, "0123456789abcdef") != TOKEN_SIZE - 1)
		return error_set(err, ERROR_USAGE,
				 "--take wants the name of a batch, %d hexadecimal digits, not '%s'",
				 TOKEN_SIZE - 1, SHOWN(64, take->batch));
	if (w->jobs || w->drain || w->engine != ENGINE_LOCAL)
		return error_set(
			err, ERROR_USAGE,
			"--take runs one analysis here and ends: it goes without --jobs, without --drain "
			"and without --engine slurm");
	w->take = take;
	take->index = slurm_node_index();
	return index ? read_index(index, &take->index, err) : 0;
}

/* Each analysis takes some tens of descriptors, of a limit that is often 1024 and may be raised. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < OPEN_FILES_ENOUGH ? limit.rlim_max : OPEN_FILES_ENOUGH;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int worker_main(struct cli *cli, struct error *err)
{
	struct voice voice = {.cli = cli, .journal = -1};
	struct worker_options w = {.signal_fd = -1, .hooks = {.arg = &voice, .ended = on_end, .say = on_say}};
	struct worker_take take = {0};
	const char *lease = NULL, *engine = NULL, *index = NULL;
	const struct option_row own[] = {
		{"--engine", OPTION_TEXT, &engine, "local|slurm",
		 "what runs them: this host, or Slurm's nodes"},
		{"--jobs", OPTION_NUMBER, &w.jobs, "N", "so many at once at most"},
		{"--drain", OPTION_FLAG, &w.drain, NULL, "ends when there is nothing left to do"},
		{"--lease", OPTION_TEXT, &lease, "TIME", "how long it may be silent before others take over"},
		{"--take", OPTION_TEXT, &take.batch, "BATCH",
		 "runs the one analysis that was handed over so, and ends"},
		{"--index", OPTION_TEXT, &index, "N", "which one of the batch"},
		{"--metrics", OPTION_TEXT, &w.metrics, "FILE",
		 "counters for Prometheus, written every few seconds"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (read_engine(engine, &w.engine, err) < 0)
		return -EINVAL;
	if (w.jobs > WORKER_JOBS_MAX)
		return error_set(err, ERROR_USAGE, "--jobs wants a number from 1 to %d", WORKER_JOBS_MAX);
	r = read_take(index, &take, &w, err);
	if (r < 0)
		return r;
	w.hood = (struct hood_options){
		.config_file = cli->config, .ledger = cli->db, .remover = REMOVER_THREAD};
	raise_open_files();
	voice.journal = journal_open();
	r = read_lease(lease, &w.lease_ns, err);
	if (r == 0)
		r = signals_open(&w.signal_fd, err);
	if (r == 0)
		r = worker_run(&w, err);
	fd_close(w.signal_fd);
	fd_close(voice.journal);
	free(voice.warned);
	return r;
}

const struct command command_worker = {
	.name = "worker",
	.usage = "worker [--jobs N] [--drain]",
	.summary = "runs what is queued",
	.help = help,
	.main = worker_main,
};
