/*
 * sweep: lets fumehood die, or a system call of it fail, at every place there is, and looks whether anything is broken
 * after `fumehood gc`. See usage[] below, and README.md.
 */
#include "fault.h"
#include "sweep.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WORKERS_MAX = 8 };

static const char usage[] =
	"usage: sweep MODE [options] FUMEHOOD\n"
	"  kill      SIGKILL at the first, second, third … system call of a run after main, then gc\n"
	"  kill-gc   the same of gc itself, over what dead runs left\n"
	"  kill-step    the same of the second of three steps in a held workspace\n"
	"  kill-commit  the same of the commit of two steps\n"
	"  kill-shell, kill-aside    the same of a command in a kept workspace, and of the next attempt\n"
	"  kill-rm, kill-backup      the same of rm, and of db backup\n"
	"  fault     the first, second, third … call that can fails with ENOSPC, EIO, EINTR, ENOMEM\n"
	"  fault-gc  the same of gc itself, over what dead runs left\n"
	"  fault-step, fault-commit  the same of a step, and of the commit of two\n"
	"  storm     many runs at once, all killed at once\n"
	"  server    something is done to the database server at the first, second … call of a commit\n"
	"kill:   --by-run         the next run of the same id recovers, not gc\n"
	"fault:  --error NAME     only this one\n"
	"        --lasting        every later call that can fails as well\n"
	"        --removals       only calls that remove a file or a directory\n"
	"server: --hurt COMMAND --heal COMMAND\n"
	"storm:  --rounds N --at-once N\n"
	"all:    --every N --offset M  only the calls M+1, M+1+N, …\n"
	"        --fresh          each run finds no ledger (SQLite)\n"
	"        --landlock       without namespaces\n"
	"        --disk           the workspace is a file system of its own\n"
	"        --pending        kill: the object store is out of reach until the run has ended\n"
	"        --inside         PostgreSQL is the object store, too\n"
	"        --small          all contents are in the database, and its end is saved only once\n"
	"        --post           there is a post-process, and its rows go with the outputs\n"
	"        --db URL  --user UID  --workers N  --verbose\n";

static const struct mode *const modes[] = {
	&mode_kill,    &mode_kill_gc,	  &mode_fault,	     &mode_fault_gc,   &mode_storm,
	&mode_server,  &mode_kill_step,	  &mode_kill_commit, &mode_fault_step, &mode_fault_commit,
	&mode_kill_rm, &mode_kill_backup, &mode_kill_shell,  &mode_kill_aside};

struct totals *totals;
static pid_t workers[WORKERS_MAX];

void count(int *total, int n)
{
	__atomic_fetch_add(total, n, __ATOMIC_RELAXED);
}

void step_report(struct problems *p, const char *format, ...)
{
	_cleanup_buffer_ struct buffer b = {0};
	char title[512];
	va_list args;

	if (p->count > 0) {
		va_start(args, format);
		vsnprintf(title, sizeof title, format, args);
		va_end(args);
		count(&totals->broken, 1);
		if (buffer_printf(&b, "BROKEN %s\n%s", title, p->text.data) == 0)
			(void)!write(STDOUT_FILENO, b.data, b.size);
	}
	buffer_free(&p->text);
	*p = (struct problems){0};
}

static pid_t worker_start(struct ground *g, const struct mode *mode, const struct options *o, int index)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("cannot fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	ground_settle(g);
	mode->work(g, o, index);
	fflush(stdout);
	_exit(0);
}

/* The workers die, and main() goes on to remove what they used. */
static void on_end(int signal UNUSED)
{
	for (int i = 0; i < WORKERS_MAX; i++)
		if (workers[i] > 0)
			kill(workers[i], SIGKILL);
}

static void sweep(const struct mode *mode, const struct options *o)
{
	static struct ground grounds[WORKERS_MAX];

	totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (totals == MAP_FAILED)
		give_up("out of memory");
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	for (int i = 0; i < o->workers; i++) {
		ground_make(&grounds[i], &o->wish, i);
		workers[i] = worker_start(&grounds[i], mode, o, i);
	}
	for (int i = 0; i < o->workers; i++) {
		int status = 0;

		while (waitpid(workers[i], &status, 0) < 0 && errno == EINTR)
			;
		workers[i] = 0;
		if (status != 0) {
			printf("BROKEN worker %d ended with status %#x\n", i, (unsigned)status);
			totals->broken++;
		}
		ground_remove(&grounds[i]);
	}
	mode->summary(o);
	printf("%d broken\n", totals->broken);
}

static void refuse(void) __attribute__((noreturn));
static void refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static const struct mode *mode_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (name && strcmp(modes[i]->name, name) == 0)
			return modes[i];
	refuse();
}

static int number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 0 || n > 1000000)
		refuse();
	return (int)n;
}

static int error_number(const char *name)
{
	for (int i = 0; i < n_faults; i++)
		if (strcmp(faults[i].name, name) == 0)
			return faults[i].error;
	refuse();
}

/* One row for each option: a flag, a number, a word, or an error's name, and where it goes. */
enum kind { FLAG, NUMBER, WORD, ERROR_NAME };
#define TO(field) offsetof(struct options, field)
static const struct row {
	const char *name;
	enum kind kind;
	size_t to;
} rows[] = {
	{"every", NUMBER, TO(every)},
	{"offset", NUMBER, TO(offset)},
	{"workers", NUMBER, TO(workers)},
	{"rounds", NUMBER, TO(rounds)},
	{"at-once", NUMBER, TO(at_once)},
	{"user", NUMBER, TO(wish.uid)},
	{"hurt", WORD, TO(hurt)},
	{"heal", WORD, TO(heal)},
	{"db", WORD, TO(wish.db)},
	{"error", ERROR_NAME, TO(error)},
	{"lasting", FLAG, TO(lasting)},
	{"fresh", FLAG, TO(fresh)},
	{"disk", FLAG, TO(wish.own_disk)},
	{"landlock", FLAG, TO(wish.bare)},
	{"post", FLAG, TO(wish.post)},
	{"by-run", FLAG, TO(by_run)},
	{"verbose", FLAG, TO(verbose)},
	{"removals", FLAG, TO(removals)},
	{"pending", FLAG, TO(wish.blocked)},
	{"inside", FLAG, TO(wish.inside)},
	{"small", FLAG, TO(wish.small)},
};

static void option_set(struct options *o, const struct row *row, const char *value)
{
	char *to = (char *)o + row->to;

	switch (row->kind) {
	case FLAG:
		*(bool *)to = true;
		break;
	case NUMBER:
		*(int *)to = number(value);
		break;
	case WORD:
		*(const char **)to = value;
		break;
	case ERROR_NAME:
		*(int *)to = error_number(value);
		break;
	}
}

static void options_parse(struct options *o, int argc, char **argv)
{
	struct option table[ARRAY_SIZE(rows) + 1] = {0};
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		table[i] = (struct option){rows[i].name, rows[i].kind != FLAG, NULL, (int)i + 1};
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == '?')
			refuse();
		option_set(o, &rows[c - 1], optarg);
	}
	o->wish.binary = argv[optind];
	if (!o->wish.binary || argv[optind + 1] || o->every < 1 || o->workers < 1 ||
	    o->workers > WORKERS_MAX || (o->fresh && o->wish.db))
		refuse();
}

int main(int argc, char **argv)
{
	struct options o = {.wish = {.uid = geteuid()}, .every = 1, .workers = 2, .rounds = 3, .at_once = 32};
	const struct mode *mode = mode_find(argv[1]);

	_Static_assert(sizeof o.wish.uid == sizeof(int), "a uid is set as a number");
	options_parse(&o, argc - 1, argv + 1);
	o.wish.busy = mode->busy;
	sweep(mode, &o);
	return totals->broken ? 1 : 0;
}
