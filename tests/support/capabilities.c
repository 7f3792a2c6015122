#include "capabilities.h"

#include <err.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By number. */
static const char *const names[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

enum { COUNT = sizeof names / sizeof names[0] };

static const char docker[] =
	"AUDIT_WRITE,CHOWN,DAC_OVERRIDE,FOWNER,FSETID,KILL,MKNOD,NET_BIND_SERVICE,NET_RAW,SETFCAP,"
	"SETGID,SETPCAP,SETUID,SYS_CHROOT";

uint64_t capability_find(const char *name)
{
	if (strncmp(name, "CAP_", 4) == 0)
		name += 4;
	for (int i = 0; i < COUNT; i++)
		if (strcmp(name, names[i]) == 0)
			return 1ULL << i;
	errx(125, "there is no capability '%s'", name);
}

uint64_t capabilities_parse(const char *list)
{
	uint64_t found = 0;
	char copy[512], *rest = copy, *word;

	if (strcmp(list, "none") == 0)
		return 0;
	snprintf(copy, sizeof copy, "%s", strcmp(list, "docker") == 0 ? docker : list);
	while ((word = strsep(&rest, ",")))
		found |= capability_find(word);
	return found;
}

uint64_t capabilities_now(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		err(125, "cannot tell the capabilities");
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

void capabilities_keep(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	uint64_t left = capabilities_now() & keep;
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)left, .permitted = (uint32_t)left},
		{.effective = (uint32_t)(left >> 32), .permitted = (uint32_t)(left >> 32)}};

	for (int i = 0; i < COUNT; i++)
		if (!(keep & 1ULL << i) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			err(125, "cannot drop %s", names[i]);
	if (syscall(SYS_capset, &header, data) < 0)
		err(125, "cannot drop the capabilities");
}
