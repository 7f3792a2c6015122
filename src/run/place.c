#include "place.h"
#include "ability.h"

void place_init(struct place *p, struct workspace *w)
{
	*p = (struct place){.workspace = w, .slot = {.fd = -1}};
}

int place_take(struct place *p, struct error *err)
{
	int r;

	p->uid = geteuid();
	p->gid = getegid();
	if (!ability_is_root())
		return 0;
	r = slot_take(&p->slot, err);
	if (r < 0)
		return r;
	p->uid = p->slot.uid;
	p->gid = p->slot.gid;
	return 0;
}

void place_release(struct place *p)
{
	slot_release(&p->slot);
}
