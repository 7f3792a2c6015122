/*
 * Readers who are slow, stopped or gone, and the line of progress that stays out of the output's way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "buffer.h"
#include "file.h"
#include "screen.h"
#include "signals.h"
#include "tee.h"

struct bench {
	int read_fd, write_fd;
	struct tee *tee;
};

static void bench_open(struct bench *b, bool is_terminal, size_t queue_max)
{
	int fds[2];
	struct error err = ERROR_INIT;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	b->read_fd = fds[0];
	b->write_fd = fds[1];
	assert_int_equal(tee_open(b->write_fd, is_terminal, queue_max, &b->tee, &err), 0);
}

static void bench_close(struct bench *b)
{
	fd_close(b->read_fd);
	fd_close(b->write_fd);
}

/* Waits for exactly these bytes. */
static void expect(const struct bench *b, const char *text)
{
	char got[4096];
	size_t want = strlen(text), n = 0;

	assert_true(want < sizeof got);
	while (n < want) {
		ssize_t r = read(b->read_fd, got + n, want - n);

		assert_true(r > 0);
		n += (size_t)r;
	}
	got[n] = 0;
	assert_string_equal(got, text);
}

static void test_a_stopped_reader_does_not_stop_the_writer(void **state UNUSED)
{
	enum { PIECE = 4096, PIECES = 256 };
	char piece[PIECE];
	struct bench b;

	bench_open(&b, false, TEE_QUEUE_MAX);
	memset(piece, 'x', sizeof piece);
	for (int i = 0; i < PIECES; i++) /* sixteen times what the pipe takes, and nobody reads */
		tee_write(b.tee, 0, piece, sizeof piece);
	assert_int_equal(tee_dropped(b.tee), 0);
	for (size_t n = 0; n < (size_t)PIECE * PIECES;) {
		ssize_t r = read(b.read_fd, piece, sizeof piece);

		assert_true(r > 0);
		n += (size_t)r;
	}
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

static void test_what_does_not_fit_is_counted_and_its_place_is_marked(void **state UNUSED)
{
	enum { PIECE = 4096, PIECES = 256 };
	_cleanup_buffer_ struct buffer got = {0};
	char piece[PIECE];
	uint64_t dropped;
	struct bench b;

	bench_open(&b, false, 8 * PIECE);
	memset(piece, 'x', sizeof piece);
	for (int i = 0; i < PIECES; i++)
		tee_write(b.tee, 0, piece, sizeof piece);
	dropped = tee_dropped(b.tee);
	assert_true(dropped > 0 && dropped % PIECE == 0);
	tee_say(b.tee, "the end\n");
	while (!got.data || !strstr(got.data, "the end\n")) {
		ssize_t r = read(b.read_fd, piece, sizeof piece);

		assert_true(r > 0);
		assert_int_equal(buffer_append(&got, piece, (size_t)r), 0);
	}
	assert_non_null(strstr(got.data, "x\n[fumehood: "));
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

static void test_a_reader_who_is_gone_is_no_error(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, false, TEE_QUEUE_MAX);
	b.read_fd = fd_close(b.read_fd);
	for (int i = 0; i < 1000; i++)
		tee_write(b.tee, 0, "x\n", 2);
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

static void test_a_full_disk_is_said(void **state UNUSED)
{
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct error err = ERROR_INIT;
	struct tee *t;

	assert_true(full >= 0);
	assert_int_equal(tee_open(full, false, TEE_QUEUE_MAX, &t, &err), 0);
	tee_write(t, 0, "x", 1);
	assert_int_equal(tee_finish(t, -1), -ENOSPC);
}

static void test_a_signal_ends_the_wait_for_a_stopped_reader(void **state UNUSED)
{
	_cleanup_close_ int cancel = eventfd(1, EFD_CLOEXEC);
	char piece[4096] = {0};
	struct bench b;

	bench_open(&b, false, TEE_QUEUE_MAX);
	for (int i = 0; i < 64; i++)
		tee_write(b.tee, 0, piece, sizeof piece);
	assert_int_equal(tee_finish(b.tee, cancel), 0);
	/* The thread wakes, finds nobody, and frees what it was left with. The descriptor stays its own. */
	fd_close(b.read_fd);
}

static void test_streams_of_one_terminal_keep_their_order(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, true, TEE_QUEUE_MAX);
	tee_write(b.tee, 0, "one\n", 4);
	tee_write(b.tee, 1, "two\n", 4);
	tee_write(b.tee, 0, "three\n", 6);
	expect(&b, "one\ntwo\nthree\n");
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

static void test_the_status_line_is_erased_before_output_and_drawn_again(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, true, TEE_QUEUE_MAX);
	tee_status(b.tee, "running 1 s");
	expect(&b, "\r\x1b[Krunning 1 s");
	tee_write(b.tee, 0, "line\n", 5);
	expect(&b, "\r\x1b[Kline\n\r\x1b[Krunning 1 s");
	tee_status(b.tee, "running 2 s");
	expect(&b, "\r\x1b[Krunning 2 s");
	tee_say(b.tee, "done\n");
	expect(&b, "\r\x1b[Kdone\n\r\x1b[Krunning 2 s");
	assert_int_equal(tee_finish(b.tee, -1), 0);
	expect(&b, "\r\x1b[K");
	bench_close(&b);
}

static void test_the_status_line_never_joins_an_open_line(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, true, TEE_QUEUE_MAX);
	tee_write(b.tee, 1, "50 %\r", 5);
	expect(&b, "50 %\r");
	tee_status(b.tee, "running");
	tee_write(b.tee, 1, "99 %\r", 5);
	expect(&b, "99 %\r");
	tee_say(b.tee, "verdict\n");
	expect(&b, "\nverdict\n\r\x1b[Krunning");
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

static void test_a_pipe_gets_the_bytes_and_no_status(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, false, TEE_QUEUE_MAX);
	tee_status(b.tee, "running");
	tee_write(b.tee, 0, "\x1b[2J\xff", 5);
	tee_say(b.tee, "verdict\n");
	assert_int_equal(tee_finish(b.tee, -1), 0);
	expect(&b, "\x1b[2J\xff\nverdict\n");
	bench_close(&b);
}

static void test_a_sequence_cut_between_two_writes_is_still_filtered(void **state UNUSED)
{
	struct bench b;

	bench_open(&b, true, TEE_QUEUE_MAX);
	tee_write(b.tee, 0, "\x1b", 1);
	tee_write(b.tee, 1, "]0;err\n", 7);
	tee_write(b.tee, 0, "]0;title\x07\n", 10);
	expect(&b, "]0;err\n\\x1b]0;title\\x07\n");
	assert_int_equal(tee_finish(b.tee, -1), 0);
	bench_close(&b);
}

/* A post-process's, beside stdout and stderr. */
static void test_a_third_stream_has_a_filter_of_its_own(void **state UNUSED)
{
	static const char untouched[64] = {0};
	struct {
		struct screen screen;
		char beyond[64];
	} s = {.screen = {.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .is_terminal = true}};

	assert_int_equal(screen_output(&s.screen, 2, "a\x1b[3", 4), 0);
	assert_memory_equal(s.beyond, untouched, sizeof untouched);
	assert_false(s.screen.status_shown);
	assert_true(s.screen.in_line);
	assert_int_equal(screen_end(&s.screen), 0);
	fd_close(s.screen.fd);
}

static int count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	int n = 0;

	assert_non_null(tasks);
	while ((e = readdir(tasks)))
		n += e->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static void test_who_shows_nothing_has_no_thread(void **state UNUSED)
{
	int before = count_threads();
	struct bench b;

	bench_open(&b, true, 1 << 20);
	tee_status(b.tee, NULL);
	assert_int_equal(count_threads(), before);
	assert_int_equal(tee_finish(b.tee, -1), 0);
	fd_close(b.write_fd);
	b.write_fd = -1;
	assert_int_equal(read(b.read_fd, (char[1]){0}, 1), 0);
	bench_close(&b);
}

static void test_signals_become_bytes_and_ignored_ones_stay_ignored(void **state UNUSED)
{
	struct error err = ERROR_INIT;
	unsigned char bytes[8];
	int fd;

	signal(SIGHUP, SIG_IGN);
	assert_int_equal(signals_open(&fd, &err), 0);
	raise(SIGHUP);
	raise(SIGINT);
	raise(SIGINT);
	raise(SIGTERM);
	assert_int_equal(read(fd, bytes, sizeof bytes), 3);
	assert_int_equal(bytes[0], SIGINT);
	assert_int_equal(bytes[1], SIGINT);
	assert_int_equal(bytes[2], SIGTERM);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	fd_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stopped_reader_does_not_stop_the_writer),
		cmocka_unit_test(test_what_does_not_fit_is_counted_and_its_place_is_marked),
		cmocka_unit_test(test_a_reader_who_is_gone_is_no_error),
		cmocka_unit_test(test_a_full_disk_is_said),
		cmocka_unit_test(test_a_signal_ends_the_wait_for_a_stopped_reader),
		cmocka_unit_test(test_streams_of_one_terminal_keep_their_order),
		cmocka_unit_test(test_the_status_line_is_erased_before_output_and_drawn_again),
		cmocka_unit_test(test_the_status_line_never_joins_an_open_line),
		cmocka_unit_test(test_a_pipe_gets_the_bytes_and_no_status),
		cmocka_unit_test(test_a_sequence_cut_between_two_writes_is_still_filtered),
		cmocka_unit_test(test_a_third_stream_has_a_filter_of_its_own),
		cmocka_unit_test(test_who_shows_nothing_has_no_thread),
		cmocka_unit_test(test_signals_become_bytes_and_ignored_ones_stay_ignored),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
