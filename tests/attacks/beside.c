/*
 * Another analysis. Beside the attacker it offers what it has to whoever asks: sockets, shared memory, keys, locks; it
 * reads its secret from stdin and says "READY". Before the attacker it leaves traces everywhere it can, and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "act.h"
#include "dial.h"
#include "roles.h"

static char secret[64];
static volatile sig_atomic_t signalled;

static void note_signal(int sig)
{
	(void)sig;
	signalled = 1;
}

static void put(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT, 0666);
	if (fd >= 0 && write(fd, secret, strlen(secret)) > 0)
		fchmod(fd, 0666);
}

static void share_memory(const struct targets *t)
{
	int id = shmget((key_t)targets_number(t, "beside.ipc"), 4096, IPC_CREAT | 0666);
	char *page = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	if (page != (void *)-1)
		strcpy(page, secret);
}

static void share_queue(const struct targets *t)
{
	struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64};
	mqd_t queue = mq_open(text("/%s", targets_text(t, "beside.object")), O_RDWR | O_CREAT | O_NONBLOCK,
			      0666, &attributes);
	if (queue >= 0)
		mq_send(queue, secret, strlen(secret), 0);
}

static void share_key(const struct targets *t)
{
	long key = syscall(SYS_add_key, "user", targets_text(t, "beside.key"), secret, strlen(secret),
			   KEY_SPEC_USER_KEYRING);
	if (key > 0) {
		syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f0000);
		syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, 600);
	}
}

static void share_files(const struct targets *t)
{
	put("secret");
	put(text("/tmp/%s", targets_text(t, "beside.object")));
	put(text("/var/tmp/%s", targets_text(t, "beside.object")));
	put(text("/dev/shm/%s", targets_text(t, "beside.object")));
	chmod(".", 0755);
}

static int listen_unix(const char *name, int type)
{
	union address at;
	socklen_t size = address_unix(&at, name);
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, &at.any, size) || (type == SOCK_STREAM && listen(fd, 8)))
		return fd_close(fd);
	return fd;
}

static int listen_inet(const char *host, int port, int type)
{
	union address at;
	socklen_t size = address_inet(&at, host, port);
	int fd = socket(at.any.sa_family, type | SOCK_NONBLOCK, 0), yes = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, &at.any, size) || (type == SOCK_STREAM && listen(fd, 8)))
		return fd_close(fd);
	return fd;
}

/* The secret, and with it a descriptor of a file of the workspace, which outlives its collection. */
static void hand_over(int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {secret, strlen(secret)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	_cleanup_close_ int file = open("secret", O_RDWR);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &file, sizeof(file));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		send(fd, secret, strlen(secret), MSG_NOSIGNAL);
}

static void serve(int *fds, size_t count, const char *watched)
{
	for (;;) {
		struct pollfd ready[8];
		for (size_t i = 0; i < count; i++)
			ready[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
		poll(ready, count, 20);
		fd_close(open(watched, O_RDONLY)); /* for those who watch */
		if (signalled)
			puts("HIT reached by a signal");
		signalled = 0;
		fflush(stdout);
		for (size_t i = 0; i < count; i++) {
			if (!(ready[i].revents & POLLIN))
				continue;
			_cleanup_close_ int peer = accept(fds[i], NULL, NULL);
			if (peer >= 0) {
				hand_over(peer);
				puts("HIT reached by a connection");
			} else {
				char words[64];
				if (recv(fds[i], words, sizeof(words), 0) > 0)
					puts("HIT reached by a datagram");
			}
		}
	}
}

static int take_secret(void)
{
	ssize_t n = read(STDIN_FILENO, secret, sizeof(secret) - 1);
	return n > 0 ? 0 : -EIO;
}

int role_beside(int argc, char **argv)
{
	static struct targets t;
	(void)argc;
	(void)argv;
	if (take_secret() || targets_load(&t, "targets"))
		return 1;
	signal(SIGUSR1, note_signal);
	share_memory(&t);
	share_queue(&t);
	share_key(&t);
	share_files(&t);
	int locked = open(targets_text(&t, "beside.locked"), O_RDONLY);
	struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	if (locked >= 0 && (flock(locked, LOCK_EX) || fcntl(locked, F_OFD_SETLK, &range)))
		puts("no lock");
	int port = (int)targets_number(&t, "beside.port");
	const char *name = targets_text(&t, "beside.name");
	char datagrams[128];
	snprintf(datagrams, sizeof(datagrams), "%s-dgram", name);
	int fds[] = {listen_unix(name, SOCK_STREAM),	      listen_unix(datagrams, SOCK_DGRAM),
		     listen_unix("beside.sock", SOCK_STREAM), listen_inet("127.0.0.1", port, SOCK_STREAM),
		     listen_inet("::1", port, SOCK_STREAM),   listen_inet("127.0.0.1", port, SOCK_DGRAM)};
	chmod("beside.sock", 0777);
	puts("READY");
	fflush(stdout);
	serve(fds, ARRAY_SIZE(fds), targets_text(&t, "beside.watched"));
	return 0;
}

int role_before(int argc, char **argv)
{
	static struct targets t;
	(void)argc;
	(void)argv;
	if (take_secret() || targets_load(&t, "targets"))
		return 1;
	share_memory(&t);
	share_queue(&t);
	share_key(&t);
	share_files(&t);
	printf("READY %s\n", secret); /* for the ledger */
	fflush(stdout);
	return 0;
}
