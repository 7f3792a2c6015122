/*
 * Many ends, one commit. Who comes while nobody commits leads: he takes along all who wait, does for each what it wants within one
 * transaction, on one connection, and tells them when that is on disk; the first of those who came meanwhile leads next. So nobody
 * waits for company, and the busier it is the more share an fsync.
 *
 * Each is fenced as if it were alone, since its body is the same. If one of them fails, or has nothing to do, or the commit is not
 * answered, nothing of that transaction counts: then each is tried by itself, and the token tells what had been done.
 *
 * A submitter may keep his own row locked. Nobody whom others wait for waits for that longer than brief_ms; whoever must does it
 * when the lead is passed on, on one connection for all who wait like him.
 */
#include "lending_private.h"
#include "queue_private.h"

enum { MEMBERS_MOST = 32 };

struct member {
	struct member *next;
	pthread_cond_t wake;
	struct ledger *l;
	ledger_body body;
	void *arg;
	bool leads, is_done;
	bool is_alone; /* to be tried by itself */
};

static struct backend *backend_of(struct member *m)
{
	return m->l->backend;
}

/* Their threads wait meanwhile: for so long their handles are the leader's. */
static int run_bodies(struct member *leader)
{
	struct error ignored = ERROR_INIT;
	int r = 0;

	for (struct member *m = leader; m && r == 0; m = m->next) {
		if (m != leader)
			lent_join(backend_of(m), backend_of(leader));
		r = m->body(m->l, m->arg, &ignored);
		if (m != leader)
			lent_part(backend_of(m));
	}
	return r;
}

static bool run_together(struct member *leader)
{
	struct error ignored = ERROR_INIT;
	struct backend *b = backend_of(leader);

	if (ledger_begin(leader->l, &ignored) < 0)
		return false;
	if (queue_lock_for(leader->l, leader->l->lending->joint.brief_ms, &ignored) == 0 &&
	    run_bodies(leader) == 0 && b->ops->commit(b, &ignored) == 0)
		return true;
	b->ops->rollback(b);
	return false;
}

/* The first of those who wait, who is the leader, and as many as may come along: a list. */
static struct member *take_members(struct joint *j)
{
	struct member *first = j->waiting, *last = first;
	int n = 1;

	for (; last->next && n < MEMBERS_MOST; n++)
		last = last->next;
	j->waiting = last->next;
	j->n_waiting -= n;
	last->next = NULL;
	return first;
}

static void tell(struct member *list, bool is_alone)
{
	struct member *next;

	for (struct member *m = list; m; m = next) {
		next = m->next;
		m->is_alone = is_alone;
		m->is_done = true;
		pthread_cond_signal(&m->wake);
	}
}

static void lead(struct lending *from)
{
	struct joint *j = &from->joint;
	struct member *list = take_members(j);
	bool is_alone = true;

	if (list->next) {
		pthread_mutex_unlock(&from->lock);
		is_alone = !run_together(list);
		pthread_mutex_lock(&from->lock);
	}
	for (const struct member *m = list; m && !is_alone; m = m->next)
		j->n_together++;
	tell(list, is_alone);
}

/* Of those who are alone by chance the others learn when it is over, so that they come together meanwhile. */
static void pass_on(struct joint *j)
{
	j->has_leader = j->waiting != NULL;
	if (!j->waiting)
		return;
	j->waiting->leads = true;
	pthread_cond_signal(&j->waiting->wake);
}

static void append(struct member **list, struct member *m)
{
	while (*list)
		list = &(*list)->next;
	*list = m;
}

static int run_briefly(struct ledger *l, void *arg, struct error *err)
{
	const struct member *m = arg;
	int r = queue_lock_for(l, l->lending->joint.brief_ms, err);

	return r < 0 ? r : m->body(l, m->arg, err);
}

int ledger_transaction_joint(struct ledger *l, ledger_body body, void *arg, struct error *err)
{
	struct member me = {.l = l, .body = body, .arg = arg};
	struct lending *from = l->lending;
	struct timespec until;
	struct joint *j;
	int r = 0;

	if (!from)
		return ledger_transaction(l, body, arg, err);
	j = &from->joint;
	pthread_cond_init(&me.wake, NULL);
	pthread_mutex_lock(&from->lock);
	append(&j->waiting, &me);
	j->n_waiting++;
	me.leads = !j->has_leader;
	j->has_leader = true;
	while (!me.leads && !me.is_done)
		pthread_cond_wait(&me.wake, &from->lock);
	if (me.leads)
		lead(from);
	pthread_mutex_unlock(&from->lock);
	if (me.is_alone)
		r = ledger_transaction(l, run_briefly, &me, err);
	if (me.leads) {
		pthread_mutex_lock(&from->lock);
		pass_on(j);
		pthread_mutex_unlock(&from->lock);
	}
	/* In a file there is one lock, which has been waited for. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(from->url.busy_ms / 1000);
	if (r < 0 && err->kind == ERROR_LOCKED && l->backend->ops->dialect != SQL_SQLITE &&
	    pthread_mutex_clocklock(&j->patience, CLOCK_MONOTONIC, &until) == 0) {
		r = ledger_transaction(l, body, arg, err);
		pthread_mutex_unlock(&j->patience);
	}
	pthread_cond_destroy(&me.wake);
	return r;
}
