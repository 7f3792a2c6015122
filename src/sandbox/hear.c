/*
 * What the filter asks its listener (filter.h). The answer is never a choice: it is what the silent program says of the same call.
 *
 * A call that waits to be heard is one that waits: a signal whose handler was installed without SA_RESTART may end it with EINTR,
 * before it is heard. It is neither made nor counted then.
 */
#include "sandbox.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

bool notice_is_valid(const struct notice *n)
{
	return ioctl(n->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n->id) == 0;
}

/* Sizes that the kernel may have made larger since. */
union question {
	struct seccomp_notif notif;
	char room[512];
};
union answer {
	struct seccomp_notif_resp resp;
	char room[256];
};

int sandbox_hear(struct sandbox *s, void (*on_notice)(void *arg, const struct notice *n), void *arg)
{
	union question q = {.room = {0}};
	union answer a = {.room = {0}};
	struct notice n = {.listener_fd = s->listener_fd};
	uint32_t action;

	/* ENOENT: who asked is dead. */
	if (ioctl(s->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &q.notif) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	action = filter_judge(s->wall, &q.notif.data);
	a.resp.id = q.notif.id;
	if (action == SECCOMP_RET_ALLOW)
		a.resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		a.resp.error = -(int)(action & SECCOMP_RET_DATA);
	n.number = q.notif.data.nr;
	n.pid = (pid_t)q.notif.pid;
	n.id = q.notif.id;
	n.errnum = -a.resp.error;
	n.args = (const uint64_t *)q.notif.data.args;
	if (n.number >= 0 && n.number < FILTER_CALLS)
		n.call = s->names[n.number];
	if (on_notice && n.call)
		on_notice(arg, &n);
	ioctl(s->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &a.resp);
	return n.errnum != 0;
}
