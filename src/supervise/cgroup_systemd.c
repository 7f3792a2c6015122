/*
 * v2 where systemd manages the tree: it makes a transient scope for the analysis and delegates it to us; then all is
 * as on v2. A scope lives as long as a process is in it, and counters must outlive the analysis, so a placeholder of
 * ours holds the scope open. If we die, so does the placeholder, and systemd removes the scope when it is empty.
 *
 *	fumehood-NAME.scope/		delegated, made by systemd
 *		fumehood-init/		the placeholder; PID 1 where it had to be adopted
 *		fumehood-NAME/		limited: the command
 *
 * We ourselves stay where we are.
 */
#include "cgroup_private.h"
#include "ability.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define INIT_LEAF "fumehood-init"

struct cgroup_scope {
	bool user;  /* of the user manager */
	bool adopt; /* the kernel lets us not move processes there ourselves */
	char unit[256];
	char dir[CGROUP_PATH_ROOM];
	pid_t placeholder;
	int life; /* the placeholder exits when this pipe is closed */
	void *stack;
};

bool cgroup_systemd_booted(void)
{
	struct stat st;

	return lstat("/run/systemd/system", &st) == 0 && S_ISDIR(st.st_mode);
}

void cgroup_systemd_socket(bool user, char out[CGROUP_PATH_ROOM])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (!user)
		n = snprintf(out, CGROUP_PATH_ROOM, "/run/systemd/private");
	else if (runtime && runtime[0] == '/')
		n = snprintf(out, CGROUP_PATH_ROOM, "%s/systemd/private", runtime);
	else
		n = snprintf(out, CGROUP_PATH_ROOM, "/run/user/%u/systemd/private", (unsigned)geteuid());
	if (n >= CGROUP_PATH_ROOM || faccessat(AT_FDCWD, out, W_OK, AT_EACCESS) < 0)
		out[0] = 0;
}

bool cgroup_systemd_delegated(const char *dir)
{
	static const char *const names[] = {"user.delegate", "trusted.delegate"};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char value = 0;

		if (lgetxattr(dir, names[i], &value, 1) == 1 && value == '1')
			return true;
	}
	/* Older versions mark it only for root's eyes. But the system's manager gives a directory to a user for no other
	 * reason than delegation; below a user's manager all are his, delegated or not. */
	return (geteuid() != 0 || !ability_sees_all_ids()) && !strstr(dir, "/user@") && stat(dir, &st) == 0 &&
	       st.st_uid == geteuid();
}

/* --- the placeholder --- */

enum { PLACEHOLDER_STACK = 16 * 1024 };

/* Shares the memory of a host program that may be large and have many threads, down to the starting thread's errno:
 * nothing but system calls, and none that could fail. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static int placeholder_run(void *arg)
{
	int life = (int)(intptr_t)arg;
	char c;

	syscall(SYS_setsid); /* Ctrl-C is not for it */
	if (life > 0)
		syscall(SYS_close_range, 0U, (unsigned)life - 1, 0U);
	syscall(SYS_close_range, (unsigned)life + 1, ~0U, 0U);
	syscall(SYS_chdir, "/");
	syscall(SYS_read, life, &c, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* Without an exit signal: a host program that waits for its own children does not meet it. With every signal blocked:
 * none of the host program's handlers runs in it. */
static int placeholder_start(struct cgroup_scope *scope, struct error *err)
{
	sigset_t all, before;
	int life[2], saved;
	pid_t pid;

	if (pipe2(life, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe");
	scope->life = life[1];
	scope->stack = mmap(NULL, PLACEHOLDER_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (scope->stack == MAP_FAILED) {
		scope->stack = NULL;
		close(life[0]);
		return error_memory(err);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(placeholder_run, (char *)scope->stack + PLACEHOLDER_STACK, CLONE_VM,
		    (void *)(intptr_t)life[0]);
	saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(life[0]);
	scope->placeholder = pid < 0 ? 0 : pid;
	return pid < 0 ? error_system(err, saved, "cannot start a process for the scope") : 0;
}

static void placeholder_end(struct cgroup_scope *scope)
{
	scope->life = fd_close(scope->life);
	if (scope->placeholder > 0)
		while (waitpid(scope->placeholder, NULL, __WALL) < 0 && errno == EINTR)
			;
	scope->placeholder = 0;
	if (scope->stack)
		munmap(scope->stack, PLACEHOLDER_STACK);
	scope->stack = NULL;
}

/* --- the scope --- */

/* The slice of the system manager in which we are: the scope goes there too, below the same limits. */
static void own_slice(const struct cgroup_place *own, char *out, size_t room)
{
	char path[CGROUP_PATH_ROOM], *save = NULL;

	snprintf(out, room, "system.slice");
	snprintf(path, sizeof path, "%s", own->dir + own->root_length);
	for (char *part = strtok_r(path, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		size_t n = strlen(part);

		if (strncmp(part, "user@", 5) == 0)
			break; /* below here it is a user manager's */
		if (n > 6 && strcmp(part + n - 6, ".slice") == 0)
			snprintf(out, room, "%s", part);
	}
}

/* The kernel asks for write access to cgroup.procs of the nearest common ancestor. */
static bool can_move(const char *from, const char *to)
{
	char path[CGROUP_PATH_ROOM + 16];
	size_t common = 0;

	for (size_t i = 0;; i++) {
		bool from_ends = !from[i] || from[i] == '/', to_ends = !to[i] || to[i] == '/';

		if (from_ends && to_ends)
			common = i;
		if (!from[i] || !to[i] || from[i] != to[i])
			break;
	}
	snprintf(path, sizeof path, "%.*s/cgroup.procs", (int)common, from);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int init_leaf_make(const struct cgroup_scope *scope, struct error *err)
{
	_cleanup_close_ int dir = open(scope->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char pid[16];
	int r = dir < 0 ? -errno : dir_make_own(dir, INIT_LEAF, 0755);

	if (r < 0)
		return error_system(err, -r, "cannot make a cgroup in the scope '%s'", scope->dir);
	snprintf(pid, sizeof pid, "%d", (int)scope->placeholder);
	r = cgroup_file_write(dir, INIT_LEAF "/cgroup.procs", pid);
	return r < 0 ? error_system(err, -r, "cannot use the scope '%s'", scope->dir) : 0;
}

static int scope_start(struct cgroup_scope *scope, const char *name, struct error *err)
{
	char slice[256] = "app.slice";
	struct cgroup_places own;
	struct cgroup_place there;
	int r = cgroup_places_read(&own, err);

	if (r < 0)
		return r;
	if (!scope->user)
		own_slice(&own.v2, slice, sizeof slice);
	snprintf(scope->unit, sizeof scope->unit, "%.200s.scope", name);
	r = cgroup_bus_scope_start(scope->user, scope->unit, slice, scope->placeholder, err);
	if (r < 0)
		return r;
	r = cgroup_place_of(scope->placeholder, &there);
	if (r < 0)
		return error_system(err, -r, "cannot find the scope '%s'", scope->unit);
	memcpy(scope->dir, there.dir, sizeof scope->dir);
	scope->adopt = !can_move(own.v2.dir, scope->dir);
	return init_leaf_make(scope, err);
}

int cgroup_systemd_make(struct cgroup *c, const struct cgroup_host *host, const char *name, struct error *err)
{
	struct cgroup_scope *scope = calloc(1, sizeof *scope);
	int r;

	if (!scope)
		return error_memory(err);
	c->scope = scope;
	scope->user = host->user_manager;
	scope->life = -1;
	if ((r = placeholder_start(scope, err)) < 0 || (r = scope_start(scope, name, err)) < 0 ||
	    (r = cgroup_v2_make(c, scope->dir, name, err)) < 0)
		return r;
	return cgroup_path_remember(c, scope->dir, err);
}

int cgroup_systemd_adopt(const struct cgroup *c, pid_t pid, struct error *err)
{
	const struct cgroup_scope *scope = c->scope;

	if (!scope->adopt)
		return 0;
	return cgroup_bus_attach(scope->user, scope->unit, "/" INIT_LEAF, pid, err);
}

int cgroup_systemd_remove(struct cgroup_scope *scope, struct error *err)
{
	int r = 0;

	placeholder_end(scope);
	if (scope->dir[0])
		r = cgroup_bus_unit_stop(scope->user, scope->unit, err);
	free(scope);
	return r;
}
