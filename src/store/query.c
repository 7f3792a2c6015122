#include "query.h"
#include "store.h"

#include <inttypes.h>

#include "file.h"
#include "limit.h"

enum { WRITE_CHUNK = 64 * 1024 };

struct answer {
	int fd;
	uint64_t bytes, max_bytes, lines;
	struct buffer out;
};

static int answer_flush(struct answer *a, struct error *err)
{
	int r = file_write_all(a->fd, a->out.data, a->out.size);

	a->out.size = 0;
	return r < 0 ? error_system(err, -r, "cannot write the answer") : 0;
}

static int take_line(void *arg, const char *line, size_t size, struct error *err)
{
	struct answer *a = arg;
	char most[LIMIT_TEXT_SIZE];

	a->bytes += size;
	a->lines++;
	if (a->bytes > a->max_bytes)
		return error_set(err, ERROR_REFUSED, "its answer is larger than %s (query.max_bytes)",
				 limit_format(LIMIT_DISK, a->max_bytes, most));
	buffer_append(&a->out, line, size);
	if (buffer_check(&a->out, err) < 0)
		return -1;
	return a->out.size < WRITE_CHUNK ? 0 : answer_flush(a, err);
}

static void answer_done(struct answer *a)
{
	buffer_free(&a->out);
}

int ledger_query(struct ledger *l, const struct ledger_query *q, int fd, uint64_t *ret_rows,
		 struct error *err)
{
	_cleanup_(answer_done) struct answer a = {.fd = fd, .max_bytes = q->max_bytes};

	if (l->backend->ops->query(l->backend, q, take_line, &a, err) < 0 || answer_flush(&a, err) < 0)
		return -1;
	*ret_rows = a.lines ? a.lines - 1 : 0;
	return 0;
}
