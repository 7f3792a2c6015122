/*
 * The scene where there are no namespaces (--strength landlock): the same array, and each entry is a file or directory of the host
 * that Landlock leaves open, at its own place. Nothing can be put anywhere else, and nothing is the analysis's own but what it
 * may write.
 */
#include "scene.h"
#include "file.h"
#include "workspace.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int scene_add_as_is(struct layers *l, int fd, struct error *err)
{
	_cleanup_free_ char *real = fd_path(fd);

	if (!real)
		return error_memory(err);
	return layers_show(l, real, real, &(struct reader){.kind = READER_ANYBODY}, err);
}

/* Who is who is the host's word here. */
static int add_identity_files(struct layers *l, struct error *err)
{
	static const char *const files[] = {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts",
					    "/etc/hostname"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = scene_add_file_of_host(l, files[i], err);
	return r;
}

/* No /dev/shm: it is the whole host's. */
static void add_devices(struct plan *p)
{
	static char *const every[] = {(char *)"/dev/null",   (char *)"/dev/zero",    (char *)"/dev/full",
				      (char *)"/dev/random", (char *)"/dev/urandom", NULL};

	p->devices = strv_copy(every);
	p->failed |= !p->devices;
	for (size_t i = 0; every[i]; i++)
		plan_add_mount(p, MOUNT_DEVICE, every[i], every[i])->optional = true;
}

/* What is asked for by every program that counts CPUs, and by many that look at themselves. */
static int add_kernel(struct layers *l, struct error *err)
{
	static const char *const parts[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};
	struct stat st;
	int r = 0;

	plan_add_mount(l->plan, MOUNT_PROC, NULL, "/proc");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		if (lstat(parts[i], &st) == 0)
			r = layers_show(l, parts[i], parts[i], &(struct reader){.kind = READER_ANYBODY}, err);
	return r;
}

int scene_add_bare(struct layers *l, struct error *err)
{
	struct plan *p = l->plan;
	_cleanup_free_ char *tmp = path_join(p->scratch, SCRATCH_TMP);
	int r;

	if (!tmp)
		return error_memory(err);
	if ((r = add_identity_files(l, err)) < 0 || (r = add_kernel(l, err)) < 0)
		return r;
	add_devices(p);
	/* They exist only when the story has made them: their identity is noted there. */
	plan_add_mount(p, MOUNT_BIND, tmp, tmp)->writable = true;
	plan_add_mount(p, MOUNT_BIND, p->workspace, p->workspace)->writable = true;
	return 0;
}
