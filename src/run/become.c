#include "become.h"
#include "ability.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSWD_ROOM = 65536, GROUPS_MAX = 65536, NOBODY = 65534, CHILD_SOCKET = 3 };
enum { DEATH_MS = 2000, LEFT_MAX = 1024, LEFT_OF_USER_MAX = 4 };

void identity_done(struct identity *i)
{
	free(i->name);
	free(i->home);
	free(i->groups);
	*i = (struct identity){0};
}

bool identity_has_group(const struct identity *i, gid_t gid)
{
	for (int k = 0; k < i->n_groups; k++)
		if (i->groups[k] == gid)
			return true;
	return gid == i->gid;
}

static int fill(struct identity *ret, const char *name, const char *home, uid_t uid, gid_t gid,
		struct error *err)
{
	_cleanup_identity_ struct identity i = {.uid = uid, .gid = gid};
	int n = 64;

	i.name = strdup(name);
	i.home = strdup(home);
	do {
		i.n_groups = n;
		free(i.groups);
		i.groups = calloc((size_t)n, sizeof *i.groups);
		n *= 4;
		if (!i.name || !i.home || !i.groups)
			return error_memory(err);
		if (!*name) {
			i.groups[0] = gid;
			i.n_groups = 1;
			break;
		}
	} while (getgrouplist(name, gid, i.groups, &i.n_groups) < 0 && n <= GROUPS_MAX);
	if (n > GROUPS_MAX)
		return error_set(err, ERROR_SYSTEM, "the user '%s' has too many groups", name);
	*ret = i;
	i = (struct identity){0};
	return 0;
}

static int from_entry(const struct passwd *entry, struct identity *ret, struct error *err)
{
	return fill(ret, entry->pw_name, entry->pw_dir && *entry->pw_dir ? entry->pw_dir : "/", entry->pw_uid,
		    entry->pw_gid, err);
}

int identity_of(uid_t uid, struct identity *ret, struct error *err)
{
	_cleanup_free_ char *room = malloc(PASSWD_ROOM);
	struct passwd entry, *found = NULL;
	int r;

	if (!room)
		return error_memory(err);
	r = getpwuid_r(uid, &entry, room, PASSWD_ROOM, &found);
	if (r == 0 && found)
		return from_entry(found, ret, err);
	/* Ourselves, we are in the group that we are in. */
	return fill(ret, "", "/", uid, uid == geteuid() ? getegid() : NOBODY, err);
}

int identity_find(const char *user, struct identity *ret, struct error *err)
{
	_cleanup_free_ char *room = malloc(PASSWD_ROOM);
	struct passwd entry, *found = NULL;
	unsigned long uid;
	char *end;
	int r;

	if (!room)
		return error_memory(err);
	r = getpwnam_r(user, &entry, room, PASSWD_ROOM, &found);
	if (r == 0 && found)
		return from_entry(found, ret, err);
	errno = 0;
	uid = strtoul(user, &end, 10);
	if (*user < '0' || *user > '9' || errno || *end || uid >= (uid_t)-1)
		return error_set(err, ERROR_NOT_FOUND, "'%s' is no user of this host", user);
	return identity_of((uid_t)uid, ret, err);
}

int identity_nobody(struct identity *ret, struct error *err)
{
	return fill(ret, "", "/", NOBODY, NOBODY, err);
}

/* ---- in the child ---- */

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)syscall(SYS_capset, &header, none);
}

static int take_ids(const struct identity *who)
{
	uid_t r, e, s;

	/* Where fs.suid_dumpable says so, changing ids makes us traceable again: as long as capabilities are kept, its
	 * user may not trace us even then. */
	if ((who->uid != geteuid() || ability_is_root()) &&
	    (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups((size_t)who->n_groups, who->groups) < 0 ||
	     setresgid(who->gid, who->gid, who->gid) < 0))
		return -1;
	if (setresuid(who->uid, who->uid, who->uid) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    drop_capabilities() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	if (getresuid(&r, &e, &s) < 0 || r != who->uid || e != who->uid || s != who->uid)
		return -1;
	return who->uid != 0 && setuid(0) == 0 ? -1 : 0;
}

static int take_descriptors(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; null >= 0 && i < CHILD_SOCKET; i++)
		if (dup2(null, i) < 0)
			return -1;
	if (null < 0 || (socket != CHILD_SOCKET && dup2(socket, CHILD_SOCKET) < 0))
		return -1;
	return (int)syscall(SYS_close_range, CHILD_SOCKET + 1, ~0U, 0);
}

__attribute__((noreturn)) static void child_main(const struct identity *who, pid_t parent, int socket,
						 become_fn fn, void *arg)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || take_descriptors(socket) < 0 ||
	    (who && take_ids(who) < 0))
		_exit(1);
	/* A change of ids forgets it, so it is said now; and looked at, since we may be orphaned already. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent || chdir("/") < 0)
		_exit(1);
	fn(arg, CHILD_SOCKET);
	_exit(0);
}

/* ---- in the parent ---- */

/* Killed, and not dead: it waits in the kernel for a file system that does not answer (FUSE, a server that is away). Nobody
 * waits with it; it stays a child of ours until it can be reaped. */
static struct {
	pthread_mutex_t lock;
	struct {
		pid_t pid;
		uid_t uid;
	} list[LEFT_MAX];
	size_t count;
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void left_add(pid_t pid, uid_t uid)
{
	pthread_mutex_lock(&left.lock);
	if (left.count < LEFT_MAX) { /* else it is reaped when we end */
		left.list[left.count].pid = pid;
		left.list[left.count++].uid = uid;
	}
	pthread_mutex_unlock(&left.lock);
}

/* How many of this user's there still are. */
static size_t left_count(uid_t uid)
{
	size_t n = 0;

	pthread_mutex_lock(&left.lock);
	for (size_t i = 0; i < left.count; i++)
		if (waitpid(left.list[i].pid, NULL, WNOHANG) != 0)
			left.list[i--] = left.list[--left.count];
		else
			n += left.list[i].uid == uid;
	pthread_mutex_unlock(&left.lock);
	return n;
}

int become_start(const struct identity *who, become_fn fn, void *arg, struct child *ret, struct error *err)
{
	const uid_t uid = who ? who->uid : geteuid();
	const char *name = who ? who->name : "";
	pid_t parent = getpid(), pid;
	sigset_t all, before;
	int pair[2], pidfd;

	if (left_count(uid) >= LEFT_OF_USER_MAX)
		return error_refuse_here(
			err,
			"processes for the user '%s' (%u) hang in a file system that does not answer: "
			"unmount it, or end what serves it",
			name, uid);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_system(err, errno, "cannot make a socket pair");
	/* Our handlers are not the child's to run. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		child_main(who, parent, pair[1], fn, arg);
	pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	fd_close(pair[1]);
	if (pid < 0 || pidfd < 0) {
		int errnum = errno;

		fd_close(pair[0]); /* it ends by itself */
		return error_system(err, errnum, "cannot start a process for the user '%s'", name);
	}
	*ret = (struct child){.pid = pid, .uid = uid, .pidfd = pidfd, .socket = pair[0]};
	return 0;
}

bool become_was_killed(const struct child *c)
{
	siginfo_t info = {0};

	return pidfd_wait(c->pidfd, DEATH_MS) == 0 &&
	       waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_code == CLD_KILLED;
}

void become_end(struct child *c)
{
	c->socket = fd_close(c->socket);
	if (c->pidfd >= 0) {
		pidfd_kill(c->pidfd, SIGKILL);
		if (pidfd_wait(c->pidfd, DEATH_MS) < 0)
			left_add(c->pid, c->uid);
		else
			waitpid(c->pid, NULL, 0);
	}
	c->pidfd = fd_close(c->pidfd);
}
