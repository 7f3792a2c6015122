#include "private.h"
#include "ability.h"
#include "cause.h"
#include "file.h"
#include "hand.h"
#include "lending.h"
#include "owned.h"
#include "stock.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CONFIG_MAX = 1024 * 1024 };
static const char site_config[] = "/etc/fumehood/config.yaml";

/* $NAME/rest, or $HOME/fallback/rest; NULL if neither is known. */
static char *xdg_path(const char *name, const char *fallback, const char *rest)
{
	const char *base = getenv(name), *home = getenv("HOME");
	_cleanup_free_ char *directory = NULL;

	if (base && *base == '/')
		return path_join(base, rest);
	if (!home || *home != '/')
		return NULL;
	directory = path_join(home, fallback);
	return directory ? path_join(directory, rest) : NULL;
}

static int config_load(struct config *c, const char *path, bool required, bool is_site, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};

	if (!required && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (owned_check("configuration", path, OWNED_FILE, err) < 0)
		return -EPERM;
	if (file_load(AT_FDCWD, path, CONFIG_MAX, &text, err) < 0)
		return error_prefix(err, -EINVAL, "cannot read the configuration");
	return config_parse(c, text.data ? text.data : "", text.size, path, is_site, err);
}

static int config_load_all(struct hood *h, const struct hood_options *o, struct error *err)
{
	_cleanup_free_ char *user = xdg_path("XDG_CONFIG_HOME", ".config", "fumehood/config.yaml");
	struct config *c = &h->config;
	int r;

	if ((o->config_file && (r = config_load(c, o->config_file, true, false, err)) < 0) ||
	    (user && (r = config_load(c, user, false, false, err)) < 0) ||
	    (r = config_load(c, site_config, false, !ability_is_root(), err)) < 0)
		return r;
	return config_finish(c, err);
}

/* A bare path means SQLite; relative ones start here and are made absolute, so that the record can name them. */
static char *ledger_normal(const char *url, const char *directory)
{
	_cleanup_free_ char *path = NULL;
	char *full = NULL;

	if (strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0)
		return strdup(url);
	if (strncmp(url, "sqlite:", 7) == 0)
		url += 7;
	path = path_from(directory, url);
	return path && asprintf(&full, "sqlite:%s", path) >= 0 ? full : NULL;
}

static int resolve_places(struct hood *h, const struct hood_options *o, struct error *err)
{
	const char *env = getenv("FUMEHOOD_DB"), *url = o->ledger;
	_cleanup_free_ char *fallback = NULL;
	int r;

	h->directory = getcwd(NULL, 0);
	if (!h->directory)
		return error_system(err, errno, "cannot tell the current directory");
	if (!url && env && *env)
		url = env;
	if (!url)
		url = h->config.ledger;
	if (!url)
		url = fallback = xdg_path("XDG_DATA_HOME", ".local/share", "fumehood/ledger.db");
	if (!url)
		return error_set(err, ERROR_USAGE,
				 "no ledger is named and HOME is not set: give --db sqlite:PATH");
	r = ledger_url_check(url, err);
	if (r < 0)
		return r;
	h->ledger_url = ledger_normal(url, h->directory);
	h->state_dir = h->config.state_dir ? strdup(h->config.state_dir)
					   : xdg_path("XDG_STATE_HOME", ".local/state", "fumehood");
	if (!h->state_dir && (!getenv("HOME") || getenv("HOME")[0] != '/'))
		return error_set(err, ERROR_USAGE,
				 "no state directory is named and HOME is not set: set XDG_STATE_HOME");
	return h->ledger_url && h->state_dir ? 0 : error_memory(err);
}

int hood_open(const struct hood_options *options, struct hood **ret, struct error *err)
{
	_cleanup_hood_ struct hood *h = calloc(1, sizeof *h);
	int r;

	if (!h)
		return error_memory(err);
	config_init(&h->config);
	h->lending = options->lending;
	h->only_reads = options->only_reads;
	h->remover.kind = options->remover;
	h->hand = h->remover.hand = options->hand ? hand_new() : NULL;
	if ((r = config_load_all(h, options, err)) < 0 || (r = resolve_places(h, options, err)) < 0)
		return r;
	/* A page whose file may not be opened says so now, and not in each answer. */
	if (h->only_reads && strncmp(h->ledger_url, "sqlite:", 7) == 0 &&
	    access(h->ledger_url + 7, F_OK) == 0 &&
	    owned_check("ledger", h->ledger_url + 7, OWNED_FILE, err) < 0)
		return -EPERM;
	*ret = TAKE_PTR(h);
	return 0;
}

struct hood *hood_close(struct hood *h)
{
	struct error ignored = ERROR_INIT;

	if (!h)
		return NULL;
	if (h->ahead)
		(void)hood_end_ledger(h, &ignored);
	h->hand = hand_free(h->hand);
	plan_free(h->common);
	ledger_close(h->ledger);
	remover_close(&h->remover);
	if (h->site_is_open)
		site_close(&h->site);
	config_done(&h->config);
	free(h->ledger_url);
	free(h->state_dir);
	free(h->directory);
	free(h);
	return NULL;
}

int hood_stock_open(struct stock **ret, struct error *err)
{
	return stock_open(ret, err);
}

struct stock *hood_stock_close(struct stock *k)
{
	return stock_close(k);
}

void hood_use_stock(struct hood *h, struct stock *k)
{
	h->stock = k;
}

const struct config *hood_config(const struct hood *h)
{
	return &h->config;
}

const char *hood_ledger_url(const struct hood *h)
{
	return h->ledger_url;
}

const char *hood_state_dir(const struct hood *h)
{
	return h->state_dir;
}

/* False: it is no file, or there is none. */
static bool ledger_file(const struct hood *h, struct stat *ret)
{
	_cleanup_ledger_url_ struct ledger_url u = {0};
	struct error ignored = ERROR_INIT;

	return ledger_url_parse(h->ledger_url, &u, &ignored) == 0 && !u.is_postgres &&
	       stat(u.location, ret) == 0;
}

static void know_ledger_file(struct hood *h)
{
	struct stat st;

	h->ledger_is_file = ledger_file(h, &st);
	if (h->ledger_is_file) {
		h->ledger_device = st.st_dev;
		h->ledger_inode = st.st_ino;
	}
}

void hood_ledger_renew(struct hood *h)
{
	struct stat st;

	if (h->ledger && h->ledger_is_file &&
	    (!ledger_file(h, &st) || st.st_dev != h->ledger_device || st.st_ino != h->ledger_inode))
		hood_ledger_close(h);
}

int hood_ledger(struct hood *h, unsigned flags, struct ledger **ret, struct error *err)
{
	int r;

	if (h->ahead && (r = hood_end_ledger(h, err)) < 0)
		return r;
	if (h->only_reads)
		flags = LEDGER_READ_ONLY | LEDGER_LOOK;
	if (h->ledger && h->ledger_flags & LEDGER_READ_ONLY && !(flags & LEDGER_READ_ONLY))
		h->ledger = ledger_close(h->ledger);
	if (!h->ledger) {
		r = h->lending ? ledger_open_lent(h->lending, flags, &h->ledger, err)
			       : ledger_open(h->ledger_url, flags, &h->ledger, err);
		if (r < 0)
			return r;
		h->ledger_flags = flags;
		if (h->only_reads)
			know_ledger_file(h);
		ledger_watch(h->ledger, h->work);
	}
	*ret = h->ledger;
	return 0;
}

void hood_ledger_close(struct hood *h)
{
	h->ledger = ledger_close(h->ledger);
}

void hood_watch(struct hood *h, struct work *w)
{
	h->work = w;
	if (h->ledger)
		ledger_watch(h->ledger, w);
}

int hood_site(struct hood *h, struct site **ret, struct error *err)
{
	if (!h->site_is_open) {
		const struct config *c = &h->config;
		int r = site_open(&h->site, h->state_dir, c->workspace_root, c->workspace_prefix, err);

		if (r < 0)
			return cause_explain_call(r, err);
		h->site_is_open = true;
	}
	*ret = &h->site;
	return 0;
}

int hood_cgroups(struct hood *h, const struct cgroup_host **ret, struct error *err)
{
	int r;

	if (!h->cgroups_probed) {
		r = cgroup_host_probe(&h->cgroups, err);
		if (r < 0)
			return r;
		h->cgroups_probed = true;
	}
	*ret = &h->cgroups;
	return 0;
}

int hood_plan(struct hood *h, const struct request *r, struct plan *ret, struct error *err)
{
	plan_init(ret);
	ret->attempt = 1;
	return plan_resolve(h, r, NULL, ret, err);
}

int hood_check_walls(const struct hood *h, struct error *err)
{
	bool is_root = ability_is_root(), bare = h->config.defaults.strength == STRENGTH_LANDLOCK;
	const struct probe_identity who = {.userns = !is_root && !bare,
					   .bare = bare,
					   .uid = is_root ? SANDBOX_UID : geteuid(),
					   .gid = is_root ? SANDBOX_GID : getegid()};

	return cause_check(&who, err);
}
