#include "backup.h"
#include "store_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "relative.h"
#include "member.h"
#include "owned.h"
#include "text.h"

static const char marker[] = "BACKUP", manifest_name[] = "manifest.json", format_name[] = "fumehood backup 1";
static const char marker_text[] =
	"A backup of a fumehood ledger. It is complete if manifest.json is there; else run `fumehood db backup` again.\n";
enum { MANIFEST_MAX = 16 << 20, DEPTH_MAX = 3 };

struct backup {
	struct ledger *l;
	const char *path; /* of the directory, for messages */
	int dir;
	struct backup_files files;
	struct {
		uint8_t sha256[DIGEST_SIZE];
		uint64_t size;
	} * objects;
	size_t n_objects;
	uint64_t bytes;
	int64_t analyses, attempts;
};

static void backup_done(struct backup *x)
{
	backup_files_done(&x->files);
	free(x->objects);
	fd_close(x->dir);
}

static const char *kind_of(const struct ledger *l)
{
	return ledger_has_chunks(l) ? "postgresql" : "sqlite";
}

/* ---- the directory ---- */

/* What a backup that did not come to its end has left. Follows nothing. */
static int clear(int dir, int depth, struct error *err)
{
	_cleanup_dir_ DIR *list = dir_list(dir);
	struct dirent *e;

	if (!list)
		return error_system(err, errno, "cannot list what an earlier backup has left");
	while ((e = readdir(list))) {
		_cleanup_close_ int sub = -1;

		if (name_is_dots(e->d_name) || strcmp(e->d_name, marker) == 0 ||
		    unlinkat(dir, e->d_name, 0) == 0)
			continue;
		sub = depth < DEPTH_MAX ? file_open_beneath(dir, e->d_name, O_RDONLY | O_DIRECTORY, 0) : -1;
		if (sub < 0 || clear(sub, depth + 1, err) < 0 || unlinkat(dir, e->d_name, AT_REMOVEDIR) < 0)
			return error_system(err, errno, "cannot remove what an earlier backup has left: '%s'",
					    SHOWN(64, e->d_name));
	}
	return 0;
}

static bool has(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int is_vacant(int dir)
{
	_cleanup_dir_ DIR *list = dir_list(dir);
	struct dirent *e;

	while (list && (e = readdir(list)))
		/* Of one that was killed at its very beginning. */
		if (!name_is_dots(e->d_name) && strcmp(e->d_name, "BACKUP.tmp~") != 0)
			return 0;
	return list != NULL;
}

static int open_directory(struct backup *x, bool makes, struct error *err)
{
	char shown[200];

	text_escape_into(shown, sizeof shown, x->path, strlen(x->path));
	if ((makes ? dir_make_private(x->path, err) : owned_check("backup", x->path, 0, err)) < 0)
		return -1;
	x->dir = open(x->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (x->dir < 0)
		return error_system(err, errno, "cannot open the directory '%s'", shown);
	if (!makes)
		return 0;
	if (has(x->dir, manifest_name))
		return error_set(err, ERROR_REFUSED,
				 "'%s' has a backup already, which is complete: name another directory",
				 shown);
	if (!has(x->dir, marker) && !is_vacant(x->dir))
		return error_set(err, ERROR_REFUSED,
				 "'%s' is not empty, and no backup: name a directory that is new or empty",
				 shown);
	if (clear(x->dir, 0, err) < 0)
		return -1;
	return file_replace(x->dir, marker, marker_text, strlen(marker_text), 0600, true, err);
}

/* ---- to the directory ---- */

static int take_object(void *arg, const struct value *row, struct error *err)
{
	struct backup *x = arg;
	__typeof__(x->objects) more = ARRAY_ADD(x->objects, x->n_objects);

	if (!more)
		return error_memory(err);
	more->size = (uint64_t)value_to_integer(&row[1], 0);
	return value_to_digest(&row[0], more->sha256, err);
}

static int take_counts(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct backup *x = arg;

	x->analyses = value_to_integer(&row[0], 0);
	x->attempts = value_to_integer(&row[1], 0);
	return 0;
}

/* One snapshot for all of it; objects come after it, and no sweep in between. */
static int dump_database(struct backup *x, struct error *err)
{
	struct backend *b = x->l->backend;
	int r;

	if (b->ops->dump_begin(b, err) < 0) {
		b->ops->rollback(b);
		return -1;
	}
	r = ledger_run(x->l, SQL_STORE_CONTENTS, NULL, 0, take_object, x, err);
	r = r < 0 ? r : ledger_run(x->l, SQL_COUNTS, NULL, 0, take_counts, x, err);
	r = r < 0 ? r : b->ops->dump(b, x->dir, x->path, &x->files, err);
	b->ops->rollback(b);
	return r;
}

static int dump_object(struct backup *x, size_t i, int objects, struct error *err)
{
	char hex[DIGEST_TEXT_SIZE], fan[3] = "", name[DIGEST_TEXT_SIZE + 4];
	_cleanup_close_ int fd = -1;
	int r;

	hex_encode(x->objects[i].sha256, DIGEST_SIZE, hex);
	memcpy(fan, hex, 2);
	snprintf(name, sizeof name, "%s/%s", fan, hex);
	r = dir_make_own(objects, fan, 0700);
	if (r == 0 || r == -EEXIST)
		r = fd = file_open_own(objects, name, O_WRONLY | O_TRUNC | O_NOFOLLOW);
	if (r < 0)
		return error_system(err, -r, "cannot write the object '%s' of the backup", hex);
	if (ledger_copy_object(x->l, x->objects[i].sha256, x->objects[i].size, fd, err) < 0)
		return -1;
	x->bytes += x->objects[i].size;
	return fsync(fd) < 0 ? error_system(err, errno, "cannot write the object '%s' of the backup", hex)
			     : 0;
}

/* With the id that the ledger has for its store: then the two can be looked at as they are. */
static int dump_objects(struct backup *x, struct error *err)
{
	_cleanup_close_ int objects = -1;
	struct store_id id = {0};
	enum store_state state = STORE_NEW;
	struct error why = ERROR_INIT;
	char text[2 * TOKEN_SIZE + 2];
	int r;

	if (x->n_objects == 0)
		return 0;
	r = dir_make_own(x->dir, "objects", 0700);
	objects = r < 0 && r != -EEXIST
			  ? -1
			  : openat(x->dir, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (objects < 0)
		return error_system(err, errno, "cannot make 'objects' of the backup");
	for (size_t i = 0; i < x->n_objects; i++)
		if (dump_object(x, i, objects, err) < 0)
			return -1;
	if (store_examine(x->l, &state, &id, &why, err) < 0)
		return -1;
	snprintf(text, sizeof text, "%s %s\n", id.ledger, id.store);
	if (file_replace(objects, "id", text, strlen(text), 0600, true, err) < 0)
		return -1;
	for (unsigned i = 0; i < 256; i++) {
		char fan[3];
		_cleanup_close_ int sub = -1;

		snprintf(fan, sizeof fan, "%02x", i);
		sub = file_open_beneath(objects, fan, O_RDONLY | O_DIRECTORY, 0);
		if (sub >= 0 && fsync(sub) < 0)
			return error_system(err, errno, "cannot write 'objects' of the backup");
	}
	return 0;
}

/* A file of SQLite's is a ledger by itself: it is looked at as one. */
static int check_copy(struct backup *x, int64_t *checked, struct error *err)
{
	_cleanup_free_ char *url = NULL;
	_cleanup_ledger_ struct ledger *copy = NULL;
	json_auto_t *found = NULL;

	*checked = 0;
	if (ledger_has_chunks(x->l))
		return 0;
	if (text_print(&url, err, "%s/ledger.db", x->path) < 0 ||
	    ledger_open(url, LEDGER_READ_ONLY, &copy, err) < 0)
		return -1;
	objects_done(&copy->objects);
	free(url);
	url = NULL;
	if (text_print(&url, err, "%s/objects", x->path) < 0)
		return -1;
	objects_init(&copy->objects, TAKE_PTR(url));
	if (ledger_check(copy, &found, err) < 0)
		return -1;
	*checked = json_integer_value(json_object_get(found, "checked"));
	if (json_array_size(json_object_get(found, "problems")) == 0)
		return 0;
	return error_set(err, ERROR_LEDGER, "the backup is not sound, and so is not finished: %.700s",
			 json_string_value(json_object_get(
				 json_array_get(json_object_get(found, "problems"), 0), "message")));
}

static json_t *files_json(const struct backup *x)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < x->files.n; i++) {
		const struct backup_file *f = &x->files.list[i];
		char hex[DIGEST_TEXT_SIZE];

		hex_encode(f->sha256, DIGEST_SIZE, hex);
		if (json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:s?}", "name", f->name, "size",
							  (json_int_t)f->size, "sha256", hex, "columns",
							  f->columns)) < 0)
			return NULL;
	}
	return json_incref(list);
}

static int write_manifest(struct backup *x, struct error *err)
{
	struct store_id id = {0};
	enum store_state state = STORE_NEW;
	struct error why = ERROR_INIT;
	char made[CLOCK_TEXT_SIZE];
	json_auto_t *json = NULL;
	_cleanup_free_ char *text = NULL;

	if (store_examine(x->l, &state, &id, &why, err) < 0)
		return -1;
	clock_format(clock_utc(), made);
	json = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "format", format_name,
			 "kind", kind_of(x->l), "schema", sql_version_wanted, "fumehood", FUMEHOOD_VERSION,
			 "ledger_id", id.ledger, "made", made, "analyses", (json_int_t)x->analyses,
			 "attempts", (json_int_t)x->attempts, "objects", (json_int_t)x->n_objects,
			 "object_bytes", (json_int_t)x->bytes, "files", files_json(x));
	text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	if (!text)
		return error_memory(err);
	return file_replace(x->dir, manifest_name, text, strlen(text), 0600, true, err);
}

static int report(const struct backup *x, int64_t checked, json_t **ret, struct error *err)
{
	uint64_t bytes = x->bytes;

	for (size_t i = 0; i < x->files.n; i++)
		bytes += x->files.list[i].size;
	*ret = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "directory", x->path, "kind", kind_of(x->l),
			 "analyses", (json_int_t)x->analyses, "attempts", (json_int_t)x->attempts, "objects",
			 (json_int_t)x->n_objects, "bytes", (json_int_t)bytes, "checked",
			 (json_int_t)checked);
	return *ret ? 0 : error_memory(err);
}

static int backup_all(struct backup *x, int64_t *checked, struct error *err)
{
	if (open_directory(x, true, err) < 0 || dump_database(x, err) < 0 || dump_objects(x, err) < 0 ||
	    check_copy(x, checked, err) < 0)
		return -1;
	if (fsync(x->dir) < 0)
		return error_system(err, errno, "cannot write the backup");
	return write_manifest(x, err);
}

int ledger_backup(struct ledger *l, const char *directory, json_t **ret, struct error *err)
{
	_cleanup_(backup_done) struct backup x = {.l = l, .path = directory, .dir = -1};
	int64_t checked = 0;
	int r, has_store = objects_open(&l->objects, err);

	/* From here to the end no sweep takes an object. */
	if (has_store < 0 || (has_store > 0 && !l->objects_inside && objects_hold(&l->objects, err) < 0))
		return -1;
	r = backup_all(&x, &checked, err);
	objects_release(&l->objects);
	return r < 0 ? r : report(&x, checked, ret, err);
}

/* ---- and back ---- */

static int bad_manifest(const struct backup *x, const char *what, struct error *err)
{
	return error_set(err, ERROR_REFUSED,
			 "the backup in '%s' cannot be restored: %s; nothing was restored",
			 SHOWN(200, x->path), what);
}

static int read_file(struct backup *x, const json_t *row, struct error *err)
{
	const char *name = json_string_value(json_object_get(row, "name")),
		   *sha256 = json_string_value(json_object_get(row, "sha256"));
	struct backup_file file = {.size = (uint64_t)json_integer_value(json_object_get(row, "size")),
				   .columns = (char *)json_string_value(json_object_get(row, "columns"))};
	struct relative checked;

	if (!name || !sha256 || strlen(name) >= sizeof file.name || strlen(sha256) != DIGEST_TEXT_SIZE - 1 ||
	    hex_decode(sha256, file.sha256, DIGEST_SIZE) < 0 ||
	    relative_check(name, strlen(name), &checked, NULL) < 0)
		return bad_manifest(x, "its manifest.json makes no sense", err);
	snprintf(file.name, sizeof file.name, "%s", name);
	return backup_files_add(&x->files, &file, err);
}

static int read_manifest(struct backup *x, json_t **ret, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_close_ int fd = -1;
	struct value said;
	const char *format;
	const json_t *row;
	size_t i;

	if (!has(x->dir, manifest_name))
		return error_set(
			err, ERROR_REFUSED,
			"'%s' has no manifest.json: it is no backup, or one that was not finished; run `fumehood db "
			"backup` to the end first",
			SHOWN(200, x->path));
	fd = backup_open(x->dir, manifest_name, NULL, err);
	if (fd < 0 || file_read_all(fd, &text, MANIFEST_MAX) < 0)
		return fd < 0 ? fd : bad_manifest(x, "its manifest.json is too large", err);
	said = value_text(text.data);
	format = value_to_json(&said, ret, err) < 0 ? NULL
						    : json_string_value(json_object_get(*ret, "format"));
	if (!format || strcmp(format, format_name) != 0)
		return bad_manifest(x, "its manifest.json is none that this fumehood knows", err);
	json_array_foreach (json_object_get(*ret, "files"), i, row)
		if (read_file(x, row, err) < 0)
			return -1;
	x->analyses = json_integer_value(json_object_get(*ret, "analyses"));
	x->attempts = json_integer_value(json_object_get(*ret, "attempts"));
	return 0;
}

static int check_kind(struct backup *x, const json_t *manifest, struct error *err)
{
	const char *kind = json_string_value(json_object_get(manifest, "kind")),
		   *made_by = json_string_value(json_object_get(manifest, "fumehood"));
	json_int_t schema = json_integer_value(json_object_get(manifest, "schema"));

	if (!kind || strcmp(kind, kind_of(x->l)) != 0)
		return error_set(err, ERROR_REFUSED,
				 "the backup in '%s' is of %s ledger, and %s is none: name one with --db",
				 SHOWN(200, x->path),
				 kind && strcmp(kind, "sqlite") == 0 ? "an SQLite" : "a PostgreSQL",
				 x->l->backend->name);
	if (schema == sql_version_wanted)
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"the backup in '%s' has schema %d, and this fumehood needs %d: restore it with the fumehood that made it "
		"(%s), then upgrade the ledger with 'fumehood db upgrade'",
		SHOWN(200, x->path), (int)schema, sql_version_wanted, SHOWN(32, made_by ? made_by : "?"));
}

/* Each is put as a content is, and its digest compared with its name. */
static int restore_object(struct backup *x, int fan, const char *name, struct error *err)
{
	uint8_t wanted[DIGEST_SIZE], found[DIGEST_SIZE];
	_cleanup_close_ int fd = -1;
	uint64_t size = 0;

	if (strlen(name) != DIGEST_TEXT_SIZE - 1 || hex_decode(name, wanted, DIGEST_SIZE) < 0)
		return 0;
	fd = backup_open(fan, name, &size, err);
	if (fd < 0 || objects_put(&x->l->objects, fd, size, found, err) < 0)
		return -1;
	x->n_objects++;
	x->bytes += size;
	return memcmp(wanted, found, DIGEST_SIZE) == 0
		       ? 0
		       : bad_manifest(x, "one of its objects is not what its name says", err);
}

static int restore_fan(struct backup *x, int objects, const char *name, struct error *err)
{
	_cleanup_close_ int fan = file_open_beneath(objects, name, O_RDONLY | O_DIRECTORY, 0);
	_cleanup_dir_ DIR *list = fan < 0 ? NULL : dir_list(fan);
	struct dirent *e;

	while (list && (e = readdir(list)))
		if (restore_object(x, fan, e->d_name, err) < 0)
			return -1;
	return 0;
}

static int restore_objects(struct backup *x, const json_t *manifest, struct error *err)
{
	_cleanup_close_ int objects =
		openat(x->dir, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	json_int_t wanted = json_integer_value(json_object_get(manifest, "objects"));

	if (wanted > 0 && x->l->objects_inside)
		return bad_manifest(
			x,
			"its large contents are files: name a directory for them with objects=DIR in the ledger's URL",
			err);
	for (unsigned i = 0; wanted > 0 && objects >= 0 && i < 256; i++) {
		char fan[3];

		snprintf(fan, sizeof fan, "%02x", i);
		if (restore_fan(x, objects, fan, err) < 0)
			return -1;
	}
	return (json_int_t)x->n_objects == wanted ? 0
						  : bad_manifest(x, "some of its objects are missing", err);
}

static int check_restored(struct ledger *l, int64_t *checked, struct error *err)
{
	json_auto_t *found = NULL;
	const json_t *problems;
	uint64_t removed = 0;

	/* What was there before, or an earlier try has put. */
	if (ledger_sweep(l, &removed, err) < 0 || ledger_check(l, &found, err) < 0)
		return -1;
	*checked = json_integer_value(json_object_get(found, "checked"));
	problems = json_object_get(found, "problems");
	return json_array_size(problems) == 0
		       ? 0
		       : error_set(
				 err, ERROR_LEDGER, "the ledger was restored, and is not sound: %.700s",
				 json_string_value(json_object_get(json_array_get(problems, 0), "message")));
}

static int restore_all(struct backup *x, const json_t *manifest, bool force, struct error *err)
{
	struct backend *b = x->l->backend;
	bool empty = false;

	if (check_kind(x, manifest, err) < 0 || b->ops->is_empty(b, &empty, err) < 0)
		return -1;
	if (!empty && !force)
		return error_set(
			err, ERROR_REFUSED,
			"the ledger %s is not empty: restore to a new one, or with --force over what is in it",
			b->name);
	for (size_t i = 0; i < x->files.n; i++)
		if (backup_read(x->dir, &x->files.list[i], -1, err) < 0)
			return -1;
	if (restore_objects(x, manifest, err) < 0)
		return -1;
	return b->ops->load(b, x->dir, &x->files, err);
}

int ledger_restore(struct ledger *l, const char *directory, bool force, json_t **ret, struct error *err)
{
	_cleanup_(backup_done) struct backup x = {.l = l, .path = directory, .dir = -1};
	json_auto_t *manifest = NULL;
	int64_t checked = 0;
	int r;

	if (l->backend->only_submits)
		return error_set(
			err, ERROR_REFUSED,
			"cannot restore the ledger %s: whoever logs in there may only submit or read",
			l->backend->name);
	if (open_directory(&x, false, err) < 0 || read_manifest(&x, &manifest, err) < 0)
		return -1;
	r = restore_all(&x, manifest, force, err);
	objects_release(&l->objects);
	r = r < 0 ? r : check_restored(l, &checked, err);
	return r < 0 ? r : report(&x, checked, ret, err);
}
