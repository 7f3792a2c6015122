#include "group.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ability.h"
#include "text.h"

enum { ENTRY_ROOM = 1 << 20 }; /* a group's members are in it */

static int look_up(const char *name, gid_t *ret, struct error *err)
{
	_cleanup_free_ char *room = malloc(ENTRY_ROOM);
	char escaped[128], *end;
	struct group entry, *found = NULL;
	unsigned long number;
	int r;

	if (!room)
		return error_memory(err);
	text_escape_into(escaped, sizeof escaped, name, strlen(name));
	r = getgrnam_r(name, &entry, room, ENTRY_ROOM, &found);
	if (r == 0 && found) {
		*ret = found->gr_gid;
		return 0;
	}
	number = strtoul(name, &end, 10);
	if (name[0] >= '0' && name[0] <= '9' && !*end && number < (gid_t)-1) {
		*ret = (gid_t)number;
		return 0;
	}
	if (r != 0 && r != ENOENT)
		return error_system(err, r, "cannot look up the group '%s' of the ledger's URL", escaped);
	return error_set(
		err, ERROR_REFUSED,
		"there is no group '%s' on this host, which the ledger's URL names: make it, or name another with "
		"group=NAME",
		escaped);
}

static int is_member(gid_t gid, struct error *err)
{
	_cleanup_free_ gid_t *list = NULL;
	int n = getgroups(0, NULL);

	if (ability_has(CAP_CHOWN) || getegid() == gid)
		return 1;
	list = calloc((size_t)n + 1, sizeof *list);
	if (!list)
		return error_memory(err);
	n = getgroups(n, list);
	for (int i = 0; i < n; i++)
		if (list[i] == gid)
			return 1;
	return 0;
}

int group_find(const char *name, gid_t *ret, struct error *err)
{
	char escaped[128];
	gid_t gid = 0;
	int is;

	if (look_up(name, &gid, err) < 0)
		return -1;
	is = is_member(gid, err);
	if (is < 0)
		return is;
	if (!is)
		return error_set(
			err, ERROR_REFUSED,
			"the object store belongs to the group '%s', and you (uid %u) are not in it: "
			"`usermod -aG %s USER` as root, then a new login",
			text_escape_into(escaped, sizeof escaped, name, strlen(name)), (unsigned)geteuid(),
			escaped);
	*ret = gid;
	return 0;
}
