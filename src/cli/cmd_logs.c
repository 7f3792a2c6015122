/*
 * fumehood logs: what an analysis wrote, from the ledger, or, while it runs, from the files that the supervisor fills.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "cli.h"
#include "queue.h"
#include "screen.h"
#include "view.h"

/* Between the end of the output and the end of the run nothing is written: then we look this often. */
enum { LOOK_AGAIN_MS = 500, READ_SIZE = 1 << 16 };

static const char help[] =
	"  fumehood logs a42                   stdout, then stderr\n"
	"  fumehood logs a42 --stderr          only that, byte for byte but for a note where some\n"
	"                                      were not kept\n"
	"  fumehood logs -f a42                of a running one: as it comes, until it ends; of a queued\n"
	"                                      one from its start on\n"
	"\n"
	"-f  --stdout  --stderr  --post-process  --attempt N  --db URL  --config FILE  --json\n";

struct log_view {
	struct screen screen;
	bool wanted[STREAM_POST + 1];
	off_t shown[STREAM_POST + 1]; /* bytes of a running one's streams that were shown */
};

static int report(int r, struct error *err)
{
	/* A reader who has seen enough is no error. */
	return r == 0 || r == -EPIPE ? r
				     : error_system(err, -r, "cannot write the log to the standard output");
}

static int show(struct log_view *v, int stream, const char *data, size_t size, struct error *err)
{
	return size == 0 ? 0 : report(screen_output(&v->screen, stream, data, size), err);
}

static int show_omitted(struct log_view *v, uint64_t omitted, struct error *err)
{
	char note[80];
	int n = snprintf(note, sizeof note, "[fumehood: %llu bytes were not kept]\n",
			 (unsigned long long)omitted);

	return omitted == 0 ? 0 : report(screen_say(&v->screen, note, (size_t)n), err);
}

/* One kept stream from its byte `from` on, which a follower may have seen already. */
static int show_captured(struct log_view *v, int stream, const struct captured *c, size_t from,
			 struct error *err)
{
	size_t in_head = from < c->head_size ? from : c->head_size;
	size_t in_tail = c->omitted == 0 && from > c->head_size ? from - c->head_size : 0;
	int r = show(v, stream, c->head + in_head, c->head_size - in_head, err);

	if (in_tail > c->tail_size)
		in_tail = c->tail_size;
	if (r == 0)
		r = show_omitted(v, c->omitted, err);
	return r < 0 ? r : show(v, stream, c->tail + in_tail, c->tail_size - in_tail, err);
}

static int show_kept(struct log_view *v, struct ledger *ledger, const struct attempt *a, struct error *err)
{
	int r = 0;

	for (int i = 0; i <= STREAM_POST && r == 0; i++) {
		_cleanup_(captured_done) struct captured c = {0};

		if (!v->wanted[i])
			continue;
		r = ledger_load_log(ledger, a, i, &c, err);
		if (r == 0)
			r = show_captured(v, i, &c, (size_t)v->shown[i], err);
	}
	return r;
}

/* What the supervisor has written since we looked last. */
static int show_growth(struct log_view *v, const struct live *l, struct error *err)
{
	_cleanup_free_ char *data = malloc(READ_SIZE);

	if (!data)
		return error_memory(err);
	for (int i = 0; i < STREAM_COUNT; i++) {
		ssize_t n = 0;

		while (v->wanted[i] && l->log_fd[i] >= 0 &&
		       (n = pread(l->log_fd[i], data, READ_SIZE, v->shown[i])) > 0) {
			int r = show(v, i, data, (size_t)n, err);

			if (r < 0)
				return r;
			v->shown[i] += n;
		}
		if (n < 0)
			return error_system(err, errno, "cannot read the log of '%s'", l->id);
	}
	return 0;
}

static bool is_running(struct hood *h, const char *id, int attempt)
{
	struct error ignored = ERROR_INIT;
	struct live l;
	bool running;

	if (hood_live(h, id, &l, &ignored) < 0)
		return false;
	running = l.alive && !l.held && l.attempt == attempt;
	live_done(&l);
	return running;
}

static int watch(const struct live *l, int *ret_fd, struct error *err)
{
	_cleanup_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[64];

	if (fd < 0)
		return error_system(err, errno, "cannot watch files");
	for (int i = 0; i < STREAM_COUNT; i++) {
		if (l->log_fd[i] < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", l->log_fd[i]);
		/* Closed by the supervisor, or removed: the end may have come. */
		if (inotify_add_watch(fd, path, IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) < 0)
			return error_system(err, errno, "cannot watch the log of '%s'", l->id);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* True if the run may have ended: nothing happened for a while, or something else than a write. */
static bool wait_for_growth(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool is_end = poll(&p, 1, LOOK_AGAIN_MS) <= 0;
	ssize_t n;

	while ((n = read(fd, events, sizeof events)) > 0)
		for (char *at = events; at < events + n;) {
			const struct inotify_event *e = (const void *)at;

			is_end |= (e->mask & ~(uint32_t)IN_MODIFY) != 0;
			at += sizeof *e + e->len;
		}
	return is_end;
}

static int follow(struct log_view *v, struct hood *h, const struct live *l, struct error *err)
{
	_cleanup_close_ int fd = -1;
	bool running = true;
	int r = watch(l, &fd, err);

	/* The look at the run comes before the look at its files: what it wrote before its end is seen after. */
	while (r == 0) {
		r = show_growth(v, l, err);
		if (r < 0 || !running)
			break;
		if (wait_for_growth(fd))
			running = is_running(h, l->id, l->attempt);
	}
	return r;
}

static int take_state(void *arg, const struct queued *q, struct error *err UNUSED)
{
	*(enum job_state *)arg = q->state;
	return 0;
}

/* Queued: until it runs here (0, *live is to be followed) or has ended (1). What was never queued: 1 as well. */
static int wait_for_start(const struct cli *cli, struct hood *h, const char *id, struct live *live,
			  struct error *err)
{
	char *const ids[] = {(char *)id, NULL};
	struct error ignored = ERROR_INIT;
	struct ledger *ledger;
	bool told = cli->quiet, is_here = false;
	int r = cli_ledger(h, &ledger, err);

	if (r < 0)
		return r;
	while (r == 0 && !is_here) {
		enum job_state state = JOB_FINISHED;
		struct pollfd bell = {.fd = ledger_bell(ledger, &ignored), .events = POLLIN};

		if (hood_live(h, id, live, &ignored) == 0) {
			is_here = live->alive && !live->held;
			if (is_here)
				break;
			live_done(live);
		}
		r = ledger_queue_look(ledger, ids, take_state, &state, err);
		if (r < 0 || state == JOB_FINISHED || state == JOB_CANCELLED)
			break;
		if (!told)
			fprintf(stderr, "fumehood: %s is %s: waiting for it\n", id, job_state_name(state));
		told = true;
		if (poll(&bell, 1, LOOK_AGAIN_MS) > 0)
			ledger_bell_read(ledger, &ignored);
	}
	ledger_bell_end(ledger);
	return r < 0 ? r : !is_here;
}

static int print_json(struct cli *cli, const struct log_view *v, struct ledger *ledger,
		      const struct attempt *a, struct error *err)
{
	json_t *json = NULL;
	int r = view_logs_load(ledger, a, v->wanted, &json, err);

	return r < 0 ? r : cli_print_json(cli, json, err);
}

static int show_logs(struct cli *cli, struct log_view *v, const char *id, int number, bool follows,
		     struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_hood_ struct hood *hood = NULL;
	struct error ignored = ERROR_INIT;
	struct ledger *ledger;
	struct live live;
	bool ended = false, is_live;
	int r;

	attempt_init(&a);
	r = cli_hood(cli, &hood, err);
	if (r < 0)
		return r;
	is_live = number == 0 && !cli->json && hood_live(hood, id, &live, &ignored) == 0;
	if (!is_live && number == 0 && follows) {
		r = wait_for_start(cli, hood, id, &live, err);
		is_live = r == 0;
		r = r > 0 ? 0 : r;
	}
	if (r == 0 && is_live) {
		/* Pending, or its supervisor is gone: what there is lies in its files. */
		bool here = !live.held, running = here && live.alive && !live.pending;

		number = here ? live.attempt : 0;
		if (here)
			r = follows && running ? follow(v, hood, &live, err) : show_growth(v, &live, err);
		ended = running && follows && r == 0; /* then the rest is in the ledger */
		live_done(&live);
		if (here && !ended)
			return r;
	}
	if (r == 0)
		r = view_load(hood, id, number, &ledger, &a, err);
	/* A followed one that was not committed has been shown as far as it can be. */
	if (r < 0)
		return ended && err->kind == ERROR_NOT_FOUND ? 0 : r;
	return cli->json ? print_json(cli, v, ledger, &a, err) : show_kept(v, ledger, &a, err);
}

static int logs_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	struct log_view v = {.screen = {.fd = STDOUT_FILENO, .is_terminal = cli->out.is_tty}};
	bool follows = false;
	int number = 0, r;
	const struct option_row table[] = {
		CLI_OPTIONS(cli),
		{"-f", OPTION_FLAG, &follows},
		{"--follow", OPTION_FLAG, &follows},
		{"--stdout", OPTION_FLAG, &v.wanted[STREAM_STDOUT]},
		{"--stderr", OPTION_FLAG, &v.wanted[STREAM_STDERR]},
		{"--post-process", OPTION_FLAG, &v.wanted[STREAM_POST]},
		{"--attempt", OPTION_NUMBER, &number},
		{0},
	};
	_cleanup_options_ struct options o = {.table = table};

	r = cli_parse(cli, &o, argc, argv, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (follows && cli->json)
		return error_set(err, ERROR_USAGE,
				 "-f and --json do not go together: one is a stream, the other one object");
	if (!v.wanted[STREAM_STDOUT] && !v.wanted[STREAM_STDERR] && !v.wanted[STREAM_POST])
		v.wanted[STREAM_STDOUT] = v.wanted[STREAM_STDERR] = true;
	r = cli_take_id(cli, o.words[0], err);
	if (r == 0)
		r = show_logs(cli, &v, o.words[0], number, follows, err);
	if (r == 0)
		r = report(screen_end(&v.screen), err);
	return r == -EPIPE ? 0 : r;
}

const struct command command_logs = {
	.name = "logs",
	.usage = "logs ID [-f] [--stdout|--stderr|--post-process]",
	.summary = "what an analysis wrote; -f follows a running one",
	.help = help,
	.main = logs_main,
	.words_min = 1,
	.words_max = 1,
};
