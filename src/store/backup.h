/*
 * A ledger as a directory, and back: the database and the object store, consistent while others write.
 *
 *	BACKUP          what this directory is; written first
 *	ledger.db       SQLite's: the whole file, as SQLite copies it
 *	tables/NAME     PostgreSQL's: each table of ours, as COPY writes it in its binary form, all of one snapshot
 *	objects/ab/…    large contents, by digest
 *	manifest.json   the digests of all that; written last, and renamed into place: without it there is no backup
 *
 * A crash leaves a directory with BACKUP and without manifest.json: restoring refuses it, and the next backup to it begins anew. To restore is one
 * transaction of the database, after the objects: a crash leaves the ledger as it was, and objects that gc removes.
 */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "backend.h"
#include "ledger.h"

struct backup_file {
	char name[96];
	char *columns; /* of a table */
	uint64_t size;
	uint8_t sha256[DIGEST_SIZE];
};
struct backup_files {
	struct backup_file *list;
	size_t n;
};
void backup_files_done(struct backup_files *f);
/* A copy is added; columns may be NULL. */
int backup_files_add(struct backup_files *f, const struct backup_file *file, struct error *err);
const struct backup_file *backup_files_find(const struct backup_files *f, const char *name);

/* Opens a regular file that lies beneath it, whatever else has its name; ret_size may be NULL. */
int backup_open(int dir, const char *name, uint64_t *ret_size, struct error *err);
/* Its size and digest, as far as most; and all that was read to another descriptor (-1: nowhere). -errno. */
int backup_sum(int fd, int to, uint64_t most, struct backup_file *ret);
/* All of it to a descriptor (-1: nowhere). ERROR_REFUSED: it is not what the manifest says. */
int backup_read(int dir, const struct backup_file *file, int to, struct error *err);

/* A file of the backup that is being written, and its digest. */
struct backup_writer {
	int fd;
	struct digest digest;
	struct backup_file file;
};
int backup_writer_open(struct backup_writer *w, int dir, const char *name, struct error *err);
int backup_writer_put(struct backup_writer *w, const void *data, size_t size, struct error *err);
/* On disk, and added to the list. */
int backup_writer_close(struct backup_writer *w, struct backup_files *files, struct error *err);
void backup_writer_done(struct backup_writer *w);

/* {"directory", "kind", "analyses", "attempts", "objects", "bytes", "checked"}; ERROR_REFUSED: the directory is something else. */
int ledger_backup(struct ledger *l, const char *directory, json_t **ret, struct error *err);
/* Refused unless the ledger is empty, or force: then what is in it goes. The ledger keeps its own id and object store. */
int ledger_restore(struct ledger *l, const char *directory, bool force, json_t **ret, struct error *err);

#endif
