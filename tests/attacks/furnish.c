/*
 * The platform's files: what lies where, as a table, so that every attack finds it as the one before did. Regular
 * files and links are made anew each time; sockets and FIFOs are the server's and stay.
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

static const char *const directories[] = {
	"data",	   "data/empty", "data/mounted",       "docs",	    "site",
	"secrets", "home",	 "home/bin",	       "run",	    "streams",
	"var",	   "var/state",	 "var/state/fumehood", "var/share", "var/plain",
	"var/into"};

enum content { WORDS, SECRET, LINK_SECRET, LINK };

static const struct item {
	const char *path;
	enum content content;
	const char *text;
	mode_t mode;
} items[] = {
	{"data/genes.csv", WORDS, "gene,value\nTP53,1\nBRCA1,2\n", 0666},
	{"data/read-me.csv", WORDS, "gene,value\nEGFR,3\n", 0666},
	{"data/link", LINK_SECRET, NULL, 0},
	{"data/relative", LINK, "../secrets/token", 0},
	{"data/outdir", LINK, "../secrets", 0},
	{"docs/guide.md", WORDS, "# Guide\n", 0666},
	{"site/index.html", WORDS, "<html></html>\n", 0666},
	{"site/planned.html", WORDS, "<html></html>\n", 0666},
	{"api.py", WORDS, "def api():\n    return 1\n", 0666},
	{"secrets/token", SECRET, NULL, 0666},
	{"home/.profile", WORDS, "# profile\n", 0666},
	{"home/.pgpass", SECRET, NULL, 0644},
	{"home/bin/tool", WORDS, "#!/bin/sh\nexit 0\n", 0777},
	{"streams/stdin", WORDS, "words on stdin\n", 0666},
	{"var/state/fumehood/planted", SECRET, NULL, 0666},
	{"var/beside-secret", SECRET, NULL, 0666},
	{"var/stdout", WORDS, "the log\n", 0666},
};

/* Somebody holds a lock on these, or watches them: made once. */
static const char *const lasting[] = {"data/locked.csv", "data/shared-plain.csv", "data/shared-hood.csv",
				      "data/watched-plain.csv", "data/watched-hood.csv"};

static bool belongs(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(lasting); i++)
		if (!strcmp(lasting[i], path))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		if (!strcmp(items[i].path, path))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (!strcmp(directories[i], path))
			return true;
	return false;
}

/* Removes what an attack has planted in a directory; sockets, FIFOs, locked files and PostgreSQL's stay. */
static void sweep(int top, const char *directory)
{
	int fd = openat(top, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[512];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || belongs(path) ||
		    !strncmp(e->d_name, ".s.PGSQL", 8))
			continue;
		if (fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		bool planted = strstr(e->d_name, "planted") || strstr(e->d_name, ".renamed");
		if (planted || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
			unlinkat(top, path, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	if (dir)
		closedir(dir);
}

static void put(int top, const char *path, const char *text, mode_t mode)
{
	unlinkat(top, path, 0);
	_cleanup_close_ int fd =
		openat(top, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	file_write_all(fd, text, strlen(text));
	fchmod(fd, mode);
	if (!strncmp(path, "data/", 5))
		fsetxattr(fd, "user.origin", "lab", 3, 0);
}

static void furnish_item(struct platform *p, int top, const struct item *i)
{
	char text[512];
	switch (i->content) {
	case WORDS:
		put(top, i->path, i->text, i->mode);
		break;
	case SECRET:
		put(top, i->path, p->nonce, i->mode);
		break;
	case LINK_SECRET:
		snprintf(text, sizeof(text), "%s/secrets/token", p->root);
		unlinkat(top, i->path, 0);
		if (symlinkat(text, top, i->path))
			break;
		break;
	case LINK:
		unlinkat(top, i->path, 0);
		if (symlinkat(i->text, top, i->path))
			break;
		break;
	}
}

void platform_furnish(struct platform *p)
{
	_cleanup_close_ int top = open(p->view, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		/* Everything is open to everybody, so that what holds is the hood and not the file's mode. */
		mode_t mode = strncmp(directories[i], "var/s", 5) ? 0777 : 0700; /* but state and share */
		if (strcmp(directories[i], "var") == 0) /* root opens no ledger where others write */
			mode = 0755;
		mkdirat(top, directories[i], mode);
		fchmodat(top, directories[i], mode, 0);
		if (strncmp(directories[i], "var", 3) && strcmp(directories[i], "run"))
			sweep(top, directories[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		furnish_item(p, top, &items[i]);
	struct stat st;
	for (size_t i = 0; i < ARRAY_SIZE(lasting); i++)
		if (fstatat(top, lasting[i], &st, 0))
			put(top, lasting[i], "lasting\n", 0666);
	if (p->mounts >= 0)
		put(top, "data/mounted/inner.csv", "inner\n", 0666);
	platform_describe(p, &p->tree);
}
