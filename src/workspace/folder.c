#include "folder.h"
#include "clock.h"
#include "relative.h"
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
	RECORD_MAX = 16 * 1024 * 1024,
	RECORD_GROWS = 128 * 1024,
	APPEND_MAX = 256 * 1024,
	ASIDE_TRIES = 1000,
	LOCK_TRIES = 2000,
	PATIENT_TRIES = 1000,
	PATIENCE_STEP_MS = 1
};

void workspace_blank(struct workspace *w, const struct site *site)
{
	*w = (struct workspace){.site = site, .run_fd = -1, .lock_fd = -1, .fd = -1};
	record_init(&w->record);
}

/* Ours, and nobody else's to write. Not even we are trusted to have made it a link. */
static int check_ours(int fd, mode_t type, const char *id, const char *what, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s' of analysis '%s'", what, id);
	if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() || st.st_mode & 022 ||
	    (type == S_IFREG && st.st_nlink > 1))
		return error_refuse_here(
			err,
			"'%s' of analysis '%s' in the state directory can be changed by others, or is not what "
			"it should be: remove it by hand",
			what, id);
	return 0;
}

/* How far a try to lock a folder came; negative: it failed. LOCK_AGAIN: it changed while we looked. */
enum lock { LOCK_NO_FOLDER, LOCK_HELD, LOCK_AGAIN };

static int open_folder(struct workspace *w, const char *id, bool make, struct error *err)
{
	int runs = w->site->runs, r;

	if (make) {
		_cleanup_close_ int made = dir_make(runs, id, 0700, geteuid(), getegid());

		if (made < 0 && made != -EEXIST && made != -ENOENT)
			return error_system(err, -made, "cannot make the state folder of analysis '%s'", id);
	}
	w->run_fd = file_open_beneath(runs, id, O_RDONLY | O_DIRECTORY, 0);
	if (w->run_fd < 0 && errno == ENOENT)
		return make ? LOCK_AGAIN : LOCK_NO_FOLDER;
	if (w->run_fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return error_refuse_here(
			err, "the state folder of analysis '%s' is not a directory: remove it by hand", id);
	if (w->run_fd < 0)
		return error_system(err, errno, "cannot open the state folder of analysis '%s'", id);
	r = check_ours(w->run_fd, S_IFDIR, id, ".", err);
	if (r < 0)
		return r;
	w->lock_fd = file_open_own(w->run_fd, "lock", O_RDWR | O_NONBLOCK | O_NOCTTY);
	if (w->lock_fd == -ENOENT)
		return LOCK_AGAIN;
	if (w->lock_fd < 0)
		return error_system(err, -w->lock_fd, "cannot open the lock of analysis '%s'", id);
	r = check_ours(w->lock_fd, S_IFREG, id, "lock", err);
	return r < 0 ? r : LOCK_HELD;
}

static bool means_same(int dirfd, const char *name, int fd)
{
	struct stat now, held;

	return fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &held) == 0 &&
	       now.st_dev == held.st_dev && now.st_ino == held.st_ino;
}

/* Somebody has the lock: his record, read without it, is good enough for a message. */
static int busy(struct workspace *w, const char *id, struct error *err)
{
	struct error ignored = ERROR_INIT;
	int pid = 0;

	if (folder_load(w, &ignored) == 1)
		pid = (int)w->record.process.pid;
	record_done(&w->record);
	snprintf(w->record.id, sizeof w->record.id, "%.*s", (int)strcspn(id, "@"), id);
	if (pid > 0)
		return error_set(err, ERROR_BUSY,
				 "analysis '%s' is in use by process %d: wait until it has ended", id, pid);
	return error_set(err, ERROR_BUSY, "analysis '%s' is in use: wait until that has ended", id);
}

/*
 * Is the lock about to be free? If its owner is dead: a child that he had just made, and that has not executed or ended
 * yet, still has a copy of the descriptor. If there is no record: gc has found an empty folder and removes it, or another
 * run is about to write its first. Whoever only looks for the dead need not wait for that. There is no event for either.
 */
static bool holder_will_go(struct workspace *w, const char *id, bool make)
{
	struct error ignored = ERROR_INIT;
	char boot[BOOT_ID_SIZE];
	int r = folder_load(w, &ignored);
	bool will_go = r == 0 && make;

	boot_id(boot);
	if (r == 1 && w->record.owner == OWNER_SUPERVISOR && strcmp(w->record.boot, boot) == 0)
		will_go = process_is_gone(&w->record.process);
	record_done(&w->record);
	snprintf(w->record.id, sizeof w->record.id, "%.*s", (int)strcspn(id, "@"), id);
	return will_go;
}

bool folder_is_gone(const struct workspace *w)
{
	return strncmp(w->folder, GONE_PREFIX, strlen(GONE_PREFIX)) == 0;
}

static int lock_take(struct workspace *w, const char *id, bool make, bool patient, struct error *err)
{
	if (flock(w->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return means_same(w->site->runs, id, w->run_fd) && means_same(w->run_fd, "lock", w->lock_fd)
			       ? LOCK_HELD
			       : LOCK_AGAIN;
	if (errno == EINTR)
		return LOCK_AGAIN;
	if (errno != EWOULDBLOCK)
		return error_system(err, errno, "cannot lock analysis '%s'", id);
	if (!patient || !holder_will_go(w, id, make))
		return busy(w, id, err);
	poll(NULL, 0, PATIENCE_STEP_MS);
	return LOCK_AGAIN;
}

int folder_lock(struct workspace *w, const char *id, bool make, struct error *err)
{
	snprintf(w->record.id, sizeof w->record.id, "%.*s", (int)strcspn(id, "@"), id);
	snprintf(w->folder, sizeof w->folder, "%s", id);
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		int r = open_folder(w, id, make, err);

		if (r == LOCK_HELD)
			r = lock_take(w, id, make, tries < PATIENT_TRIES && !folder_is_gone(w), err);
		if (r == LOCK_HELD)
			return 1;
		w->run_fd = fd_close(w->run_fd);
		w->lock_fd = fd_close(w->lock_fd);
		if (r != LOCK_AGAIN)
			return r;
	}
	return error_set(err, ERROR_BUSY, "the state folder of analysis '%s' keeps being removed: try again",
			 id);
}

int folder_load(struct workspace *w, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_close_ int fd =
		openat(w->run_fd, RECORD_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_system(err, errno, "cannot open '%s' of analysis '%s'", RECORD_NAME,
				    w->record.id);
	r = check_ours(fd, S_IFREG, w->record.id, RECORD_NAME, err);
	if (r < 0)
		return r;
	r = file_read_all(fd, &text, RECORD_MAX);
	if (r == -EFBIG)
		return error_damaged(err, error_set(err, ERROR_REFUSED,
						    "analysis '%s': the record is larger than %d MiB",
						    w->record.id, RECORD_MAX >> 20));
	if (r < 0)
		return error_system(err, -r, "cannot read '%s' of analysis '%s'", RECORD_NAME, w->record.id);
	/* The power failed before the first record reached the disk, so before anything was made. */
	if (text.size == 0)
		return 0;
	r = record_parse(&w->record, text.data, text.size, err);
	return r < 0 ? error_prefix(err, r, "analysis '%s'", w->record.id) : 1;
}

/* As a line of its own, without a name for its end: who adds one ends the one before. */
static char *record_text(const struct workspace *w, size_t *ret_size, struct error *err)
{
	json_t *json = record_to_json(&w->record);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	if (!text) {
		error_set(err, ERROR_SYSTEM,
			  "cannot write the record of analysis '%s': out of memory, or a path "
			  "in it is not UTF-8",
			  w->record.id);
		return NULL;
	}
	*ret_size = strlen(text);
	/* What could not be read back is not written. The first one leaves room for what the later ones add. */
	if (*ret_size > RECORD_MAX - (w->record.inode ? 0 : RECORD_GROWS)) {
		error_set(
			err, ERROR_REFUSED,
			"the record of analysis '%s' would be larger than %d MiB: its request is too long, or "
			"too many files are to be staged; show their directory with --ro instead",
			w->record.id, RECORD_MAX >> 20);
		return NULL;
	}
	return TAKE_PTR(text);
}

/* Only what outlives its maker is forced to the disk. Of a run the first record may be lost with the power, the second
 * replaces it before the workspace gets its name, and a replacing rename is ordered on the usual file systems. */
int folder_save(struct workspace *w, bool sync, struct error *err)
{
	size_t size;
	_cleanup_free_ char *text = record_text(w, &size, err);

	return text ? file_replace(w->run_fd, RECORD_NAME, text, size, 0600, sync, err) : -1;
}

/* A line more: 0, 1 if there is no room for it in the file, and it is as it was. */
static int append_line(int fd, char *text, size_t size)
{
	struct iovec parts[] = {{(char[]){'\n'}, 1}, {text, size}, {(char[]){'\n'}, 1}};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    st.st_size + (off_t)size > APPEND_MAX)
		return 1;
	if (writev(fd, parts, ARRAY_SIZE(parts)) == (ssize_t)size + 2)
		return 0;
	(void)!ftruncate(fd, st.st_size);
	return 1;
}

/* What is only known while it runs is of no use after a reboot: it is added to what is there, which costs neither an inode nor
 * the disk's attention. Who reads it takes the last line that is whole. */
int folder_note(struct workspace *w, struct error *err)
{
	size_t size;
	_cleanup_free_ char *text = record_text(w, &size, err);
	_cleanup_close_ int fd = text ? openat(w->run_fd, RECORD_NAME,
					       O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
				      : -1;

	if (!text)
		return -1;
	return append_line(fd, text, size) == 0
		       ? 0
		       : file_replace(w->run_fd, RECORD_NAME, text, size, 0600, false, err);
}

int folder_let_go(struct workspace *w, struct error *err)
{
	char gone[sizeof GONE_PREFIX + TOKEN_SIZE], token[TOKEN_SIZE];
	int r = token_make(token, err);

	if (r < 0)
		return r;
	snprintf(gone, sizeof gone, "%s%s", GONE_PREFIX, token);
	if (renameat(w->site->runs, w->folder, w->site->runs, gone) < 0)
		return error_system(err, errno, "cannot remove the state folder of analysis '%s'", w->folder);
	snprintf(w->folder, sizeof w->folder, "%s", gone);
	return 0;
}

int folder_remove(struct workspace *w, struct error *err)
{
	int r = 0;

	if (w->run_fd < 0)
		return 0;
	if (means_same(w->site->runs, w->folder, w->run_fd)) {
		if (!folder_is_gone(w) && (r = folder_let_go(w, err)) < 0)
			return r;
		r = tree_remove(w->site->runs, w->folder, err);
	}
	w->run_fd = fd_close(w->run_fd);
	return r;
}

/* A folder whose record is damaged gets another name, so that it is in nobody's way; err, which says why, says that too.
 * Negative, always. */
static int set_aside(struct workspace *w, struct error *err)
{
	_cleanup_free_ char *runs = fd_path(w->site->runs);
	const char *id = w->folder;
	char aside[sizeof ASIDE_PREFIX + FOLDER_ROOM + 8];
	struct error why = *err;
	int r = -1;

	assert(why.is_damaged);
	for (int i = 0; r < 0 && i < ASIDE_TRIES && means_same(w->site->runs, id, w->run_fd); i++) {
		snprintf(aside, sizeof aside, i ? "%s%s.%d" : "%s%s", ASIDE_PREFIX, id, i);
		r = renameat2(w->site->runs, id, w->site->runs, aside, RENAME_NOREPLACE);
		if (r < 0 && errno != EEXIST)
			break;
	}
	return r < 0 ? -EINVAL
		     : error_set(
			       err, why.kind,
			       "%.400s; it was set aside as '%.400s/%s', and what it may have named is left as it is",
			       why.message, runs ? runs : "", aside);
}

int folder_recall(struct workspace *w, struct error *err)
{
	int r = folder_load(w, err);

	if (r == 0)
		return folder_remove(w, err);
	return r < 0 && err->is_damaged ? set_aside(w, err) : r;
}

static bool names_are_ours(const struct site *site, const struct record *r)
{
	_cleanup_free_ char *path = NULL, *scratch = NULL;
	struct names n;

	names_of(&n, site, r);
	path = path_join(site->root, n.final);
	scratch = path_join(site->root, n.scratch);
	return path && scratch && strcmp(path, r->path) == 0 && strcmp(scratch, r->scratch) == 0;
}

static bool owner_is_gone(const struct record *r, bool same_boot)
{
	switch (r->owner) {
	case OWNER_PROCESS:
		return !same_boot || process_is_gone(&r->process);
	case OWNER_UNTIL:
	case OWNER_KEPT:
		return clock_utc() >= r->until;
	case OWNER_SUPERVISOR:
		break;
	}
	return true;
}

/* A folder that is about to move has still its old name. */
static bool folder_is_of(const char *folder, const struct record *r)
{
	size_t n = strlen(r->id);

	if (strncmp(folder, GONE_PREFIX, strlen(GONE_PREFIX)) == 0)
		return true;
	if (strncmp(folder, r->id, n) != 0)
		return false;
	return !folder[n] || (folder[n] == '@' && strcmp(folder + n + 1, r->aside) == 0);
}

enum folder_standing folder_judge(const struct workspace *w, const char **ret_why)
{
	const struct record *r = &w->record;
	char machine[MACHINE_ID_SIZE], boot[BOOT_ID_SIZE];

	machine_id(machine);
	boot_id(boot);
	*ret_why = NULL;
	if (strcmp(r->machine, machine) != 0)
		*ret_why = "it was made on another machine";
	else if (r->uid != geteuid())
		*ret_why = "it belongs to another user";
	else if (!folder_is_of(w->folder, r))
		*ret_why = "its record is of another analysis";
	else if (!names_are_ours(w->site, r))
		*ret_why = "its record names another place";
	if (*ret_why)
		return STANDING_FOREIGN;
	return owner_is_gone(r, strcmp(r->boot, boot) == 0) ? STANDING_OVER : STANDING_HELD;
}

/* After a reboot device numbers may have changed: then the workspace must lie on its root's device. */
static bool is_recorded_inode(const struct workspace *w, const struct stat *st)
{
	const struct record *r = &w->record;
	char boot[BOOT_ID_SIZE];
	struct stat root;

	if (!S_ISDIR(st->st_mode) || st->st_ino != r->inode)
		return false;
	boot_id(boot);
	if (strcmp(r->boot, boot) == 0)
		return st->st_dev == r->device;
	return fstat(w->site->root_fd, &root) == 0 && st->st_dev == root.st_dev;
}

void folder_names(const struct workspace *w, struct names *n)
{
	names_of(n, w->site, &w->record);
	if (folder_is_gone(w))
		memcpy(n->final, n->gone, sizeof n->final);
}

int folder_attach(struct workspace *w, struct error *err)
{
	struct record *r = &w->record;
	_cleanup_close_ int fd = -1;
	struct names n;
	struct stat st;

	w->fd = fd_close(w->fd);
	if (r->inode == 0)
		return 0;
	folder_names(w, &n);
	if (folder_is_on_its_way(w) && fstatat(w->site->root_fd, n.final, &st, AT_SYMLINK_NOFOLLOW) < 0)
		names_make(&n, w->site, r->id, r->token);
	if (fstatat(w->site->root_fd, n.final, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return error_system(err, errno, "cannot look at '%s'", r->path);
		/* Whose supervisor died between the two renames of retire.c has still its own folder. */
		if (fstatat(w->site->root_fd, n.gone, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !is_recorded_inode(w, &st))
			return 0;
		memcpy(n.final, n.gone, sizeof n.final);
	}
	if (is_recorded_inode(w, &st)) {
		fd = tree_open_directory(w->site->root_fd, n.final);
		if (fd < 0)
			return error_system(err, -fd, "cannot open '%s'", r->path);
		if (fstat(fd, &st) == 0 && is_recorded_inode(w, &st)) {
			w->fd = TAKE_FD(fd);
			return 0;
		}
	} else if (fstatat(w->site->root_fd, n.making, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		   is_recorded_inode(w, &st)) {
		/* Ours never got its name. */
		r->inode = 0;
		return 0;
	}
	/* Somebody else has made one of that name. */
	if (folder_is_gone(w))
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"'%s' is not the directory that was made for analysis '%s': it is left alone, remove it by hand",
		r->path, r->id);
}
