/*
 * The scene: what an analysis sees when it looks around, as one array of mounts. Everything that is not in it does not
 * exist. The order is the order in which init puts them up.
 */
#include "private.h"
#include "file.h"
#include "scene.h"
#include "post_scene.h"
#include "program.h"
#include "rights.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int add_link(struct plan *p, const char *text, const char *target, struct error *err)
{
	return plan_add_mount(p, MOUNT_LINK, text, target) ? 0 : error_memory(err);
}

/* Who is who, the same on every host. */
static int add_identity_files(struct plan *p, struct error *err)
{
	static const char *const files[][2] = {
		{"/etc/group", "root:x:0:\nanalysis:x:1000:\nnogroup:x:65534:\n"},
		{"/etc/nsswitch.conf",
		 "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n"},
		{"/etc/hosts", "127.0.0.1 localhost hood\n::1 localhost ip6-localhost hood\n"},
		{"/etc/hostname", "hood\n"},
		{"/etc/resolv.conf", ""},
	};
	_cleanup_free_ char *passwd = NULL;
	int r;

	if (asprintf(&passwd,
		     "root:x:0:0:root:/root:/usr/sbin/nologin\n"
		     "analysis:x:1000:1000:the analysis:%s:/bin/sh\n"
		     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		     p->workspace) < 0)
		return error_memory(err);
	r = scene_add_file(p, "/etc/passwd", passwd, strlen(passwd), err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = scene_add_file(p, files[i][0], files[i][1], strlen(files[i][1]), err);
	return r;
}

static int add_devices(struct plan *p, struct error *err)
{
	static char *const every[] = {(char *)"/dev/null",   (char *)"/dev/zero",    (char *)"/dev/full",
				      (char *)"/dev/random", (char *)"/dev/urandom", NULL};
	static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
					       {"/proc/self/fd/0", "/dev/stdin"},
					       {"/proc/self/fd/1", "/dev/stdout"},
					       {"/proc/self/fd/2", "/dev/stderr"}};
	struct mount *m = plan_add_mount(p, MOUNT_DIR, NULL, "/dev");

	p->devices = strv_copy(every);
	if (!m || !p->devices)
		return error_memory(err);
	m->mode = 0755;
	for (size_t i = 0; p->devices[i]; i++)
		if (!plan_add_mount(p, MOUNT_DEVICE, p->devices[i], p->devices[i]))
			return error_memory(err);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (!plan_add_mount(p, MOUNT_LINK, links[i][0], links[i][1]))
			return error_memory(err);
	/* As large as the memory limit: memory is what holds it, and multiprocessing wants room. */
	m = plan_add_mount(p, MOUNT_TMPFS, NULL, "/dev/shm");
	if (!m)
		return error_memory(err);
	m->mode = 01777;
	m->size = p->limits.value[LIMIT_MEMORY];
	m->writable = true;
	return 0;
}

/* What numerical libraries count CPUs and memory nodes with. */
static int add_sys(struct plan *p, struct error *err)
{
	static const char *const parts[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct mount *m = plan_add_mount(p, MOUNT_OVERLAY, parts[i], parts[i]);

		if (!m)
			return error_memory(err);
		m->optional = true;
		m->reader.kind = READER_ANYBODY;
	}
	return 0;
}

static bool plan_add_writable(struct plan *p, const char *source, const char *target)
{
	struct mount *m = plan_add_mount(p, MOUNT_BIND, source, target);

	if (m)
		m->writable = true;
	return m;
}

/* Scratch and workspace exist only when the story has made them: their identity is noted there. */
static int add_workspace(struct plan *p, struct error *err)
{
	_cleanup_free_ char *tmp = NULL;
	struct mount *m;

	if (p->own_disk) {
		m = plan_add_mount(p, MOUNT_DISK, NULL, p->workspace);
		if (!m)
			return error_memory(err);
		m->size = p->limits.value[LIMIT_DISK];
		m->inodes = p->limits.value[LIMIT_FILES];
		m->mode = 0755;
		m->writable = true;
		return 0;
	}
	tmp = path_join(p->scratch, SCRATCH_TMP);
	return tmp && plan_add_writable(p, tmp, "/tmp") && plan_add_writable(p, p->workspace, p->workspace)
		       ? 0
		       : error_memory(err);
}

struct view {
	const char *source, *target;
	bool unmapped;
};

static int view_compare(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	int r = (int)strlen(x->target) - (int)strlen(y->target);

	return r ? r : strcmp(x->target, y->target);
}

static int refuse_replaced(const struct granted_place *place, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "'%s' was replaced by another file a moment ago", place->path);
}

/* What a submission was granted is that very file, read with its user's rights or with everybody's: never with those of
 * the input's owner. */
static int hold_to(const struct rights *rights, const struct granted_place *place, struct reader *ret,
		   struct error *err)
{
	struct stat st;

	if (lstat(place->path, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", place->path);
	if (st.st_dev != place->device || st.st_ino != place->inode)
		return refuse_replaced(place, err);
	*ret = (struct reader){.kind = place->by_user ? READER_USER : READER_ANYBODY,
			       .uid = rights->who.uid,
			       .gid = place->gid};
	return 0;
}

static int add_view(struct layers *l, const struct view *v, const struct rights *rights, struct error *err)
{
	const struct granted_place *place = rights_place(rights, v->source);
	struct reader reader = {.kind = v->unmapped ? READER_ANYBODY : READER_OWNER};
	size_t before = l->plan->n_mounts;
	struct mount *m;
	int r;

	if ((place && (r = hold_to(rights, place, &reader, err)) < 0) ||
	    (r = layers_show(l, v->source, v->target, &reader, err)) < 0)
		return r;
	if (!place || l->plan->n_mounts == before || !l->plan->mounts[before].inode)
		return 0;
	m = &l->plan->mounts[before];
	if (m->kind == MOUNT_FILE && (m->device != place->device || m->inode != place->inode))
		return refuse_replaced(place, err);
	/* The sandbox compares: it is what was granted, whatever the path has become since. */
	m->device = place->device;
	m->inode = place->inode;
	return 0;
}

/* What was named on purpose shows it already, with its owner's rights. */
static bool is_shown_by(const struct view *views, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(views[i].source, views[i].target) == 0 && path_is_below(path, views[i].source))
			return true;
	return false;
}

/* data, docs, --ro and the interpreters' prefixes at their own paths, outer ones first. */
static int add_inputs(const struct request *r, const struct rights *rights, struct layers *l,
		      struct error *err)
{
	const struct plan *p = l->plan;
	size_t n = 0, room = 2 + r->n_ro + strv_length(p->prefixes);
	_cleanup_free_ struct view *views = calloc(room, sizeof *views);
	int e;

	if (!views)
		return error_memory(err);
	if (p->data)
		views[n++] = (struct view){p->data, p->data};
	if (p->docs)
		views[n++] = (struct view){p->docs, p->docs};
	for (size_t i = 0; i < r->n_ro; i++)
		views[n++] = (struct view){r->ro[i].from, r->ro[i].to};
	for (size_t i = 0; p->prefixes && p->prefixes[i]; i++)
		if (!is_shown_by(views, n, p->prefixes[i]))
			views[n++] = (struct view){p->prefixes[i], p->prefixes[i], .unmapped = true};
	qsort(views, n, sizeof *views, view_compare);
	for (size_t i = 0; i < n; i++) {
		bool again = i > 0 && strcmp(views[i].target, views[i - 1].target) == 0;

		if (again && strcmp(views[i].source, views[i - 1].source) != 0)
			return error_set(err, ERROR_USAGE, "two inputs want the same place '%s'",
					 views[i].target);
		if (!again && (e = add_view(l, &views[i], rights, err)) < 0)
			return e;
	}
	return 0;
}

/* data/ and docs/ in the working directory: the same overlay a second time. */
static int add_again(struct plan *p, const char *source, const char *name, struct error *err)
{
	_cleanup_free_ char *target = NULL;

	if (!source)
		return 0;
	target = path_join(p->workspace, name);
	return target && plan_add_mount(p, MOUNT_SAME, source, target) ? 0 : error_memory(err);
}

int plan_add_scene(UNUSED struct hood *h, const struct request *r, const struct rights *rights,
		   struct plan *p, struct error *err)
{
	_cleanup_layers_ struct layers layers;
	bool is_post = p->kind == PLAN_POST_PROCESS;
	int e;

	if ((e = layers_init(&layers, p, err)) < 0 || (e = scene_add_system(&layers, err)) < 0 ||
	    (e = add_identity_files(p, err)) < 0 || (e = add_devices(p, err)) < 0)
		return e;
	if (!plan_add_mount(p, MOUNT_PROC, NULL, "/proc"))
		return error_memory(err);
	if ((e = add_sys(p, err)) < 0 ||
	    (e = is_post ? post_scene_plan(p, p->scratch, err) : add_workspace(p, err)) < 0 ||
	    (e = add_inputs(r, rights, &layers, err)) < 0 || (e = add_again(p, p->data, "data", err)) < 0 ||
	    (e = add_again(p, p->docs, "docs", err)) < 0)
		return e;
	return add_link(p, "/tmp", "/var/tmp", err);
}
