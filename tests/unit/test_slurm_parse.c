/* What Slurm's commands say. The lines are those of a real one (22.05). */
#include "slurm_parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "macros.h"

static void test_a_line_of_squeue(void **state)
{
	static const char line[] = "1_17|FAILED|NonZeroExitCode|node1|1792|fumehood-abc|";
	struct slurm_seen seen;

	(void)state;
	assert_int_equal(slurm_seen_parse(line, strlen(line), &seen), 0);
	assert_string_equal(seen.job, "1_17");
	assert_int_equal(seen.index, 17);
	assert_int_equal(seen.phase, SLURM_DONE);
	assert_string_equal(seen.state, "FAILED");
	assert_string_equal(seen.reason, "NonZeroExitCode");
	assert_string_equal(seen.node, "node1");
	assert_int_equal(seen.status, 7);
	assert_string_equal(seen.name, "fumehood-abc");
}

static void test_what_is_not_known_is_empty(void **state)
{
	static const char line[] = "16|PENDING|None||9|fumehood-abc|";
	struct slurm_seen seen;

	(void)state;
	assert_int_equal(slurm_seen_parse(line, strlen(line), &seen), 0);
	assert_int_equal(seen.index, 0);
	assert_string_equal(seen.reason, "");
	assert_string_equal(seen.node, "");
	assert_int_equal(seen.status, 128 + 9);
}

static void test_states(void **state)
{
	static const struct {
		const char *name;
		enum slurm_phase phase;
	} known[] = {
		{"PENDING", SLURM_PENDING},	{"REQUEUED", SLURM_PENDING}, {"RUNNING", SLURM_ACTIVE},
		{"COMPLETING", SLURM_ACTIVE},	{"SUSPENDED", SLURM_ACTIVE}, {"NEVER_HEARD_OF", SLURM_ACTIVE},
		{"COMPLETED", SLURM_DONE},	{"TIMEOUT", SLURM_TIMEOUT},  {"OUT_OF_MEMORY", SLURM_OOM},
		{"CANCELLED", SLURM_CANCELLED}, {"NODE_FAIL", SLURM_LOST},   {"PREEMPTED", SLURM_LOST},
		{"BOOT_FAIL", SLURM_LOST},	{"DEADLINE", SLURM_LOST},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct slurm_seen seen;
		char line[128];
		int n = snprintf(line, sizeof line, "1_1|%s|None|n|0|x|", known[i].name);

		assert_int_equal(slurm_seen_parse(line, (size_t)n, &seen), 0);
		assert_int_equal(seen.phase, known[i].phase);
	}
}

static void test_what_is_no_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"1_1",
		"1_1|RUNNING|None|n|0|x",
		"1_1|RUNNING|None|n|0|x|y",
		"1_1||None|n|0|x|",
		"1_[2-4%2]|PENDING|None||0|x|",
		"x|RUNNING|None|n|0|x|",
		"1_|RUNNING|None|n|0|x|",
		"1_99999999999|RUNNING|None|n|0|x|",
		"1_1|RUNNING|None|n|-1|x|",
		"1_1|RUN\033NING|None|n|0|x|",
		"slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct slurm_seen seen;

		assert_int_equal(slurm_seen_parse(bad[i], strlen(bad[i]), &seen), -EINVAL);
	}
}

static void test_the_id_that_sbatch_prints(void **state)
{
	char job[SLURM_JOB_ROOM];

	(void)state;
	assert_int_equal(slurm_job_parse("123\n", job), 0);
	assert_string_equal(job, "123");
	assert_int_equal(slurm_job_parse("123;main\n", job), 0);
	assert_string_equal(job, "123");
	assert_int_equal(slurm_job_parse("", job), -EINVAL);
	assert_int_equal(slurm_job_parse("Submitted batch job 123\n", job), -EINVAL);
	assert_int_equal(slurm_job_parse("123\nwelcome\n", job), -EINVAL);
}

static void test_a_setting(void **state)
{
	static const char text[] =
		"Configuration data as of now\nClusterNameX          = no\n"
		"ClusterName             = test \nMaxArraySize            = 10001\nEmpty = \n";
	char out[16];

	(void)state;
	assert_int_equal(slurm_setting_parse(text, "ClusterName", out, sizeof out), 0);
	assert_string_equal(out, "test");
	assert_int_equal(slurm_setting_parse(text, "MaxArraySize", out, sizeof out), 0);
	assert_string_equal(out, "10001");
	assert_int_equal(slurm_setting_parse(text, "Missing", out, sizeof out), -ENOENT);
	assert_int_equal(slurm_setting_parse(text, "Empty", out, sizeof out), -EINVAL);
	assert_int_equal(slurm_setting_parse(text, "MaxArraySize", out, 3), -EINVAL);
}

static void test_what_people_read_is_cut_and_its_line_counts(void **state)
{
	char line[1024], reason[600];
	struct slurm_seen seen;
	int n;

	(void)state;
	memset(reason, 'x', sizeof reason);
	memcpy(reason, "n\303\266de\033", 6);
	n = snprintf(line, sizeof line, "7_3|PENDING|%.*s|%.*s|0|fumehood-b|", (int)sizeof reason, reason,
		     200, reason + 10);
	assert_int_equal(slurm_seen_parse(line, (size_t)n, &seen), 0);
	assert_string_equal(seen.job, "7_3");
	assert_string_equal(seen.name, "fumehood-b");
	assert_memory_equal(seen.reason, "n??de?xxx", 9);
	assert_int_equal(strlen(seen.reason), SLURM_WORD_ROOM - 1);
	assert_int_equal(strlen(seen.node), SLURM_WORD_ROOM - 1);
}

static void test_whose_matter_a_failure_is(void **state)
{
	static const struct {
		const char *said, *sentence;
		enum slurm_failure failure;
	} known[] = {
		{"sbatch: error: invalid partition specified: nope\n"
		 "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
		 "Invalid partition name specified (invalid partition specified: nope)", SLURM_REFUSED},
		{"sbatch: error: Memory specification can not be satisfied\n"
		 "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
		 "Requested node configuration is not available (Memory specification can not be satisfied)",
		 SLURM_REFUSED},
		{"sbatch: error: Invalid generic resource (gres) specification\n",
		 "Invalid generic resource (gres) specification", SLURM_REFUSED},
		{"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n",
		 "Unable to contact slurm controller (connect failure)", SLURM_PASSING},
		{"sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates "
		 "accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
		 "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits) "
		 "(AssocMaxSubmitJobLimit)",
		 SLURM_FULL},
		{"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n",
		 "Slurm temporarily unable to accept job, sleeping and retrying", SLURM_FULL},
		{"sbatch: error: Batch job submission failed: Pathname of a file, directory or other parameter too long\n",
		 "Pathname of a file, directory or other parameter too long", SLURM_REFUSED},
		{"sbatch: error: Batch job submission failed: something new\n", "something new",
		 SLURM_STRANGE},
		{"sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information\n",
		 "unrecognized option '--bogus'", SLURM_MISUSED},
		{"", "", SLURM_STRANGE},
	};
	char out[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(slurm_failure_parse(known[i].said, out, sizeof out), known[i].failure);
		assert_string_equal(out, known[i].sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_of_squeue),
		cmocka_unit_test(test_what_is_not_known_is_empty),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_what_is_no_line_is_refused),
		cmocka_unit_test(test_the_id_that_sbatch_prints),
		cmocka_unit_test(test_a_setting),
		cmocka_unit_test(test_what_people_read_is_cut_and_its_line_counts),
		cmocka_unit_test(test_whose_matter_a_failure_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
