/*
 * Limits that do not add up: each process, file or file system stays below the limit, all together do not. Only what
 * is quick is here; each row asks for a limit, and claims success if it got several times as much.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

#define MIB (1UL << 20)

/* How long what others need is held: long enough to be seen, short enough not to be missed. */
enum {
	HOLD_MS = 50,
	HOLD_ALL = 10, /* times HOLD_MS: on a busy machine the suite's own try comes late */
};

static int fill(int fd, size_t size)
{
	static char block[65536] = "x";
	for (size_t done = 0; done < size; done += sizeof(block))
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return errno ? -errno : -ENOSPC;
	return 0;
}

static void hold_memory(size_t size)
{
	char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		_exit(1);
	memset(room, 1, size);
}

/* Eight children, none of which is large, all alive at once. */
ACT(memory_by_children)
{
	int ready[2], filled = 0, alive = 0;
	pid_t children[8];
	if (pipe(ready))
		return -errno;
	for (int i = 0; i < 8; i++) {
		pid_t child = children[i] = fork();
		if (child < 0)
			return -errno;
		if (child)
			continue;
		close(ready[0]);
		hold_memory((size_t)a->number);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		linger(2000);
		_exit(0);
	}
	close(ready[1]);
	for (char byte; filled < 8 && read(ready[0], &byte, 1) == 1;)
		filled++;
	/* One that was full and has been killed for the next does not count; dying takes a moment. */
	linger(HOLD_MS);
	for (int i = 0; i < 8; i++)
		alive += waitpid(children[i], NULL, WNOHANG) == 0;
	return alive == 8 ? reached("eight children with %ld bytes each", a->number) : -ENOMEM;
}

ACT(memory_by_file)
{
	_cleanup_close_ int fd = a->arg[0] ? open(a->arg, O_RDWR | O_CREAT, 0600) : memfd_create("room", 0);
	if (a->arg[0])
		unlink(a->arg);
	int r = fd < 0 ? -errno : fill(fd, (size_t)a->number);
	return r ? r : reached("%ld bytes of memory as a file", a->number);
}

ACT(memory_by_segment)
{
	int id = shmget(IPC_PRIVATE, (size_t)a->number, IPC_CREAT | 0600);
	char *room = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	if (room == (void *)-1)
		return -errno;
	shmctl(id, IPC_RMID, NULL);
	memset(room, 1, (size_t)a->number);
	return reached("%ld bytes of System V memory", a->number);
}

/* What the kernel has taken from fd to hand on, and nobody reads. */
static long stuff(int fd)
{
	static const char block[32768] = "x";
	long taken = 0;
	for (ssize_t n; (n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
		taken += n;
	return taken;
}

static int own_port(int kind, struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int fd = socket(AF_INET, kind, 0);
	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)at, size) || getsockname(fd, (struct sockaddr *)at, &size))
		return -errno;
	return fd;
}

/* Connections to itself, both ends of which are left full. */
ACT(memory_by_streams)
{
	struct sockaddr_in at;
	int door = own_port(SOCK_STREAM, &at);
	long taken = 0, before;
	if (door < 0 || listen(door, 128))
		return door < 0 ? door : -errno;
	do {
		int out = socket(AF_INET, SOCK_STREAM, 0);
		if (out < 0 || connect(out, (struct sockaddr *)&at, sizeof(at)) ||
		    accept(door, NULL, NULL) < 0)
			return -errno;
		before = taken;
		taken += stuff(out);
	} while (taken < a->number && taken > before);
	return taken >= a->number ? reached("%ld bytes in connections", taken) : -ENOBUFS;
}

/* How much of what was sent lies there is only seen at the end, by who reads it. */
ACT(memory_by_datagrams)
{
	static char block[65536];
	struct sockaddr_in at;
	int list[900], n = 0, room = 1 << 30;
	long kept = 0, sent = 0;
	for (; n < (int)ARRAY_SIZE(list) && sent < 2 * a->number; n++) {
		int out = socket(AF_INET, SOCK_DGRAM, 0);
		list[n] = own_port(SOCK_DGRAM, &at);
		if (out < 0 || list[n] < 0)
			return -errno;
		setsockopt(list[n], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
		if (connect(out, (struct sockaddr *)&at, sizeof(at)))
			return -errno;
		/* What is sent to a full one is lost: this is less than a machine gives each by default. */
		for (int i = 0; i < 6 && send(out, block, 32768, MSG_DONTWAIT) > 0; i++)
			sent += 32768;
		close(out);
	}
	for (ssize_t size; n-- > 0;)
		while ((size = recv(list[n], block, sizeof(block), MSG_DONTWAIT)) > 0)
			kept += size;
	return kept >= a->number ? reached("%ld bytes in datagrams", kept) : -ENOBUFS;
}

/* Each has as many as one may have; all together they are the machine's. */
ACT(files_by_children)
{
	int counts[2];
	long n, sum = 0;
	if (pipe(counts))
		return -errno;
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		struct rlimit most;
		if (child < 0)
			return -errno;
		if (child)
			continue;
		getrlimit(RLIMIT_NOFILE, &most);
		most.rlim_cur = most.rlim_max;
		setrlimit(RLIMIT_NOFILE, &most);
		for (n = 0; n < a->number / 16 && open("/dev/null", O_RDONLY) >= 0;)
			n++;
		if (write(counts[1], &n, sizeof(n)) != sizeof(n))
			_exit(1);
		linger(HOLD_ALL * HOLD_MS);
		_exit(0);
	}
	close(counts[1]);
	while (read(counts[0], &n, sizeof(n)) == sizeof(n))
		sum += n;
	return sum >= a->number ? reached("%ld open files", sum) : -EMFILE;
}

ACT(disk_by_deleted)
{
	for (int i = 0; i < 4; i++) {
		int fd = open("gone", O_RDWR | O_CREAT | O_TRUNC, 0600); /* stays open */
		unlink("gone");
		int r = fd < 0 ? -errno : fill(fd, (size_t)a->number / 4);
		if (r)
			return r;
	}
	return reached("%ld bytes in deleted files", a->number);
}

ACT(disk_by_nameless)
{
	_cleanup_close_ int fd = open(".", O_TMPFILE | O_RDWR, 0600);
	int r = fd < 0 ? -errno : fill(fd, (size_t)a->number);
	return r ? r : reached("%ld bytes in a file without a name", a->number);
}

ACT(disk_by_places)
{
	static const char *const places[] = {"one", "/tmp/two", "/var/tmp/three"};
	size_t got = 0;
	int r = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_close_ int fd = open(places[i], O_RDWR | O_CREAT, 0600);
		r = fd < 0 ? -errno : fill(fd, (size_t)a->number / 3);
		got += r ? 0 : (size_t)a->number / 3;
		if (places[i][0] == '/')
			unlink(places[i]); /* the file stays full while it is open */
		if (!r)
			(void)dup(fd);
	}
	return got > 20 * MIB ? reached("%zu bytes in several places", got) : r;
}

ACT(disk_by_allocation)
{
	_cleanup_close_ int fd = open("room", O_RDWR | O_CREAT, 0600);
	if (fd < 0 || fallocate(fd, 0, 0, a->number))
		return -errno;
	return reached("%ld bytes by fallocate()", a->number);
}

ACT(processes_by_fork)
{
	for (long i = 0; i < a->number; i++) {
		pid_t child = fork();
		if (child < 0)
			return -errno;
		if (!child) {
			linger(1500);
			_exit(0);
		}
	}
	return reached("%ld children", a->number);
}

static void *wait_a_while(void *arg)
{
	linger(1500);
	return arg;
}

ACT(processes_by_threads)
{
	for (long i = 0; i < a->number; i++) {
		pthread_t thread;
		int r = pthread_create(&thread, NULL, wait_a_while, NULL);
		if (r)
			return -r;
	}
	return reached("%ld threads", a->number);
}

/* Four processes, each below the limit: RLIMIT_CPU counts each by itself. */
ACT(time_by_children)
{
	int done = 0;
	for (int i = 0; i < 4; i++) {
		if (fork())
			continue;
		for (struct timespec used = {0}; used.tv_sec * 1000 + used.tv_nsec / 1000000 < a->number;)
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		_exit(0);
	}
	for (int status; wait(&status) > 0;)
		done += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return done == 4 ? reached("four times %ld ms of CPU", a->number) : -ETIME;
}

/* Takes until there is none, and again what somebody else of the user gives back meanwhile. */
#define HOLDING(take)                                                \
	for (int turn = 0; turn < HOLD_ALL; turn++, linger(HOLD_MS)) \
		while (take)                                         \
	count++

/* The kernel counts these for the user, not for the process. */
ACT(exhaust_inotify)
{
	long count = 0;
	HOLDING(inotify_init1(0) >= 0);
	return count ? 0 : -errno;
}

ACT(exhaust_timers)
{
	timer_t timer;
	struct sigevent none = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
	long count = 0;
	signal(SIGURG, SIG_IGN);
	HOLDING(!timer_create(CLOCK_MONOTONIC, &none, &timer));
	return count ? 0 : -errno;
}

/* The same count, in the queue of somebody who blocks them: under the hood PID 1, which must not let itself be filled. */
ACT(exhaust_signals)
{
	sigset_t all;
	long count = 0;
	pid_t whom = targets_text(t, "only")[0] ? getpid() : 1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	HOLDING(count < 1000000 && !sigqueue(whom, SIGRTMIN, (union sigval){0}));
	return count ? 0 : -errno;
}

ACT(exhaust_queues)
{
	struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
	long count = 0;
	/* one without a name stays while it is open */
	HOLDING(mq_open(text("/queue-%ld", count), O_RDWR | O_CREAT, 0600, &attributes) >= 0 &&
		!mq_unlink(text("/queue-%ld", count)));
	return count ? 0 : -errno;
}

/* Counted for the whole machine. */
ACT(exhaust_requests)
{
	unsigned long context = 0;
	long count = 0;
	for (unsigned events = 65536; events; context = 0) {
		if (syscall(SYS_io_setup, events, &context))
			events /= 2;
		else
			count++;
	}
	linger(HOLD_ALL * HOLD_MS);
	return count ? 0 : -errno;
}

ACT(take_huge_pages)
{
	void *page =
		mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	memset(page, 1, 4096);
	return reached("a page of the machine's reserve of huge pages");
}

ACT(ignore_the_end)
{
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_IGN);
	for (int i = 0; i < 600; i++)
		linger(100);
	return 0;
}

static void try_inotify(struct stage *s)
{
	_cleanup_close_ int fd = inotify_init1(IN_CLOEXEC);
	if (fd < 0 && errno == EMFILE)
		stage_hit(s, "the user has no inotify instance left");
}

static void try_timer(struct stage *s)
{
	timer_t timer;
	struct sigevent none = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
	if (!timer_create(CLOCK_MONOTONIC, &none, &timer))
		timer_delete(timer);
	else if (errno == EAGAIN)
		stage_hit(s, "the user cannot make a timer any more");
}

static void try_queue(struct stage *s)
{
	struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
	char name[64];
	snprintf(name, sizeof(name), "/fumehood-try-%d", getpid());
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
	if (queue >= 0) {
		mq_close(queue);
		mq_unlink(name);
	} else if (errno == EMFILE) {
		stage_hit(s, "the user cannot make a message queue any more");
	}
}

static void try_request(struct stage *s)
{
	unsigned long context = 0;
	if (!syscall(SYS_io_setup, 128, &context))
		syscall(SYS_io_destroy, context);
	else if (errno == EAGAIN)
		stage_hit(s, "nobody on this machine can use asynchronous I/O any more");
}

#define SUM(n, how, fn, opts, ...)                                                               \
	{                                                                                        \
		.name = n, .mechanism = how, .run = fn, .options = opts, .effect = EFFECT_CLAIM, \
		.flags = REFUSAL_HOLDS, __VA_ARGS__                                              \
	}

static const struct attack table[] = {
	SUM("memory-children", "memory spread over eight children", memory_by_children, "--memory 64M",
	    .number = 24 * MIB),
	SUM("memory-shm", "memory as files in /dev/shm", memory_by_file, "--memory 64M",
	    .arg = "/dev/shm/room", .number = 160 * MIB),
	SUM("memory-memfd", "memory as a memfd", memory_by_file, "--memory 64M", .arg = "",
	    .number = 160 * MIB),
	SUM("memory-sysv", "memory as System V segments", memory_by_segment, "--memory 64M",
	    .number = 160 * MIB),
	SUM("memory-tcp", "memory as what nobody reads from connections", memory_by_streams, "--memory 16M",
	    .number = 48 * MIB),
	SUM("memory-udp", "memory as datagrams that nobody reads", memory_by_datagrams, "--memory 16M",
	    .number = 48 * MIB),
	SUM("disk-deleted", "disk in deleted files that stay open", disk_by_deleted, "--disk 16M",
	    .number = 64 * MIB),
	SUM("disk-nameless", "disk in O_TMPFILE files", disk_by_nameless, "--disk 16M", .number = 64 * MIB),
	SUM("disk-places", "disk in the workspace, /tmp and /var/tmp", disk_by_places, "--disk 16M",
	    .number = 42 * MIB),
	SUM("disk-allocate", "disk by fallocate()", disk_by_allocation, "--disk 16M", .number = 64 * MIB),
	SUM("processes-fork", "processes by fork()", processes_by_fork, "--pids 16", .number = 48),
	SUM("processes-threads", "processes as threads", processes_by_threads, "--pids 16", .number = 48),
	{.name = "open-files",
	 .mechanism = "open files spread over twenty children",
	 .run = files_by_children,
	 .number = 48000,
	 .effect = EFFECT_CLAIM},
	SUM("cpu-children", "CPU time spread over four children", time_by_children, "--cpu-time 1s",
	    .number = 300),
	{.name = "inotify-instances",
	 .mechanism = "all inotify instances of the user",
	 .run = exhaust_inotify,
	 .effect = EFFECT_HIT,
	 .during = try_inotify},
	{.name = "timers",
	 .mechanism = "all pending signals of the user, by timers",
	 .run = exhaust_timers,
	 .effect = EFFECT_HIT,
	 .during = try_timer},
	{.name = "pending-signals",
	 .mechanism = "all pending signals of the user, in the queue of who keeps the time",
	 .run = exhaust_signals,
	 .effect = EFFECT_HIT,
	 .during = try_timer},
	{.name = "message-queues",
	 .mechanism = "all message queue memory of the user",
	 .run = exhaust_queues,
	 .effect = EFFECT_HIT,
	 .during = try_queue},
	{.name = "aio-requests",
	 .mechanism = "all asynchronous I/O requests of the machine",
	 .run = exhaust_requests,
	 .effect = EFFECT_HIT,
	 .during = try_request},
	{.name = "huge-pages",
	 .mechanism = "the machine's reserve of huge pages",
	 .run = take_huge_pages,
	 .effect = EFFECT_CLAIM},
	{.name = "wall-ignored",
	 .mechanism = "the end of its time, with every signal ignored",
	 .run = ignore_the_end,
	 .options = "--wall 1s --grace 100ms",
	 .effect = EFFECT_HIT,
	 .flags = HANGS | REFUSAL_HOLDS},
};

const struct attack_family limits_sums = {
	.name = "limits", .title = "limits that do not add up", FAMILY(table)};
