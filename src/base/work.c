#include "work.h"

#include "clock.h"
#include "macros.h"

static const uint64_t silent_ns = NSEC_PER_SEC, every_ns = NSEC_PER_SEC / 10;

static void begin(struct work *w, const char *what, uint64_t total, bool is_parts)
{
	if (!w)
		return;
	w->what = what;
	w->done = 0;
	w->total = total;
	w->is_parts = is_parts;
	w->began = clock_now();
	w->told = 0;
}

void work_begin(struct work *w, const char *what, uint64_t total)
{
	begin(w, what, total, false);
}

void work_begin_parts(struct work *w, const char *what, uint64_t total)
{
	begin(w, what, total, true);
}

void work_add(struct work *w, uint64_t n)
{
	uint64_t now;

	if (!w || !w->what)
		return;
	w->done += n;
	/* Something may be read twice, or have grown: more than all of it is not done. */
	if (w->total && w->done > w->total)
		w->done = w->total;
	now = clock_now();
	if (!w->tell || now - w->began < silent_ns || now - w->told < every_ns)
		return;
	w->told = now;
	w->tell(w->arg, w);
}
