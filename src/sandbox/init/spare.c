/*
 * A spare: init before it is anybody's. Its namespaces are there, and of its root what every analysis on this host has; then it
 * waits here for a spec and descriptors, once. Until then nothing of an analysis has been near it.
 */
#include "init.h"

#include <linux/fcntl.h>

/* struct msghdr and struct cmsghdr with as many descriptors as there are numbers, as the kernel wants them. */
struct descriptors {
	size_t length;
	int level, type;
	int fds[INIT_FD_END];
};

static uint32_t receive(struct descriptors *ret)
{
	struct handover what;
	struct message_part part = {&what, sizeof what};
	struct message message = {.parts = &part, .n_parts = 1, .control = ret, .control_size = sizeof *ret};
	long n;

	do
		n = SYS3(__NR_recvmsg, INIT_FD_CONTROL, &message, 0x40000000 /* MSG_CMSG_CLOEXEC */);
	while (n == -EINTR);
	if (n != sizeof what || message.control_size < sizeof(size_t) + 2 * sizeof(int) ||
	    ret->level != 1 /* SOL_SOCKET */ || ret->type != 1 /* SCM_RIGHTS */)
		die(1);
	return what.present;
}

/* Every number below INIT_FD_END has been in use since we began, so that none of these is in the way of another. */
static void place(uint32_t present, const struct descriptors *d)
{
	size_t count = (d->length - sizeof(size_t) - 2 * sizeof(int)) / sizeof(int), k = 0;

	for (int i = 0; i < INIT_FD_END; i++) {
		if (i == INIT_FD_CONTROL || i == INIT_FD_REPORT || i == INIT_FD_SUPERVISOR)
			continue;
		if (!(present & 1U << i)) {
			SYS1(__NR_close, i);
			continue;
		}
		if (k == count || SYS3(__NR_dup3, d->fds[k], i, i < 3 ? 0 : O_CLOEXEC) < 0)
			die(1);
		SYS1(__NR_close, d->fds[k++]);
	}
	if (k != count)
		die(1);
}

void spare_wait(void)
{
	struct report r = {.kind = REPORT_READY};
	struct descriptors d = {0};
	uint32_t present;

	report(&r);
	await_word();
	present = receive(&d);
	SYS2(__NR_munmap, spec, spec->size);
	place(present, &d);
	spec_map();
}
