/*
 * A workspace that is too large to be removed while somebody waits, or is removed by two hands at once, gives its names back first:
 *
 *   workspace     renamed to ".{prefix}{id}.MARK.gone", never over anything; the record tells that name, since MARK comes from its token
 *   runs/{id}     renamed to ".gone-…", with its record and its lock: from here on the id is free
 *
 * Whoever removes it holds the lock meanwhile. Who finds the folder without that (gc, take.c), or the record still in its own folder
 * (folder_names), goes on where the dead one stopped. What has the last name but not the inode of the record is not ours.
 */
#include "folder.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static bool is_final(const struct workspace *w, const struct names *n)
{
	struct stat held, now;

	return fstat(w->fd, &held) == 0 &&
	       fstatat(w->site->root_fd, n->final, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == held.st_dev && now.st_ino == held.st_ino && held.st_ino == w->record.inode;
}

int workspace_retire(struct workspace *w)
{
	struct error ignored = ERROR_INIT;
	int root = w->site->root_fd;
	struct names n;

	if (w->run_fd < 0 || w->fd < 0 || folder_is_on_its_way(w))
		return 0;
	names_of(&n, w->site, &w->record);
	/* Its uid may be another's tomorrow, and it is nobody's to look into. */
	if (!is_final(w, &n) || fchown(w->fd, geteuid(), getegid()) < 0 || fchmod(w->fd, 0700) < 0 ||
	    renameat2(root, n.final, root, n.gone, RENAME_NOREPLACE) < 0)
		return 0;
	if (folder_let_go(w, &ignored) == 0)
		return 1;
	(void)renameat2(root, n.gone, root, n.final, RENAME_NOREPLACE);
	return 0;
}

int workspace_count_retired(const struct site *site)
{
	_cleanup_dir_ DIR *dir = dir_list(site->runs);
	const struct dirent *e;
	int count = 0;

	while (dir && (e = readdir(dir)))
		count += strncmp(e->d_name, GONE_PREFIX, strlen(GONE_PREFIX)) == 0;
	return count;
}

void workspace_hand_over(struct workspace *w)
{
	w->lock_fd = fd_close(w->lock_fd);
	workspace_close(w);
}
