#include "tee.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "screen.h"

enum { STREAM_OWN = SCREEN_STREAMS, STATUS_ROOM = 512 };

struct piece {
	struct piece *next;
	int stream;
	size_t size;
	char data[];
};

struct tee {
	size_t queue_max;
	int done_fd; /* readable once the thread has nothing more to do */
	int room_fd; /* readable as long as there is room; -1: nobody looks */
	pthread_t thread;

	/* Shared, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct piece *first, **last;
	size_t queued;	       /* bytes of memory, the chunk being written included */
	uint64_t dropped, gap; /* in all; since the last chunk that was taken */
	char status[STATUS_ROOM];
	bool started, status_changed, finishing, done, abandoned;
	int broken; /* why nothing more can be written: an errno */

	struct screen screen; /* the thread's own */
};

static void tee_free(struct tee *t)
{
	while (t->first) {
		struct piece *c = t->first;

		t->first = c->next;
		free(c);
	}
	fd_close(t->done_fd);
	fd_close(t->room_fd);
	pthread_cond_destroy(&t->news);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

enum { TERMINAL_QUEUE_MAX = 64 * 1024 };

/* A reader that is gone reads everything. */
static void room_update(struct tee *t)
{
	eventfd_t count;

	if (t->room_fd < 0)
		return;
	if (t->queued < TERMINAL_QUEUE_MAX || t->broken)
		(void)eventfd_write(t->room_fd, 1);
	else
		(void)eventfd_read(t->room_fd, &count);
}

int tee_show_terminal(struct tee *t, volatile bool *is_changed)
{
	t->screen.is_changed = is_changed;
	t->screen.shows_terminal = true;
	t->room_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	return t->room_fd;
}

static struct piece *pop(struct tee *t)
{
	struct piece *c = t->first;

	t->first = c->next;
	if (!t->first)
		t->last = &t->first;
	return c;
}

static int show(struct screen *s, const struct piece *c)
{
	if (c->stream == STREAM_OWN)
		return screen_say(s, c->data, c->size);
	return screen_output(s, c->stream, c->data, c->size);
}

/* One piece of work, the lock held on entry and on return, not between. */
static void work(struct tee *t)
{
	_cleanup_free_ struct piece *c = t->first ? pop(t) : NULL;
	bool is_broken = t->broken != 0;
	char status[STATUS_ROOM];
	int r = 0;

	memcpy(status, t->status, sizeof status);
	t->status_changed = false;
	pthread_mutex_unlock(&t->lock);
	if (c && !is_broken)
		r = show(&t->screen, c);
	pthread_mutex_lock(&t->lock);
	if (c)
		t->queued -= sizeof *c + c->size;
	/* The line comes back only when the flood is over: drawn after each piece it would flicker. */
	if (r == 0 && !is_broken && !t->first) {
		pthread_mutex_unlock(&t->lock);
		r = screen_status(&t->screen, status);
		pthread_mutex_lock(&t->lock);
	}
	if (r < 0)
		t->broken = -r;
	room_update(t);
}

static void *thread_main(void *arg)
{
	struct tee *t = arg;
	bool abandoned;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (!t->first && !t->status_changed && !t->finishing)
			pthread_cond_wait(&t->news, &t->lock);
		if (!t->first && !t->status_changed)
			break;
		work(t);
	}
	pthread_mutex_unlock(&t->lock);
	if (!t->broken)
		(void)screen_end(&t->screen);

	pthread_mutex_lock(&t->lock);
	t->done = true;
	eventfd_write(t->done_fd, 1);
	abandoned = t->abandoned;
	pthread_mutex_unlock(&t->lock);
	if (abandoned)
		tee_free(t);
	return NULL;
}

/* Signals are for the run's thread: this one would be interrupted for nothing, and with SIGTTOU blocked a job in the
 * background may still write to its terminal. */
static int start_thread(struct tee *t)
{
	t->done_fd = eventfd(0, EFD_CLOEXEC);
	if (t->done_fd < 0)
		return -errno;
	return thread_start(&t->thread, 0, thread_main, t);
}

/* Something is to be shown, the lock held: most runs show nothing, or only how they ended. */
static void wake(struct tee *t)
{
	int r;

	if (t->started) {
		pthread_cond_signal(&t->news);
	} else if (!t->broken) {
		r = start_thread(t);
		t->started = r == 0;
		t->broken = -r;
	}
}

int tee_open(int fd, bool is_terminal, size_t queue_max, struct tee **ret, struct error *err)
{
	struct tee *t = calloc(1, sizeof *t);

	if (!t)
		return error_memory(err);
	t->screen = (struct screen){.fd = fd, .is_terminal = is_terminal};
	t->queue_max = queue_max;
	t->last = &t->first;
	t->done_fd = t->room_fd = -1;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->news, NULL);
	*ret = t;
	return 0;
}

static bool append(struct tee *t, int stream, const char *data, size_t size)
{
	struct piece *c = malloc(sizeof *c + size);

	if (!c)
		return false;
	*c = (struct piece){.stream = stream, .size = size};
	memcpy(c->data, data, size);
	*t->last = c;
	t->last = &c->next;
	t->queued += sizeof *c + size;
	wake(t);
	return true;
}

/* Says where something is missing, before what comes after it. */
static void append_gap(struct tee *t)
{
	char note[80];
	int n;

	if (t->gap == 0)
		return;
	n = snprintf(note, sizeof note, "[fumehood: %llu bytes not shown here]\n",
		     (unsigned long long)t->gap);
	if (append(t, STREAM_OWN, note, (size_t)n))
		t->gap = 0;
}

void tee_write(struct tee *t, int stream, const char *data, size_t size)
{
	if (size == 0)
		return;
	pthread_mutex_lock(&t->lock);
	if (!t->broken) {
		bool fits = t->queued + sizeof(struct piece) + size <= t->queue_max;

		if (fits)
			append_gap(t);
		if (!fits || !append(t, stream, data, size)) {
			t->dropped += size;
			t->gap += size;
		}
	}
	room_update(t);
	pthread_mutex_unlock(&t->lock);
}

void tee_say(struct tee *t, const char *text)
{
	pthread_mutex_lock(&t->lock);
	append_gap(t);
	append(t, STREAM_OWN, text, strlen(text));
	pthread_mutex_unlock(&t->lock);
}

void tee_status(struct tee *t, const char *text)
{
	pthread_mutex_lock(&t->lock);
	snprintf(t->status, sizeof t->status, "%s", text ? text : "");
	if (t->started || t->status[0]) {
		t->status_changed = true;
		wake(t);
	}
	pthread_mutex_unlock(&t->lock);
}

uint64_t tee_dropped(struct tee *t)
{
	uint64_t dropped;

	pthread_mutex_lock(&t->lock);
	dropped = t->dropped;
	pthread_mutex_unlock(&t->lock);
	return dropped;
}

enum { LAST_WORDS_MS = 500 };

/* True when the thread is done; false when the caller was told not to wait, and the thread is on its own from now on:
 * a write that waits for its reader cannot be called back, so it keeps what it uses and frees it at its end. */
static bool wait_done(struct tee *t, int cancel_fd)
{
	struct pollfd p[] = {{.fd = t->done_fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	bool done;

	while (poll(p, ARRAY_SIZE(p), -1) < 0 && errno == EINTR)
		;
	/* A signal may have come when the run was over and the wait had not begun: a reader that is not stuck still
	 * gets everything. */
	if (!p[0].revents)
		while (poll(p, 1, LAST_WORDS_MS) < 0 && errno == EINTR)
			;
	pthread_mutex_lock(&t->lock);
	done = t->done;
	t->abandoned = !done;
	pthread_mutex_unlock(&t->lock);
	return done;
}

static int end(struct tee *t)
{
	int broken = t->broken;

	tee_free(t);
	return broken == EPIPE || broken == EIO ? 0 : -broken;
}

int tee_finish(struct tee *t, int cancel_fd)
{
	pthread_t thread = t->thread;

	if (!t->started)
		return end(t);
	pthread_mutex_lock(&t->lock);
	t->finishing = true;
	t->status[0] = 0;
	t->status_changed = true;
	pthread_cond_signal(&t->news);
	pthread_mutex_unlock(&t->lock);

	if (!wait_done(t, cancel_fd)) {
		pthread_detach(thread);
		return 0;
	}
	pthread_join(thread, NULL);
	return end(t);
}
