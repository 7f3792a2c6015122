/* What is SQLite's alone: its file, where it may lie, and what it says when it cannot. */
#include "test_store.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "sql.h"
#include "sqlite_file.h"

static int mode_of(const struct place *p, const char *name)
{
	_cleanup_free_ char *path = path_join(p->dir, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void assert_private_with_umask(const struct place *p, mode_t mask, const char *name)
{
	char url[512], file[128];
	struct ledger *l = NULL;
	mode_t before = umask(mask);

	snprintf(url, sizeof url, "%s/%s/deep/ledger.db", p->dir, name);
	OK(ledger_open(url, LEDGER_CREATE, &l, &err));
	quick_commit(l, p, "a", VERDICT_FAILED);
	umask(before);
	snprintf(file, sizeof file, "%s/deep/ledger.db", name);
	assert_int_equal(mode_of(p, file), 0600);
	snprintf(file, sizeof file, "%s/deep/ledger.db-wal", name);
	assert_int_equal(mode_of(p, file), 0600);
	snprintf(file, sizeof file, "%s/deep/ledger.db-shm", name);
	assert_int_equal(mode_of(p, file), 0600);
	snprintf(file, sizeof file, "%s/deep", name);
	assert_int_equal(mode_of(p, file), 0700);
	ledger_close(l);
}

static void test_the_file_is_private_whatever_the_umask(void **state)
{
	assert_private_with_umask(*state, 0, "open");
	assert_private_with_umask(*state, 0277, "tight");
}

/* What each run asks costs the same however many others have succeeded: nothing of it goes along the index of verdicts. */
static void test_what_a_run_asks_of_an_id_looks_at_no_other(void **state)
{
	static const enum sql asked[] = {SQL_RUN_KNOWN, SQL_ANALYSIS_STATE, SQL_NUMBER_NEXT, SQL_NUMBER_TAKEN,
					 SQL_TOKEN};
	const struct place *p = *state;
	_cleanup_free_ char *path = path_join(p->dir, "ledger.db");
	sqlite3 *db = NULL;

	ledger_close(place_open(p));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		_cleanup_free_ char *text = sql_expand(asked[i], SQL_SQLITE), *explain = NULL;
		sqlite3_stmt *statement = NULL;

		assert_true(asprintf(&explain, "EXPLAIN QUERY PLAN %s", text) > 0);
		assert_int_equal(sqlite3_prepare_v2(db, explain, -1, &statement, NULL), SQLITE_OK);
		while (sqlite3_step(statement) == SQLITE_ROW) {
			const char *detail = (const char *)sqlite3_column_text(statement, 3);

			if (strstr(detail, "attempt_verdict") || strncmp(detail, "SCAN fumehood_", 14) == 0)
				fail_msg("%s: %s", text, detail);
		}
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
}

static void test_the_log_beside_a_closed_ledger_stays_short(void **state)
{
	const struct place *p = *state;
	_cleanup_free_ char *wal = path_join(p->dir, "ledger.db-wal");
	struct stat st;

	for (int i = 0; i < 40; i++) {
		struct ledger *l = place_open(p);

		quick_commit(l, p, "a", VERDICT_FAILED);
		ledger_close(l);
		assert_int_equal(stat(wal, &st), 0);
		assert_true(st.st_size < 200 * 4096);
	}
}

static off_t log_size(const struct place *p)
{
	_cleanup_free_ char *wal = path_join(p->dir, "ledger.db-wal");
	struct stat st;

	assert_int_equal(stat(wal, &st), 0);
	return st.st_size;
}

static int64_t number_of(const struct place *p, const char *sql)
{
	char path[128];
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	int64_t n;

	snprintf(path, sizeof path, "%s/ledger.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	n = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return n;
}

static struct ledger *open_with(const struct place *p, const char *parameters)
{
	struct ledger *l = NULL;
	char url[1100];

	snprintf(url, sizeof url, "%s&%s", p->url, parameters);
	OK(ledger_open(url, LEDGER_CREATE, &l, &err));
	return l;
}

enum { MANY = 40, MANY_SIZE = 1 << 20 };

/* MANY contents of 1 MiB, each of them small by blob_max=2M. */
static void attempt_of_many(struct attempt *a, const struct place *p, unsigned seed)
{
	uint8_t *data = malloc(MANY_SIZE);

	assert_non_null(data);
	attempt_make(a, "many");
	for (unsigned i = 0; i < MANY; i++) {
		char name[32];

		fill(data, MANY_SIZE, seed + i);
		snprintf(name, sizeof name, "f%u", i);
		attempt_output(a, p, name, data, MANY_SIZE);
	}
	free(data);
}

static void test_a_large_commit_leaves_no_long_log(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "blob_max=2M");
	_cleanup_attempt_ struct attempt a;

	attempt_of_many(&a, p, 1);
	attempt_commit(l, p, &a);
	quick_commit(l, p, "a", VERDICT_FAILED);
	/* Of a process that stays, too. */
	assert_true(log_size(p) <= 8 << 20);
	ledger_close(l);
	assert_true(log_size(p) <= 8 << 20);
}

/* While somebody reads what was before it, the log cannot be cut; who comes by afterwards does it, a reader too. */
static void test_a_log_that_was_being_read_is_cut_later(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "blob_max=2M"), *stays;
	_cleanup_attempt_ struct attempt a, b;
	struct analysis_state known;
	sqlite3 *reader = NULL;
	char path[128];

	snprintf(path, sizeof path, "%s/ledger.db", p->dir);
	for (int i = 0; i < 2; i++) {
		struct attempt *x = i ? &b : &a;

		assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
		assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM fumehood_analysis", NULL,
					      NULL, NULL),
				 SQLITE_OK);
		attempt_of_many(x, p, i ? 10000 : 1);
		x->number = i + 1;
		attempt_commit(l, p, x);
		assert_true(log_size(p) > MANY * MANY_SIZE);
		if (i == 0) { /* somebody who only looks, and goes */
			sqlite3_close(reader);
			stays = place_open(p);
			OK(ledger_analysis(stays, "many", &known, &err));
			ledger_close(stays);
		} else { /* a worker that commits, and stays */
			sqlite3_close(reader);
			quick_commit(l, p, "b", VERDICT_FAILED);
			quick_commit(l, p, "c", VERDICT_FAILED);
		}
		assert_true(log_size(p) <= 8 << 20);
	}
	ledger_close(l);
}

/* content_open_fn that looks in, from another connection, while the commit goes on: can others write, and is a part of it to
 * be seen before all of it is? */
struct watcher {
	const struct place *place;
	sqlite3 *db;
	int asked, got, seen;
};

static int64_t seen_by(struct watcher *w, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t n = -1;

	assert_int_equal(sqlite3_prepare_v2(w->db, sql, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW)
		n = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return n;
}

static void *keep_writing(void *arg)
{
	struct watcher *w = arg;

	while (__atomic_load_n(&w->asked, __ATOMIC_SEQ_CST) == 0) {
		if (sqlite3_exec(w->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
			continue;
		/* Between its first content and its end somebody else had the lock. */
		if (seen_by(w, "SELECT count(*) FROM fumehood_blob") > 0 &&
		    seen_by(w, "SELECT count(*) FROM fumehood_attempt") == 0)
			w->got++;
		w->seen += seen_by(w, "SELECT count(*) FROM fumehood_output") > 0 &&
			   seen_by(w, "SELECT count(*) FROM fumehood_attempt") == 0;
		sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return NULL;
}

static void test_others_write_while_a_large_commit_goes_on(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "blob_max=2M");
	struct watcher w = {.place = p};
	_cleanup_attempt_ struct attempt a;
	pthread_t thread;
	char path[128];

	snprintf(path, sizeof path, "%s/ledger.db", p->dir);
	attempt_of_many(&a, p, 1);
	assert_int_equal(sqlite3_open(path, &w.db), SQLITE_OK);
	sqlite3_busy_timeout(w.db, 60000);
	assert_int_equal(pthread_create(&thread, NULL, keep_writing, &w), 0);
	attempt_commit(l, p, &a);
	__atomic_store_n(&w.asked, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	sqlite3_close(w.db);
	assert_true(w.got >= 2); /* at the latest after every 16 MiB */
	assert_int_equal(w.seen, 0);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_output"), MANY);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_blob_staged"), 0);
	ledger_close(l);
}

static int content_that_fails(void *arg, const struct output *o, struct error *e)
{
	const struct place *p = arg;
	char gone[128];

	snprintf(gone, sizeof gone, "%s/gone-%s", p->dir, o->path);
	return access(gone, F_OK) == 0 ? error_set(e, ERROR_SYSTEM, "it is gone") : place_content(arg, o, e);
}

/* They are written in the order of their digests. */
static const struct output *first_or_last(const struct attempt *a, bool last)
{
	const struct output *found = &a->manifest.outputs[0];

	for (size_t i = 1; i < a->manifest.n_outputs; i++) {
		int order = memcmp(a->manifest.outputs[i].sha256, found->sha256, DIGEST_SIZE);

		if (last ? order > 0 : order < 0)
			found = &a->manifest.outputs[i];
	}
	return found;
}

static void test_what_was_staged_and_never_committed_is_swept(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "blob_max=2M"), *gc;
	_cleanup_attempt_ struct attempt a, other;
	uint64_t removed = 0;
	char gone[64];
	int number;

	attempt_of_many(&a, p, 1);
	snprintf(gone, sizeof gone, "gone-%s", first_or_last(&a, true)->path);
	place_write(p, gone, "", 0);
	/* One of them is another's as well, who is committed: that stays. */
	attempt_make(&other, "other");
	assert_int_equal(manifest_add(&other.manifest, first_or_last(&a, false), NULL), 0);
	assert_true(ledger_commit(l, &a, content_that_fails, (void *)p, &number, &err) < 0);
	assert_true(number_of(p, "SELECT count(*) FROM fumehood_blob_staged") > 0);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_attempt"), 0);
	gc = open_with(p, "blob_max=2M");
	attempt_commit(gc, p, &other);
	/* Whoever failed may try again, and has it still. */
	OK(ledger_sweep(gc, &removed, &err));
	assert_int_equal(removed, 0);
	ledger_close(l);
	OK(ledger_sweep(gc, &removed, &err));
	assert_true(removed > 0);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_blob_staged"), 0);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_blob"), 1);
	/* And once more, whole. */
	attempt_commit(gc, p, &a);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_blob WHERE length(content) = 1048576"),
			 MANY);
	assert_int_equal(number_of(p, "SELECT count(*) FROM fumehood_blob_staged"), 0);
	ledger_close(gc);
}

static void test_an_object_store_that_is_not_needed_is_not_made(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	uint64_t removed = 1;

	quick_commit(l, p, "a", VERDICT_FAILED);
	OK(ledger_sweep(l, &removed, &err));
	assert_int_equal(removed, 0);
	ledger_close(l);
	assert_int_equal(access(p->objects, F_OK), -1);
}

static void test_a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
	const struct place *p = *state;
	static const char text[] =
		"gene,score\nTP53,0.9\n and so on, long enough to be mistaken for a header of a database\n"
		"because a hundred bytes are read of it.";
	struct ledger *l = NULL;
	struct stat st;
	char path[128];

	place_write(p, "ledger.db", text, sizeof text);
	REFUSED(ledger_open(p->url, LEDGER_CREATE, &l, &err), "it is not an SQLite database");
	snprintf(path, sizeof path, "%s/ledger.db", p->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, sizeof text);
}

static void test_a_directory_is_refused(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;

	REFUSED(ledger_open(p->dir, LEDGER_CREATE, &l, &err), "it is a directory");
}

static void test_names_that_sqlite_would_interpret_are_plain_paths(void **state)
{
	const struct place *p = *state;
	static const char *const names[] = {"sqlite::memory:", "sqlite:file:x?mode=memory",
					    "sqlite:with ? and %41"};
	struct ledger *l = NULL;

	assert_int_equal(chdir(p->dir), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		OK(ledger_open(names[i], LEDGER_CREATE, &l, &err));
		ledger_close(l);
		assert_int_equal(access(names[i] + strlen("sqlite:"), F_OK), 0);
	}
	/* Without sqlite: the one is a path, the other another program's URL. */
	OK(ledger_open(":memory:", 0, &l, &err));
	ledger_close(l);
	REFUSED(ledger_open("file:x?mode=memory", LEDGER_CREATE, &l, &err), "write sqlite:PATH");
	assert_int_equal(chdir("/"), 0);
}

static void test_the_platforms_own_tables_stay_in_the_same_file(void **state)
{
	const struct place *p = *state;
	struct ledger *l;
	json_t *check = NULL;

	place_sql(
		p,
		"CREATE TABLE hypotheses(title); INSERT INTO hypotheses VALUES('x'); PRAGMA user_version = 42",
		NULL);
	l = place_open(p);
	quick_commit(l, p, "a", VERDICT_SUCCEEDED);
	OK(ledger_check(l, &check, &err));
	assert_int_equal(json_array_size(json_object_get(check, "problems")), 0);
	json_decref(check);
	ledger_close(l);
	/* Fails unless both are as they were. */
	place_sql(p,
		  "CREATE TABLE t(ok CHECK (ok)); INSERT INTO t SELECT count(*) = 1 FROM hypotheses;"
		  "INSERT INTO t SELECT user_version = 42 FROM pragma_user_version",
		  NULL);
}

static void test_a_ledger_that_others_keep_locked_is_given_up_in_time(void **state)
{
	const struct place *p = *state;
	struct ledger *l = ledger_close(place_open(p));
	_cleanup_attempt_ struct attempt a;
	sqlite3 *other = NULL;
	char url[1200], file[128];
	int number;

	snprintf(file, sizeof file, "%s/ledger.db", p->dir);
	snprintf(url, sizeof url, "%s&busy=20ms", p->url);
	assert_int_equal(sqlite3_open(file, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	OK(ledger_open(url, LEDGER_CREATE, &l, &err));
	attempt_make(&a, "a");
	REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err),
		"others have kept it locked for 20 ms");
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	sqlite3_close(other);
	ledger_close(l);
}

static void test_a_damaged_file_is_one_clear_sentence(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_free_ char *path = path_join(p->dir, "ledger.db");
	char junk[4096];
	struct stat st;
	json_t *check = NULL;
	int fd;

	for (int i = 0; i < 50; i++)
		quick_commit(l, p, "a", VERDICT_FAILED);
	ledger_close(l);
	place_sql(p, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
	memset(junk, 0x5a, sizeof junk);
	fd = open(path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 8192; at < st.st_size; at += 4096)
		assert_int_equal(pwrite(fd, junk, sizeof junk, at), sizeof junk);
	close(fd);
	if (ledger_open(p->url, 0, &l, &err) < 0) {
		assert_non_null(strstr(err.message, "damaged"));
		return;
	}
	OK(ledger_check(l, &check, &err));
	assert_true(json_array_size(json_object_get(check, "problems")) > 0);
	json_decref(check);
	ledger_close(l);
}

static void write_to(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY);

	if (fd < 0 || file_write_all(fd, text, strlen(text)) < 0)
		_exit(2);
}

static void enter_own_mounts(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid(); /* afterwards it is nobody's */

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
		_exit(2);
	if (uid) {
		snprintf(map, sizeof map, "0 %u 1", uid);
		write_to("/proc/self/uid_map", map);
		write_to("/proc/self/setgroups", "deny");
		snprintf(map, sizeof map, "0 %u 1", gid);
		write_to("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(2);
}

/* fn in a child with a mount namespace of its own: no host is touched. */
static void with_own_mounts(const struct place *p, int (*fn)(const struct place *, struct attempt *))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct attempt a;

		enter_own_mounts();
		attempt_make(&a, "a");
		_exit(fn(p, &a));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

static int expect(int r, const struct error *e, const char *words)
{
	if (r < 0 && strstr(e->message, words))
		return 0;
	fprintf(stderr, "'%s' is not in: %s\n", words, r < 0 ? e->message : "(it succeeded)");
	return 1;
}

static int on_a_read_only_disk(const struct place *p, struct attempt *a)
{
	struct error e = ERROR_INIT;
	struct ledger *l = NULL;
	int number;

	if (mount("none", p->dir, "tmpfs", 0, "mode=700,size=4m") < 0 ||
	    ledger_open(p->url, LEDGER_CREATE, &l, &e) < 0)
		return 3;
	ledger_close(l);
	if (mount(NULL, p->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 4;
	if (ledger_open(p->url, LEDGER_CREATE, &l, &e) < 0)
		return expect(-1, &e, "it is read-only");
	return expect(ledger_commit(l, a, place_content, (void *)p, &number, &e), &e, "it is read-only");
}

static void test_a_read_only_ledger_is_one_clear_sentence(void **state)
{
	with_own_mounts(*state, on_a_read_only_disk);
}

static int on_a_full_disk(const struct place *p, struct attempt *a)
{
	static char log[1 << 20];
	struct error e = ERROR_INIT;
	struct ledger *l = NULL;
	uint8_t sha256[DIGEST_SIZE];
	int number, fd;

	if (mount("none", p->dir, "tmpfs", 0, "mode=700,size=1m") < 0 ||
	    ledger_open(p->url, LEDGER_CREATE, &l, &e) < 0)
		return 3;
	a->logs[0] = (struct captured){.head = log, .head_size = sizeof log};
	if (expect(ledger_commit(l, a, place_content, (void *)p, &number, &e), &e, "no space is left"))
		return 4;
	fd = memfd_create("large", MFD_CLOEXEC);
	if (file_write_all(fd, log, sizeof log) < 0 ||
	    expect(ledger_put_object(l, fd, sizeof log, sha256, &e), &e, "No space left on device"))
		return 5;
	/* The same handle goes on with what fits. */
	a->logs[0].head_size = 10;
	if (ledger_commit(l, a, place_content, (void *)p, &number, &e) < 0)
		return expect(-1, &e, "(success)");
	ledger_close(l);
	return 0;
}

static void test_a_full_disk_is_one_clear_sentence_and_breaks_nothing(void **state)
{
	with_own_mounts(*state, on_a_full_disk);
}

static void test_a_missing_directory_without_permission_is_one_clear_sentence(void **state)
{
	struct ledger *l = NULL;

	(void)state;
	REFUSED(ledger_open("sqlite:/proc/none/ledger.db", LEDGER_CREATE, &l, &err), "'/proc/none'");
	assert_non_null(strstr(err.message, "cannot make the ledger '/proc/none/ledger.db'"));
}

static void test_network_file_systems_are_known_by_name(void **state)
{
	(void)state;
	assert_string_equal(filesystem_network_name(0x6969), "NFS");
	assert_string_equal(filesystem_network_name(0xff534d42), "CIFS");
	assert_string_equal(filesystem_network_name(0xffffffffff534d42), "CIFS");
	assert_string_equal(filesystem_network_name(0x0bd00bd0), "Lustre");
	assert_null(filesystem_network_name(0xef53));	  /* ext4 */
	assert_null(filesystem_network_name(0x01021994)); /* tmpfs */
	assert_string_equal(filesystem_network_name(0x01021997), "9p");
	assert_string_equal(filesystem_network_name(0x01161970), "GFS2");
	assert_null(filesystem_network_name(0x794c7630)); /* overlay */
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(the_file_is_private_whatever_the_umask),
		ROW(the_log_beside_a_closed_ledger_stays_short),
		ROW(a_large_commit_leaves_no_long_log),
		ROW(a_log_that_was_being_read_is_cut_later),
		ROW(others_write_while_a_large_commit_goes_on),
		ROW(what_was_staged_and_never_committed_is_swept),
		ROW(an_object_store_that_is_not_needed_is_not_made),
		ROW(a_file_that_is_no_database_is_refused_and_left_alone),
		ROW(a_directory_is_refused),
		ROW(names_that_sqlite_would_interpret_are_plain_paths),
		ROW(the_platforms_own_tables_stay_in_the_same_file),
		ROW(a_ledger_that_others_keep_locked_is_given_up_in_time),
		ROW(a_damaged_file_is_one_clear_sentence),
		ROW(what_a_run_asks_of_an_id_looks_at_no_other),
		ROW(a_read_only_ledger_is_one_clear_sentence),
		ROW(a_full_disk_is_one_clear_sentence_and_breaks_nothing),
		ROW(a_missing_directory_without_permission_is_one_clear_sentence),
		ROW(network_file_systems_are_known_by_name),
	};

	unsetenv("TEST_LEDGER");
	return cmocka_run_group_tests_name("store's SQLite", tests, NULL, NULL);
}
