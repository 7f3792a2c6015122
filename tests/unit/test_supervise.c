/*
 * The event loop around an analysis, with a plain child in the place of PID 1 and a socket on which it reports.
 */
#include "place.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "process.h"
#include "supervise.h"

struct job {
	struct place place;
	struct supervise_job job;
	struct limits limits;
	struct supervise_result result;
	pid_t pid;
	int report[2], cancel[2];
	int terminated, killed;
	uint64_t bytes, files; /* what measure tells */
	int looks;
	enum look look;
	uint64_t looked, shortest; /* the last look, and the shortest time between two */
};

static int read_report(void *arg, struct command_report *ret)
{
	struct job *j = arg;
	ssize_t n = recv(j->report[0], ret, sizeof *ret, MSG_DONTWAIT);

	return n == sizeof *ret ? 1 : n == 0 ? 0 : -EAGAIN;
}

static void terminate(void *arg)
{
	struct job *j = arg;

	j->terminated++;
	pidfd_kill(j->job.pidfd, SIGTERM);
}

static void end(void *arg)
{
	struct job *j = arg;

	j->killed++;
	pidfd_kill(j->job.pidfd, SIGKILL);
}

static enum look measure(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct job *j = arg;

	j->looks++;
	*ret_bytes = j->bytes;
	*ret_files = j->files;
	return LOOK_WHOLE;
}

static void report(int fd, struct command_report r)
{
	if (send(fd, &r, sizeof r, 0) != sizeof r)
		_exit(1);
}

static int setup(void **state)
{
	struct job *j = calloc(1, sizeof *j);

	place_open(&j->place);
	limits_built_in(&j->limits);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, j->report), 0);
	assert_int_equal(pipe2(j->cancel, O_CLOEXEC), 0);
	j->job = (struct supervise_job){
		.report_fd = j->report[0],
		.out_fd = {-1, -1},
		.cancel_fd = {j->cancel[0], -1},
		.stdin_from = -1,
		.stdin_to = -1,
		.limits = &j->limits,
		.started = clock_now(),
		.arg = j,
		.read_report = read_report,
		.terminate = terminate,
		.kill = end,
	};
	for (int i = 0; i < STREAM_COUNT; i++)
		j->job.log_fd[i] = openat(j->place.fd, i ? "err" : "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	*state = j;
	return 0;
}

static int teardown(void **state)
{
	struct job *j = *state;

	supervise_result_done(&j->result);
	for (int i = 0; i < 2; i++) {
		fd_close(j->report[i]);
		fd_close(j->cancel[i]);
		fd_close(j->job.log_fd[i]);
	}
	fd_close(j->job.pidfd);
	waitpid(j->pid, NULL, 0);
	place_close(&j->place);
	free(j);
	return 0;
}

static void start(struct job *j, void (*body)(int report))
{
	j->pid = fork();
	if (j->pid == 0) {
		body(j->report[1]);
		_exit(0);
	}
	j->job.pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
	j->report[1] = fd_close(j->report[1]);
}

/* The child runs body; the parent supervises it to its end. */
static const struct evidence *run(struct job *j, void (*body)(int report))
{
	struct error err = ERROR_INIT;

	start(j, body);
	assert_int_equal(supervise(&j->job, &j->result, &err), 0);
	return &j->result.evidence;
}

static void sleeps(int fd)
{
	(void)fd;
	pause();
}

static void exits_3(int fd)
{
	report(fd, (struct command_report){.ended = true, .status = 3 << 8, .cpu_user_ns = 7000000});
}

static void meets_its_deadline(int fd)
{
	report(fd, (struct command_report){.deadline = true});
	report(fd, (struct command_report){.ended = true, .status = SIGTERM});
}

static void test_the_exit_status_is_what_pid_1_reported(void **state)
{
	struct job *j = *state;
	const struct evidence *e = run(j, exits_3);

	assert_true(e->started);
	assert_int_equal(e->exit_code, 3);
	assert_int_equal(e->signal, 0);
	assert_int_equal(j->result.usage.cpu_ms, 7);
	assert_int_equal(j->result.usage.memory_peak_bytes, -1);
	assert_int_equal(e->oom_kills, -1);
}

static void test_without_a_report_it_went_down_with_pid_1(void **state)
{
	struct job *j = *state;

	assert_int_equal(write(j->cancel[1], "\x0f\x0f", 2), 2); /* the second time at once */
	assert_int_equal(run(j, sleeps)->signal, SIGKILL);
	assert_int_equal(j->result.usage.cpu_ms, -1);
}

static void test_what_came_first_is_what_it_was_ended_for(void **state)
{
	struct job *j = *state;
	const struct evidence *e;

	j->bytes = j->limits.value[LIMIT_DISK] + 1;
	j->job.measure = measure;
	e = run(j, meets_its_deadline);
	assert_true(e->wall_reached);
	assert_false(e->disk_killed);
	assert_int_equal(e->signal, SIGTERM);
}

static void test_a_directory_that_grows_beyond_its_limit_ends_it(void **state)
{
	struct job *j = *state;
	const struct evidence *e;

	j->files = j->limits.value[LIMIT_FILES] + 1;
	j->job.measure = measure;
	e = run(j, sleeps);
	assert_true(e->disk_killed);
	assert_int_equal(j->killed, 1);
	assert_int_equal(j->result.disk_files_seen, j->files);
}

static enum look hide(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct job *j = arg;

	*ret_bytes = *ret_files = 0;
	return j->looks++, j->look;
}

static void test_what_cannot_be_looked_into_counts_as_over_the_limit(void **state)
{
	struct job *j = *state;

	j->look = LOOK_HIDDEN;
	j->job.measure = hide;
	assert_true(run(j, sleeps)->disk_killed);
	assert_true(j->result.disk_was_hidden);
	assert_int_equal(j->looks, 1);
}

static void test_three_looks_in_a_row_that_did_not_see_all_count_as_over_the_limit(void **state)
{
	struct job *j = *state;

	j->look = LOOK_MISSED;
	j->job.measure = hide;
	assert_true(run(j, sleeps)->disk_killed);
	assert_true(j->result.disk_was_hidden);
	assert_int_equal(j->looks, 3);
}

static enum look end_after_20_looks(void *arg, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct job *j = arg;

	if (j->looks > 0 && clock_now() - j->looked < j->shortest)
		j->shortest = clock_now() - j->looked;
	j->looked = clock_now();
	if (j->looks == 20)
		end(j);
	return measure(arg, ret_bytes, ret_files);
}

static void
test_a_disk_that_holds_its_limit_is_looked_at_often_when_nearly_full_and_ends_nothing(void **state)
{
	struct job *j = *state;
	const struct evidence *e;

	j->bytes = j->limits.value[LIMIT_DISK];
	j->job.measure = end_after_20_looks;
	j->job.disk_is_held = true;
	j->shortest = UINT64_MAX;
	e = run(j, sleeps);
	assert_false(e->disk_killed);
	assert_true(j->looks >= 20);
	/* A busy machine makes some of the looks late, but never one of them early. */
	assert_true(j->shortest < 200 * NSEC_PER_MSEC);
	assert_int_equal(j->result.disk_bytes_seen, j->bytes);
}

static void test_a_cancelled_one_is_asked_once_and_then_ended(void **state)
{
	struct job *j = *state;
	const struct evidence *e;

	assert_int_equal(write(j->cancel[1], "\x02", 1), 1);
	e = run(j, sleeps);
	assert_int_equal(e->cancel_signal, SIGINT);
	assert_int_equal(j->terminated, 1);
	assert_int_equal(j->killed, 0);
}

static void test_when_pid_1_does_not_keep_the_time_the_supervisor_does(void **state)
{
	struct job *j = *state;
	const struct evidence *e;

	j->limits.value[LIMIT_WALL] = 1;
	j->limits.value[LIMIT_GRACE] = 0;
	j->job.started -= 1900 * NSEC_PER_MSEC; /* init has two seconds to do it itself */
	e = run(j, sleeps);
	assert_true(e->wall_reached);
	assert_int_equal(j->killed, 1);
	assert_true(j->result.usage.wall_ms >= 2000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* epoll takes no plain file: a failure of ours while the command runs. */
static void test_what_we_fail_to_watch_is_ended_and_says_so(void **state)
{
	struct job *j = *state;
	struct error why = ERROR_INIT;

	j->job.cancel_fd[0] = j->job.log_fd[0];
	start(j, sleeps);
	assert_true(supervise(&j->job, &j->result, &why) < 0);
	assert_true(why.message[0]);
	assert_int_equal(j->killed, 1);
	assert_true(j->result.evidence.unwatched);
	assert_int_equal(verdict_decide(&j->result.evidence), VERDICT_LOST);
	assert_true(j->result.usage.wall_ms >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_exit_status_is_what_pid_1_reported),
		TEST(test_without_a_report_it_went_down_with_pid_1),
		TEST(test_what_came_first_is_what_it_was_ended_for),
		TEST(test_a_directory_that_grows_beyond_its_limit_ends_it),
		TEST(test_what_cannot_be_looked_into_counts_as_over_the_limit),
		TEST(test_three_looks_in_a_row_that_did_not_see_all_count_as_over_the_limit),
		TEST(test_a_disk_that_holds_its_limit_is_looked_at_often_when_nearly_full_and_ends_nothing),
		TEST(test_a_cancelled_one_is_asked_once_and_then_ended),
		TEST(test_what_we_fail_to_watch_is_ended_and_says_so),
		TEST(test_when_pid_1_does_not_keep_the_time_the_supervisor_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
