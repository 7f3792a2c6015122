/*
 * The few macros that every file may use. Ownership shows in the declaration: a variable with _cleanup_* is
 * owned by its scope until TAKE_FD or TAKE_PTR moves it out.
 */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	       (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED		       __attribute__((unused))
#define NSEC_PER_SEC	       1000000000ULL
#define NSEC_PER_MSEC	       1000000ULL
#define NSEC_PER_USEC	       1000ULL

/* Defines func##p(type *p), which calls func(*p): what a cleanup attribute wants. */
#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		func(*p);                   \
	}                                   \
	struct macros_swallow_semicolon

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

/* Closes fd unless it is negative; always returns -1, so that `fd = fd_close(fd)` reads well. errno survives. */
int fd_close(int fd);

static inline void cleanup_closep(int *fd)
{
	fd_close(*fd);
}

#define _cleanup_(f)	__attribute__((cleanup(f)))
#define _cleanup_free_	_cleanup_(cleanup_freep)
#define _cleanup_close_ _cleanup_(cleanup_closep)

#define TAKE_PTR(p)                               \
	({                                        \
		__typeof__(p) *take_p_ = &(p);    \
		__typeof__(p) take_v_ = *take_p_; \
		*take_p_ = NULL;                  \
		take_v_;                          \
	})
#define TAKE_FD(fd)                      \
	({                               \
		int *take_fd_ = &(fd);   \
		int take_n_ = *take_fd_; \
		*take_fd_ = -1;          \
		take_n_;                 \
	})

#endif
