#include "spec_build.h"
#include "filter.h"
#include "process.h"
#include "spec.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char hostname[] = "hood";

enum { PIDS_SLACK = 16, PIDS_UNSEEN = 1024, SIGNALS_MAX = 2048, QUEUES_MAX = 256 * 1024 };

/* Builders look at nothing: what could not be appended is seen once, when the blob is whole. Until then an offset may mean
 * nothing, and set() is nothing. */

/* Appends bytes; their offset. */
static uint32_t put(struct buffer *b, const void *data, size_t size)
{
	uint32_t at = (uint32_t)b->size;

	buffer_append(b, data, size);
	return at;
}

static uint32_t put_string(struct buffer *b, const char *text)
{
	return put(b, text, strlen(text) + 1);
}

/* Zeros at a place that is aligned for any number, and what is put there. */
static uint32_t put_room(struct buffer *b, size_t size)
{
	static const char zeros[8];

	put(b, zeros, (8 - b->size % 8) % 8);
	if (buffer_reserve(b, size) < 0)
		return 0;
	memset(b->data + b->size, 0, size + 1);
	b->size += size;
	return (uint32_t)(b->size - size);
}

static void set(struct buffer *b, size_t at, const void *data, size_t size)
{
	if (!b->failed)
		memcpy(b->data + at, data, size);
}

static uint32_t put_array(struct buffer *b, const void *data, size_t size)
{
	uint32_t at = put_room(b, size);

	set(b, at, data, size);
	return at;
}

static uint32_t put_list(struct buffer *b, char *const *list, size_t count)
{
	uint32_t at = put_room(b, (count + 1) * sizeof at);

	for (size_t i = 0; i < count; i++) {
		uint32_t text = put_string(b, list[i]);

		set(b, at + i * sizeof text, &text, sizeof text);
	}
	return at;
}

/* Mount options are strings, and the last one is empty. */
static uint32_t put_tmpfs_options(struct buffer *b, const struct mount *m, uid_t uid, gid_t gid)
{
	uint32_t at = (uint32_t)b->size;

	buffer_printf(b, "mode=%o%cuid=%u%cgid=%u%c", m->mode, 0, uid, 0, gid, 0);
	if (m->size && m->size != LIMIT_NONE)
		buffer_printf(b, "size=%llu%c", (unsigned long long)m->size, 0);
	if (m->inodes && m->inodes != LIMIT_NONE)
		buffer_printf(b, "nr_inodes=%llu%c", (unsigned long long)m->inodes, 0);
	put_string(b, "");
	return at;
}

/* One terminal, and nobody inside can make another. */
static uint32_t put_pts_options(struct buffer *b, uid_t uid, gid_t gid)
{
	uint32_t at = (uint32_t)b->size;

	buffer_printf(b, "mode=600%cptmxmode=000%cmax=1%cuid=%u%cgid=%u%c", 0, 0, 0, uid, 0, gid, 0);
	put_string(b, "");
	return at;
}

static uint32_t put_source_option(struct buffer *b, const char *device)
{
	uint32_t at = (uint32_t)b->size;

	buffer_printf(b, "source=%s%c%c", device, 0, 0);
	return at;
}

static void put_mount(struct buffer *b, const struct plan *plan, const struct sandbox_options *o,
		      const struct mount *m, const struct mount_fact *fact, int idmap, struct spec_mount *s)
{
	const char *source = fact->source ? fact->source : m->source;
	/* A tmpfs is made by init: as root before it has entered the analysis's user namespace. */
	uid_t uid = plan->use_userns_first ? SANDBOX_UID : o->host_uid;
	gid_t gid = plan->use_userns_first ? SANDBOX_GID : o->host_gid;

	*s = (struct spec_mount){
		.kind = m->kind,
		.flags = (m->writable ? SPEC_WRITABLE : 0) | (m->optional ? SPEC_OPTIONAL : 0),
		.mode = m->mode,
		.idmap = idmap,
		.device = fact->inode ? fact->device : m->device,
		.inode = fact->inode ? fact->inode : m->inode,
		.source = source ? put_string(b, source) : 0,
		.target = put_string(b, m->target),
	};
	if (m->kind == MOUNT_FILE) {
		s->content_size = (uint32_t)m->content_size;
		s->content = put(b, m->content ? m->content : "", m->content_size);
	}
	if (m->kind == MOUNT_PTS)
		s->data = put_pts_options(b, uid, gid);
	else if (m->kind == MOUNT_DISK && source)
		s->data = put_source_option(b, source);
	else if (m->kind == MOUNT_DISK || m->kind == MOUNT_TMPFS)
		s->data = put_tmpfs_options(b, m, uid, gid);
}

static void put_mounts(struct buffer *b, const struct plan *plan, const struct sandbox_options *o,
		       const int *idmaps, struct spec *spec)
{
	static const struct mount_fact nothing;
	struct spec_mount m;

	const char *last = NULL;
	uint32_t layer = 0;

	spec->mounts = put_room(b, spec->n_mounts * sizeof m);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		struct mount it = plan->mounts[i];

		if (it.layer && (!last || strcmp(it.layer, last) != 0)) {
			layer = put_string(b, it.layer);
			last = it.layer;
		}
		if (i < spec->made)
			it.content_size = 0;
		put_mount(b, plan, o, &it, o->facts ? &o->facts[i] : &nothing, idmaps ? idmaps[i] : -1, &m);
		m.layer = it.layer ? layer : 0;
		set(b, spec->mounts + i * sizeof m, &m, sizeof m);
	}
}

/* No one may raise a hard limit without a right that even root may lack: what is higher already is cut there. */
static uint64_t below_hard(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0 || now.rlim_max == RLIM_INFINITY)
		return value;
	return value < now.rlim_max ? value : now.rlim_max;
}

/* In a user namespace of its own, or with a uid of its own, only this analysis counts; else all that its user runs on the host,
 * in other containers too: no limit then, but a bound. */
static uint64_t processes_max(const struct plan *plan, uid_t uid)
{
	uint64_t pids = plan->limits.value[LIMIT_PIDS] + PIDS_SLACK;

	if (plan->strength == STRENGTH_LANDLOCK && uid == geteuid())
		pids += process_count(uid) + PIDS_UNSEEN;
	return pids;
}

static void put_rlimits(struct buffer *b, const struct plan *plan, uid_t uid, struct spec *spec)
{
	const struct limits *limits = &plan->limits;
	/* 1, not 0: where the host pipes core dumps to a program, only 1 keeps that program from being started. */
	struct spec_rlimit list[8] = {{.resource = RLIMIT_CORE, .value = 1},
				      /* nobody gets before PID 1, whatever the host grants this user */
				      {.resource = RLIMIT_RTPRIO, .value = 0},
				      {.resource = RLIMIT_NICE, .value = 0}};
	uint64_t pids = limits->value[LIMIT_PIDS];
	uint32_t n = 3;

	/* A second lock behind the cgroup's, which must be the first to be reached: its counter is the evidence. */
	if (pids < INT32_MAX)
		list[n++] = (struct spec_rlimit){.resource = RLIMIT_NPROC,
						 .value = below_hard(RLIMIT_NPROC, processes_max(plan, uid))};

	/* Timers, queued signals and message queues are counted for the user on the host as well: leave him some. */
	list[n++] = (struct spec_rlimit){.resource = RLIMIT_SIGPENDING,
					 .value = below_hard(RLIMIT_SIGPENDING, SIGNALS_MAX)};
	list[n++] = (struct spec_rlimit){.resource = RLIMIT_MSGQUEUE,
					 .value = below_hard(RLIMIT_MSGQUEUE, QUEUES_MAX)};
	if (limits->value[LIMIT_FILE_SIZE] != LIMIT_NONE)
		list[n++] = (struct spec_rlimit){
			.resource = RLIMIT_FSIZE,
			.value = below_hard(RLIMIT_FSIZE, limits->value[LIMIT_FILE_SIZE])};
	if (limits->value[LIMIT_OPEN_FILES] != LIMIT_NONE)
		list[n++] = (struct spec_rlimit){
			.resource = RLIMIT_NOFILE,
			.value = below_hard(RLIMIT_NOFILE, limits->value[LIMIT_OPEN_FILES])};
	spec->n_rlimits = n;
	spec->rlimits = put_array(b, list, sizeof list);
}

static void fill(struct buffer *b, const struct plan *plan, const struct sandbox_options *o,
		 const int *idmaps, struct spec *spec)
{
	char *writable[] = {plan->workspace, (char *)"/tmp", (char *)"/dev/shm"};
	const struct filter *made = spec->bare ? filters_bare : filters, *filter = &made[FILTER_SILENT],
			    *teller = &made[o->listen];

	spec->n_argv = (uint32_t)strv_length(plan->command);
	spec->n_env = (uint32_t)strv_length(plan->env);
	spec->n_writable = ARRAY_SIZE(writable);
	spec->n_filter = filter->length;
	spec->argv = put_list(b, plan->command, spec->n_argv);
	spec->env = put_list(b, plan->env, spec->n_env);
	spec->writable = put_list(b, writable, spec->n_writable);
	put_mounts(b, plan, o, idmaps, spec);
	put_rlimits(b, plan, o->host_uid, spec);
	spec->program = put_string(b, plan->program);
	spec->directory = put_string(b, plan->workspace);
	spec->hostname = put_string(b, hostname);
	spec->filter = put_array(b, filter->code, filter->length * sizeof filter->code[0]);
	if (o->listen != FILTER_SILENT) {
		spec->n_teller = teller->length;
		spec->teller = put_array(b, teller->code, teller->length * sizeof teller->code[0]);
	}
	if (o->cpus) {
		spec->n_cpus = (uint32_t)o->n_cpus;
		spec->cpus = put_array(b, o->cpus, o->n_cpus);
	}
}

static int seal(struct buffer *b, struct spec *spec, struct error *err)
{
	if (b->size > UINT32_MAX)
		return error_memory(err);
	spec->size = (uint32_t)b->size;
	set(b, 0, spec, sizeof *spec);
	return buffer_check(b, err);
}

int spec_build_spare(const struct plan *plan, struct buffer *ret, struct error *err)
{
	static const struct sandbox_options nobody;
	struct spec spec;

	memset(&spec, 0, sizeof spec); /* all of it is compared */
	spec.magic = SPEC_MAGIC;
	spec.spare = true;
	spec.userns_first = plan->use_userns_first;
	spec.n_mounts = (uint32_t)plan->n_common;
	put_room(ret, sizeof spec);
	put_mounts(ret, plan, &nobody, NULL, &spec);
	spec.hostname = put_string(ret, hostname);
	return seal(ret, &spec, err);
}

int spec_build(const struct plan *plan, const struct sandbox_options *o, const int *idmaps, size_t made,
	       bool own_userns, struct buffer *ret, struct error *err)
{
	struct spec spec = {
		.magic = SPEC_MAGIC,
		.n_mounts = (uint32_t)plan->n_mounts,
		.made = (uint32_t)made,
		.bare = plan->strength == STRENGTH_LANDLOCK,
		.userns_first = plan->use_userns_first,
		.own_userns = own_userns,
		.uid = plan->use_userns_first || own_userns ? SANDBOX_UID : o->host_uid,
		.gid = plan->use_userns_first || own_userns ? SANDBOX_GID : o->host_gid,
		.host_uid = o->host_uid,
		.host_gid = o->host_gid,
		.n_join = (uint32_t)o->n_join,
		.stdin_null = !plan->stdin_open && !plan->terminal,
		.wall_ns = plan->limits.value[LIMIT_WALL],
		.grace_ns = plan->limits.value[LIMIT_GRACE],
	};

	put_room(ret, sizeof spec);
	fill(ret, plan, o, idmaps, &spec);
	return seal(ret, &spec, err);
}
