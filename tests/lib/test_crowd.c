/* Many analyses from many threads of one process: nothing grows. */
#include "site.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 16, WARM_UP = SANITIZED ? 32 : 64, CROWD = SANITIZED ? 64 : 500 };

struct measure {
	unsigned descriptors, threads, zombies;
	long anon_kib, heap_kib;
};

static struct {
	fh_hood *hood;
	atomic_int next, succeeded;
	int count;
	unsigned threads; /* before any was made */
} crowd;

static long read_number(const char *path, const char *key)
{
	char line[256];
	long n = -1;
	FILE *f = fopen(path, "re");

	while (f && n < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			n = atol(line + strlen(key));
	if (f)
		fclose(f);
	return n;
}

/* Children of this process, of any kind, that nobody has waited for. */
static unsigned count_zombies(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(dir))) {
		char path[300], status = 0;
		int parent = 0;
		FILE *f;

		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c %d", &status, &parent) == 2)
			n += status == 'Z' && parent == getpid();
		fclose(f);
	}
	closedir(dir);
	return n;
}

/* A thread that was joined is on its way out of /proc for a moment; one that was forgotten stays. */
static unsigned count_threads(void)
{
	unsigned n = count_entries("/proc/self/task", "");

	for (int64_t until = now_ms() + 30000; n > crowd.threads && now_ms() < until; usleep(2000))
		n = count_entries("/proc/self/task", "");
	return n;
}

/* The hood is closed and opened again: what the ledger's connections cache is no leak. */
static struct measure measure(struct site *s)
{
	site_open(s);
	crowd.hood = s->hood;
	malloc_trim(0);
	return (struct measure){
		.descriptors = count_entries("/proc/self/fd", ""),
		.threads = count_threads(),
		.zombies = count_zombies(),
		.anon_kib = read_number("/proc/self/smaps_rollup", "Anonymous:"),
		.heap_kib = (long)(mallinfo2().uordblks / 1024),
	};
}

static void say(const fh_result *result, const fh_error *err)
{
	fprintf(stderr, "%s: %s: %s\n", result ? fh_verdict_name(fh_result_verdict(result)) : "none",
		err->stage, err->message);
}

/* Every third is deferred and committed by hand, every fifth followed. */
static int one(int n)
{
	fh_request *request = shell(NULL, "echo $$ > pid; echo said");
	fh_result *result = NULL;
	fh_run *run = NULL;
	fh_error err = {0};
	char text[64];
	int good;

	if (fh_start(crowd.hood, request, (n % 3 ? 0 : FH_DEFER) | (n % 5 ? 0 : FH_FOLLOW), &run, &err) ==
		    0 &&
	    fh_run_wait(run, -1, &err) == 1 &&
	    (n % 3 || fh_run_commit(run, NULL, 0, "1", &err) == 0 || n < 0) &&
	    (n % 5 || fh_run_read(run, FH_STDOUT, text, sizeof text, NULL) == 5))
		(void)fh_run_result(run, &result, &err);
	good = result && fh_result_verdict(result) == FH_SUCCEEDED && fh_result_committed(result) &&
	       fh_result_outputs(result) == 1;
	if (!good) {
		if (result)
			fh_result_error(result, &err);
		say(result, &err);
	}
	fh_result_free(result);
	fh_run_free(run);
	fh_request_free(request);
	return good;
}

static void *work(void *arg)
{
	int n;

	(void)arg;
	while ((n = crowd.next++) < crowd.count)
		crowd.succeeded += one(n);
	return NULL;
}

static void run_crowd(int count)
{
	pthread_t threads[THREADS];

	crowd.next = crowd.succeeded = 0;
	crowd.count = count;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(crowd.succeeded, count);
}

static void test_500_analyses_from_16_threads_leave_nothing(void **state)
{
	struct site *s = *state;
	struct measure before, after;
	int64_t begun;

	crowd.hood = s->hood;
	crowd.threads = count_entries("/proc/self/task", "");
	run_crowd(WARM_UP);
	before = measure(s);
	begun = now_ms();
	run_crowd(CROWD);
	begun = now_ms() - begun;
	after = measure(s);
	print_message(
		"%d analyses in %lld ms; descriptors %u, %u; threads %u, %u; zombies %u; heap in use %ld, %ld KiB; anonymous %ld, %ld KiB\n",
		CROWD, (long long)begun, before.descriptors, after.descriptors, before.threads, after.threads,
		after.zombies, before.heap_kib, after.heap_kib, before.anon_kib, after.anon_kib);
	assert_true(after.descriptors <= before.descriptors);
	assert_true(after.threads <= before.threads);
	assert_int_equal(after.zombies, 0);
	if (!SANITIZED) { /* sanitizers keep what was freed for a while */
		assert_true(after.heap_kib < before.heap_kib + 64);
		assert_true(after.anon_kib < before.anon_kib + 1024);
	}
	assert_nothing_left(s);
}

/* One arena, so that what is measured is ours: with one for each thread the C library keeps some MiB more or less. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_500_analyses_from_16_threads_leave_nothing, site_setup,
						site_teardown),
	};

	mallopt(M_ARENA_MAX, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
