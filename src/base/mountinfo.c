#include "mountinfo.h"
#include "array.h"
#include "buffer.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MAX = 64 * 1024 * 1024, FIELDS_MAX = 64 };

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes space, tab, newline and backslash as a backslash with three octal digits. In place. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && is_octal(text[2]) &&
		    is_octal(text[3])) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = 0;
}

/* "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw": the number of optional fields varies. */
bool mountinfo_parse_line(char *line, struct mountinfo_line *ret)
{
	char *fields[FIELDS_MAX], *rest = NULL;
	int n = 0, dash = 0;

	for (char *f = strtok_r(line, " ", &rest); f && n < FIELDS_MAX; f = strtok_r(NULL, " ", &rest)) {
		if (!dash && n >= 6 && strcmp(f, "-") == 0)
			dash = n;
		fields[n++] = f;
	}
	if (!dash || dash + 1 >= n)
		return false;
	*ret = (struct mountinfo_line){.id = strtoull(fields[0], NULL, 10),
				       .root = fields[3],
				       .point = fields[4],
				       .options = fields[5],
				       .type = fields[dash + 1],
				       .super_options = dash + 3 < n ? fields[dash + 3] : (char *)""};
	unescape(ret->root);
	unescape(ret->point);
	return true;
}

static int point_compare(const void *a, const void *b)
{
	const struct mount_point *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	return r ? r : x->id < y->id ? -1 : x->id > y->id;
}

int mountinfo_parse(char *text, struct mountinfo *ret, struct error *err)
{
	_cleanup_mountinfo_ struct mountinfo m = {0};
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct mountinfo_line l;
		struct mount_point *p;

		if (!mountinfo_parse_line(line, &l))
			continue;
		p = ARRAY_ADD(m.points, m.count);
		if (p)
			*p = (struct mount_point){
				.path = strdup(l.point), .type = strdup(l.type), .id = l.id};
		if (!p || !p->path || !p->type)
			return error_memory(err);
	}
	if (m.count)
		qsort(m.points, m.count, sizeof *m.points, point_compare);
	*ret = m;
	m = (struct mountinfo){0};
	return 0;
}

int mountinfo_load(struct mountinfo *ret, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	int r = file_load(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &text, err);

	if (r < 0)
		return r;
	buffer_append(&text, "", 1);
	r = buffer_check(&text, err);
	return r < 0 ? r : mountinfo_parse(text.data, ret, err);
}

void mountinfo_done(struct mountinfo *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->points[i].path);
		free(m->points[i].type);
	}
	free(m->points);
	*m = (struct mountinfo){0};
}

/* What lies under another mount cannot be seen, at the same place or further out. */
static bool is_visible(const struct mount_point *p)
{
	struct statx st;

	if (statx(AT_FDCWD, p->path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) < 0)
		return errno == EACCES;
	return !(st.stx_mask & STATX_MNT_ID) || st.stx_mnt_id == p->id;
}

const struct mount_point *mountinfo_below(const struct mountinfo *m, const char *path, size_t *at)
{
	while (*at < m->count) {
		const struct mount_point *p = &m->points[(*at)++];

		if (strcmp(p->path, path) != 0 && path_is_below(p->path, path) && is_visible(p))
			return p;
	}
	return NULL;
}

bool mountinfo_is_point(const struct mountinfo *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->points[i].path, path) == 0 && is_visible(&m->points[i]))
			return true;
	return false;
}

const char *mountinfo_type(const struct mountinfo *m, const char *path)
{
	const struct mount_point *found = NULL;

	for (size_t i = 0; i < m->count; i++)
		if (path_is_below(path, m->points[i].path) && is_visible(&m->points[i]))
			found = &m->points[i]; /* outer ones come first */
	return found ? found->type : "";
}
