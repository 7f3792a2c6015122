/* The schemas in docs/schema name what the code reads and writes: no key more, none less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attempt.h"
#include "config.h"
#include "field.h"

static json_t *load(const char *name)
{
	char path[4096];
	json_error_t problem;
	json_t *schema;

	snprintf(path, sizeof path, "%s/%s.schema.json", SCHEMA_DIR, name);
	schema = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
	if (!schema)
		fail_msg("%s:%d: %s", path, problem.line, problem.text);
	return schema;
}

static void assert_fields(const json_t *properties, unsigned where)
{
	const char *key;
	json_t *value;
	size_t count = 0;

	json_object_foreach ((json_t *)properties, key, value) {
		if (!field_by_key(key, where))
			fail_msg("the schema has '%s', the code has not", key);
	}
	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		const json_t *choices = json_object_get(json_object_get(properties, f->key), "enum");

		if (!(f->where & where))
			continue;
		count++;
		for (size_t k = 0; f->choices && f->choices[k]; k++) {
			json_auto_t *choice = json_string(f->choices[k]);
			bool found = false;

			for (size_t n = 0; n < json_array_size(choices); n++)
				found = found || json_equal(json_array_get(choices, n), choice);
			assert_int_equal(found, f->choices[k][0] != 0);
		}
	}
	assert_int_equal(json_object_size(properties), count);
}

static void assert_limits(const json_t *schema)
{
	const json_t *limits =
		json_object_get(json_object_get(json_object_get(schema, "$defs"), "limits"), "properties");

	assert_int_equal(json_object_size(limits), LIMIT_COUNT);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_non_null(json_object_get(limits, limit_table[i].name));
}

static void test_the_schema_of_requests_has_every_key(void **state)
{
	json_auto_t *schema = load("request");

	(void)state;
	assert_fields(json_object_get(schema, "properties"), FIELD_IN_REQUEST);
	assert_limits(schema);
}

static void test_the_schema_of_configurations_has_every_key(void **state)
{
	json_auto_t *schema = load("config");
	const json_t *properties = json_object_get(schema, "properties");
	const char *key;
	json_t *value;

	(void)state;
	assert_limits(schema);
	assert_fields(json_object_get(json_object_get(properties, "defaults"), "properties"),
		      FIELD_IN_DEFAULTS);
	json_object_foreach ((json_t *)properties, key, value) {
		_cleanup_config_ struct config c = {0};
		struct error err = ERROR_INIT;
		char text[64];
		int size = snprintf(text, sizeof text, "%s: ''\n", key);

		config_parse(&c, text, (size_t)size, "c", false, &err); /* wrong, but not for its key */
		assert_null(strstr(err.message, "unknown key"));
	}
}

static void test_the_schema_of_results_has_every_key(void **state)
{
	/* What only `show` has, and only `run`. */
	static const char *const of_commands[] = {"state",  "attempts",	       "queue",
						  "owner",  "pending_attempt", "stdout",
						  "stderr", "held_steps",      "live"};
	_cleanup_attempt_ struct attempt a;
	json_auto_t *schema = load("result"), *brief = NULL, *full = NULL;
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *required = json_object_get(schema, "required");
	const char *key;
	json_t *value;

	(void)state;
	attempt_init(&a);
	brief = attempt_to_public_json(&a, false);
	full = attempt_to_public_json(&a, true);
	json_object_foreach (full, key, value) {
		if (!json_object_get(properties, key))
			fail_msg("--json has '%s', the schema has not", key);
	}
	assert_int_equal(json_object_size(properties), json_object_size(full) + ARRAY_SIZE(of_commands));
	assert_int_equal(json_array_size(required), json_object_size(brief));
	for (size_t i = 0; i < json_array_size(required); i++)
		assert_non_null(json_object_get(brief, json_string_value(json_array_get(required, i))));
	assert_int_equal(
		json_object_size(json_object_get(json_object_get(properties, "usage"), "properties")),
		json_object_size(json_object_get(full, "usage")));
}

static void test_the_schema_of_results_has_every_verdict(void **state)
{
	json_auto_t *schema = load("result");
	const json_t *names =
		json_object_get(json_object_get(json_object_get(schema, "properties"), "verdict"), "enum");

	(void)state;
	assert_int_equal(json_array_size(names), VERDICT_COUNT + 1); /* and null */
	for (int i = 0; i < VERDICT_COUNT; i++)
		assert_string_equal(json_string_value(json_array_get(names, (size_t)i)),
				    verdict_name((enum verdict)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_schema_of_requests_has_every_key),
		cmocka_unit_test(test_the_schema_of_configurations_has_every_key),
		cmocka_unit_test(test_the_schema_of_results_has_every_key),
		cmocka_unit_test(test_the_schema_of_results_has_every_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
