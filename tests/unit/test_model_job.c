/* What the queue adds to a request and to the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "job.h"
#include "request.h"
#include "tasks.h"
#include "verdict.h"

static int parse_line(struct request *r, const char *text, struct error *err)
{
	return request_parse_line(r, text, strlen(text), "many.jsonl", 17, err);
}

static void test_the_keys_of_the_queue_are_read_and_survive_storage(void **state)
{
	_cleanup_request_ struct request r = {0}, back = {0};
	struct error err = ERROR_INIT;
	json_auto_t *json = NULL;

	(void)state;
	assert_int_equal(parse_line(&r,
				    "{\"command\": [\"true\"], \"priority\": -7, \"after\": [\"a\", \"b\"], "
				    "\"retries\": 0, \"retry_on\": \"failed,lost\"}",
				    &err),
			 0);
	assert_int_equal(r.priority, -7);
	assert_string_equal(r.after[1], "b");
	assert_int_equal(request_retries(&r), 0);
	assert_int_equal(r.retry_on, 1U << VERDICT_FAILED | 1U << VERDICT_LOST);
	json = request_to_json(&r);
	assert_int_equal(request_from_json(&back, json, &err), 0);
	assert_int_equal(back.priority, -7);
	assert_int_equal(back.retry_on, r.retry_on);
	assert_int_equal(request_retries(&back), 0);
}

static void test_unasked_it_is_tried_again_as_often_as_is_built_in(void **state)
{
	_cleanup_request_ struct request r = {0};

	(void)state;
	assert_int_equal(request_retries(&r), JOB_RETRIES_DEFAULT);
	assert_int_equal(request_option(&r, "--retries", "3", NULL), 1);
	assert_int_equal(request_retries(&r), 3);
}

static void test_a_wrong_line_is_named_with_its_number(void **state)
{
	static const struct {
		const char *line, *word;
	} rows[] = {
		{"{\"id\": ", "many.jsonl:17:"},
		{"[1]", "many.jsonl:17"},
		{"{\"id\": \"a\", \"id\": \"b\"}", "many.jsonl:17:"},
		{"{\"nonsense\": 1}", "nonsense"},
		{"{\"directory\": \"/\"}", "directory"},
		{"{\"priority\": 1001}", "-1000 to 1000"},
		{"{\"priority\": 1.5}", "whole number"},
		{"{\"retries\": -1}", "0 to 100"},
		{"{\"retries\": []}", "retries"},
		{"{\"retry_on\": [\"failed\", \"succeeded\"]}", "succeeded"},
		{"{\"retry_on\": \"failed,\"}", "retry_on"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_request_ struct request r = {0};
		struct error err = ERROR_INIT;

		if (parse_line(&r, rows[i].line, &err) == 0)
			fail_msg("taken: %s", rows[i].line);
		if (!strstr(err.message, rows[i].word) || !strstr(err.message, "many.jsonl:17"))
			fail_msg("%s: %s", rows[i].line, err.message);
	}
}

static void test_nothing_comes_after_itself_or_after_what_is_no_id(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(parse_line(&r, "{\"id\": \"a\", \"command\": \"true\", \"after\": \"a\"}", &err), 0);
	assert_true(request_check(&r, &err) < 0);
	assert_non_null(strstr(err.message, "itself"));
	free(r.after[0]);
	r.after[0] = strdup("../b");
	assert_true(request_check(&r, &err) < 0);
}

static void test_a_task_has_its_number_wherever_it_is_asked_for(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(
		parse_line(&r,
			   "{\"id\": \"sweep\", \"command\": [\"fit\", \"{task}-{task}\", \"{tas\"], "
			   "\"env\": [\"SEED={task}\"], \"output\": \"o{task}\", \"input\": "
			   "\"in{task}:in\"}",
			   &err),
		0);
	assert_int_equal(request_set_task(&r, 12, &err), 0);
	assert_string_equal(r.id, "sweep.12");
	assert_string_equal(r.command[1], "12-12");
	assert_string_equal(r.command[2], "{tas");
	assert_string_equal(r.env[0], "SEED=12");
	assert_string_equal(r.env[1], "FUMEHOOD_TASK=12");
	assert_string_equal(r.outputs[0], "o12");
	assert_string_equal(r.inputs[0].from, "in12");
}

static void test_an_id_with_the_number_in_it_gets_no_other(void **state)
{
	_cleanup_request_ struct request r = {.id = strdup("run-{task}-b")};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(request_set_task(&r, 3, &err), 0);
	assert_string_equal(r.id, "run-3-b");
}

static void test_the_queues_configuration_is_merged_key_by_key(void **state)
{
	static const char strong[] = "queue: {cap: none, lease: 10s}\n",
			  weak[] = "queue: {cap: 4, jobs: 8, lease: 1h}\n";
	_cleanup_config_ struct config c, bare;
	struct error err = ERROR_INIT;

	(void)state;
	config_init(&c);
	config_init(&bare);
	assert_int_equal(config_parse(&c, strong, strlen(strong), "c.yaml", false, &err), 0);
	assert_int_equal(config_parse(&c, weak, strlen(weak), "c.yaml", false, &err), 0);
	assert_int_equal(config_finish(&c, &err), 0);
	assert_int_equal(c.queue_cap, 0);
	assert_int_equal(c.queue_jobs, 8);
	assert_int_equal(c.queue_lease_ns, 10 * NSEC_PER_SEC);
	assert_int_equal(config_finish(&bare, &err), 0);
	assert_int_equal(bare.queue_lease_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(bare.queue_jobs, 0);
}

static void test_nonsense_in_the_queues_configuration_is_pointed_at(void **state)
{
	static const char *const texts[] = {"queue: {cap: 0}\n",      "queue: {jobs: -1}\n",
					    "queue: {lease: 10ms}\n", "queue: {lease: none}\n",
					    "queue: {x: 1}\n",	      "queue: 3\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_config_ struct config c;
		struct error err = ERROR_INIT;

		config_init(&c);
		if (config_parse(&c, texts[i], strlen(texts[i]), "c.yaml", false, &err) == 0)
			fail_msg("taken: %s", texts[i]);
		assert_non_null(strstr(err.message, "c.yaml:1:"));
	}
}

static void test_pauses_double_and_end_at_five_minutes(void **state)
{
	(void)state;
	assert_int_equal(job_back_off(0), NSEC_PER_SEC);
	assert_int_equal(job_back_off(3), 8 * NSEC_PER_SEC);
	assert_int_equal(job_back_off(9), 300 * NSEC_PER_SEC);
	assert_int_equal(job_back_off(1000), 300 * NSEC_PER_SEC);
}

static void assert_tasks(const char *text, size_t count, const unsigned *want)
{
	_cleanup_tasks_ struct tasks t = {0};
	struct error err = ERROR_INIT;

	if (tasks_parse(text, &t, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(t.count, count);
	assert_memory_equal(t.list, want, count * sizeof *want);
}

static void test_the_tasks_of_an_array_are_numbers_ranges_and_steps(void **state)
{
	(void)state;
	assert_tasks("7", 1, (unsigned[]){7});
	assert_tasks("0-3", 4, (unsigned[]){0, 1, 2, 3});
	assert_tasks("5,1,3", 3, (unsigned[]){1, 3, 5});
	assert_tasks("1-10:4", 3, (unsigned[]){1, 5, 9});
	assert_tasks("1-2:9", 1, (unsigned[]){1});
	assert_tasks("20-30:5,1-2,2147483647,7", 7, (unsigned[]){1, 2, 7, 20, 25, 30, 2147483647});
}

static void test_tasks_that_make_no_sense_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",    ",",   "1,",    ",1",   "1,,2",	"a",	      "1-",
		"-1",  "9-1", "1-9:0", "1-9:", "1-9:x", "1:2",	      "1--2",
		"1 2", " 1",  "+1",    "0x10", "1.5",	"2147483648", "1-99999999999999999999",
	};
	struct error err = ERROR_INIT;
	struct tasks t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (tasks_parse(wrong[i], &t, &err) == 0)
			fail_msg("'%s' is taken", wrong[i]);
		assert_int_equal(err.kind, ERROR_USAGE);
		assert_non_null(strstr(err.message, "1-1000, 1,3,5 or 1-99:2"));
	}
	assert_true(tasks_parse("1-9,4", &t, &err) < 0);
	assert_non_null(strstr(err.message, "the task 4 twice"));
	assert_true(tasks_parse("0-1000000", &t, &err) < 0);
	assert_non_null(strstr(err.message, "more than 1000000 tasks"));
	assert_true(tasks_parse("1,0-2147483647:2000,1000000-1999998", &t, &err) < 0);
	assert_non_null(strstr(err.message, "more than 1000000 tasks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_keys_of_the_queue_are_read_and_survive_storage),
		cmocka_unit_test(test_unasked_it_is_tried_again_as_often_as_is_built_in),
		cmocka_unit_test(test_a_wrong_line_is_named_with_its_number),
		cmocka_unit_test(test_nothing_comes_after_itself_or_after_what_is_no_id),
		cmocka_unit_test(test_a_task_has_its_number_wherever_it_is_asked_for),
		cmocka_unit_test(test_an_id_with_the_number_in_it_gets_no_other),
		cmocka_unit_test(test_the_queues_configuration_is_merged_key_by_key),
		cmocka_unit_test(test_nonsense_in_the_queues_configuration_is_pointed_at),
		cmocka_unit_test(test_pauses_double_and_end_at_five_minutes),
		cmocka_unit_test(test_the_tasks_of_an_array_are_numbers_ranges_and_steps),
		cmocka_unit_test(test_tasks_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
