#include "doctor.h"
#include "cause.h"
#include "ground.h"
#include "sandbox.h"

#include <string.h>
#include <sys/statvfs.h>

/* What must be there before it can be tried, and what is said of it if all is well; NULL: nothing. */
static const struct {
	enum probe after[2];
	const char *well;
} rows[PROBE_COUNT] = {
	[PROBE_USER] = {.well = "can be made"},
	[PROBE_UNSHARE] = {{PROBE_USER}},
	[PROBE_IDENTITY] = {{PROBE_USER}},
	[PROBE_PROCESSES] = {{PROBE_USER, PROBE_IDENTITY}, "can be made"},
	[PROBE_NETWORK] = {{PROBE_USER, PROBE_IDENTITY}, "can be made, with a loopback of its own"},
	[PROBE_MOUNTS] = {{PROBE_USER, PROBE_IDENTITY}, "can be made, with file systems of its own"},
	[PROBE_ROOT] = {{PROBE_MOUNTS, PROBE_IDENTITY}},
	[PROBE_PROC] = {{PROBE_MOUNTS, PROBE_IDENTITY}, "can be mounted"},
	[PROBE_OVERLAY] = {{PROBE_MOUNTS, PROBE_IDENTITY}, "inputs are shown through them"},
	[PROBE_SECCOMP] = {.well = "can be loaded"},
};

static bool is_told(const struct receipt *receipt, const char *name)
{
	for (size_t i = 0; i < receipt->count; i++)
		if (strcmp(receipt->layers[i].name, name) == 0 && receipt->layers[i].held)
			return true;
	return false;
}

static void examine_probe(struct examination *x, enum probe which, int errnum,
			  const struct probe_identity *who, const struct receipt *receipt)
{
	const char *name = probe_name(which);
	struct cause cause = {0};

	if (errnum) {
		cause_find(which, errnum, who, &cause);
		examine_say(x, name, probe_is_required(which, who->bare), false, cause.remedy, "%s",
			    cause.what);
	} else if (which == PROBE_LANDLOCK) {
		examine_say(x, name, false, true, NULL, "ABI %d", sandbox_landlock_abi());
	} else if (rows[which].well && !is_told(receipt, name)) {
		examine_say(x, name, true, true, NULL, "%s", rows[which].well);
	}
}

void examine_host(struct examination *x, const struct probe_identity *who, const struct receipt *receipt)
{
	int errnums[PROBE_COUNT] = {0};

	for (int i = 0; i < PROBE_COUNT; i++) {
		enum probe which = (enum probe)i;
		const enum probe *after = rows[which].after;

		/* Untried without those, and not told: they are the reason. */
		if ((after[0] && errnums[after[0]]) || (after[1] && errnums[after[1]])) {
			errnums[which] = errnums[after[0]] ? errnums[after[0]] : errnums[after[1]];
			continue;
		}
		errnums[which] = probe_try(which, who);
		examine_probe(x, which, errnums[which], who, receipt);
	}
}

/* ---- where it stands ---- */

static void examine_ground(struct examination *x, enum ground which, int dirfd, const char *path)
{
	struct ground_fault fault;
	struct statvfs st;
	int errnum = ground_try(dirfd);

	if (errnum) {
		ground_describe(which, path, errnum, &fault);
		examine_say(x, ground_name(which), true, false, fault.remedy, "%s", fault.what);
	} else if (which == GROUND_WORKSPACES && fstatvfs(dirfd, &st) == 0 && st.f_flag & ST_NOEXEC) {
		examine_say(
			x, ground_name(which), false, false,
			"as root `mount -o remount,exec` it, choose another directory with workspace: {root: DIR} in the "
			"configuration, or give analyses a disk of their own (--disk)",
			"in %.160s, which is mounted noexec: what an analysis compiles there cannot be executed",
			path);
	} else {
		examine_say(x, ground_name(which), true, true, NULL, "%s%.200s",
			    which == GROUND_WORKSPACES ? "in " : "", path);
	}
}

void examine_grounds(struct examination *x, const struct site *site)
{
	examine_ground(x, GROUND_WORKSPACES, site->root_fd, site->root);
	examine_ground(x, GROUND_STATE, site->runs, x->hood->state_dir);
}
