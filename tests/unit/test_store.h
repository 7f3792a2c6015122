/*
 * A ledger of its own for every test. TEST_LEDGER names a PostgreSQL server; without it, it is a SQLite file in the
 * test's own directory.
 */
#ifndef TEST_STORE_H
#define TEST_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend.h"
#include "file.h"
#include "ledger.h"
#include "text.h"

#define OK(call)                                                \
	do {                                                    \
		err = (struct error)ERROR_INIT;                 \
		if ((call) < 0)                                 \
			fail_msg("%s: %s", #call, err.message); \
	} while (0)
#define REFUSED(call, words)                                                \
	do {                                                                \
		err = (struct error)ERROR_INIT;                             \
		if ((call) >= 0)                                            \
			fail_msg("%s: was not refused", #call);             \
		if (!strstr(err.message, words))                            \
			fail_msg("'%s' is not in: %s", words, err.message); \
	} while (0)

struct place {
	char dir[64];	  /* for this test alone */
	char url[1024];	  /* of its ledger */
	char objects[96]; /* the directory of its objects */
	bool is_postgres;
};

static struct error err;

static inline int place_setup(void **state)
{
	const char *server = getenv("TEST_LEDGER");
	struct place *p = calloc(1, sizeof *p);

	if (!p)
		return -1;
	strcpy(p->dir, "/tmp/fumehood-test-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	p->is_postgres = server != NULL;
	snprintf(p->objects, sizeof p->objects, "%s/objects", p->dir);
	if (server)
		snprintf(p->url, sizeof p->url, "%s%cobjects=%s", server, strchr(server, '?') ? '&' : '?',
			 p->objects);
	else
		snprintf(p->url, sizeof p->url, "sqlite:%s/ledger.db?objects=%s", p->dir, p->objects);
	*state = p;
	return 0;
}

static inline void remove_tree(const char *dir)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	if (system(command) != 0)
		fail_msg("cannot remove %s", dir);
}

/* SQL of the test's own, behind the ledger's back. */
static inline void place_sql(const struct place *p, const char *sqlite, const char *postgres)
{
	_cleanup_ledger_url_ struct ledger_url u = {0};
	struct backend *b = NULL;

	OK(ledger_url_parse(p->url, &u, &err));
	OK((p->is_postgres ? postgres_open : sqlite_open)(&u, LEDGER_CREATE, &b, &err));
	OK(b->ops->script(b, p->is_postgres ? postgres : sqlite, &err));
	b->ops->close(b);
}

static inline int place_teardown(void **state)
{
	struct place *p = *state;

	if (p->is_postgres)
		place_sql(p, NULL, "DROP SCHEMA IF EXISTS fumehood CASCADE");
	remove_tree(p->dir);
	free(p);
	return 0;
}

static inline struct ledger *place_open(const struct place *p)
{
	struct ledger *l = NULL;

	OK(ledger_open(p->url, LEDGER_CREATE, &l, &err));
	return l;
}

/* A file of the test's directory with this content. */
static inline void place_write(const struct place *p, const char *name, const void *data, size_t size)
{
	_cleanup_free_ char *path = path_join(p->dir, name), *making = NULL;
	_cleanup_close_ int fd = -1;

	/* Whole or not at all: several children write the same one while others read it. */
	assert_true(asprintf(&making, "%s.%d", path, (int)getpid()) > 0);
	fd = open(making, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, data, size), 0);
	assert_int_equal(rename(making, path), 0);
}

/* content_open_fn: outputs are files of the test's directory. */
static inline int place_content(void *arg, const struct output *o, struct error *e)
{
	const struct place *p = arg;
	_cleanup_free_ char *path = path_join(p->dir, o->path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : error_set(e, ERROR_SYSTEM, "cannot open '%s'", o->path);
}

static inline void attempt_make(struct attempt *a, const char *id)
{
	struct error e;

	attempt_init(a);
	snprintf(a->id, sizeof a->id, "%s", id);
	assert_int_equal(token_make(a->token, &e), 0);
	a->number = 1;
	a->verdict = VERDICT_SUCCEEDED;
	a->exit_code = 0;
	a->created = clock_utc() / 1000 * 1000;
}

/* Adds the file name with this content to the directory and to the attempt's outputs. */
static inline void attempt_output(struct attempt *a, const struct place *p, const char *name,
				  const void *data, size_t size)
{
	char path[4096];
	struct output o = {.path = path, .size = size, .media_type = media_type_of(name)};

	snprintf(path, sizeof path, "%s", name);
	place_write(p, name, data, size);
	digest_bytes(data, size, o.sha256);
	assert_int_equal(manifest_add(&a->manifest, &o, NULL), 0);
}

static inline int attempt_commit(struct ledger *l, const struct place *p, struct attempt *a)
{
	int number = 0;

	OK(ledger_commit(l, a, place_content, (void *)p, &number, &err));
	return number;
}

/* An attempt of this id with no outputs, committed; its number. */
static inline int quick_commit(struct ledger *l, const struct place *p, const char *id, enum verdict verdict)
{
	_cleanup_attempt_ struct attempt a;

	attempt_make(&a, id);
	a.verdict = verdict;
	return attempt_commit(l, p, &a);
}

/* Content that no other seed has. */
static inline void fill(uint8_t *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (uint8_t)(seed >> 24);
	}
}

#endif
