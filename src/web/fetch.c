#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

const struct output *fetch_find(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->n_outputs; i++)
		if (strcmp(m->outputs[i].path, path) == 0)
			return &m->outputs[i];
	return NULL;
}

int fetch_open(struct ledger *l, const struct output *o, int *ret_fd, struct error *err)
{
	const char *asked = getenv("TMPDIR"), *directory = asked && *asked ? asked : "/var/tmp";
	_cleanup_close_ int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_system(err, errno, "cannot make a file for an output in '%s'", directory);
	if (ledger_copy_output(l, o, fd, err) < 0)
		return -EINVAL;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return error_system(err, errno, "cannot read an output");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int fetch_read(struct ledger *l, const struct output *o, size_t max, struct buffer *ret, struct error *err)
{
	_cleanup_close_ int fd = -1;
	char part[16 * 1024];
	ssize_t n;

	if (o->size > max)
		return error_set(err, ERROR_REFUSED, "'%s' is too large to be shown here",
				 SHOWN(128, o->path));
	if (fetch_open(l, o, &fd, err) < 0)
		return -EINVAL;
	while ((n = read(fd, part, sizeof part)) > 0)
		buffer_append(ret, part, (size_t)n);
	if (n < 0)
		return error_system(err, errno, "cannot read an output");
	return buffer_check(ret, err);
}
