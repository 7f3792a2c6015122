/*
 * The scene: what an analysis sees when it looks around, as one array of mounts. Everything that is not in it does not
 * exist. The order is the order in which init puts them up.
 */
#include "private.h"
#include "ability.h"
#include "file.h"
#include "scene.h"
#include "post_scene.h"
#include "program.h"
#include "rights.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Who is who, the same on every host. */
static void add_identity_files(struct plan *p)
{
	static const char *const files[][2] = {
		{"/etc/group", "root:x:0:\nanalysis:x:1000:\nnogroup:x:65534:\n"},
		{"/etc/nsswitch.conf",
		 "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n"},
		{"/etc/hosts", "127.0.0.1 localhost hood\n::1 localhost ip6-localhost hood\n"},
		{"/etc/hostname", "hood\n"},
		{"/etc/resolv.conf", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		scene_add_file(p, files[i][0], files[i][1], strlen(files[i][1]));
}

/* Its home is where it runs. */
static void add_passwd(struct plan *p)
{
	_cleanup_buffer_ struct buffer passwd = {0};

	buffer_printf(&passwd,
		      "root:x:0:0:root:/root:/usr/sbin/nologin\n"
		      "analysis:x:1000:1000:the analysis:%s:/bin/sh\n"
		      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		      p->workspace);
	p->failed |= passwd.failed;
	scene_add_file(p, "/etc/passwd", passwd.data ? passwd.data : "", passwd.size);
}

static void add_devices(struct plan *p)
{
	static char *const every[] = {(char *)"/dev/null",   (char *)"/dev/zero",    (char *)"/dev/full",
				      (char *)"/dev/random", (char *)"/dev/urandom", NULL};
	static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
					       {"/proc/self/fd/0", "/dev/stdin"},
					       {"/proc/self/fd/1", "/dev/stdout"},
					       {"/proc/self/fd/2", "/dev/stderr"}};

	p->devices = strv_copy(every);
	p->failed |= !p->devices;
	plan_add_mount(p, MOUNT_DIR, NULL, "/dev")->mode = 0755;
	for (size_t i = 0; every[i]; i++)
		plan_add_mount(p, MOUNT_DEVICE, every[i], every[i]);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		plan_add_mount(p, MOUNT_LINK, links[i][0], links[i][1]);
}

static void add_terminal(struct plan *p)
{
	p->failed |= strv_append(&p->devices, "/dev/tty", NULL) < 0;
	plan_add_mount(p, MOUNT_DEVICE, "/dev/tty", "/dev/tty");
	plan_add_mount(p, MOUNT_PTS, NULL, "/dev/pts");
}

static void add_shm(struct plan *p)
{
	struct mount *m;

	/* As large as the memory limit: memory is what holds it, and multiprocessing wants room. */
	m = plan_add_mount(p, MOUNT_TMPFS, NULL, "/dev/shm");
	m->mode = 01777;
	m->size = p->limits.value[LIMIT_MEMORY];
	m->writable = true;
}

/* What numerical libraries count CPUs and memory nodes with. */
static void add_sys(struct layers *l)
{
	static const char layer[] = "/sys/devices/system";
	static const char *const parts[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		layers_share(l, layers_can_share(l, layer, parts[i]) ? layer : NULL, parts[i])->optional =
			true;
}

/* Scratch and workspace exist only when the story has made them: their identity is noted there. */
static void add_workspace(struct plan *p)
{
	_cleanup_free_ char *tmp = NULL;
	struct mount *m;

	if (p->own_disk) {
		m = plan_add_mount(p, MOUNT_DISK, NULL, p->workspace);
		m->size = p->limits.value[LIMIT_DISK];
		m->inodes = p->limits.value[LIMIT_FILES];
		m->mode = 0755;
		m->writable = true;
		return;
	}
	tmp = path_join(p->scratch, SCRATCH_TMP);
	plan_add_mount(p, MOUNT_BIND, tmp, "/tmp")->writable = true;
	plan_add_mount(p, MOUNT_BIND, p->workspace, p->workspace)->writable = true;
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
static void add_again(struct plan *p, const char *source, const char *name)
{
	_cleanup_free_ char *target = source ? path_join(p->workspace, name) : NULL;

	if (source)
		plan_add_mount(p, MOUNT_SAME, source, target);
}

/* What --from has put into the workspace, over itself, read-only: it is not the analysis's to change. */
static void add_flows(struct plan *p)
{
	for (char **root = p->flow_roots; root && *root; root++) {
		_cleanup_free_ char *at = path_join(p->workspace, *root);

		p->failed |= !at;
		if (at)
			plan_add_mount(p, MOUNT_SAME, at, at);
	}
}

/* Without namespaces data/ and docs/ in the working directory are links, and what --from has put there can be changed. */
static int add_bare(const struct request *r, const struct rights *rights, struct layers *l, struct error *err)
{
	int e;

	if ((e = scene_add_bare(l, err)) < 0)
		return e;
	if (l->plan->kind == PLAN_POST_PROCESS)
		post_scene_plan(l->plan, l->plan->scratch);
	e = add_inputs(r, rights, l, err);
	return e < 0 ? e : plan_check(l->plan, err);
}

/* What every analysis on this host has; what follows is this one's. */
static int add_common(struct layers *l, struct error *err)
{
	struct plan *p = l->plan;
	int e = scene_add_system(l, err);

	if (e < 0 || p->strength == STRENGTH_LANDLOCK)
		return e;
	add_identity_files(p);
	add_devices(p);
	plan_add_mount(p, MOUNT_PROC, NULL, "/proc");
	add_sys(l);
	p->n_common = p->n_mounts;
	return 0;
}

int scene_begin(struct hood *h, struct error *err)
{
	_cleanup_layers_ struct layers layers = {0};
	struct plan *p = plan_new();
	int e;

	if (!p)
		return error_memory(err);
	p->strength = STRENGTH_FULL;
	p->use_userns_first = !ability_is_root();
	if ((e = layers_init(&layers, p, err)) < 0 || (e = add_common(&layers, err)) < 0 ||
	    (e = plan_check(p, err)) < 0) {
		plan_free(p);
		return e;
	}
	h->common = p;
	return 0;
}

/* Made a moment ago, for this one. */
static bool take_common(struct hood *h, struct plan *p)
{
	struct plan *common = h->common;

	if (!common || p->strength != STRENGTH_FULL || p->use_userns_first != common->use_userns_first)
		return false;
	assert(p->n_mounts == 0 && !p->devices);
	p->mounts = TAKE_PTR(common->mounts);
	p->n_mounts = p->n_common = common->n_common;
	p->devices = TAKE_PTR(common->devices);
	common->n_mounts = common->n_common = 0;
	plan_free(TAKE_PTR(h->common));
	return true;
}

int plan_add_scene(struct hood *h, const struct request *r, const struct rights *rights, struct plan *p,
		   struct error *err)
{
	_cleanup_layers_ struct layers layers;
	int e = layers_init(&layers, p, err);

	if (e < 0 || (!take_common(h, p) && (e = add_common(&layers, err)) < 0))
		return e;
	if (p->strength == STRENGTH_LANDLOCK)
		return add_bare(r, rights, &layers, err);
	add_passwd(p);
	if (p->terminal)
		add_terminal(p);
	add_shm(p);
	if (p->kind == PLAN_POST_PROCESS)
		post_scene_plan(p, p->scratch);
	else
		add_workspace(p);
	e = add_inputs(r, rights, &layers, err);
	if (e < 0)
		return e;
	add_again(p, p->data, "data");
	add_again(p, p->docs, "docs");
	add_flows(p);
	plan_add_mount(p, MOUNT_LINK, "/tmp", "/var/tmp");
	return plan_check(p, err);
}
