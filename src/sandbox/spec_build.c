#include "spec_build.h"
#include "filter.h"
#include "spec.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static const char hostname[] = "hood";

enum { PIDS_SLACK = 16, SIGNALS_MAX = 2048, QUEUES_MAX = 256 * 1024 };

/* Appends bytes at an aligned place; its offset, or 0 if memory is out (offset 0 is the header's). */
static uint32_t put(struct buffer *b, const void *data, size_t size)
{
	static const char zeros[8];
	size_t pad = (8 - b->size % 8) % 8, at = b->size + pad;

	if (at + size > UINT32_MAX || buffer_append(b, zeros, pad) < 0 || buffer_append(b, data, size) < 0)
		return 0;
	return (uint32_t)at;
}

static uint32_t put_string(struct buffer *b, const char *text)
{
	size_t at = b->size;

	return at < UINT32_MAX && buffer_append(b, text, strlen(text) + 1) == 0 ? (uint32_t)at : 0;
}

static int put_list(struct buffer *b, char *const *list, size_t count, uint32_t *ret)
{
	_cleanup_free_ uint32_t *offsets = calloc(count + 1, sizeof *offsets);

	if (!offsets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if ((offsets[i] = put_string(b, list[i])) == 0)
			return -ENOMEM;
	*ret = put(b, offsets, (count + 1) * sizeof *offsets);
	return *ret ? 0 : -ENOMEM;
}

static uint32_t put_tmpfs_options(struct buffer *b, const struct mount *m, uid_t uid, gid_t gid)
{
	_cleanup_buffer_ struct buffer options = {0};

	if (buffer_printf(&options, "mode=%o%cuid=%u%cgid=%u%c", m->mode, 0, uid, 0, gid, 0) < 0 ||
	    (m->size && m->size != LIMIT_NONE &&
	     buffer_printf(&options, "size=%llu%c", (unsigned long long)m->size, 0) < 0) ||
	    (m->inodes && m->inodes != LIMIT_NONE &&
	     buffer_printf(&options, "nr_inodes=%llu%c", (unsigned long long)m->inodes, 0) < 0) ||
	    buffer_append(&options, "", 1) < 0)
		return 0;
	return put(b, options.data, options.size);
}

static uint32_t put_source_option(struct buffer *b, const char *device)
{
	_cleanup_buffer_ struct buffer options = {0};

	if (buffer_printf(&options, "source=%s%c%c", device, 0, 0) < 0)
		return 0;
	return put(b, options.data, options.size);
}

static const enum spec_kind kinds[] = {
	[MOUNT_DIR] = SPEC_DIR,	    [MOUNT_FILE] = SPEC_FILE,	    [MOUNT_LINK] = SPEC_LINK,
	[MOUNT_TMPFS] = SPEC_TMPFS, [MOUNT_PROC] = SPEC_PROC,	    [MOUNT_DEVICE] = SPEC_DEVICE,
	[MOUNT_BIND] = SPEC_BIND,   [MOUNT_OVERLAY] = SPEC_OVERLAY, [MOUNT_SAME] = SPEC_SAME,
	[MOUNT_DISK] = SPEC_DISK,
};

static int put_mount(struct buffer *b, const struct plan *plan, const struct sandbox_options *o,
		     const struct mount *m, const struct mount_fact *fact, int idmap, struct spec_mount *s)
{
	const char *source = fact->source ? fact->source : m->source;
	/* A tmpfs is made by init: as root before it has entered the analysis's user namespace. */
	uid_t uid = plan->use_userns_first ? SANDBOX_UID : o->host_uid;
	gid_t gid = plan->use_userns_first ? SANDBOX_GID : o->host_gid;

	*s = (struct spec_mount){
		.kind = kinds[m->kind],
		.flags = (m->writable ? SPEC_WRITABLE : 0) | (m->optional ? SPEC_OPTIONAL : 0),
		.mode = m->mode,
		.idmap = idmap,
		.device = fact->inode ? fact->device : m->device,
		.inode = fact->inode ? fact->inode : m->inode,
	};
	if (source && (s->source = put_string(b, source)) == 0)
		return -ENOMEM;
	if ((s->target = put_string(b, m->target)) == 0)
		return -ENOMEM;
	if (m->kind == MOUNT_FILE) {
		s->content_size = (uint32_t)m->content_size;
		if ((s->content = put(b, m->content ? m->content : "", m->content_size)) == 0)
			return -ENOMEM;
	}
	if (m->kind == MOUNT_DISK && source && (s->data = put_source_option(b, source)) == 0)
		return -ENOMEM;
	if ((m->kind == MOUNT_TMPFS || (m->kind == MOUNT_DISK && !source)) &&
	    (s->data = put_tmpfs_options(b, m, uid, gid)) == 0)
		return -ENOMEM;
	return 0;
}

static int put_mounts(struct buffer *b, const struct plan *plan, const struct sandbox_options *o,
		      const int *idmaps, struct spec *spec)
{
	static const struct mount_fact nothing;
	_cleanup_free_ struct spec_mount *list = calloc(plan->n_mounts + 1, sizeof *list);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < plan->n_mounts; i++)
		if (put_mount(b, plan, o, &plan->mounts[i], o->facts ? &o->facts[i] : &nothing, idmaps[i],
			      &list[i]) < 0)
			return -ENOMEM;
	spec->n_mounts = (uint32_t)plan->n_mounts;
	spec->mounts = put(b, list, (plan->n_mounts + 1) * sizeof *list);
	return spec->mounts ? 0 : -ENOMEM;
}

/* No one may raise a hard limit without a right that even root may lack: what is higher already is cut there. */
static uint64_t below_hard(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0 || now.rlim_max == RLIM_INFINITY)
		return value;
	return value < now.rlim_max ? value : now.rlim_max;
}

static int put_rlimits(struct buffer *b, const struct limits *limits, struct spec *spec)
{
	/* 1, not 0: where the host pipes core dumps to a program, only 1 keeps that program from being started. */
	struct spec_rlimit list[8] = {{.resource = RLIMIT_CORE, .value = 1},
				      /* nobody gets before PID 1, whatever the host grants this user */
				      {.resource = RLIMIT_RTPRIO, .value = 0},
				      {.resource = RLIMIT_NICE, .value = 0}};
	uint64_t pids = limits->value[LIMIT_PIDS];
	uint32_t n = 3;

	/* A second lock behind the cgroup's, which must be the first to be reached: its counter is the evidence. In a
	 * user namespace of its own only this analysis counts. */
	if (pids < INT32_MAX)
		list[n++] = (struct spec_rlimit){.resource = RLIMIT_NPROC,
						 .value = below_hard(RLIMIT_NPROC, pids + PIDS_SLACK)};

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
	spec->rlimits = put(b, list, sizeof list);
	return spec->rlimits ? 0 : -ENOMEM;
}

static int fill(struct buffer *b, const struct plan *plan, const struct sandbox_options *o, const int *idmaps,
		struct spec *spec)
{
	char *writable[] = {plan->workspace, (char *)"/tmp", (char *)"/dev/shm"};

	spec->n_argv = (uint32_t)strv_length(plan->command);
	spec->n_env = (uint32_t)strv_length(plan->env);
	spec->n_writable = ARRAY_SIZE(writable);
	spec->n_filter = filter_length;
	if (put_list(b, plan->command, spec->n_argv, &spec->argv) < 0 ||
	    put_list(b, plan->env, spec->n_env, &spec->env) < 0 ||
	    put_list(b, writable, spec->n_writable, &spec->writable) < 0 ||
	    put_mounts(b, plan, o, idmaps, spec) < 0 || put_rlimits(b, &plan->limits, spec) < 0)
		return -ENOMEM;
	spec->program = put_string(b, plan->program);
	spec->directory = put_string(b, plan->workspace);
	spec->hostname = put_string(b, hostname);
	spec->filter = put(b, filter_code, filter_length * sizeof filter_code[0]);
	if (!spec->program || !spec->directory || !spec->hostname || !spec->filter)
		return -ENOMEM;
	if (o->cpus) {
		spec->n_cpus = (uint32_t)o->n_cpus;
		spec->cpus = put(b, o->cpus, o->n_cpus);
		if (!spec->cpus)
			return -ENOMEM;
	}
	return 0;
}

int spec_build(const struct plan *plan, const struct sandbox_options *o, const int *idmaps, bool own_userns,
	       struct buffer *ret, struct error *err)
{
	struct spec spec = {
		.magic = SPEC_MAGIC,
		.userns_first = plan->use_userns_first,
		.own_userns = own_userns,
		.uid = plan->use_userns_first || own_userns ? SANDBOX_UID : o->host_uid,
		.gid = plan->use_userns_first || own_userns ? SANDBOX_GID : o->host_gid,
		.host_uid = o->host_uid,
		.host_gid = o->host_gid,
		.n_join = (uint32_t)o->n_join,
		.stdin_null = !plan->stdin_open,
		.wall_ns = plan->limits.value[LIMIT_WALL],
		.grace_ns = plan->limits.value[LIMIT_GRACE],
	};

	if (buffer_append(ret, &spec, sizeof spec) < 0 || fill(ret, plan, o, idmaps, &spec) < 0)
		return error_memory(err);
	spec.size = (uint32_t)ret->size;
	memcpy(ret->data, &spec, sizeof spec);
	return 0;
}
