/*
 * forbid OPTION… -- COMMAND…: the command on a host that does not allow something, by the host's own means: mounts,
 * user namespaces, capabilities, seccomp profiles. Whatever the order of the options, that is the order in which they hold.
 *
 *	--mask-proc			/proc as containers have it
 *	--tmpfs PATH[:OPTIONS]		an empty file system there ("size=64k", "ro", "noexec", …)
 *	--remount PATH:OPTIONS		what is there, with "ro" or "noexec"
 *	--over PATH:DIRECTORY		what lies in the directory, before what is there
 *	--userns N			root of a user namespace with N ids: 1, the caller's own, or more
 *	--max-userns N			in it, so many more user namespaces may be made
 *	--seccomp FILE			a container runtime's profile; --seccomp-docker FILE: without what fumehood adds to Docker's
 *	--refuse CALL=ERRNO		a system call fails with that: "EPERM", or its number
 *	--caps LIST			only these capabilities are left: "docker", "none", "CHOWN,SETUID"
 *	--uid N				as an ordinary user
 */
#include "capabilities.h"
#include "profile.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPTIONS_MAX = 32, RANGE_FIRST = 1000000, ERRNO_MAX = 4095 /* the kernel's MAX_ERRNO */ };

enum stage {
	MASK_PROC,
	TMPFS,
	REMOUNT,
	OVER,
	USERNS,
	MAX_USERNS,
	SECCOMP,
	SECCOMP_DOCKER,
	REFUSE,
	CAPS,
	UID,
	STAGES
};

static const char *const words[STAGES] = {"--mask-proc", "--tmpfs",	 "--remount", "--over",
					  "--userns",	 "--max-userns", "--seccomp", "--seccomp-docker",
					  "--refuse",	 "--caps",	 "--uid"};

struct asked {
	struct {
		enum stage stage;
		const char *value;
	} list[OPTIONS_MAX];
	int count;
	uint64_t capabilities;
	bool has_uid; /* which it takes two of them to become, and which leaves none */
};

/* What Docker and containerd mask and make read-only. */
static const char *const masked[] = {"/proc/acpi",	  "/proc/asound", "/proc/interrupts",
				     "/proc/kcore",	  "/proc/keys",	  "/proc/latency_stats",
				     "/proc/sched_debug", "/proc/scsi",	  "/proc/timer_list",
				     "/proc/timer_stats"};
static const char *const read_only[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
					"/proc/sysrq-trigger"};

static void mount_or_end(const char *from, const char *at, const char *type, unsigned long flags,
			 const char *data)
{
	if (mount(from, at, type, flags, data) < 0)
		err(125, "cannot mount at '%s'", at);
}

static void proc_mask(void)
{
	struct stat st;

	for (size_t i = 0; i < sizeof masked / sizeof masked[0]; i++)
		if (stat(masked[i], &st) == 0) {
			if (S_ISDIR(st.st_mode))
				mount_or_end("tmpfs", masked[i], "tmpfs", MS_RDONLY, "size=0");
			else
				mount_or_end("/dev/null", masked[i], NULL, MS_BIND, NULL);
		}
	for (size_t i = 0; i < sizeof read_only / sizeof read_only[0]; i++)
		if (stat(read_only[i], &st) == 0) {
			mount_or_end(read_only[i], read_only[i], NULL, MS_BIND | MS_REC, NULL);
			mount_or_end(NULL, read_only[i], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
		}
}

/* Takes "ro" and "noexec" out of the words, since they are flags. */
static unsigned long flags_take(char *text, char *left)
{
	unsigned long flags = 0;
	char *word;

	*left = 0;
	while ((word = strsep(&text, ",")))
		if (strcmp(word, "ro") == 0)
			flags |= MS_RDONLY;
		else if (strcmp(word, "noexec") == 0)
			flags |= MS_NOEXEC;
		else
			strcat(strcat(left, *left ? "," : ""), word);
	return flags;
}

static void file_system(enum stage stage, const char *value)
{
	char path[4096], left[4096], none[] = "", *options;
	unsigned long flags;

	snprintf(path, sizeof path, "%s", value);
	options = strchr(path, ':');
	if (options)
		*options++ = 0;
	flags = flags_take(options ? options : none, left);
	if (stage == TMPFS) {
		mount_or_end("tmpfs", path, "tmpfs", flags, left);
		return;
	}
	mount_or_end(path, path, NULL, MS_BIND, NULL);
	mount_or_end(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
}

static void layer(const char *value)
{
	const char *directory = strchr(value, ':');
	char path[4096], options[8192];

	if (!directory)
		errx(125, "--over PATH:DIRECTORY");
	snprintf(path, sizeof path, "%.*s", (int)(directory - value), value);
	snprintf(options, sizeof options, "lowerdir=%s:%s", directory + 1, path);
	mount_or_end("overlay", path, "overlay", MS_RDONLY, options);
}

static void text_write(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(125, "cannot write '%s' to '%s'", text, path);
	close(fd);
}

/* A child writes the maps: it has the rights for it outside. */
static void userns_enter(unsigned count)
{
	unsigned uid = geteuid(), gid = getegid();
	pid_t us = getpid(), child;
	int go[2], status;
	char map[128], c;

	if (pipe2(go, O_CLOEXEC) < 0 || (child = fork()) < 0)
		err(125, "cannot fork");
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		if (count == 1)
			text_write(us, "setgroups", "deny");
		snprintf(map, sizeof map, "0 %u %u", count == 1 ? uid : RANGE_FIRST, count);
		text_write(us, "uid_map", map);
		snprintf(map, sizeof map, "0 %u %u", count == 1 ? gid : RANGE_FIRST, count);
		text_write(us, "gid_map", map);
		_exit(0);
	}
	/* Its mounts are its own: what is masked stays so. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		err(125, "cannot make a user namespace");
	(void)!write(go[1], "", 1);
	if (waitpid(child, &status, 0) < 0 || status != 0)
		errx(125, "cannot map the ids");
	if ((count > 1 && setgroups(0, NULL) < 0) || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		err(125, "cannot become root of the user namespace");
}

/* By its name or its number. Never 0: a call that is not made and says that it was is no host's, and harms this one. */
static int errno_parse(const char *text)
{
	char number[16];

	for (int errnum = 1; errnum <= ERRNO_MAX; errnum++) {
		const char *name = strerrorname_np(errnum);

		snprintf(number, sizeof number, "%d", errnum);
		if (strcmp(text, number) == 0 || (name && strcmp(text, name) == 0))
			return errnum;
	}
	errx(125, "there is no errno '%s'", text);
}

static void refuse(const char *value)
{
	char call[64];
	const char *errnum = strchr(value, '=');

	if (!errnum)
		errx(125, "--refuse CALL=ERRNO");
	snprintf(call, sizeof call, "%.*s", (int)(errnum - value), value);
	profile_refuse(call, errno_parse(errnum + 1));
}

static void become(const char *value)
{
	uid_t uid = (uid_t)atoi(value);

	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		err(125, "cannot become %u", uid);
}

static void hold(const struct asked *a, enum stage stage, const char *value)
{
	switch (stage) {
	case MASK_PROC:
		proc_mask();
		break;
	case TMPFS:
	case REMOUNT:
		file_system(stage, value);
		break;
	case OVER:
		layer(value);
		break;
	case USERNS:
		userns_enter((unsigned)atoi(value));
		break;
	case MAX_USERNS:
		text_write(getpid(), "../sys/user/max_user_namespaces", value);
		break;
	case SECCOMP:
	case SECCOMP_DOCKER:
		profile_load(value, stage == SECCOMP_DOCKER ? "fumehood" : NULL, a->capabilities);
		break;
	case REFUSE:
		refuse(value);
		break;
	case CAPS:
		capabilities_keep(a->capabilities | (a->has_uid ? capabilities_parse("SETGID,SETUID") : 0));
		break;
	case UID:
		become(value);
		break;
	case STAGES:
		break;
	}
}

static int parse(int argc, char **argv, struct asked *a)
{
	int i;

	a->capabilities = UINT64_MAX;
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		int stage = 0;

		while (stage < STAGES && strcmp(argv[i], words[stage]) != 0)
			stage++;
		if (stage == STAGES || a->count == OPTIONS_MAX || (stage != MASK_PROC && i + 1 == argc))
			errx(125, "usage: forbid OPTION… -- COMMAND…; there is no option '%s'", argv[i]);
		a->list[a->count].stage = (enum stage)stage;
		a->list[a->count++].value = stage == MASK_PROC ? NULL : argv[++i];
		a->has_uid |= stage == UID;
		if (stage == CAPS || stage == UID)
			a->capabilities = stage == UID ? 0 : capabilities_parse(argv[i]);
	}
	if (i + 1 >= argc)
		errx(125, "usage: forbid OPTION… -- COMMAND…");
	return i + 1;
}

int main(int argc, char **argv)
{
	struct asked asked = {0};
	int command = parse(argc, argv, &asked);

	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		err(125, "cannot make a mount namespace");
	for (int stage = 0; stage < STAGES; stage++)
		for (int i = 0; i < asked.count; i++)
			if (asked.list[i].stage == (enum stage)stage)
				hold(&asked, (enum stage)stage, asked.list[i].value);
	execvp(argv[command], argv + command);
	err(127, "cannot execute '%s'", argv[command]);
}
