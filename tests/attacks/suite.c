/*
 * The suite's story: for each attack the control, then the hood, then the verdict.
 */
#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ability.h"
#include "attack.h"
#include "clock.h"
#include "launch.h"
#include "stage.h"
#include "text.h"

/* Patience is only ever used up by what hangs, or by a machine that does ten other things at once. */
enum { ARGUMENTS_MAX = 48, CONTROL_MS = 60000, CONTROL_HANG_MS = 700, HOOD_MS = 120000 };

const char *attack_result_name(enum attack_result r)
{
	static const char *const names[] = {"held", "escaped", "not held", "not testable here"};
	return names[r];
}

struct arguments {
	char *list[ARGUMENTS_MAX];
	size_t count;
	char words[1024]; /* the row's own options, cut at spaces */
};

static void add(struct arguments *a, const char *word)
{
	if (a->count < ARGUMENTS_MAX - 1)
		a->list[a->count++] = (char *)word;
}

/* The row's options, with the platform's directory in place of %P. */
static void add_options(struct arguments *a, const struct stage *s)
{
	size_t at = 0;
	for (const char *c = s->attack->options; c && *c && at < sizeof(a->words) - 300; c++) {
		if (c[0] == '%' && c[1] == 'P') {
			at += (size_t)snprintf(a->words + at, 300, "%s", s->platform->root);
			c++;
		} else {
			a->words[at++] = *c;
		}
	}
	a->words[at] = '\0';
	char *rest = NULL;
	for (char *word = strtok_r(a->words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		add(a, word);
}

static void add_attacker(struct arguments *a, const char *role, const struct stage *s)
{
	add(a, "./attacker");
	add(a, role);
	add(a, s->marker);
}

static void arguments_hood(struct arguments *a, const struct stage *s)
{
	bool collects = s->attack->flags & COLLECTED;
	add(a, s->platform->fumehood);
	add(a, "run");
	add(a, s->id);
	if (!s->attack->options || !strstr(s->attack->options, "--data")) {
		add(a, "--data");
		add(a, targets_text(&s->platform->targets, "data"));
	}
	add(a, "--docs");
	add(a, targets_text(&s->platform->targets, "docs"));
	add(a, "--input");
	add(a, "attacker");
	add(a, "--input");
	add(a, "targets");
	add(a, "--keep");
	add(a, "never");
	if (s->platform->strength) {
		add(a, "--strength");
		add(a, s->platform->strength);
	}
	if (s->attack->flags & (STDIN_FILE | STDIN_DIRECTORY | STDIN_TERMINAL))
		add(a, "-i");
	add(a, "--optional-output");
	add(a, collects ? "**" : "nothing");
	if (collects) {
		add(a, "--into");
		add(a, s->into);
	}
	add_options(a, s);
	add(a, "--");
	add_attacker(a, s->attack->name, s);
}

static void arguments_plain(struct arguments *a, const struct stage *s)
{
	add(a, s->platform->plain);
	add(a, "plain");
	add(a, s->workspace);
	add(a, s->attack->flags & COLLECTED ? s->into : "-");
	add(a, s->attack->flags & OUTLIVES && s->attack->flags & COLLECTED ? "60" : "1");
	add_attacker(a, s->attack->name, s);
}

static void remove_tree(const char *path)
{
	pid_t pid;
	char *argv[] = {
		(char *)"sh", (char *)"-c",
		(char *)"exec 2>/dev/null; rm -rf --one-file-system \"$0\" || { chmod -R u+rwx \"$0\"; rm -rf --one-file-system \"$0\"; }",
		(char *)path, NULL};
	char *none[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	if (!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, none))
		waitpid(pid, NULL, 0);
}

static void stage_open(struct stage *s, struct platform *p, const struct attack *a, bool hooded)
{
	*s = (struct stage){.platform = p, .attack = a, .hooded = hooded};
	snprintf(s->id, sizeof(s->id), "attack-%s-%s", p->tag, a->name);
	snprintf(s->marker, sizeof(s->marker), "mark-%s-%s-%.32s", p->tag, hooded ? "hood" : "plain",
		 a->name);
	snprintf(s->into, sizeof(s->into), "%s/var/into/%s-%s", p->root, a->name, hooded ? "hood" : "plain");
	if (hooded)
		snprintf(s->workspace, sizeof(s->workspace), "/tmp/scidex-analysis-%s", s->id);
	else
		snprintf(s->workspace, sizeof(s->workspace), "%s/var/plain/%s", p->root, s->id);
	targets_set(&p->targets, "marker", "%s", s->marker);
	platform_repair(p, NULL);
	platform_furnish(p);
	platform_describe_victim(p, p->state, sizeof(p->state));
	if (a->flags & WITH_POSTGRES)
		s->rows_before = postgres_count(p);
}

/* Nothing of a control is left for the next: its processes, its directory, its changes to the victim. */
static void stage_close(struct stage *s)
{
	struct stat st;
	if (!s->hooded || s->hit || s->hung || s->attack->flags & NO_ATTACKER ||
	    s->attack->flags & REFUSAL_HOLDS) {
		if (!lstat(s->workspace, &st))
			remove_tree(s->workspace);
	}
	buffer_free(&s->output);
	buffer_free(&s->errors);
}

static int restart_victim(struct platform *p)
{
	kill(p->victim, SIGKILL);
	waitpid(p->victim, NULL, 0);
	return victim_start(p, NULL);
}

static int start_beside(struct platform *p, bool hooded, const char *role)
{
	struct stage s = {.platform = p, .hooded = hooded};
	struct attack a = {.name = role, .flags = STDIN_FILE};
	struct arguments args = {.count = 0};
	s.attack = &a;
	snprintf(s.id, sizeof(s.id), "attack-%s-%s-%u", p->tag, role, p->beside_count++);
	snprintf(s.marker, sizeof(s.marker), "mark-%s-%s-%s", p->tag, role, hooded ? "hood" : "plain");
	snprintf(s.workspace, sizeof(s.workspace), "%s/var/plain/%s", p->root, s.id);
	snprintf(p->beside[hooded].id, sizeof(p->beside[0].id), "%s", s.id);
	platform_write_targets(p, hooded, s.marker);
	if (hooded) {
		a.options = "--wall 300s";
		arguments_hood(&args, &s);
	} else {
		arguments_plain(&args, &s);
	}
	int fd = -1;
	pid_t pid = launch_beside(p, args.list, &fd);
	if (pid < 0)
		return pid;
	p->beside[hooded].pid = pid;
	p->beside[hooded].output = fd;
	for (int i = 0; i < 400; i++) {
		char words[256];
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (poll(&ready, 1, 50) <= 0)
			continue;
		ssize_t n = read(fd, words, sizeof(words));
		if (n <= 0)
			break;
		if (memmem(words, (size_t)n, "READY", 5))
			return 0;
	}
	return -ETIMEDOUT;
}

static void end_beside(struct platform *p, bool hooded)
{
	if (p->beside[hooded].pid > 0) {
		kill(p->beside[hooded].pid, SIGTERM);
		waitpid(p->beside[hooded].pid, NULL, 0);
	}
	fd_close(p->beside[hooded].output);
	p->beside[hooded].pid = 0;
	p->beside[hooded].output = -1;
	p->beside[hooded].ready = false;
}

/* It ends by itself; if it does not, end_beside() will see to it. */
static void await_end(pid_t *pid)
{
	for (int i = 0; *pid > 0 && i < 500; i++) {
		if (waitpid(*pid, NULL, WNOHANG) == *pid)
			*pid = 0;
		else
			poll(NULL, 0, 10);
	}
}

static int company(struct stage *s)
{
	struct platform *p = s->platform;
	int r = 0;
	if (s->attack->flags & BESIDE && !p->beside[s->hooded].ready) {
		r = start_beside(p, s->hooded, "beside");
		p->beside[s->hooded].ready = !r;
	}
	if (s->attack->flags & AFTER) {
		end_beside(p, s->hooded);
		r = start_beside(p, s->hooded, "before");
		await_end(&p->beside[s->hooded].pid);
	}
	if (r)
		snprintf(s->why, sizeof(s->why),
			 "the other analysis could not be started (see var/beside.log)");
	return r;
}

static int stage_play(struct stage *s)
{
	struct arguments a = {.count = 0};
	int r = company(s);
	__atomic_store_n(&s->platform->board->hits, 0, __ATOMIC_SEQ_CST);
	if (!r && s->attack->prepare)
		r = s->attack->prepare(s);
	if (r) {
		if (!s->why[0])
			snprintf(s->why, sizeof(s->why), "cannot be prepared: %s", strerror(-r));
		return r;
	}
	if (s->attack->flags & NO_ATTACKER) {
		s->started = true;
	} else {
		if (s->hooded)
			arguments_hood(&a, s);
		else
			arguments_plain(&a, s);
		int patience = s->hooded ? HOOD_MS : s->attack->flags & HANGS ? CONTROL_HANG_MS : CONTROL_MS;
		r = launch(s, a.list, patience * s->platform->slowness);
		s->started = stage_output_has(s, "attacker: started") || s->attack->flags & STDOUT_FILE ||
			     stage_output_has(s, "\"verdict\": \"succeeded\""); /* with --json */
	}
	stage_judge_all(s);
	return r;
}

/* What the attacker or, if it never started, the supervisor said last. */
static void last_words(struct stage *s, char *ret, size_t room)
{
	const char *found = NULL, *at = s->output.data ? strstr(s->output.data, "attacker: started") : NULL;
	while (at && (at = strstr(at + 1, "attacker: ")) != NULL)
		found = at + strlen("attacker: ");
	if (!found && s->errors.size)
		found = s->errors.data;
	char line[200];
	snprintf(line, sizeof(line), "%.*s", found ? (int)strcspn(found, "\r\n") : 0, found ? found : "");
	text_escape_into(ret, room, line, strlen(line));
}

/* Asked to end: the attack that runs is the last, and all is put away. The number is that of the signal. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = number;
}

bool suite_stopped(void)
{
	return stopped;
}

static void heed_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (signal(numbers[i], SIG_IGN) != SIG_IGN)
			signal(numbers[i], stop);
}

struct suite {
	struct platform platform;
	const struct attack_options *options;
	attack_report_fn report;
	void *arg;
	struct attack_summary summary;
};

/* How long a plain process takes that does next to nothing: under emulation everything must be waited for longer. */
static void measure(struct platform *p)
{
	uint64_t begin = clock_now();
	p->slowness = 1;
	start_beside(p, false, "before");
	await_end(&p->beside[0].pid);
	end_beside(p, false);
	p->slowness = 1 + (int)((clock_now() - begin) / (100 * NSEC_PER_MSEC));
	if (p->slowness > 10)
		p->slowness = 10;
	targets_set(&p->targets, "slowness", "%d", p->slowness);
}

/* An analysis of somebody else, whose log is the secret. */
static void seed_ledger(struct platform *p)
{
	start_beside(p, true, "before");
	await_end(&p->beside[1].pid);
	end_beside(p, true);
}

static enum attack_result attack_control(struct suite *u, const struct attack *a, char *why, size_t room)
{
	struct stage s;
	if (a->flags & ROOT_ONLY && geteuid() != 0) {
		snprintf(why, room, "without the hood only root can do it");
		return ATTACK_NOT_TESTABLE;
	}
	if (a->flags & UNDEFENDED && !ability_is_root()) {
		snprintf(why, room,
			 "not defended for an ordinary user: the kernel gives it no means (THREATS.md)");
		return ATTACK_NOT_TESTABLE;
	}
	if (a->flags & WITH_POSTGRES && !u->platform.pg_port) {
		snprintf(why, room, "PostgreSQL %s",
			 u->platform.postgres ? "did not start" : "is not installed");
		return ATTACK_NOT_TESTABLE;
	}
	stage_open(&s, &u->platform, a, false);
	int r = stage_play(&s);
	char words[200];
	last_words(&s, words, sizeof(words));
	if (!s.hit)
		snprintf(why, room, "does nothing without the hood either: %s", s.why[0] ? s.why : words);
	else
		snprintf(why, room, "without the hood: %s", s.evidence);
	bool hit = s.hit && !r;
	stage_close(&s);
	return hit ? ATTACK_ESCAPED : ATTACK_NOT_TESTABLE;
}

static enum attack_result attack_hood(struct suite *u, const struct attack *a, char *why, size_t room)
{
	struct stage s;
	stage_open(&s, &u->platform, a, true);
	int r = stage_play(&s);
	enum attack_result verdict = ATTACK_HELD;
	char words[200];
	last_words(&s, words, sizeof(words));
	if (s.hit) {
		verdict = ATTACK_ESCAPED;
		snprintf(why, room, "%s", s.evidence);
	} else if (r) {
		verdict = ATTACK_NOT_TESTABLE;
		snprintf(why, room, "%s", s.why);
	} else if (!s.started && !(a->flags & REFUSAL_HOLDS)) {
		verdict = ATTACK_NOT_TESTABLE;
		snprintf(why, room, "the hood did not run it: %s", words);
	} else if (s.hung) {
		verdict = ATTACK_ESCAPED;
		snprintf(why, room, "the hood did not come to an end");
	} else {
		snprintf(why, room, "%s%s", s.started ? "" : "refused: ", words);
	}
	stage_close(&s);
	return verdict;
}

static void attack_try(struct suite *u, const struct attack_family *f, const struct attack *a)
{
	char why[400] = "";
	struct attack_report report = {
		.family = f->name, .name = a->name, .mechanism = a->mechanism, .why = why};
	uint64_t begin = clock_now();
	report.result = attack_control(u, a, why, sizeof(why));
	restart_victim(&u->platform);
	if (report.result != ATTACK_NOT_TESTABLE && !u->options->controls_only)
		report.result = attack_hood(u, a, why, sizeof(why));
	if (report.result == ATTACK_ESCAPED)
		restart_victim(&u->platform);
	const char *line = not_held(u->options->strength, a->name);
	if (report.result == ATTACK_ESCAPED && line && !u->options->controls_only) {
		report.result = ATTACK_NOT_HELD;
		report.why = line;
	}
	report.milliseconds = (int)((clock_now() - begin) / NSEC_PER_MSEC);
	u->summary.held += report.result == ATTACK_HELD;
	u->summary.escaped += report.result == ATTACK_ESCAPED;
	u->summary.not_held += report.result == ATTACK_NOT_HELD;
	u->summary.not_testable += report.result == ATTACK_NOT_TESTABLE;
	u->report(u->arg, &report);
}

static bool wanted(const struct attack_options *o, const struct attack_family *f, const struct attack *a)
{
	return (!o->family || !strcmp(o->family, f->name)) && (!o->name || !fnmatch(o->name, a->name, 0));
}

int attack_suite_run(const struct attack_options *o, attack_report_fn fn, void *arg,
		     struct attack_summary *ret, struct error *err)
{
	static struct suite u; /* large; the suite does not run twice at once */
	u = (struct suite){.options = o, .report = fn, .arg = arg};
	heed_signals();
	int r = platform_up(&u.platform, o, err);
	u.platform.strength = o->strength;
	if (!r)
		measure(&u.platform);
	if (!r && !o->controls_only)
		seed_ledger(&u.platform);
	for (size_t i = 0; !r && i < attack_family_count; i++)
		for (size_t j = 0; j < attack_families[i]->count; j++)
			if (!stopped && wanted(o, attack_families[i], &attack_families[i]->attacks[j]))
				attack_try(&u, attack_families[i], &attack_families[i]->attacks[j]);
	platform_down(&u.platform, o->keep);
	if (!r)
		*ret = u.summary;
	if (!r && stopped)
		return error_set(
			err, ERROR_REFUSED,
			"the attack suite was ended by signal %d after %u attacks: run it again to know more",
			(int)stopped,
			u.summary.held + u.summary.escaped + u.summary.not_held + u.summary.not_testable);
	return r;
}

void attack_suite_list(attack_report_fn fn, void *arg)
{
	for (size_t i = 0; i < attack_family_count; i++)
		for (size_t j = 0; j < attack_families[i]->count; j++) {
			const struct attack *a = &attack_families[i]->attacks[j];
			struct attack_report row = {.family = attack_families[i]->name,
						    .name = a->name,
						    .mechanism = a->mechanism,
						    .why = ""};
			fn(arg, &row);
		}
}
