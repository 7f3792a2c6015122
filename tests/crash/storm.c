/*
 * The storm: many runs at once, all killed at once, again and again. In even rounds as soon as some of them have ended,
 * so that the others are anywhere; in odd rounds when every command runs.
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { AT_ONCE_MAX = 256, STORM_TIMEOUT_MS = 60000 };

struct drop {
	char id[64];
	pid_t pid;
	int pidfd;
	int said; /* the pipe of its standard output */
	int status;
};

static void drop_start(const struct ground *g, struct drop *d, bool lasting)
{
	const char *argv[GROUND_ARGS_MAX] = {g->binary, "run", d->id, "--quiet",
					     "--",	"sh",  "-c",  "echo started; exec sleep 1000"};
	int said[2], null;

	if (!lasting)
		ground_run_argv(g, d->id, false, argv);
	if (pipe2(said, O_CLOEXEC) < 0)
		give_up("cannot make a pipe: %s", strerror(errno));
	null = memory_file();
	d->pid = fork();
	if (d->pid < 0)
		give_up("cannot fork: %s", strerror(errno));
	if (d->pid == 0)
		ground_exec(g, argv, said[1], null);
	close(said[1]);
	close(null);
	d->said = said[0];
	d->pidfd = (int)syscall(SYS_pidfd_open, d->pid, 0);
}

/* Waits until at least this many of the descriptors are readable or closed. */
static void await_some(const struct drop *drops, int n, bool said, int wanted)
{
	struct pollfd fds[AT_ONCE_MAX];
	int ready = 0;

	for (int i = 0; i < n; i++)
		fds[i] = (struct pollfd){.fd = said ? drops[i].said : drops[i].pidfd, .events = POLLIN};
	while (ready < wanted) {
		if (poll(fds, (nfds_t)n, STORM_TIMEOUT_MS) <= 0)
			give_up("%d of %d runs did not get there", wanted - ready, wanted);
		for (int i = 0; i < n; i++)
			if (fds[i].fd >= 0 && fds[i].revents) {
				fds[i].fd = -1;
				ready++;
			}
	}
}

static void drop_end(struct drop *d)
{
	waitpid(d->pid, &d->status, 0);
	close(d->pidfd);
	close(d->said);
}

/* What the ledger must say of a run that was killed somewhere, or had ended. */
static enum expected drop_expects(const struct ground *g, const struct drop *d, bool lasting,
				  struct problems *p)
{
	struct sight sight;

	if (WIFEXITED(d->status)) {
		if (WEXITSTATUS(d->status) != 0 || lasting)
			problem(p, "%s ended by itself with status %#x", d->id, (unsigned)d->status);
		return EXPECT_SUCCEEDED;
	}
	if (lasting)
		return EXPECT_LOST;
	sight_take(g, d->id, false, &sight);
	/* Without a record it has not begun, or had all but ended. */
	return sight.stage == STAGE_PLAN ? EXPECT_ANY : sight_expects(&sight);
}

static void round_run(struct ground *g, const struct options *o, int number)
{
	static struct drop drops[AT_ONCE_MAX];
	enum expected expected[AT_ONCE_MAX];
	bool lasting = number % 2;
	struct problems p = {0};
	int n = o->at_once < AT_ONCE_MAX ? o->at_once : AT_ONCE_MAX;

	ground_reset_ledger(g, o->fresh);
	for (int i = 0; i < n; i++) {
		snprintf(drops[i].id, sizeof drops[i].id, "%s-%d-%d", g->tag, number, i);
		drop_start(g, &drops[i], lasting);
	}
	await_some(drops, n, lasting, lasting ? n : number * 5 % n);
	for (int i = 0; i < n; i++)
		kill(drops[i].pid, SIGKILL);
	for (int i = 0; i < n; i++) {
		drop_end(&drops[i]);
		expected[i] = drop_expects(g, &drops[i], lasting, &p);
		count(WIFSIGNALED(drops[i].status) ? &totals->lost : &totals->succeeded, 1);
	}
	recover(g, &p);
	remains_check(g, false, &p);
	for (int i = 0; i < n; i++)
		ledger_check(g, drops[i].id, expected[i], 0, &p);
	store_check(g, &p);
	count(&totals->steps, 1);
	step_report(&p, "%s: round %d", g->tag, number);
}

static void storm_work(struct ground *g, const struct options *o, int index)
{
	for (int i = index; i < o->rounds; i += o->workers)
		round_run(g, o, i);
}

static void storm_summary(const struct options *o)
{
	printf("%d rounds of %d runs at once: %d killed, %d had ended\n", totals->steps, o->at_once,
	       totals->lost, totals->succeeded);
}

const struct mode mode_storm = {"storm", "20s", storm_work, storm_summary};
