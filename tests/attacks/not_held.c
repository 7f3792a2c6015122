/*
 * Attacks that have their effect under a strength that does not claim to hold them, each with the line of the receipt that says so.
 * Whatever is not here must be held.
 */
#include <stddef.h>
#include <string.h>

#include "macros.h"
#include "mechanism.h"

#define SEEN "receipt, visible processes: /proc is the host's"

static const struct {
	const char *strength, *name, *line;
} rows[] = {
	{"landlock", "data-atime", "receipt, times of access: who reads an input is seen in it"},
	{"landlock", "fcntl-lock", "receipt, locks: ranges of an input"},
	{"landlock", "ofd-lock", "receipt, locks: ranges of an input"},
	{"landlock", "fcntl-felt", "receipt, locks: ranges of an input"},
	{"landlock", "fifo-steal", "receipt, fifos: one below an input can be read"},
	{"landlock", "stranger-name", "receipt, visible names: whether a path exists can be asked"},
	{"landlock", "proc-cmdline", SEEN},
	{"landlock", "proc-visible", SEEN},
	{"landlock", "proc-net-unix", SEEN},
	{"landlock", "proc-keys", SEEN},
	{"landlock", "mountinfo", SEEN},
	{"landlock", "mounts", SEEN},
	{"landlock", "mountstats", SEEN},
};

const char *not_held(const char *strength, const char *name)
{
	for (size_t i = 0; strength && i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].strength, strength) && !strcmp(rows[i].name, name))
			return rows[i].line;
	return NULL;
}
