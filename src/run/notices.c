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
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

void notices_init(struct notices *x)
{
	*x = (struct notices){.root_fd = -1};
}

void notices_done(struct notices *x)
{
	x->root_fd = fd_close(x->root_fd);
	outside_done(&x->outside);
}

/* one has all but the hint. */
static void add(struct notices *x, struct denial *one, const char *hint_format, va_list ap) PRINTF_LIKE(3, 0);
static void add(struct notices *x, struct denial *one, const char *hint_format, va_list ap)
{
	char hint[1024];

	vsnprintf(hint, sizeof hint, hint_format, ap);
	one->hint = hint;
	denials_add(x->denials, one);
}

static char *error_name(int errnum)
{
	return errnum ? (char *)strerrorname_np(errnum) : NULL;
}

void notices_add(struct notices *x, const char *layer, const char *operation, const char *path,
		 const char *target, int errnum, const char *hint_format, ...)
{
	struct denial one = {.layer = (char *)layer,
			     .operation = (char *)operation,
			     .path = (char *)path,
			     .target = (char *)target,
			     .error = error_name(errnum),
			     .at = clock_utc(),
			     .count = 1};
	va_list ap;

	va_start(ap, hint_format);
	add(x, &one, hint_format, ap);
	va_end(ap);
}

void notices_add_found(struct notices *x, const char *layer, const struct outside_path *p, const char *target,
		       const char *hint_format, ...)
{
	struct denial one = {.layer = (char *)layer,
			     .operation = (char *)p->operation,
			     .path = p->path,
			     .target = (char *)target,
			     .error = error_name(p->errnum),
			     .at = p->at,
			     .count = p->count};
	va_list ap;

	va_start(ap, hint_format);
	add(x, &one, hint_format, ap);
	va_end(ap);
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

ssize_t notice_path(struct notices *x, const struct notice *n, int directory_arg, int path_arg, char *out,
		    size_t room)
{
	char path[PATH_MAX];
	ssize_t length = peek_string(n->pid, n->args[path_arg], path, sizeof path), base = 0;

	if (length == -EPERM || length == -ENOSYS)
		x->blind_errno = (int)-length;
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
static const char *refused_target(struct notices *x, const struct notice *n, char *out, size_t room)
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
		ssize_t length = notice_path(x, n, at ? 0 : -1, at ? 1 : 0, out, room);

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

	notices_add(x, "seccomp", n->call, NULL, refused_target(x, n, target, sizeof target), n->errnum, "%s",
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

/* ---- when it has ended ---- */

static void add_found(struct notices *x)
{
	for (size_t i = 0; i < x->outside.n; i++) {
		const struct outside_path *p = &x->outside.list[i];

		if (p->found == FOUND_NOTHING)
			continue;
		if (p->kind == OUTSIDE_SOCKET)
			notices_add_found(x, "network", p, p->path, "services of the host cannot be reached");
		else if (p->kind >= OUTSIDE_BARE_READ)
			notices_bare_found(x, p);
		else
			notices_found_path(x, p);
	}
}

static bool is_of_the_machine(const struct denial *d)
{
	return d->path && path_is_machine(d->path);
}

/* In the order in which they came; what is about the machine more than about the analysis is last. */
static int compare(const void *a, const void *b)
{
	const struct denial *x = a, *y = b;
	int later = is_of_the_machine(x) - is_of_the_machine(y);

	return later ? later : (x->at > y->at) - (x->at < y->at);
}

void notices_finish(struct notices *x, const struct identity *who, struct receipt *receipt)
{
	struct error why = ERROR_INIT;

	if (x->blind_errno)
		receipt_warn(
			receipt,
			"--explain could not look into the analysis: %s of process_vm_readv, which a seccomp profile or "
			"kernel.yama.ptrace_scope forbids",
			strerror(x->blind_errno));
	if (outside_look(&x->outside, who, notices_judge_path, x, &why) < 0)
		receipt_warn(receipt, "--explain did not find out all that exists outside: %s", why.message);
	if (x->outside.was_cut)
		receipt_warn(receipt,
			     "--explain did not look for all that was missing: there was too much of it");
	add_found(x);
	if (x->denials && x->denials->n)
		qsort(x->denials->list, x->denials->n, sizeof x->denials->list[0], compare);
}
