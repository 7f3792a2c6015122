#include "overlay_refused.h"
#include "mountinfo.h"
#include "text.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

int overlay_refused(const char *source, int errnum, struct error *err)
{
	_cleanup_mountinfo_ struct mountinfo mounts = {0};
	struct error ignored = ERROR_INIT;
	const struct mount_point *below;
	char shown[512], point[512];
	struct statfs fs = {0};
	size_t at = 0;

	text_escape_into(shown, sizeof shown, source, strlen(source));
	statfs(source, &fs);
	if (errnum == ENODEV || errnum == EPERM)
		return error_set(err, ERROR_REFUSED,
				 "this kernel lets %s make no overlay, through which '%s' would be shown: %s",
				 errnum == ENODEV ? "nobody" : "ordinary users", shown,
				 errnum == ENODEV ? "load its module with `modprobe overlay`"
						  : "it takes Linux 5.11 or newer");
	if (mountinfo_load(&mounts, &ignored) == 0 && (below = mountinfo_below(&mounts, source, &at)))
		return error_set(
			err, ERROR_REFUSED,
			"no overlay can be laid over '%s': something has just been mounted below it, at '%s'; "
			"try again",
			shown, text_escape_into(point, sizeof point, below->path, strlen(below->path)));
	if (errnum == EINVAL && fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' lies on an overlay of an overlay, and the kernel stacks two, not three: put it on "
			"another file system, or copy it to one",
			shown);
	return error_set(
		err, ERROR_REFUSED,
		"no overlay can be laid over '%s': its file system (%s) cannot be a layer of one (%s): copy it "
		"to an ordinary file system",
		shown, mountinfo_type(&mounts, source), strerror(errnum));
}
