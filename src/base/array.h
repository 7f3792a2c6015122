/*
 * A list that grows at its end, kept as a pointer and a count wherever its owner has them.
 *
 *	struct mount *m = ARRAY_ADD(plan->mounts, plan->n_mounts);
 *
 * One more, zeroed and counted already; NULL if memory is out, and the list is as it was. Room is taken by powers of two.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* The list with room for `count` + 1 of `size` bytes, that one zeroed; NULL if memory is out. */
void *array_grow(void *list, size_t count, size_t size);

/* Sorted, and one of each that compares as the same. How many are left. */
size_t array_sort_distinct(void *list, size_t count, size_t size, int (*compare)(const void *, const void *));

#define ARRAY_ADD(list, count)                                              \
	({                                                                  \
		void *grown_ = array_grow((list), (count), sizeof *(list)); \
		if (grown_)                                                 \
			(list) = grown_;                                    \
		grown_ ? &(list)[(count)++] : NULL;                         \
	})

#endif
