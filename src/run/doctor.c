/*
 * What this host can enforce: each wall is raised around a harmless command, each limit is set on an empty cgroup.
 */
#include "doctor.h"
#include "ability.h"
#include "cause.h"
#include "clock.h"
#include "file.h"
#include "ground.h"
#include "owned.h"
#include "place.h"
#include "sandbox.h"
#include "tree.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

void examine_say(struct examination *x, const char *name, bool required, bool ok, const char *remedy,
		 const char *format, ...)
{
	struct doctor_item item = {.name = name, .ok = ok, .required = required};
	va_list ap;

	va_start(ap, format);
	vsnprintf(item.detail, sizeof item.detail, format, ap);
	va_end(ap);
	if (!ok && remedy)
		snprintf(item.remedy, sizeof item.remedy, "%s", remedy);
	if (required && !ok)
		x->failed = true;
	x->fn(x->arg, &item);
}

static void examine_kernel(struct examination *x)
{
	struct utsname u;

	uname(&u);
	examine_say(x, "kernel", false, true, NULL, "%s %s on %s", u.sysname, u.release, u.machine);
}

/* An analysis's RLIMIT_CORE of 1 keeps a handler from being started; a socket (Linux 6.16) is asked for no limit. */
static void examine_crashes(struct examination *x)
{
	_cleanup_buffer_ struct buffer pattern = {0};
	struct error ignored = ERROR_INIT;
	int r = file_load(AT_FDCWD, "/proc/sys/kernel/core_pattern", PATH_MAX, &pattern, &ignored);
	char first = r == 0 && pattern.size ? pattern.data[0] : 0;

	examine_say(x, "crashes", false, first != '@',
		    "set kernel.core_pattern to a file or a handler: analyses can keep those from being used",
		    first == '@'   ? "are sent to a socket of the host's, as root, whatever a limit says"
		    : first == '|' ? "the host's core handler is not started for them"
				   : "leave no core dumps");
}

/* A directory that looks like a workspace, for a command that does nothing. */
struct trial {
	const char *root; /* where they are */
	char workspace[PATH_MAX], scratch[PATH_MAX];
	struct plan plan;
	struct mount_fact *facts; /* where it is, instead of where the plan has it */
	struct receipt receipt;
	struct place place;
};

static int trial_prepare(struct examination *x, enum strength strength, struct trial *t, struct error *err)
{
	struct request request;
	char *command[] = {(char *)"/bin/true", NULL};
	int r;

	t->root = x->hood->config.workspace_root;
	snprintf(t->workspace, sizeof t->workspace, "%.4000s/.fumehood-doctor-XXXXXX", t->root);
	snprintf(t->scratch, sizeof t->scratch, "%.4000s/.fumehood-doctor-XXXXXX", t->root);
	if (!mkdtemp(t->workspace) || !mkdtemp(t->scratch))
		return ground_refuse(GROUND_WORKSPACES, t->root, errno, err);
	request_init(&request);
	request.command = strv_copy(command);
	request.directory = strdup(t->workspace);
	request.id = strdup("doctor");
	request.strength = strength;
	r = hood_plan(x->hood, &request, &t->plan, err);
	request_done(&request);
	if (r < 0)
		return r;
	t->facts = calloc(t->plan.n_mounts + 1, sizeof *t->facts);
	if (!t->facts)
		return error_memory(err);
	for (size_t i = 0; i < t->plan.n_mounts; i++) {
		const struct mount *m = &t->plan.mounts[i];

		if (m->kind == MOUNT_BIND && m->writable)
			t->facts[i].source =
				strcmp(m->target, t->plan.workspace) == 0 ? t->workspace : t->scratch;
	}
	/* Where nothing is mounted it is entered where it is. */
	return strength == STRENGTH_LANDLOCK ? text_set(&t->plan.workspace, t->workspace, err) : 0;
}

static int trial_run(struct trial *t, struct error *err)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_sandbox_ struct sandbox *s = NULL;
	struct sandbox_options o = {.stdio = {null, null, null}, .facts = t->facts};
	int r;

	o.host_uid = t->place.uid;
	o.host_gid = t->place.gid;
	o.slot_fd = t->place.slot.fd;
	if (o.host_uid != geteuid() && (chown(t->workspace, o.host_uid, o.host_gid) < 0 ||
					chown(t->scratch, o.host_uid, o.host_gid) < 0))
		return error_system(err, errno, "cannot give '%s' to another uid", t->workspace);
	r = sandbox_start(&t->plan, &o, &(struct sandbox_hooks){0}, &t->receipt, &s, err);
	if (r < 0)
		return r;
	if (s->exec_errno)
		return error_system(err, s->exec_errno, "cannot execute '%s' under the hood",
				    t->plan.program);
	pidfd_wait(s->pidfd, 10000);
	return 0;
}

static int trial_whole(struct examination *x, enum strength strength, struct trial *t, struct error *err)
{
	int r;

	*t = (struct trial){0};
	plan_init(&t->plan);
	place_init(&t->place, NULL);
	if ((r = place_take(&t->place, err)) < 0 || (r = trial_prepare(x, strength, t, err)) < 0)
		return r;
	return trial_run(t, err);
}

static void trial_done(struct trial *t)
{
	_cleanup_close_ int root = t->root ? open(t->root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct error ignored = ERROR_INIT;

	if (root >= 0) {
		tree_remove(root, strrchr(t->workspace, '/') + 1, &ignored);
		tree_remove(root, strrchr(t->scratch, '/') + 1, &ignored);
	}
	place_release(&t->place);
	receipt_done(&t->receipt);
	free(t->facts);
	plan_done(&t->plan);
}

/* What the trial's receipt says. Landlock is a second lock on doors that are shut, and has been told of; without device
 * nodes of its own an analysis is held by everything else. What the site's own strength does not hold is not required. */
static void examine_layer(struct examination *x, const struct layer *l)
{
	bool devices = strcmp(l->name, "devices") == 0;

	if (strcmp(l->name, "landlock") != 0)
		examine_say(
			x, l->name, !devices && (!x->bare || l->held), l->held,
			devices ? "as root, with --strength full, each analysis has nodes of its own"
			: x->bare
				? "the site's configuration asks for strength landlock; full strength holds it"
				: NULL,
			"%s", l->detail);
}

/* Did a command run under all of them? */
static bool examine_walls(struct examination *x)
{
	struct error err = ERROR_INIT;
	struct trial t;
	int r = trial_whole(x, x->bare ? STRENGTH_LANDLOCK : STRENGTH_FULL, &t, &err);
	const struct probe_identity who = {
		.userns = !ability_is_root(), .bare = x->bare, .uid = t.place.uid, .gid = t.place.gid};

	if (r < 0)
		(void)cause_explain_call(r, &err);
	examine_host(x, &who, &t.receipt);
	for (size_t i = 0; i < t.receipt.count; i++)
		examine_layer(x, &t.receipt.layers[i]);
	for (size_t i = 0; t.receipt.warnings && t.receipt.warnings[i]; i++)
		examine_say(x, "inputs", false, false, "files that only their owner may read go unread", "%s",
			    t.receipt.warnings[i]);
	examine_say(x, "the whole hood", true, r == 0, err.message,
		    r == 0 ? "a command ran under it" : "no command can run under it");
	trial_done(&t);
	return r == 0;
}

/* What can be had instead where namespaces are forbidden; nobody gets it unasked. Where they are not, nothing is missing without it. */
static void examine_bare(struct examination *x, bool is_needed)
{
	struct error err = ERROR_INIT;
	struct trial t;
	int r = trial_whole(x, STRENGTH_LANDLOCK, &t, &err);

	examine_say(x, "strength landlock", false, r == 0 || !is_needed, err.message,
		    r == 0	? "a command ran without namespaces; what that does not hold its receipt says"
		    : is_needed ? "no command can run with it"
				: "cannot be had here, and is not needed");
	trial_done(&t);
}

static void examine_limits(struct examination *x)
{
	const struct cgroup_host *host;
	struct error err = ERROR_INIT;

	if (hood_cgroups(x->hood, &host, &err) < 0) {
		examine_say(x, "cgroups", false, false, err.message, "cannot be examined");
		return;
	}
	examine_say(x, "cgroups", false, host->way != CGROUP_NONE, host->why, "%s",
		    cgroup_way_name(host->way));
	examine_say(x, "limit memory", false, host->memory, host->why,
		    host->memory ? (host->swap ? "swap included" : "swap not counted") : "cannot be held");
	examine_say(x, "limit pids", false, host->pids, host->why, host->pids ? "held" : "cannot be held");
	examine_say(x, "limit cpus", false, host->cpu, host->why, host->cpu ? "held" : "cannot be held");
}

static int examine_live(void *arg, const struct live *l)
{
	if (l->pending && !l->whose && (l->queued || ability_is_root()))
		examine_say(
			arg, "pending", false, false,
			"finish it with that version, or give it up with `fumehood cancel`",
			"'%s' was begun by an older version, which did not write down whose it is: it is left alone",
			l->id);
	return 0;
}

static void examine_places(struct examination *x)
{
	struct error err = ERROR_INIT;
	struct ledger *ledger;
	struct site *site = NULL;
	_cleanup_free_ char *url = ledger_url_redacted(x->hood->ledger_url);
	char detail[256];
	int r = hood_site(x->hood, &site, &err);

	if (r < 0)
		examine_say(x, "state directory", true, false, err.message, "%.200s", x->hood->state_dir);
	else
		examine_grounds(x, site);
	if (r == 0)
		(void)hood_live_each(x->hood, examine_live, x, &err);
	err = (struct error)ERROR_INIT;
	r = hood_ledger(x->hood, LEDGER_CREATE, &ledger, &err);
	examine_say(x, "ledger", true, r == 0, err.message, "%.200s", url ? url : "");
	if (r < 0)
		return;
	r = ledger_store_describe(ledger, detail, sizeof detail, &err);
	examine_say(x, "object store", true, r == 0, err.message, "%s", detail);
}

/* What the packaged worker and timer open, root with HOME=/root, as far as we can see it. */
static void examine_services(struct examination *x)
{
	static const char site[] = "/etc/fumehood/config.yaml";
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_ledger_url_ struct ledger_url u = {0};
	_cleanup_(config_done) struct config c = {0};
	const char *home_ledger = "/root/.local/share/fumehood/ledger.db";
	struct error err = ERROR_INIT;
	bool may = (access(site, R_OK) < 0 ||
		    (file_load(AT_FDCWD, site, 1 << 20, &text, &err) == 0 &&
		     config_parse(&c, text.data, text.size, site, false, &err) == 0)) &&
		   ledger_url_parse(c.ledger ? c.ledger : home_ledger, &u, &err) == 0;
	const char *const places[][2] = {
		{"configuration", site},
		{"ledger", u.is_postgres ? NULL : u.location},
		{"state directory", c.state_dir ? c.state_dir : "/root/.local/state/fumehood"},
		{"object store", u.objects_inside || u.group ? NULL : u.objects}};

	for (size_t i = 0; may && i < ARRAY_SIZE(places); i++) {
		unsigned flags = OWNED_AS_ROOT | (i < 2 ? OWNED_FILE : 0);
		_cleanup_close_ int fd =
			places[i][1] ? owned_open(places[i][0], places[i][1], flags, NO_GROUP, &err)
				     : -ENOENT;

		may = fd >= 0 || fd == -ENOENT || fd == -EACCES;
	}
	examine_say(x, "services", false, may, err.message,
		    may ? "nobody but root can change what the packaged ones open"
			: "the packaged worker and timer would be refused");
}

int hood_doctor(struct hood *h, doctor_fn fn, void *arg, UNUSED struct error *err)
{
	struct examination x = {
		.hood = h, .fn = fn, .arg = arg, .bare = h->config.defaults.strength == STRENGTH_LANDLOCK};
	bool stands;

	examine_kernel(&x);
	stands = examine_walls(&x);
	if (!x.bare)
		examine_bare(&x, !stands);
	examine_crashes(&x);
	examine_limits(&x);
	examine_places(&x);
	examine_services(&x);
	return x.failed ? 1 : 0;
}

int hood_delegate(const char *user, char **ret_done, struct error *err)
{
	char done[CGROUP_DONE_ROOM], *end;
	const struct passwd *entry;
	uid_t uid;
	gid_t gid;
	int r;

	if (geteuid() != 0)
		return error_set(err, ERROR_REFUSED,
				 "only root can delegate: run `sudo fumehood doctor --delegate %s`",
				 SHOWN(128, user));
	entry = getpwnam(user);
	uid = gid = (uid_t)strtoul(user, &end, 10);
	if (entry) {
		uid = entry->pw_uid;
		gid = entry->pw_gid;
	} else if (!*user || *end || uid == 0) {
		return error_set(err, ERROR_USAGE, "there is no user '%s' on this host", SHOWN(128, user));
	}
	r = cgroup_delegate(uid, gid, done, err);
	if (r < 0)
		return r;
	return text_set(ret_done, done, err);
}
