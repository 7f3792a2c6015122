/*
 * Services: unix sockets. A read-only mount does not stop connect(), a network namespace does not hold what has a
 * path, and filtering socket() forgets socketpair(). The server counts every greeting and answers with the secret.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "act.h"
#include "dial.h"
#include "pgwire.h"
#include "stage.h"

static int dial_path(const char *path, int type)
{
	union address to;
	socklen_t size = address_unix(&to, path);
	return dial(type, 0, &to, size);
}

ACT(connect_path)
{
	return dial_path(targets_text(t, a->arg), (int)a->number);
}

ACT(send_datagram)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, a->arg));
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	return fd < 0 ? -errno : dial_send(fd, &to, size);
}

static int half_of_pair(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return -errno;
	close(pair[1]);
	return pair[0];
}

ACT(pair_connect)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, a->arg));
	_cleanup_close_ int fd = half_of_pair();
	if (fd < 0)
		return fd;
	return connect(fd, &to.any, size) ? -errno : dial_greet(fd);
}

ACT(pair_send)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, a->arg));
	_cleanup_close_ int fd = half_of_pair();
	return fd < 0 ? fd : dial_send(fd, &to, size);
}

/* sendmmsg() is another system call with the same power. */
ACT(pair_send_many)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, a->arg));
	struct iovec part = {.iov_base = (void *)"hello\n", .iov_len = 6};
	struct mmsghdr message = {
		.msg_hdr = {.msg_name = &to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1}};
	_cleanup_close_ int fd = half_of_pair();
	return fd < 0 ? fd : result(sendmmsg(fd, &message, 1, MSG_NOSIGNAL));
}

ACT(connect_by_descriptor)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_PATH);
	return fd < 0 ? -errno : dial_path(text("/proc/self/fd/%d", fd), SOCK_STREAM);
}

ACT(connect_by_hard_link)
{
	if (link(targets_text(t, a->arg), "mine"))
		return -errno;
	return dial_path("mine", SOCK_STREAM);
}

ACT(connect_by_link)
{
	if (symlink(targets_text(t, a->arg), "mine"))
		return -errno;
	return dial_path("mine", SOCK_STREAM);
}

ACT(connect_by_directory)
{
	if (chdir(targets_text(t, a->arg)))
		return -errno;
	return dial_path("stream.sock", SOCK_STREAM);
}

static int connect_in_root(const struct targets *t, pid_t pid)
{
	if (chdir(text("/proc/%d/root", pid)))
		return -errno;
	return dial_path(targets_text(t, "run.stream") + 1, SOCK_STREAM);
}

ACT(connect_through_roots)
{
	return each_process(connect_in_root, t);
}

/* A name that the platform would look for: whoever comes talks to the analysis. */
ACT(squat_abstract)
{
	union address at;
	socklen_t size = address_unix(&at, targets_text(t, a->arg));
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, &at.any, size) || listen(fd, 1))
		return -errno;
	linger(250);
	return 0;
}

static void visit_squatter(struct stage *s)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(stage_targets(s), "abstract.free"));
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, &to.any, size))
		stage_hit(s, "the platform reached the analysis by a name of its own");
}

/* Sockets that many hosts have, and that give away the host. */
ACT(connect_well_known)
{
	static const char *const paths[] = {"/run/dbus/system_bus_socket",
					    "/var/run/docker.sock",
					    "/run/containerd/containerd.sock",
					    "/run/systemd/private",
					    "/run/systemd/journal/stdout",
					    "/run/systemd/notify",
					    "/dev/log",
					    "/tmp/.X11-unix/X0",
					    "@/tmp/.X11-unix/X0",
					    "/var/run/postgresql/.s.PGSQL.5432",
					    "/var/run/nscd/socket",
					    "/run/udev/control",
					    "/run/munge/munge.socket.2"};
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		union address to;
		socklen_t size = address_unix(&to, paths[i]);
		for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
			_cleanup_close_ int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
			if (fd >= 0 && !connect(fd, &to.any, size))
				return reached("%s answers", paths[i]);
		}
	}
	return -ENOENT;
}

ACT(insert_by_socket)
{
	union address to;
	socklen_t size = address_unix(&to, targets_text(t, a->arg));
	return pgwire_execute(&to, size, "INSERT INTO victims VALUES ('by socket')", NULL, 0);
}

#define UNIX(n, how, fn, target, ...)                                                                    \
	{                                                                                                \
		.name = n, .mechanism = how, .run = fn, .arg = target, .effect = EFFECT_HIT, __VA_ARGS__ \
	}

static const struct attack table[] = {
	UNIX("unix-stream", "a stream socket outside the inputs, by path", connect_path, "run.stream",
	     .number = SOCK_STREAM),
	UNIX("unix-data-stream", "a stream socket below data/, by its own path", connect_path, "data.stream",
	     .number = SOCK_STREAM),
	UNIX("unix-local-stream", "a stream socket below data/ in the working directory", connect_path,
	     "local.stream", .number = SOCK_STREAM),
	UNIX("unix-data-dgram", "a datagram socket below data/, connected", connect_path, "data.dgram",
	     .number = SOCK_DGRAM),
	UNIX("unix-data-sendto", "a datagram socket below data/, by sendto()", send_datagram, "data.dgram"),
	UNIX("unix-data-seqpacket", "a seqpacket socket below data/", connect_path, "data.seqpacket",
	     .number = SOCK_SEQPACKET),
	UNIX("unix-docs-stream", "a stream socket below docs/", connect_path, "docs.stream",
	     .number = SOCK_STREAM),
	UNIX("pair-connect", "half of a datagram socketpair(), connected to a path", pair_connect,
	     "data.dgram"),
	UNIX("pair-sendto", "half of a datagram socketpair(), sendto() a path", pair_send, "local.dgram"),
	UNIX("pair-sendmmsg", "half of a datagram socketpair(), sendmmsg() to a path", pair_send_many,
	     "data.dgram"),
	UNIX("pair-abstract", "half of a datagram socketpair(), sendto() an abstract name", pair_send,
	     "abstract.dgram"),
	UNIX("unix-proc-fd", "connect() to /proc/self/fd/N of an O_PATH socket", connect_by_descriptor,
	     "data.stream"),
	UNIX("unix-hard-link", "a hard link of a socket of data/ in the workspace", connect_by_hard_link,
	     "local.stream"),
	UNIX("unix-symlink", "a link in the workspace to a socket of data/", connect_by_link, "data.stream"),
	UNIX("unix-chdir", "connect() by a relative name in data/", connect_by_directory, "data"),
	UNIX("unix-proc-root", "a socket below /proc/PID/root", connect_through_roots, ""),
	UNIX("abstract-stream", "an abstract stream socket", connect_path, "abstract.stream",
	     .number = SOCK_STREAM),
	UNIX("abstract-dgram", "an abstract datagram socket", connect_path, "abstract.dgram",
	     .number = SOCK_DGRAM),
	UNIX("abstract-seqpacket", "an abstract seqpacket socket", connect_path, "abstract.seqpacket",
	     .number = SOCK_SEQPACKET),
	UNIX("abstract-squat", "an abstract name that the platform would call", squat_abstract,
	     "abstract.free", .during = visit_squatter),
	{.name = "well-known-sockets",
	 .mechanism = "sockets of D-Bus, Docker, systemd, X11, PostgreSQL, …",
	 .run = connect_well_known,
	 .effect = EFFECT_CLAIM},
	UNIX("postgres-socket", "PostgreSQL by its socket in /run: a row", insert_by_socket, "pg.run",
	     .judge = stage_judge_rows, .flags = WITH_POSTGRES),
	UNIX("postgres-data-socket", "PostgreSQL by its socket below data/: a row", insert_by_socket,
	     "pg.data", .judge = stage_judge_rows, .flags = WITH_POSTGRES),
	UNIX("postgres-local-socket", "PostgreSQL by its socket below data/ in the working directory: a row",
	     insert_by_socket, "pg.local", .judge = stage_judge_rows, .flags = WITH_POSTGRES),
};

const struct attack_family services_unix = {
	.name = "services", .title = "PostgreSQL and every other service", FAMILY(table)};
