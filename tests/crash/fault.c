/*
 * The fault sweep: the k-th call that can fail in a certain way does so, for every k and every way. A run that
 * succeeds in spite of it is a pass, and so is a refusal in one sentence before the command has ended; once it has,
 * the attempt is committed or pending, and gc brings it to the end that it would have had. Whatever was left is gone then.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool is_sentence(const char *text)
{
	const char *newline = strchr(text, '\n');

	return strlen(text) > 10 && (!newline || !newline[1]);
}

/* The post-process could not be run, which is a verdict: the outputs are there, the rows are not. */
static bool has_no_rows(const struct ground *g, const struct tracee *t, const json_t *json)
{
	return g->post && WEXITSTATUS(t->status) == 123 &&
	       strcmp(text_of(json, "verdict"), "post_process_failed") == 0 &&
	       is_sentence(text_of(json, "reason"));
}

enum expected answer_judge(const struct ground *g, const struct tracee *t, struct problems *p)
{
	_cleanup_buffer_ struct buffer out = {0}, err = {0};
	const char *message;
	enum expected expected = EXPECT_ANY;
	json_t *json;

	memory_file_read(t->out, &out);
	memory_file_read(t->err, &err);
	json = out.data ? json_loadb(out.data, out.size, 0, NULL) : NULL;
	if (t->hung) {
		problem(p, "it hangs");
		json_decref(json);
		return EXPECT_ANY;
	}
	if (WIFEXITED(t->status) && has_no_rows(g, t, json)) {
		count(&totals->refused, 1);
		json_decref(json);
		return EXPECT_POST_FAILED;
	}
	if (!WIFEXITED(t->status) || (WEXITSTATUS(t->status) != 0 && WEXITSTATUS(t->status) != 125)) {
		problem(p, "it ended with status %#x: %s %s: %s", (unsigned)t->status,
			err.data ? err.data : "", text_of(json, "verdict"), text_of(json, "reason"));
		json_decref(json);
		return EXPECT_ANY;
	}
	message = json ? text_of(json_object_get(json, "error"), "message") : err.data ? err.data : "";
	if (WEXITSTATUS(t->status) == 0 || json_is_true(json_object_get(json, "pending")))
		expected = EXPECT_SUCCEEDED;
	else if (strcmp(text_of(json, "verdict"), "lost") == 0) /* we could not watch it, and have said so */
		expected = EXPECT_LOST;
	else if (json)
		expected = EXPECT_REFUSED;
	if (WEXITSTATUS(t->status) == 125 && !is_sentence(message))
		problem(p, "it refused without one clear sentence: '%s', '%s'", message,
			err.data ? err.data : "");
	count(WEXITSTATUS(t->status) == 0 ? &totals->succeeded : &totals->refused, 1);
	json_decref(json);
	return expected;
}

/* Of the loop around a command that runs: what fails there ends it, and is recorded. */
static bool is_watching(const char *call)
{
	return strncmp(call, "epoll_", 6) == 0 || strncmp(call, "timerfd_", 8) == 0;
}

/* Fails the k-th call that can. False: there was none. */
static bool fault_step(struct ground *g, const struct options *o, const struct fault *f, int k)
{
	const char *argv[GROUND_ARGS_MAX];
	char call[600] = "";
	struct problems p = {0};
	enum expected expected;
	struct tracee t;
	char id[64];
	int n = 0;
	bool make, ended = false;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%s-%d", g->tag, f->name, k);
	ground_run_argv(g, id, false, argv);
	tracee_start(&t, g, argv);
	while ((n < k || o->lasting) && tracee_next(&t)) {
		if ((o->removals && !call_removes(&t)) || !fault_applies(f, &t, &make) || ++n < k)
			continue;
		if (n == k) {
			call_describe(&t, call, sizeof call);
			ended = run_has(g, id, "ended");
		}
		tracee_fail(&t, f->error, make);
	}
	tracee_finish(&t);
	if (n >= k)
		count(&totals->steps, 1);
	expected = answer_judge(g, &t, &p);
	if (ended && expected != EXPECT_SUCCEEDED && expected != EXPECT_POST_FAILED)
		problem(&p, "its command had ended, and it is neither committed nor pending");
	/* Where every later call fails too, there is nowhere to write it. */
	if (is_watching(call) && !o->lasting && expected == EXPECT_REFUSED)
		problem(&p, "its command was running, and nobody says what became of it");
	recover(g, &p);
	remains_check(g, false, &p);
	ledger_check(g, id, expected, 0, &p);
	step_report(&p, "%s: %s at the %d. call that can: %s", id, f->name, k, call);
	if (o->verbose)
		printf("%s\t%d\t%s\t%#x\n", f->name, k, call, (unsigned)t.status);
	tracee_done(&t);
	return n >= k;
}

static void fault_work(struct ground *g, const struct options *o, int index)
{
	for (int i = 0; i < n_faults; i++) {
		int k = o->offset + 1 + index * o->every;

		if (o->error && faults[i].error != o->error)
			continue;
		while (fault_step(g, o, &faults[i], k))
			k += o->workers * o->every;
	}
}

static void fault_summary(const struct options *o)
{
	printf("%d faults injected%s: %d runs succeeded in spite of it, %d were refused\n", totals->steps,
	       o->lasting ? ", each lasting" : "", totals->succeeded, totals->refused);
}

const struct mode mode_fault = {"fault", "1s", fault_work, fault_summary};

/* ---- the same for gc ---- */

void sentence_judge(const struct tracee *t, const char *what, struct problems *p)
{
	_cleanup_buffer_ struct buffer out = {0}, err = {0};
	const char *message;
	json_t *json;

	memory_file_read(t->out, &out);
	memory_file_read(t->err, &err);
	json = out.data ? json_loadb(out.data, out.size, 0, NULL) : NULL;
	message = json ? text_of(json_object_get(json, "error"), "message") : err.data ? err.data : "";
	if (t->hung)
		problem(p, "%s hangs", what);
	else if (!WIFEXITED(t->status) || (WEXITSTATUS(t->status) != 0 && WEXITSTATUS(t->status) != 125))
		problem(p, "%s ended with status %#x: %s", what, (unsigned)t->status,
			err.data ? err.data : "");
	else if (WEXITSTATUS(t->status) == 125 && !is_sentence(message))
		problem(p, "%s failed without one clear sentence: '%s', '%s'", what, message,
			err.data ? err.data : "");
	else
		count(WEXITSTATUS(t->status) == 0 ? &totals->succeeded : &totals->refused, 1);
	json_decref(json);
}

/* Fails the k-th call of gc that can, over a dead run of each kind; the next gc finishes what it left. False: there was none. */
static bool fault_gc_step(struct ground *g, const struct options *o, const struct fault *f, int k)
{
	const char *argv[] = {g->binary, "gc", "--json", NULL};
	struct problems p = {0};
	char label[32], call[600] = "";
	struct tracee t;
	struct dead dead;
	bool make;
	int n = 0;

	ground_reset_ledger(g, o->fresh);
	snprintf(label, sizeof label, "%s-%d", f->name, k);
	dead_leave(g, label, &dead);
	tracee_start(&t, g, argv);
	while ((n < k || o->lasting) && tracee_next(&t)) {
		if ((o->removals && !call_removes(&t)) || !fault_applies(f, &t, &make) || ++n < k)
			continue;
		if (n == k)
			call_describe(&t, call, sizeof call);
		tracee_fail(&t, f->error, make);
	}
	tracee_finish(&t);
	if (n >= k) {
		count(&totals->steps, 1);
		sentence_judge(&t, "gc", &p);
	}
	dead_check(g, &dead, &p);
	step_report(&p, "%s: %s at the %d. call of gc that can: %s", dead.finished, f->name, k, call);
	if (o->verbose)
		printf("%s\t%d\t%s\t%#x\n", f->name, k, call, (unsigned)t.status);
	tracee_done(&t);
	return n >= k;
}

static void fault_gc_work(struct ground *g, const struct options *o, int index)
{
	for (int i = 0; i < n_faults; i++) {
		int k = o->offset + 1 + index * o->every;

		if (o->error && faults[i].error != o->error)
			continue;
		while (fault_gc_step(g, o, &faults[i], k))
			k += o->workers * o->every;
	}
}

static void fault_gc_summary(const struct options *o)
{
	printf("%d faults injected into gc%s: it did all in spite of %d, and said what it could not for %d\n",
	       totals->steps, o->lasting ? ", each lasting" : "", totals->succeeded, totals->refused);
}

const struct mode mode_fault_gc = {"fault-gc", "1s", fault_gc_work, fault_gc_summary};
