/*
 * The site's and the user's configuration, several files merged: the first that sets a key wins, except that what
 * /etc sets as `maximum`, `post_process.tables`, `query.role`, `queue.users` and `queue.allow` cannot be widened by a
 * user's file.
 * Pure: the caller reads the files.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include "limit.h"
#include "request.h"

#define QUEUE_LEASE_MIN_NS (NSEC_PER_SEC)
#define QUEUE_LEASE_MAX_NS (3600 * NSEC_PER_SEC)
#define SLURM_POLL_MIN_NS  (NSEC_PER_SEC / 10)
#define SLURM_POLL_MAX_NS  (600 * NSEC_PER_SEC)
enum { SLURM_JOBS_MAX = 4096 };

/* What is made longer ago than that goes from the ledger, of any of these verdicts (0: of all), or but for its outputs. */
struct retain_rule {
	uint64_t older_ns;
	unsigned verdicts; /* 1 << VERDICT_… */
	bool keeps_outputs;
};

struct config {
	char *ledger; /* URL */
	char *state_dir;
	char *workspace_root;	 /* "/tmp" */
	char *workspace_prefix;	 /* "scidex-analysis-" */
	struct request defaults; /* data, docs, ro, env, keep, outputs, limits …; never id or command */
	struct limits maximum;
	uint64_t keep_max_bytes; /* LIMIT_NONE: no bound */
	uint64_t keep_for_ns;
	struct retain_rule *retain; /* in their order */
	size_t n_retain;
	json_t *post_process;	      /* checked for shape, used by a later stage; NULL if not set */
	char *post_process_directory; /* of the file that names its command; relative as that file was */
	struct limits post_process_limits;
	json_t *query;
	json_t *slurm;		 /* checked for shape, used by the queue's engine; NULL if not set */
	int queue_cap;		 /* running at once per owner, on all workers; 0: no cap */
	int queue_jobs;		 /* at once in one worker; 0: one per CPU */
	uint64_t queue_lease_ns; /* how long a worker may be silent */
	json_t *queue_users; /* {OWNER: USER}: whose rights on this host a submission has; NULL if not set */
	json_t *queue_allow; /* what anybody's submission may name; checked for shape; NULL if not set */
	char *queue_allow_directory; /* of the file that lists post-processes there; relative as that file was */
	unsigned set;		     /* private: which of the numbers were given */
};

void config_init(struct config *c);
void config_done(struct config *c);
#define _cleanup_config_ _cleanup_(config_done)

/* Merges one file's text below what is already set (call in order of precedence, strongest first). is_site: the
 * file is /etc/fumehood/config.yaml and the caller is not root, so that its tables and role replace, and its maximum
 * bounds, what any other file tried to set. */
int config_parse(struct config *c, const char *text, size_t size, const char *file, bool is_site,
		 struct error *err);
/* Built-in values for what is still unset (state_dir and ledger excepted: they need the environment). */
int config_finish(struct config *c, struct error *err);

#endif
