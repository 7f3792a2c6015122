/*
 * The platform's services, all in one process: whoever says something to one of them is a hit, and gets the secret
 * for an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* It uses what only <sys/socket.h> declares. */
#include <sys/socket.h>

#include <linux/vm_sockets.h>

#include "dial.h"
#include "platform.h"

enum { SERVICES_MAX = 64 };

struct server {
	struct platform *platform;
	struct pollfd poll[SERVICES_MAX];
	char name[SERVICES_MAX][48];
	bool listening[SERVICES_MAX];
	nfds_t count;
	int fifo_out;	  /* holds the secret for whoever reads */
	int talk;	  /* says the secret over loopback */
	union address to; /* to itself */
	socklen_t to_size;
};

void board_hit(struct board *b, const char *what)
{
	if (__atomic_fetch_add(&b->hits, 1, __ATOMIC_SEQ_CST) == 0)
		snprintf(b->first, sizeof(b->first), "%s", what);
}

static void server_watch(struct server *s, int fd, const char *name, bool listening)
{
	if (fd < 0 || s->count == SERVICES_MAX) {
		if (fd >= 0)
			close(fd);
		return;
	}
	s->poll[s->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	snprintf(s->name[s->count], sizeof(s->name[0]), "%s", name);
	s->listening[s->count++] = listening;
}

static void serve_unix(struct server *s, int type, const char *name, const char *what)
{
	union address at;
	socklen_t size = address_unix(&at, name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, &at.any, size) || (type != SOCK_DGRAM && listen(fd, 16))) {
		fd_close(fd);
		return;
	}
	if (name[0] == '/')
		chmod(name, 0777);
	server_watch(s, fd, what, type != SOCK_DGRAM);
}

/* Notes the port that the kernel chose under `key`. */
static void serve_inet(struct server *s, int type, const char *host, const char *key)
{
	union address at;
	socklen_t size = address_inet(&at, host, 0);
	int fd = socket(at.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, &at.any, size) || (type == SOCK_STREAM && listen(fd, 16)) ||
	    getsockname(fd, &at.any, &size)) {
		fd_close(fd);
		return;
	}
	int port = ntohs(at.any.sa_family == AF_INET ? at.in.sin_port : at.in6.sin6_port);
	targets_set(&s->platform->targets, key, "%d", port);
	server_watch(s, fd, key, type == SOCK_STREAM);
}

static void serve_vsock(struct server *s)
{
	struct sockaddr_vm at = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = VMADDR_PORT_ANY};
	socklen_t size = sizeof(at);
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 4) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		fd_close(fd);
		return;
	}
	targets_set(&s->platform->targets, "vsock", "%u", at.svm_port);
	server_watch(s, fd, "vsock", true);
}

static void serve_fifos(struct server *s)
{
	static const char *const names[] = {"data.fifo", "run.fifo"};
	const struct targets *t = &s->platform->targets;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		mkfifo(targets_text(t, names[i]), 0666);
		chmod(targets_text(t, names[i]), 0666);
		server_watch(s, open(targets_text(t, names[i]), O_RDWR | O_NONBLOCK | O_CLOEXEC), names[i],
			     false);
	}
	mkfifo(targets_text(t, "data.fifo-out"), 0666);
	chmod(targets_text(t, "data.fifo-out"), 0666);
	s->fifo_out = open(targets_text(t, "data.fifo-out"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static void hold_locks(struct server *s)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(targets_text(&s->platform->targets, "data.locked"), O_RDWR | O_CLOEXEC);
	if (fd >= 0) { /* held until the end of the process */
		flock(fd, LOCK_EX);
		fcntl(fd, F_OFD_SETLK, &lock);
	}
}

static void server_open(struct server *s)
{
	const struct targets *t = &s->platform->targets;
	static const struct {
		int type;
		const char *key;
	} unix_services[] = {{SOCK_STREAM, "run.stream"},    {SOCK_STREAM, "data.stream"},
			     {SOCK_DGRAM, "data.dgram"},     {SOCK_SEQPACKET, "data.seqpacket"},
			     {SOCK_STREAM, "docs.stream"},   {SOCK_STREAM, "abstract.stream"},
			     {SOCK_DGRAM, "abstract.dgram"}, {SOCK_SEQPACKET, "abstract.seqpacket"}};
	for (size_t i = 0; i < ARRAY_SIZE(unix_services); i++)
		serve_unix(s, unix_services[i].type, targets_text(t, unix_services[i].key),
			   unix_services[i].key);
	char hidden[128]; /* a name that tells the secret to whoever can list the host's sockets */
	snprintf(hidden, sizeof(hidden), "@fumehood-attack-%s", s->platform->nonce);
	serve_unix(s, SOCK_STREAM, hidden, "the hidden name");
	serve_inet(s, SOCK_STREAM, "127.0.0.1", "tcp4");
	serve_inet(s, SOCK_STREAM, "::1", "tcp6");
	serve_inet(s, SOCK_STREAM, "0.0.0.0", "tcp.any");
	serve_inet(s, SOCK_DGRAM, "127.0.0.1", "udp4");
	serve_inet(s, SOCK_DGRAM, "::1", "udp6");
	serve_vsock(s);
	serve_fifos(s);
	hold_locks(s);
	s->talk = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	s->to_size = address_inet(&s->to, "127.0.0.1", 9);
}

static void server_answer(struct server *s, nfds_t i)
{
	struct platform *p = s->platform;
	int fd = s->poll[i].fd;
	if (s->listening[i]) {
		server_watch(s, accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), s->name[i], false);
		return;
	}
	char words[256];
	union address from;
	socklen_t size = sizeof(from);
	ssize_t n = recvfrom(fd, words, sizeof(words), 0, &from.any, &size);
	if (n < 0 && errno == ENOTSOCK)
		n = read(fd, words, sizeof(words));
	if (n > 0) {
		board_hit(p->board, s->name[i]);
		sendto(fd, p->nonce, strlen(p->nonce), MSG_NOSIGNAL, size ? &from.any : NULL, size);
		return;
	}
	if (n == 0 || errno != EAGAIN) {
		close(fd);
		s->poll[i].fd = -1;
	}
}

static void server_compact(struct server *s)
{
	nfds_t kept = 0;
	for (nfds_t i = 0; i < s->count; i++) {
		if (s->poll[i].fd < 0)
			continue;
		s->poll[kept] = s->poll[i];
		s->listening[kept] = s->listening[i];
		if (kept != i)
			memcpy(s->name[kept], s->name[i], sizeof(s->name[0]));
		kept++;
	}
	s->count = kept;
}

/* Every 20 ms: the secret once more over loopback and into the FIFO, if the last one was taken. */
static void server_talk(struct server *s)
{
	struct pollfd full = {.fd = s->fifo_out, .events = POLLIN};
	sendto(s->talk, s->platform->nonce, 32, MSG_NOSIGNAL, &s->to.any, s->to_size);
	if (poll(&full, 1, 0) == 0 && write(s->fifo_out, s->platform->nonce, 32) < 0)
		return;
}

/* `tell` gets the ports as key=value lines, then end of file. */
void server_main(struct platform *p, int tell)
{
	struct server s = {.platform = p, .fifo_out = -1};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	server_open(&s);
	FILE *out = fdopen(tell, "w");
	for (size_t i = 0; i < p->targets.count; i++)
		fprintf(out, "%s=%s\n", p->targets.pair[i].key, p->targets.pair[i].value);
	fclose(out);
	for (;;) {
		int n = poll(s.poll, s.count, 20);
		nfds_t count = s.count;
		for (nfds_t i = 0; n > 0 && i < count; i++)
			if (s.poll[i].revents)
				server_answer(&s, i);
		server_compact(&s);
		server_talk(&s);
	}
}
