#include "backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "file.h"
#include "owned.h"
#include "text.h"

void backup_files_done(struct backup_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].columns);
	free(f->list);
	*f = (struct backup_files){0};
}

int backup_files_add(struct backup_files *f, const struct backup_file *file, struct error *err)
{
	struct backup_file *more = ARRAY_ADD(f->list, f->n);

	if (!more)
		return error_memory(err);
	*more = *file;
	more->columns = NULL;
	return file->columns ? text_set(&more->columns, file->columns, err) : 0;
}

const struct backup_file *backup_files_find(const struct backup_files *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->list[i].name, name) == 0)
			return &f->list[i];
	return NULL;
}

int backup_open(int dir, const char *name, uint64_t *ret_size, struct error *err)
{
	_cleanup_close_ int fd = file_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st = {0};

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (owned_matters() && (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))))
		return error_set(
			err, ERROR_REFUSED,
			"'%s' of the backup is missing, no regular file, or not root's alone: nothing was restored",
			SHOWN(96, name));
	if (ret_size)
		*ret_size = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

int backup_sum(int fd, int to, uint64_t most, struct backup_file *ret)
{
	enum { ROOM = 256 * 1024 };
	_cleanup_free_ char *room = malloc(ROOM);
	struct digest d;
	ssize_t n = room ? 1 : -ENOMEM;

	ret->size = 0;
	digest_init(&d);
	while (n > 0 && ret->size <= most) {
		n = read(fd, room, ROOM);
		digest_update(&d, room, n > 0 ? (size_t)n : 0);
		ret->size += n > 0 ? (uint64_t)n : 0;
		n = n < 0 ? -errno : n;
		if (n > 0 && to >= 0 && file_write_all(to, room, (size_t)n) < 0)
			n = -errno;
	}
	digest_final(&d, ret->sha256);
	return n < 0 ? (int)n : 0;
}

int backup_read(int dir, const struct backup_file *file, int to, struct error *err)
{
	_cleanup_close_ int fd = backup_open(dir, file->name, NULL, err);
	struct backup_file found;
	int r = fd < 0 ? fd : backup_sum(fd, to, file->size, &found);

	if (fd >= 0 && r < 0)
		return error_system(err, -r, "cannot copy '%s' of the backup", SHOWN(96, file->name));
	if (r < 0 || (found.size == file->size && memcmp(found.sha256, file->sha256, DIGEST_SIZE) == 0))
		return r;
	return error_set(err, ERROR_REFUSED,
			 "the file '%s' of the backup is not what it was: nothing was restored",
			 SHOWN(96, file->name));
}

int backup_writer_open(struct backup_writer *w, int dir, const char *name, struct error *err)
{
	*w = (struct backup_writer){.fd = file_open_own(dir, name, O_WRONLY | O_TRUNC | O_NOFOLLOW)};
	snprintf(w->file.name, sizeof w->file.name, "%s", name);
	digest_init(&w->digest);
	return w->fd < 0 ? error_system(err, -w->fd, "cannot write '%s' of the backup", name) : 0;
}

int backup_writer_put(struct backup_writer *w, const void *data, size_t size, struct error *err)
{
	int r = file_write_all(w->fd, data, size);

	if (r < 0)
		return error_system(err, -r, "cannot write '%s' of the backup", w->file.name);
	digest_update(&w->digest, data, size);
	w->file.size += size;
	return 0;
}

int backup_writer_close(struct backup_writer *w, struct backup_files *files, struct error *err)
{
	if (fsync(w->fd) < 0)
		return error_system(err, errno, "cannot write '%s' of the backup", w->file.name);
	digest_final(&w->digest, w->file.sha256);
	return backup_files_add(files, &w->file, err);
}

void backup_writer_done(struct backup_writer *w)
{
	if (w->fd >= 0)
		fd_close(w->fd);
	w->fd = -1;
}
