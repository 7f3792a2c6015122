/*
 * The few calls that we make to systemd, over its private socket as systemctl does: no bus daemon is needed. libsystemd
 * is loaded when the first call is made; hosts without systemd, and runs that do not need it, never do. Its header gives the
 * types; every call goes through the table below, as libpq's do.
 *
 * A connection lives for one call: systemd would otherwise fill it with signals for as long as the analysis runs.
 */
#include "cgroup_private.h"
#include "clock.h"
#include "text.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define LIBSYSTEMD   "libsystemd.so.0"
#define DESTINATION  "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER	     "org.freedesktop.systemd1.Manager"
#define NO_SUCH_UNIT "org.freedesktop.systemd1.NoSuchUnit"
/* A unit that is more than a scope may take as long as systemd itself would wait for it. */
enum { BUS_TIMEOUT_MS = 90000, START_TIMEOUT_MS = 90000 };

#define BUS_FUNCTIONS(X)                  \
	X(sd_bus_new)                     \
	X(sd_bus_set_address)             \
	X(sd_bus_start)                   \
	X(sd_bus_flush_close_unref)       \
	X(sd_bus_match_signal)            \
	X(sd_bus_process)                 \
	X(sd_bus_wait)                    \
	X(sd_bus_call)                    \
	X(sd_bus_message_new_method_call) \
	X(sd_bus_message_append)          \
	X(sd_bus_message_read)            \
	X(sd_bus_message_unref)           \
	X(sd_bus_error_free)

struct bus {
	sd_bus *connection;
	/* The job that is awaited, and how it ended. */
	char job[128];
	char result[32];
	bool no_unit; /* systemd has said so */
#define BUS_MEMBER(function) __typeof__(function) *function;
	BUS_FUNCTIONS(BUS_MEMBER)
#undef BUS_MEMBER
};

static int bus_load(struct bus *b, struct error *err)
{
	void *library = dlopen(LIBSYSTEMD, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const char *missing = NULL;

	if (!library)
		return error_set(err, ERROR_REFUSED,
				 "only systemd may make cgroups here, and " LIBSYSTEMD
				 ", which speaks to it, cannot be loaded; install libsystemd0");
#define BUS_FIND(function)                                  \
	*(void **)&b->function = dlsym(library, #function); \
	if (!b->function)                                   \
		missing = #function;
	BUS_FUNCTIONS(BUS_FIND)
#undef BUS_FIND
	dlclose(library); /* stays mapped: RTLD_NODELETE */
	if (missing)
		return error_set(err, ERROR_REFUSED, LIBSYSTEMD " is too old: it has no %s", missing);
	return 0;
}

static void bus_done(struct bus *b)
{
	if (b->connection)
		b->sd_bus_flush_close_unref(b->connection);
}
#define _cleanup_bus_ _cleanup_(bus_done)

static int bus_init(struct bus *b, bool user, struct error *err)
{
	char socket[CGROUP_PATH_ROOM], address[CGROUP_PATH_ROOM + 16];
	int r = bus_load(b, err);

	if (r < 0)
		return r;
	cgroup_systemd_socket(user, socket);
	snprintf(address, sizeof address, "unix:path=%s", socket);
	r = b->sd_bus_new(&b->connection);
	if (r >= 0)
		r = b->sd_bus_set_address(b->connection, address);
	if (r >= 0)
		r = b->sd_bus_start(b->connection);
	return r < 0 ? error_system(err, -r, "cannot reach systemd at '%s'", socket) : 0;
}

static int bus_message(struct bus *b, const char *method, sd_bus_message **ret, struct error *err)
{
	int r = b->sd_bus_message_new_method_call(b->connection, ret, DESTINATION, MANAGER_PATH, MANAGER,
						  method);

	return r < 0 ? error_system(err, -r, "cannot speak to systemd") : 0;
}

/* Sends and frees the message. The reply may be NULL where nobody wants it. */
static int bus_call(struct bus *b, sd_bus_message *message, const char *method, sd_bus_message **reply,
		    struct error *err)
{
	sd_bus_error said = SD_BUS_ERROR_NULL;
	int r = b->sd_bus_call(b->connection, message, BUS_TIMEOUT_MS * 1000ULL, &said, reply);

	b->sd_bus_message_unref(message);
	b->no_unit = said.name && strcmp(said.name, NO_SUCH_UNIT) == 0;
	if (r < 0 && said.message)
		r = error_set(err, ERROR_REFUSED, "systemd refuses %s: %s", method, SHOWN(256, said.message));
	else if (r < 0)
		r = error_system(err, -r, "systemd does not answer to %s", method);
	b->sd_bus_error_free(&said);
	return r < 0 ? r : 0;
}

/* --- jobs --- */

static int on_job_removed(sd_bus_message *message, void *arg, sd_bus_error *err UNUSED)
{
	const char *job, *unit, *result;
	struct bus *b = arg;
	uint32_t id;

	if (b->sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0 &&
	    strcmp(job, b->job) == 0)
		snprintf(b->result, sizeof b->result, "%s", result);
	return 0;
}

static int jobs_watch(struct bus *b, struct error *err)
{
	sd_bus_message *message;
	int r = b->sd_bus_match_signal(b->connection, NULL, NULL, MANAGER_PATH, MANAGER, "JobRemoved",
				       on_job_removed, b);

	if (r < 0)
		return error_system(err, -r, "cannot listen to systemd");
	r = bus_message(b, "Subscribe", &message, err);
	return r < 0 ? r : bus_call(b, message, "Subscribe", NULL, err);
}

static int job_await(struct bus *b, const char *unit, struct error *err)
{
	uint64_t deadline = clock_now() + START_TIMEOUT_MS * NSEC_PER_MSEC, now;

	while (!b->result[0]) {
		int r = b->sd_bus_process(b->connection, NULL);

		if (r > 0)
			continue;
		now = clock_now();
		if (r == 0 && now >= deadline)
			r = -ETIMEDOUT;
		if (r == 0)
			r = b->sd_bus_wait(b->connection, (deadline - now) / 1000);
		if (r < 0 && r != -EINTR)
			return error_system(err, -r, "systemd does not finish with '%s'", unit);
	}
	if (strcmp(b->result, "done") != 0)
		return error_set(err, ERROR_REFUSED, "systemd could not start or stop '%s': %s", unit,
				 b->result);
	return 0;
}

/* Sends a message whose reply is a job, and awaits that. */
static int job_run(struct bus *b, sd_bus_message *message, const char *method, const char *unit,
		   struct error *err)
{
	const char *job = NULL;
	sd_bus_message *reply = NULL;
	int r = bus_call(b, message, method, &reply, err);

	if (r < 0)
		return r;
	r = b->sd_bus_message_read(reply, "o", &job);
	snprintf(b->job, sizeof b->job, "%s", job ? job : "");
	b->sd_bus_message_unref(reply);
	return r < 0 ? error_system(err, -r, "cannot read systemd's answer") : job_await(b, unit, err);
}

/* --- the calls --- */

/* The message could not be filled. */
static int unwritten(struct bus *b, sd_bus_message *message, int r, struct error *err)
{
	b->sd_bus_message_unref(message);
	return error_system(err, -r, "cannot write to systemd");
}

int cgroup_bus_scope_start(bool user, const char *unit, const char *slice, pid_t pid, struct error *err)
{
	_cleanup_bus_ struct bus b = {0};
	sd_bus_message *message;
	int r;

	if ((r = bus_init(&b, user, err)) < 0 || (r = jobs_watch(&b, err)) < 0 ||
	    (r = bus_message(&b, "StartTransientUnit", &message, err)) < 0)
		return r;
	r = b.sd_bus_message_append(message, "ssa(sv)a(sa(sv))", unit, "fail", 6, "Description", "s",
				    "an analysis of fumehood", "Slice", "s", slice, "Delegate", "b", 1,
				    "CollectMode", "s", "inactive-or-failed", "TimeoutStopUSec", "t",
				    (uint64_t)2000000, "PIDs", "au", 1, (uint32_t)pid, 0);
	if (r < 0)
		return unwritten(&b, message, r, err);
	return job_run(&b, message, "a scope", unit, err);
}

int cgroup_bus_attach(bool user, const char *unit, const char *subcgroup, pid_t pid, struct error *err)
{
	_cleanup_bus_ struct bus b = {0};
	sd_bus_message *message;
	int r;

	if ((r = bus_init(&b, user, err)) < 0 ||
	    (r = bus_message(&b, "AttachProcessesToUnit", &message, err)) < 0)
		return r;
	r = b.sd_bus_message_append(message, "ssau", unit, subcgroup, 1, (uint32_t)pid);
	if (r < 0)
		return unwritten(&b, message, r, err);
	return bus_call(&b, message, "a process in the scope", NULL, err);
}

static int unit_job(struct bus *b, bool user, const char *method, const char *unit, struct error *err)
{
	sd_bus_message *message;
	int r;

	if ((r = bus_init(b, user, err)) < 0 || (r = jobs_watch(b, err)) < 0 ||
	    (r = bus_message(b, method, &message, err)) < 0)
		return r;
	r = b->sd_bus_message_append(message, "ss", unit, "replace");
	if (r < 0)
		return unwritten(b, message, r, err);
	return job_run(b, message, method, unit, err);
}

int cgroup_bus_unit_start(bool user, const char *unit, struct error *err)
{
	_cleanup_bus_ struct bus b = {0};

	return unit_job(&b, user, "StartUnit", unit, err);
}

int cgroup_bus_unit_stop(bool user, const char *unit, struct error *err)
{
	_cleanup_bus_ struct bus b = {0};
	struct error said = ERROR_INIT;
	int r = unit_job(&b, user, "StopUnit", unit, &said);

	if (r < 0 && b.no_unit)
		return 0; /* an empty scope is already gone */
	if (r < 0 && err)
		*err = said;
	return r;
}

int cgroup_bus_reload(bool user, struct error *err)
{
	_cleanup_bus_ struct bus b = {0};
	sd_bus_message *message = NULL;
	int r;

	if ((r = bus_init(&b, user, err)) < 0 || (r = bus_message(&b, "Reload", &message, err)) < 0)
		return r;
	return bus_call(&b, message, "Reload", NULL, err);
}
