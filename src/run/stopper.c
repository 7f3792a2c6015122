#include "stopper.h"
#include "file.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define STOPPER_NAME "stop"

/* A copy of the supervisor's end may be in a child of the program that hosts it, and keeps the FIFO open: so one looks, too. */
enum { LOOK_AGAIN_MS = 500 };

/* ---- the supervisor's side ---- */

int stopper_make(int run_fd, struct error *err)
{
	int fd;

	/* One is left of an earlier step here, or of a dead supervisor: what was written to it was not for us. */
	if ((unlinkat(run_fd, STOPPER_NAME, 0) < 0 && errno != ENOENT) ||
	    mkfifoat(run_fd, STOPPER_NAME, 0600) < 0 ||
	    fchmodat(run_fd, STOPPER_NAME, 0600, 0) < 0 /* the umask */)
		return error_system(err, errno, "cannot make a FIFO in the state directory");
	/* For writing as well: it is never at its end, whoever comes and goes. */
	fd = openat(run_fd, STOPPER_NAME, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? error_system(err, errno, "cannot open a FIFO in the state directory") : fd;
}

/* ---- whoever ends it ---- */

static int open_fifo(int runs, const char *id)
{
	_cleanup_close_ int run_fd = file_open_beneath(runs, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (run_fd < 0)
		return -1;
	/* Without a reader, as after its supervisor's death, it cannot be opened. */
	fd = openat(run_fd, STOPPER_NAME, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return -1;
	return TAKE_FD(fd);
}

static int check_ledger(const struct hood *h, const struct live *live, struct error *err)
{
	int same = live->ledger ? ledger_url_same(live->ledger, h->ledger_url) : 1;

	if (same < 0)
		return error_memory(err);
	return same ? 0
		    : error_set(
			      err, ERROR_NOT_FOUND,
			      "'%s' runs here, but its result is for another ledger, '%s': to cancel it, name that "
			      "with --db",
			      live->id, live->ledger);
}

/* Alive by its record: the process that it names, with its start time. */
static int find(struct hood *h, const char *id, struct run_stop *ret, struct error *err)
{
	struct error none = ERROR_INIT;
	struct site *site = NULL;
	struct live live;
	int r;

	if (hood_live(h, id, &live, &none) < 0)
		return 0;
	if (!live.alive || live.held || live.queued) {
		live_done(&live);
		return 0;
	}
	r = check_ledger(h, &live, err);
	ret->attempt = live.attempt;
	ret->step = live.step;
	memcpy(ret->token, live.token, sizeof ret->token);
	live_done(&live);
	if (r < 0 || (r = hood_site(h, &site, err)) < 0)
		return r;
	ret->fd = open_fifo(site->runs, id);
	return ret->fd >= 0;
}

int run_stop_tell(struct hood *h, const char *id, struct run_stop *ret, struct error *err)
{
	const unsigned char number = SIGTERM;
	int r;

	*ret = (struct run_stop){.fd = -1};
	snprintf(ret->id, sizeof ret->id, "%s", id);
	r = find(h, id, ret, err);
	if (r <= 0)
		return r;
	if (write(ret->fd, &number, 1) == 1 || errno == EAGAIN) /* full: it was told often enough */
		return 1;
	r = errno == EPIPE ? 0 : error_system(err, errno, "cannot tell the supervisor of '%s' to end it", id);
	run_stop_done(ret);
	return r;
}

void run_stop_done(struct run_stop *s)
{
	s->fd = fd_close(s->fd);
}

static bool is_going_on(struct hood *h, const struct run_stop *s)
{
	struct error ignored = ERROR_INIT;
	struct live now;
	bool same;

	if (hood_live(h, s->id, &now, &ignored) < 0)
		return false;
	same = now.alive && !now.held && strcmp(now.token, s->token) == 0;
	live_done(&now);
	return same;
}

/* What it came to: a step's is beside the record, everything else's in the ledger. */
static int learn_end(struct hood *h, const struct run_stop *s, enum verdict *ret, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	int number = 0, r;

	attempt_init(&a);
	*ret = VERDICT_NONE;
	if (s->step) {
		r = hood_steps(h, s->id, &a, err);
		if (r == 1 && s->step <= a.n_steps)
			*ret = a.steps[s->step - 1].verdict;
		return r < 0 ? r : 0;
	}
	if ((r = hood_ledger(h, LEDGER_CREATE, &ledger, err)) < 0 ||
	    (r = ledger_has_token(ledger, s->token, &number, err)) <= 0)
		return r;
	r = ledger_load(ledger, s->id, number, &a, err);
	if (r == 0)
		*ret = a.verdict;
	return r;
}

int run_stop_wait(struct hood *h, const struct run_stop *s, int stop_fd, enum verdict *ret, struct error *err)
{
	struct pollfd p[] = {{.fd = s->fd}, {.fd = stop_fd, .events = POLLIN}};

	do {
		p[0].revents = p[1].revents = 0;
		if (poll(p, ARRAY_SIZE(p), LOOK_AGAIN_MS) < 0 && errno != EINTR)
			return error_system(err, errno, "cannot wait for '%s'", s->id);
		if (p[1].revents)
			return 1;
	} while (!p[0].revents && is_going_on(h, s));
	return learn_end(h, s, ret, err);
}
