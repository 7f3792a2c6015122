/*
 * Limits and counters on this host, whichever way it has. As root everything is done twice: as root, and as an
 * ordinary user to whom a part of the tree was delegated. Processes here are real and their use is known.
 */
#include "test_cgroup.h"

/* --- life --- */

static void test_a_cgroup_is_made_joined_and_removed(void **state)
{
	struct fixture *f = *state;
	char text[4096] = "", *path;
	int p[2];

	create(f);
	path = strdup(cgroup_paths(f->cgroup)[0]);
	assert_non_null(strstr(path, f->name));
	assert_true(directory_exists(path));
	assert_int_equal(pipe(p), 0);
	assert_int_equal(run_in(f, print_cgroups, &p[1]), 0);
	assert_true(read(p[0], text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, f->name));
	close(p[0]);
	close(p[1]);
	finish(f);
	assert_false(directory_exists(path));
	free(path);
}

static void test_the_same_name_twice_is_an_error_and_harms_nobody(void **state)
{
	struct fixture *f = *state;
	struct cgroup *second = NULL;

	create(f);
	if (f->host.way == CGROUP_SYSTEMD)
		return; /* a scope's failure is a dropped limit, not an error */
	assert_true(cgroup_create(&f->host, f->name, &f->limits, false, &f->receipt, &second, &f->err) < 0);
	assert_null(second);
	assert_true(directory_exists(cgroup_paths(f->cgroup)[0]));
}

static void test_many_at_once_do_not_collide(void **state)
{
	struct fixture *f = *state;
	struct cgroup *all[50];
	int n = f->host.way == CGROUP_SYSTEMD ? 5 : (int)ARRAY_SIZE(all);

	for (int i = 0; i < n; i++) {
		char name[96];

		snprintf(name, sizeof name, "%s-%d", f->name, i);
		assert_int_equal(
			cgroup_create(&f->host, name, &f->limits, false, &f->receipt, &all[i], &f->err), 0);
	}
	for (int i = 0; i < n; i++)
		assert_int_equal(cgroup_remove(all[i], &f->err), 0);
}

static void test_a_name_with_a_slash_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_true(cgroup_create(&f->host, "../x", &f->limits, false, &f->receipt, &f->cgroup, &f->err) < 0);
	assert_int_equal(f->err.kind, ERROR_USAGE);
}

/* --- limits --- */

static void test_memory_beyond_the_limit_is_an_oom_kill_that_is_counted(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;
	size_t size = 64 * MIB;

	ask(f, LIMIT_MEMORY, 24 * MIB);
	create(f);
	assert_int_equal(run_in(f, touch_memory, &size), 128 + SIGKILL);
	cgroup_read(f->cgroup, &n);
	assert_int_equal(n.oom_kills, 1);
	assert_in_range(n.memory_peak_bytes, 23 * MIB, 24 * MIB);
	assert_true(layer_find(&f->receipt, "limit memory")->held);
	assert_null(f->receipt.warnings);
}

static void test_a_memfd_counts_as_memory(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;
	size_t size = 64 * MIB;

	ask(f, LIMIT_MEMORY, 24 * MIB);
	create(f);
	assert_int_equal(run_in(f, fill_memfd, &size), 128 + SIGKILL);
	cgroup_read(f->cgroup, &n);
	assert_int_equal(n.oom_kills, 1);
}

static void test_processes_beyond_the_limit_are_refused_and_counted(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;
	int count = 20;

	ask(f, LIMIT_PIDS, 10);
	create(f);
	assert_int_equal(run_in(f, fork_up_to, &count), 1);
	cgroup_read(f->cgroup, &n);
	assert_in_range(n.pids_hits, 1, 20);
	assert_true(n.pids_peak == -1 || n.pids_peak == 10);
	assert_int_equal(n.pids, 9);
}

static void test_a_cpu_quota_throttles(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;
	int ms = 30;
	uint64_t start;

	ask(f, LIMIT_CPUS, 50);
	create(f);
	start = clock_now();
	assert_int_equal(run_in(f, burn_cpu_ms, &ms), 0);
	/* 5 ms in every 100 ms, even on a busy machine less than it would get: at least four whole periods and a bit. */
	assert_true(clock_now() - start > 400 * NSEC_PER_MSEC);
	cgroup_read(f->cgroup, &n);
	assert_true(n.throttled_ns > 0);
}

static void test_a_tiny_share_of_a_cpu_is_accepted(void **state)
{
	struct fixture *f = *state;

	ask(f, LIMIT_CPUS, 1);
	create(f);
	assert_true(layer_find(&f->receipt, "limit cpus")->held);
}

/* --- the policy where nothing can be held --- */

static void test_an_asked_limit_that_cannot_be_held_is_refused_with_the_way_out(void **state)
{
	struct fixture *f = *state;
	struct cgroup_host none = {.way = CGROUP_NONE, .why = "there are no cgroups; mount them"};

	ask(f, LIMIT_MEMORY, 512 * MIB);
	assert_true(cgroup_create(&none, f->name, &f->limits, false, &f->receipt, &f->cgroup, &f->err) < 0);
	assert_int_equal(f->err.kind, ERROR_REFUSED);
	assert_non_null(strstr(f->err.message, "512M"));
	assert_non_null(strstr(f->err.message, "mount them"));
	assert_non_null(strstr(f->err.message, "--allow-unlimited"));
	assert_null(f->cgroup);
}

static void test_allow_unlimited_runs_on_with_a_warning(void **state)
{
	struct fixture *f = *state;
	struct cgroup_host none = {.way = CGROUP_NONE, .why = "there are no cgroups; mount them"};

	ask(f, LIMIT_MEMORY, 512 * MIB);
	assert_int_equal(cgroup_create(&none, f->name, &f->limits, true, &f->receipt, &f->cgroup, &f->err),
			 0);
	assert_false(layer_find(&f->receipt, "limit memory")->held);
	assert_int_equal(strv_length(f->receipt.warnings), 1);
}

static void test_defaults_that_cannot_be_held_are_dropped_with_one_warning(void **state)
{
	struct fixture *f = *state;
	struct cgroup_host none = {.way = CGROUP_NONE, .why = "there are no cgroups; mount them"};

	ask(f, LIMIT_MEMORY, 512 * MIB);
	ask(f, LIMIT_PIDS, 1);
	f->limits.origin[LIMIT_MEMORY] = f->limits.origin[LIMIT_PIDS] = LIMIT_BUILT_IN;
	assert_int_equal(cgroup_create(&none, f->name, &f->limits, false, &f->receipt, &f->cgroup, &f->err),
			 0);
	assert_false(layer_find(&f->receipt, "limit memory")->held);
	assert_false(layer_find(&f->receipt, "limit pids")->held);
	assert_int_equal(strv_length(f->receipt.warnings), 1);
	assert_non_null(strstr(f->receipt.warnings[0], "memory, pids"));
}

static void test_without_cgroups_every_counter_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct cgroup_host none = {.way = CGROUP_NONE};
	struct cgroup_counters n, unknown;
	int fds[CGROUP_JOIN_MAX];

	memset(&unknown, 0xff, sizeof unknown);
	assert_int_equal(cgroup_create(&none, f->name, &f->limits, false, &f->receipt, &f->cgroup, &f->err),
			 0);
	cgroup_read(f->cgroup, &n);
	assert_memory_equal(&n, &unknown, sizeof n);
	assert_int_equal(cgroup_join_fds(f->cgroup, fds), 0);
	assert_null(cgroup_paths(f->cgroup)[0]);
}

static void test_a_limit_above_the_number_of_cpus_is_always_held(void **state)
{
	struct fixture *f = *state;
	struct cgroup_host none = {.way = CGROUP_NONE};

	ask(f, LIMIT_CPUS, 1000000);
	assert_int_equal(cgroup_create(&none, f->name, &f->limits, false, &f->receipt, &f->cgroup, &f->err),
			 0);
	assert_true(layer_find(&f->receipt, "limit cpus")->held);
}

/* In a cgroup of 64 MiB, as a Slurm job would be: 128 MiB are held, 32 MiB are not. */
static int ask_inside(void *arg)
{
	struct cgroup_host none = {.way = CGROUP_NONE, .why = "no"};
	struct fixture *f = arg;
	struct cgroup *c;
	int r;

	ask(f, LIMIT_MEMORY, 128 * MIB);
	if (cgroup_create(&none, "inner", &f->limits, false, &f->receipt, &c, &f->err) < 0)
		return 1;
	cgroup_remove(c, NULL);
	ask(f, LIMIT_MEMORY, 32 * MIB);
	r = cgroup_create(&none, "inner", &f->limits, false, &f->receipt, &c, &f->err);
	return r < 0 && f->err.kind == ERROR_REFUSED ? 0 : 2;
}

static void test_an_enclosing_limit_that_is_as_tight_counts_as_held(void **state)
{
	struct fixture *f = *state;

	ask(f, LIMIT_MEMORY, 64 * MIB);
	create(f);
	assert_int_equal(run_in(f, ask_inside, f), 0);
}

/* --- counters --- */

static void test_memory_of_known_use_is_within_2_mib(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters before, n;
	size_t none = 0, size = 100 * MIB;

	create(f);
	run_in(f, do_nothing, &none);
	cgroup_read(f->cgroup, &before);
	assert_int_equal(run_in(f, touch_memory, &size), 0);
	cgroup_read(f->cgroup, &n);
	if (n.memory_peak_bytes < 0)
		skip();
	assert_in_range(n.memory_peak_bytes, 100 * MIB, 100 * MIB + before.memory_peak_bytes + 2 * MIB);
	assert_true(before.memory_peak_bytes < 2 * MIB);
}

static int64_t rusage_us(const struct rusage *u)
{
	return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 + u->ru_utime.tv_usec +
	       u->ru_stime.tv_usec;
}

struct burn {
	int ms;
	int64_t before_us; /* what it had used when it joined */
};

static int burn_after_note(void *arg)
{
	struct burn *burn = arg;
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	burn->before_us = rusage_us(&u);
	return burn_in_grandchild(&burn->ms);
}

/* Known is the kernel's own account of the process and of the children that it has waited for. */
static void test_cpu_of_known_use_is_within_5_ms_descendants_counted(void **state)
{
	struct burn *burn =
		mmap(NULL, sizeof *burn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fixture *f = *state;
	struct cgroup_counters n;
	struct rusage u;
	int64_t used_ms, tolerance_ms = getenv("FUMEHOOD_EMULATED") ? 50 : 5;
	int status;

	create(f);
	burn->ms = 200;
	assert_true(wait4(start_in(f, burn_after_note, burn), &status, 0, &u) > 0);
	assert_int_equal(status, 0);
	used_ms = (rusage_us(&u) - burn->before_us) / 1000;
	cgroup_read(f->cgroup, &n);
	assert_true(used_ms >= burn->ms);
	assert_in_range(n.cpu_ns / 1000000, used_ms - tolerance_ms, used_ms + tolerance_ms);
	munmap(burn, sizeof *burn);
}

static void test_counters_are_there_after_the_last_process_and_for_a_short_life(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;

	create(f);
	assert_int_equal(run_in(f, do_nothing, NULL), 0);
	cgroup_read(f->cgroup, &n);
	assert_true(n.cpu_ns > 0);
	assert_true(n.memory_bytes >= 0);
	assert_int_equal(n.pids, 0);
	assert_int_equal(n.oom_kills, 0);
	assert_true(n.pids_peak == -1 || n.pids_peak == 1);
	assert_int_equal(n.pids_hits, 0);
	assert_int_equal(n.throttled_ns, 0);
}

static void test_a_sample_tells_what_runs_now(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;
	pid_t pid;

	create(f);
	pid = start_in(f, sleep_for_ever, NULL);
	do
		cgroup_sample(f->cgroup, &n);
	while (n.pids == 0 || n.memory_bytes == 0 || n.memory_anon_bytes == 0);
	assert_int_equal(n.pids, 1);
	assert_true(n.memory_bytes > 0);
	assert_int_equal(n.pids_hits, -1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
	cgroup_sample(f->cgroup, &n);
	assert_int_equal(n.pids, 0);
}

static void test_a_controller_that_is_missing_counts_nothing_rather_than_0(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n;

	f->host.v1_parent[0][0] = 0; /* memory */
	f->host.v1_parent[5][0] = 0; /* blkio */
	create(f);
	run_in(f, do_nothing, NULL);
	cgroup_read(f->cgroup, &n);
	assert_int_equal(n.memory_peak_bytes, -1);
	assert_int_equal(n.oom_kills, -1);
	assert_int_equal(n.read_bytes, -1);
	assert_true(n.cpu_ns > 0);
}

/* --- the end --- */

static void test_removal_kills_what_ignores_signals(void **state)
{
	struct fixture *f = *state;
	pid_t pid;

	create(f);
	pid = start_in(f, sleep_for_ever, NULL);
	for (struct cgroup_counters n = {0}; n.pids < 1;)
		cgroup_sample(f->cgroup, &n);
	finish(f);
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
}

static void test_a_fork_bomb_is_killed_to_the_last(void **state)
{
	struct fixture *f = *state;
	struct cgroup_counters n = {0};
	pid_t pid;

	ask(f, LIMIT_PIDS, 100);
	create(f);
	pid = start_in(f, fork_bomb, NULL);
	while (n.pids < 90)
		cgroup_sample(f->cgroup, &n);
	finish(f);
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
}

static void test_removing_without_pids_controller_freezes_first(void **state)
{
	struct fixture *f = *state;
	int count = 20;
	pid_t pid;

	f->host.v1_parent[1][0] = 0;
	create(f);
	pid = start_in(f, fork_up_to, &count);
	assert_int_equal(wait_for(pid), 0);
	finish(f);
}

static void test_recovery_removes_a_path_with_a_live_process_in_it(void **state)
{
	struct fixture *f = *state;
	char **paths;
	pid_t pid;

	create(f);
	pid = start_in(f, sleep_for_ever, NULL);
	for (struct cgroup_counters n = {0}; n.pids < 1;)
		cgroup_sample(f->cgroup, &n);
	paths = strv_copy(cgroup_paths(f->cgroup));
	for (char **p = paths; *p; p++) {
		if (cgroup_remove_path(*p, &f->err) < 0)
			fail_msg("%s", f->err.message);
		assert_false(directory_exists(*p));
		assert_int_equal(cgroup_remove_path(*p, &f->err), 0);
	}
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
	strv_free(paths);
	finish(f);
}

/* A supervisor that is killed at the worst moment: its cgroup is there, limited, with a live process in it. */
static void test_what_a_killed_supervisor_left_can_be_removed(void **state)
{
	struct fixture *f = *state;
	char paths[8][512] = {{0}};
	int p[2];
	pid_t pid;

	if (f->host.way == CGROUP_NONE)
		skip();
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		create(f);
		start_in(f, sleep_for_ever, NULL);
		for (int i = 0; cgroup_paths(f->cgroup)[i]; i++)
			snprintf(paths[i], sizeof paths[i], "%s", cgroup_paths(f->cgroup)[i]);
		(void)!write(p[1], paths, sizeof paths);
		sleep_for_ever(NULL);
	}
	assert_int_equal(read(p[0], paths, sizeof paths), sizeof paths);
	kill(pid, SIGKILL);
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
	assert_true(paths[0][0]);
	for (int i = 0; paths[i][0]; i++) {
		if (cgroup_remove_path(paths[i], &f->err) < 0)
			fail_msg("%s", f->err.message);
		assert_false(directory_exists(paths[i]));
	}
	close(p[0]);
	close(p[1]);
}

/* Below our own cgroup of the v2 that lies beside v1, where nobody else makes any; false where there is none. */
static bool v2_place(const struct cgroup_host *host, char out[512])
{
	char line[512];
	FILE *f;

	out[0] = 0;
	f = host->way == CGROUP_V1 ? fopen("/proc/self/cgroup", "re") : NULL;
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "0::", 3) == 0) {
			line[strcspn(line, "\n")] = 0;
			snprintf(out, 512, "/sys/fs/cgroup/unified%.400s", line + 3);
		}
	if (f)
		fclose(f);
	return out[0] && access(out, W_OK) == 0;
}

/* A process that has joined the cgroup, and one that removes it as soon as nobody is in it, as systemd does. */
static void join_and_rival(const char *dir, pid_t *ret_member, pid_t *ret_rival)
{
	char procs[700], c;
	int joined[2];

	snprintf(procs, sizeof procs, "%s/cgroup.procs", dir);
	assert_int_equal(pipe2(joined, O_CLOEXEC), 0);
	*ret_member = fork();
	if (*ret_member == 0) {
		int fd = open(procs, O_WRONLY | O_CLOEXEC);

		if (write(fd, "0", 1) != 1 || write(joined[1], "j", 1) != 1)
			_exit(98);
		_exit(sleep_for_ever(NULL));
	}
	close(joined[1]);
	assert_int_equal(read(joined[0], &c, 1), 1);
	close(joined[0]);
	*ret_rival = fork();
	if (*ret_rival == 0) {
		while (rmdir(dir) < 0 && errno == EBUSY)
			;
		_exit(0);
	}
}

/* The kernel tells of emptiness at most every 10 ms, and of a removal never: who waits for the first may miss both. */
static void test_a_cgroup_that_another_removes_at_the_same_time_is_gone(void **state)
{
	struct fixture *f = *state;
	char parent[512], dir[600];
	pid_t member, rival;

	assert_true(v2_place(&f->host, parent));
	for (int i = 0; i < 30; i++) {
		snprintf(dir, sizeof dir, "%s/fumehood-%s-%d", parent, f->name, i);
		assert_int_equal(mkdir(dir, 0755), 0);
		join_and_rival(dir, &member, &rival);
		if (cgroup_remove_path(dir, &f->err) < 0)
			fail_msg("%s", f->err.message);
		assert_false(directory_exists(dir));
		assert_int_equal(wait_for(member), 128 + SIGKILL);
		assert_int_equal(wait_for(rival), 0);
	}
}

static bool is_populated(int dir)
{
	_cleanup_close_ int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	char text[128] = "";

	return read(fd, text, sizeof text - 1) > 0 && strstr(text, "populated 1");
}

/* One process after the other steps in, and goes on to the next when that has died: whoever kills once kills those who are
 * there by then. */
static int latecomers(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (write(*(int *)arg, "0", 1) == 1)
				sleep_for_ever(NULL);
			_exit(0); /* it is gone */
		}
		if (wait_for(pid) == 0)
			break;
	}
	return 0;
}

static void test_who_comes_late_is_killed_too(void **state)
{
	struct fixture *f = *state;
	char parent[512], dir[600];
	pid_t pids[4];
	int procs, joined;

	assert_true(v2_place(&f->host, parent));
	snprintf(dir, sizeof dir, "%s/fumehood-%s", parent, f->name);
	assert_int_equal(mkdir(dir, 0755), 0);
	joined = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	procs = openat(joined, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(latecomers(&procs));
	}
	while (!is_populated(joined))
		;
	if (cgroup_remove_path(dir, &f->err) < 0)
		fail_msg("%s", f->err.message);
	assert_false(directory_exists(dir));
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(wait_for(pids[i]), 0);
	close(procs);
	close(joined);
}

static void test_recovery_refuses_what_is_not_ours(void **state)
{
	struct fixture *f = *state;
	static const char *const paths[] = {"/sys/fs/cgroup", "fumehood-x", "/sys/fs/cgroup/x/../fumehood-x",
					    "/sys/fs/cgroup/user.slice", ""};
	char dir[] = "/tmp/test-cgroup-XXXXXX", *path;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_true(cgroup_remove_path(paths[i], &f->err) < 0);
		assert_int_equal(f->err.kind, ERROR_REFUSED);
	}
	assert_non_null(mkdtemp(dir));
	assert_true(asprintf(&path, "%s/fumehood-x", dir) > 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(cgroup_remove_path(path, &f->err) < 0); /* not a cgroup file system */
	assert_true(directory_exists(path));
	rmdir(path);
	rmdir(dir);
	free(path);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static const struct CMUnitTest everywhere[] = {
	T(test_a_name_with_a_slash_is_refused),
	T(test_an_asked_limit_that_cannot_be_held_is_refused_with_the_way_out),
	T(test_allow_unlimited_runs_on_with_a_warning),
	T(test_defaults_that_cannot_be_held_are_dropped_with_one_warning),
	T(test_without_cgroups_every_counter_is_unknown),
	T(test_a_limit_above_the_number_of_cpus_is_always_held),
	T(test_recovery_refuses_what_is_not_ours),
};

static const struct CMUnitTest with_cgroups[] = {
	T(test_a_cgroup_is_made_joined_and_removed),
	T(test_the_same_name_twice_is_an_error_and_harms_nobody),
	T(test_many_at_once_do_not_collide),
	T(test_memory_beyond_the_limit_is_an_oom_kill_that_is_counted),
	T(test_a_memfd_counts_as_memory),
	T(test_processes_beyond_the_limit_are_refused_and_counted),
	T(test_a_cpu_quota_throttles),
	T(test_a_tiny_share_of_a_cpu_is_accepted),
	T(test_an_enclosing_limit_that_is_as_tight_counts_as_held),
	T(test_memory_of_known_use_is_within_2_mib),
	T(test_cpu_of_known_use_is_within_5_ms_descendants_counted),
	T(test_counters_are_there_after_the_last_process_and_for_a_short_life),
	T(test_a_sample_tells_what_runs_now),
	T(test_removal_kills_what_ignores_signals),
	T(test_a_fork_bomb_is_killed_to_the_last),
	T(test_recovery_removes_a_path_with_a_live_process_in_it),
	T(test_what_a_killed_supervisor_left_can_be_removed),
};

static const struct CMUnitTest with_v1[] = {
	T(test_a_controller_that_is_missing_counts_nothing_rather_than_0),
	T(test_removing_without_pids_controller_freezes_first),
};

static const struct CMUnitTest with_v2[] = {
	T(test_a_cgroup_that_another_removes_at_the_same_time_is_gone),
	T(test_who_comes_late_is_killed_too),
};

#define RUN(tests, title) _cmocka_run_group_tests(title, tests, ARRAY_SIZE(tests), NULL, NULL)

/* Where FUMEHOOD_EXPECT_WAY says what this host has, anything else is a failure; else, without cgroups, what needs them
 * skips itself. */
static int run_all(const char *user)
{
	const char *expected = getenv("FUMEHOOD_EXPECT_WAY");
	struct cgroup_host host;
	char title[64], place[512];
	int failed;

	if (cgroup_host_probe(&host, NULL) < 0)
		return 1;
	printf("# cgroups: %s; missing: %s\n", cgroup_way_name(host.way), host.why[0] ? host.why : "nothing");
	if (expected && strcmp(expected, cgroup_way_name(host.way)) != 0) {
		printf("# but '%s' was expected\n", expected);
		return 1;
	}
	snprintf(title, sizeof title, "cgroup%s", user);
	failed = RUN(everywhere, title);
	snprintf(title, sizeof title, "cgroup_held%s", user);
	if (host.way != CGROUP_NONE || !expected)
		failed += RUN(with_cgroups, title);
	snprintf(title, sizeof title, "cgroup_v1%s", user);
	if (host.way == CGROUP_V1)
		failed += RUN(with_v1, title);
	snprintf(title, sizeof title, "cgroup_v2%s", user);
	if (v2_place(&host, place))
		failed += RUN(with_v2, title);
	return failed;
}

/* Wherever `doctor --delegate` has put it: in our own cgroup, or further up. */
static int undelegate_v1(uid_t uid, struct error *err)
{
	uint64_t deadline = clock_now() + CGROUP_REMOVE_MS * NSEC_PER_MSEC;
	struct cgroup_places places;
	int r = cgroup_places_read(&places, err);

	for (int i = 0; r == 0 && i < CONTROLLER_COUNT; i++) {
		struct cgroup_place *here = &places.v1[i];
		char path[CGROUP_PATH_ROOM + 32];

		if (!here->known)
			continue;
		do {
			snprintf(path, sizeof path, "%s/" CGROUP_DELEGATE_FORMAT, here->dir, (unsigned)uid);
			r = cgroup_dir_remove(path, deadline, err);
		} while (r == 0 && cgroup_dir_up(here->dir, here->root_length));
	}
	return r;
}

/* Again as an ordinary user, after root has delegated to him what `doctor --delegate` does. */
static int run_as_user(void)
{
	enum { UID = 64242 };
	struct error err = ERROR_INIT;
	char done[CGROUP_DONE_ROOM];
	int status = 1;
	pid_t pid;

	if (cgroup_delegate(UID, UID, done, &err) < 0) {
		printf("# cannot delegate: %s\n", err.message);
		return 1;
	}
	printf("# %s\n", done);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (setresgid(UID, UID, UID) < 0 || setresuid(UID, UID, UID) < 0)
			_exit(1);
		exit(run_all("_user"));
	}
	waitpid(pid, &status, 0);
	if (undelegate_v1(UID, &err) < 0) {
		printf("# cannot undelegate: %s\n", err.message);
		return 1;
	}
	return status != 0;
}

/* What `doctor --delegate` does, for tests/vm. */
static int delegate(const char *uid)
{
	struct error err = ERROR_INIT;
	char done[CGROUP_DONE_ROOM];
	int r = cgroup_delegate((uid_t)atoi(uid), (gid_t)atoi(uid), done, &err);

	printf("# %s\n", r < 0 ? err.message : done);
	return r < 0;
}

int main(int argc, char **argv)
{
	struct cgroup_host host;
	int failed;

	if (argc == 3 && strcmp(argv[1], "--delegate") == 0)
		return delegate(argv[2]);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	failed = run_all("");
	/* On v2 a user cannot step into a subtree by himself: tests/vm does that. */
	if (geteuid() == 0 && cgroup_host_probe(&host, NULL) == 0 && host.way == CGROUP_V1)
		failed += run_as_user();
	return failed;
}
