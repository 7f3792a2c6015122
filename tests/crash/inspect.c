#include "inspect.h"
#include "clock.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { DYING_S = 5 };

void problem(struct problems *p, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	p->count++;
	if (buffer_printf(&p->text, "    %s\n", text) < 0)
		give_up("out of memory");
}

/* ---- what must not remain: it is noted, and removed, so that the next step finds a clean ground ---- */

static void none_in(const char *dir, const char *with, bool only_directories, const char *what,
		    struct problems *p)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	char path[1024];

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    (with && !strstr(e->d_name, with)) || (only_directories && e->d_type != DT_DIR))
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		problem(p, "%s left: %s", what, path);
		if (rmdir(path) < 0)
			remove_tree(path);
	}
	if (d)
		closedir(d);
}

static void no_mount(const struct ground *g, struct problems *p)
{
	_cleanup_buffer_ struct buffer b = {0};

	if (file_load(AT_FDCWD, "/proc/self/mountinfo", 1 << 24, &b, NULL) < 0)
		problem(p, "cannot read the mount table");
	else if (strstr(b.data, g->tag))
		problem(p, "a mount is left: %.200s", strstr(b.data, g->tag));
}

/* Every process that was left behind has become our child. True: none is alive. */
static bool reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
		;
	return pid < 0;
}

static void await_child(int seconds)
{
	struct timespec wait = {.tv_sec = seconds};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &wait);
}

static void children_kill(struct problems *p)
{
	_cleanup_buffer_ struct buffer b = {0};
	char path[64], *save = NULL;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	if (file_load(AT_FDCWD, path, 1 << 20, &b, NULL) < 0 || !b.data)
		return;
	for (char *word = strtok_r(b.data, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		_cleanup_buffer_ struct buffer name = {0};

		snprintf(path, sizeof path, "/proc/%.20s/comm", word);
		(void)file_load(AT_FDCWD, path, 64, &name, NULL);
		problem(p, "a process is alive: %s, %s", word, name.data ? name.data : "?");
		kill((pid_t)atoi(word), SIGKILL);
	}
	while (!reap())
		await_child(1);
}

static void no_process(bool at_once, struct problems *p)
{
	uint64_t end = clock_now() + DYING_S * NSEC_PER_SEC;

	while (!reap()) {
		if (at_once || clock_now() > end) {
			children_kill(p);
			return;
		}
		await_child(1);
	}
}

void remains_check(const struct ground *g, bool init_noted, struct problems *p)
{
	char path[512];

	no_process(init_noted && !g->post, p);
	none_in("/tmp", g->tag, false, "workspace", p);
	no_mount(g, p);
	for (int i = 0; i < g->n_cgroups; i++)
		none_in(g->cgroups[i], NULL, true, "cgroup", p);
	snprintf(path, sizeof path, "%s/state/fumehood/runs", g->dir);
	none_in(path, NULL, false, "record", p);
	snprintf(path, sizeof path, "%s/objects/tmp", g->dir);
	none_in(path, NULL, false, "temporary object", p);
	snprintf(path, sizeof path, "%s/objects/pins", g->dir);
	none_in(path, NULL, false, "pin", p);
}

/* ---- what the ledger must say ---- */

static void show(const struct outcome *o, const char *what, struct problems *p)
{
	char out[700], err[700];

	problem(p, "%s: status %#x: %s%s%s", what, (unsigned)o->status,
		text_escape_into(err, sizeof err, o->err.data ? o->err.data : "", o->err.size),
		o->out.size ? " | " : "",
		text_escape_into(out, sizeof out, o->out.data ? o->out.data : "", o->out.size));
}

/* Its JSON object, or NULL with a problem noted. */
static json_t *ask(const struct ground *g, const char *const *argv, int status, struct problems *p)
{
	_cleanup_outcome_ struct outcome o;
	json_t *json;

	ground_command(g, argv, &o);
	json = o.out.data ? json_loadb(o.out.data, o.out.size, 0, NULL) : NULL;
	if (WIFEXITED(o.status) && (status < 0 || WEXITSTATUS(o.status) == status) && json)
		return json;
	show(&o, argv[1], p);
	json_decref(json);
	return NULL;
}

void recover(const struct ground *g, struct problems *p)
{
	const char *argv[] = {g->binary, "gc", "--json", NULL};

	json_decref(ask(g, argv, 0, p));
}

void store_check(const struct ground *g, struct problems *p)
{
	const char *argv[] = {g->binary, "db", "check", "--json", NULL};

	json_decref(ask(g, argv, 0, p));
}

static const char *verdict_of(const json_t *attempt)
{
	const char *verdict = json_string_value(json_object_get(attempt, "verdict"));

	return verdict ? verdict : "none";
}

static void output_check(const json_t *outputs, const char *name, const struct buffer *wanted,
			 struct problems *p)
{
	uint8_t digest[DIGEST_SIZE];
	char hex[DIGEST_TEXT_SIZE];
	const json_t *o;
	size_t i;

	digest_bytes(wanted->data, wanted->size, digest);
	hex_encode(digest, sizeof digest, hex);
	json_array_foreach ((json_t *)outputs, i, o) {
		if (strcmp(json_string_value(json_object_get(o, "path")), name) != 0)
			continue;
		if (strcmp(json_string_value(json_object_get(o, "sha256")), hex) != 0)
			problem(p, "the ledger has another digest of %s", name);
		return;
	}
	problem(p, "the ledger has no output %s", name);
}

static void content_check(const struct ground *g, const char *name, const struct buffer *wanted,
			  struct problems *p)
{
	_cleanup_buffer_ struct buffer b = {0};
	char path[512];

	snprintf(path, sizeof path, "%s/out/%s", g->dir, name);
	if (file_load(AT_FDCWD, path, 64 << 20, &b, NULL) < 0)
		problem(p, "get gave no %s", name);
	else if (b.size != wanted->size || memcmp(b.data, wanted->data, b.size) != 0)
		problem(p, "get gave another %s", name);
	unlink(path);
}

/* The outputs, by their digests and by their bytes. */
static void whole_check(const struct ground *g, const char *id, const json_t *shown, struct problems *p)
{
	_cleanup_buffer_ struct buffer small = {0}, large = {0};
	_cleanup_outcome_ struct outcome o;
	const json_t *outputs = json_object_get(shown, "outputs");
	char out[512];
	const char *argv[] = {g->binary, "get", id, "small.txt", "large.txt", "-o", out, NULL};

	ground_expected(g, id, &small, &large);
	if (json_array_size(outputs) != (g->post ? 3 : 2))
		problem(p, "the ledger has %zu outputs", json_array_size(outputs));
	output_check(outputs, "small.txt", &small, p);
	output_check(outputs, "large.txt", &large, p);
	snprintf(out, sizeof out, "%s/out", g->dir);
	ground_command(g, argv, &o);
	if (o.status != 0)
		show(&o, "get", p);
	content_check(g, "small.txt", &small, p);
	content_check(g, "large.txt", &large, p);
}

/* Rows and outputs together, or not at all. */
static void rows_check(const struct ground *g, const char *id, bool succeeded, struct problems *p)
{
	int found = ground_count_rows(g, id), wanted = succeeded ? GROUND_ROWS : 0;

	if (found != wanted)
		problem(p, "the platform's table has %d rows of %s, which %s: expected %d", found, id,
			succeeded ? "has succeeded" : "has not succeeded", wanted);
}

static bool is_expected(const struct ground *g, enum expected expected, const char *verdict)
{
	bool nothing = strcmp(verdict, "none") == 0, lost = strcmp(verdict, "lost") == 0,
	     succeeded = strcmp(verdict, "succeeded") == 0,
	     rowless = g->post && strcmp(verdict, "post_process_failed") == 0;

	switch (expected) {
	case EXPECT_NOTHING:
		return nothing;
	case EXPECT_LOST:
		return lost;
	case EXPECT_SUCCEEDED:
		return succeeded;
	case EXPECT_REFUSED:
		return nothing || lost;
	case EXPECT_ENDED:
		return lost || succeeded;
	case EXPECT_POST_FAILED:
		return rowless;
	case EXPECT_ANY:
		return nothing || lost || succeeded || rowless;
	}
	return false;
}

void ledger_check(const struct ground *g, const char *id, enum expected expected, int before,
		  struct problems *p)
{
	static const char *const words[] = {
		"nothing", "lost", "succeeded", "nothing or lost", "lost or succeeded", "post_process_failed",
		"anything"};
	const char *argv[] = {g->binary, "show", id, "--json", NULL};
	json_t *shown = ask(g, argv, -1, p);
	const json_t *list = json_object_get(shown, "attempts"), *a;
	const char *last = "none";
	size_t i;

	if (!shown)
		return;
	json_array_foreach ((json_t *)list, i, a) {
		last = verdict_of(a);
		if (json_integer_value(json_object_get(a, "attempt")) != (json_int_t)i + 1)
			problem(p, "attempt %zu of %s has another number", i + 1, id);
		if (!is_expected(g, EXPECT_ANY, last))
			problem(p, "attempt %zu of %s is '%s'", i + 1, id, last);
	}
	if (json_array_size(list) > (size_t)before + 1)
		problem(p, "the ledger has %zu attempts of %s", json_array_size(list), id);
	if (!is_expected(g, expected, last))
		problem(p, "the ledger says '%s' of %s, expected: %s", last, id, words[expected]);
	if (strcmp(last, "succeeded") == 0 || is_expected(g, EXPECT_POST_FAILED, last))
		whole_check(g, id, shown, p);
	if (g->post)
		rows_check(g, id, strcmp(last, "succeeded") == 0, p);
	json_decref(shown);
}
