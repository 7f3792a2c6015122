#include "listing.h"
#include "array.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { CHUNK_SIZE = 64 * 1024 };

void listing_done(struct listing *l)
{
	buffer_free(&l->names);
	free(l->list);
	*l = (struct listing){0};
}

size_t listing_size(const struct listing *l)
{
	return l->names.size + l->count * sizeof *l->list;
}

const char *listing_name(const struct listing *l, size_t i)
{
	return l->names.data + l->list[i].at;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct listed *x = a, *y = b;
	const struct listing *l = arg;
	const unsigned char *p = (const unsigned char *)l->names.data + x->at;
	const unsigned char *q = (const unsigned char *)l->names.data + y->at;
	int c, d;

	while (*p && *p == *q)
		p++, q++;
	c = *p ? *p : S_ISDIR(x->type) ? '/' : 0;
	d = *q ? *q : S_ISDIR(y->type) ? '/' : 0;
	return c - d;
}

static int add(struct listing *l, int fd, const struct dirent64 *e, size_t max)
{
	struct listed entry = {.at = (uint32_t)l->names.size, .type = DTTOIF(e->d_type)}, *added;

	if (name_is_dots(e->d_name))
		return 0;
	if (listing_size(l) + sizeof entry + strlen(e->d_name) + 1 > max) {
		l->cut = true;
		return 0;
	}
	if (e->d_type == DT_UNKNOWN) {
		struct stat st;

		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
			return errno == ENOENT ? 0 : -errno;
		entry.type = st.st_mode & S_IFMT;
	}
	if (buffer_append(&l->names, e->d_name, strlen(e->d_name) + 1) < 0 ||
	    !(added = ARRAY_ADD(l->list, l->count)))
		return -ENOMEM;
	*added = entry;
	return 0;
}

int listing_read(struct listing *l, int fd, size_t max)
{
	_cleanup_free_ char *chunk = malloc(CHUNK_SIZE);

	if (!chunk)
		return -ENOMEM;
	*l = (struct listing){0};
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (!l->cut) {
		ssize_t n = getdents64(fd, chunk, CHUNK_SIZE);

		if (n < 0 && errno != ENOENT) {
			int e = errno;

			listing_done(l);
			return -e;
		}
		if (n <= 0)
			break;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(chunk + at);
			int r = add(l, fd, e, max);

			if (r < 0) {
				listing_done(l);
				return r;
			}
			at += e->d_reclen;
		}
	}
	if (l->count)
		qsort_r(l->list, l->count, sizeof *l->list, compare, l);
	return 0;
}
