/*
 * What is refused beside policy.c where there are no namespaces (--strength landlock): Landlock looks at opening, making, removing
 * and moving files. Whatever else reaches a file or a process of the same user by its name is shut here, as far as a filter can
 * see it.
 */
#include "policy.h"

#include <asm/fcntl.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <asm/ioctls.h>
#include <asm/sockios.h>

/* What is asked of a descriptor, and its own settings; locks of ranges, which databases need. No leases, no notices of changes,
 * no signals to whom one names, no hints for how long data live: those are the file's, not the descriptor's. F_DUPFD, which is 0,
 * has a clause. */
static const uint32_t commands[] = {F_GETFD,
				    F_SETFD,
				    F_GETFL,
				    F_SETFL,
				    F_GETLK,
				    F_SETLK,
				    F_SETLKW,
				    F_OFD_GETLK,
				    F_OFD_SETLK,
				    F_OFD_SETLKW,
				    F_GETOWN,
				    F_GETSIG,
				    F_GETOWN_EX,
				    F_GETLEASE,
				    F_DUPFD_CLOEXEC,
				    F_SETPIPE_SZ,
				    F_GETPIPE_SZ,
				    F_ADD_SEALS,
				    F_GET_SEALS,
				    F_GET_RW_HINT,
				    F_GET_FILE_RW_HINT,
				    1027 /* F_DUPFD_QUERY */,
				    1028 /* F_CREATED_QUERY */,
				    0};

const struct policy_row policy_bare[] = {
	{"chmod fchmod fchmodat fchmodat2:452 chown fchown lchown fchownat utime utimes utimensat futimesat",
	 "the owner's files are the analysis's own: no Landlock keeps it from their modes, owners and times",
	 REFUSE(EPERM),
	 {END}},
	{"setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat:463 removexattrat:466",
	 "as chmod; programs go on where a file system has none",
	 REFUSE(EOPNOTSUPP),
	 {END}},
	{"flock",
	 "an input that is open for reading could be locked against everybody; ranges (fcntl) only against writers",
	 REFUSE(ENOLCK),
	 {END}},
	{"fcntl",
	 "a lease on an input stops who opens it; an owner of a descriptor gets signals, whoever that is",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {INT(1, F_DUPFD)}}, END},
	 {1, commands}},
	{"ioctl",
	 "as in a network namespace of its own, and nobody is made the owner of a descriptor, as with fcntl",
	 USUAL(ENOTTY),
	 {{REFUSE(EPERM), 1, {INT(1, TIOCSTI)}},
	  {REFUSE(EPERM), 1, {INT(1, FIOSETOWN)}},
	  {REFUSE(EPERM), 1, {INT(1, SIOCSPGRP)}},
	  END},
	 {1, policy_questions}},

	{"socket", "no network namespace: every socket would be the host's", REFUSE(EAFNOSUPPORT), {END}},
	{"socketpair",
	 "a stream's or a sequence's two ends know only each other; a datagram can be sent to any path",
	 REFUSE(EAFNOSUPPORT),
	 {{ALLOW, 2, {INT(0, 1), {1, 0xf, 1}}}, {ALLOW, 2, {INT(0, 1), {1, 0xf, 5}}}, END}},
	{"connect bind listen accept accept4", "as socket: a pair needs none of them", REFUSE(EPERM), {END}},
	{"shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend "
	 "mq_timedreceive mq_notify mq_getsetattr",
	 "no ipc namespace: those of the host's user, and they would outlive the analysis",
	 REFUSE(EPERM),
	 {END}},

	{"sched_setscheduler sched_setparam sched_setattr sched_setaffinity",
	 "no pid namespace: only itself, nobody else of the same user",
	 REFUSE(EPERM),
	 {{ALLOW, 1, {INT(0, 0)}}, END}},
	{"setpriority",
	 "as sched_setscheduler",
	 REFUSE(EPERM),
	 {{ALLOW, 2, {INT(0, PRIO_PROCESS), INT(1, 0)}}, END}},
	{"ioprio_set",
	 "as sched_setscheduler",
	 REFUSE(EPERM),
	 {{ALLOW, 2, {INT(0, 1) /* IOPRIO_WHO_PROCESS */, INT(1, 0)}}, END}},
};

const unsigned policy_bare_rows = sizeof policy_bare / sizeof policy_bare[0];
