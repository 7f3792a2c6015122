#include "post_scene.h"
#include "ability.h"
#include "collect.h"
#include "relative.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int post_scene_enter(struct plan *plan, struct error *err)
{
	return plan->strength == STRENGTH_LANDLOCK
		       ? text_print(&plan->workspace, err, "%s/" POST_WORK, plan->scratch)
		       : text_set(&plan->workspace, POST_DIRECTORY, err);
}

void post_scene_plan(struct plan *plan, const char *scratch)
{
	static const struct {
		const char *name, *target;
		bool writable;
	} places[] = {{"tmp", "/tmp", true},
		      {POST_WORK, POST_DIRECTORY, true},
		      {"outputs", POST_DIRECTORY "/outputs", false},
		      {"manifest.json", POST_DIRECTORY "/manifest.json", false}};
	bool bare = plan->strength == STRENGTH_LANDLOCK;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_free_ char *source = path_join(scratch, places[i].name);

		/* There already, as every scene's that has no namespaces. */
		if (bare && places[i].writable)
			continue;
		plan_add_mount(plan, MOUNT_BIND, source, bare ? source : places[i].target)->writable =
			places[i].writable;
	}
}

static int make_directory(int scratch, const char *name, mode_t mode, uid_t uid, gid_t gid, struct error *err)
{
	int fd = dir_make(scratch, name, mode, uid, gid);

	return fd < 0 ? error_system(err, -fd, "cannot make '%s' for the post-process", name) : fd;
}

/* What there is on the way was made here, for another output. */
static int place_output(const struct post_job *job, int outputs, const struct output *o, struct error *err)
{
	const struct relative_make make = {0755, .is_exact = true, geteuid(), getegid()};
	_cleanup_close_ int parent = -1, fd = -1;
	struct relative path;
	const char *name;
	int r = relative_check(o->path, strlen(o->path), &path, err);

	if (r < 0)
		return r;
	parent = relative_open_parent(outputs, path, &make, &name);
	fd = parent < 0 ? parent : file_open_beneath(parent, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return error_system(err, -fd, "cannot make a copy of the output '%s' for the post-process",
				    SHOWN(512, o->path));
	r = job->fetch(job->arg, o, fd, err);
	if (r < 0)
		return r;
	return fchmod(fd, 0444) < 0 ? error_system(err, errno, "cannot make a copy of an output readable")
				    : 0;
}

static int place_manifest(const struct post_job *job, int scratch, struct error *err)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(scratch, "manifest.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : manifest_write(job->attempt, fd);
	if (r == 0 && fchmod(fd, 0444) < 0)
		r = -errno;
	return r < 0 ? error_system(err, -r, "cannot make manifest.json for the post-process") : 0;
}

/* The command's own files, from where it was given or from the submission; never from the workspace. */
static int place_stages(const struct post_job *job, int work, struct error *err)
{
	struct workspace place = {
		.site = job->place->workspace->site, .fd = work, .run_fd = -1, .lock_fd = -1};
	_cleanup_(inputs_done) struct inputs inputs = {0};
	uint64_t max = job->plan->limits.value[LIMIT_DISK];
	uid_t uid = job->place->uid;
	gid_t gid = job->place->gid;
	int r;

	for (size_t i = 0; i < job->plan->n_stages; i++)
		if ((r = workspace_stage(&place, &job->plan->stages[i], max, uid, gid, &inputs, err)) < 0)
			return r;
	for (size_t i = 0; job->stored && i < job->stored->count; i++)
		if (job->stored->list[i].for_post &&
		    (r = workspace_stage_content(&place, &job->stored->list[i], max, uid, gid, job->fill,
						 job->arg, &inputs, err)) < 0)
			return r;
	return 0;
}

/* Where nothing can be mounted, what it reads is linked to from where it is. */
static int link_places(int work, struct error *err)
{
	static const char *const links[][2] = {{"../outputs", "outputs"},
					       {"../manifest.json", "manifest.json"}};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i][0], work, links[i][1]) < 0)
			return error_system(err, errno, "cannot link '%s' for the post-process", links[i][1]);
	return 0;
}

int post_scene_make(const struct post_job *job, struct error *err)
{
	const char *scratch_path = job->place->workspace->record.scratch,
		   *name = strrchr(scratch_path, '/') + 1;
	_cleanup_close_ int scratch = tree_open_directory(job->place->workspace->site->root_fd, name);
	_cleanup_close_ int outputs = -1, work = -1, tmp = -1;
	const struct manifest *m = &job->attempt->manifest;
	uid_t uid = job->place->uid;
	gid_t gid = job->place->gid;
	bool bare = job->plan->strength == STRENGTH_LANDLOCK;
	int r;

	if (scratch < 0)
		return error_system(err, -scratch, "cannot open '%s'", scratch_path);
	/* Ours alone before anything is made in it: nobody else may come between. */
	if ((ability_is_root() && fchown(scratch, 0, 0) < 0) || fchmod(scratch, 0700) < 0)
		return error_system(err, errno, "cannot take '%s'", scratch_path);
	r = tree_empty(scratch, err);
	if (r < 0)
		return r;
	if (bare && uid != geteuid() && fchmod(scratch, 0711) < 0)
		return error_system(err, errno, "cannot open '%s' to the post-process", scratch_path);
	tmp = make_directory(scratch, "tmp", 0700, uid, gid, err);
	work = tmp < 0 ? tmp : make_directory(scratch, POST_WORK, 0700, uid, gid, err);
	outputs = work < 0 ? work : make_directory(scratch, "outputs", 0755, geteuid(), getegid(), err);
	if (outputs < 0)
		return outputs;
	for (size_t i = 0; i < m->n_outputs; i++)
		if ((r = place_output(job, outputs, &m->outputs[i], err)) < 0)
			return r;
	if ((r = place_manifest(job, scratch, err)) < 0 || (bare && (r = link_places(work, err)) < 0))
		return r;
	return place_stages(job, work, err);
}
