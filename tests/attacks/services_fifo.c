/*
 * Services: named pipes below the inputs. A FIFO on a read-only mount can be opened for writing, and whoever reads
 * it takes what was meant for another.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

ACT(write_fifo)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), (int)a->number | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	return write(fd, "hello\n", 6) == 6 ? 0 : -errno;
}

ACT(read_fifo)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	if (poll(&ready, 1, 300) <= 0)
		return -ETIMEDOUT;
	char line[256];
	ssize_t n = read(fd, line, sizeof(line));
	if (n > 0)
		show(line, (size_t)n);
	return n < 0 ? -errno : 0;
}

ACT(write_fifo_by_descriptor)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_PATH);
	if (fd < 0)
		return -errno;
	_cleanup_close_ int again = open(text("/proc/self/fd/%d", fd), O_WRONLY | O_NONBLOCK);
	if (again < 0)
		return -errno;
	return write(again, "hello\n", 6) == 6 ? 0 : -errno;
}

ACT(write_fifo_by_link)
{
	if (link(targets_text(t, a->arg), "mine"))
		return -errno;
	_cleanup_close_ int fd = open("mine", O_WRONLY | O_NONBLOCK);
	return fd < 0 ? -errno : result(write(fd, "hello\n", 6));
}

static const struct attack table[] = {
	{.name = "fifo-write",
	 .mechanism = "a FIFO below data/, written to",
	 .run = write_fifo,
	 .arg = "data.fifo",
	 .number = O_WRONLY,
	 .effect = EFFECT_HIT},
	{.name = "fifo-local-write",
	 .mechanism = "a FIFO below data/ in the working directory, written to",
	 .run = write_fifo,
	 .arg = "local.fifo",
	 .number = O_WRONLY,
	 .effect = EFFECT_HIT},
	{.name = "fifo-outside",
	 .mechanism = "a FIFO outside the inputs, written to",
	 .run = write_fifo,
	 .arg = "run.fifo",
	 .number = O_WRONLY,
	 .effect = EFFECT_HIT},
	{.name = "fifo-read-write",
	 .mechanism = "a FIFO below data/, opened O_RDWR",
	 .run = write_fifo,
	 .arg = "data.fifo",
	 .number = O_RDWR,
	 .effect = EFFECT_HIT},
	{.name = "fifo-steal",
	 .mechanism = "a FIFO below data/, read in another's place",
	 .run = read_fifo,
	 .arg = "data.fifo-out",
	 .effect = EFFECT_SECRET},
	{.name = "fifo-proc-fd",
	 .mechanism = "a FIFO below data/ through /proc/self/fd",
	 .run = write_fifo_by_descriptor,
	 .arg = "data.fifo",
	 .effect = EFFECT_HIT},
	{.name = "fifo-hard-link",
	 .mechanism = "a hard link of a FIFO of data/ in the workspace",
	 .run = write_fifo_by_link,
	 .arg = "local.fifo",
	 .effect = EFFECT_HIT},
};

const struct attack_family services_fifo = {
	.name = "services", .title = "PostgreSQL and every other service", FAMILY(table)};
