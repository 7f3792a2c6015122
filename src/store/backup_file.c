#include "backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "file.h"
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
