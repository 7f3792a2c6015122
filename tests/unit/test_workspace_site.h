/*
 * A site for one test: a state directory and a sticky root of its own, in a private place.
 */
#ifndef TESTS_WORKSPACE_SITE_H
#define TESTS_WORKSPACE_SITE_H

#include "place.h"

#include <dirent.h>

#include "workspace.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

struct bench {
	struct place place;
	char state_dir[128], root[128];
	struct site site;
};

static inline void bench_open(struct bench *b)
{
	struct error err = ERROR_INIT;

	place_open(&b->place);
	snprintf(b->state_dir, sizeof b->state_dir, "%s/state", b->place.path);
	snprintf(b->root, sizeof b->root, "%s/root", b->place.path);
	put_dir(b->place.fd, "root");
	assert_int_equal(chmod(b->root, 01777), 0);
	assert_int_equal(site_open(&b->site, b->state_dir, b->root, "hood-", &err), 0);
}

static inline void bench_close(struct bench *b)
{
	site_close(&b->site);
	place_close(&b->place);
}

static inline int count_entries(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(dir);
	return n;
}

static inline void assert_nothing_left(const struct bench *b)
{
	assert_int_equal(count_entries(b->place.fd, "root"), 0);
	assert_int_equal(count_entries(b->place.fd, "state/runs"), 0);
}

/* Where the private /tmp of TOKEN's run lies, from the place's descriptor. */
static inline const char *scratch_of(const char *id)
{
	static char path[512];

	snprintf(path, sizeof path, "root/");
	workspace_scratch_name("hood-", id, TOKEN, path + 5, sizeof path - 5);
	return path;
}

static inline const char *tmp_of(const char *id)
{
	static char path[600];

	snprintf(path, sizeof path, "%s/" SCRATCH_TMP, scratch_of(id));
	return path;
}

static inline int open_plain(struct bench *b, const char *id, struct workspace *w, struct error *err)
{
	return workspace_open(&b->site, id, TOKEN, geteuid(), getegid(), NULL, NULL, NULL, w, err);
}

/* Opens, and goes away as kill -9 would: the lock is free, all else is there. */
static inline void leave_dead_run(struct bench *b, const char *id)
{
	struct error err = ERROR_INIT;
	struct workspace w;

	assert_int_equal(open_plain(b, id, &w, &err), 0);
	put_file(w.fd, "result", "42");
	workspace_close(&w);
}

static inline int remove_it(void *arg, struct workspace *w, struct error *err)
{
	if (arg)
		++*(int *)arg;
	return workspace_remove(w, err);
}

static inline struct workspace_gc_counts gc(struct bench *b, struct error *err)
{
	struct workspace_gc_counts counts;

	assert_int_equal(workspace_each_dead(&b->site, remove_it, NULL, &counts, err), 0);
	return counts;
}

#endif
