#include "ability.h"
#include "file.h"
#include "macros.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

bool ability_sees_all_ids(void)
{
	/* The inode of the first user namespace, which the kernel gives to no other (PROC_USER_INIT_INO). Its map would tell as
	 * well, but takes a descriptor, and a want of those must not make another of us. */
	enum { FIRST = 0xEFFFFFFDU };
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == FIRST;
}

uid_t ability_outer_uid(void)
{
	unsigned inside, outside, count, uid = geteuid();
	char text[4096], *line = text;

	if (file_read_small(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) <= 0)
		return uid;
	while (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3) {
		if (uid >= inside && uid - inside < count)
			return outside + (uid - inside);
		if (!(line = strchr(line, '\n')))
			break;
		line++;
	}
	return uid;
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
