#include "platform.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ability.h"
#include "dial.h"
#include "file.h"
#include "text.h"

extern char **environ;

bool platform_secret_in(const struct platform *p, const char *data, size_t size)
{
	return data && memmem(data, size, p->nonce, strlen(p->nonce));
}

static int copy_file(const char *from, const char *to, struct error *err)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return error_system(err, errno, "cannot open '%s'", from);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (out < 0)
		return error_system(err, errno, "cannot make '%s'", to);
	char block[65536];
	for (ssize_t n; (n = read(in, block, sizeof(block)));)
		if (n < 0 || file_write_all(out, block, (size_t)n))
			return error_system(err, errno, "cannot copy '%s' to '%s'", from, to);
	fchmod(out, 0755);
	return 0;
}

static int64_t written(const char *path)
{
	struct stat st;
	return stat(path, &st) ? -1 : st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
}

int platform_repair(struct platform *p, struct error *err)
{
	int r = 0;
	if (written(p->fumehood) != p->written[0] && !(unlink(p->fumehood) && errno != ENOENT))
		r = copy_file(p->source, p->fumehood, err);
	if (!r && written(p->plain) != p->written[1] && !(unlink(p->plain) && errno != ENOENT))
		r = copy_file("/proc/self/exe", p->plain, err);
	p->written[0] = written(p->fumehood);
	p->written[1] = written(p->plain);
	return r;
}

static int install_programs(struct platform *p, const char *fumehood, struct error *err)
{
	char attacker[sizeof(p->root) + 16];
	snprintf(p->source, sizeof(p->source), "%s", fumehood);
	snprintf(p->bin, sizeof(p->bin), "%s/bin-%s", p->root, p->nonce);
	snprintf(p->fumehood, sizeof(p->fumehood), "%s/fumehood", p->bin);
	snprintf(p->plain, sizeof(p->plain), "%s/plain", p->bin);
	snprintf(attacker, sizeof(attacker), "%s/attacker", p->root);
	if (mkdir(p->bin, 0755))
		return error_system(err, errno, "cannot make '%s'", p->bin);
	int r = platform_repair(p, err);
	return r ? r : copy_file("/proc/self/exe", attacker, err);
}

static void choose_address(struct platform *p)
{
	struct ifaddrs *all = NULL;
	char text[INET6_ADDRSTRLEN];
	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || i->ifa_flags & IFF_LOOPBACK)
			continue;
		inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof(text));
		targets_set(&p->targets, "address", "%s", text);
		break;
	}
	freeifaddrs(all);
}

static int free_port(void)
{
	union address at;
	socklen_t size = address_inet(&at, "127.0.0.1", 0);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, &at.any, size) || getsockname(fd, &at.any, &size))
		return 0;
	return ntohs(at.in.sin_port);
}

/* Every place and name that an attacker could wish to know. */
static void set_targets(struct platform *p)
{
	static const struct {
		const char *key, *path;
	} places[] = {{"platform", ""},
		      {"data", "/data"},
		      {"data.file", "/data/genes.csv"},
		      {"data.old", "/data/read-me.csv"},
		      {"data.empty", "/data/empty"},
		      {"data.locked", "/data/locked.csv"},
		      {"data.link", "/data/link"},
		      {"data.relative", "/data/relative"},
		      {"data.outdir", "/data/outdir/token"},
		      {"data.mounted", "/data/mounted/inner.csv"},
		      {"data.stream", "/data/stream.sock"},
		      {"data.dgram", "/data/dgram.sock"},
		      {"data.seqpacket", "/data/seqpacket.sock"},
		      {"data.fifo", "/data/fifo"},
		      {"data.fifo-out", "/data/fifo-out"},
		      {"docs", "/docs"},
		      {"docs.file", "/docs/guide.md"},
		      {"docs.stream", "/docs/stream.sock"},
		      {"site", "/site"},
		      {"site.file", "/site/index.html"},
		      {"api.file", "/api.py"},
		      {"secrets", "/secrets"},
		      {"secret", "/secrets/token"},
		      {"home", "/home"},
		      {"home.file", "/home/.profile"},
		      {"pgpass", "/home/.pgpass"},
		      {"system.file", "/home/bin/tool"},
		      {"dotdot.file", "/data/../site/index.html"},
		      {"run.stream", "/run/stream.sock"},
		      {"run.fifo", "/run/fifo"},
		      {"ledger", "/var/ledger.db"},
		      {"state.file", "/var/state/fumehood/planted"}};
	static const char *const fixed[][2] = {{"local.file", "data/genes.csv"},
					       {"local.stream", "data/stream.sock"},
					       {"local.dgram", "data/dgram.sock"},
					       {"local.fifo", "data/fifo"},
					       {"tmp", "/tmp"},
					       {"vartmp", "/var/tmp"},
					       {"shm", "/dev/shm"},
					       {"mountinfo", "/proc/self/mountinfo"},
					       {"mounts", "/proc/mounts"},
					       {"mountstats", "/proc/self/mountstats"},
					       {"proc.unix", "/proc/net/unix"}};
	static const char *const leaks[] = {"leak.file",   "leak.memfd",  "leak.directory", "leak.path",
					    "leak.socket", "leak.rights", "leak.pidfd",	    "leak.namespace"};
	static const char *const abstract[] = {"stream", "dgram", "seqpacket", "free"};
	struct targets *t = &p->targets;
	char key[32];
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		targets_set(t, places[i].key, "%s%s", p->root, places[i].path);
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		targets_set(t, fixed[i][0], "%s", fixed[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(leaks); i++)
		targets_set(t, leaks[i], "%zu", LEAK_FIRST + i);
	targets_set(t, "leak.high", "%d", LEAK_HIGH);
	targets_set(t, "leak.link", "/proc/self/fd/%d", LEAK_FIRST);
	for (size_t i = 0; i < ARRAY_SIZE(abstract); i++) {
		snprintf(key, sizeof(key), "abstract.%s", abstract[i]);
		targets_set(t, key, "@fumehood-attack-%s-%s", p->tag, abstract[i]);
	}
	targets_set(t, "others.file", "%s/secret", p->other);
	targets_set(t, "key", "fumehood-attack-%s", p->tag);
	targets_set(t, "queue", "/fumehood-attack-%s", p->tag);
	targets_set(t, "shm.file", "/dev/shm/fumehood-attack-%s", p->tag);
	targets_set(t, "ipc.key", "%ld", strtol(p->tag, NULL, 16) & 0x7fffffff);
	static const char *const ports[] = {"port.free", "port.beside0", "port.beside1", "port.pg"};
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		targets_set(t, ports[i], "%d", free_port());
	choose_address(p);
}

/* In a mount namespace of its own as root, so that an input has a file system mounted below it, and the mount table
 * a name that tells the secret. */
static void add_mounts(struct platform *p)
{
	char path[400];
	snprintf(path, sizeof(path), "%s/data/mounted", p->root);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", path, "tmpfs", 0, "mode=0777"))
		_exit(1);
	if (mount(p->bin, p->bin, NULL, MS_BIND, NULL))
		_exit(1);
}

bool can_be_nobody(void)
{
	return geteuid() == 0 && ability_has(CAP_SETUID) && ability_sees_all_ids();
}

static int start_server(struct platform *p, struct error *err)
{
	bool mounts = geteuid() == 0 && ability_has(CAP_SYS_ADMIN); /* of any user namespace */
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return error_system(err, errno, "cannot make a pipe");
	p->server = fork();
	if (p->server == 0) {
		close(ends[0]);
		if (mounts && unshare(CLONE_NEWNS) == 0)
			add_mounts(p);
		server_main(p, ends[1]);
	}
	close(ends[1]);
	int r = p->server < 0 ? -errno
			      : targets_read(&p->targets, ends[0]); /* returns when the server is ready */
	if (r)
		return error_system(err, -r, "cannot start the platform's services");
	if (mounts) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", p->server);
		p->mounts = open(path, O_RDONLY | O_CLOEXEC);
		snprintf(p->view, sizeof(p->view), "/proc/%d/root%s", p->server, p->root);
	}
	return 0;
}

static int make_root(struct platform *p, const char *scratch, struct error *err)
{
	uint8_t bytes[20];
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return error_system(err, errno, "cannot make up a secret");
	hex_encode(bytes, 16, p->nonce);
	hex_encode(bytes + 16, 4, p->tag);
	snprintf(p->root, sizeof(p->root), "%s/fumehood-attack-%s", scratch ? scratch : "/tmp", p->tag);
	if (mkdir(p->root, 0755))
		return error_system(err, errno, "cannot make the throw-away platform '%s'", p->root);
	chmod(p->root, 0755);
	snprintf(p->view, sizeof(p->view), "%s", p->root);
	snprintf(p->other, sizeof(p->other), "/tmp/scidex-analysis-attack-%s-other", p->tag);
	return 0;
}

static int make_board(struct platform *p, struct error *err)
{
	p->victim_fd = memfd_create("board", MFD_CLOEXEC);
	if (p->victim_fd < 0 || ftruncate(p->victim_fd, sizeof(*p->board)))
		return error_system(err, errno, "cannot make shared memory");
	p->board = mmap(NULL, sizeof(*p->board), PROT_READ | PROT_WRITE, MAP_SHARED, p->victim_fd, 0);
	if (p->board == MAP_FAILED) {
		p->board = NULL;
		return error_system(err, errno, "cannot map shared memory");
	}
	return 0;
}

int platform_up(struct platform *p, const struct attack_options *o, struct error *err)
{
	*p = (struct platform){.mounts = -1, .victim_fd = -1, .beside = {{.output = -1}, {.output = -1}}};
	int r = make_root(p, o->scratch, err);
	if (!r)
		r = make_board(p, err);
	if (!r)
		r = install_programs(p, o->fumehood, err);
	if (r)
		return r;
	set_targets(p);
	platform_furnish(p);
	r = start_server(p, err);
	if (!r)
		r = victim_start(p, err);
	if (r)
		return r;
	plant(p);
	if (postgres_start(p))
		p->pg_port = 0;
	return 0;
}

static void end_process(pid_t pid, int sig)
{
	if (pid <= 0)
		return;
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

static void remove_all(const char *path)
{
	char *const open_up[] = {(char *)"chmod", (char *)"-R", (char *)"u+rwx", (char *)path, NULL};
	char *const remove[] = {(char *)"rm", (char *)"-rf", (char *)"--one-file-system", (char *)path, NULL};
	for (int i = 0; i < 2; i++) {
		pid_t pid;
		posix_spawn_file_actions_t quiet;
		posix_spawn_file_actions_init(&quiet);
		posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
		if (!posix_spawnp(&pid, i ? "rm" : "chmod", &quiet, NULL, i ? remove : open_up, environ))
			waitpid(pid, NULL, 0);
		posix_spawn_file_actions_destroy(&quiet);
	}
}

void platform_down(struct platform *p, bool keep)
{
	for (int i = 0; i < 2; i++) {
		end_process(p->beside[i].pid, SIGTERM);
		fd_close(p->beside[i].output);
		buffer_free(&p->beside[i].said);
	}
	end_process(p->postgres, SIGQUIT);
	end_process(p->victim, SIGKILL);
	end_process(p->server, SIGKILL);
	if (p->targets.count)
		unplant(p);
	if (p->root[0] && !keep)
		remove_all(p->root);
	if (p->board)
		munmap(p->board, sizeof(*p->board));
	fd_close(p->victim_fd);
	fd_close(p->mounts);
	buffer_free(&p->tree);
	targets_done(&p->targets);
}

static void set_handle(struct platform *p)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = {.head.handle_bytes = 128};
	char hex[257];
	int mount;
	struct stat st;
	if (name_to_handle_at(AT_FDCWD, targets_text(&p->targets, "secret"), &handle.head, &mount, 0))
		return;
	hex_encode(handle.head.f_handle, handle.head.handle_bytes, hex);
	targets_set(&p->targets, "handle.type", "%d", handle.head.handle_type);
	targets_set(&p->targets, "handle.bytes", "%s", hex);
	if (!stat(p->root, &st))
		targets_set(&p->targets, "device", "%lu", (unsigned long)st.st_dev);
}

int platform_write_targets(struct platform *p, bool hooded, const char *marker)
{
	char path[400];
	struct stat st;
	struct targets *t = &p->targets;
	set_handle(p);
	if (!stat(hooded ? p->fumehood : p->plain, &st))
		targets_set(t, "binary.inode", "%lu", (unsigned long)st.st_ino);
	const char *mode = hooded ? "hood" : "plain";
	targets_set(t, "only", "%s", hooded ? "" : p->tag);
	targets_set(t, "marker", "%s", marker);
	targets_set(t, "beside.marker", "mark-%s-beside-%s", p->tag, mode);
	targets_set(t, "beside.name", "@fumehood-attack-%s-beside-%s", p->tag, mode);
	targets_set(t, "beside.port", "%ld", targets_number(t, hooded ? "port.beside1" : "port.beside0"));
	targets_set(t, "beside.locked", "%s/data/shared-%s.csv", p->root, mode);
	targets_set(t, "beside.watched", "%s/data/watched-%s.csv", p->root, mode);
	targets_set(t, "beside.key", "fumehood-attack-%s-beside-%s", p->tag, mode);
	targets_set(t, "beside.ipc", "%ld", targets_number(t, "ipc.key") + 1 + hooded);
	targets_set(t, "beside.object", "fumehood-attack-%s-beside-%s", p->tag, mode);
	if (hooded)
		targets_set(t, "beside.workspace", "/tmp/scidex-analysis-%s", p->beside[1].id);
	else
		targets_set(t, "beside.workspace", "%s/var/plain/%s", p->root, p->beside[0].id);
	snprintf(path, sizeof(path), "%s/targets", p->root);
	int r = targets_save(t, path);
	chmod(path, 0644);
	return r;
}
