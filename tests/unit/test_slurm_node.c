/* What Slurm says of a job, and what that means for the analysis in it. */
#include "slurm_node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HEAD	"JobId=14 ArrayJobId=13 ArrayTaskId=0 JobName=fumehood-ab UserId=ada(1000) GroupId=ada(1000) "
#define ALIVE	"RunTime=00:00:07 TimeLimit=00:02:00 TimeMin=N/A "
#define ENDS	"StartTime=2026-11-16T12:00:00 EndTime=2026-11-16T12:00:07 "
#define NO_END	"StartTime=Unknown EndTime=Unknown "
#define NOT_SO	"PreemptEligibleTime=2026-11-16T12:00:00 PreemptTime=None "
#define COMMAND "Command=/tmp/JobState=TIMEOUT Reason=TimeLimit "

static enum manager_said means(const char *text, char reason[MANAGER_REASON_SIZE])
{
	struct slurm_job_said said;

	reason[0] = 0;
	assert_int_equal(slurm_job_read(text, &said), 0);
	return slurm_job_means(&said, 1, reason);
}

static void test_each_way_of_ending_has_its_meaning(void **state)
{
	static const struct {
		const char *text;
		enum manager_said said;
		const char *reason;
	} rows[] = {
		{HEAD "JobState=RUNNING Reason=None " ALIVE ENDS NOT_SO COMMAND, MANAGER_SAYS_NOTHING, ""},
		{HEAD "JobState=COMPLETING Reason=None Requeue=1 Restarts=1 " ALIVE ENDS NOT_SO COMMAND,
		 MANAGER_CANCELLED, "by scancel"},
		{HEAD "JobState=CANCELLED Reason=None " ALIVE ENDS NOT_SO, MANAGER_CANCELLED, "by scancel"},
		{HEAD "JobState=COMPLETING Reason=TimeLimit " ALIVE ENDS NOT_SO, MANAGER_TIMED_OUT,
		 "Slurm's --time of 2 min"},
		{HEAD "JobState=TIMEOUT Reason=TimeLimit TimeLimit=1-00:00:00 " ENDS, MANAGER_TIMED_OUT,
		 "Slurm's --time of 1-00:00:00"},
		{HEAD "JobState=COMPLETING Reason=None " ALIVE ENDS "PreemptTime=2026-11-16T12:00:07 ",
		 MANAGER_TAKES_BACK, "Slurm has ended its job: it was preempted"},
		{HEAD "JobState=PREEMPTED Reason=None " ALIVE ENDS, MANAGER_TAKES_BACK,
		 "Slurm has ended its job: it was preempted"},
		{HEAD "JobState=COMPLETING Reason=None Requeue=1 Restarts=2 " ALIVE ENDS NOT_SO,
		 MANAGER_TAKES_BACK, "Slurm has ended its job: it is to be started again"},
		{HEAD "JobState=PENDING Reason=BeginTime " ALIVE NO_END, MANAGER_TAKES_BACK,
		 "Slurm has ended its job: it is to be started again"},
		{HEAD "JobState=NODE_FAIL Reason=NodeDown " ALIVE ENDS, MANAGER_TAKES_BACK,
		 "Slurm has ended its job: NodeDown"},
	};
	char reason[MANAGER_REASON_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(means(rows[i].text, reason), rows[i].said);
		assert_string_equal(reason, rows[i].reason);
	}
}

static void test_what_is_no_job_is_not_believed(void **state)
{
	static const char *const texts[] = {"",
					    "slurm_load_jobs error: Invalid job id specified",
					    "JobId=",
					    "JobId=14 JobName=x",
					    "x JobId=14 JobState=RUNNING",
					    "JobId=14 JobState=",
					    "JobId=14 NotJobState=RUNNING"};
	struct slurm_job_said said;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(slurm_job_read(texts[i], &said), -EINVAL);
}

static void test_a_node_is_known_by_its_environment(void **state)
{
	struct slurm_node n;
	json_auto_t *handle = NULL;

	(void)state;
	unsetenv("SLURM_JOB_ID");
	slurm_node_init(&n);
	assert_string_equal(n.job, "");
	assert_null(slurm_node_handle(&n));
	setenv("SLURM_JOB_ID", "14", 1);
	setenv("SLURMD_NODENAME", "node1", 1);
	unsetenv("SLURM_ARRAY_JOB_ID");
	slurm_node_init(&n);
	assert_string_equal(n.job, "14");
	setenv("SLURM_ARRAY_JOB_ID", "13", 1);
	setenv("SLURM_ARRAY_TASK_ID", "7", 1);
	slurm_node_init(&n);
	handle = slurm_node_handle(&n);
	assert_string_equal(json_string_value(json_object_get(handle, "job")), "13_7");
	assert_string_equal(json_string_value(json_object_get(handle, "node")), "node1");
	assert_int_equal(slurm_node_index(), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_way_of_ending_has_its_meaning),
		cmocka_unit_test(test_what_is_no_job_is_not_believed),
		cmocka_unit_test(test_a_node_is_known_by_its_environment),
	};

	return cmocka_run_group_tests_name("a job of Slurm's", tests, NULL, NULL);
}
