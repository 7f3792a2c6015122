#include "notices.h"
#include "clock.h"
#include "file.h"
#include "hints.h"
#include "peek.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

void notices_init(struct notices *x)
{
	*x = (struct notices){.root_fd = -1};
}

void notices_done(struct notices *x)
{
	x->root_fd = fd_close(x->root_fd);
}

void notices_add(struct notices *x, const char *layer, const char *operation, const char *path,
		 const char *target, int errnum, const char *hint_format, ...)
{
	const char *error = strerrorname_np(errnum);
	char hint[1024];
	va_list ap;

	va_start(ap, hint_format);
	vsnprintf(hint, sizeof hint, hint_format, ap);
	va_end(ap);
	denials_add(x->denials, &(struct denial){
					.layer = (char *)layer,
					.operation = (char *)operation,
					.path = (char *)path,
					.target = (char *)target,
					.error = (char *)error,
					.hint = hint,
					.at = clock_utc(),
					.count = 1,
				});
}

/* "." and "..", as far as words tell: a link on the way is not looked for. */
static void clean(char *path)
{
	char *to = path, *from = path;

	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && *from == '.')) {
			*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
		from += strspn(from, "/");
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
}

ssize_t notice_path(const struct notice *n, int directory_arg, int path_arg, char *out, size_t room)
{
	char path[PATH_MAX];
	ssize_t length = peek_string(n->pid, n->args[path_arg], path, sizeof path), base = 0;

	if (length <= 0)
		return length < 0 ? length : -ENOENT;
	if (path[0] != '/') {
		int fd = directory_arg < 0 ? AT_FDCWD : (int)n->args[directory_arg];

		base = peek_directory(n->pid, fd, out, room);
		if (base < 0)
			return base;
		if (out[0] != '/')
			return -ENOTDIR; /* no file's */
	}
	if ((size_t)(base + 1 + length) >= room)
		return -ENAMETOOLONG;
	if (base)
		out[base++] = '/';
	memcpy(out + base, path, (size_t)length + 1);
	clean(out);
	return (ssize_t)strlen(out);
}

int notices_look(struct notices *x, const struct notice *n, const char *path, mode_t *ret_mode)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (x->root_fd < 0)
		x->root_fd = peek_root(n->pid);
	if (x->root_fd < 0)
		return -EAGAIN; /* nothing is known */
	fd = (int)syscall(SYS_openat2, x->root_fd, path, &how, sizeof how);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_mode = st.st_mode;
	return 0;
}

/* ---- what the filter refuses ---- */

/* What a call that is refused was about, where that says more than its name. */
static const char *refused_target(const struct notice *n, char *out, size_t room)
{
	const char *call = n->call;
	char family[32];

	if (strcmp(call, "socket") == 0 || strcmp(call, "socketpair") == 0) {
		snprintf(out, room, "%s", socket_family_name((int)n->args[0], family));
		return out;
	}
	if (strcmp(call, "ioctl") == 0) {
		snprintf(out, room, "0x%x", (unsigned)n->args[1]);
		return out;
	}
	if (strcmp(call, "kill") == 0 || strcmp(call, "ptrace") == 0)
		return NULL;
	if (strcmp(call, "chmod") == 0 || strcmp(call, "fchmodat") == 0) {
		bool at = call[1] == 'c';
		ssize_t length = notice_path(n, at ? 0 : -1, at ? 1 : 0, out, room);

		return length > 0 && notice_is_valid(n) ? out : NULL;
	}
	return NULL;
}

const char *call_hint(const struct call_hint *hints, const char *call)
{
	for (; hints->words; hints++)
		for (const char *word = hints->words; *word; word += strspn(word, " ")) {
			size_t n = strcspn(word, " ");

			if (strncmp(call, word, n) == 0)
				return hints->hint;
			word += n;
		}
	return NULL;
}

/* What it means for who reads it; the policy's own reasons are about the kernel. */
static const char *refused_hint(const char *call)
{
	static const struct call_hint hints[] = {
		{"socket", "only unix sockets, and TCP and UDP within the analysis itself"},
		{"unshare setns clone mount umount pivot_root chroot fsopen fsmount open_tree move_mount",
		 "an analysis makes no sandbox, container or mount of its own"},
		{"ptrace process_vm kcmp pidfd_getfd", "no debugger, and no look into other processes"},
		{"bpf perf_event userfaultfd", "no tracers and profilers that need the kernel's help"},
		{"io_uring", "ordinary reads and writes work; most programs fall back to them"},
		{"inotify fanotify", "files cannot be watched: look at them again instead"},
		{"open creat chmod fchmod mknod", "no set-uid or set-gid bits, and no devices"},
		{"sched_set setpriority ioprio", "only of its own processes, never of the hood's"},
		{"setrlimit prlimit", "only its own limits, and not those of core dumps"},
		{"add_key request_key keyctl", "there is no keyring"},
		{NULL, NULL},
	};
	const char *hint = call_hint(hints, call);

	return hint ? hint : "it is the machine's, and no option allows it";
}

static void add_refused(struct notices *x, const struct notice *n)
{
	const char *hint = x->plan->strength == STRENGTH_LANDLOCK ? notices_bare_hint(n->call) : NULL;
	char target[PATH_MAX * 2];

	notices_add(x, "seccomp", n->call, NULL, refused_target(n, target, sizeof target), n->errnum, "%s",
		    hint ? hint : refused_hint(n->call));
}

void notices_on(void *arg, const struct notice *n)
{
	struct notices *x = arg;

	if (n->errnum)
		add_refused(x, n);
	else if (!notices_path(x, n))
		(void)notices_connect(x, n);
}

/* ---- in which order they are told ---- */

static bool is_of_the_machine(const struct denial *d)
{
	return d->path && path_is_machine(d->path);
}

void notices_sort(struct notices *x)
{
	struct denials *d = x->denials;
	struct denial sorted[DENIALS_MAX];
	size_t n = 0;

	for (int machine = 0; machine <= 1; machine++)
		for (size_t i = 0; i < d->n; i++)
			if (is_of_the_machine(&d->list[i]) == machine)
				sorted[n++] = d->list[i];
	if (n)
		memcpy(d->list, sorted, n * sizeof sorted[0]);
}
