#include "news.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "text.h"
#include "view.h"

enum {
	VIEWERS_MAX = 400,	 /* less than there are connections: others can still ask */
	BEHIND_MAX = 256 * 1024, /* what a viewer may have to read yet */
	HISTORY_MAX = 64 * 1024, /* what somebody who comes later is told first */
	LOG_BEGIN = 24 * 1024,	 /* of each stream that was written before anybody looked */
	LOG_LOOK_MS = 250,
	LEDGER_LOOK_MS = 1000,
	BLOCK = 32 * 1024,
};
static const uint64_t alive_ns = 15 * NSEC_PER_SEC; /* a comment for everybody: who is gone is noticed */

struct viewer {
	struct viewer *next;
	struct news *news;
	struct topic *topic;
	struct MHD_Connection *connection;
	struct buffer out;
	bool is_suspended, is_over; /* over: when all is sent, the stream ends */
};

/* The beginning of a letter whose other bytes were not written yet. */
struct piece {
	char bytes[3];
	size_t size;
};

struct topic {
	struct topic *next;
	char id[ID_ROOM]; /* "": the ledger */
	/* Under the lock. */
	struct viewer *viewers;
	struct buffer fresh; /* heard, not given yet */
	struct buffer history;
	bool is_over, is_left; /* nothing more comes; nobody looks any more: the ear frees it */
	/* The ear's. */
	struct log_reader reader;
	struct piece pieces[STREAM_POST + 1];
	struct buffer heard;
	uint64_t seen; /* what the ledger was like */
	bool has_begun;
	uint64_t look_at;
};

struct news {
	struct loop *loop;
	struct source *bell, *timer;
	int bell_fd, wake_fd; /* to the loop; to the ear */
	void (*on_sent)(void *arg);
	void *arg;
	struct hood *hood;
	pthread_t ear;
	bool has_ear;

	pthread_mutex_t lock;
	struct topic *topics;
	struct news_counts counts;
	bool closing;
};

static void ring(int fd)
{
	static const uint64_t one = 1;

	(void)!write(fd, &one, sizeof one);
}

static void hush(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof n);
}

static void topic_free(struct topic *t)
{
	buffer_free(&t->fresh);
	buffer_free(&t->history);
	buffer_free(&t->heard);
	free(t);
}

/* ---- the ear ---- */

static void hear(struct topic *t, const char *event, json_t *data)
{
	_cleanup_free_ char *text = data ? json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(data);
	/* JSON has no line break of its own. */
	buffer_printf(&t->heard, "event: %s\ndata: ", event);
	buffer_puts(&t->heard, text ? text : "null");
	buffer_puts(&t->heard, "\n\n");
}

/* How many bytes at its end begin a letter that is longer. */
static size_t piece_at_end(const char *data, size_t size)
{
	for (size_t n = 1; n <= sizeof(((struct piece *)0)->bytes) && n <= size; n++) {
		unsigned char c = (unsigned char)data[size - n];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

		if (c >= 0xc2)
			return c <= 0xf4 && n < whole ? n : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

/* What was kept and what has come, but for what is to be kept now. */
static void piece_join(struct piece *p, const char *data, size_t size, struct buffer *ret)
{
	buffer_append(ret, p->bytes, p->size);
	buffer_append(ret, data, size);
	p->size = ret->data ? piece_at_end(ret->data, ret->size) : 0;
	ret->size -= p->size;
	if (p->size)
		memcpy(p->bytes, ret->data + ret->size, p->size);
}

/* Bytes of a log, made text: what is no UTF-8 is shown as the pages show it. */
static int hear_log(void *arg, int stream, const char *data, size_t size, struct error *err UNUSED)
{
	struct topic *t = arg;
	_cleanup_buffer_ struct buffer text = {0}, whole = {0};

	piece_join(&t->pieces[stream], data, size, &whole);
	data = whole.data;
	size = whole.size;
	if (size == 0)
		return 0;
	for (size_t i = 0, n; i < size; i += n) {
		bool shown;

		n = text_next(data + i, size - i, &shown);
		if (shown || data[i] == '\n' || data[i] == '\t')
			buffer_append(&text, data + i, n);
		else
			for (size_t k = 0; k < n; k++)
				buffer_printf(&text, "\\x%02x", (unsigned char)data[i + k]);
	}
	hear(t, "log",
	     json_pack("{s:s, s:s#}", "stream", stream == STREAM_STDERR ? "stderr" : "stdout", "text",
		       text.size ? text.data : "", (int)text.size));
	return 0;
}

/* Of a long one its end. */
static void begin_log(struct topic *t, const struct live *live)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		struct stat st;

		t->reader.wanted[i] = true;
		if (live->log_fd[i] >= 0 && fstat(live->log_fd[i], &st) == 0 && st.st_size > LOG_BEGIN)
			t->reader.seen[i] = st.st_size - LOG_BEGIN;
	}
	t->has_begun = true;
}

/* 1: something was heard. */
static int listen_to_log(struct news *n, struct topic *t)
{
	struct error err = ERROR_INIT;
	struct live live = {0};
	int r = hood_live(n->hood, t->id, &live, &err);
	size_t before = t->heard.size;

	if (r < 0 || !live.alive) {
		hear(t, "end", NULL);
	} else {
		t->reader.put = hear_log;
		t->reader.arg = t;
		if (!t->has_begun)
			begin_log(t, &live);
		(void)log_read_live(&t->reader, &live, &err);
	}
	if (r >= 0)
		live_done(&live);
	return t->heard.size > before;
}

/* What changes when something was submitted, started or ended. */
static uint64_t likeness(struct hood *h)
{
	uint64_t counts[JOB_STATES] = {0}, sum = 14695981039346656037ULL;
	struct error err = ERROR_INIT;
	struct recent recent = {0};
	struct ledger *l;

	if (hood_ledger(h, LEDGER_READ_ONLY, &l, &err) < 0 ||
	    ledger_queue_open_counts(l, 100000, counts, &err) < 0 || ledger_recent(l, &recent, &err) < 0)
		return 0;
	for (int i = 0; i < JOB_STATES; i++)
		sum = (sum ^ counts[i]) * 1099511628211ULL;
	return (sum ^ (recent.ended << 20) ^ recent.failed) * 1099511628211ULL;
}

static int listen_to_ledger(struct news *n, struct topic *t)
{
	uint64_t now = likeness(n->hood);
	bool changed = t->has_begun && now != t->seen;

	t->has_begun = true;
	t->seen = now;
	if (changed)
		hear(t, "change", json_true());
	return changed;
}

static void look(struct news *n, struct topic *t)
{
	bool is_log = *t->id != 0;
	int heard;

	hood_ledger_renew(n->hood);
	heard = is_log ? listen_to_log(n, t) : listen_to_ledger(n, t);
	t->look_at = clock_now() + (uint64_t)(is_log ? LOG_LOOK_MS : LEDGER_LOOK_MS) * NSEC_PER_MSEC;
	pthread_mutex_lock(&n->lock);
	if (is_log)
		n->counts.log_reads += heard != 0;
	else
		n->counts.looks++;
	if (heard) {
		buffer_append(&t->fresh, t->heard.data, t->heard.size);
		t->is_over = t->is_over || strstr(t->heard.data, "event: end\n") != NULL;
	}
	pthread_mutex_unlock(&n->lock);
	t->heard.size = 0;
	if (heard)
		ring(n->bell_fd);
}

/* Who is left by everybody goes. Only the ear takes topics out of the list, and only the loop puts them in, at its beginning. */
static void sweep(struct news *n)
{
	pthread_mutex_lock(&n->lock);
	for (struct topic **at = &n->topics; *at;) {
		struct topic *t = *at;

		if (!t->is_left) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		topic_free(t);
	}
	pthread_mutex_unlock(&n->lock);
}

static struct topic *first(struct news *n)
{
	struct topic *t;

	pthread_mutex_lock(&n->lock);
	t = n->topics;
	pthread_mutex_unlock(&n->lock);
	return t;
}

static bool is_closing(struct news *n)
{
	bool closing;

	pthread_mutex_lock(&n->lock);
	closing = n->closing;
	pthread_mutex_unlock(&n->lock);
	return closing;
}

/* Sleeps until somebody looks at something, and then until the next look is due. */
static void *listen_on(void *arg)
{
	struct news *n = arg;

	while (!is_closing(n)) {
		struct pollfd woken = {.fd = n->wake_fd, .events = POLLIN};
		uint64_t next = UINT64_MAX, now;
		int wait;

		sweep(n);
		for (struct topic *t = first(n); t; t = t->next) {
			if (!t->is_over && t->look_at <= clock_now())
				look(n, t);
			if (!t->is_over && t->look_at < next)
				next = t->look_at;
		}
		now = clock_now();
		wait = next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC) + 1;
		if (poll(&woken, 1, wait) > 0)
			hush(n->wake_fd);
	}
	return NULL;
}

/* ---- in the loop ---- */

static void viewer_wake(struct viewer *v)
{
	if (v->is_suspended) {
		v->is_suspended = false;
		MHD_resume_connection(v->connection);
	}
}

static void viewer_give(struct viewer *v, const char *data, size_t size)
{
	if (v->is_over)
		return;
	if (v->out.size + size > BEHIND_MAX) {
		v->news->counts.dropped++;
		v->out.size = 0;
		v->is_over = true;
	} else {
		buffer_append(&v->out, data, size);
	}
	viewer_wake(v);
}

/* Whole events only, the last ones. */
static void remember(struct topic *t)
{
	const char *from;

	buffer_append(&t->history, t->fresh.data, t->fresh.size);
	if (t->history.size <= HISTORY_MAX)
		return;
	from = strstr(t->history.data + t->history.size - HISTORY_MAX / 2, "\n\n");
	from = from ? from + 2 : t->history.data + t->history.size;
	t->history.size -= (size_t)(from - t->history.data);
	memmove(t->history.data, from, t->history.size + 1);
}

static void give_out(struct topic *t)
{
	if (t->fresh.size == 0)
		return;
	remember(t);
	for (struct viewer *v = t->viewers; v; v = v->next) {
		viewer_give(v, t->fresh.data, t->fresh.size);
		v->is_over = v->is_over || t->is_over;
	}
	t->fresh.size = 0;
}

static int on_heard(void *arg, int fd, uint32_t events UNUSED, struct error *err UNUSED)
{
	struct news *n = arg;

	hush(fd);
	pthread_mutex_lock(&n->lock);
	for (struct topic *t = n->topics; t; t = t->next)
		give_out(t);
	pthread_mutex_unlock(&n->lock);
	n->on_sent(n->arg);
	return 0;
}

static int on_time(void *arg, struct error *err UNUSED)
{
	struct news *n = arg;

	pthread_mutex_lock(&n->lock);
	for (struct topic *t = n->topics; t; t = t->next)
		for (struct viewer *v = t->viewers; v; v = v->next)
			viewer_give(v, ":\n\n", 3);
	pthread_mutex_unlock(&n->lock);
	n->on_sent(n->arg);
	return loop_timer_set(n->timer, clock_now() + alive_ns);
}

/* ---- a viewer ---- */

static ssize_t send_some(void *arg, uint64_t at UNUSED, char *to, size_t room)
{
	struct viewer *v = arg;
	struct news *n = v->news;
	ssize_t size;

	pthread_mutex_lock(&n->lock);
	size = (ssize_t)(v->out.size < room ? v->out.size : room);
	if (size > 0) {
		memcpy(to, v->out.data, (size_t)size);
		v->out.size -= (size_t)size;
		memmove(v->out.data, v->out.data + size, v->out.size);
	} else if (v->is_over || n->closing) {
		size = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		v->is_suspended = true;
		MHD_suspend_connection(v->connection);
	}
	pthread_mutex_unlock(&n->lock);
	return size;
}

static void viewer_free(void *arg)
{
	struct viewer *v = arg;
	struct news *n = v->news;

	pthread_mutex_lock(&n->lock);
	for (struct viewer **at = &v->topic->viewers; *at; at = &(*at)->next)
		if (*at == v) {
			*at = v->next;
			break;
		}
	v->topic->is_left = !v->topic->viewers;
	n->counts.viewers--;
	pthread_mutex_unlock(&n->lock);
	ring(n->wake_fd);
	buffer_free(&v->out);
	free(v);
}

static struct topic *topic_of(struct news *n, const char *id)
{
	struct topic *t;

	for (t = n->topics; t; t = t->next)
		if (!t->is_left && !t->is_over && strcmp(t->id, id) == 0)
			return t;
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	snprintf(t->id, sizeof t->id, "%s", id);
	t->next = n->topics;
	n->topics = t;
	return t;
}

static struct viewer *viewer_new(struct news *n, struct MHD_Connection *connection, const char *id)
{
	struct viewer *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	v->news = n;
	v->connection = connection;
	v->topic = n->closing || n->counts.viewers >= VIEWERS_MAX ? NULL : topic_of(n, id);
	if (!v->topic) {
		free(v);
		return NULL;
	}
	buffer_puts(&v->out, "retry: 2000\n\n");
	buffer_append(&v->out, v->topic->history.data, v->topic->history.size);
	v->next = v->topic->viewers;
	v->topic->viewers = v;
	n->counts.viewers++;
	return v;
}

struct MHD_Response *news_view(struct news *n, struct MHD_Connection *connection, const char *id)
{
	struct MHD_Response *r;
	struct viewer *v;

	pthread_mutex_lock(&n->lock);
	v = viewer_new(n, connection, id ? id : "");
	pthread_mutex_unlock(&n->lock);
	if (!v)
		return NULL;
	ring(n->wake_fd);
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, send_some, v, viewer_free);
	if (!r)
		viewer_free(v);
	return r;
}

struct news_counts news_count(struct news *n)
{
	struct news_counts counts;

	pthread_mutex_lock(&n->lock);
	counts = n->counts;
	pthread_mutex_unlock(&n->lock);
	return counts;
}

/* ---- beginning and end ---- */

static int start(struct news *n, const struct hood_options *options, struct error *err)
{
	int r;

	if (n->bell_fd < 0 || n->wake_fd < 0)
		return error_system(err, errno, "cannot make an eventfd");
	if (hood_open(options, &n->hood, err) < 0 ||
	    loop_add_fd(n->loop, n->bell_fd, EPOLLIN, on_heard, n, &n->bell, err) < 0 ||
	    loop_add_timer(n->loop, clock_now() + alive_ns, on_time, n, &n->timer, err) < 0)
		return -EINVAL;
	r = thread_start(&n->ear, 0, listen_on, n);
	n->has_ear = r == 0;
	return r < 0 ? error_system(err, -r, "cannot start a thread") : 0;
}

int news_open(struct loop *loop, const struct hood_options *options, void (*on_sent)(void *arg), void *arg,
	      struct news **ret, struct error *err)
{
	struct news *n = calloc(1, sizeof *n);

	if (!n)
		return error_memory(err);
	n->loop = loop;
	n->on_sent = on_sent;
	n->arg = arg;
	n->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&n->lock, NULL);
	if (start(n, options, err) < 0) {
		news_close(n);
		return -1;
	}
	*ret = n;
	return 0;
}

void news_quiet(struct news *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->closing = true;
	for (struct topic *t = n->topics; t; t = t->next)
		for (struct viewer *v = t->viewers; v; v = v->next)
			viewer_wake(v);
	pthread_mutex_unlock(&n->lock);
	ring(n->wake_fd);
	if (n->has_ear)
		pthread_join(n->ear, NULL);
	n->has_ear = false;
}

struct news *news_close(struct news *n)
{
	if (!n)
		return NULL;
	news_quiet(n);
	loop_remove(n->bell);
	loop_remove(n->timer);
	while (n->topics) {
		struct topic *t = n->topics;

		n->topics = t->next;
		topic_free(t);
	}
	fd_close(n->bell_fd);
	fd_close(n->wake_fd);
	hood_close(n->hood);
	pthread_mutex_destroy(&n->lock);
	free(n);
	return NULL;
}
