/*
 * Where cgroups can be made, on hosts that are not this one: the texts of /proc are given, and the trees are plain
 * directories with the files that the probe looks at.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cgroup_private.h"

struct tree {
	char root[64]; /* stands for /sys/fs/cgroup */
	struct cgroup_places places;
	struct cgroup_host host;
};

/* --- the trees --- */

static void put(const struct tree *t, const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof full, "%s%s", t->root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A cgroup of v2 that is ours, also by systemd's word where these tests run below systemd. */
static void make_v2(const struct tree *t, const char *path, const char *controllers, const char *procs)
{
	static const char *const unlimited[] = {"memory.max", "pids.max"};
	char file[128], full[256];

	snprintf(full, sizeof full, "%s%s", t->root, path);
	assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
	(void)!setxattr(full, "trusted.delegate", "1", 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(unlimited); i++) {
		snprintf(file, sizeof file, "%s/%s", path, unlimited[i]);
		put(t, file, "max\n");
	}
	snprintf(file, sizeof file, "%s/cpu.max", path);
	put(t, file, "max 100000\n");
	snprintf(file, sizeof file, "%s/cgroup.type", path);
	put(t, file, "domain\n");
	snprintf(file, sizeof file, "%s/cgroup.controllers", path);
	put(t, file, controllers);
	snprintf(file, sizeof file, "%s/cgroup.subtree_control", path);
	put(t, file, "");
	snprintf(file, sizeof file, "%s/cgroup.procs", path);
	put(t, file, procs);
}

static int tree_setup(void **state)
{
	static struct tree t;

	t = (struct tree){.root = "/tmp/test-cgroup-place-XXXXXX"};
	*state = &t;
	return mkdtemp(t.root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int tree_teardown(void **state)
{
	struct tree *t = *state;

	return nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* We live in the cgroup `path` of v2, mounted at the tree's root with these options. */
static void choose_v2(struct tree *t, const char *path, const char *options)
{
	char cgroup[128], mounts[256];

	snprintf(cgroup, sizeof cgroup, "0::%s\n", path);
	snprintf(mounts, sizeof mounts, "31 23 0:28 / %s %s,nosuid - cgroup2 cgroup2 rw\n", t->root, options);
	cgroup_places_parse(cgroup, mounts, &t->places);
	cgroup_host_choose(&t->places, &t->host);
}

/* --- texts --- */

static void test_each_v1_hierarchy_has_its_own_place(void **state)
{
	struct cgroup_places p;

	(void)state;
	cgroup_places_parse(
		"8:pids:/\n4:memory:/box/7\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
		"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
		&p);
	assert_string_equal(p.v1[CONTROLLER_MEMORY].dir, "/sys/fs/cgroup/memory/box/7");
	assert_string_equal(p.v1[CONTROLLER_PIDS].dir, "/sys/fs/cgroup/pids");
	assert_string_equal(p.v1[CONTROLLER_CPU].dir, "/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(p.v1[CONTROLLER_CPUACCT].dir, "/sys/fs/cgroup/cpu,cpuacct");
	assert_false(p.v1[CONTROLLER_FREEZER].known);
	assert_string_equal(p.v2.dir, "/sys/fs/cgroup/unified");
	assert_false(p.slurm);
}

static void test_a_container_mounts_only_its_own_part(void **state)
{
	struct cgroup_places p;

	(void)state;
	cgroup_places_parse(
		"4:memory:/docker/abc/x\n",
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n", &p);
	assert_string_equal(p.v1[CONTROLLER_MEMORY].dir, "/sys/fs/cgroup/memory/x");
	assert_true(p.v1[CONTROLLER_MEMORY].read_only);
}

static void test_a_cgroup_outside_of_what_is_mounted_has_no_place(void **state)
{
	struct cgroup_places p;

	(void)state;
	cgroup_places_parse("4:memory:/docker/abcdef\n0::/../other\n",
			    "35 31 0:32 /docker/abc /m rw - cgroup cgroup rw,memory\n"
			    "36 31 0:33 / /u rw - cgroup2 cgroup2 rw\n",
			    &p);
	assert_false(p.v1[CONTROLLER_MEMORY].known);
	assert_false(p.v2.known);
}

static void test_a_writable_mount_is_preferred_and_names_may_have_spaces(void **state)
{
	struct cgroup_places p;

	(void)state;
	cgroup_places_parse("0::/a\n",
			    "36 31 0:33 / /ro ro - cgroup2 cgroup2 rw\n"
			    "37 31 0:33 / /with\\040space rw - cgroup2 cgroup2 rw\n"
			    "38 31 0:33 / /later rw - cgroup2 cgroup2 rw\n",
			    &p);
	assert_string_equal(p.v2.dir, "/with space/a");
	assert_false(p.v2.read_only);
}

static void test_broken_lines_are_passed_over(void **state)
{
	struct cgroup_places p;

	(void)state;
	cgroup_places_parse("\n:\nx\n0::\n", "\n1 2 3\n- - - - - - - - -\n31 23 0:28 / /x rw -\n", &p);
	assert_false(p.v2.known);
}

/* --- choices --- */

static void test_no_cgroups_at_all_is_explained(void **state)
{
	struct tree *t = *state;

	cgroup_places_parse("0::/\n", "1 2 0:3 / / rw - ext4 /dev/x rw\n", &t->places);
	cgroup_host_choose(&t->places, &t->host);
	assert_int_equal(t->host.way, CGROUP_NONE);
	assert_non_null(strstr(t->host.why, "no cgroup file system is mounted"));
}

static void test_alone_in_a_cgroup_of_ours_children_are_made_below_it(void **state)
{
	struct tree *t = *state;
	char us[16];

	snprintf(us, sizeof us, "%d\n", (int)getpid());
	make_v2(t, "", "cpu memory pids", "");
	make_v2(t, "/box", "cpu memory pids", us);
	choose_v2(t, "/box", "rw");
	assert_int_equal(t->host.way, CGROUP_V2);
	assert_string_equal(t->host.v2_parent + strlen(t->root), "/box");
	assert_true(t->host.memory && t->host.pids && t->host.cpu);
	assert_string_equal(t->host.why, "");
}

static void test_among_others_in_an_unlimited_cgroup_children_are_made_beside_it(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "cpu memory pids", "");
	make_v2(t, "/box", "cpu memory pids", "1\n2\n");
	choose_v2(t, "/box", "rw");
	assert_int_equal(t->host.way, CGROUP_V2);
	assert_string_equal(t->host.v2_parent, t->root);
}

static void test_no_way_leads_out_of_a_limit(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "cpu memory pids", "");
	make_v2(t, "/box", "cpu memory pids", "1\n2\n");
	put(t, "/box/memory.max", "1073741824\n");
	choose_v2(t, "/box", "rw");
	assert_int_not_equal(t->host.way, CGROUP_V2);
	if (t->host.way == CGROUP_NONE)
		assert_non_null(strstr(t->host.why, "holds other processes"));
	assert_int_equal(cgroup_enclosing(&t->places.v2, true, LIMIT_MEMORY), 1073741824);
	assert_int_equal(cgroup_enclosing(&t->places.v2, true, LIMIT_PIDS), LIMIT_NONE);
}

static void test_a_read_only_tree_is_explained(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "cpu memory pids", "");
	choose_v2(t, "/", "ro");
	assert_int_equal(t->host.way, CGROUP_NONE);
	assert_non_null(strstr(t->host.why, "read-only"));
}

static void test_a_missing_controller_is_named(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "memory pids", "");
	choose_v2(t, "/", "rw");
	assert_int_equal(t->host.way, CGROUP_V2);
	assert_true(t->host.memory && t->host.pids);
	assert_false(t->host.cpu);
	assert_non_null(strstr(t->host.why, "'cpu'"));
}

static void test_a_slurm_job_is_not_left_for_a_scope_of_systemd(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "cpu memory pids", "");
	make_v2(t, "/slurm", "cpu memory pids", "");
	make_v2(t, "/slurm/job_7", "cpu memory pids", "1\n2\n");
	put(t, "/slurm/job_7/memory.max", "1048576\n");
	choose_v2(t, "/slurm/job_7", "rw");
	assert_int_equal(t->host.way, CGROUP_NONE);
	assert_non_null(strstr(t->host.why, "Slurm"));
}

static void test_a_hybrid_host_is_v1(void **state)
{
	struct tree *t = *state;
	char path[128], mounts[512];

	make_v2(t, "", "hugetlb", "");
	snprintf(path, sizeof path, "%s/memory", t->root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(mounts, sizeof mounts,
		 "1 2 0:3 / %s rw - cgroup2 cgroup2 rw\n4 5 0:6 / %s/memory rw - cgroup cgroup rw,memory\n",
		 t->root, t->root);
	cgroup_places_parse("4:memory:/\n0::/\n", mounts, &t->places);
	cgroup_host_choose(&t->places, &t->host);
	assert_int_equal(t->host.way, CGROUP_V1);
	assert_string_equal(t->host.v1_parent[CONTROLLER_MEMORY], path);
	assert_true(t->host.memory);
	assert_false(t->host.pids);
	assert_non_null(strstr(t->host.why, "'pids'"));
}

/* --- limits around us --- */

static void test_the_tightest_of_all_enclosing_limits_counts(void **state)
{
	struct tree *t = *state;

	make_v2(t, "", "", "");
	make_v2(t, "/a", "", "");
	make_v2(t, "/a/b", "", "");
	put(t, "/a/memory.max", "1000\n");
	put(t, "/a/b/memory.max", "3000\n");
	put(t, "/cpu.max", "150000 100000\n");
	put(t, "/a/cpu.max", "50000 25000\n");
	choose_v2(t, "/a/b", "rw");
	assert_int_equal(cgroup_enclosing(&t->places.v2, true, LIMIT_MEMORY), 1000);
	assert_int_equal(cgroup_enclosing(&t->places.v2, true, LIMIT_CPUS), 1500);
	assert_int_equal(cgroup_enclosing(&t->places.v2, true, LIMIT_PIDS), LIMIT_NONE);
}

static void test_v1_limits_have_their_own_words_for_none(void **state)
{
	struct tree *t = *state;

	put(t, "/memory.limit_in_bytes", "9223372036854771712\n");
	put(t, "/cpu.cfs_quota_us", "-1\n");
	put(t, "/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cgroup_limit_here(t->root, false, LIMIT_MEMORY), LIMIT_NONE);
	assert_int_equal(cgroup_limit_here(t->root, false, LIMIT_CPUS), LIMIT_NONE);
	put(t, "/cpu.cfs_quota_us", "250000\n");
	assert_int_equal(cgroup_limit_here(t->root, false, LIMIT_CPUS), 2500);
}

static void test_cpus_of_a_cpuset_are_counted(void **state)
{
	(void)state;
	assert_int_equal(cgroup_cpu_list_count("0-3,8\n"), 5);
	assert_int_equal(cgroup_cpu_list_count("7\n"), 1);
	assert_int_equal(cgroup_cpu_list_count("\n"), 0);
	assert_int_equal(cgroup_cpu_list_count("3-1,x"), 0);
}

static void test_a_quota_is_never_below_what_the_kernel_takes(void **state)
{
	uint64_t quota, period;

	(void)state;
	cgroup_cpu_quota(1, &quota, &period);
	assert_int_equal(quota, 1000);
	assert_int_equal(period, 1000000);
	cgroup_cpu_quota(1500, &quota, &period);
	assert_int_equal(quota, 150000);
	assert_int_equal(period, 100000);
}

#define T(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_each_v1_hierarchy_has_its_own_place),
		T(test_a_container_mounts_only_its_own_part),
		T(test_a_cgroup_outside_of_what_is_mounted_has_no_place),
		T(test_a_writable_mount_is_preferred_and_names_may_have_spaces),
		T(test_broken_lines_are_passed_over),
		T(test_no_cgroups_at_all_is_explained),
		T(test_alone_in_a_cgroup_of_ours_children_are_made_below_it),
		T(test_among_others_in_an_unlimited_cgroup_children_are_made_beside_it),
		T(test_no_way_leads_out_of_a_limit),
		T(test_a_read_only_tree_is_explained),
		T(test_a_missing_controller_is_named),
		T(test_a_slurm_job_is_not_left_for_a_scope_of_systemd),
		T(test_a_hybrid_host_is_v1),
		T(test_the_tightest_of_all_enclosing_limits_counts),
		T(test_v1_limits_have_their_own_words_for_none),
		T(test_cpus_of_a_cpuset_are_counted),
		T(test_a_quota_is_never_below_what_the_kernel_takes),
	};

	return cmocka_run_group_tests_name("cgroup_place", tests, NULL, NULL);
}
