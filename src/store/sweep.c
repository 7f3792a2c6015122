/*
 * The other half of the object store: pins, and the removal of what nobody needs.
 */
#include "objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "array.h"
#include "file.h"
#include "id.h"
#include "text.h"

enum { FANS = 256 };

/* Digests in a growing list; sorted before they are looked for. */
struct digests {
	uint8_t (*list)[DIGEST_SIZE];
	size_t count;
};

static void digests_done(struct digests *d)
{
	free(d->list);
}

static int digests_add(struct digests *d, const char *hex, struct error *err)
{
	uint8_t sha256[DIGEST_SIZE], (*more)[DIGEST_SIZE];

	if (hex_decode(hex, sha256, DIGEST_SIZE) < 0)
		return 0;
	more = ARRAY_ADD(d->list, d->count);
	if (!more)
		return error_memory(err);
	memcpy(*more, sha256, DIGEST_SIZE);
	return 0;
}

static int digest_compare(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SIZE);
}

static bool digests_have(const struct digests *d, const uint8_t sha256[DIGEST_SIZE])
{
	return d->count && bsearch(sha256, d->list, d->count, DIGEST_SIZE, digest_compare);
}

typedef int (*entry_fn)(void *arg, int dir, const char *name, struct error *err);

/* fn for every name in a directory of the store; one that is not there is empty. */
static int each_entry(struct objects *o, const char *subdir, entry_fn fn, void *arg, struct error *err)
{
	int fd = file_open_beneath(o->dir, subdir, O_RDONLY | O_DIRECTORY, 0), r = 0;
	const struct dirent *e;
	DIR *dir;

	if (fd < 0 && errno == ENOENT)
		return 0;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int saved = errno;

		fd_close(fd);
		return error_system(err, saved, "cannot list '%s' in the object store '%s'", subdir, o->path);
	}
	while (r >= 0 && (errno = 0, e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = fn(arg, dirfd(dir), e->d_name, err);
	if (r >= 0 && errno)
		r = error_system(err, errno, "cannot list '%s' in the object store '%s'", subdir, o->path);
	closedir(dir);
	return r < 0 ? r : 0;
}

/* A writer holds its temporary's lock for as long as it lives. */
static int temporary_remove(void *arg, int dir, const char *name, struct error *err UNUSED)
{
	_cleanup_close_ int fd = file_open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (unlinkat(dir, name, 0) == 0 || (errno == EISDIR && unlinkat(dir, name, AT_REMOVEDIR) == 0))
		++*(uint64_t *)arg;
	return 0;
}

int objects_pin(struct objects *o, const char *token, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
		struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_close_ int pins = -1;

	if (objects_hold(o, err) < 0)
		return -1;
	pins = objects_subdir(o, "pins", err);
	if (pins < 0)
		return pins;
	for (size_t i = 0; i < n; i++) {
		char hex[DIGEST_TEXT_SIZE];

		hex_encode(sha256[i], DIGEST_SIZE, hex);
		buffer_printf(&b, "%s\n", hex);
	}
	if (b.failed)
		return error_memory(err);
	return file_replace(pins, token, b.data ? b.data : "", b.size, o->group == NO_GROUP ? 0600 : 0640,
			    true, err);
}

void objects_unpin(struct objects *o, const char *token)
{
	struct error ignored = ERROR_INIT;
	_cleanup_close_ int pins = -1;

	if (objects_open(o, &ignored) == 1 &&
	    (pins = file_open_beneath(o->dir, "pins", O_PATH | O_DIRECTORY, 0)) >= 0)
		unlinkat(pins, token, 0);
}

/* A million outputs each, and in all; whoever shares a store may write there. */
enum { PINNED_MAX = 1000000, PIN_SIZE_MAX = PINNED_MAX * DIGEST_TEXT_SIZE };

struct pins {
	const struct objects_owner *owner;
	struct digests digests;
};

/* One pin: of a committed attempt it is a left-over, else its digests are spared. */
static int pin_read(void *arg, int dir, const char *name, struct error *err)
{
	struct pins *p = arg;
	_cleanup_buffer_ struct buffer b = {0};
	struct stat st;
	int r = strlen(name) == TOKEN_SIZE - 1 ? p->owner->committed(p->owner->arg, name, err) : 1;

	if (r > 0) {
		unlinkat(dir, name, 0);
		return 0;
	}
	if (r < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return r;
	if (p->digests.count >= PINNED_MAX)
		return error_set(err, ERROR_LEDGER, "an object store has more pins than anybody needs");
	if (file_load(dir, name, PIN_SIZE_MAX, &b, err) < 0)
		return -1;
	for (char *save = NULL, *line = b.data ? strtok_r(b.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (digests_add(&p->digests, line, err) < 0)
			return -1;
	return 0;
}

struct fan {
	struct digests digests;
	const char *name;
};

static int fan_add(void *arg, int dir UNUSED, const char *name, struct error *err)
{
	struct fan *f = arg;

	return strncmp(name, f->name, 2) == 0 ? digests_add(&f->digests, name, err) : 0;
}

/* The objects of one fan-out directory: asked about in one go, so that memory and round trips stay few. */
static int fan_orphans(struct objects *o, const char *name, const struct pins *pins, entry_fn fn, void *arg,
		       struct error *err)
{
	_cleanup_(digests_done) struct digests digests = {0};
	struct fan f = {.name = name};
	_cleanup_free_ bool *referred = NULL;
	_cleanup_close_ int dir = -1;
	int r = each_entry(o, name, fan_add, &f, err);

	digests = f.digests;
	if (r < 0 || digests.count == 0)
		return r;
	referred = calloc(digests.count, sizeof *referred);
	if (!referred)
		return error_memory(err);
	qsort(digests.list, digests.count, DIGEST_SIZE, digest_compare);
	if (pins->owner->referred(pins->owner->arg, digests.list, digests.count, referred, err) < 0)
		return -1;
	dir = file_open_beneath(o->dir, name, O_RDONLY | O_DIRECTORY, 0);
	for (size_t i = 0; i < digests.count; i++) {
		char hex[DIGEST_TEXT_SIZE];

		if (referred[i] || digests_have(&pins->digests, digests.list[i]))
			continue;
		hex_encode(digests.list[i], DIGEST_SIZE, hex);
		if (fn(arg, dir, hex, err) < 0)
			return -1;
	}
	return 0;
}

static int locked_orphans(struct objects *o, struct pins *pins, entry_fn fn, void *arg, struct error *err)
{
	if (each_entry(o, "pins", pin_read, pins, err) < 0)
		return -1;
	if (pins->digests.count)
		qsort(pins->digests.list, pins->digests.count, DIGEST_SIZE, digest_compare);
	work_begin_parts(o->work, "looking through the objects", FANS);
	for (unsigned i = 0; i < FANS; i++) {
		char name[3];

		snprintf(name, sizeof name, "%02x", i);
		if (fan_orphans(o, name, pins, fn, arg, err) < 0)
			return -1;
		work_add(o->work, 1);
	}
	return 0;
}

int objects_lock_alone(struct objects *o, struct error *err)
{
	int r = objects_open_lock(o, err);

	if (r <= 0)
		return r < 0 ? r : OBJECTS_ABSENT;
	return o->holding || flock(o->lock, LOCK_EX | LOCK_NB) < 0 ? OBJECTS_BUSY : OBJECTS_LOCKED;
}

void objects_unlock(struct objects *o)
{
	flock(o->lock, LOCK_UN);
}

int objects_orphans(struct objects *o, const struct objects_owner *owner, entry_fn fn, void *arg,
		    struct error *err)
{
	struct pins pins = {.owner = owner};
	int r = objects_lock_alone(o, err);

	if (r != OBJECTS_LOCKED)
		return r;
	r = locked_orphans(o, &pins, fn, arg, err);
	objects_unlock(o);
	digests_done(&pins.digests);
	return r;
}

static int orphan_remove(void *arg, int dir, const char *name, struct error *err)
{
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return error_system(err, errno, "cannot remove the object %s", name);
	++*(uint64_t *)arg;
	return 0;
}

int objects_sweep(struct objects *o, const struct objects_owner *owner, uint64_t *ret_removed,
		  struct error *err)
{
	uint64_t removed = 0;
	int r = objects_open(o, err);

	if (r < 0 || (r > 0 && each_entry(o, "tmp", temporary_remove, &removed, err) < 0) ||
	    objects_orphans(o, owner, orphan_remove, &removed, err) < 0)
		return -1;
	*ret_removed = removed;
	return 0;
}
