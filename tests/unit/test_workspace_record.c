#include "place.h"

#include "buffer.h"
#include "text.h"
#include "workspace.h"

static void fill(struct record *r)
{
	record_init(r);
	strcpy(r->id, "a42");
	strcpy(r->token, "0123456789abcdef0123456789abcdef");
	strcpy(r->machine, "00112233445566778899aabbccddeeff");
	strcpy(r->boot, "11111111-2222-3333-4444-555555555555");
	r->uid = 4294967294U;
	r->owner = OWNER_KEPT;
	r->process = (struct process_id){1234, 567890};
	r->until = INT64_MAX;
	r->init = (struct process_id){4321, UINT64_MAX >> 1};
	assert_int_equal(strv_append(&r->cgroups, "/sys/fs/cgroup/a b", NULL), 0);
	assert_int_equal(strv_append(&r->cgroups, "/sys/fs/cgroup/c", NULL), 0);
	r->path = strdup("/tmp/hood-a42");
	r->device = UINT64_MAX;
	r->inode = 0x8000000000000001ULL;
	r->scratch = strdup("/tmp/.hood-a42.x");
	r->ledger = strdup("sqlite:/ü");
	r->extra = json_pack("{s:i}", "attempt", 3);
}

static char *text_of(const struct record *r)
{
	json_t *json = record_to_json(r);
	char *text = json ? json_dumps(json, JSON_SORT_KEYS) : NULL;

	json_decref(json);
	assert_non_null(text);
	return text;
}

static void test_a_record_comes_back_as_it_was(void **state)
{
	struct error err = ERROR_INIT;
	struct record r, back;
	char *before, *after;

	(void)state;
	fill(&r);
	before = text_of(&r);
	assert_int_equal(record_parse(&back, before, strlen(before), &err), 0);
	after = text_of(&back);
	assert_string_equal(before, after);
	assert_true(back.device == r.device && back.inode == r.inode);
	assert_int_equal(back.uid, r.uid);
	assert_int_equal(strv_length(back.cgroups), 2);
	free(before);
	free(after);
	record_done(&r);
	record_done(&back);
}

/* What a record's file says, which has these bytes: the pid of its init; -1: it is damaged. */
static int init_in(const char *bytes, size_t size)
{
	struct error err = ERROR_INIT;
	struct record r;
	int pid;

	record_init(&r);
	if (record_parse(&r, bytes, size, &err) < 0)
		return -1;
	pid = r.init.pid;
	record_done(&r);
	return pid;
}

static void test_the_last_line_that_is_whole_counts(void **state)
{
	_cleanup_buffer_ struct buffer file = {0};
	struct record r;
	size_t first, whole;
	char *text;

	(void)state;
	fill(&r);
	r.init.pid = 1;
	text = text_of(&r);
	buffer_puts(&file, text);
	free(text);
	first = file.size;
	r.init.pid = 2;
	text = text_of(&r);
	buffer_printf(&file, "\n%s\n", text);
	free(text);
	whole = file.size;
	/* However much of it reached the disk. */
	for (size_t size = first; size < whole; size++)
		assert_int_equal(init_in(file.data, size), 1);
	assert_int_equal(init_in(file.data, whole), 2);
	buffer_puts(&file, "\n{\"version\": 1, \"id\"");
	for (size_t size = whole; size <= file.size; size++)
		assert_int_equal(init_in(file.data, size), 2);
	/* Where there was room, and nothing had been written into it yet. */
	memset(file.data + first, 0, file.size - first);
	assert_int_equal(init_in(file.data, file.size), 1);
	assert_int_equal(init_in("\n\n", 2), -1);
	assert_int_equal(init_in("\0\0", 2), -1);
	record_done(&r);
}

static void test_a_bare_record_comes_back_as_well(void **state)
{
	struct error err = ERROR_INIT;
	struct record r, back;
	char *text;

	(void)state;
	fill(&r);
	strv_free(r.cgroups);
	r.cgroups = NULL;
	free(r.ledger);
	r.ledger = NULL;
	json_decref(r.extra);
	r.extra = NULL;
	text = text_of(&r);
	assert_int_equal(record_parse(&back, text, strlen(text), &err), 0);
	assert_null(back.ledger);
	assert_null(back.extra);
	free(text);
	record_done(&r);
	record_done(&back);
}

/* Any one key with such a value: the whole record is refused, in one sentence. */
static const struct {
	const char *key, *value;
} bad[] = {
	{"aside", "\"../1\""},
	{"aside", "\"1/2\""},
	{"aside", "1"},
	{"version", "4"},
	{"version", "\"1\""},
	{"id", "\"\""},
	{"id", "\"..\""},
	{"id", "\"a/b\""},
	{"id", "7"},
	{"id", "\"a\\u0000b\""},
	{"token", "\"\""},
	{"token", "\"0123456789ABCDEF0123456789abcdef\""},
	{"token", "\"0123456789abcdef0123456789abcdef0\""},
	{"token", "\"../../../../../../../../../../../\""},
	{"machine", "\"../../etc\""},
	{"machine", "\"000000000000000000000000000000000\""},
	{"boot", "\"a b\""},
	{"uid", "-1"},
	{"uid", "4294967295"},
	{"uid", "1.5"},
	{"uid", "null"},
	{"owner", "\"nobody\""},
	{"owner", "0"},
	{"process", "null"},
	{"process", "{}"},
	{"process", "{\"pid\": 1}"},
	{"process", "{\"pid\": -1, \"start\": 0}"},
	{"process", "{\"pid\": 1, \"start\": 0, \"more\": 0}"},
	{"init", "{\"pid\": -9, \"start\": 0}"},
	{"init", "{\"pid\": 4294967297, \"start\": 0}"},
	{"init", "{\"pid\": 1, \"start\": -1}"},
	{"until", "\"tomorrow\""},
	{"cgroups", "{}"},
	{"cgroups", "[1]"},
	{"cgroups", "[\"relative\"]"},
	{"cgroups", "[\"/sys/../etc\"]"},
	{"cgroups", "[\"/sys/..\"]"},
	{"cgroups",
	 "[\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\","
	 "\"/a\",\"/a\"]"},
	{"path", "\"\""},
	{"path", "\"/\""},
	{"path", "\"tmp/x\""},
	{"path", "\"/tmp/../etc\""},
	{"path", "\"/tmp//x\""},
	{"path", "\"/tmp/x/\""},
	{"path", "\"/tmp/.\""},
	{"scratch", "null"},
	{"device", "\"1\""},
	{"inode", "18446744073709551616"},
	{"ledger", "7"},
	{"surprise", "1"},
};

static void test_one_wrong_value_refuses_the_record(void **state)
{
	struct record good;
	char *text;

	(void)state;
	fill(&good);
	text = text_of(&good);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *json = json_loads(text, 0, NULL);
		struct error err = ERROR_INIT;
		struct record r;
		char *changed, *all;

		json_object_del(json, bad[i].key);
		changed = json_dumps(json, 0);
		/* {"key": VALUE, … as text, since some values are not JSON that could be set. */
		assert_true(asprintf(&all, "{\"%s\": %s, %s", bad[i].key, bad[i].value, changed + 1) > 0);
		if (record_parse(&r, all, strlen(all), &err) >= 0)
			fail_msg("accepted: %s = %s", bad[i].key, bad[i].value);
		assert_true(err.kind != ERROR_NONE && err.message[0]);
		free(all);
		free(changed);
		json_decref(json);
	}
	free(text);
	record_done(&good);
}

static void test_a_missing_or_doubled_key_refuses_the_record(void **state)
{
	static const char *const optional[] = {"ledger", "extra"};
	struct record good;
	const char *key;
	json_t *value, *json;
	char *text, *all;
	void *next;

	(void)state;
	fill(&good);
	text = text_of(&good);
	json = json_loads(text, 0, NULL);
	json_object_foreach_safe(json, next, key, value)
	{
		bool may_miss = strcmp(key, optional[0]) == 0 || strcmp(key, optional[1]) == 0;
		json_t *less = json_copy(json);
		struct error err = ERROR_INIT;
		struct record r;
		char *changed;
		int result;

		json_object_del(less, key);
		changed = json_dumps(less, 0);
		result = record_parse(&r, changed, strlen(changed), &err);
		assert_true(may_miss ? result == 0 : result < 0);
		if (result == 0)
			record_done(&r);
		free(changed);
		json_decref(less);
	}
	{
		struct error err = ERROR_INIT;
		struct record r;

		assert_true(asprintf(&all, "{\"uid\": 0, %s", text + 1) > 0);
		assert_true(record_parse(&r, all, strlen(all), &err) < 0);
		free(all);
	}
	json_decref(json);
	free(text);
	record_done(&good);
}

static void test_every_cut_of_a_record_is_refused(void **state)
{
	struct record good;
	char *text;

	(void)state;
	fill(&good);
	text = text_of(&good);
	for (size_t n = 0; n < strlen(text); n++) {
		struct error err = ERROR_INIT;
		struct record r;

		assert_true(record_parse(&r, text, n, &err) < 0);
	}
	free(text);
	record_done(&good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record_comes_back_as_it_was),
		cmocka_unit_test(test_a_bare_record_comes_back_as_well),
		cmocka_unit_test(test_the_last_line_that_is_whole_counts),
		cmocka_unit_test(test_one_wrong_value_refuses_the_record),
		cmocka_unit_test(test_a_missing_or_doubled_key_refuses_the_record),
		cmocka_unit_test(test_every_cut_of_a_record_is_refused),
	};

	return cmocka_run_group_tests_name("workspace record", tests, NULL, NULL);
}
