/* What a crash, a reboot or a forger leaves in the state directory, made by hand, then cleaned up. */
#include "test_workspace_site.h"

#include <signal.h>

#include "clock.h"
#include "file.h"
#include "text.h"

static json_t *record_load(struct bench *b, const char *id)
{
	char path[256];
	json_t *json;

	snprintf(path, sizeof path, "%s/runs/%s/record.json", b->state_dir, id);
	json = json_load_file(path, 0, NULL);
	assert_non_null(json);
	return json;
}

static void record_store(struct bench *b, const char *id, json_t *json)
{
	char path[256];

	snprintf(path, sizeof path, "%s/runs/%s/record.json", b->state_dir, id);
	assert_int_equal(json_dump_file(json, path, 0), 0);
	json_decref(json);
}

static void record_change(struct bench *b, const char *id, const char *key, json_t *value)
{
	json_t *json = record_load(b, id);

	assert_int_equal(json_object_set_new(json, key, value), 0);
	record_store(b, id, json);
}

static json_t *process_json(pid_t pid, uint64_t start)
{
	return json_pack("{s:i, s:I}", "pid", (int)pid, "start", (json_int_t)start);
}

static const char *making_of(const char *id)
{
	static char path[600];

	snprintf(path, sizeof path, "%s.new", scratch_of(id));
	return path;
}

static const char *gone_of(const char *id)
{
	static char path[600];

	snprintf(path, sizeof path, "%s.gone", scratch_of(id));
	return path;
}

/* The states between the steps, as a kill at that point leaves them. */
enum stop {
	AFTER_FOLDER,
	AFTER_FIRST_RECORD,
	AFTER_MAKING,
	AFTER_SECOND_RECORD,
	AFTER_RENAME,
	AFTER_SCRATCH,
	AFTER_TMP,
	REMOVED_SCRATCH,
	EMPTIED_WORKSPACE,
	REMOVED_WORKSPACE,
	RETIRED_WORKSPACE,
	STOPS
};

static void leave_half_done(struct bench *b, enum stop stop)
{
	leave_dead_run(b, "a");
	if (stop == AFTER_TMP)
		return;
	if (stop == RETIRED_WORKSPACE) {
		assert_int_equal(renameat(b->place.fd, "root/hood-a", b->place.fd, gone_of("a")), 0);
		return;
	}
	assert_int_equal(unlinkat(b->place.fd, tmp_of("a"), AT_REMOVEDIR), 0);
	if (stop == AFTER_SCRATCH)
		return;
	assert_int_equal(unlinkat(b->place.fd, scratch_of("a"), AT_REMOVEDIR), 0);
	if (stop == AFTER_RENAME || stop == REMOVED_SCRATCH)
		return;
	assert_int_equal(unlinkat(b->place.fd, "root/hood-a/result", 0), 0);
	if (stop == EMPTIED_WORKSPACE)
		return;
	if (stop == REMOVED_WORKSPACE) {
		assert_int_equal(unlinkat(b->place.fd, "root/hood-a", AT_REMOVEDIR), 0);
		return;
	}
	assert_int_equal(renameat(b->place.fd, "root/hood-a", b->place.fd, making_of("a")), 0);
	if (stop == AFTER_SECOND_RECORD)
		return;
	record_change(b, "a", "inode", json_integer(0));
	if (stop == AFTER_MAKING)
		return;
	assert_int_equal(unlinkat(b->place.fd, making_of("a"), AT_REMOVEDIR), 0);
	if (stop == AFTER_FIRST_RECORD)
		return;
	assert_int_equal(unlinkat(b->place.fd, "state/runs/a/record.json", 0), 0);
}

static void test_gc_finishes_whatever_step_was_the_last(void **state)
{
	(void)state;
	for (int stop = 0; stop < STOPS; stop++) {
		struct error err = ERROR_INIT;
		struct workspace_gc_counts counts;
		struct bench b;

		bench_open(&b);
		leave_half_done(&b, (enum stop)stop);
		counts = gc(&b, &err);
		assert_int_equal(counts.seen, 1);
		assert_int_equal(counts.failed, 0);
		assert_int_equal(counts.taken, stop == AFTER_FOLDER ? 0 : 1);
		assert_nothing_left(&b);
		assert_int_equal(gc(&b, &err).seen, 0);
		bench_close(&b);
	}
}

static void test_cleanup_and_the_next_run_finish_it_too(void **state)
{
	(void)state;
	for (int stop = 0; stop < STOPS; stop++) {
		struct error err = ERROR_INIT;
		struct workspace w;
		struct bench b;

		bench_open(&b);
		leave_half_done(&b, (enum stop)stop);
		assert_int_equal(workspace_take(&b.site, "a", remove_it, NULL, &err), 0);
		assert_nothing_left(&b);
		leave_half_done(&b, (enum stop)stop);
		assert_int_equal(workspace_open(&b.site, "a", TOKEN, geteuid(), getegid(), NULL, remove_it,
						NULL, &w, &err),
				 0);
		assert_int_equal(workspace_remove(&w, &err), 0);
		workspace_close(&w);
		assert_nothing_left(&b);
		bench_close(&b);
	}
}

static void test_a_stranger_at_our_place_survives_a_half_made_workspace(void **state)
{
	static const enum stop stops[] = {AFTER_FIRST_RECORD, AFTER_MAKING, AFTER_SECOND_RECORD};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct error err = ERROR_INIT;
		struct bench b;

		bench_open(&b);
		leave_half_done(&b, stops[i]);
		put_dir(b.place.fd, "root/hood-a");
		put_file(b.place.fd, "root/hood-a/precious", "precious");
		assert_int_equal(gc(&b, &err).taken, 1);
		assert_content(b.place.fd, "root/hood-a/precious", "precious");
		assert_int_equal(count_entries(b.place.fd, "root"), 1);
		assert_int_equal(count_entries(b.place.fd, "state/runs"), 0);
		bench_close(&b);
	}
}

static void test_folders_on_their_way_out_are_removed(void **state)
{
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	put_dir(b.place.fd, "state/runs/.gone-0123");
	put_file(b.place.fd, "state/runs/.gone-0123/record.json", "{}");
	put_file(b.place.fd, "state/runs/.gone-0123/lock", "");
	assert_int_equal(gc(&b, &err).seen, 0);
	assert_nothing_left(&b);
	bench_close(&b);
}

static pid_t start_sleeper(struct process_id *ret)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(process_identify(pid, ret), 0);
	return pid;
}

static void test_what_the_record_names_is_killed_first(void **state)
{
	struct error err = ERROR_INIT;
	struct process_id sleeper;
	struct bench b;
	int status;
	pid_t pid;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	pid = start_sleeper(&sleeper);
	record_change(&b, "a", "init", process_json(pid, sleeper.start));
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	assert_int_equal(waitpid(pid, &status, WNOHANG), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	bench_close(&b);
}

/* change: what is wrong about the process in the record. It must live. */
static void check_not_killed(const char *key, json_t *value, bool taken, uint64_t start_offset)
{
	struct error err = ERROR_INIT;
	struct process_id sleeper;
	struct bench b;
	int status;
	pid_t pid;

	bench_open(&b);
	leave_dead_run(&b, "a");
	pid = start_sleeper(&sleeper);
	record_change(&b, "a", "init", process_json(pid, sleeper.start + start_offset));
	if (key)
		record_change(&b, "a", key, value);
	assert_int_equal(gc(&b, &err).taken, taken);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	bench_close(&b);
}

static void test_a_pid_that_was_used_again_is_left_alone(void **state)
{
	(void)state;
	check_not_killed(NULL, NULL, true, 1);
}

static void test_after_a_reboot_nothing_is_killed_and_all_is_removed(void **state)
{
	(void)state;
	check_not_killed("boot", json_string("11111111-2222-3333-4444-555555555555"), true, 0);
}

static void test_another_machines_processes_are_left_alone(void **state)
{
	(void)state;
	check_not_killed("machine", json_string("00000000000000000000000000000000"), false, 0);
}

static void test_after_a_reboot_a_held_one_has_lost_its_owner(void **state)
{
	struct process_id me;
	struct error err = ERROR_INIT;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(process_identify(getpid(), &me), 0);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &path, &err), 0);
	assert_int_equal(gc(&b, &err).alive, 1);
	record_change(&b, "a", "boot", json_string("11111111-2222-3333-4444-555555555555"));
	/* Device numbers are new after a reboot. */
	record_change(&b, "a", "device", json_integer(1));
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	free(path);
	bench_close(&b);
}

static void test_a_held_ones_pid_used_again_does_not_hold_it(void **state)
{
	struct process_id me;
	struct error err = ERROR_INIT;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(process_identify(getpid(), &me), 0);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &path, &err), 0);
	record_change(&b, "a", "process", process_json(me.pid, me.start + 1));
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	free(path);
	bench_close(&b);
}

/* A forged record: gc must count it as foreign and touch nothing at all. */
static void check_foreign(struct bench *b)
{
	struct error err = ERROR_INIT;
	struct workspace_gc_counts counts;
	struct workspace w;

	put_dir(b->place.fd, "elsewhere");
	put_file(b->place.fd, "elsewhere/precious", "precious");
	counts = gc(b, &err);
	assert_int_equal(counts.seen, 1);
	assert_int_equal(counts.foreign, 1);
	assert_int_equal(counts.taken + counts.failed + counts.alive, 0);
	assert_true(workspace_take(&b->site, "a", remove_it, NULL, &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_true(workspace_open(&b->site, "a", TOKEN, geteuid(), getegid(), NULL, remove_it, NULL, &w,
				   &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_content(b->place.fd, "elsewhere/precious", "precious");
	assert_content(b->place.fd, "root/hood-a/result", "42");
	assert_true(is_there(b->place.fd, "state/runs/a/record.json"));
}

static void check_planted(const char *key, json_t *value)
{
	struct bench b;

	bench_open(&b);
	leave_dead_run(&b, "a");
	record_change(&b, "a", key, value);
	check_foreign(&b);
	bench_close(&b);
}

static void test_a_planted_record_makes_gc_touch_nothing(void **state)
{
	(void)state;
	check_planted("path", json_string("/etc"));
	check_planted("path", json_string("/tmp/hood-b"));
	check_planted("scratch", json_string("/etc"));
	check_planted("token", json_string("ffffffffffffffffffffffffffffffff"));
	check_planted("id", json_string("b"));
	check_planted("machine", json_string("00000000000000000000000000000000"));
	check_planted("uid", json_integer(geteuid() + 1));
}

static void test_another_directory_at_our_path_is_left_alone(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	assert_int_equal(renameat(b.place.fd, "root/hood-a", b.place.fd, "root/ours"), 0);
	put_dir(b.place.fd, "root/hood-a");
	put_file(b.place.fd, "root/hood-a/result", "42");
	check_foreign(&b);
	bench_close(&b);
}

static void test_a_link_at_our_path_is_left_alone(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	assert_int_equal(renameat(b.place.fd, "root/hood-a", b.place.fd, "root/ours"), 0);
	put_link(b.place.fd, "root/hood-a", "ours");
	check_foreign(&b);
	bench_close(&b);
}

static void test_a_linked_folder_is_not_followed(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace_gc_counts counts;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	assert_int_equal(renameat(b.place.fd, "state/runs/a", b.place.fd, "moved"), 0);
	put_link(b.place.fd, "state/runs/a", "../../moved");
	put_link(b.place.fd, "state/runs/dangling", "nowhere");
	put_file(b.place.fd, "state/runs/file", "");
	put_dir(b.place.fd, "state/runs/not an id");
	counts = gc(&b, &err);
	assert_int_equal(counts.seen, 4);
	assert_int_equal(counts.foreign, 4);
	assert_true(workspace_take(&b.site, "a", remove_it, NULL, &err) < 0);
	assert_content(b.place.fd, "root/hood-a/result", "42");
	assert_true(is_there(b.place.fd, "moved/record.json"));
	bench_close(&b);
}

static void test_a_record_that_is_a_link_or_open_to_others_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	put_mode(b.place.fd, "state/runs/a/record.json", 0666);
	assert_int_equal(gc(&b, &err).failed, 1);
	assert_int_equal(err.kind, ERROR_REFUSED);
	put_mode(b.place.fd, "state/runs/a/record.json", 0600);
	assert_int_equal(renameat(b.place.fd, "state/runs/a/record.json", b.place.fd, "record"), 0);
	put_link(b.place.fd, "state/runs/a/record.json", "../../../record");
	assert_int_equal(gc(&b, &err).failed, 1);
	assert_int_equal(unlinkat(b.place.fd, "state/runs/a/record.json", 0), 0);
	assert_int_equal(linkat(b.place.fd, "record", b.place.fd, "state/runs/a/record.json", 0), 0);
	assert_int_equal(gc(&b, &err).failed, 1);
	assert_content(b.place.fd, "root/hood-a/result", "42");
	bench_close(&b);
}

static void test_nonsense_in_one_record_does_not_stop_the_others(void **state)
{
	static const char *const nonsense[] = {"{", "[]", "null", "{\"version\": 1}", "\xff\xff"};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct error err = ERROR_INIT;
		struct workspace_gc_counts counts;
		struct bench b;

		bench_open(&b);
		leave_dead_run(&b, "a");
		leave_dead_run(&b, "b");
		leave_dead_run(&b, "c");
		put_file(b.place.fd, "state/runs/b/record.json", nonsense[i]);
		counts = gc(&b, &err);
		assert_int_equal(counts.failed, 1);
		assert_int_equal(counts.taken, 2);
		assert_non_null(strstr(err.message, "'b'"));
		assert_content(b.place.fd, "root/hood-b/result", "42");
		assert_content(b.place.fd, "state/runs/.damaged-b/record.json", nonsense[i]);
		/* Once is enough: it is in nobody's way any more. */
		counts = gc(&b, &err);
		assert_int_equal(counts.failed, 0);
		assert_int_equal(counts.foreign, 1);
		bench_close(&b);
	}
}

static void test_a_record_of_another_version_stays_where_it_is(void **state)
{
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	put_file(b.place.fd, "state/runs/a/record.json", "{\"version\": 4, \"new\": true}");
	assert_int_equal(gc(&b, &err).failed, 1);
	assert_content(b.place.fd, "state/runs/a/record.json", "{\"version\": 4, \"new\": true}");
	bench_close(&b);
}

static void test_a_record_that_could_not_be_read_back_is_not_written(void **state)
{
	struct error err = ERROR_INIT;
	char *text = calloc(1, 16 * 1024 * 1024);
	struct workspace w;
	struct bench b;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 16 * 1024 * 1024 - 1);
	bench_open(&b);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	w.record.extra = json_pack("{s:s}", "long", text);
	assert_true(workspace_save(&w, &err) < 0);
	assert_non_null(strstr(err.message, "16 MiB"));
	json_decref(w.record.extra);
	w.record.extra = NULL;
	assert_int_equal(workspace_save(&w, &err), 0);
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	bench_close(&b);
	free(text);
}

static void test_an_empty_record_means_that_nothing_was_made(void **state)
{
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_half_done(&b, AFTER_FIRST_RECORD);
	put_file(b.place.fd, "state/runs/a/record.json", "");
	assert_int_equal(gc(&b, &err).failed, 0);
	assert_nothing_left(&b);
	bench_close(&b);
}

static void test_removing_survives_what_the_analysis_did_to_its_directory(void **state)
{
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	put_dir(b.place.fd, "root/hood-a/locked");
	put_file(b.place.fd, "root/hood-a/locked/f", "x");
	put_link(b.place.fd, "root/hood-a/up", "..");
	put_mode(b.place.fd, "root/hood-a/locked", 0);
	put_mode(b.place.fd, "root/hood-a", 0);
	put_mode(b.place.fd, scratch_of("a"), 0);
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	bench_close(&b);
}

/* Retired, and its remover was killed before it had begun. */
static void leave_retired(struct bench *b, const char *id)
{
	struct error err = ERROR_INIT;
	struct workspace w;

	assert_int_equal(open_plain(b, id, &w, &err), 0);
	put_file(w.fd, "result", "42");
	put_mode(w.fd, ".", 0);
	assert_int_equal(workspace_retire(&w), 1);
	workspace_close(&w);
}

static void test_a_retired_one_is_out_of_the_way_at_once(void **state)
{
	const char *other = "ffffffffffffffffffffffffffffffff";
	struct error err = ERROR_INIT;
	struct workspace old, new;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(open_plain(&b, "a", &old, &err), 0);
	put_file(old.fd, "result", "42");
	assert_int_equal(workspace_retire(&old), 1);
	assert_int_equal(faccessat(b.place.fd, "root/hood-a", F_OK, 0), -1);
	assert_int_equal(workspace_count_retired(&b.site), 1);
	assert_int_equal(
		workspace_open(&b.site, "a", other, geteuid(), getegid(), NULL, NULL, NULL, &new, &err), 0);
	put_file(new.fd, "result", "43");
	/* Somebody is at it, so gc leaves it alone; and whoever is at it leaves the new one alone. */
	assert_int_equal(gc(&b, &err).failed, 0);
	assert_int_equal(faccessat(b.place.fd, gone_of("a"), F_OK, 0), 0);
	assert_int_equal(workspace_remove(&old, &err), 0);
	workspace_close(&old);
	assert_int_equal(faccessat(b.place.fd, gone_of("a"), F_OK, 0), -1);
	assert_int_equal(workspace_count_retired(&b.site), 0);
	assert_int_equal(faccessat(b.place.fd, "root/hood-a/result", F_OK, 0), 0);
	assert_int_equal(workspace_remove(&new, &err), 0);
	workspace_close(&new);
	assert_nothing_left(&b);
	bench_close(&b);
}

static void test_gc_removes_a_retired_one_and_not_its_successor(void **state)
{
	const char *other = "ffffffffffffffffffffffffffffffff";
	struct error err = ERROR_INIT;
	struct workspace new;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_retired(&b, "a");
	assert_int_equal(
		workspace_open(&b.site, "a", other, geteuid(), getegid(), NULL, NULL, NULL, &new, &err), 0);
	put_file(new.fd, "result", "43");
	assert_int_equal(gc(&b, &err).failed, 0);
	assert_int_equal(faccessat(b.place.fd, gone_of("a"), F_OK, 0), -1);
	assert_int_equal(faccessat(b.place.fd, "root/hood-a/result", F_OK, 0), 0);
	assert_int_equal(workspace_remove(&new, &err), 0);
	workspace_close(&new);
	assert_nothing_left(&b);
	bench_close(&b);
}

static void test_another_directory_with_a_last_name_is_left_alone(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	struct bench b;

	(void)state;
	bench_open(&b);
	put_dir(b.place.fd, gone_of("a"));
	put_file(b.place.fd, strcat(strcpy((char[700]){0}, gone_of("a")), "/precious"), "x");
	/* It is in the way: then it is removed under its own name. */
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_int_equal(workspace_retire(&w), 0);
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	/* Or came when ours had gone. */
	assert_int_equal(renameat(b.place.fd, gone_of("a"), b.place.fd, "theirs"), 0);
	leave_retired(&b, "a");
	assert_int_equal(renameat(b.place.fd, gone_of("a"), b.place.fd, "ours"), 0);
	assert_int_equal(renameat(b.place.fd, "theirs", b.place.fd, gone_of("a")), 0);
	assert_int_equal(gc(&b, &err).failed, 0);
	assert_int_equal(count_entries(b.place.fd, gone_of("a")), 1);
	assert_int_equal(count_entries(b.place.fd, "state/runs"), 0);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gc_finishes_whatever_step_was_the_last),
		cmocka_unit_test(test_cleanup_and_the_next_run_finish_it_too),
		cmocka_unit_test(test_a_stranger_at_our_place_survives_a_half_made_workspace),
		cmocka_unit_test(test_folders_on_their_way_out_are_removed),
		cmocka_unit_test(test_a_retired_one_is_out_of_the_way_at_once),
		cmocka_unit_test(test_gc_removes_a_retired_one_and_not_its_successor),
		cmocka_unit_test(test_another_directory_with_a_last_name_is_left_alone),
		cmocka_unit_test(test_what_the_record_names_is_killed_first),
		cmocka_unit_test(test_a_pid_that_was_used_again_is_left_alone),
		cmocka_unit_test(test_after_a_reboot_nothing_is_killed_and_all_is_removed),
		cmocka_unit_test(test_another_machines_processes_are_left_alone),
		cmocka_unit_test(test_after_a_reboot_a_held_one_has_lost_its_owner),
		cmocka_unit_test(test_a_held_ones_pid_used_again_does_not_hold_it),
		cmocka_unit_test(test_a_planted_record_makes_gc_touch_nothing),
		cmocka_unit_test(test_another_directory_at_our_path_is_left_alone),
		cmocka_unit_test(test_a_link_at_our_path_is_left_alone),
		cmocka_unit_test(test_a_linked_folder_is_not_followed),
		cmocka_unit_test(test_a_record_that_is_a_link_or_open_to_others_is_refused),
		cmocka_unit_test(test_nonsense_in_one_record_does_not_stop_the_others),
		cmocka_unit_test(test_a_record_of_another_version_stays_where_it_is),
		cmocka_unit_test(test_a_record_that_could_not_be_read_back_is_not_written),
		cmocka_unit_test(test_an_empty_record_means_that_nothing_was_made),
		cmocka_unit_test(test_removing_survives_what_the_analysis_did_to_its_directory),
	};

	return cmocka_run_group_tests_name("workspace recovery", tests, NULL, NULL);
}
