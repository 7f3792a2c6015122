#include "cgroup_private.h"

#include <errno.h>

int cgroup_systemd_make(struct cgroup *c UNUSED, const struct cgroup_host *host UNUSED,
			const char *name UNUSED, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "systemd is not spoken yet");
}

int cgroup_systemd_adopt(const struct cgroup *c UNUSED, pid_t pid UNUSED, struct error *err UNUSED)
{
	return 0;
}

int cgroup_systemd_remove(struct cgroup_scope *scope UNUSED, struct error *err UNUSED)
{
	return 0;
}

void cgroup_systemd_socket(bool user UNUSED, char out[CGROUP_PATH_ROOM])
{
	out[0] = 0;
}

bool cgroup_systemd_delegated(const char *dir UNUSED)
{
	return false;
}
