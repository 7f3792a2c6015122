#include "profile.h"
#include "capabilities.h"

#include <err.h>
#include <errno.h>
#include <jansson.h>
#include <seccomp.h>
#include <string.h>

enum { ARGS_MAX = 6 };

static bool has_capability(const json_t *name, uint64_t capabilities)
{
	return capabilities & capability_find(json_string_value(name));
}

static bool is_here(const json_t *arch)
{
#if defined(__x86_64__)
	return strcmp(json_string_value(arch), "amd64") == 0;
#else
	return strcmp(json_string_value(arch), "arm64") == 0;
#endif
}

/* all: each capability that is named must be there; else any of them counts. */
static bool matches(const json_t *condition, uint64_t capabilities, bool all)
{
	const json_t *caps = json_object_get(condition, "caps"),
		     *arches = json_object_get(condition, "arches"), *one;
	size_t i, found = 0;
	bool here = false;

	json_array_foreach (caps, i, one)
		found += has_capability(one, capabilities);
	json_array_foreach (arches, i, one)
		here |= is_here(one);
	if (!all)
		return found > 0 || here;
	return found == json_array_size(caps) && (!arches || here);
}

/* 0 would tell of a success that is none. */
static uint32_t errno_action(json_int_t errnum)
{
	if (errnum < 1)
		errx(125, "a call is refused with an errno, which %lld is not", (long long)errnum);
	return SCMP_ACT_ERRNO((uint32_t)errnum);
}

static uint32_t action_of(const json_t *group, uint32_t otherwise)
{
	const char *name = json_string_value(json_object_get(group, "action"));
	const json_t *number = json_object_get(group, "errnoRet");

	if (name && strcmp(name, "SCMP_ACT_ALLOW") == 0)
		return SCMP_ACT_ALLOW;
	if (!name || strcmp(name, "SCMP_ACT_ERRNO") != 0)
		errx(125, "the action '%s' is not known here", name ? name : "");
	return number ? errno_action(json_integer_value(number)) : otherwise;
}

static unsigned args_of(const json_t *list, struct scmp_arg_cmp out[ARGS_MAX])
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *op = json_string_value(json_object_get(one, "op"));
		uint64_t value = (uint64_t)json_integer_value(json_object_get(one, "value"));
		unsigned at = (unsigned)json_integer_value(json_object_get(one, "index"));

		if (strcmp(op, "SCMP_CMP_MASKED_EQ") == 0) /* of the masked bits none may be set */
			out[i] = SCMP_CMP(at, SCMP_CMP_MASKED_EQ, value, 0);
		else
			out[i] = SCMP_CMP(at, strcmp(op, "SCMP_CMP_NE") == 0 ? SCMP_CMP_NE : SCMP_CMP_EQ,
					  value);
	}
	return (unsigned)i;
}

static void group_add(scmp_filter_ctx filter, const json_t *group, uint32_t otherwise)
{
	struct scmp_arg_cmp args[ARGS_MAX];
	unsigned n = args_of(json_object_get(group, "args"), args);
	uint32_t action = action_of(group, otherwise);
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(group, "names"), i, name) {
		int call = seccomp_syscall_resolve_name(json_string_value(name)), r;

		if (call == __NR_SCMP_ERROR ||
		    action == otherwise) /* newer than the library, or said already */
			continue;
		r = seccomp_rule_add_array(filter, action, call, n, args);
		if (r < 0)
			errx(125, "cannot add '%s': %s", json_string_value(name), strerror(-r));
	}
}

/* Without no_new_privs where that can be, as runtimes do. */
static void filter_load(scmp_filter_ctx filter)
{
	int r = seccomp_load(filter);

	if (r == -EACCES || r == -EPERM) {
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 1);
		r = seccomp_load(filter);
	}
	if (r < 0)
		errx(125, "cannot load the filter: %s", strerror(-r));
	seccomp_release(filter);
}

static scmp_filter_ctx filter_make(uint32_t otherwise)
{
	scmp_filter_ctx filter = seccomp_init(otherwise);

	if (!filter || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) < 0)
		errx(125, "cannot make a filter");
	return filter;
}

void profile_load(const char *path, const char *skip, uint64_t capabilities)
{
	json_error_t problem;
	json_t *profile = json_load_file(path, 0, &problem), *group;
	scmp_filter_ctx filter;
	uint32_t otherwise;
	size_t i;

	if (!profile)
		errx(125, "cannot read '%s': %s", path, problem.text);
	otherwise = errno_action(json_integer_value(json_object_get(profile, "defaultErrnoRet")));
	filter = filter_make(otherwise);
	json_array_foreach (json_object_get(profile, "syscalls"), i, group) {
		const char *comment = json_string_value(json_object_get(group, "comment"));
		const json_t *excludes = json_object_get(group, "excludes");

		if ((skip && comment && strncmp(comment, skip, strlen(skip)) == 0) ||
		    (excludes && matches(excludes, capabilities, false)) ||
		    !matches(json_object_get(group, "includes"), capabilities, true))
			continue;
		group_add(filter, group, otherwise);
	}
	filter_load(filter);
	json_decref(profile);
}

void profile_refuse(const char *call, int errnum)
{
	scmp_filter_ctx filter = filter_make(SCMP_ACT_ALLOW);
	int number = seccomp_syscall_resolve_name(call);

	if (number == __NR_SCMP_ERROR || seccomp_rule_add(filter, errno_action(errnum), number, 0) < 0)
		errx(125, "there is no system call '%s'", call);
	filter_load(filter);
}
