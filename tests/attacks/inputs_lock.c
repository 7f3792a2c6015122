/*
 * Inputs and files: locks and leases. An analysis that may read an input can take a lock on it that stops everybody
 * else, and can see theirs. The suite tries its own lock while the attacker holds one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

enum { HOLD_MS = 250 };

static int hold(int r)
{
	if (r < 0)
		return -errno;
	linger(HOLD_MS);
	return 0;
}

/* The suite's own try holds the file for an instant, again and again: only who is always refused is refused. */
static bool once_more(int r, int *tries)
{
	if (r >= 0 || errno != EWOULDBLOCK || ++*tries > HOLD_MS)
		return false;
	linger(1);
	errno = EWOULDBLOCK;
	return true;
}

static int lock_and_hold(int fd, int operation)
{
	int r, tries = 0;
	do
		r = flock(fd, operation | LOCK_NB);
	while (once_more(r, &tries));
	return hold(r);
}

ACT(lock_file)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY);
	return fd < 0 ? -errno : lock_and_hold(fd, (int)a->number);
}

static int lock_range(const struct targets *t, const struct attack *a, int command)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY);
	return fd < 0 ? -errno : hold(fcntl(fd, command, &lock));
}

ACT(lock_posix)
{
	return lock_range(t, a, F_SETLK);
}

ACT(lock_description)
{
	return lock_range(t, a, F_OFD_SETLK);
}

ACT(take_lease)
{
	signal(SIGIO, SIG_IGN);
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY);
	if (fd < 0)
		return -errno;
	int r, tries = 0;
	do
		r = fcntl(fd, F_SETLEASE, F_RDLCK);
	while (once_more(r, &tries));
	return hold(r);
}

/* What another one holds can be felt: a channel, and a sign that the inode is shared. */
ACT(feel_lock)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
		return reached("the platform's lock can be felt");
	return -EEXIST;
}

ACT(feel_range)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY);
	if (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock))
		return -errno;
	return lock.l_type == F_UNLCK ? -EEXIST : reached("the platform's record lock can be felt");
}

/* For rows whose arg is a path of the host's own. */
static void try_lock_path(struct stage *s)
{
	_cleanup_close_ int fd = open(s->attack->arg, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		stage_hit(s, "the host cannot lock %s", s->attack->arg);
}

ACT(lock_path)
{
	_cleanup_close_ int fd = open(a->arg, O_RDONLY);
	return fd < 0 ? -errno : lock_and_hold(fd, LOCK_EX);
}

static void try_lock(struct stage *s)
{
	_cleanup_close_ int fd = open(stage_path(s, "data/genes.csv"), O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		stage_hit(s, "the platform cannot lock its own input");
}

static void try_range(struct stage *s)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	_cleanup_close_ int fd = open(stage_path(s, "data/genes.csv"), O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK)
		stage_hit(s, "the platform cannot lock a range of its own input");
}

static void try_open(struct stage *s)
{
	_cleanup_close_ int fd = open(stage_path(s, "data/genes.csv"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == EWOULDBLOCK)
		stage_hit(s, "the platform's open() waits for the analysis's lease");
}

static void try_lock_mounted(struct stage *s)
{
	_cleanup_close_ int fd =
		open(text("%s/data/mounted/inner.csv", s->platform->view), O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		stage_hit(s, "the platform cannot lock a file of what is mounted below its input");
}

static const struct attack table[] = {
	{.name = "flock-exclusive",
	 .mechanism = "flock(LOCK_EX) on an input",
	 .run = lock_file,
	 .arg = "data.file",
	 .number = LOCK_EX,
	 .effect = EFFECT_HIT,
	 .during = try_lock},
	{.name = "flock-mounted",
	 .mechanism = "flock(LOCK_EX) on a file of what is mounted below an input",
	 .run = lock_file,
	 .arg = "data.mounted",
	 .number = LOCK_EX,
	 .effect = EFFECT_HIT,
	 .during = try_lock_mounted,
	 .flags = ROOT_ONLY},
	{.name = "flock-shared",
	 .mechanism = "flock(LOCK_SH) on an input, which stops its writer",
	 .run = lock_file,
	 .arg = "local.file",
	 .number = LOCK_SH,
	 .effect = EFFECT_HIT,
	 .during = try_lock},
	{.name = "fcntl-lock",
	 .mechanism = "fcntl(F_SETLK) on an input",
	 .run = lock_posix,
	 .arg = "data.file",
	 .effect = EFFECT_HIT,
	 .during = try_range},
	{.name = "ofd-lock",
	 .mechanism = "fcntl(F_OFD_SETLK) on an input",
	 .run = lock_description,
	 .arg = "local.file",
	 .effect = EFFECT_HIT,
	 .during = try_range},
	{.name = "lease",
	 .mechanism = "fcntl(F_SETLEASE) on an input",
	 .run = take_lease,
	 .arg = "data.file",
	 .effect = EFFECT_HIT,
	 .during = try_open},
	{.name = "flock-system",
	 .mechanism = "flock(LOCK_EX) on a system program",
	 .run = lock_path,
	 .arg = "/usr/bin/env",
	 .effect = EFFECT_HIT,
	 .during = try_lock_path},
	{.name = "flock-etc",
	 .mechanism = "flock(LOCK_EX) on /etc/passwd",
	 .run = lock_path,
	 .arg = "/etc/passwd",
	 .effect = EFFECT_HIT,
	 .during = try_lock_path},
	{.name = "flock-sysfs",
	 .mechanism = "flock(LOCK_EX) on a file of /sys",
	 .run = lock_path,
	 .arg = "/sys/devices/system/cpu/online",
	 .effect = EFFECT_HIT,
	 .during = try_lock_path},
	{.name = "flock-device",
	 .mechanism = "flock(LOCK_EX) on /dev/null",
	 .run = lock_path,
	 .arg = "/dev/null",
	 .effect = EFFECT_HIT,
	 .during = try_lock_path,
	 .flags = UNDEFENDED},
	{.name = "flock-felt",
	 .mechanism = "feeling the platform's flock on an input",
	 .run = feel_lock,
	 .arg = "data.locked",
	 .effect = EFFECT_CLAIM},
	{.name = "fcntl-felt",
	 .mechanism = "feeling the platform's record lock on an input",
	 .run = feel_range,
	 .arg = "data.locked",
	 .effect = EFFECT_CLAIM},
};

const struct attack_family inputs_lock = {.name = "inputs", .title = "inputs and files", FAMILY(table)};
