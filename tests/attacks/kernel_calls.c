/*
 * Kernel surface: system calls that no analysis needs. Arguments are chosen so that a call which gets through does
 * nothing to the host: a bad magic, an empty name, the value that is already there. "Got through" is an errno that
 * only comes after the permission check.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <sys/io.h>
#endif

#include "act.h"
#include "stage.h"

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* What the call's own errno says: refused, or got as far as the arguments. */
static int got_through(const struct attack *a, long r)
{
	int e = r < 0 ? -errno : 0;
	return refused(e) ? e : reached("%s: %s", a->name, r < 0 ? strerror(-e) : "done");
}

ACT(ring)
{
	struct io_uring_params params = {0};
	return got_through(a, syscall(SYS_io_uring_setup, 4, &params));
}

/* A whole request: the kernel opens an input for writing on our behalf, past any filter on openat(). */
ACT(ring_open)
{
	struct io_uring_params params = {0};
	_cleanup_close_ int fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (fd < 0)
		return -errno;
	char *queue = mmap(NULL, params.sq_off.array + params.sq_entries * 4 + 4096, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries =
		mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, fd, (off_t)IORING_OFF_SQES);
	if (queue == MAP_FAILED || entries == MAP_FAILED)
		return -errno;
	entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
					   .fd = AT_FDCWD,
					   .len = 0,
					   .addr = (uintptr_t)targets_text(t, "data.file"),
					   .open_flags = O_RDWR | O_TRUNC};
	*(unsigned *)(queue + params.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	return result(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
}

ACT(bpf_map)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return got_through(a, syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
}

ACT(bpf_program)
{
	struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
			       .insn_cnt = 2,
			       .insns = (uintptr_t)code,
			       .license = (uintptr_t) "GPL"};
	return got_through(a, syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)));
}

ACT(perf_event)
{
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(event),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.exclude_kernel = 1,
					.exclude_hv = 1};
	return got_through(a, syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}

ACT(user_faults)
{
	return got_through(a, syscall(SYS_userfaultfd, a->number));
}

ACT(load_module)
{
	return got_through(a, syscall(SYS_init_module, "no module", 9, ""));
}

ACT(load_module_file)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY);
	return got_through(a, syscall(SYS_finit_module, fd, "", 0x8000 /* no such flag */));
}

/* ENOENT is what root gets for a name that is not loaded, so refused() will not do. */
ACT(unload_module)
{
	if (syscall(SYS_delete_module, "fumehood_no_such_module", O_NONBLOCK) && errno != ENOENT)
		return -errno;
	return reached("%s", a->name);
}

ACT(load_kernel)
{
	return got_through(a, syscall(SYS_kexec_load, 0, 0, NULL, ~0UL));
}

ACT(load_kernel_file)
{
	return got_through(a, syscall(SYS_kexec_file_load, -1, -1, 0, NULL, ~0UL));
}

ACT(restart)
{
	return got_through(a, syscall(SYS_reboot, 1, 2, 3, NULL));
}

ACT(adjust_clock)
{
	struct timex clock = {0};
	if (adjtimex(&clock) < 0)
		return -errno;
	clock.modes = ADJ_STATUS; /* to what it is */
	return got_through(a, a->number ? clock_adjtime(CLOCK_REALTIME, &clock) : adjtimex(&clock));
}

ACT(set_clock)
{
	struct timezone zone = {0};
	if (syscall(SYS_gettimeofday, NULL, &zone))
		return -errno;
	return got_through(a, syscall(SYS_settimeofday, NULL, &zone));
}

ACT(set_host_name)
{
	char name[256];
	if (gethostname(name, sizeof(name)))
		return -errno;
	if (a->number)
		return got_through(a, getdomainname(name, sizeof(name)) ?: setdomainname(name, strlen(name)));
	return got_through(a, sethostname(name, strlen(name)));
}

ACT(swap_on)
{
	if (swapon(targets_text(t, "data.file"), 0) == 0 || errno == EINVAL)
		return reached("%s", a->name);
	return -errno;
}

ACT(swap_off)
{
	return swapoff(targets_text(t, "data.file")) && errno == EINVAL ? reached("%s", a->name) : -errno;
}

ACT(account)
{
	if (acct("/nonexistent/file") && errno != ENOENT)
		return -errno;
	return reached("%s", a->name);
}

ACT(quota)
{
	return got_through(a, quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
}

ACT(quota_by_descriptor)
{
	_cleanup_close_ int fd = open(".", O_RDONLY | O_DIRECTORY);
	return got_through(a, syscall(SYS_quotactl_fd, fd, QCMD(Q_SYNC, USRQUOTA), 0, NULL));
}

/* A crash is handed to the host's handler, whatever RLIMIT_CORE says, unless that is exactly 1. */
ACT(core_handler)
{
	char pattern[8] = "";
	struct rlimit limit;
	_cleanup_close_ int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
	if (fd < 0 || read(fd, pattern, sizeof(pattern)) < 1 || getrlimit(RLIMIT_CORE, &limit))
		return -errno;
	if (pattern[0] == '@') /* a socket of the host's, since Linux 6.16: no limit is asked */
		return reached("a crash goes to the host's core socket");
	if (pattern[0] != '|')
		return -ENODATA;
	return limit.rlim_max == 1 ? -EPERM : reached("a crash goes to the host's core handler");
}

ACT(kernel_log)
{
	char line[128];
	return got_through(a, klogctl(3, line, sizeof(line)));
}

#if defined(__x86_64__)
ACT(ports)
{
	return got_through(a, a->number ? iopl(3) : ioperm(0x80, 1, 1));
}

ACT(local_descriptors)
{
	char room[64];
	return got_through(a, syscall(SYS_modify_ldt, a->number, room, sizeof(room)));
}
#endif

ACT(watch_files)
{
	return got_through(a, syscall(SYS_fanotify_init, a->number, O_RDONLY));
}

ACT(new_namespace)
{
	return unshare((int)a->number) ? -errno : reached("%s", a->name);
}

ACT(clone_namespace)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (!child)
		_exit(0);
	if (child < 0)
		return -errno;
	waitpid(child, NULL, 0);
	return reached("%s", a->name);
}

ACT(clone3_namespace)
{
	struct {
		uint64_t flags, pidfd, child, parent, signal, stack, size, tls;
	} args = {.flags = CLONE_NEWUSER, .signal = SIGCHLD};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!child)
		_exit(0);
	if (child < 0)
		return -errno;
	waitpid(child, NULL, 0);
	return reached("%s", a->name);
}

ACT(tree_clone)
{
	return got_through(a, syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */));
}

ACT(secret_memory)
{
	return got_through(a, syscall(SYS_memfd_secret, 0));
}

ACT(name_handle)
{
	struct file_handle handle = {0};
	int mount;
	if (name_to_handle_at(AT_FDCWD, targets_text(t, "local.file"), &handle, &mount, 0) &&
	    errno != EOVERFLOW)
		return -errno;
	return reached("%s", a->name);
}

ACT(hang_up)
{
	return got_through(a, syscall(SYS_lookup_dcookie, 0UL, NULL, 0UL));
}

#if defined(__x86_64__)
/* 20 is getpid() for a 32-bit program; a filter that looks only at numbers takes it for writev(). */
ACT(foreign_abi)
{
	long r = 20;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r == getpid() ? reached("%s", a->name) : (int)(r < 0 && r > -4096 ? r : -ENOSYS);
}

/* 5 is open() there: the input opened for writing past a filter on 64-bit numbers. */
ACT(foreign_open)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return -errno;
	strncpy(low, targets_text(t, "data.file"), 4095);
	long r = 5;
	__asm__ volatile("int $0x80"
			 : "+a"(r)
			 : "b"((long)low), "c"((long)(O_WRONLY | O_TRUNC)), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)(r < 0 ? r : 0);
}

ACT(wide_abi)
{
	long r = syscall(0x40000000L | SYS_getpid);
	return r == getpid() ? reached("%s", a->name) : -errno;
}
#endif

#define CALL(n, how, fn, ...)                                                               \
	{                                                                                   \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_CLAIM, __VA_ARGS__ \
	}

static const struct attack table[] = {
	CALL("io-uring", "io_uring_setup()", ring),
	{.name = "io-uring-open",
	 .mechanism = "an input opened for writing by io_uring",
	 .run = ring_open,
	 .effect = EFFECT_TREE},
	CALL("bpf-map", "bpf(BPF_MAP_CREATE)", bpf_map),
	CALL("bpf-program", "bpf(BPF_PROG_LOAD)", bpf_program),
	CALL("perf-event", "perf_event_open()", perf_event),
	CALL("userfaultfd", "userfaultfd(UFFD_USER_MODE_ONLY)", user_faults, .number = UFFD_USER_MODE_ONLY),
	CALL("init-module", "init_module()", load_module, .flags = ROOT_ONLY),
	CALL("finit-module", "finit_module()", load_module_file, .flags = ROOT_ONLY),
	CALL("delete-module", "delete_module()", unload_module, .flags = ROOT_ONLY),
	CALL("kexec", "kexec_load()", load_kernel, .flags = ROOT_ONLY),
	CALL("kexec-file", "kexec_file_load()", load_kernel_file, .flags = ROOT_ONLY),
	CALL("reboot", "reboot()", restart, .flags = ROOT_ONLY),
	CALL("adjtimex", "adjtimex()", adjust_clock, .flags = ROOT_ONLY),
	CALL("clock-adjtime", "clock_adjtime()", adjust_clock, .number = 1, .flags = ROOT_ONLY),
	CALL("settimeofday", "settimeofday()", set_clock, .flags = ROOT_ONLY),
	CALL("sethostname", "sethostname()", set_host_name, .flags = ROOT_ONLY),
	CALL("setdomainname", "setdomainname()", set_host_name, .number = 1, .flags = ROOT_ONLY),
	CALL("swapon", "swapon() of an input", swap_on, .flags = ROOT_ONLY),
	CALL("swapoff", "swapoff()", swap_off, .flags = ROOT_ONLY),
	CALL("acct", "acct()", account, .flags = ROOT_ONLY),
	CALL("quotactl", "quotactl(Q_SYNC)", quota),
	CALL("quotactl-fd", "quotactl_fd(Q_SYNC)", quota_by_descriptor),
	CALL("core-handler", "a crash, for the host's core handler", core_handler),
	CALL("syslog", "syslog(): the kernel's log", kernel_log),
#if defined(__x86_64__)
	CALL("ioperm", "ioperm()", ports, .flags = ROOT_ONLY),
	CALL("iopl", "iopl()", ports, .number = 1, .flags = ROOT_ONLY),
	CALL("modify-ldt", "modify_ldt()", local_descriptors),
#endif
	CALL("fanotify", "fanotify_init(FAN_REPORT_FID)", watch_files, .number = FAN_REPORT_FID),
	CALL("fanotify-content", "fanotify_init(FAN_CLASS_CONTENT): stops the opens of others", watch_files,
	     .number = FAN_CLASS_CONTENT, .flags = ROOT_ONLY),
	CALL("unshare-mount", "unshare(CLONE_NEWNS)", new_namespace, .number = CLONE_NEWNS,
	     .flags = ROOT_ONLY),
	CALL("unshare-user", "unshare(CLONE_NEWUSER)", new_namespace, .number = CLONE_NEWUSER),
	CALL("unshare-net", "unshare(CLONE_NEWNET)", new_namespace, .number = CLONE_NEWUSER | CLONE_NEWNET),
	CALL("unshare-pid", "unshare(CLONE_NEWPID)", new_namespace, .number = CLONE_NEWUSER | CLONE_NEWPID),
	CALL("unshare-ipc", "unshare(CLONE_NEWIPC)", new_namespace, .number = CLONE_NEWUSER | CLONE_NEWIPC),
	CALL("unshare-cgroup", "unshare(CLONE_NEWCGROUP)", new_namespace,
	     .number = CLONE_NEWUSER | CLONE_NEWCGROUP),
	CALL("unshare-time", "unshare(CLONE_NEWTIME)", new_namespace,
	     .number = CLONE_NEWUSER | CLONE_NEWTIME),
	CALL("clone-user", "clone(CLONE_NEWUSER)", clone_namespace),
	CALL("clone3-user", "clone3(CLONE_NEWUSER), whose flags no filter can see", clone3_namespace),
	CALL("open-tree", "open_tree(OPEN_TREE_CLONE)", tree_clone, .flags = ROOT_ONLY),
	CALL("memfd-secret", "memfd_secret()", secret_memory),
	CALL("name-to-handle", "name_to_handle_at(): a file's handle", name_handle),
	CALL("lookup-dcookie", "lookup_dcookie()", hang_up, .flags = ROOT_ONLY),
#if defined(__x86_64__)
	CALL("abi-i386", "int 0x80: the 32-bit calls", foreign_abi),
	{.name = "abi-i386-open",
	 .mechanism = "int 0x80: an input opened for writing by the 32-bit open()",
	 .run = foreign_open,
	 .effect = EFFECT_TREE},
	CALL("abi-x32", "the x32 calls", wide_abi),
#endif
};

const struct attack_family kernel_calls = {.name = "kernel", .title = "kernel surface", FAMILY(table)};
