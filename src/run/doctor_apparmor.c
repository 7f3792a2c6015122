#include "private.h"
#include "file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* In quotes, with what AppArmor would take for a pattern or a variable escaped. */
static void put_path(struct buffer *b, const char *path)
{
	buffer_puts(b, "\"");
	for (; *path; path++) {
		if (strchr("\\\"*?[]{}^@,", *path))
			buffer_puts(b, "\\");
		buffer_append(b, path, 1);
	}
	buffer_puts(b, "\"");
}

/* flags=(unconfined): it confines nothing. That it has a name is what the kernel asks for. */
int hood_apparmor(char **ret_profile, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n < 0)
		return error_system(err, errno, "cannot tell where this program lies");
	path[n] = 0;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ')
			return error_set(
				err, ERROR_REFUSED,
				"a path with control characters cannot be named in a profile: copy fumehood elsewhere");
	buffer_puts(
		&b,
		"# AppArmor: lets fumehood make user namespaces where only programs with a profile may\n"
		"# (kernel.apparmor_restrict_unprivileged_userns). It confines nothing; the walls are fumehood's own.\n"
		"abi <abi/4.0>,\n"
		"include <tunables/global>\n"
		"\n"
		"profile fumehood ");
	put_path(&b, path);
	buffer_puts(&b, " flags=(unconfined) {\n"
			"  userns,\n"
			"\n"
			"  include if exists <local/fumehood>\n"
			"}\n");
	if (buffer_check(&b, err) < 0)
		return -ENOMEM;
	*ret_profile = buffer_take(&b);
	return *ret_profile ? 0 : error_memory(err);
}
