#include "spool.h"
#include "file.h"
#include "limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { WRITE_CHUNK = 256 * 1024, READ_ROOM = 2 * ROW_LINE_MAX, TABLES_JSON_MAX = 16 * 1024 * 1024 };
static const char spool_name[] = SPOOL_NAME;

/* Before each row, and, with table TABLES, before the tables. */
struct spooled {
	uint32_t table;
	uint32_t size;
	uint64_t line;
};
#define TABLES UINT32_MAX

struct spool {
	int fd;
	struct row_tables tables;
	uint64_t counts[ROW_TABLES_MAX];
	uint64_t start; /* where the first row lies */
	struct row row;
	/* being written */
	struct buffer out, line;
	uint64_t bytes, max_bytes, lines;
	bool failed;
	struct error why;
	/* being read */
	char *room;
	size_t have, at;
	uint64_t offset;
};

void spool_free(struct spool *s)
{
	if (!s)
		return;
	fd_close(s->fd);
	row_tables_done(&s->tables);
	row_done(&s->row);
	buffer_free(&s->out);
	buffer_free(&s->line);
	free(s->room);
	free(s);
}

static struct spool *spool_new(void)
{
	struct spool *s = calloc(1, sizeof *s);

	if (s)
		s->fd = -1;
	return s;
}

/* ---- writing ---- */

static int fail(struct spool *s, int r)
{
	s->failed = true;
	return r;
}

static int put(struct spool *s, uint32_t table, uint64_t line, const char *data, size_t size)
{
	struct spooled header = {.table = table, .size = (uint32_t)size, .line = line};
	int r;

	buffer_append(&s->out, &header, sizeof header);
	if (buffer_append(&s->out, data, size) < 0)
		return fail(s, error_memory(&s->why));
	if (s->out.size < WRITE_CHUNK)
		return 0;
	r = file_write_all(s->fd, s->out.data, s->out.size);
	s->out.size = 0;
	return r < 0 ? fail(s, error_system(&s->why, -r, "cannot set rows aside")) : 0;
}

int spool_make(int run_fd, const json_t *tables, uint64_t max_bytes, struct spool **ret, struct error *err)
{
	_cleanup_spool_ struct spool *s = spool_new();
	_cleanup_free_ char *text = json_dumps(tables, JSON_COMPACT);
	int r;

	if (!s || !text)
		return error_memory(err);
	s->max_bytes = max_bytes;
	r = row_tables_read(&s->tables, tables, err);
	if (r < 0)
		return r;
	s->fd = run_fd < 0 ? memfd_create(spool_name, MFD_CLOEXEC)
			   : file_open_own(run_fd, spool_name, O_RDWR | O_TRUNC);
	if (s->fd < 0)
		return error_system(err, run_fd < 0 ? errno : -s->fd, "cannot create the file of rows");
	s->start = sizeof(struct spooled) + strlen(text);
	if (put(s, TABLES, 0, text, strlen(text)) < 0) {
		*err = s->why;
		return -EIO;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

static int take_line(struct spool *s, const char *line, size_t size)
{
	char most[LIMIT_TEXT_SIZE];
	int r;

	s->lines++;
	s->bytes += size;
	if (s->bytes > s->max_bytes)
		r = error_set(&s->why, ERROR_REFUSED, "there are more rows than fit into the limit of %s",
			      limit_format(LIMIT_OUTPUT_MAX, s->max_bytes, most));
	else
		r = row_parse_line(&s->tables, line, size, &s->row, &s->why);
	if (r < 0)
		return fail(s, error_prefix(&s->why, r, "line %" PRIu64, s->lines));
	s->counts[s->row.table_index]++;
	return put(s, (uint32_t)s->row.table_index, s->lines, s->row.fields, s->row.fields_size);
}

/* A line that never ends must not fill the memory. */
static int too_long(struct spool *s)
{
	return fail(s, error_set(&s->why, ERROR_REFUSED, "line %" PRIu64 ": it is longer than %d bytes",
				 s->lines + 1, ROW_LINE_MAX));
}

static int take_part(struct spool *s, const char *data, size_t size)
{
	if (s->line.size + size > ROW_LINE_MAX)
		return too_long(s);
	return buffer_append(&s->line, data, size) < 0 ? fail(s, error_memory(&s->why)) : 0;
}

bool spool_feed(struct spool *s, const char *data, size_t size)
{
	while (size > 0 && !s->failed) {
		const char *newline = memchr(data, '\n', size);
		size_t n = newline ? (size_t)(newline - data) : size;

		if (!newline) {
			take_part(s, data, n);
			break;
		}
		if (s->line.size == 0) {
			if (n > ROW_LINE_MAX)
				too_long(s);
			else
				take_line(s, data, n);
		} else if (take_part(s, data, n) == 0) {
			take_line(s, s->line.data, s->line.size);
			s->line.size = 0;
		}
		data += n + 1;
		size -= n + 1;
	}
	return !s->failed;
}

bool spool_finish(struct spool *s)
{
	int r;

	if (!s->failed && s->line.size)
		take_line(s, s->line.data, s->line.size);
	if (s->failed)
		return false;
	r = file_write_all(s->fd, s->out.data, s->out.size);
	s->out.size = 0;
	if (r < 0)
		fail(s, error_system(&s->why, -r, "cannot set rows aside"));
	return !s->failed;
}

const struct error *spool_why(const struct spool *s)
{
	return &s->why;
}

/* ---- reading ---- */

static int damaged(struct error *err)
{
	return error_set(
		err, ERROR_SYSTEM,
		"the rows that were set aside are damaged: `fumehood post-process` makes them again");
}

/* At least size bytes in the room, from at: 1; 0: the file ends here. */
static int refill(struct spool *s, size_t size, struct error *err)
{
	if (s->have - s->at >= size)
		return 1;
	memmove(s->room, s->room + s->at, s->have - s->at);
	s->have -= s->at;
	s->at = 0;
	while (s->have < size) {
		ssize_t n = pread(s->fd, s->room + s->have, READ_ROOM - s->have, (off_t)s->offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(err, errno, "cannot read the rows that were set aside");
		if (n == 0)
			return s->have == 0 ? 0 : damaged(err);
		s->have += (size_t)n;
		s->offset += (uint64_t)n;
	}
	return 1;
}

static int rewind_rows(void *arg, struct error *err)
{
	struct spool *s = arg;

	if (!s->room)
		s->room = malloc(READ_ROOM);
	s->have = s->at = 0;
	s->offset = s->start;
	return s->room ? 0 : error_memory(err);
}

/* The next record, whichever table's. */
static int next_record(struct spool *s, struct spooled *ret, const char **ret_data, struct error *err)
{
	int r = refill(s, sizeof *ret, err);

	if (r <= 0)
		return r;
	memcpy(ret, s->room + s->at, sizeof *ret);
	if (ret->size > ROW_LINE_MAX || ret->table >= s->tables.count)
		return damaged(err);
	r = refill(s, sizeof *ret + ret->size, err);
	if (r <= 0)
		return r < 0 ? r : damaged(err);
	*ret_data = s->room + s->at + sizeof *ret;
	s->at += sizeof *ret + ret->size;
	return 1;
}

static int next_row(void *arg, size_t table, struct row_text *ret, struct error *err)
{
	struct spool *s = arg;
	struct spooled record;
	const char *data;
	int r;

	while ((r = next_record(s, &record, &data, err)) == 1)
		if (record.table == table) {
			*ret = (struct row_text){data, record.size, record.line};
			return 1;
		}
	return r;
}

/* The tables, and how many rows there are of each. */
static int load(struct spool *s, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct spooled record;
	const char *data;
	json_t *json;
	int r;

	if (pread(s->fd, &record, sizeof record, 0) != sizeof record || record.table != TABLES ||
	    record.size > TABLES_JSON_MAX || buffer_reserve(&text, record.size) < 0 ||
	    pread(s->fd, text.data, record.size, sizeof record) != (ssize_t)record.size)
		return damaged(err);
	json = json_loadb(text.data, record.size, 0, NULL);
	r = json ? row_tables_read(&s->tables, json, err) : damaged(err);
	json_decref(json);
	s->start = sizeof record + record.size;
	if (r < 0 || (r = rewind_rows(s, err)) < 0)
		return r;
	while ((r = next_record(s, &record, &data, err)) == 1)
		s->counts[record.table]++;
	return r;
}

int spool_load(int run_fd, struct spool **ret, struct error *err)
{
	_cleanup_spool_ struct spool *s = spool_new();
	int r;

	if (!s)
		return error_memory(err);
	s->fd = file_open_beneath(run_fd, spool_name, O_RDONLY, 0);
	if (s->fd < 0)
		return damaged(err);
	r = load(s, err);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

uint64_t spool_rows(const struct spool *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->tables.count; i++)
		sum += s->counts[i];
	return sum;
}

struct row_source spool_source(struct spool *s)
{
	return (struct row_source){s, &s->tables, s->counts, rewind_rows, next_row};
}
