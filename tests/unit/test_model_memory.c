/* Fails the n-th allocation, for every n, until all goes well: no crash, no leak, and the error says memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attempt.h"
#include "config.h"
#include "plan.h"
#include "scarce.h"

static const char request[] = "id: a42\n"
			      "command: python3 'a b' c\n"
			      "ro: [/opt/conda:/opt/c, /x]\n"
			      "env: [A=1, {b64: Qj3/}]\n"
			      "limits: {wall: 90, memory: 512M}\n"
			      "keep: always\n"
			      "query: a=SELECT 1\n";

static int tell_request(struct error *err)
{
	_cleanup_request_ struct request r = {0}, back = {0};
	json_auto_t *json = NULL;
	int k = request_parse(&r, request, strlen(request), "r", err);

	if (k < 0)
		return k;
	json = request_to_json(&r);
	return json ? request_from_json(&back, json, err) : -ENOMEM;
}

static void test_a_request_survives_lack_of_memory(void **state)
{
	(void)state;
	assert_survives(tell_request);
}

static const char config[] = "ledger: sqlite:/x\n"
			     "workspace: {root: /a, prefix: b}\n"
			     "defaults: {data: /d, output: [a, b]}\n"
			     "maximum: {pids: 5}\n"
			     "post_process: {command: x, tables: {a: [b], c: {columns: [d], fill: {e: f}}}}\n"
			     "query: {role: r, timeout: 5}\n"
			     "slurm: {partition: p, jobs: 2, options: [--a=b], submit_as_user: true}\n";

static int tell_config(struct error *err)
{
	_cleanup_config_ struct config c = {0};
	int k = config_parse(&c, config, strlen(config), "c", false, err);

	if (k == 0)
		k = config_parse(&c, config, strlen(config), "c", true, err);
	return k < 0 ? k : config_finish(&c, err);
}

static void test_a_configuration_survives_lack_of_memory(void **state)
{
	(void)state;
	assert_survives(tell_config);
}

static int fill_attempt(struct attempt *a)
{
	struct output o = {.path = (char *)"a\xff"};
	struct input in = {.path = (char *)"i", .source = (char *)"/i"};
	struct error problem = {.kind = ERROR_LEDGER, .message = "no"};

	memcpy(a->id, "a", 2);
	a->timeline = calloc(1, sizeof *a->timeline);
	receipt_add(&a->receipt, "landlock", true, "ABI %d", 7);
	receipt_warn(&a->receipt, "%s", "w");
	attempt_event(a, "run", "e %d", 1);
	if (!a->timeline || manifest_add(&a->manifest, &o, NULL) < 0 ||
	    manifest_reject(&a->manifest, "b\xfe", REJECT_FIFO, NULL) < 0 ||
	    inputs_add(&a->inputs, &in, NULL) < 0 || attempt_set_error(a, &problem) < 0)
		return -ENOMEM;
	timeline_add(a->timeline, &(struct sample){0});
	return 0;
}

static int tell_attempt(struct error *err)
{
	_cleanup_attempt_ struct attempt a, back;
	json_auto_t *json = NULL, *shown = NULL;
	int k;

	attempt_init(&a);
	attempt_init(&back);
	k = fill_attempt(&a);
	if (k < 0)
		return k;
	json = attempt_to_json(&a);
	shown = attempt_to_public_json(&a, true);
	if (!json || !shown)
		return -ENOMEM;
	k = attempt_from_json(&back, json, err);
	/* A string that could not be copied looks like one that makes no sense; all that matters is that it fails. */
	if (k < 0)
		*err = (struct error)ERROR_INIT;
	return k;
}

static void test_an_attempt_survives_lack_of_memory(void **state)
{
	(void)state;
	assert_survives(tell_attempt);
}

static bool is_whole(const struct attempt *a)
{
	json_auto_t *stored = attempt_to_json(a), *shown = attempt_to_public_json(a, true);
	struct error err = ERROR_INIT;

	assert_int_equal(!stored, !shown);
	assert_int_equal(attempt_check(a, &err) == 0, stored != NULL);
	assert_int_equal(err.errnum, stored ? 0 : ENOMEM);
	return stored;
}

static void add_line(struct attempt *a)
{
	receipt_add(&a->receipt, "landlock", true, "ABI %d", 7);
}

static void add_warning(struct attempt *a)
{
	receipt_warn(&a->receipt, "%s", "w");
}

static void add_event(struct attempt *a)
{
	attempt_event(a, "run", "e");
}

static void conclude(struct attempt *a)
{
	attempt_conclude(a, VERDICT_LOST, "why");
}

/* What is added later does not hide it. */
static void test_an_attempt_that_has_lost_a_line_is_not_told(void **state)
{
	static void (*const adds[])(struct attempt * a) = {add_line, add_warning, add_event, conclude};

	(void)state;
	for (size_t i = 0; HAVE_OWN_MALLOC && i < ARRAY_SIZE(adds); i++)
		for (long n = 0; n < (adds[i] == conclude ? 1 : 2); n++) {
			_cleanup_attempt_ struct attempt a;

			attempt_init(&a);
			memcpy(a.id, "a", 2);
			assert_true(is_whole(&a));
			allocations_left = n;
			adds[i](&a);
			allocations_left = -1;
			adds[i](&a);
			assert_false(is_whole(&a));
			attempt_forgive(&a);
			assert_true(is_whole(&a));
		}
}

static int tell_plan(struct error *err)
{
	_cleanup_plan_ struct plan p;
	json_auto_t *json = NULL;

	plan_init(&p);
	limits_built_in(&p.limits);
	plan_add_mount(&p, MOUNT_BIND, "/a", "/b")->writable = true;
	plan_add_mount(&p, MOUNT_TMPFS, NULL, "/c")->content = strdup("c");
	plan_add_mount(&p, MOUNT_TMPFS, NULL, "/c")->content = strdup("c");
	plan_add_stage(&p, "/d", "e", 1, 2, 3);
	plan_set_env(&p, "A", "1");
	plan_set_env(&p, "A", "\xff");
	json = plan_to_json(&p);
	return json ? plan_check(&p, err) : -ENOMEM;
}

static void test_a_plan_survives_lack_of_memory(void **state)
{
	(void)state;
	assert_survives(tell_plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request_survives_lack_of_memory),
		cmocka_unit_test(test_a_configuration_survives_lack_of_memory),
		cmocka_unit_test(test_an_attempt_survives_lack_of_memory),
		cmocka_unit_test(test_an_attempt_that_has_lost_a_line_is_not_told),
		cmocka_unit_test(test_a_plan_survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
