/*
 * Memory that runs out when told to: a malloc of the test program's own. Include once, after cmocka.h.
 */
#ifndef UNIT_SCARCE_H
#define UNIT_SCARCE_H

#include <errno.h>
#include <stdlib.h>

#include "error.h"

/* A sanitizer has a malloc of its own. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define HAVE_OWN_MALLOC 0
#else
#define HAVE_OWN_MALLOC 1
#endif

static long allocations_left = -1; /* -1: no end */
static long balance;		   /* blocks that are not freed yet, while counting */

#if HAVE_OWN_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static int is_refused(void)
{
	if (allocations_left == 0) {
		errno = ENOMEM;
		return 1;
	}
	if (allocations_left > 0)
		allocations_left--;
	return 0;
}

static void *counted(void *p)
{
	balance += p != NULL;
	return p;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *p, size_t size)
{
	if (is_refused())
		return NULL;
	return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}

void free(void *p)
{
	balance -= p != NULL;
	__libc_free(p);
}
#endif

/* Runs story with every allocation failing in turn; it returns 0 when it came through. */
static void assert_survives(int (*story)(struct error *err))
{
	long n = 0;
	int r;

	do {
		struct error err = ERROR_INIT;
		long before = balance;

		allocations_left = HAVE_OWN_MALLOC ? n++ : -1;
		r = story(&err);
		allocations_left = -1;
		assert_int_equal(balance, before);
		if (r < 0 && err.kind != ERROR_NONE && err.errnum != ENOMEM)
			fail_msg("allocation %ld: %s", n, err.message);
	} while (r < 0);
	assert_true(n > 10 || !HAVE_OWN_MALLOC);
}

#endif
