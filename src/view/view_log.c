#include "view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between the end of the output and the end of the run nothing is written: then we look this often. */
enum { LOOK_AGAIN_MS = 500, READ_SIZE = 16 * 1024 };

static int give(struct log_reader *r, int stream, const char *data, size_t size, struct error *err)
{
	return size == 0 ? 0 : r->put(r->arg, stream, data, size, err);
}

/* From the byte on that a follower has not seen. */
static int read_captured(struct log_reader *r, int stream, const struct captured *c, struct error *err)
{
	size_t from = (size_t)r->seen[stream], in_head = from < c->head_size ? from : c->head_size;
	size_t in_tail = c->omitted == 0 ? from - in_head : 0;
	int k = give(r, stream, c->head + in_head, c->head_size - in_head, err);

	if (in_tail > c->tail_size)
		in_tail = c->tail_size;
	if (k == 0 && c->omitted > 0 && r->omitted)
		k = r->omitted(r->arg, c->omitted, err);
	return k < 0 ? k : give(r, stream, c->tail + in_tail, c->tail_size - in_tail, err);
}

static int check_step(const struct log_reader *r, const struct attempt *a, struct error *err)
{
	if (r->step < 0 || (size_t)r->step > a->n_steps)
		return error_set(err, ERROR_NOT_FOUND, "%s attempt %d has no step %d: it has %zu", a->id,
				 a->number, r->step, a->n_steps);
	return 0;
}

int log_read_held(struct log_reader *r, const struct attempt *a, struct error *err)
{
	int k = check_step(r, a, err);

	for (int i = 0; k == 0 && i < STREAM_COUNT; i++)
		for (size_t n = 0; k == 0 && r->wanted[i] && n < a->n_steps; n++)
			if (r->step == 0 || (size_t)r->step == n + 1)
				k = read_captured(r, i, &a->steps[n].logs[i], err);
	return k;
}

int log_read_kept(struct log_reader *r, struct ledger *l, const struct attempt *a, struct error *err)
{
	int r_step = check_step(r, a, err);

	if (r_step < 0)
		return r_step;
	for (int i = 0; i <= STREAM_POST; i++) {
		_cleanup_(captured_done) struct captured c = {0};
		int k = !r->wanted[i] ? 0
			: r->step     ? ledger_load_step_log(l, a, (size_t)r->step, i, &c, err)
				      : ledger_load_log(l, a, i, &c, err);

		if (k == 0 && r->lines > 0 && r->seen[i] == 0)
			captured_keep_lines(&c, r->lines);
		if (k == 0)
			k = read_captured(r, i, &c, err);
		if (k < 0)
			return k;
	}
	return 0;
}

int log_read_live(struct log_reader *r, const struct live *l, struct error *err)
{
	char data[READ_SIZE];

	for (int i = 0; i < STREAM_COUNT; i++) {
		ssize_t n = 0;

		while (r->wanted[i] && l->log_fd[i] >= 0 &&
		       (n = pread(l->log_fd[i], data, sizeof data, r->seen[i])) > 0) {
			int k = give(r, i, data, (size_t)n, err);

			if (k < 0)
				return k;
			r->seen[i] += n;
		}
		if (n < 0)
			return error_system(err, errno, "cannot read the log of '%s'", l->id);
	}
	return 0;
}

/* Backwards, a piece at a time, until so many lines lie behind. -errno. */
static int skip_lines(int fd, int lines, off_t *ret)
{
	struct stat st;
	char data[READ_SIZE];

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = 0;
	for (off_t end = st.st_size; end > 0;) {
		size_t size = end < (off_t)sizeof data ? (size_t)end : sizeof data, from;
		bool found;

		if (pread(fd, data, size, end - (off_t)size) != (ssize_t)size)
			return -EIO;
		if (end == st.st_size && data[size - 1] != '\n')
			lines--;
		from = lines_from_end(data, size, &lines, &found);
		end -= (off_t)size;
		if (found) {
			*ret = end + (off_t)from;
			return 0;
		}
	}
	return 0;
}

int log_skip_live(struct log_reader *r, const struct live *l, struct error *err)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		int k = r->wanted[i] && l->log_fd[i] >= 0 && r->lines > 0
				? skip_lines(l->log_fd[i], r->lines, &r->seen[i])
				: 0;

		if (k < 0)
			return error_system(err, -k, "cannot read the log of '%s'", l->id);
	}
	r->lines = 0;
	return 0;
}

static bool is_running(struct hood *h, const struct live *l)
{
	struct error ignored = ERROR_INIT;
	struct live now;
	bool running;

	if (hood_live(h, l->id, &now, &ignored) < 0)
		return false;
	running = now.alive && !now.held && now.attempt == l->attempt;
	live_done(&now);
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

enum news { NEWS_WRITTEN, NEWS_MAY_HAVE_ENDED, NEWS_STOP };

/* It may have ended when nothing happened for a while, or something else than a write. */
static enum news await_news(int fd, int stop_fd)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	enum news news = poll(p, ARRAY_SIZE(p), LOOK_AGAIN_MS) <= 0 ? NEWS_MAY_HAVE_ENDED : NEWS_WRITTEN;
	ssize_t n;

	while ((n = read(fd, events, sizeof events)) > 0)
		for (char *at = events; at < events + n;) {
			const struct inotify_event *e = (const void *)at;

			if (e->mask & ~(uint32_t)IN_MODIFY)
				news = NEWS_MAY_HAVE_ENDED;
			at += sizeof *e + e->len;
		}
	return p[1].revents ? NEWS_STOP : news;
}

int log_follow(struct log_reader *r, struct hood *h, const struct live *l, int stop_fd, struct error *err)
{
	_cleanup_close_ int fd = -1;
	bool running = true;
	int k = watch(l, &fd, err);

	/* The look at the run comes before the look at its files: what it wrote before its end is seen after. */
	while (k == 0) {
		enum news news;

		k = log_read_live(r, l, err);
		if (k < 0 || !running)
			break;
		news = await_news(fd, stop_fd);
		if (news == NEWS_STOP)
			return 1;
		if (news == NEWS_MAY_HAVE_ENDED)
			running = is_running(h, l);
	}
	return k;
}
