#include "slurm_node.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "text.h"

static const uint64_t ask_ns = 5 * NSEC_PER_SEC;
enum { ANSWER_MAX = 1 << 16 };
enum { STATUS_SIGNAL = 128 }; /* a shell tells of a command's signal like that */

/* What the environment says, if it says something. */
static const char *env_or(const char *name, const char *other)
{
	const char *value = getenv(name);

	return value && *value ? value : other;
}

/* ---- what scontrol says ---- */

/* The value of "Key=value", where it stands for the first time: what a user has chosen comes after it. */
static bool word_of(const char *text, const char *key, char *ret, size_t room)
{
	size_t n = strlen(key);
	const char *at = text;

	while ((at = strstr(at, key)) && (at != text && at[-1] != ' '))
		at += n;
	if (!at)
		return false;
	at += n;
	n = strcspn(at, " \n");
	if (n == 0 || n >= room)
		return false;
	memcpy(ret, at, n);
	ret[n] = 0;
	return true;
}

static bool is_known(const char *text, const char *key)
{
	char value[64];

	return word_of(text, key, value, sizeof value) && strcmp(value, "None") != 0 &&
	       strcmp(value, "Unknown") != 0;
}

int slurm_job_read(const char *text, struct slurm_job_said *ret)
{
	char restarts[16];

	*ret = (struct slurm_job_said){0};
	if (strncmp(text, "JobId=", 6) != 0 || !word_of(text, "JobState=", ret->state, sizeof ret->state))
		return -EINVAL;
	(void)word_of(text, "JobName=", ret->name, sizeof ret->name);
	if (!word_of(text, "Reason=", ret->reason, sizeof ret->reason) || strcmp(ret->reason, "None") == 0)
		ret->reason[0] = 0;
	(void)word_of(text, "TimeLimit=", ret->limit, sizeof ret->limit);
	if (word_of(text, "Restarts=", restarts, sizeof restarts))
		ret->restarts = atoi(restarts);
	ret->is_preempted = is_known(text, "PreemptTime=");
	ret->has_end = is_known(text, "EndTime=");
	return 0;
}

/* "00:02:00" as "2 min", if it is whole minutes below a day. */
static void say_limit(const char *limit, char out[64])
{
	unsigned hours, minutes, seconds;
	char end;

	if (sscanf(limit, "%2u:%2u:%2u%c", &hours, &minutes, &seconds, &end) == 3 && seconds == 0)
		snprintf(out, 64, "%u min", hours * 60 + minutes);
	else
		snprintf(out, 64, "%.32s", limit[0] ? limit : "?");
}

static enum manager_said timed_out(const struct slurm_job_said *j, char reason[MANAGER_REASON_SIZE])
{
	char limit[64];

	say_limit(j->limit, limit);
	snprintf(reason, MANAGER_REASON_SIZE, "Slurm's --time of %s", limit);
	return MANAGER_TIMED_OUT;
}

static enum manager_said takes_back(const char *why, char reason[MANAGER_REASON_SIZE])
{
	snprintf(reason, MANAGER_REASON_SIZE, "Slurm has ended its job: %s", why);
	return MANAGER_TAKES_BACK;
}

enum manager_said slurm_job_means(const struct slurm_job_said *j, int restarts,
				  char reason[MANAGER_REASON_SIZE])
{
	if (strcmp(j->state, "RUNNING") == 0 || strcmp(j->state, "SUSPENDED") == 0)
		return MANAGER_SAYS_NOTHING;
	if (strcmp(j->state, "TIMEOUT") == 0 || strcmp(j->reason, "TimeLimit") == 0)
		return timed_out(j, reason);
	if (j->is_preempted || strcmp(j->state, "PREEMPTED") == 0)
		return takes_back("it was preempted", reason);
	if (j->restarts > restarts || strcmp(j->state, "PENDING") == 0)
		return takes_back("it is to be started again", reason);
	/* While it ends Slurm says no more than that. */
	if (strcmp(j->state, "CANCELLED") == 0 || (strcmp(j->state, "COMPLETING") == 0 && j->has_end)) {
		snprintf(reason, MANAGER_REASON_SIZE, "by scancel");
		return MANAGER_CANCELLED;
	}
	return takes_back(j->reason[0] ? j->reason : j->state, reason);
}

/* ---- asking ---- */

/* Where this host's owner has it: the PATH of a job is its own. */
static bool find_scontrol(char ret[512])
{
	for (const char *at = env_or("PATH", "/usr/local/bin:/usr/bin:/bin"); *at;) {
		size_t n = strcspn(at, ":");

		if (n > 0 && *at == '/' && snprintf(ret, 512, "%.*s/scontrol", (int)n, at) < 512 &&
		    access(ret, X_OK) == 0)
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static int ask_slurm(const struct slurm_node *n, struct slurm_job_said *ret)
{
	_cleanup_child_ struct child_end end = {0};
	struct error ignored = ERROR_INIT;
	char path[512], conf[1024], search[1100];
	const char *argv[] = {"scontrol", "-o", "show", "job", n->job_id, NULL};
	const char *env[3] = {search, NULL, NULL};
	struct child_order order = {
		.path = path, .argv = argv, .env = env, .timeout_ns = ask_ns, .output_max = ANSWER_MAX};

	if (!find_scontrol(path))
		return -ENOENT;
	snprintf(search, sizeof search, "PATH=%s", env_or("PATH", "/usr/bin:/bin"));
	if (getenv("SLURM_CONF")) {
		snprintf(conf, sizeof conf, "SLURM_CONF=%s", getenv("SLURM_CONF"));
		env[1] = conf;
	}
	if (child_run(&order, &end, &ignored) < 0 || end.is_late || end.status != 0)
		return -EIO;
	if (buffer_puts(&end.out, "") < 0 || !end.out.data)
		return -EIO;
	if (slurm_job_read(end.out.data, ret) < 0)
		return -EINVAL;
	/* The number may be another's by now. */
	return strcmp(ret->name, env_or("SLURM_JOB_NAME", ret->name)) == 0 ? 0 : -ESRCH;
}

static bool was_killed(const struct evidence *e)
{
	return e->signal == SIGTERM || e->signal == SIGKILL || e->exit_code == STATUS_SIGNAL + SIGTERM ||
	       e->exit_code == STATUS_SIGNAL + SIGKILL;
}

/* Slurm's own limit, for all of the job, is below ours or the only one. The kernel counts who it killed where that was, not whose limit
 * it was. */
static bool is_its_memory(const struct manager_question *q, char reason[MANAGER_REASON_SIZE])
{
	char limit_text[LIMIT_TEXT_SIZE], used[LIMIT_TEXT_SIZE];
	int64_t kills = q->oom_kills_around, peak = q->usage->memory_peak_bytes;
	uint64_t limit = q->memory_around;

	if (limit == LIMIT_NONE || limit >= q->memory_limit)
		return false;
	if (q->evidence->oom_kills <= 0 &&
	    (q->evidence->oom_kills == 0 || kills <= 0 || !was_killed(q->evidence)))
		return false;
	limit_format(LIMIT_MEMORY, limit, limit_text);
	if (peak < 0)
		snprintf(reason, MANAGER_REASON_SIZE, "Slurm's limit of %s for the whole job (--mem)",
			 limit_text);
	else
		snprintf(reason, MANAGER_REASON_SIZE,
			 "it used %s, and Slurm's limit is %s for the whole job (--mem)",
			 limit_format(LIMIT_MEMORY, (uint64_t)peak, used), limit_text);
	return true;
}

static void note(json_t *engine, const char *key, const char *value)
{
	if (engine && value[0])
		(void)json_object_set_new(engine, key, json_string(value));
}

static enum manager_said ask(void *arg, const struct manager_question *q, json_t *engine,
			     char reason[MANAGER_REASON_SIZE])
{
	const struct slurm_node *n = arg;
	const struct evidence *e = q->evidence;
	struct slurm_job_said job;
	enum manager_said said;

	if (!e->cancel_signal && is_its_memory(q, reason))
		return MANAGER_OUT_OF_MEMORY;
	if (!e->cancel_signal && !was_killed(e) && !atomic_load(&n->is_told))
		return MANAGER_SAYS_NOTHING;
	if (ask_slurm(n, &job) < 0) {
		if (!atomic_load(&n->is_told))
			return MANAGER_SAYS_NOTHING;
		return takes_back("it does not say why", reason);
	}
	said = slurm_job_means(&job, atoi(env_or("SLURM_RESTART_COUNT", "0")), reason);
	if (said == MANAGER_TIMED_OUT || said == MANAGER_CANCELLED) {
		note(engine, "state", said == MANAGER_TIMED_OUT ? "TIMEOUT" : "CANCELLED");
		note(engine, "reason", job.reason);
	}
	return said;
}

/* ---- by the environment ---- */

void slurm_node_init(struct slurm_node *n)
{
	const char *id = getenv("SLURM_JOB_ID"), *array = getenv("SLURM_ARRAY_JOB_ID");

	*n = (struct slurm_node){.manager = {.arg = n, .ask = ask}};
	if (!id || !*id)
		return;
	snprintf(n->job_id, sizeof n->job_id, "%s", id);
	snprintf(n->node, sizeof n->node, "%s", env_or("SLURMD_NODENAME", ""));
	if (array && *array)
		snprintf(n->job, sizeof n->job, "%.32s_%d", array, slurm_node_index());
	else
		snprintf(n->job, sizeof n->job, "%.32s", id);
}

json_t *slurm_node_handle(const struct slurm_node *n)
{
	json_t *handle = n->job[0] ? json_pack("{s:s, s:s}", "engine", "slurm", "job", n->job) : NULL;

	note(handle, "node", n->node);
	note(handle, "cluster", env_or("SLURM_CLUSTER_NAME", ""));
	return handle;
}

int slurm_node_index(void)
{
	return atoi(env_or("SLURM_ARRAY_TASK_ID", "0"));
}
