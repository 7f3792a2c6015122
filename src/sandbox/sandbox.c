#include "sandbox.h"
#include "cause.h"
#include "file.h"
#include "idmap.h"
#include "launch.h"
#include "message.h"
#include "overlay_refused.h"
#include "receipt_bare.h"
#include "spare.h"
#include "spec.h"
#include "spec_build.h"
#include "stock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { IDMAP_MAX = INIT_FD_END - INIT_FD_IDMAP, START_TIMEOUT_MS = 30000, END_TIMEOUT_MS = 10000 };

int sandbox_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

/* What came in one message; a descriptor belongs to the last one. */
struct reports {
	struct report list[REPORTS_MAX];
	int count;
	int fd;
};

/* 1, 0: the other side has ended; negative, as message_receive. */
static int reports_read(const struct sandbox *s, struct reports *ret, int timeout_ms)
{
	ssize_t n = message_receive(s->report_fd, ret->list, sizeof ret->list, timeout_ms, &ret->fd);

	if (n < 0)
		return (int)n;
	ret->count = (int)((size_t)n / sizeof ret->list[0]);
	for (int i = 0; i < ret->count; i++) {
		char *text = ret->list[i].text;

		text[sizeof ret->list[i].text - 1] = 0;
		text[sizeof ret->list[i].text - 2] = 0;
	}
	return ret->count > 0;
}

static void layer_note(const struct report *r, struct receipt *receipt)
{
	const char *name = r->text, *detail = r->text + strlen(r->text) + 1;

	if (strcmp(name, "idmap") == 0)
		receipt_warn(
			receipt,
			"'%s' is shown only as far as everybody may read it: its file system cannot be idmapped",
			detail);
	else
		receipt_add(receipt, name, r->value == 1, "%s", detail);
}

static int start_failed(const struct report *r, struct error *err)
{
	char shown[sizeof r->text * 4 + 1];
	int e;

	text_escape_into(shown, sizeof shown, r->text, strlen(r->text));
	e = error_set(err, ERROR_REFUSED, "the walls cannot be raised: %s: %s", shown, strerror(r->errnum));
	/* What is shown read-only stays so: that is no matter of time. */
	return errno_is_passing(r->errnum) && r->errnum != EROFS ? error_here(err, e) : e;
}

/* The command's first call may be asked about, and until it is answered init has nothing to report. */
static void hear_until_report(struct sandbox *s, const struct sandbox_hooks *hooks)
{
	struct pollfd fds[] = {{.fd = s->report_fd, .events = POLLIN},
			       {.fd = s->listener_fd, .events = POLLIN}};

	while (poll(fds, ARRAY_SIZE(fds), START_TIMEOUT_MS) > 0 && !fds[0].revents && fds[1].revents & POLLIN)
		sandbox_hear(s, hooks->on_notice, hooks->arg);
}

/* Who answers init, and with what. */
struct start {
	struct sandbox *s;
	const struct plan *plan;
	const struct sandbox_options *options;
	const struct sandbox_hooks *hooks;
	struct receipt *receipt;
};

/* What one report asks for. 1: the command runs, or could not be executed; 0: there is more to come. */
static int answer(const struct start *t, const struct report *r, int fd, struct error *err)
{
	const struct sandbox_options *o = t->options;
	const struct sandbox_hooks *hooks = t->hooks;
	struct sandbox *s = t->s;
	const struct mount *m;
	int e;

	switch (r->kind) {
	case REPORT_NEED_MAP:
		e = identity_map(s->init.pid, SANDBOX_UID, o->host_uid, SANDBOX_GID, o->host_gid, err);
		return e < 0 ? e : init_let_go(s, err);
	case REPORT_NO_OVERLAY:
		if (r->value < 0 || (size_t)r->value >= t->plan->n_mounts)
			return error_set(err, ERROR_SYSTEM, "init spoke of a mount that does not exist");
		m = &t->plan->mounts[r->value];
		return overlay_refused(m->layer ? m->layer : m->source, r->errnum, err);
	case REPORT_DISK:
		e = hooks->on_disk ? hooks->on_disk(hooks->arg, fd, err) : 0;
		return e < 0 ? e : init_let_go(s, err);
	case REPORT_LISTENER:
		s->listener_fd = fd;
		return 0;
	case REPORT_TERMINAL:
		e = hooks->on_terminal ? hooks->on_terminal(hooks->arg, fd, err) : 0;
		return e < 0 ? e : init_let_go(s, err);
	case REPORT_LAYER:
		layer_note(r, t->receipt);
		return 0;
	case REPORT_FAILED:
		return start_failed(r, err);
	case REPORT_EXEC:
		s->exec_errno = r->errnum;
		return 1;
	case REPORT_STARTED:
		return 1;
	}
	return 0;
}

/* Answers init's questions until the command runs. 0: it runs or could not be executed. */
static int start_converse(const struct start *t, struct error *err)
{
	for (;;) {
		struct reports r;
		int n;

		if (t->s->listener_fd >= 0)
			hear_until_report(t->s, t->hooks);
		n = reports_read(t->s, &r, START_TIMEOUT_MS);
		if (n == MESSAGE_LATE)
			return error_set(err, ERROR_SYSTEM, "the hood could not be closed within %d s",
					 START_TIMEOUT_MS / 1000);
		if (n <= 0)
			return error_set(err, ERROR_SYSTEM, "init died while it raised the walls");
		for (int i = 0; i < r.count; i++) {
			int fd = i + 1 == r.count ? r.fd : -1;
			int e = answer(t, &r.list[i], fd, err);

			if (e != 0)
				return e < 0 ? e : 0;
		}
	}
}

/* One idmap for each distinct reader: the owner of an input's top directory, or who was given; as root. */
struct idmaps {
	struct {
		struct idmap map;
		uid_t uid;
		gid_t gid;
		enum reader_kind reader;
	} list[IDMAP_MAX];
	int count;
	int *of_mount; /* which of them is a mount's; -1: none */
};

static void idmaps_done(struct idmaps *maps)
{
	while (maps->count > 0)
		idmap_close(&maps->list[--maps->count].map);
	free(maps->of_mount);
}

static int idmaps_open(const struct plan *plan, const struct sandbox_options *o, struct idmaps *maps,
		       struct error *err)
{
	maps->of_mount = calloc(plan->n_mounts + 1, sizeof *maps->of_mount);
	if (!maps->of_mount)
		return error_memory(err);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount *m = &plan->mounts[i];
		struct stat st = {.st_uid = m->reader.uid, .st_gid = m->reader.gid};
		int k;

		maps->of_mount[i] = -1;
		if (plan->use_userns_first || m->kind != MOUNT_OVERLAY || m->reader.kind == READER_ANYBODY ||
		    (m->reader.kind == READER_OWNER && stat(m->source, &st) < 0))
			continue;
		for (k = 0;
		     k < maps->count && (maps->list[k].uid != st.st_uid || maps->list[k].gid != st.st_gid ||
					 maps->list[k].reader != m->reader.kind);
		     k++)
			;
		if (k == IDMAP_MAX)
			continue;
		if (k == maps->count) {
			int r = idmap_open(st.st_uid, st.st_gid, o->host_uid, o->host_gid,
					   m->reader.kind == READER_USER, &maps->list[k].map, err);

			if (r < 0)
				return r;
			maps->list[k].uid = st.st_uid;
			maps->list[k].gid = st.st_gid;
			maps->list[k].reader = m->reader.kind;
			maps->count++;
		}
		maps->of_mount[i] = k;
	}
	return 0;
}

/* Init waits: it is put on record. */
static int introduce(struct sandbox *s, const struct sandbox_hooks *hooks, struct error *err)
{
	if (process_identify(s->init.pid, &s->init) < 0)
		return error_set(err, ERROR_SYSTEM, "init died at once");
	return hooks->on_init ? hooks->on_init(hooks->arg, &s->init, err) : 0;
}

/* It is answered until the command runs. */
static int raise_walls(struct sandbox *s, const struct plan *plan, const struct sandbox_options *o,
		       const struct sandbox_hooks *hooks, struct receipt *receipt, struct error *err)
{
	int r;

	if (hooks->meanwhile)
		hooks->meanwhile(hooks->arg);
	r = start_converse(&(struct start){s, plan, o, hooks, receipt}, err);
	if (r < 0)
		return r;
	if (s->bare)
		receipt_add_bare(receipt, o->host_uid);
	else
		receipt_add(receipt, "seccomp", true, "an allow-list; everything else is refused");
	receipt_add(receipt, "no privileges", true, "no capabilities, no_new_privs");
	return receipt_check(receipt, err);
}

static void descriptors_list(const struct sandbox_options *o, const struct idmaps *maps, int ret[INIT_FD_END])
{
	assert(o->n_join <= SANDBOX_JOIN_MAX);
	for (int i = 0; i < INIT_FD_END; i++)
		ret[i] = i < 3 ? o->stdio[i] : -1;
	ret[INIT_FD_SLOT] = o->slot_fd;
	for (int i = 0; i < o->n_join; i++)
		ret[INIT_FD_JOIN + i] = o->join_fds[i];
	for (int i = 0; i < maps->count; i++)
		ret[INIT_FD_IDMAP + i] = maps->list[i].map.fd;
}

struct sandbox *sandbox_new(bool bare)
{
	struct sandbox *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->pidfd = s->report_fd = s->control_fd = s->listener_fd = s->mounts_fd = -1;
	s->bare = bare;
	s->wall = bare ? &filters_bare[FILTER_SILENT] : &filters[FILTER_SILENT];
	s->names = filter_names;
	return s;
}

/* From nothing: it gets its spec as it is made, and a word when it is on record. */
static int begin_cold(const struct plan *plan, const struct sandbox_options *o,
		      const struct sandbox_hooks *hooks, int descriptors[INIT_FD_END],
		      const struct buffer *spec, struct sandbox **ret, struct error *err)
{
	_cleanup_sandbox_ struct sandbox *s = sandbox_new(plan->strength == STRENGTH_LANDLOCK);
	int r;

	if (!s)
		return error_memory(err);
	if ((r = init_launch(s, plan->use_userns_first, descriptors, spec, err)) < 0 ||
	    (r = introduce(s, hooks, err)) < 0 ||
	    (plan->use_userns_first &&
	     (r = identity_map(s->init.pid, SANDBOX_UID, o->host_uid, SANDBOX_GID, o->host_gid, err)) < 0) ||
	    (r = init_let_go(s, err)) < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

/* From a spare: it is on record before it gets a spec. */
static int begin_warm(struct sandbox *spare, const struct sandbox_hooks *hooks,
		      const int descriptors[INIT_FD_END], const struct buffer *spec, struct sandbox **ret,
		      struct error *err)
{
	_cleanup_sandbox_ struct sandbox *s = spare;
	int r;

	if ((r = introduce(s, hooks, err)) < 0 || (r = spare_hand_over(s, descriptors, spec, err)) < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

/* What of it is ready made, if anything is. */
static struct sandbox *take_spare(const struct plan *plan, const struct sandbox_options *o,
				  struct likeness *ret_like)
{
	_cleanup_(spare_freep) struct spare *begun = o->begun ? TAKE_PTR(*o->begun) : NULL;
	struct error ignored = ERROR_INIT;
	struct sandbox *s = NULL;

	if ((!o->stock && !begun) || likeness_take(plan, ret_like, &ignored) < 0)
		return NULL;
	if (begun)
		s = spare_await(begun, ret_like);
	return s || !o->stock ? s : stock_take(o->stock, ret_like);
}

/* If it cannot be, nobody has lost anything but time. */
static void hold_mounts(struct sandbox *s)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)s->init.pid);
	s->mounts_fd = open(path, O_RDONLY | O_CLOEXEC);
}

static int start(const struct plan *plan, const struct sandbox_options *o, const struct sandbox_hooks *hooks,
		 struct receipt *receipt, struct sandbox **ret, struct error *err)
{
	_cleanup_sandbox_ struct sandbox *s = NULL, *spare = NULL;
	_cleanup_(idmaps_done) struct idmaps maps = {0};
	_cleanup_likeness_ struct likeness like = {0};
	_cleanup_buffer_ struct buffer spec = {0};
	int descriptors[INIT_FD_END], r;

	assert(!plan->failed);
	/* Who made the plan was root, and who took the place was not: never with root's own uid. */
	if (plan->strength == STRENGTH_FULL && !plan->use_userns_first && o->host_uid == 0)
		return error_set(err, ERROR_SYSTEM,
				 "this process has given up root's rights while it worked: try again");
	r = idmaps_open(plan, o, &maps, err);
	if (r < 0)
		return r;
	spare = take_spare(plan, o, &like);
	r = spec_build(plan, o, maps.of_mount, spare ? plan->n_common : 0,
		       plan->strength == STRENGTH_FULL && !plan->use_userns_first, &spec, err);
	if (r < 0)
		return r;
	descriptors_list(o, &maps, descriptors);
	r = spare ? begin_warm(TAKE_PTR(spare), hooks, descriptors, &spec, &s, err)
		  : begin_cold(plan, o, hooks, descriptors, &spec, &s, err);
	if (r < 0)
		return r;
	r = raise_walls(s, plan, o, hooks, receipt, err);
	if (r < 0)
		return r;
	if (o->hold_mounts && !s->bare)
		hold_mounts(s);
	if (o->stock && like.around)
		stock_order(o->stock, &like);
	*ret = TAKE_PTR(s);
	return 0;
}

int sandbox_start(const struct plan *plan, const struct sandbox_options *o, const struct sandbox_hooks *hooks,
		  struct receipt *receipt, struct sandbox **ret, struct error *err)
{
	struct probe_identity who = {.userns = plan->use_userns_first,
				     .bare = plan->strength == STRENGTH_LANDLOCK,
				     .uid = o->host_uid,
				     .gid = o->host_gid};
	int r = start(plan, o, hooks, receipt, ret, err);

	/* Where the host is the reason, it says so as doctor does. */
	return r < 0 ? cause_explain(&who, r, err) : r;
}

/* Without a namespace init must live to end the others; it does so at once, even if it was stopped. */
void sandbox_kill(struct sandbox *s)
{
	if (!s->bare) {
		pidfd_kill(s->pidfd, SIGKILL);
		return;
	}
	(void)init_tell(s, CONTROL_NO);
	pidfd_kill(s->pidfd, SIGCONT);
}

void sandbox_terminate(struct sandbox *s)
{
	if (init_tell(s, CONTROL_TERMINATE) < 0)
		sandbox_kill(s);
}

void sandbox_reap(struct sandbox *s)
{
	siginfo_t info;

	waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED | __WALL | WNOHANG);
}

void sandbox_free(struct sandbox *s)
{
	if (!s)
		return;
	if (s->pidfd >= 0) {
		sandbox_kill(s);
		if (s->bare)
			pidfd_wait(s->pidfd, END_TIMEOUT_MS);
		pidfd_kill(s->pidfd, SIGKILL);
		pidfd_wait(s->pidfd, -1);
		sandbox_reap(s);
	}
	fd_close(s->pidfd);
	fd_close(s->report_fd);
	fd_close(s->control_fd);
	fd_close(s->listener_fd);
	fd_close(s->mounts_fd);
	free(s);
}

int sandbox_read_report(struct sandbox *s, struct command_report *ret)
{
	struct reports r;
	struct report raw;
	int n = reports_read(s, &r, 0);

	if (n < 0)
		return n;
	fd_close(r.fd);
	if (n == 0)
		return 0;
	raw = r.list[0]; /* once the command runs, each is a message of its own */
	*ret = (struct command_report){
		.deadline = raw.kind == REPORT_DEADLINE,
		.ended = raw.kind == REPORT_ENDED,
		.status = raw.value,
		.cpu_user_ns = (int64_t)(raw.cpu_user_us * NSEC_PER_USEC),
		.cpu_system_ns = (int64_t)(raw.cpu_system_us * NSEC_PER_USEC),
	};
	return 1;
}
