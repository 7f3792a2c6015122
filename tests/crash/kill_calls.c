/* What the kill sweeps over one command share. */
#include "fault.h"
#include "sweep.h"

#include <string.h>

int command_say(const struct ground *g, const char *const *argv, const char *wanted, struct problems *p)
{
	_cleanup_outcome_ struct outcome o;

	ground_command(g, argv, &o);
	if (p && (o.status != 0 || (wanted && (!o.out.data || !strstr(o.out.data, wanted)))))
		problem(p, "%s %s ended with status %#x: %s%s", argv[1], argv[2], (unsigned)o.status,
			o.err.data ? o.err.data : "", o.out.data ? o.out.data : "");
	return o.status;
}

bool tracee_to(struct tracee *t, const struct ground *g, const char *const *argv, int k)
{
	int n = 0;

	tracee_start(t, g, argv);
	while (n < k && tracee_next(t))
		n++;
	if (n == k)
		return true;
	totals->calls = n;
	return false;
}

void tracee_end(struct tracee *t, bool there, char *call, size_t room)
{
	call_describe(t, call, room);
	if (there) {
		tracee_kill(t);
		count(&totals->steps, 1);
	}
	tracee_done(t);
}

void calls_work(struct ground *g, const struct options *o, int index,
		bool (*step)(struct ground *g, const struct options *o, int k))
{
	struct problems p = {0};
	int k = o->offset + 1 + index * o->every;

	while (step(g, o, k))
		k += o->workers * o->every;
	store_check(g, &p);
	step_report(&p, "db check at the end");
}
