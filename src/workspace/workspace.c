#include "folder.h"
#include "ability.h"
#include "clock.h"
#include "relative.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int taken(const struct workspace *w, struct error *err)
{
	return error_refuse_here(
		err, "'%s' exists and was not made for analysis '%s': move it away, or choose another id",
		w->record.path, w->record.id);
}

/* A fresh record, of this process on this boot. */
static int record_begin(struct workspace *w, const char *id, const char *token, struct error *err)
{
	struct record *r = &w->record;
	struct names n;
	int e;

	record_done(r);
	names_make(&n, w->site, id, token);
	snprintf(r->id, sizeof r->id, "%s", id);
	snprintf(r->token, sizeof r->token, "%s", token);
	if ((e = machine_id(r->machine)) < 0)
		return error_system(err, -e, "cannot read /etc/machine-id");
	boot_id(r->boot);
	r->uid = geteuid();
	r->owner = OWNER_SUPERVISOR;
	r->path = path_join(w->site->root, n.final);
	r->scratch = path_join(w->site->root, n.scratch);
	if (!r->path || !r->scratch)
		return error_memory(err);
	if (process_identify(getpid(), &r->process) < 0)
		return error_set(err, ERROR_SYSTEM, "cannot read /proc/self/stat: is /proc mounted?");
	return 0;
}

/* Gives the noted directory its name, if that is free. */
static int rename_made(struct workspace *w, const struct names *n, struct error *err)
{
	int root = w->site->root_fd;

	if (renameat2(root, n->making, root, n->final, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST || errno == ENOTEMPTY)
		return taken(w, err);
	if (errno == EINVAL)
		return error_set(
			err, ERROR_REFUSED,
			"the file system of '%s' cannot rename without replacing: choose another workspace root",
			w->site->root);
	return error_system(err, errno, "cannot make '%s'", w->record.path);
}

/* Under a name that nobody can guess, noted, then renamed: the workspace appears whole, or not at all. */
static int make_directory(struct workspace *w, const struct names *n, uid_t uid, gid_t gid, struct error *err)
{
	_cleanup_close_ int fd = dir_make(w->site->root_fd, n->making, 0700, uid, gid);
	struct stat st;
	int r;

	if (fd < 0)
		return error_system(err, -fd, "cannot make a workspace in '%s'", w->site->root);
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at the new workspace in '%s'", w->site->root);
	w->record.device = st.st_dev;
	w->record.inode = st.st_ino;
	if ((r = folder_save(w, false, err)) < 0 || (r = rename_made(w, n, err)) < 0) {
		w->record.inode = 0;
		return r;
	}
	w->fd = TAKE_FD(fd);
	return 0;
}

/* Only what lies in it is the analysis's: whatever modes it gives its /tmp, nobody else comes as far as that. */
static int make_scratch(struct workspace *w, uid_t uid, gid_t gid, struct error *err)
{
	struct names n;
	_cleanup_close_ int fd = -1, tmp = -1;

	names_make(&n, w->site, w->record.id, w->record.token);
	fd = dir_make(w->site->root_fd, n.scratch, 0700, geteuid(), getegid());
	if (fd < 0)
		return error_system(err, -fd, "cannot make '%s'", w->record.scratch);
	tmp = dir_make(fd, SCRATCH_TMP, 0700, uid, gid);
	return tmp < 0 ? error_system(err, -tmp, "cannot make '%s/%s'", w->record.scratch, SCRATCH_TMP) : 0;
}

/* Writes the record, makes what it names. On failure all is as before. */
static int make_all(struct workspace *w, bool scratch, uid_t uid, gid_t gid, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct names n;
	struct stat st;
	int r;

	names_make(&n, w->site, w->record.id, w->record.token);
	r = fstatat(w->site->root_fd, n.final, &st, AT_SYMLINK_NOFOLLOW) == 0 ? taken(w, err) : 0;
	if (r < 0 || (r = folder_save(w, false, err)) < 0 || (r = make_directory(w, &n, uid, gid, err)) < 0 ||
	    (scratch && (r = make_scratch(w, uid, gid, err)) < 0))
		(void)workspace_remove(w, &ignored);
	return r;
}

static pid_t parent_of(pid_t pid)
{
	_cleanup_buffer_ struct buffer text = {0};
	char path[32];
	int parent = 0;
	const char *p;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (file_load(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return 0;
	p = strrchr(text.data, ')');
	return p && sscanf(p + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_self_or_ancestor(const struct process_id *who)
{
	for (pid_t pid = getpid(); pid > 0; pid = parent_of(pid)) {
		struct process_id now;

		if (pid == who->pid)
			return process_identify(pid, &now) == 0 && now.start == who->start;
	}
	return false;
}

/* The record is ours and not over. owner NULL: whoever this process acts for. */
static int check_held_by(const struct record *r, const struct process_id *owner, struct error *err)
{
	if (r->owner == OWNER_UNTIL)
		return 0;
	if (owner ? owner->pid == r->process.pid && owner->start == r->process.start
		  : is_self_or_ancestor(&r->process))
		return 0;
	return error_refuse_here(
		err,
		"'%s' is held by process %d: wait until it has ended, or remove it with: fumehood "
		"workspace cleanup %s",
		r->path, (int)r->process.pid, r->id);
}

/* A dead owner left this: the callback settles it. */
static int settle(struct workspace *w, workspace_recover_fn recover, void *arg, struct error *err)
{
	int r;

	if (!recover)
		return error_refuse_here(
			err, "an earlier run of analysis '%s' has died: clean up with: fumehood gc",
			w->record.id);
	if ((r = record_kill(&w->record, err)) < 0 || (r = folder_attach(w, err)) < 0)
		return r;
	return recover(arg, w, err);
}

/* Locks id for us. 0: there is no record, 1: a held workspace that the caller may have. */
static int claim(struct workspace *w, const char *id, const struct process_id *owner,
		 workspace_recover_fn recover, void *arg, struct error *err)
{
	const struct site *site = w->site;

	for (;;) {
		const char *why;
		int r;

		if ((r = folder_lock(w, id, true, err)) <= 0 || (r = folder_load(w, err)) <= 0)
			return r;
		switch (folder_judge(w, &why)) {
		case STANDING_FOREIGN:
			return error_refuse_here(err, "the workspace of analysis '%s' is not ours: %s", id,
						 why);
		case STANDING_HELD:
			if (w->record.owner == OWNER_KEPT) {
				r = folder_move_aside(w, err);
				break;
			}
			r = check_held_by(&w->record, owner, err);
			return r < 0 ? r : 1;
		case STANDING_OVER:
			r = settle(w, recover, arg, err);
			recover = NULL; /* once: what is left after it needs a person */
			break;
		}
		if (r < 0)
			return r;
		workspace_close(w);
		workspace_blank(w, site);
	}
}

/* A lock was taken for nothing: no folder stays behind. */
static int give_up(struct workspace *w, int r)
{
	struct error ignored = ERROR_INIT;
	struct stat st;

	if (w->run_fd >= 0 && fstatat(w->run_fd, RECORD_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		(void)folder_remove(w, &ignored);
	workspace_close(w);
	return r;
}

bool workspace_is_adopted(const struct workspace *w)
{
	return w->record.held.owner != OWNER_SUPERVISOR;
}

bool workspace_is_over(const struct workspace *w)
{
	const char *why;

	return folder_judge(w, &why) == STANDING_OVER;
}

/* What a kept one was is known afterwards too, and it stays where it is. */
static int stay_kept(struct record *r, const struct record *kept, struct error *err)
{
	memcpy(r->aside, kept->aside, sizeof r->aside);
	r->extra = json_incref(kept->extra);
	if (text_set(&r->ledger, kept->ledger, err) < 0)
		return -ENOMEM;
	return text_set(&r->path, kept->path, err);
}

int workspace_adopt(struct workspace *w, const char *token, uid_t uid, gid_t gid, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct record held = w->record;
	struct names n;
	struct stat st;
	int r;

	if (fstat(w->fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", held.path);
	record_init(&w->record);
	r = record_begin(w, held.id, token, err);
	w->record.device = st.st_dev;
	w->record.inode = st.st_ino;
	w->record.cgroups = held.cgroups;
	w->record.held = (struct holding){.owner = held.owner, .process = held.process, .until = held.until};
	memcpy(w->record.held.token, held.token, sizeof held.token);
	if (r == 0 && held.owner == OWNER_KEPT)
		r = stay_kept(&w->record, &held, err);
	if (r < 0 || (r = folder_save(w, false, err)) < 0 ||
	    (uid != geteuid() && (r = tree_chown(w->fd, uid, gid, err)) < 0) ||
	    (r = make_scratch(w, uid, gid, err)) < 0) {
		names_make(&n, w->site, held.id, token);
		(void)tree_remove(w->site->root_fd, n.scratch, &ignored);
		w->record.cgroups = NULL;
		record_done(&w->record);
		w->record = held;
		(void)folder_save(w, true, &ignored);
		return r;
	}
	held.cgroups = NULL;
	record_done(&held);
	return 0;
}

/* The run is over: no scratch, and what lies in the workspace is the caller's again. */
static int take_back(struct workspace *w, struct error *err)
{
	struct names n;
	int r;

	names_make(&n, w->site, w->record.id, w->record.token);
	r = tree_remove(w->site->root_fd, n.scratch, err);
	return r < 0 || !ability_is_root() ? r : tree_chown(w->fd, geteuid(), getegid(), err);
}

/* How long what somebody has looked around in is kept at least. */
#define KEPT_LEAST_NS ((int64_t)(3600 * NSEC_PER_SEC))

int workspace_give_back(struct workspace *w, struct error *err)
{
	struct record *record = &w->record;
	const struct holding held = record->held;
	struct names n;
	int r = take_back(w, err);

	if (r < 0)
		return r;
	names_make(&n, w->site, record->id, held.token);
	free(record->scratch);
	record->scratch = path_join(w->site->root, n.scratch);
	if (!record->scratch)
		return error_memory(err);
	/* Whatever mode who was in it has given it. */
	if (w->fd >= 0 && fchmod(w->fd, 0700) < 0)
		return error_system(err, errno, "cannot make '%s' private", record->path);
	record->owner = held.owner;
	record->process = held.process;
	record->until = held.until;
	/* Who has just looked around in it may want to look again. */
	if (held.owner == OWNER_KEPT && record->until < clock_utc() + KEPT_LEAST_NS)
		record->until = clock_utc() + KEPT_LEAST_NS;
	memcpy(record->token, held.token, sizeof record->token);
	record->held = (struct holding){0};
	record->init = (struct process_id){0};
	if (held.owner != OWNER_KEPT)
		json_decref(TAKE_PTR(record->extra));
	return folder_save(w, true, err);
}

int workspace_leave(struct workspace *w, const char *token, json_t *extra, struct error *err)
{
	struct record *record = &w->record;
	struct names n;
	char *scratch;

	json_decref(record->extra);
	record->extra = extra;
	names_make(&n, w->site, record->id, token);
	scratch = path_join(w->site->root, n.scratch);
	if (!scratch)
		return error_memory(err);
	free(record->scratch);
	record->scratch = scratch;
	record->owner = OWNER_SUPERVISOR;
	record->until = 0;
	memcpy(record->token, token, sizeof record->token);
	return folder_save(w, true, err);
}

static int foresee_cgroups(struct record *r, char *const *cgroups, struct error *err)
{
	if (!cgroups)
		return 0;
	r->cgroups = strv_copy(cgroups);
	return r->cgroups ? 0 : error_memory(err);
}

int workspace_open(const struct site *site, const char *id, const char *token, uid_t uid, gid_t gid,
		   char *const *cgroups, workspace_recover_fn recover, void *arg, struct workspace *ret,
		   struct error *err)
{
	int r;

	workspace_blank(ret, site);
	if ((r = id_check(id, err)) < 0 || (r = claim(ret, id, NULL, recover, arg, err)) < 0 ||
	    (r == 1 && (r = folder_attach(ret, err)) < 0))
		return give_up(ret, r);
	if (ret->fd >= 0)
		r = workspace_adopt(ret, token, uid, gid, err);
	else if ((r = record_begin(ret, id, token, err)) == 0 &&
		 (r = foresee_cgroups(&ret->record, cgroups, err)) == 0)
		r = make_all(ret, true, uid, gid, err);
	return r < 0 ? give_up(ret, r) : 0;
}

static int hold_locked(struct workspace *w, const char *id, const struct process_id *owner, int64_t until,
		       struct error *err)
{
	bool there = w->fd >= 0;
	char token[TOKEN_SIZE];
	int r;

	if (!there && ((r = token_make(token, err)) < 0 || (r = record_begin(w, id, token, err)) < 0))
		return r;
	w->record.owner = owner ? OWNER_PROCESS : OWNER_UNTIL;
	if (owner)
		w->record.process = *owner;
	w->record.until = owner ? 0 : until;
	if (!there && (r = make_all(w, false, geteuid(), getegid(), err)) < 0)
		return r;
	return folder_save(w, true, err);
}

int workspace_hold(const struct site *site, const char *id, const struct process_id *owner, int64_t until,
		   workspace_recover_fn recover, void *arg, char **ret_path, struct error *err)
{
	_cleanup_workspace_ struct workspace w;
	int r;

	workspace_blank(&w, site);
	if ((r = id_check(id, err)) < 0 || (r = claim(&w, id, owner, recover, arg, err)) < 0 ||
	    (r == 1 && (r = folder_attach(&w, err)) < 0) || (r = hold_locked(&w, id, owner, until, err)) < 0)
		return give_up(&w, r);
	*ret_path = strdup(w.record.path);
	return *ret_path ? 0 : error_memory(err);
}

int workspace_save(struct workspace *w, struct error *err)
{
	return folder_note(w, err);
}

/* Under one of its names, if that is still its. */
static int remove_name(struct workspace *w, const char *name, struct error *err)
{
	struct stat now, held;

	if (fstat(w->fd, &held) < 0 || fstatat(w->site->root_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_system(err, errno, "cannot look at '%s'", w->record.path);
	if (now.st_dev != held.st_dev || now.st_ino != held.st_ino)
		return 0;
	if (unlinkat(w->site->root_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_system(err, errno, "cannot remove '%s'", w->record.path);
	return 1;
}

/* Emptied by its descriptor, which is known to be the one; only then is the name looked at again. */
static int remove_directory(struct workspace *w, const struct names *n, struct error *err)
{
	int r = w->fd < 0 ? folder_attach(w, err) : 0;

	if (r < 0 || w->fd < 0)
		return r;
	r = tree_empty(w->fd, err);
	if (r < 0)
		return error_prefix(err, r, "cannot empty '%s'", w->record.path);
	r = remove_name(w, n->final, err);
	return r == 0 ? remove_name(w, n->gone, err) : r;
}

int workspace_remove(struct workspace *w, struct error *err)
{
	struct names n;
	int r;

	if (w->run_fd < 0)
		return 0;
	if (folder_is_on_its_way(w) && (r = folder_move_aside(w, err)) < 0)
		return r;
	folder_names(w, &n);
	if ((r = tree_remove(w->site->root_fd, n.scratch, err)) < 0 ||
	    (r = tree_remove(w->site->root_fd, n.making, err)) < 0 || (r = remove_directory(w, &n, err)) < 0)
		return r;
	w->fd = fd_close(w->fd);
	return folder_remove(w, err);
}

int workspace_keep(struct workspace *w, int64_t until, struct error *err)
{
	int r = take_back(w, err);

	if (r < 0)
		return r;
	if (fchmod(w->fd, 0700) < 0)
		return error_system(err, errno, "cannot make '%s' private", w->record.path);
	w->record.owner = OWNER_KEPT;
	w->record.held = (struct holding){0};
	w->record.until = until;
	w->record.init = (struct process_id){0};
	return folder_save(w, true, err);
}

void workspace_close(struct workspace *w)
{
	w->fd = fd_close(w->fd);
	w->run_fd = fd_close(w->run_fd);
	if (w->lock_fd >= 0)
		flock(w->lock_fd, LOCK_UN); /* a child of a host program may have a copy */
	w->lock_fd = fd_close(w->lock_fd);
	record_done(&w->record);
}
