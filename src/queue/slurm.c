#include "slurm.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "become.h"
#include "child.h"
#include "slurm_private.h"
#include "text.h"

static const uint64_t deadline_ns = 30 * NSEC_PER_SEC;
enum { OUTPUT_MAX = 256 << 20, LIST_MAX = 1000 };

struct slurm *slurm_close(struct slurm *s)
{
	if (!s)
		return NULL;
	free(s->bin);
	free(s->command);
	free(s->log);
	strv_free(s->options);
	strv_free(s->env);
	free(s->script);
	json_decref(s->users);
	free(s);
	return NULL;
}

/* ---- a command ---- */

static int late(const char *name, struct error *err)
{
	return error_set(err, ERROR_BUSY, "%s did not answer within %d s", name,
			 (int)(deadline_ns / NSEC_PER_SEC));
}

/* 0: it ended well. env NULL: the site's. */
static int call(const struct slurm *s, const char *const *argv, char *const *env, const char *input,
		struct child_end *ret, enum slurm_failure *ret_failure, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	struct child_order o = {
		.argv = argv,
		.env = (const char *const *)(env ? env : s->env),
		.input = input,
		.input_size = input ? strlen(input) : 0,
		.timeout_ns = deadline_ns,
		.output_max = OUTPUT_MAX,
	};
	enum slurm_failure failure;
	char why[512];

	*ret_failure = SLURM_PASSING;
	*ret = (struct child_end){0};
	if (text_print(&path, err, "%s/%s", s->bin, argv[0]) < 0)
		return -1;
	o.path = path;
	*ret_failure = SLURM_STRANGE;
	if (child_run(&o, ret, err) < 0)
		return -1;
	failure = slurm_failure_parse(ret->err.data ? ret->err.data : "", why, sizeof why);
	if (ret->is_late) {
		/* Where there are too many jobs sbatch says so, and goes on trying by itself. */
		*ret_failure = failure == SLURM_FULL ? SLURM_FULL : SLURM_PASSING;
		return late(argv[0], err);
	}
	if (ret->status == 0)
		return ret->is_cut ? error_set(err, ERROR_BUSY, "%s said too much", argv[0]) : 0;
	*ret_failure = failure;
	if (*why)
		return error_set(err, failure == SLURM_REFUSED ? ERROR_REFUSED : ERROR_BUSY, "%s", why);
	return error_set(err, ERROR_BUSY, "%s ended with status %d, and did not say why", argv[0],
			 ret->status);
}

/* ---- submit ---- */

static int add_identity(const struct identity *who, char ***env, struct error *err)
{
	_cleanup_free_ char *home = NULL, *user = NULL, *log_name = NULL;

	if (text_print(&home, err, "HOME=%s", who->home) < 0 ||
	    text_print(&user, err, "USER=%s", who->name) < 0 ||
	    text_print(&log_name, err, "LOGNAME=%s", who->name) < 0)
		return -1;
	return strv_append(env, home, err) < 0 || strv_append(env, user, err) < 0 ||
			       strv_append(env, log_name, err) < 0
		       ? -1
		       : 0;
}

/* The job's environment is sbatch's: of another user, his. NULL: ours. */
static int env_for(const struct slurm *s, char *const *options, char ***ret, struct error *err)
{
	static const char uid[] = "--uid=";
	_cleanup_identity_ struct identity who = {0};
	const char *user = NULL;

	for (size_t i = 0; s->users && options && options[i]; i++)
		if (strncmp(options[i], uid, sizeof uid - 1) == 0)
			user = options[i] + sizeof uid - 1;
	if (!user)
		return 0;
	if (identity_find(user, &who, err) < 0)
		return -1;
	for (size_t i = 0; s->env[i]; i++)
		if (strncmp(s->env[i], "HOME=", 5) != 0 && strncmp(s->env[i], "USER=", 5) != 0 &&
		    strncmp(s->env[i], "LOGNAME=", 8) != 0 && strv_append(ret, s->env[i], err) < 0)
			return -1;
	return add_identity(&who, ret, err);
}

static int submit_words(const struct slurm *s, const char *batch, size_t count, char *const *options,
			char ***ret, struct error *err)
{
	static const char *const fixed[] = {"sbatch",	 "--parsable", "--no-requeue", "--export=ALL",
					    "--chdir=/", "--nodes=1",  "--ntasks=1"};
	_cleanup_free_ char *name = NULL, *array = NULL, *output = NULL;

	if (text_print(&name, err, "--job-name=" SLURM_NAME "%s", batch) < 0 ||
	    text_print(&array, err, "--array=0-%zu", count - 1) < 0 ||
	    text_print(&output, err, "--output=%s%s", s->log ? s->log : "/dev/null",
		       !s->log		  ? ""
		       : s->array_max > 1 ? "/fumehood-%A_%a.log"
					  : "/fumehood-%j.log") < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strv_append(ret, fixed[i], err) < 0)
			return -1;
	if (strv_append(ret, name, err) < 0 || strv_append(ret, output, err) < 0 ||
	    (s->array_max > 1 && strv_append(ret, array, err) < 0))
		return -1;
	for (size_t i = 0; options && options[i]; i++)
		if (strv_append(ret, options[i], err) < 0)
			return -1;
	return 0;
}

int slurm_submit(const struct slurm *s, const char *batch, size_t count, char *const *options,
		 char job[SLURM_JOB_ROOM], enum slurm_failure *ret_failure, struct error *err)
{
	_cleanup_strv_ char **words = NULL, **env = NULL;
	_cleanup_free_ char *script = NULL;
	_cleanup_child_ struct child_end end = {0};

	*ret_failure = SLURM_PASSING;
	if (submit_words(s, batch, count, options, &words, err) < 0 || env_for(s, options, &env, err) < 0 ||
	    slurm_script(s, batch, &script, err) < 0 ||
	    call(s, (const char *const *)words, env, script, &end, ret_failure, err) < 0)
		return -1;
	if (slurm_job_parse(end.out.data ? end.out.data : "", job) == 0)
		return 0;
	*ret_failure = SLURM_STRANGE;
	return error_set(err, ERROR_BUSY, "sbatch did not say which job it made, but '%s'",
			 SHOWN(128, end.out.data ? end.out.data : ""));
}

/* ---- look, cancel ---- */

/* Only jobs of these names: a name may have line breaks in it, and a line that somebody else has made up would be taken for ours. */
static int look(const struct slurm *s, const char *names, const char *jobs, slurm_seen_fn fn, void *arg,
		enum slurm_failure *ret_failure, struct error *err)
{
	char user[32];
	const char *words[16] = {"squeue", "-a", "-h", "-r", "-t", "all", "-O", SLURM_FIELDS, "-n", names};
	_cleanup_child_ struct child_end end = {0};
	size_t n = 10;

	snprintf(user, sizeof user, "%u", geteuid());
	if (!s->users) {
		words[n++] = "-u";
		words[n++] = user;
	}
	if (jobs) {
		words[n++] = "-j";
		words[n++] = jobs;
	}
	if (call(s, words, NULL, NULL, &end, ret_failure, err) < 0)
		return -1;
	for (const char *at = end.out.data; at && *at;) {
		size_t size = strcspn(at, "\n");
		struct slurm_seen seen;

		if (slurm_seen_parse(at, size, &seen) == 0 && fn(arg, &seen, err) < 0)
			return -1;
		at += size + (at[size] == '\n');
	}
	return 0;
}

static void put_list(struct buffer *b, const char *front, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buffer_printf(b, "%s%s%s", i ? "," : "", front, words[i]);
}

int slurm_look(const struct slurm *s, char *const *batches, char *const *jobs, slurm_seen_fn fn, void *arg,
	       struct error *err)
{
	size_t count = strv_length(batches);

	for (size_t i = 0; i < count; i += LIST_MAX) {
		_cleanup_buffer_ struct buffer names = {0}, list = {0};
		size_t n = count - i < LIST_MAX ? count - i : LIST_MAX;
		enum slurm_failure failure;

		put_list(&names, SLURM_NAME, batches + i, n);
		if (jobs)
			put_list(&list, "", jobs + i, n);
		if (buffer_check(&names, err) < 0 || buffer_check(&list, err) < 0)
			return -1;
		if (look(s, names.data, list.data, fn, arg, &failure, err) == 0)
			continue;
		/* "Invalid job id specified": the only one that was asked for is not there. */
		if (!jobs || failure != SLURM_REFUSED)
			return -1;
		*err = (struct error)ERROR_INIT;
	}
	return 0;
}

/* Not with --name beside the ids: what is pending of an array is one record in Slurm, and all of it would be ended with one of its tasks. */
static int cancel_some(const struct slurm *s, char *const *jobs, size_t n, struct error *err)
{
	_cleanup_strv_ char **words = NULL;
	_cleanup_child_ struct child_end end = {0};
	enum slurm_failure failure;

	if (strv_append(&words, "scancel", err) < 0 || strv_append(&words, "-Q", err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (strv_append(&words, jobs[i], err) < 0)
			return -1;
	/* Its status tells of those that have ended already. */
	if (call(s, (const char *const *)words, NULL, NULL, &end, &failure, err) < 0 &&
	    (end.is_late || !end.status))
		return -1;
	*err = (struct error)ERROR_INIT;
	return 0;
}

int slurm_cancel(const struct slurm *s, char *const *jobs, struct error *err)
{
	size_t n = strv_length(jobs);

	for (size_t i = 0; i < n; i += LIST_MAX)
		if (cancel_some(s, jobs + i, n - i < LIST_MAX ? n - i : LIST_MAX, err) < 0)
			return -1;
	return 0;
}

/* ---- which Slurm ---- */

int slurm_ask_site(struct slurm *s, struct error *err)
{
	const char *const words[] = {"scontrol", "show", "config", NULL};
	_cleanup_child_ struct child_end end = {0};
	enum slurm_failure failure;
	char number[16];
	const char *text;

	if (call(s, words, NULL, NULL, &end, &failure, err) < 0)
		return error_prefix(err, -1, "cannot ask Slurm for its configuration");
	text = end.out.data ? end.out.data : "";
	if (slurm_setting_parse(text, "ClusterName", s->cluster, sizeof s->cluster) < 0 ||
	    strchr(s->cluster, '/') || s->cluster[0] == '.')
		return error_set(
			err, ERROR_BUSY,
			"Slurm's configuration has no ClusterName: 'scontrol show config' has to tell it");
	/* The largest index is one less. */
	if (slurm_setting_parse(text, "MaxArraySize", number, sizeof number) < 0 ||
	    int_parse(number, 0, INT_MAX, &s->array_max) < 0)
		s->array_max = 1001;
	if (s->array_max < 1)
		s->array_max = 1;
	return 0;
}
