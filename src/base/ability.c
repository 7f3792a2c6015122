#include "ability.h"
#include "file.h"
#include "macros.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool capabilities_read(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, data) == 0;
}

static bool has(const struct __user_cap_data_struct data[2], int capability)
{
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

bool ability_has(int capability)
{
	struct __user_cap_data_struct data[2];

	return capabilities_read(data) && has(data, capability);
}

static bool map_is_whole(const char *path)
{
	unsigned inside, outside, count;
	char text[128];

	return file_read_small(AT_FDCWD, path, text, sizeof text) > 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count == UINT_MAX;
}

bool ability_sees_all_ids(void)
{
	return map_is_whole("/proc/self/uid_map") && map_is_whole("/proc/self/gid_map");
}

bool ability_is_root(void)
{
	/* CAP_NET_ADMIN: the loopback of a network namespace that no user namespace of ours owns. */
	static const int needed[] = {CAP_CHOWN,	 CAP_DAC_OVERRIDE, CAP_FOWNER,	 CAP_SETGID,
				     CAP_SETUID, CAP_NET_ADMIN,	   CAP_SYS_ADMIN};
	struct __user_cap_data_struct data[2];

	if (geteuid() != 0 || !capabilities_read(data))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!has(data, needed[i]))
			return false;
	return ability_sees_all_ids();
}
