#include "seen.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

static size_t slot_of(const struct seen *s, ino_t inode)
{
	size_t i = (size_t)(inode * 0x9e3779b97f4a7c15ULL >> 20) & (s->room - 1);

	while (s->slots[i] && s->slots[i] != inode)
		i = (i + 1) & (s->room - 1);
	return i;
}

static int seen_grow(struct seen *s)
{
	struct seen more = {.room = s->room ? 2 * s->room : 1024, .used = s->used};

	more.slots = calloc(more.room, sizeof *more.slots);
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->room; i++)
		if (s->slots[i])
			more.slots[slot_of(&more, s->slots[i])] = s->slots[i];
	free(s->slots);
	*s = more;
	return 0;
}

int seen_add(struct seen *s, ino_t inode)
{
	size_t i;

	if (s->used >= s->room / 2 && seen_grow(s) < 0)
		return -ENOMEM;
	i = slot_of(s, inode);
	if (s->slots[i])
		return 0;
	s->slots[i] = inode;
	s->used++;
	return 1;
}

void seen_done(struct seen *s)
{
	free(s->slots);
	*s = (struct seen){0};
}
