/*
 * The ledger, opened by a second hand while the caller looks at the host: finding its log and reading its schema takes as long as a
 * plan.
 */
#include "private.h"
#include "hand.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ledger_ahead {
	const char *url;
	unsigned flags;
	struct ledger *ledger;
	struct error error;
	int result;
};

static void open_ahead(void *arg)
{
	struct ledger_ahead *a = arg;

	a->result = ledger_open(a->url, a->flags, &a->ledger, &a->error);
}

/* One that is made first has a say in what may be shown: not meanwhile. */
static bool is_there(const char *url)
{
	return strncmp(url, "sqlite:", 7) != 0 || access(url + 7, F_OK) == 0;
}

void hood_begin_ledger(struct hood *h, unsigned flags)
{
	if (!h->hand || h->ledger || h->ahead || h->lending || !is_there(h->ledger_url) ||
	    !(h->ahead = calloc(1, sizeof *h->ahead)))
		return;
	h->ahead->url = h->ledger_url;
	h->ahead->flags = flags;
	hand_do(h->hand, open_ahead, h->ahead);
}

int hood_end_ledger(struct hood *h, struct error *err)
{
	struct ledger_ahead *a = TAKE_PTR(h->ahead);
	int r;

	hand_await(h->hand);
	r = a->result;
	h->ledger = a->ledger;
	h->ledger_flags = a->flags;
	if (r < 0) {
		a->error.stage = err->stage;
		*err = a->error;
	} else {
		ledger_watch(h->ledger, h->work);
	}
	free(a);
	return r;
}
