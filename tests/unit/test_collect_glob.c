#include "place.h"

#include <time.h>

#include "collect.h"
#include "text.h"

static const struct {
	const char *pattern, *path;
	bool match;
} cases[] = {
	{"result.csv", "result.csv", true},
	{"result.csv", "sub/result.csv", false},
	{"result.csv", "result.csvx", false},
	{"*.csv", "a.csv", true},
	{"*.csv", ".csv", true},
	{"*.csv", "sub/a.csv", false},
	{"*", "a", true},
	{"*", "sub/a", true}, /* a directory means all below it */
	{"s*", "sub/deep/a", true},
	{"?.csv", "a.csv", true},
	{"?.csv", "ab.csv", false},
	{"?.csv", "é.csv", true},
	{"?.csv", "\xff.csv", true},
	{"??.csv", "é.csv", false},
	{"[a-c].csv", "b.csv", true},
	{"[a-c].csv", "d.csv", false},
	{"[!a-c].csv", "d.csv", true},
	{"[^a-c].csv", "a.csv", false},
	{"[]].csv", "].csv", true},
	{"[]a].csv", "a.csv", true},
	{"[a-].csv", "-.csv", true},
	{"[à-ü].csv", "é.csv", true},
	{"[a", "[a", true},
	{"[*].csv", "*.csv", true},
	{"[*].csv", "a.csv", false},
	{"a\\*", "a\\b", true}, /* a backslash is a backslash */
	{"**", "a", true},
	{"**", "a/b/c", true},
	{"**/x", "x", true},
	{"**/x", "a/x", true},
	{"**/x", "a/b/x", true},
	{"**/x", "a/b/xy", false},
	{"**/*.png", "a/b/c.png", true},
	{"a/**/z", "a/z", true},
	{"a/**/z", "a/b/c/z", true},
	{"a/**/z", "b/z", false},
	{"a/**/b/**/c", "a/x/b/y/b/c", true},
	{"a/**/b/**/c", "a/x/c", false},
	{"a/**", "a/b", true},
	{"a/**", "a", false},
	{"a**b", "axxb", true},
	{"a**b", "a/b", false},
	{"results", "results/a/b", true},
	{"results", "results", true},
	{"results/", "results/a", true},
	{"results/", "results", false},
	{"results/", "resultsx/a", false},
	{"results", "resultsx/a", false},
	{"./results/*.csv", "results/a.csv", true},
	{"results//a", "results/a", true},
	{"results/./a", "results/a", true},
	{".", "a/b", true},
	{"*/", "a", false},
	{"*/", "a/b", true},
	{"**/d/", "x/d/f", true},
	{"**/d/", "x/d", false},
	{"a*b*c", "aXbYc", true},
	{"a*b*c", "aXbY", false},
	{"new\nline", "new\nline", true},
	{"*", "\xff\xfe", true},
	{"", "a", true},
};

static void test_patterns_mean_what_the_manual_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (output_glob_match(cases[i].pattern, cases[i].path) != cases[i].match)
			fail_msg("'%s' and '%s' should %smatch", cases[i].pattern, cases[i].path,
				 cases[i].match ? "" : "not ");
}

/* The plain definition, exponential and obviously right, for components without sets. */
static bool slow_component(const char *p, const char *pe, const char *s, const char *se)
{
	if (p == pe)
		return s == se;
	if (*p == '*')
		return slow_component(p + 1, pe, s, se) || (s < se && slow_component(p, pe, s + 1, se));
	return s < se && (*p == '?' || *p == *s) && slow_component(p + 1, pe, s + 1, se);
}

static bool slow_match(const char *p, const char *s, bool below_only)
{
	const char *pe = p + strcspn(p, "/"), *se = s + strcspn(s, "/");

	if (*p == 0)
		return *s != 0 || !below_only;
	if (pe - p == 2 && p[0] == '*' && p[1] == '*')
		return slow_match(*pe ? pe + 1 : pe, s, below_only) ||
		       (*s && slow_match(p, *se ? se + 1 : se, below_only));
	return *s && slow_component(p, pe, s, se) &&
	       slow_match(*pe ? pe + 1 : pe, *se ? se + 1 : se, below_only);
}

static void make_up(unsigned *seed, const char *alphabet, char *out, int length)
{
	int n = 1 + (int)(rand_r(seed) % (unsigned)length);
	char last = '/';

	for (int i = 0; i < n; i++) {
		char c;

		do
			c = alphabet[(size_t)rand_r(seed) % strlen(alphabet)];
		while (c == '/' && (last == '/' || i == n - 1));
		*out++ = last = c;
	}
	*out = 0;
}

static void test_the_quick_matcher_agrees_with_the_definition(void **state)
{
	unsigned seed = 1;
	int matched = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char pattern[16], path[16];
		bool slow, below_only;

		make_up(&seed, "ab*?*/", pattern, 9);
		make_up(&seed, "ab/", path, 9);
		below_only = strlen(pattern) >= 3 && strcmp(pattern + strlen(pattern) - 3, "/**") == 0;
		slow = slow_match(pattern, path, below_only);
		if (slow != output_glob_match(pattern, path))
			fail_msg("'%s' and '%s': %d", pattern, path, slow);
		matched += slow;
	}
	assert_true(matched > 10000);
}

static void test_no_pattern_takes_for_ever(void **state)
{
	clock_t start = clock();
	char pattern[4000], path[4000];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof pattern; i += 2)
		memcpy(pattern + i, "a*", 3);
	strcat(pattern, "b");
	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = 0;
	assert_false(output_glob_match(pattern, path));
	for (size_t i = 0; i + 4 < sizeof pattern; i += 3)
		memcpy(pattern + i, "**/", 4);
	strcat(pattern, "b");
	for (size_t i = 1; i < sizeof path - 1; i += 2)
		path[i] = '/';
	path[sizeof path - 2] = 'a';
	assert_false(output_glob_match(pattern, path));
	for (size_t i = 0; i + 6 < sizeof pattern; i += 5)
		memcpy(pattern + i, "**/a/", 6);
	strcat(pattern, "b");
	assert_false(output_glob_match(pattern, path));
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns_mean_what_the_manual_says),
		cmocka_unit_test(test_the_quick_matcher_agrees_with_the_definition),
		cmocka_unit_test(test_no_pattern_takes_for_ever),
	};

	return cmocka_run_group_tests_name("collect glob", tests, NULL, NULL);
}
