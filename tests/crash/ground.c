#include "ground.h"
#include "cgroup.h"
#include "clock.h"
#include "file.h"
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { INPUT_LINES = 2000, COMMAND_TIMEOUT_MS = 60000, CGROUP_TRIES = 3000, OUT_MAX = 64 << 20 };

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "sweep: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

static int remove_entry(const char *path, const struct stat *st UNUSED, int type UNUSED,
			struct FTW *ftw UNUSED)
{
	return remove(path);
}

void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Formatted into a buffer of the caller's. */
static const char *join(const char *dir, const char *name, char out[512])
{
	snprintf(out, 512, "%s/%s", dir, name);
	return out;
}

static void temporary(char path[256], const char *base, uid_t uid)
{
	snprintf(path, 256, "%s/fumehood-crash-XXXXXX", base);
	if (!mkdtemp(path) || chown(path, uid, uid) < 0)
		give_up("cannot make a directory in '%s': %s", base, strerror(errno));
}

static void directory(const struct ground *g, const char *dir, const char *name, mode_t mode)
{
	char path[512];

	if (mkdir(join(dir, name, path), mode) < 0 || chown(path, g->uid, g->uid) < 0)
		give_up("cannot make '%s': %s", path, strerror(errno));
}

static void file(const struct ground *g, const char *name, const char *data, size_t size)
{
	char path[512];
	int fd = open(join(g->platform, name, path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || file_write_all(fd, data, size) < 0 || fchown(fd, g->uid, g->uid) < 0)
		give_up("cannot write '%s': %s", path, strerror(errno));
	fd_close(fd);
}

static void platform_make(struct ground *g)
{
	static const char table[] = "gene,value\nTP53,0.9\n";

	temporary(g->platform, "/var/tmp", g->uid);
	directory(g, g->platform, "data", 0755);
	file(g, "data/genes.csv", table, sizeof table - 1);
	for (int i = 0; i < INPUT_LINES; i++)
		if (buffer_printf(&g->input, "%05d the quick brown fox of %s jumps over the lazy dog\n", i,
				  g->tag) < 0)
			give_up("out of memory");
	file(g, "input.txt", g->input.data, g->input.size);
}

/* In each v1 hierarchy one of our own, given to the user: he makes his below it. */
static void cgroup_own(struct ground *g, const char *parent)
{
	static const char *const files[] = {"", "/cgroup.procs", "/tasks"};
	char path[1024], *dir;

	if (!parent[0] || g->n_cgroups == GROUND_CGROUPS_MAX)
		return;
	if (asprintf(&dir, "%s/%s", parent, g->tag) < 0)
		give_up("out of memory");
	if (mkdir(dir, 0755) < 0) { /* EEXIST: one hierarchy with several controllers */
		if (errno != EEXIST)
			give_up("cannot make '%s': %s", dir, strerror(errno));
		free(dir);
		return;
	}
	g->cgroups[g->n_cgroups++] = dir;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof path, "%s%s", dir, files[i]);
		if (chown(path, g->uid, g->uid) < 0)
			give_up("cannot give '%s' away: %s", path, strerror(errno));
	}
}

static void cgroups_make(struct ground *g)
{
	struct error err = ERROR_INIT;
	struct cgroup_host host;

	if (geteuid() != 0 || cgroup_host_probe(&host, &err) < 0 || host.way != CGROUP_V1)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(host.v1_parent); i++)
		cgroup_own(g, host.v1_parent[i]);
}

static void cgroups_enter(const struct ground *g)
{
	for (int i = 0; i < g->n_cgroups; i++) {
		char path[1024];
		_cleanup_close_ int fd = -1;

		snprintf(path, sizeof path, "%s/cgroup.procs", g->cgroups[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			give_up("cannot enter '%s': %s", g->cgroups[i], strerror(errno));
	}
}

/* A program of the database, with out (-1: ours) as its stdout. */
static bool client(const char *const *argv, int out)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (out >= 0)
			dup2(out, STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool psql(const struct ground *g, const char *statement)
{
	const char *argv[] = {"psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1",
			      "-c",   statement,     g->db,	NULL};

	return client(argv, -1);
}

/* In the ledger's own database, as its user. */
static bool ledger_sql(const struct ground *g, const char *statement, int out)
{
	char target[2048];
	const char *const lite[] = {"sqlite3", "-batch", target, statement, NULL};
	const char *const server[] = {"psql", "-XqAt",	 "-v",	 "ON_ERROR_STOP=1",
				      "-c",   statement, target, NULL};
	const char *question = strstr(g->url, "objects=");

	if (!g->db[0]) {
		snprintf(target, sizeof target, "%s/ledger/ledger.db", g->dir);
		return client(lite, out);
	}
	snprintf(target, sizeof target, "%.*s", (int)(question - g->url) - 1, g->url);
	return client(server, out);
}

int ground_count_rows(const struct ground *g, const char *id)
{
	_cleanup_close_ int out = memory_file();
	_cleanup_buffer_ struct buffer b = {0};
	char statement[256];

	snprintf(statement, sizeof statement, "SELECT count(*) FROM scores WHERE analysis_id = '%s'", id);
	if (!ledger_sql(g, statement, out))
		return -1;
	memory_file_read(out, &b);
	return b.data ? atoi(b.data) : -1;
}

/* The platform's table, and the site's words on who may fill it. */
static void post_make(struct ground *g)
{
	static const char text[] = "post_process:\n"
				   "  command: cat outputs/rows.jsonl\n"
				   "  tables: {scores: {columns: [gene, n], fill: {analysis_id: '{id}'}}}\n";
	_cleanup_close_ int fd = -1;
	char path[512];

	directory(g, g->dir, "config", 0755);
	directory(g, g->dir, "config/fumehood", 0755);
	fd = open(join(g->dir, "config/fumehood/config.yaml", path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		  0644);
	if (fd < 0 || file_write_all(fd, text, sizeof text - 1) < 0 ||
	    !ledger_sql(g, "CREATE TABLE scores(gene text, n integer, analysis_id text)", -1))
		give_up("cannot make the platform's table");
}

static void database_make(struct ground *g)
{
	char statement[64];

	snprintf(statement, sizeof statement, "CREATE DATABASE %s", g->tag);
	if (!psql(g, statement))
		give_up("psql cannot make a database");
}

static const char all_inside[] = "&blob_max=16M";

/* postgresql://USER@HOST/DATABASE?… with our database instead, and our own parameters. */
static void database_url(struct ground *g, const struct wish *wish)
{
	const char *rest = strstr(g->db, "//"), *slash = rest ? strchr(rest + 2, '/') : NULL;
	const char *question = strchr(g->db, '?');

	if (!slash || (question && question < slash))
		give_up("'%s' names no database", g->db);
	snprintf(g->url, sizeof g->url, "%.*s/%s?%s%sobjects=%s%s&busy=%s%s", (int)(slash - g->db), g->db,
		 g->tag, question ? question + 1 : "", question ? "&" : "",
		 wish->inside ? "postgresql" : g->dir, wish->inside ? "" : "/objects", wish->busy,
		 wish->small ? all_inside : "");
}

void ground_make(struct ground *g, const struct wish *wish, int index)
{
	*g = (struct ground){.uid = wish->uid,
			     .own_disk = wish->own_disk,
			     .post = wish->post,
			     .blocked = wish->blocked,
			     .bare = wish->bare};
	if (!realpath(wish->binary, g->binary))
		give_up("cannot find '%s': %s", wish->binary, strerror(errno));
	snprintf(g->tag, sizeof g->tag, "crash%d%c", (int)getpid(), 'a' + index);
	snprintf(g->db, sizeof g->db, "%s", wish->db ? wish->db : "");
	if (wish->db)
		database_make(g);
	platform_make(g);
	/* As root it is a user of its own, who reads what everybody may. */
	if (g->bare && chmod(g->platform, 0755) < 0)
		give_up("cannot open '%s': %s", g->platform, strerror(errno));
	/* In memory, where there is some: the crash is the process's, not the machine's, and fsync is dear. */
	temporary(g->dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/var/tmp", g->uid);
	directory(g, g->dir, "state", 0700);
	directory(g, g->dir, "ledger", 0700);
	directory(g, g->dir, "out", 0700);
	if (wish->db)
		database_url(g, wish);
	else
		snprintf(g->url, sizeof g->url, "sqlite:%s/ledger/ledger.db?objects=%s/objects%s", g->dir,
			 g->dir, wish->small ? all_inside : "");
	cgroups_make(g);
}

/* The worker is dead, but the kernel may not have unlinked its last task yet; there is no event for that. */
static void cgroup_disown(const char *dir)
{
	for (int tries = 0; tries < CGROUP_TRIES; tries++) {
		if (rmdir(dir) == 0)
			return;
		poll(NULL, 0, 1);
	}
	fprintf(stderr, "sweep: cannot remove '%s': %s\n", dir, strerror(errno));
}

void ground_remove(struct ground *g)
{
	char statement[64];

	snprintf(statement, sizeof statement, "DROP DATABASE %s WITH (FORCE)", g->tag);
	if (g->db[0] && !psql(g, statement))
		fprintf(stderr, "sweep: psql cannot drop the database %s\n", g->tag);
	for (int i = 0; i < g->n_cgroups; i++) {
		cgroup_disown(g->cgroups[i]);
		free(g->cgroups[i]);
	}
	buffer_free(&g->input);
	remove_tree(g->platform);
	remove_tree(g->dir);
}

/* The ledger's store, as its first use would have left it: an id, and nothing else. (On a server `db init` has made it.) */
static void store_make(const struct ground *g)
{
	_cleanup_close_ int out = memory_file(), fd = -1;
	_cleanup_buffer_ struct buffer b = {0};
	char path[512];

	/* What ran before has made it already. */
	if (!g->db[0] && access(join(g->dir, "objects/id", path), F_OK) < 0) {
		directory(g, g->dir, "objects", 0700);
		fd = open(join(g->dir, "objects/id", path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || !ledger_sql(g, "UPDATE fumehood_store SET store_id = ledger_id", -1) ||
		    !ledger_sql(g, "SELECT ledger_id || ' ' || store_id FROM fumehood_store", out))
			give_up("cannot give the ledger a store");
		memory_file_read(out, &b);
		if (!b.data || file_write_all(fd, b.data, b.size) < 0 || fchown(fd, g->uid, g->uid) < 0)
			give_up("cannot write '%s'", path);
	}
}

/* The store is there, and takes nothing. */
void ground_block(const struct ground *g)
{
	char tmp[512], away[512];
	int fd;

	if (!g->blocked)
		return;
	store_make(g);
	(void)rename(join(g->dir, "objects/tmp", tmp), join(g->dir, "objects/tmp.away", away));
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		give_up("cannot make '%s': %s", tmp, strerror(errno));
	fd_close(fd);
}

void ground_unblock(const struct ground *g)
{
	char tmp[512], away[512];

	if (!g->blocked)
		return;
	if (unlink(join(g->dir, "objects/tmp", tmp)) < 0)
		give_up("cannot remove '%s': %s", tmp, strerror(errno));
	(void)rename(join(g->dir, "objects/tmp.away", away), tmp);
}

void ground_run_argv(const struct ground *g, const char *id, bool again, const char *argv[GROUND_ARGS_MAX])
{
	static const char script[] =
		"echo started\n"
		"read -r line <data/genes.csv\n"
		"echo \"$line of $FUMEHOOD_ID\" >small.txt\n"
		"{ echo \"$FUMEHOOD_ID\"; cat input.txt; } >large.txt\n"
		"i=0; while [ $i -lt 40 ]; do\n"
		"echo '{\"table\": \"scores\", \"row\": {\"gene\": \"TP53\", \"n\": '$i'}}'\n"
		"i=$((i + 1)); done >rows.jsonl\n";
	const char *const words[] = {g->binary,	  "run",      id,	   "--json",   "--input",
				     "input.txt", "--output", "small.txt", "--output", "large.txt"};
	const char *const command[] = {"--", "sh", "-c", script, NULL};
	int n = ARRAY_SIZE(words);

	memcpy(argv, words, sizeof words);
	if (again)
		argv[n++] = "--again";
	if (g->bare) {
		argv[n++] = "--strength";
		argv[n++] = "landlock";
	}
	if (g->own_disk) {
		argv[n++] = "--disk";
		argv[n++] = "64M";
	}
	if (g->post) {
		argv[n++] = "--output";
		argv[n++] = "rows.jsonl";
	}
	memcpy(argv + n, command, sizeof command);
}

void ground_expected(const struct ground *g, const char *id, struct buffer *small, struct buffer *large)
{
	if (buffer_printf(small, "gene,value of %s\n", id) < 0 || buffer_printf(large, "%s\n", id) < 0 ||
	    buffer_append(large, g->input.data, g->input.size) < 0)
		give_up("out of memory");
}

int memory_file(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	if (fd < 0)
		give_up("cannot make a memory file: %s", strerror(errno));
	return fd;
}

void memory_file_read(int fd, struct buffer *b)
{
	if (lseek(fd, 0, SEEK_SET) < 0 || file_read_all(fd, b, OUT_MAX) < 0)
		give_up("cannot read a memory file");
}

void ground_exec(const struct ground *g, const char *const *argv, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	execv(g->binary, (char *const *)argv);
	_exit(127);
}

void outcome_done(struct outcome *o)
{
	buffer_free(&o->out);
	buffer_free(&o->err);
}

void ground_command(const struct ground *g, const char *const *argv, struct outcome *ret)
{
	_cleanup_close_ int out = memory_file(), err = memory_file(), pidfd = -1;
	pid_t pid = fork();

	*ret = (struct outcome){.status = -1};
	if (pid < 0)
		give_up("cannot fork: %s", strerror(errno));
	if (pid == 0)
		ground_exec(g, argv, out, err);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		give_up("cannot open a process: %s", strerror(errno));
	if (pidfd_wait(pidfd, COMMAND_TIMEOUT_MS) < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else {
		waitpid(pid, &ret->status, 0);
	}
	memory_file_read(out, &ret->out);
	memory_file_read(err, &ret->err);
}

static void file_copy(const char *from, const char *to, const char *name)
{
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_close_ int fd = -1;
	char path[512];

	fd = open(join(to, name, path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || file_load(AT_FDCWD, join(from, name, path), 1 << 30, &b, NULL) < 0 ||
	    file_write_all(fd, b.data ? b.data : "", b.size) < 0)
		give_up("cannot copy '%s'", path);
}

static void files_copy(const char *from, const char *to)
{
	DIR *dir = opendir(from);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_type == DT_REG)
			file_copy(from, to, e->d_name);
	if (dir)
		closedir(dir);
}

/* A ledger without attempts, to be copied before each step. */
static void empty_make(struct ground *g)
{
	const char *argv[] = {g->binary, "db", "init", "--quiet", NULL};
	_cleanup_outcome_ struct outcome o;
	char from[512], to[512];

	ground_command(g, argv, &o);
	if (o.status != 0)
		give_up("db init: %s", o.err.data ? o.err.data : "");
	if (g->post)
		post_make(g);
	if (g->db[0])
		return;
	directory(g, g->dir, "empty", 0700);
	files_copy(join(g->dir, "ledger", from), join(g->dir, "empty", to));
}

void ground_reset_ledger(struct ground *g, bool fresh)
{
	char from[512], to[512];

	if (g->db[0])
		return;
	remove_tree(join(g->dir, "objects", to));
	remove_tree(join(g->dir, "ledger", to));
	directory(g, g->dir, "ledger", 0700);
	if (!fresh)
		files_copy(join(g->dir, "empty", from), to);
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0)
		give_up("out of memory");
}

void ground_settle(struct ground *g)
{
	char path[512];
	sigset_t child;

	cgroups_enter(g);
	if (g->uid != geteuid() && (setgroups(0, NULL) < 0 || setresgid(g->uid, g->uid, g->uid) < 0 ||
				    setresuid(g->uid, g->uid, g->uid) < 0))
		give_up("cannot become user %u: %s", (unsigned)g->uid, strerror(errno));
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	clearenv();
	set("PATH", "/usr/local/bin:/usr/bin:/bin");
	set("LANG", "C.UTF-8");
	set("HOME", g->dir);
	set("XDG_STATE_HOME", join(g->dir, "state", path));
	set("XDG_DATA_HOME", join(g->dir, "ledger", path));
	set("XDG_CONFIG_HOME", join(g->dir, "config", path));
	set("FUMEHOOD_DB", g->url);
	if (chdir(g->platform) < 0)
		give_up("cannot enter '%s': %s", g->platform, strerror(errno));
	empty_make(g);
}
