/*
 * Services: the network and the socket families that ignore network namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/ethernet.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* It uses what only <sys/socket.h> declares. */
#include <sys/socket.h>

#include <linux/vm_sockets.h>

#include "act.h"
#include "dial.h"
#include "pgwire.h"
#include "stage.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* arg is "HOST key-of-port"; a host of "address" is the machine's own outer address. */
static socklen_t where(const struct targets *t, const struct attack *a, union address *ret)
{
	char host[64], port[32];
	if (sscanf(a->arg, "%63s %31s", host, port) != 2)
		return 0;
	if (!strcmp(host, "address"))
		snprintf(host, sizeof(host), "%s", targets_text(t, "address"));
	return address_inet(ret, host, (int)targets_number(t, port));
}

ACT(connect_tcp)
{
	union address to;
	socklen_t size = where(t, a, &to);
	return size ? dial(SOCK_STREAM, (int)a->number, &to, size) : -EADDRNOTAVAIL;
}

ACT(connect_udp)
{
	union address to;
	socklen_t size = where(t, a, &to);
	return size ? dial(SOCK_DGRAM, (int)a->number, &to, size) : -EADDRNOTAVAIL;
}

ACT(send_udp)
{
	union address to;
	socklen_t size = where(t, a, &to);
	_cleanup_close_ int fd = socket(to.any.sa_family, SOCK_DGRAM, 0);
	return fd < 0 ? -errno : dial_send(fd, &to, size);
}

ACT(send_fast_open)
{
	union address to;
	socklen_t size = where(t, a, &to);
	_cleanup_close_ int fd = socket(to.any.sa_family, SOCK_STREAM, 0);
	if (fd < 0 || sendto(fd, "hello\n", 6, MSG_FASTOPEN | MSG_NOSIGNAL, &to.any, size) != 6)
		return -errno;
	return dial_greet(fd);
}

/* Whoever comes from the host to this port talks to the analysis. */
ACT(listen_tcp)
{
	union address at;
	socklen_t size = address_inet(&at, "127.0.0.1", (int)targets_number(t, a->arg));
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM, 0);
	int yes = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, &at.any, size) || listen(fd, 1))
		return -errno;
	linger(250);
	return 0;
}

static void visit_port(struct stage *s)
{
	union address to;
	socklen_t size = address_inet(&to, "127.0.0.1", (int)targets_number(stage_targets(s), "port.free"));
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, &to.any, size))
		stage_hit(s, "the host reached a port of the analysis");
}

ACT(ping_raw)
{
	struct icmphdr echo = {.type = ICMP_ECHO, .checksum = (uint16_t)~htons(ICMP_ECHO << 8)};
	union address to;
	socklen_t size = address_inet(&to, targets_text(t, "address"), 0);
	_cleanup_close_ int fd = socket(AF_INET, (int)a->number | SOCK_NONBLOCK, IPPROTO_ICMP);
	if (fd < 0 || sendto(fd, &echo, sizeof(echo), 0, &to.any, size) < 0)
		return -errno;
	struct pollfd answer = {.fd = fd, .events = POLLIN};
	return poll(&answer, 1, 300) > 0 ? reached("the host answers an echo request") : -ETIMEDOUT;
}

/* The platform says the secret over its own loopback; a packet socket hears it. */
ACT(sniff)
{
	_cleanup_close_ int fd = socket(AF_PACKET, (int)a->number | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (fd < 0)
		return -errno;
	/* The host's own traffic may come in between. */
	for (int idle = 0, frames = 0; idle < 40 && frames < 1000;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		char frame[2048];
		bool heard = poll(&ready, 1, 20) > 0;
		idle += !heard;
		frames += heard;
		if (!heard)
			continue;
		ssize_t n = recv(fd, frame, sizeof(frame), 0);
		if (n > 0)
			show(frame, (size_t)n);
	}
	return 0;
}

static int netlink_ask(int protocol, const void *request, size_t size)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW, protocol);
	if (fd < 0 || sendto(fd, request, size, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	char answer[16384];
	for (int i = 0; i < 64; i++) {
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (n <= 0)
			break;
		show(answer, (size_t)n);
	}
	return 0;
}

ACT(list_sockets_netlink)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req ask;
	} request = {.head = {.nlmsg_len = sizeof(request),
			      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .ask = {.sdiag_family = AF_UNIX, .udiag_states = ~0U, .udiag_show = UDIAG_SHOW_NAME}};
	return netlink_ask(NETLINK_SOCK_DIAG, &request, sizeof(request));
}

ACT(open_netlink)
{
	struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = 1};
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW, (int)a->number);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	return reached("netlink %s", a->arg);
}

ACT(list_sockets_proc)
{
	return show_file(targets_text(t, a->arg));
}

/* AF_VSOCK knows no network namespace: the hypervisor, or a peer on this machine, is one connect() away. */
ACT(connect_vsock)
{
	struct sockaddr_vm to = {.svm_family = AF_VSOCK,
				 .svm_cid = (unsigned)a->number,
				 .svm_port = (unsigned)targets_number(t, "vsock")};
	_cleanup_close_ int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS || errno == ECONNRESET)
		return reached("vsock to %u", to.svm_cid);
	return -errno;
}

/* Keys of 32 and 16 zero bytes, as authenc wants them: an rtattr with the second one's size, then both. */
static int set_key(int fd)
{
	static const unsigned char key[8 + 48] = {8, 0, 1, 0, 0, 0, 0, 16};
	return setsockopt(fd, 279 /* SOL_ALG */, ALG_SET_KEY, key, sizeof(key));
}

/* An algorithm socket fed by splice() with pages of the page cache that one may only read. */
ACT(splice_algorithm)
{
	struct sockaddr_alg at = {.salg_family = AF_ALG};
	strcpy((char *)at.salg_type, a->arg);
	strcpy((char *)at.salg_name, a->number ? "authencesn(hmac(sha256),cbc(aes))" : "sha256");
	_cleanup_close_ int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || (a->number && set_key(fd)))
		return -errno;
	_cleanup_close_ int operation = accept(fd, NULL, NULL);
	_cleanup_close_ int input = open(targets_text(t, "data.file"), O_RDONLY);
	int ends[2];
	if (operation < 0 || input < 0 || pipe(ends))
		return -errno;
	if (splice(input, NULL, ends[1], NULL, 16, 0) < 0 ||
	    splice(ends[0], NULL, operation, NULL, 16, 0) < 0)
		return -errno;
	return reached("pages of an input went into an AF_ALG socket");
}

ACT(open_family)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		_cleanup_close_ int fd = socket((int)a->number, types[i], 0);
		if (fd >= 0)
			return reached("a socket of family %s", a->arg);
	}
	return -errno;
}

/* Asking for a family loads its module; a control that changes the host is not worth it. */
static int family_is_loaded(struct stage *s)
{
	return stage_needs_protocol(s, stage_attack(s)->arg);
}

static int join_network(const struct targets *t, pid_t pid)
{
	_cleanup_close_ int fd = open(text("/proc/%d/ns/net", pid), O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		return -errno;
	union address to;
	socklen_t size = address_inet(&to, "127.0.0.1", (int)targets_number(t, "tcp4"));
	return dial(SOCK_STREAM, 0, &to, size);
}

ACT(join_networks)
{
	return each_process(join_network, t);
}

ACT(insert_by_tcp)
{
	union address to;
	socklen_t size = where(t, a, &to);
	return pgwire_execute(&to, size, "INSERT INTO victims VALUES ('by tcp')", NULL, 0);
}

#define NET(n, how, fn, target, ...)                                                                     \
	{                                                                                                \
		.name = n, .mechanism = how, .run = fn, .arg = target, .effect = EFFECT_HIT, __VA_ARGS__ \
	}
#define CLAIM(n, how, fn, ...)                                                              \
	{                                                                                   \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_CLAIM, __VA_ARGS__ \
	}

static const struct attack table[] = {
	NET("tcp-v4", "TCP to 127.0.0.1", connect_tcp, "127.0.0.1 tcp4"),
	NET("tcp-v4-other-loopback", "TCP to 127.8.9.10, also loopback", connect_tcp, "127.8.9.10 tcp.any"),
	NET("tcp-v4-zero", "TCP to 0.0.0.0, which means this host", connect_tcp, "0.0.0.0 tcp.any"),
	NET("tcp-v6", "TCP to ::1", connect_tcp, "::1 tcp6"),
	NET("tcp-v6-mapped", "TCP to ::ffff:127.0.0.1 through an IPv6 socket", connect_tcp,
	    "::ffff:127.0.0.1 tcp4"),
	NET("tcp-address", "TCP to the machine's own outer address", connect_tcp, "address tcp.any"),
	NET("tcp-fast-open", "sendto(MSG_FASTOPEN), a connection without connect()", send_fast_open,
	    "127.0.0.1 tcp4"),
	NET("mptcp", "multipath TCP", connect_tcp, "127.0.0.1 tcp4", .number = IPPROTO_MPTCP),
	NET("udp-v4", "UDP to 127.0.0.1", connect_udp, "127.0.0.1 udp4"),
	NET("udp-v6", "UDP to ::1", connect_udp, "::1 udp6"),
	NET("udp-sendto", "UDP by sendto() alone", send_udp, "127.0.0.1 udp4"),
	NET("tcp-listen", "a port that the host can call", listen_tcp, "port.free", .during = visit_port),
	NET("join-network", "setns() into another process's network", join_networks, "", .flags = ROOT_ONLY),
	NET("postgres-tcp", "PostgreSQL over TCP: a row", insert_by_tcp, "127.0.0.1 pg.port",
	    .judge = stage_judge_rows, .flags = WITH_POSTGRES),
	NET("postgres-tcp6", "PostgreSQL over TCP, IPv6: a row", insert_by_tcp, "::1 pg.port",
	    .judge = stage_judge_rows, .flags = WITH_POSTGRES),
	CLAIM("icmp-raw", "a raw ICMP socket to the host", ping_raw, .number = SOCK_RAW),
	CLAIM("icmp-dgram", "an unprivileged ICMP socket to the host", ping_raw, .number = SOCK_DGRAM),
	{.name = "packet-sniff",
	 .mechanism = "AF_PACKET, listening to the host's loopback",
	 .run = sniff,
	 .number = SOCK_RAW,
	 .effect = EFFECT_SECRET,
	 .flags = ROOT_ONLY},
	{.name = "packet-sniff-dgram",
	 .mechanism = "AF_PACKET of type SOCK_DGRAM",
	 .run = sniff,
	 .number = SOCK_DGRAM,
	 .effect = EFFECT_SECRET,
	 .flags = ROOT_ONLY},
	{.name = "netlink-diag",
	 .mechanism = "NETLINK_SOCK_DIAG: the names of the host's sockets",
	 .run = list_sockets_netlink,
	 .effect = EFFECT_SECRET},
	{.name = "proc-net-unix",
	 .mechanism = "/proc/net/unix: the names of the host's sockets",
	 .run = list_sockets_proc,
	 .arg = "proc.unix",
	 .effect = EFFECT_SECRET},
	CLAIM("netlink-uevent", "NETLINK_KOBJECT_UEVENT, which knows no network namespace", open_netlink,
	      .arg = "kobject uevent", .number = NETLINK_KOBJECT_UEVENT),
	CLAIM("netlink-audit", "NETLINK_AUDIT", open_netlink, .arg = "audit", .number = NETLINK_AUDIT,
	      .flags = ROOT_ONLY),
	CLAIM("netlink-connector", "NETLINK_CONNECTOR: every fork of the host", open_netlink,
	      .arg = "connector", .number = NETLINK_CONNECTOR),
	CLAIM("netlink-crypto", "NETLINK_CRYPTO", open_netlink, .arg = "crypto", .number = NETLINK_CRYPTO),
	CLAIM("netlink-generic", "NETLINK_GENERIC", open_netlink, .arg = "generic",
	      .number = NETLINK_GENERIC),
	CLAIM("vsock-host", "AF_VSOCK to the hypervisor", connect_vsock, .number = VMADDR_CID_HOST),
	CLAIM("vsock-local", "AF_VSOCK to this machine", connect_vsock, .number = 1),
	CLAIM("alg-hash", "AF_ALG: splice() of an input into a hash", splice_algorithm, .arg = "hash"),
	CLAIM("alg-aead", "AF_ALG: page-cache writes through authencesn", splice_algorithm, .arg = "aead",
	      .number = 1),
	CLAIM("family-packet", "a socket of AF_PACKET", open_family, .arg = "PACKET", .number = AF_PACKET,
	      .flags = ROOT_ONLY, .prepare = family_is_loaded),
	CLAIM("family-xdp", "a socket of AF_XDP", open_family, .arg = "XDP", .number = AF_XDP,
	      .flags = ROOT_ONLY, .prepare = family_is_loaded),
	CLAIM("family-key", "a socket of AF_KEY", open_family, .arg = "KEY", .number = AF_KEY,
	      .flags = ROOT_ONLY, .prepare = family_is_loaded),
	CLAIM("family-tipc", "a socket of AF_TIPC", open_family, .arg = "TIPC", .number = AF_TIPC,
	      .prepare = family_is_loaded),
	CLAIM("family-rds", "a socket of AF_RDS", open_family, .arg = "RDS", .number = AF_RDS,
	      .prepare = family_is_loaded),
	CLAIM("family-bluetooth", "a socket of AF_BLUETOOTH", open_family, .arg = "HCI",
	      .number = AF_BLUETOOTH, .prepare = family_is_loaded),
	CLAIM("family-can", "a socket of AF_CAN", open_family, .arg = "CAN_RAW", .number = AF_CAN,
	      .prepare = family_is_loaded),
};

const struct attack_family services_net = {
	.name = "services", .title = "PostgreSQL and every other service", FAMILY(table)};
