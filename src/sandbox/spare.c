#include "spare.h"
#include "clock.h"
#include "file.h"
#include "idmap.h"
#include "launch.h"
#include "message.h"
#include "spec_build.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READY_TIMEOUT_MS = 10000 };

/* The namespaces that a child starts in, or its mounts and rights come from. */
static const char *const places[] = {
	"/proc/thread-self/ns/mnt",
	"/proc/thread-self/ns/user",
	"/proc/thread-self/ns/pid_for_children",
	"/proc/thread-self/ns/cgroup",
};

struct surroundings {
	uid_t uid;
	gid_t gid;
	int policy, nice;
	ino_t place[ARRAY_SIZE(places)];
	cpu_set_t cpus;
	struct rlimit limits[RLIMIT_NLIMITS];
};

/* What cannot be told is zero, here as there. */
static struct surroundings *look_around(void)
{
	struct surroundings *s = calloc(1, sizeof *s);
	struct stat st;

	if (!s)
		return NULL;
	s->uid = geteuid();
	s->gid = getegid();
	s->policy = sched_getscheduler(0);
	s->nice = getpriority(PRIO_PROCESS, 0);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		s->place[i] = stat(places[i], &st) == 0 ? st.st_ino : 0;
	(void)!sched_getaffinity(0, sizeof s->cpus, &s->cpus);
	for (int i = 0; i < (int)RLIMIT_NLIMITS; i++)
		(void)!getrlimit((__rlimit_resource_t)i, &s->limits[i]);
	return s;
}

void likeness_done(struct likeness *l)
{
	buffer_free(&l->spec);
	free(TAKE_PTR(l->around));
}

int likeness_take(const struct plan *plan, struct likeness *ret, struct error *err)
{
	_cleanup_likeness_ struct likeness l = {0};
	int r;

	if (plan->strength != STRENGTH_FULL || plan->n_common == 0)
		return error_set(err, ERROR_REFUSED, "nothing can be made ahead for this plan");
	r = spec_build_spare(plan, &l.spec, err);
	if (r < 0)
		return r;
	l.around = look_around();
	if (!l.around)
		return error_memory(err);
	*ret = l;
	l = (struct likeness){0};
	return 0;
}

bool likeness_is_same(const struct likeness *a, const struct likeness *b)
{
	return memcmp(a->around, b->around, sizeof *a->around) == 0 && a->spec.size == b->spec.size &&
	       memcmp(a->spec.data, b->spec.data, a->spec.size) == 0;
}

struct spare *spare_free(struct spare *s)
{
	if (!s)
		return NULL;
	sandbox_free(s->sandbox);
	likeness_done(&s->like);
	free(s);
	return NULL;
}

/* Every number has something behind it, so that what it gets later is in nobody's way (init/spare.c). */
static int launch(struct sandbox *s, const struct likeness *like, struct error *err)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct surroundings *around = like->around;
	const struct spec *spec = (const struct spec *)(const void *)like->spec.data;
	int source[INIT_FD_END], r;

	if (null < 0)
		return error_system(err, errno, "cannot open '/dev/null'");
	for (int i = 0; i < INIT_FD_END; i++)
		source[i] = null;
	r = init_launch(s, spec->userns_first, source, &like->spec, err);
	if (r < 0 || !spec->userns_first)
		return r;
	r = identity_map(s->init.pid, SANDBOX_UID, around->uid, SANDBOX_GID, around->gid, err);
	return r < 0 ? r : init_let_go(s, err);
}

int spare_make(struct buffer *spec, struct spare **ret, struct error *err)
{
	_cleanup_(spare_freep) struct spare *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return error_memory(err);
	s->like.spec = *spec;
	*spec = (struct buffer){0};
	s->like.around = look_around();
	s->sandbox = sandbox_new(false);
	if (!s->like.around || !s->sandbox)
		return error_memory(err);
	s->born = clock_now();
	r = launch(s->sandbox, &s->like, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

static int hear(struct spare *s, int timeout_ms)
{
	struct report r;
	int fd;
	ssize_t n = message_receive(s->sandbox->report_fd, &r, sizeof r, timeout_ms, &fd);

	fd_close(fd);
	if (n == MESSAGE_LATE)
		return 0;
	s->is_ready = n == sizeof r && r.kind == REPORT_READY;
	return s->is_ready ? 1 : -EIO;
}

int spare_hear(struct spare *s)
{
	return hear(s, 0);
}

int spare_begin(const struct plan *plan, struct spare **ret, struct error *err)
{
	_cleanup_likeness_ struct likeness like = {0};
	int r = likeness_take(plan, &like, err);

	return r < 0 ? r : spare_make(&like.spec, ret, err);
}

struct sandbox *spare_await(struct spare *s, const struct likeness *like)
{
	if (clock_now() - s->born >= SPARE_AGE_MAX_NS || !likeness_is_same(&s->like, like) ||
	    hear(s, READY_TIMEOUT_MS) <= 0)
		return NULL;
	return TAKE_PTR(s->sandbox);
}

union control {
	char room[CMSG_SPACE(sizeof(int) * INIT_FD_END)];
	struct cmsghdr align;
};

static int send_all(int socket, const struct handover *what, const int *fds, size_t n)
{
	union control control = {0};
	struct iovec part = {(void *)(uintptr_t)what, sizeof *what};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = CMSG_SPACE(sizeof *fds * n)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof *fds * n);
	memcpy(CMSG_DATA(c), fds, sizeof *fds * n);
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == sizeof *what ? 0 : -errno;
}

int spare_hand_over(const struct sandbox *s, const int descriptors[INIT_FD_END], const struct buffer *spec,
		    struct error *err)
{
	_cleanup_close_ int blob = file_in_memory("fumehood-spec", spec->data, spec->size, false, err);
	struct handover what = {0};
	int fds[INIT_FD_END], r;
	size_t n = 0;

	if (blob < 0)
		return blob;
	for (int i = 0; i < INIT_FD_END; i++) {
		int fd = i == INIT_FD_SPEC ? blob : descriptors[i];

		if (fd < 0)
			continue;
		what.present |= 1U << i;
		fds[n++] = fd;
	}
	r = send_all(s->control_fd, &what, fds, n);
	return r < 0 ? error_system(err, -r, "cannot speak to init") : 0;
}
