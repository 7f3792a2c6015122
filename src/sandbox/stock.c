#include "stock.h"
#include "process.h"
#include "clock.h"
#include "file.h"
#include "spare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SPARES_MAX = 2, STACK_SIZE = 128 * 1024, FDS_MAX = SPARES_MAX + 2 };
static const uint64_t AGE_MAX_NS = SPARE_AGE_MAX_NS;

struct stock {
	pthread_mutex_t lock;
	pthread_t thread;
	bool has_thread, has_ended,
		closing; /* a thread, even one that has nothing more to do; it is joined */
	int wake;	 /* an eventfd */
	int mounts; /* the mount table: readable as an error when it has changed since it was last asked, under the lock */
	struct spare *shelf;
	int count;  /* on the shelf */
	int orders; /* to be made, and the one that is; never more than SPARES_MAX with those on the shelf */
	struct buffer wanted; /* the latest order's spec */
	uint64_t begun;	      /* the latest analysis; 0: none */
	unsigned changes;     /* of the mounts, as far as somebody has looked */
};

/* Under the lock, and after it: what is thrown away is killed and awaited when nobody waits for us. */
static void free_all(struct spare *gone)
{
	while (gone) {
		struct spare *next = gone->next;

		spare_free(gone);
		gone = next;
	}
}

/* Each change is told once. */
static bool mounts_have_changed(struct stock *k)
{
	struct pollfd p = {.fd = k->mounts, .events = POLLPRI};
	bool changed = k->mounts < 0 || poll(&p, 1, 0) != 0; /* unknown: it may have */

	k->changes += changed;
	return changed;
}

static struct spare *take_out(struct stock *k, struct spare **at)
{
	struct spare *s = *at;

	*at = s->next;
	s->next = NULL;
	k->count--;
	return s;
}

static void throw_out(struct stock *k, struct spare **at, struct spare **gone)
{
	struct spare *s = take_out(k, at);

	s->next = *gone;
	*gone = s;
}

/* Those that are too old, or see mounts that are not there any more. */
static struct spare *weed(struct stock *k)
{
	bool all = mounts_have_changed(k);
	uint64_t now = clock_now();
	struct spare *gone = NULL;

	for (struct spare **at = &k->shelf; *at;) {
		if (all || k->closing || now - (*at)->born >= AGE_MAX_NS) {
			throw_out(k, at, &gone);
		} else {
			at = &(*at)->next;
		}
	}
	return gone;
}

struct sandbox *stock_take(struct stock *k, const struct likeness *like)
{
	struct spare *gone, *found = NULL;
	struct sandbox *sandbox = NULL;

	pthread_mutex_lock(&k->lock);
	gone = weed(k);
	for (struct spare **at = &k->shelf; *at && !found;) {
		if ((*at)->is_ready && likeness_is_same(&(*at)->like, like) &&
		    pidfd_wait((*at)->sandbox->pidfd, 0) == -ETIMEDOUT)
			found = take_out(k, at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&k->lock);
	free_all(gone);
	if (found)
		sandbox = TAKE_PTR(found->sandbox);
	spare_free(found);
	return sandbox;
}

/* ---- the thread ---- */

/* One that is ordered. It is put on the shelf before it is ready, and seen there by nobody. */
static void make_one(struct stock *k)
{
	struct error ignored = ERROR_INIT;
	struct buffer spec = {0};
	struct spare *s = NULL, **at;
	unsigned changes = k->changes;

	buffer_append(&spec, k->wanted.data, k->wanted.size);
	pthread_mutex_unlock(&k->lock);
	if (buffer_check(&spec, &ignored) == 0)
		(void)spare_make(&spec, &s, &ignored);
	buffer_free(&spec);
	pthread_mutex_lock(&k->lock);
	k->orders--;
	if (!s)
		return;
	if (k->changes != changes)
		s->born = 0;			     /* somebody has looked meanwhile: it is too old */
	for (at = &k->shelf; *at; at = &(*at)->next) /* the oldest is used first */
		;
	*at = s;
	k->count++;
}

/* Whether those that were not ready are. */
static struct spare *hear(struct stock *k)
{
	struct spare *gone = NULL;

	for (struct spare **at = &k->shelf; *at;) {
		if (!(*at)->is_ready && spare_hear(*at) < 0) {
			throw_out(k, at, &gone);
		} else {
			at = &(*at)->next;
		}
	}
	return gone;
}

/* Until there is something to do. */
static void await(struct stock *k, int mounts)
{
	struct pollfd fds[FDS_MAX] = {{.fd = k->wake, .events = POLLIN}, {.fd = mounts, .events = POLLPRI}};
	uint64_t now = clock_now(), first = UINT64_MAX, count;
	nfds_t n = 2;

	for (const struct spare *s = k->shelf; s; s = s->next) {
		first = s->born + AGE_MAX_NS < first ? s->born + AGE_MAX_NS : first;
		if (!s->is_ready)
			fds[n++] = (struct pollfd){.fd = s->sandbox->report_fd, .events = POLLIN};
	}
	pthread_mutex_unlock(&k->lock);
	poll(fds, n, first > now ? (int)((first - now) / NSEC_PER_MSEC) + 1 : 0);
	(void)!read(k->wake, &count, sizeof count);
	pthread_mutex_lock(&k->lock);
}

static void *stock_main(void *arg)
{
	struct stock *k = arg;
	int mounts; /* to wait with: each opening is told of each change */

	pthread_mutex_lock(&k->lock);
	k->mounts = open("/proc/thread-self/mountinfo", O_RDONLY | O_CLOEXEC);
	mounts = open("/proc/thread-self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (k->mounts < 0 || mounts < 0)
		k->orders = 0; /* it could not be told when they are of no use any more */
	while (!k->closing && (k->shelf || k->orders)) {
		struct spare *gone = weed(k), *failed = hear(k);

		if (gone || failed) {
			pthread_mutex_unlock(&k->lock);
			free_all(gone);
			free_all(failed);
			pthread_mutex_lock(&k->lock);
		}
		if (k->orders)
			make_one(k);
		else if (k->shelf && !k->closing)
			await(k, mounts);
	}
	fd_close(mounts);
	k->mounts = fd_close(k->mounts);
	buffer_free(&k->wanted);
	k->has_ended = true;
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

static void need_thread(struct stock *k)
{
	if (k->has_thread && !k->has_ended)
		return;
	if (k->has_thread)
		pthread_join(k->thread, NULL);
	k->has_ended = false;
	k->has_thread = thread_start(&k->thread, STACK_SIZE, stock_main, k) == 0;
	if (!k->has_thread)
		k->orders = 0;
}

/* ---- its users ---- */

void stock_order(struct stock *k, struct likeness *like)
{
	static const uint64_t one = 1;
	uint64_t now = clock_now(), before;

	pthread_mutex_lock(&k->lock);
	before = k->begun;
	k->begun = now;
	if (before && now - before < AGE_MAX_NS && k->count + k->orders < SPARES_MAX) {
		struct buffer old = k->wanted;

		k->wanted = like->spec;
		like->spec = old;
		k->orders++;
		need_thread(k);
		(void)!write(k->wake, &one, sizeof one);
	}
	pthread_mutex_unlock(&k->lock);
}

int stock_open(struct stock **ret, struct error *err)
{
	struct stock *k = calloc(1, sizeof *k);

	if (!k)
		return error_memory(err);
	pthread_mutex_init(&k->lock, NULL);
	k->mounts = -1;
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->wake < 0) {
		int saved = errno;

		stock_close(k);
		return error_system(err, saved, "cannot make an event descriptor");
	}
	*ret = k;
	return 0;
}

struct stock *stock_close(struct stock *k)
{
	static const uint64_t one = 1;

	if (!k)
		return NULL;
	if (k->has_thread) {
		pthread_mutex_lock(&k->lock);
		k->closing = true;
		(void)!write(k->wake, &one, sizeof one);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
	}
	free_all(k->shelf);
	buffer_free(&k->wanted);
	fd_close(k->wake);
	fd_close(k->mounts);
	pthread_mutex_destroy(&k->lock);
	free(k);
	return NULL;
}
