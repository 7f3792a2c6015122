/*
 * A private PostgreSQL, where it is installed: without a password, its socket both in run/ and below data/. It refuses
 * to run as root, so as root it is an ordinary user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dial.h"
#include "file.h"
#include "pgwire.h"
#include "platform.h"

enum { NOBODY = 65534 };

static int find_server(char *ret, size_t room)
{
	glob_t found = {0};
	int r = glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found);
	if (r)
		r = glob("/usr/pgsql-*/bin/initdb", 0, NULL, &found);
	if (!r)
		snprintf(ret, room, "%s", found.gl_pathv[found.gl_pathc - 1]);
	globfree(&found);
	if (r)
		return -ENOENT;
	*strrchr(ret, '/') = '\0';
	return 0;
}

static void become_ordinary(void)
{
	if (can_be_nobody() && (setgid(NOBODY) || setuid(NOBODY)))
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGQUIT);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
}

static int run_initdb(const char *bin, const char *dir)
{
	char program[512];
	snprintf(program, sizeof(program), "%s/initdb", bin);
	pid_t pid = fork();
	if (pid == 0) {
		become_ordinary();
		execl(program, program, "-D", dir, "-U", "owner", "--auth=trust", "--no-sync",
		      "--no-instructions", "-E", "UTF8", "--locale=C", (char *)NULL);
		_exit(127);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return status ? -EIO : 0;
}

static pid_t run_server(struct platform *p, const char *bin, const char *dir, int port)
{
	char program[512], number[16], sockets[700];
	snprintf(program, sizeof(program), "%s/postgres", bin);
	snprintf(number, sizeof(number), "%d", port);
	snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s/run,%s/data", p->root, p->root);
	pid_t pid = fork();
	if (pid == 0) {
		become_ordinary();
		execl(program, program, "-D", dir, "-p", number, "-c", sockets, "-c",
		      "listen_addresses=127.0.0.1,::1", "-c", "fsync=off", "-c", "shared_buffers=2MB", "-c",
		      "max_connections=20", "-c", "autovacuum=off", "-c", "dynamic_shared_memory_type=mmap",
		      (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int postgres_execute(struct platform *p, const char *sql, char *first, size_t room)
{
	union address to;
	socklen_t size = address_inet(&to, "127.0.0.1", p->pg_port);
	return pgwire_execute(&to, size, sql, first, room);
}

long postgres_count(struct platform *p)
{
	char count[32];
	if (!p->pg_port || postgres_execute(p, "SELECT count(*) FROM victims", count, sizeof(count)))
		return -1;
	return strtol(count, NULL, 10);
}

int postgres_start(struct platform *p)
{
	char bin[400], dir[400];
	int r = find_server(bin, sizeof(bin));
	if (r)
		return r;
	snprintf(dir, sizeof(dir), "%s/var/pg", p->root);
	if (mkdir(dir, 0700) || (can_be_nobody() && chown(dir, NOBODY, NOBODY)))
		return -errno;
	p->postgres = -1; /* installed, and not running */
	r = run_initdb(bin, dir);
	if (r)
		return r;
	p->pg_port = (int)targets_number(&p->targets, "port.pg");
	p->postgres = run_server(p, bin, dir, p->pg_port);
	r = -ETIMEDOUT;
	for (int i = 0; r && i < 500 && p->postgres > 0; i++) {
		poll(NULL, 0, 20);
		r = postgres_execute(p, "CREATE TABLE victims (word text)", NULL, 0);
	}
	targets_set(&p->targets, "pg.port", "%d", p->pg_port);
	targets_set(&p->targets, "pg.run", "%s/run/.s.PGSQL.%d", p->root, p->pg_port);
	targets_set(&p->targets, "pg.data", "%s/data/.s.PGSQL.%d", p->root, p->pg_port);
	targets_set(&p->targets, "pg.local", "data/.s.PGSQL.%d", p->pg_port);
	return r;
}
