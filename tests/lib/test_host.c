/* Hosts of every kind: with their own children, their own signals, their own threads, and an end of their own. */
#include "site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void assert_succeeds(struct site *s, const char *id)
{
	fh_result *result = perform(s, id, "sleep 0.05; echo x > x");
	fh_error err = {0};

	if (fh_result_error(result, &err) != FH_OK)
		fail_msg("%s: %s", err.stage, err.message);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_committed(result), 1);
	fh_result_free(result);
}

static void test_a_host_may_ignore_sigchld(void **state)
{
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);

	assert_succeeds(*state, "h1");
	signal(SIGCHLD, before);
}

static atomic_bool stop_waiting;

/* A host that reaps whatever it finds. */
static void *wait_for_anybody(void *arg)
{
	unsigned *reaped = arg;

	while (!stop_waiting)
		if (waitpid(-1, NULL, WNOHANG) > 0)
			(*reaped)++;
		else
			sched_yield();
	return NULL;
}

static void test_a_host_may_wait_for_any_child(void **state)
{
	unsigned reaped = 0;
	pthread_t thread;

	stop_waiting = false;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_anybody, &reaped), 0);
	for (int i = 0; i < 5; i++)
		assert_succeeds(*state, NULL);
	stop_waiting = true;
	pthread_join(thread, NULL);
	print_message("the host has met %u of 5\n", reaped);
}

static void *start_and_end(void *arg)
{
	struct site *s = arg;
	fh_request *request = shell("t1", "sleep 0.3; echo x > x");
	fh_run *run = NULL;
	fh_error err = {0};

	if (fh_start(s->hood, request, 0, &run, &err) < 0)
		run = NULL;
	fh_request_free(request);
	return run;
}

static void test_the_thread_that_started_it_may_end(void **state)
{
	fh_result *result = NULL;
	fh_error err = {0};
	pthread_t thread;
	void *run;

	assert_int_equal(pthread_create(&thread, NULL, start_and_end, *state), 0);
	assert_int_equal(pthread_join(thread, &run), 0);
	assert_non_null(run);
	assert_int_equal(fh_run_wait(run, -1, &err), 1);
	assert_ok(fh_run_result(run, &result, &err), err);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	fh_result_free(result);
	fh_run_free(run);
}

static int child_of_host(fh_hood *hood, fh_run *run)
{
	fh_request *request = shell("forked", "true");
	fh_result *result = NULL;
	fh_error err = {0};
	char *text = NULL;

	if (fh_perform(hood, request, &result, &err) != -FH_REFUSED || !strstr(err.message, "child"))
		return 1;
	if (fh_list(hood, NULL, NULL, 0, &text, &err) != -FH_REFUSED)
		return 2;
	if (fh_run_wait(run, -1, &err) != -FH_REFUSED || fh_run_cancel(run, SIGTERM, &err) != -FH_REFUSED)
		return 3;
	fh_run_free(run);
	fh_close(hood);
	return 0;
}

static void test_a_child_of_the_host_cannot_use_or_end_what_is_its_parents(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("k1", "sleep 0.5; echo x > x");
	fh_result *result = NULL;
	fh_run *run = NULL;
	fh_error err = {0};
	int status;
	pid_t pid;

	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child_of_host(s->hood, run));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fh_run_wait(run, -1, &err), 1);
	assert_ok(fh_run_result(run, &result, &err), err);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_committed(result), 1);
	fh_result_free(result);
	fh_run_free(run);
	fh_request_free(request);
	assert_nothing_left(s);
}

/* A child that lives on has copies of every descriptor; they must not keep anything locked. */
static void test_a_child_that_lives_on_keeps_nothing_locked(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("l1", "exec sleep 31.4161");
	fh_run *run = NULL;
	fh_error err = {0};
	fh_result *result = NULL;
	pid_t pid;

	assert_ok(fh_request_set(request, "cpus", "1", &err), err);
	assert_ok(fh_request_set(request, "allow_unlimited", "true", &err), err);
	assert_ok(fh_request_set(request, "keep", "always", &err), err);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	assert_true(await_process("sleep 31.4161", true));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	fh_run_free(run);
	assert_ok(fh_workspace_cleanup(s->hood, "l1", &err), err);
	assert_ok(fh_request_set(request, "keep", "never", &err), err);
	for (int i = 0; i < 8; i++) { /* more than there are CPUs to be had for one alone */
		assert_ok(fh_request_set(request, "again", "true", &err), err);
		assert_ok(fh_request_command(request, (const char *const[]){"true", NULL}, &err), err);
		assert_ok(fh_perform(s->hood, request, &result, &err), err);
		if (fh_result_error(result, &err) != FH_OK)
			fail_msg("%s", err.message);
		assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
		fh_result_free(result);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fh_request_free(request);
}

/* The host as a process of its own: starts an analysis and says so. */
static void be_host(const char *config, int said)
{
	fh_request *request = shell("z1", "exec sleep 31.4162");
	fh_hood *hood = NULL;
	fh_run *run = NULL;
	fh_error err = {0};

	if (fh_open(config, NULL, &hood, &err) < 0 || fh_start(hood, request, 0, &run, &err) < 0)
		_exit(1);
	(void)!write(said, "x", 1);
	for (;;)
		pause();
}

static void test_after_kill_9_of_the_host_the_analysis_is_dead_at_once(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	int64_t begun;
	json_t *json;
	int said[2];
	char c, *text;
	pid_t pid;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_host(s->config, said[1]);
	assert_int_equal(read(said[0], &c, 1), 1);
	assert_true(await_process("sleep 31.4162", true));
	kill(pid, SIGKILL);
	begun = now_ms();
	assert_true(await_process("sleep 31.4162", false));
	print_message("dead %lld ms after its host\n", (long long)(now_ms() - begun));
	assert_true(now_ms() - begun < 2000);
	waitpid(pid, NULL, 0);
	close(said[0]);
	close(said[1]);
	assert_int_equal(fh_gc(s->hood, &text, &err), 0);
	json = parse(text);
	assert_int_equal(json_integer_value(json_object_get(json, "lost")), 1);
	json_decref(json);
	assert_nothing_left(s);
}

static void test_a_reader_that_is_gone_is_an_error_and_no_sigpipe(void **state)
{
	struct site *s = *state;
	fh_result *result = perform(s, "p1", "head -c 1000000 /dev/zero > big; echo text");
	fh_error err = {0};
	sigset_t pending;
	int ends[2];

	fh_result_free(result);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	signal(SIGPIPE, SIG_DFL);
	assert_true(fh_get(s->hood, "p1", 0, "big", ends[1], &err) < 0);
	assert_true(fh_log_copy(s->hood, "p1", 0, FH_STDOUT, ends[1], 0, -1, &err) < 0);
	assert_int_equal(err.errnum, EPIPE);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
	close(ends[1]);
}

/* Every signal that the host gets goes to the host's own threads. */
static atomic_int handled_by;

static void note_thread(int signal)
{
	(void)signal;
	handled_by = gettid();
}

static void test_the_librarys_threads_take_no_signal_of_the_hosts(void **state)
{
	struct site *s = *state;
	struct sigaction action = {.sa_handler = note_thread, .sa_flags = SA_RESTART};
	fh_request *request = shell("s1", "exec sleep 31.4163");
	fh_run *run = NULL;
	fh_error err = {0};
	char path[64], line[256];
	unsigned others = 0;
	DIR *dir;
	struct dirent *e;

	sigaction(SIGUSR1, &action, NULL);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	assert_true(await_process("sleep 31.4163", true));
	dir = opendir("/proc/self/task");
	while ((e = readdir(dir))) {
		FILE *f;
		unsigned long long blocked = 0;

		if (e->d_name[0] == '.' || atoi(e->d_name) == gettid())
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%.20s/status", e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof line, f))
			sscanf(line, "SigBlk: %llx", &blocked);
		if (f)
			fclose(f);
		others += blocked >> (SIGUSR1 - 1) & blocked >> (SIGTERM - 1) & blocked >> (SIGCHLD - 1) & 1;
	}
	closedir(dir);
	assert_true(others >= 1);
	kill(getpid(), SIGUSR1);
	assert_int_equal(handled_by, gettid());
	fh_run_free(run);
	fh_request_free(request);
}

static void test_every_descriptor_is_closed_on_exec(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("e1", "exec sleep 31.4164");
	fh_run *run = NULL;
	fh_error err = {0};

	assert_ok(fh_start(s->hood, request, FH_FOLLOW, &run, &err), err);
	assert_true(await_process("sleep 31.4164", true));
	for (int fd = 3; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);
		char path[64], target[256] = "";

		if (flags < 0 || flags & FD_CLOEXEC)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		(void)!readlink(path, target, sizeof target - 1);
		if (strncmp(target, s->directory, strlen(s->directory)) == 0 || strstr(target, "eventfd") ||
		    strstr(target, "pidfd") || strstr(target, "cgroup"))
			fail_msg("descriptor %d, %s, would be inherited", fd, target);
	}
	fh_run_free(run);
	fh_request_free(request);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_host_may_ignore_sigchld),
		TEST(test_a_host_may_wait_for_any_child),
		TEST(test_the_thread_that_started_it_may_end),
		TEST(test_a_child_of_the_host_cannot_use_or_end_what_is_its_parents),
		TEST(test_a_child_that_lives_on_keeps_nothing_locked),
		TEST(test_after_kill_9_of_the_host_the_analysis_is_dead_at_once),
		TEST(test_a_reader_that_is_gone_is_an_error_and_no_sigpipe),
		TEST(test_the_librarys_threads_take_no_signal_of_the_hosts),
		TEST(test_every_descriptor_is_closed_on_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
