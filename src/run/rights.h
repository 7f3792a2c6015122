/*
 * Whose rights a queued analysis has on this host. Whoever may submit is not the worker's user: what a submission names of
 * this host (data, docs, ro, into, programs and their prefixes) is resolved with the rights of the local user that its
 * owner maps to (queue.users), in a child that has become that user, or must be listed in the site's configuration
 * (queue.allow). Other rights (env without a value, query, keep, allow_unlimited, landlock, a post-process) must be listed. Only
 * what the worker's own user has submitted is resolved as if he had run it. Whose an attempt is, is found when it begins, written
 * down (rights_to_json), and never asked again: who goes on with it recalls it.
 *
 *   rights_find → rights_apply (by plan_resolve, before the site's defaults come in) → … → rights_done
 *
 * Each place that was granted stays open until rights_done: its device and inode, which the sandbox compares, are nobody
 * else's meanwhile. Nothing is made or changed before an analysis is refused.
 */
#ifndef RUN_RIGHTS_H
#define RUN_RIGHTS_H

#include "become.h"
#include "hood.h"
#include "program.h"

/* A file or directory of this host that the submission names. */
struct granted_place {
	const char *option, *key; /* "--ro", "ro" */
	char *asked;		  /* absolute */
	char *path;		  /* canonical, when it was granted */
	int fd;			  /* O_PATH, likewise; -1 */
	uint64_t device, inode;
	bool by_user; /* with the user's rights; else it is listed, and read with those of everybody */
	gid_t gid;    /* by_user: as which of the user's groups */
	int listed;   /* O_PATH: what the configuration lists and it lies in; -1 */
	char *rest;   /* its path from there */
	bool optional; /* of the submitter's environment: not granted, it is not shown, and why says the reason */
	char *why;
};

/* A program as its user finds it. */
struct granted_program {
	struct program found;
	char *real; /* where its links lead; NULL: it is not there, or not for him */
};

enum into_rights { INTO_NOT_ASKED /* the site's own, if any */, INTO_BY_USER, INTO_LISTED };

struct rights {
	bool is_queued;
	bool is_bound; /* somebody else's than the worker's own user */
	bool has_user; /* who: the local user; else everybody */
	struct identity who;
	char *owner;
	char why[512];	    /* there is no user: half a sentence */
	const char *remedy; /* what else would help, besides a list */
	struct granted_place *places;
	size_t n_places;
	struct granted_program program;
	bool post_is_own;   /* of the worker's own user: with the files of his submission */
	bool post_is_sites; /* listed: its files lie beside the configuration */
	enum into_rights into;
};
void rights_init(struct rights *r);
void rights_done(struct rights *r);
#define _cleanup_rights_ _cleanup_(rights_done)

/* job NULL: not queued; everything as the caller may. Refused: a row whose request is another's. */
int rights_find(struct hood *h, const struct job *job, const struct request *request, struct rights *ret,
		struct error *err);

/* {"owner", "uid", "bound", "ledger"} in a record's extra and in `ended`. owner null: not queued; uid null: no user of this host. */
#define RECORD_WHOSE "whose"
json_t *rights_to_json(const struct rights *r, const char *ledger);
/* ERROR_REFUSED: it is not ours to go on with. */
int rights_recall(const json_t *whose, struct rights *ret, struct error *err);

/* Whose files a submission's post-process has; ERROR_REFUSED: somebody else's, and not listed. */
int rights_choose_post(const struct hood *h, struct rights *rights, const char *command, struct error *err);
/* Would that of a submitter be refused, as far as the configuration here can tell? */
bool rights_lack_post(const struct hood *h, const char *command);

/* Checks r, which is as it was submitted, and makes it what the worker may run: places canonical, variables filled in, the
 * directory of the submitter forgotten. ERROR_REFUSED: one sentence on what is not allowed, for whom, and what to configure. */
int rights_apply(struct hood *h, struct rights *rights, struct request *r, struct error *err);

/* The granted place with this canonical path; NULL: the site's own. */
const struct granted_place *rights_place(const struct rights *rights, const char *path);

/* One more, of which nothing is known yet; NULL if memory is out. */
struct granted_place *rights_add_place(struct rights *rights, const char *option, const char *key);

/* rights_child.c: all that is asked of the file system, asked by who. */
int rights_resolve(struct hood *h, struct rights *rights, const struct request *r, const char *into,
		   struct error *err);

/* "/srv/data" in "/srv/data/a/b": "a/b". NULL: it does not lie there, as far as its words tell. */
const char *rights_rest(const char *path, const char *base);

/* What is not allowed; reason NULL: there is no user. */
int rights_refuse(const struct rights *rights, const char *option, const char *value, const char *key,
		  const char *reason, struct error *err);

#endif
