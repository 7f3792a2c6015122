/*
 * What of the host a request names to be shown: data, docs, --ro. Canonical paths, and never what is the machine's or ours.
 */
#include "private.h"
#include "file.h"
#include "rights.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int input_check_machine(const char *path, const char *option, struct error *err)
{
	static const char *const never[] = {"/", "/proc", "/sys", "/dev", "/run"};

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (strcmp(path, never[i]) == 0 || (i > 0 && path_is_below(path, never[i])))
			return error_set(err, ERROR_REFUSED,
					 "%s '%s' is refused: '%s' is the machine's, not an input", option,
					 path, never[i]);
	return 0;
}

int input_check(const struct hood *h, const char *path, const char *option, struct error *err)
{
	_cleanup_free_ char *ledger = NULL;
	const char *root = h->config.workspace_root;
	char real[PATH_MAX];
	int r = input_check_machine(path, option, err);

	if (r < 0)
		return r;
	if (path_is_below(root, path))
		return error_set(
			err, ERROR_REFUSED,
			"%s '%s' is refused: it contains '%s', where the workspaces of all analyses lie",
			option, path, root);
	if (realpath(h->state_dir, real) && (path_is_below(real, path) || path_is_below(path, real)))
		return error_set(err, ERROR_REFUSED,
				 "%s '%s' is refused: it contains fumehood's state directory '%s'", option,
				 path, real);
	if (strncmp(h->ledger_url, "sqlite:", 7) == 0) {
		ledger = strdup(h->ledger_url + 7);
		if (!ledger)
			return error_memory(err);
		/* It may not exist yet; its directory decides then. */
		if (!realpath(ledger, real)) {
			char *slash = strrchr(ledger, '/');

			if (slash)
				*slash = 0;
			if (!slash || !realpath(ledger, real))
				return 0;
		}
		if (path_is_below(real, path) &&
		    !(strcmp(real, path) == 0 && access(h->ledger_url + 7, F_OK) < 0))
			return error_set(err, ERROR_REFUSED,
					 "%s '%s' is refused: it contains the ledger '%s'", option, path,
					 h->ledger_url + 7);
	}
	return 0;
}

int default_check(const char *directory, const char *name, const char *real, struct error *err)
{
	char base[PATH_MAX];

	if (realpath(directory, base) && path_is_below(real, base))
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"'%s' in '%s' is a link that leads out, to '%s': say --%s %s to show that to the analysis",
		name, directory, real, name, real);
}

static int cannot_use(int errnum, const char *option, const char *path, struct error *err)
{
	if (errnum == ELOOP)
		return error_set(
			err, ERROR_REFUSED,
			"%s '%s' is refused: a link of another user's lies on the way, or links without end",
			option, path);
	return error_system(err, errnum, "cannot use %s '%s'", option, path);
}

/* A directory of the request: canonical. Missing: an error if it was asked for, NULL if it was only a default. */
static int resolve_directory(struct hood *h, const char *base, const char *asked, const char *fallback,
			     const char *option, char **ret, struct error *err)
{
	_cleanup_free_ char *path = NULL, *real = NULL;
	struct stat st;
	int r;

	if (!asked && !fallback)
		return 0;
	path = path_from(base, asked ? asked : fallback);
	if (!path)
		return error_memory(err);
	real = path_real_trusted(path);
	if (!real)
		return !asked && errno == ENOENT ? 0 : cannot_use(errno, option, path, err);
	if (stat(real, &st) < 0)
		return error_system(err, errno, "cannot look at %s '%s'", option, path);
	if (!S_ISDIR(st.st_mode))
		return asked ? error_set(err, ERROR_REFUSED, "%s '%s' is not a directory", option, path) : 0;
	if ((!asked && (r = default_check(base, fallback, real, err)) < 0) ||
	    (r = input_check(h, real, option, err)) < 0)
		return r;
	*ret = TAKE_PTR(real);
	return 0;
}

int resolve_ro(struct hood *h, struct request *r, struct error *err)
{
	for (size_t i = 0; i < r->n_ro; i++) {
		_cleanup_free_ char *path = path_from(r->directory, r->ro[i].from);
		_cleanup_free_ char *real = path ? path_real_trusted(path) : NULL;
		int e;

		if (!path)
			return error_memory(err);
		if (!real)
			return cannot_use(errno, "--ro", path, err);
		e = input_check(h, real, "--ro", err);
		if (e < 0)
			return e;
		/* Its own path: as it was given too, where links lead elsewhere. */
		if (!r->ro[i].to)
			r->ro[i].to = TAKE_PTR(path);
		if (r->ro[i].to[0] != '/')
			return error_set(err, ERROR_USAGE,
					 "--ro '%s:%s': the place inside must be an absolute path",
					 r->ro[i].from, r->ro[i].to);
		free(r->ro[i].from);
		r->ro[i].from = TAKE_PTR(real);
	}
	return 0;
}

int resolve_inputs(struct hood *h, struct request *r, const struct rights *rights, bool own_data,
		   bool own_docs, bool own_ro, struct plan *plan, struct error *err)
{
	bool queued = rights && rights->is_queued, granted = rights && rights->is_bound;
	struct {
		const char *asked, *fallback, *option;
		bool is_granted;
		char **to;
	} directories[] = {{r->data, "data", "--data", granted && own_data, &plan->data},
			   {r->docs, "docs", "--docs", granted && own_docs, &plan->docs}};

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		const char *asked = directories[i].asked, *option = directories[i].option;
		int e;

		if (directories[i].is_granted)
			e = text_set(directories[i].to, asked, err);
		else
			e = resolve_directory(h, r->directory, asked, queued ? NULL : directories[i].fallback,
					      option, directories[i].to, err);
		if (e < 0)
			return e;
	}
	return granted && own_ro ? 0 : resolve_ro(h, r, err);
}
