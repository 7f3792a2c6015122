/*
 * A platform without a hood, the control of every attack: it runs the command as a plain child in a directory, hands
 * down whatever it has, then collects, notes, changes owners and removes by path, following links, as such platforms
 * do. It is careless on purpose; the suite lets it loose on its own throw-away files only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "macros.h"
#include "roles.h"

static int copy(const char *from, const char *to, int how)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | how | O_CLOEXEC, 0755);
	char block[65536];
	ssize_t n;
	while (in >= 0 && out >= 0 && (n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n || lseek(out, 0, SEEK_CUR) > 64 << 20)
			ftruncate(out, 0)
				? 0
				: lseek(out, 0, SEEK_SET); /* goes on for ever, but does not fill the disk */
	struct stat st;
	if (in >= 0 && out >= 0 && !fstat(in, &st))
		fchmod(out, st.st_mode & 07777);
	return in < 0 ? -1 : 0;
}

static void stage_in(const char *name, const char *workspace)
{
	char to[PATH_MAX];
	snprintf(to, sizeof(to), "%s/%s", workspace, name);
	copy(name, to, O_TRUNC);
}

static void link_input(const char *name, const char *workspace)
{
	char from[PATH_MAX], to[PATH_MAX];
	if (!realpath(name, from))
		return;
	snprintf(to, sizeof(to), "%s/%s", workspace, name);
	if (symlink(from, to))
		return;
}

typedef void (*visit_fn)(const char *path, const char *name, const char *into);

static void each_entry(const char *directory, const char *into, visit_fn fn)
{
	DIR *dir = opendir(directory);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		static const char *const ours[] = {".", "..", "attacker", "targets", "data", "docs"};
		char path[PATH_MAX];
		bool skip = false;
		for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
			skip = skip || !strcmp(e->d_name, ours[i]);
		if (!skip && snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) < (int)sizeof(path))
			fn(path, e->d_name, into);
	}
	if (dir)
		closedir(dir);
}

static void collect_by(const char *path, const char *name, const char *into, int how, visit_fn inner)
{
	char to[PATH_MAX];
	struct stat st;
	if (stat(path, &st)) /* follows */
		return;
	if (S_ISDIR(st.st_mode)) {
		if (strlen(path) < PATH_MAX - 64)
			each_entry(path, into, inner);
		return;
	}
	snprintf(to, sizeof(to), "%s/%s", into, name);
	copy(path, to, how);
	printf("collected %s\n{\"outputs\": [\"%s\"]}\n", name, name);
	fflush(stdout);
}

static void collect(const char *path, const char *name, const char *into)
{
	collect_by(path, name, into, O_TRUNC, collect);
}

/* What an earlier round took stays: against who swaps names, one round of many is enough. */
static void collect_more(const char *path, const char *name, const char *into)
{
	collect_by(path, name, into, O_APPEND, collect_more);
}

static void own(const char *path, const char *name, const char *into)
{
	(void)name;
	(void)into;
	if (chown(path, getuid(), getgid())) /* follows */
		return;
}

static void list_by_shell(const char *path, const char *name, const char *into)
{
	char command[PATH_MAX + 32];
	(void)path;
	(void)into;
	if (strlen(name) > 250 || !strchr(name, ';'))
		return;
	snprintf(command, sizeof(command), "ls -ld %s >/dev/null 2>&1", name);
	if (system(command)) /* pastes */
		return;
}

static void note(const char *workspace)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/metadata.json", workspace);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); /* follows */
	if (fd >= 0 && write(fd, "{}\n", 3) != 3)
		return;
}

static void remove_entry(const char *path, const char *name, const char *into)
{
	struct stat st;
	(void)name;
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) { /* follows */
		if (strlen(path) < PATH_MAX - 64)
			each_entry(path, into, remove_entry);
		rmdir(path);
	}
	unlink(path);
}

static void remove_workspace(const char *workspace)
{
	static const char *const ours[] = {"attacker", "targets", "data", "docs"};
	char path[PATH_MAX];
	each_entry(workspace, NULL, remove_entry);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		snprintf(path, sizeof(path), "%s/%s", workspace, ours[i]);
		unlink(path);
	}
	rmdir(workspace);
}

static int run(const char *workspace, char **argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chdir(workspace))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The launcher counts. */
static void pass_on(int sig)
{
	kill(getppid(), sig);
}

static long session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

/* argv: plain WORKSPACE INTO ROUNDS COMMAND …; INTO "-" collects nothing. */
int role_plain(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	const char *workspace = argv[1], *into = argv[2];
	signal(SIGUSR1, pass_on);
	umask(0);
	mkdir(workspace, 0700);
	stage_in("attacker", workspace);
	stage_in("targets", workspace);
	link_input("data", workspace);
	link_input("docs", workspace);
	long session = session_keyring();
	int status = run(workspace, argv + 4);
	if (session > 0 && session_keyring() != session)
		pass_on(SIGUSR1);
	if (strcmp(into, "-")) {
		mkdir(into, 0777);
		note(workspace);
		each_entry(workspace, into, own);
		each_entry(workspace, into, collect);
		for (int i = atoi(argv[3]); i > 1; i--)
			each_entry(workspace, into, collect_more);
		each_entry(workspace, into, list_by_shell);
	}
	for (int i = atoi(argv[3]); i > 0; i--)
		remove_workspace(workspace);
	return status;
}
