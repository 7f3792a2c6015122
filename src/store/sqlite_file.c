#include "sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "file.h"
#include "mountinfo.h"
#include "owned.h"
#include "text.h"

enum { FUSE_MAGIC = 0x65735546 };

const char *filesystem_network_name(unsigned long magic)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} table[] = {
		{0x6969, "NFS"},	{0x517b, "SMB"},	{0xff534d42, "CIFS"},
		{0xfe534d42, "SMB2"},	{0x5346414f, "AFS"},	{0x6b414653, "AFS"},
		{0x73757245, "Coda"},	{0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
		{0x00c36400, "Ceph"},	{0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
		{0x564c, "NCP"},	{0x01021997, "9p"},	{0x01161970, "GFS2"},
		{0x7461636f, "OCFS2"},	{0xaad7aaea, "PanFS"},	{0xbeefdead, "SNFS"},
		{0x61636673, "ACFS"},	{0x013111a8, "IBRIX"},	{0x786f4256, "vboxsf"},
		{0xbacbacbc, "vmhgfs"}, {0x7c7c6673, "prl_fs"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].magic == (magic & 0xffffffff))
			return table[i].name;
	return NULL;
}

/* What FUSE serves is anybody's program: it may be a server far away (sshfs, GlusterFS, an object store), and whether its locks
 * and its shared memory hold is its own affair. Two are known to be of this machine: a file system on a block device
 * (ntfs-3g), and the root of a container without privileges. */
bool filesystem_fuse_is_local(const char *type)
{
	return strcmp(type, "fuseblk") == 0 || strcmp(type, "fuse.fuse-overlayfs") == 0;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static int refuse_filesystem(const char *name, const char *kind, const char *why, struct error *err)
{
	char shown[128];

	return error_set(
		err, ERROR_REFUSED,
		"the ledger %s lies on %s, where SQLite's locks %s: put it on a local disk, or use PostgreSQL; if only "
		"this machine ever opens it, 'sqlite:PATH?filesystem=any' insists",
		name, text_escape_into(shown, sizeof shown, kind, strlen(kind)), why);
}

static int check_fuse(const char *path, const char *name, struct error *err)
{
	_cleanup_mountinfo_ struct mountinfo mounts = {0};
	_cleanup_free_ char *real = realpath(path, NULL);
	struct error ignored = ERROR_INIT;
	const char *type = "";
	char kind[96];

	if (real && mountinfo_load(&mounts, &ignored) == 0)
		type = mountinfo_type(&mounts, real);
	if (filesystem_fuse_is_local(type))
		return 0;
	snprintf(kind, sizeof kind, "a file system that is a program (%.48s)", *type ? type : "FUSE");
	return refuse_filesystem(name, kind, "may not hold", err);
}

/* path: the file, or the directory that it is to be made in. */
static int check_filesystem(const char *path, const char *name, struct error *err)
{
	const char *network;
	struct statfs fs;
	char kind[64];

	if (statfs(path, &fs) < 0)
		return error_system(err, errno, "cannot open the ledger %s", name);
	if (((unsigned long)fs.f_type & 0xffffffff) == FUSE_MAGIC)
		return check_fuse(path, name, err);
	network = filesystem_network_name((unsigned long)fs.f_type);
	if (!network)
		return 0;
	snprintf(kind, sizeof kind, "a network file system (%s)", network);
	return refuse_filesystem(name, kind, "do not hold", err);
}

/* SQLite gives -wal and -shm the mode of the file, so the file is made here, with mknod: a descriptor of our own
 * would, when closed, take away the locks that another connection of this process holds. */
int sqlite_file_make(const char *path, const char *name, bool anywhere, struct error *err)
{
	_cleanup_free_ char *parent = parent_of(path);
	int r;

	if (!parent)
		return error_memory(err);
	if (access(parent, F_OK) < 0 && (r = dir_make_private(parent, err)) < 0)
		return error_prefix(err, r, "cannot make the ledger %s", name);
	r = anywhere ? 0 : check_filesystem(parent, name, err);
	if (r < 0)
		return r;
	if (mknod(path, S_IFREG | 0600, 0) < 0)
		return errno == EEXIST ? 0 : error_system(err, errno, "cannot make the ledger %s", name);
	if (fchmodat(AT_FDCWD, path, 0600, AT_SYMLINK_NOFOLLOW) < 0)
		return error_system(err, errno, "cannot make the ledger %s", name);
	return 0;
}

int sqlite_file_check(const char *path, const char *name, bool anywhere, struct error *err)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT)
			return error_set(err, ERROR_NOT_FOUND,
					 "there is no ledger %s yet: the first run makes it, or "
					 "'fumehood db init'",
					 name);
		return error_system(err, errno, "cannot open the ledger %s", name);
	}
	if (S_ISDIR(st.st_mode))
		return error_set(err, ERROR_LEDGER,
				 "cannot open the ledger %s: it is a directory, name a file in it", name);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_LEDGER, "cannot open the ledger %s: it is not a regular file",
				 name);
	return anywhere ? 0 : check_filesystem(path, name, err);
}

bool sqlite_file_is_own(const char *path, const struct stat *st)
{
	struct error ignored = ERROR_INIT;
	_cleanup_close_ int fd = owned_open("ledger", path, OWNED_FILE | OWNED_AS_SELF, NO_GROUP, &ignored);

	return fd >= 0 && st->st_uid == geteuid();
}

bool sqlite_file_read_only(const char *path)
{
	_cleanup_free_ char *parent = parent_of(path);

	return access(path, W_OK) < 0 || (parent && access(parent, W_OK) < 0);
}

static int open_but_super(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	file->pMethods = NULL;
	return flags & SQLITE_OPEN_SUPER_JOURNAL ? SQLITE_CANTOPEN
						 : sqlite3_vfs_find(NULL)->xOpen(vfs, name, file, flags, ret);
}

static sqlite3_vfs own_vfs;

static void vfs_register(void)
{
	own_vfs = *sqlite3_vfs_find(NULL);
	own_vfs.zName = "fumehood";
	own_vfs.xOpen = open_but_super;
	(void)sqlite3_vfs_register(&own_vfs, 0);
}

const char *sqlite_vfs_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, vfs_register);
	return own_vfs.zName;
}
