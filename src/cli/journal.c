#include "journal.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "buffer.h"
#include "macros.h"

static const struct sockaddr_un journal = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};

/* The variable is inherited by whoever redirects us elsewhere: it names the stream's device and inode. */
static bool is_stderr_the_journals(void)
{
	const char *named = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!named || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(named, own) == 0;
}

int journal_open(void)
{
	_cleanup_close_ int fd = -1;

	if (!is_stderr_the_journals())
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&journal, sizeof journal) < 0)
		return -1;
	return TAKE_FD(fd);
}

/* With its size before it, so that no line of a value is taken for another field. */
static void add_field(struct buffer *b, const struct journal_field *field)
{
	uint64_t size = strlen(field->value), little = htole64(size);

	buffer_printf(b, "%s\n", field->name);
	buffer_append(b, &little, sizeof little);
	buffer_append(b, field->value, size);
	buffer_append(b, "\n", 1);
}

int journal_send(int fd, const struct journal_field *fields)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r;

	for (; fields->name; fields++)
		if (fields->value)
			add_field(&b, fields);
	r = buffer_check(&b, NULL);
	if (r < 0)
		return r;
	return send(fd, b.data, b.size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}
