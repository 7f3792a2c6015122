/*
 * The platform's files as text. Two of these are the same if nothing has changed: no name, content, mode, owner,
 * time of change, attribute.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "file.h"
#include "platform.h"

static uint64_t digest(int dirfd, const char *name)
{
	uint64_t sum = 1469598103934665603ULL;
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOATIME);
	unsigned char block[65536];
	for (ssize_t n; fd >= 0 && (n = read(fd, block, sizeof(block))) > 0;)
		for (ssize_t i = 0; i < n; i++)
			sum = (sum ^ block[i]) * 1099511628211ULL;
	return sum;
}

/* Programs are large and do not change without their times doing so. */
static bool worth_reading(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size < 65536;
}

static void describe_entry(int dirfd, const char *name, const char *path, struct buffer *out)
{
	struct stat st;
	char link[512] = "", attributes[512];
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISLNK(st.st_mode) && readlinkat(dirfd, name, link, sizeof(link) - 1) < 0)
		link[0] = '\0';
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", dirfd);
	_cleanup_free_ char *full = path_join(self, name);
	ssize_t room = full ? llistxattr(full, attributes, sizeof(attributes)) : -1;
	buffer_printf(out, "%s mode %o owner %u:%u links %lu", path, st.st_mode, st.st_uid, st.st_gid,
		      S_ISDIR(st.st_mode) ? 0UL : (unsigned long)st.st_nlink);
	/* What passes through a FIFO or a socket touches its times: that is the server's to tell. */
	if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		buffer_printf(out, " size %lld modified %lld.%ld changed %lld.%ld", (long long)st.st_size,
			      (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
			      st.st_ctim.tv_nsec);
	buffer_printf(out, " attributes %zd", room);
	if (worth_reading(&st))
		buffer_printf(out, " content %llx", (unsigned long long)digest(dirfd, name));
	buffer_printf(out, "%s%s\n", link[0] ? " -> " : "", link);
}

static void describe_directory(int fd, const char *path, struct buffer *out)
{
	char self[64];
	struct dirent **names = NULL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	int n = scandir(self, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		_cleanup_free_ char *below = path_join(path, name);
		if (below && strcmp(name, ".") && strcmp(name, "..")) {
			describe_entry(fd, name, below, out);
			_cleanup_close_ int inner =
				openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (inner >= 0)
				describe_directory(inner, below, out);
		}
		free(names[i]);
	}
	free(names);
}

void platform_describe(struct platform *p, struct buffer *ret)
{
	static const char *const parts[] = {"data",    "docs", "site", "api.py",
					    "secrets", "home", "run",  "streams"};
	_cleanup_close_ int top = open(p->view, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret->size = 0;
	for (size_t i = 0; i <= ARRAY_SIZE(parts); i++) {
		const char *part = i < ARRAY_SIZE(parts) ? parts[i] : strrchr(p->bin, '/') + 1;
		describe_entry(top, part, i < ARRAY_SIZE(parts) ? part : "bin", ret);
		_cleanup_close_ int fd = openat(top, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			describe_directory(fd, i < ARRAY_SIZE(parts) ? part : "bin", ret);
	}
}
