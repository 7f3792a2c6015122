/*
 * A terminal of the command's own: a devpts of this analysis alone, with one terminal in it. Who looks at it gets the master,
 * and nobody inside can make another. It is not the caller's terminal: what is typed into it, its modes, its foreground group
 * and its end are felt here and nowhere else.
 *
 * PID 1 keeps it open as well, so that a command that closes its own end and opens /dev/tty again finds it as it was.
 */
#include "fs.h"
#include "init.h"

#include <asm/ioctls.h>
#include <linux/fcntl.h>
#include <linux/mount.h>

static int terminal = -1;

void terminal_mount(const struct spec_mount *m)
{
	const char *target = spec_string(m->target);
	int unlocked = 0;
	long fd, master, r;

	directories_make(target);
	fd = filesystem_make("devpts", spec_string(m->data), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		fail("mount a terminal of the command's own at", target, fd);
	attach(fd, target);
	master = open_inside("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	if (master < 0)
		fail("make a terminal of the command's own at", target, master);
	r = SYS3(__NR_ioctl, master, TIOCSPTLCK, &unlocked);
	if (r >= 0)
		r = SYS3(__NR_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (r < 0)
		fail("open the terminal of the command's own at", target, r);
	/* Out of the way of what the command will have open. */
	terminal = (int)SYS3(__NR_fcntl, r, F_DUPFD_CLOEXEC, 64);
	if (terminal < 0)
		fail("open the terminal of the command's own at", target, terminal);
	SYS1(__NR_close, r);
	descriptor_send(REPORT_TERMINAL, (int)master);
	SYS1(__NR_close, master);
	if (await_control() != CONTROL_GO)
		fail("prepare the command's own terminal", NULL, -ECANCELED);
}

int terminal_is_there(void)
{
	return terminal >= 0;
}

/* The leader of a session without a terminal: this is its terminal from now on. */
void terminal_enter(void)
{
	long r = 0;

	if (terminal < 0)
		return;
	for (int i = 0; i < 3 && r >= 0; i++)
		r = SYS3(__NR_dup3, terminal, i, 0);
	if (r >= 0)
		r = SYS3(__NR_ioctl, 0, TIOCSCTTY, 0);
	if (r < 0)
		fail("take the terminal as its own", NULL, r);
}
