#include "sqlite_file.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "file.h"

const char *filesystem_network_name(unsigned long magic)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} table[] = {
		{0x6969, "NFS"},      {0x517b, "SMB"},	    {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
		{0x5346414f, "AFS"},  {0x6b414653, "AFS"},  {0x73757245, "Coda"},   {0x0bd00bd0, "Lustre"},
		{0x47504653, "GPFS"}, {0x00c36400, "Ceph"}, {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].magic == (magic & 0xffffffff))
			return table[i].name;
	return NULL;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* SQLite gives -wal and -shm the mode of the file, so the file is made here, with mknod: a descriptor of our own
 * would, when closed, take away the locks that another connection of this process holds. */
int sqlite_file_make(const char *path, const char *name, struct error *err)
{
	_cleanup_free_ char *parent = parent_of(path);
	int r;

	if (!parent)
		return error_memory(err);
	r = dir_make_private(parent, err);
	if (r < 0)
		return error_prefix(err, r, "cannot make the ledger %s", name);
	if (mknod(path, S_IFREG | 0600, 0) < 0)
		return errno == EEXIST ? 0 : error_system(err, errno, "cannot make the ledger %s", name);
	if (chmod(path, 0600) < 0)
		return error_system(err, errno, "cannot make the ledger %s", name);
	return 0;
}

int sqlite_file_check(const char *path, const char *name, struct error *err)
{
	const char *network;
	struct statfs fs;
	struct stat st;

	if (stat(path, &st) < 0 || statfs(path, &fs) < 0) {
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
	network = filesystem_network_name((unsigned long)fs.f_type);
	if (network)
		return error_set(
			err, ERROR_REFUSED,
			"the ledger %s lies on a network file system (%s), where SQLite's locks do not hold: put it "
			"on a local disk, or use PostgreSQL",
			name, network);
	return 0;
}

char *sqlite_file_owner(uid_t uid)
{
	enum { ROOM = 16384 };
	_cleanup_free_ char *scratch = malloc(ROOM);
	struct passwd entry, *found = NULL;
	char *name = NULL;

	if (!scratch)
		return NULL;
	if (getpwuid_r(uid, &entry, scratch, ROOM, &found) == 0 && found && *entry.pw_name)
		return strdup(entry.pw_name);
	return asprintf(&name, "%lu", (unsigned long)uid) < 0 ? NULL : name;
}

bool sqlite_file_read_only(const char *path)
{
	_cleanup_free_ char *parent = parent_of(path);

	return access(path, W_OK) < 0 || (parent && access(parent, W_OK) < 0);
}
