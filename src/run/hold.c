/*
 * For analyses that run inside the platform's own process, or in several steps: a held workspace is made and cleaned up. How it is
 * committed is in hold_commit.c.
 */
#include "cause.h"
#include "steps.h"
#include "text.h"

/* As a run's would be: what the site does not allow is refused now. */
static int check_held_limits(const struct hood *h, const struct limits *l, struct error *err)
{
	struct limits copy = *l;

	return limits_cap(&copy, &h->config.maximum, err);
}

int hood_workspace_create(struct hood *h, const char *id, const struct process_id *owner, int64_t until,
			  const struct limits *limits, char **ret_path, struct error *err)
{
	struct recovery recovery = {.hood = h};
	_cleanup_free_ char *path = NULL;
	struct site *site = NULL;
	int r;

	if ((r = id_check(id, err)) < 0 || (limits && (r = check_held_limits(h, limits, err)) < 0) ||
	    (r = hood_site(h, &site, err)) < 0 ||
	    (r = workspace_hold(site, id, owner, until, recover_workspace, &recovery, &path, err)) < 0 ||
	    (limits && (r = held_limits_save(site, id, limits, err)) < 0))
		return cause_explain_call(r, err);
	*ret_path = TAKE_PTR(path);
	return 0;
}

int hood_workspace_cleanup(struct hood *h, const char *id, bool discard, struct error *err)
{
	struct recovery recovery = {.hood = h, .discards = discard, .cleans_up = true};
	_cleanup_strv_ char **folders = NULL;
	struct site *site = NULL;
	int r;

	if ((r = id_check(id, err)) < 0 || (r = hood_site(h, &site, err)) < 0 ||
	    (r = workspace_take(site, id, recover_workspace, &recovery, err)) < 0 ||
	    (r = workspace_folders(site, id, &folders, err)) < 0)
		return r;
	/* Those of earlier attempts that were kept. */
	for (size_t i = 0; r == 0 && folders[i]; i++)
		r = workspace_take(site, folders[i], recover_workspace, &recovery, err);
	return r;
}
