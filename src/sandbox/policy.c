/*
 * The system call policy: one table, a reason per row. What no row names does not exist (ENOSYS), so that a system call which
 * a later kernel adds is refused until somebody has thought about it.
 */
#include "policy.h"

#include <asm/termbits.h>
#include <errno.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define NOTHING(arg) INT(arg, 0), INT(UPPER(arg), 0) /* a pointer that is NULL */
#define SUID	     (S_ISUID | S_ISGID)
#define NAMESPACES   0x7e020000U /* every CLONE_NEW* that clone() knows */
#define TMPFILE	     020000000U

/* What an ioctl may ask. The most frequent first: is it a terminal? */
const uint32_t policy_questions[] = {
	/* a terminal: its settings, size, queues and foreground group; not its input, its discipline, its session */
	TCGETS, TIOCGWINSZ, TCSETS, TCSETSW, TCSETSF, TCGETS2, TCSETS2, TCSETSW2, TCSETSF2, TIOCSWINSZ,
	TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCNOTTY, TIOCOUTQ, TIOCGETD, TIOCEXCL, TIOCNXCL, TCSBRK, TCSBRKP,
	TCXONC, TCFLSH,
	/* a pseudo-terminal of its own */
	TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK, TIOCGPTPEER, TIOCPKT, TIOCGPKT,
	/* any descriptor */
	FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX, FIOQSIZE,
	/* files: block size, flags to look at, copies that share their blocks, as copy_file_range() */
	FIGETBSZ, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_GETVERSION, FICLONE, FICLONERANGE,
	/* sockets, and the interfaces of its own network namespace, to look at */
	SIOCATMARK, FIOGETOWN, FIOSETOWN, SIOCGPGRP, SIOCSPGRP, SIOCGIFCONF, SIOCGIFNAME, SIOCGIFINDEX,
	SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK, SIOCGIFMETRIC, SIOCGIFMTU,
	SIOCGIFHWADDR, SIOCGIFTXQLEN, 0};

const struct policy_row policy[] = {
	{"read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range dup dup2 dup3 "
	 "pipe pipe2 fcntl poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
	 "epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime sendfile "
	 "splice tee vmsplice copy_file_range inotify_add_watch inotify_rm_watch readahead "
	 "fadvise64 ftruncate fallocate fsync fdatasync syncfs sync_file_range flock "
	 "cachestat:451",
	 "descriptors: what may be opened is decided elsewhere",
	 ALLOW,
	 {END}},
	{"stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getdents getdents64 statfs "
	 "fstatfs getcwd chdir fchdir getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr getxattrat:464 "
	 "listxattrat:465 file_getattr:468",
	 "looking at files: the mounts decide what there is",
	 ALLOW,
	 {END}},
	{"mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat truncate utime utimes "
	 "utimensat futimesat chown fchown lchown fchownat setxattr lsetxattr fsetxattr removexattr lremovexattr "
	 "fremovexattr setxattrat:463 removexattrat:466 umask",
	 "changing files: only the workspace can be written",
	 ALLOW,
	 {END}},
	{"open",
	 "no set-uid file is born: other users of the host could execute it",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {{2, SUID, 0}}}, {ALLOW, 1, {{1, 0100 | TMPFILE, 0}}}, END}},
	{"openat",
	 "as open",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {{3, SUID, 0}}}, {ALLOW, 1, {{2, 0100 | TMPFILE, 0}}}, END}},
	{"creat chmod fchmod", "as open", REFUSE(EPERM), {{ALLOW, 1, {{1, SUID, 0}}}, END}},
	{"fchmodat fchmodat2:452", "as open", REFUSE(EPERM), {{ALLOW, 1, {{2, SUID, 0}}}, END}},
	{"openat2",
	 "its mode and flags lie in memory, out of a filter's sight; programs fall back to openat",
	 REFUSE(ENOSYS),
	 {END}},
	{"mknod",
	 "files, FIFOs and sockets; no devices, no set-uid bits",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {{1, S_IFMT | SUID, 0}}},
	  {ALLOW, 1, {{1, S_IFMT | SUID, S_IFREG}}},
	  {ALLOW, 1, {{1, S_IFMT | SUID, S_IFIFO}}},
	  {ALLOW, 1, {{1, S_IFMT | SUID, S_IFSOCK}}},
	  END}},
	{"mknodat",
	 "as mknod",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {{2, S_IFMT | SUID, 0}}},
	  {ALLOW, 1, {{2, S_IFMT | SUID, S_IFREG}}},
	  {ALLOW, 1, {{2, S_IFMT | SUID, S_IFIFO}}},
	  {ALLOW, 1, {{2, S_IFMT | SUID, S_IFSOCK}}},
	  END}},
	{"ioctl",
	 "each driver and file system has calls of its own behind it (subvolumes, inode flags, typing into terminals): "
	 "what is not on the list is unknown to everything",
	 USUAL(ENOTTY),
	 {{REFUSE(EPERM), 1, {INT(1, TIOCSTI)}}, END},
	 {1, policy_questions}},
	{"file_setattr:469", "inode flags, as ioctl", REFUSE(EPERM), {END}},

	{"mprotect munmap mremap brk madvise mincore msync mlock mlock2 munlock mlockall munlockall remap_file_pages "
	 "pkey_alloc pkey_free pkey_mprotect mbind set_mempolicy get_mempolicy set_mempolicy_home_node:450 membarrier "
	 "mseal:462 map_shadow_stack:453 shmat shmdt shmctl",
	 "memory, its own and within its own ipc namespace",
	 ALLOW,
	 {END}},
	{"mmap",
	 "no huge pages: they are the machine's, and counted for nobody",
	 ALLOW,
	 {{USUAL(ENOMEM), 1, {{3, 0x40000, 0x40000} /* MAP_HUGETLB */}}, END}},
	{"memfd_create", "as mmap", ALLOW, {{USUAL(EINVAL), 1, {{1, 4, 4} /* MFD_HUGETLB */}}, END}},
	{"shmget", "as mmap", ALLOW, {{USUAL(ENOMEM), 1, {{2, 04000, 04000} /* SHM_HUGETLB */}}, END}},
	{"memfd_secret", "memory that nobody can account for or inspect", REFUSE(ENOSYS), {END}},
	{"migrate_pages move_pages process_madvise process_mrelease",
	 "other processes' memory",
	 REFUSE(EPERM),
	 {END}},

	{"fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid setpgid getpgrp getsid "
	 "setsid getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid "
	 "setresgid setfsuid setfsgid setgroups capget capset getrlimit getrusage times getpriority ioprio_get "
	 "sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max "
	 "sched_get_priority_min sched_rr_get_interval arch_prctl set_tid_address set_robust_list get_robust_list rseq "
	 "getcpu seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self pidfd_open "
	 "pidfd_send_signal restart_syscall",
	 "processes: without rights, in a namespace of their own; more walls may always be added",
	 ALLOW,
	 {END}},
	{"clone",
	 "no new namespaces: each would be a new view on the kernel's privileged code",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {{0, NAMESPACES, 0}}}, END}},
	{"clone3", "its flags lie in memory; the C library falls back to clone", REFUSE(ENOSYS), {END}},
	{"prctl",
	 "no core scheduling: it would keep others off the other half of a core",
	 ALLOW,
	 {{REFUSE(EINVAL), 1, {INT(0, 62) /* PR_SCHED_CORE */}}, END}},
	{"sched_setscheduler sched_setparam sched_setattr sched_setaffinity",
	 "PID 1 keeps the time and has the same uid: nobody slows it down; threads and children by their own ids",
	 ALLOW,
	 {{REFUSE(EPERM), 1, {INT(0, 1)}}, END}},
	{"setpriority",
	 "as sched_setscheduler; groups and users may have PID 1 among them",
	 REFUSE(EPERM),
	 {{REFUSE(EPERM), 1, {INT(1, 1)}}, {ALLOW, 1, {INT(0, PRIO_PROCESS)}}, END}},
	{"ioprio_set",
	 "as setpriority",
	 REFUSE(EPERM),
	 {{REFUSE(EPERM), 1, {INT(1, 1)}}, {ALLOW, 1, {INT(0, 1) /* IOPRIO_WHO_PROCESS */}}, END}},
	{"setrlimit",
	 "its own limits, but RLIMIT_CORE stays 1: at 0 a crash would start the host's core handler. Who asks wants no "
	 "cores, has none, and need not fail",
	 ALLOW,
	 {{PRETEND, 1, {INT(0, RLIMIT_CORE)}}, END}},
	{"prlimit64",
	 "as setrlimit, and reading; where the old value is wanted too it would not be filled in. PID 1 has the same uid "
	 "and must keep its own",
	 REFUSE(EPERM),
	 {{ALLOW, 2, {NOTHING(2)}},
	  {PRETEND, 4, {INT(0, 0), INT(1, RLIMIT_CORE), NOTHING(3)}},
	  {REFUSE(EPERM), 1, {INT(1, RLIMIT_CORE)}},
	  {ALLOW, 1, {INT(0, 0)}},
	  END}},
	{"personality",
	 "only what debuggers and old programs ask: standard, no randomisation, a question",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {INT(0, 0)}}, {ALLOW, 1, {INT(0, 0x40000)}}, {ALLOW, 1, {INT(0, 0xffffffffU)}}, END}},
	{"kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo "
	 "rt_sigsuspend rt_sigreturn sigaltstack pause alarm getitimer setitimer",
	 "signals: nobody outside can be named",
	 ALLOW,
	 {END}},
	{"futex futex_waitv futex_wake:454 futex_wait:455 futex_requeue:456 nanosleep clock_nanosleep clock_gettime "
	 "clock_getres gettimeofday time timer_create timer_settime timer_gettime timer_getoverrun timer_delete semget "
	 "semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify "
	 "mq_getsetattr",
	 "waiting and speaking with each other",
	 ALLOW,
	 {END}},
	{"uname sysinfo getrandom", "harmless questions", ALLOW, {END}},

	{"socket",
	 "unix, IPv4, IPv6 (TCP and UDP) within its own network namespace; netlink for getifaddrs; AF_VSOCK and "
	 "AF_ALG know no namespaces",
	 REFUSE(EAFNOSUPPORT),
	 {{ALLOW, 1, {INT(0, 1)}},
	  {ALLOW, 3, {INT(0, 2), {1, 0xf, 1}, INT(2, 0)}},
	  {ALLOW, 3, {INT(0, 2), {1, 0xf, 1}, INT(2, 6)}},
	  {ALLOW, 3, {INT(0, 2), {1, 0xf, 2}, INT(2, 0)}},
	  {ALLOW, 3, {INT(0, 2), {1, 0xf, 2}, INT(2, 17)}},
	  {ALLOW, 3, {INT(0, 10), {1, 0xf, 1}, INT(2, 0)}},
	  {ALLOW, 3, {INT(0, 10), {1, 0xf, 1}, INT(2, 6)}},
	  {ALLOW, 3, {INT(0, 10), {1, 0xf, 2}, INT(2, 0)}},
	  {ALLOW, 3, {INT(0, 10), {1, 0xf, 2}, INT(2, 17)}},
	  {ALLOW, 2, {INT(0, 16), INT(2, 0)}},
	  END}},
	{"socketpair", "unix only", REFUSE(EAFNOSUPPORT), {{ALLOW, 1, {INT(0, 1)}}, END}},
	{"connect accept accept4 bind listen sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname "
	 "getpeername setsockopt getsockopt",
	 "whom they reach is decided by namespaces and mounts",
	 ALLOW,
	 {END}},

	{"ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd",
	 "looking into other processes",
	 REFUSE(EPERM),
	 {END}},
	{"mount umount2 pivot_root chroot open_tree open_tree_attr:467 move_mount fsopen fsconfig fsmount fspick mount_setattr "
	 "statmount:457 listmount:458 unshare setns",
	 "the shape of the hood",
	 REFUSE(EPERM),
	 {END}},
	{"name_to_handle_at open_by_handle_at", "files without paths", REFUSE(EPERM), {END}},
	{"io_uring_setup io_uring_enter io_uring_register",
	 "a second system call interface that no filter sees",
	 REFUSE(EPERM),
	 {END}},
	{"bpf perf_event_open userfaultfd lookup_dcookie uprobe:336 uretprobe:335",
	 "code and traps in the kernel",
	 REFUSE(EPERM),
	 {END}},
	{"inotify_init inotify_init1",
	 "instances are counted for the user, here and on the host: one analysis could use all of them up",
	 REFUSE(EMFILE),
	 {END}},
	{"io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy",
	 "requests are counted for the whole machine; the C library's own asynchronous I/O uses threads",
	 REFUSE(ENOSYS),
	 {END}},
	{"add_key request_key keyctl", "keyrings are shared by uid", REFUSE(EPERM), {END}},
	{"init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load "
	 "reboot syslog acct quotactl quotactl_fd swapon swapoff sethostname setdomainname iopl ioperm vhangup "
	 "nfsservctl uselib ustat sysfs _sysctl modify_ldt lsm_get_self_attr:459 lsm_set_self_attr:460 "
	 "lsm_list_modules:461",
	 "the machine's, not the analysis's",
	 REFUSE(EPERM),
	 {END}},
	{"settimeofday clock_settime adjtimex clock_adjtime", "the machine's clock", REFUSE(EPERM), {END}},
	{"fanotify_init fanotify_mark", "watching other people's files", REFUSE(EPERM), {END}},
	{"sync", "flushes everybody's disks", REFUSE(EPERM), {END}},
};

const unsigned policy_rows = sizeof policy / sizeof policy[0];

/* With --explain these are told of although they are allowed: what they name may not be there, or not be writable. */
const char policy_watched[] =
	"open openat creat stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat chdir execve execveat mkdir "
	"mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat truncate connect";
