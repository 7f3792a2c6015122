#include "console.h"
#include "bar.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A line that comes and goes within the blink of an eye is only a flicker. */
enum { PROGRESS_AFTER_MS = 500, PROGRESS_ROOM = 256 };

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int console_open(struct console *c, const struct cli *cli, struct error *err)
{
	const struct terminal *ends[STREAM_COUNT] = {
		[STREAM_STDOUT] = &cli->out, [STREAM_STDERR] = &cli->err};
	struct stat st[STREAM_COUNT] = {0};
	int r = 0;

	*c = (struct console){.terminal = &cli->err};
	if (cli->json)
		return 0;
	for (int i = 0; i < STREAM_COUNT && r == 0; i++) {
		if (fstat(ends[i]->fd, &st[i]) < 0 || is_null_device(&st[i]))
			continue;
		if (i > 0 && c->streams[0] && is_same(&st[0], &st[i]))
			c->streams[i] = c->streams[0];
		else
			r = tee_open(ends[i]->fd, ends[i]->is_tty, TEE_QUEUE_MAX, &c->streams[i], err);
	}
	if (r < 0)
		console_close(c, -1, NULL);
	return r;
}

int console_open_terminal(struct console *c, const struct cli *cli, struct error *err)
{
	int r = console_open(c, cli, err);

	if (r < 0)
		return r;
	c->shows_terminal = true;
	c->look = (struct run_terminal){.like_fd = -1, .window_fd = -1, .room_fd = -1};
	r = session_open(&c->session, err);
	if (r == 0 && c->streams[STREAM_STDOUT]) {
		c->look.room_fd = tee_show_terminal(c->streams[STREAM_STDOUT], c->session.is_changed);
		r = c->look.room_fd < 0 ? error_system(err, errno, "cannot make an event for the output") : 0;
	}
	if (r < 0) {
		console_close(c, -1, NULL);
		return r;
	}
	c->look.like_fd = c->session.fd;
	c->look.window_fd = c->session.window_fd;
	return 0;
}

void console_started(void *console, int exec_errno)
{
	struct console *c = console;

	if (c->shows_terminal && !exec_errno)
		session_enter(&c->session);
}

void console_ended(void *console)
{
	struct console *c = console;

	if (c->shows_terminal)
		session_leave(&c->session);
}

void console_output(void *console, int stream, const char *data, size_t size)
{
	struct console *c = console;

	if (c->streams[stream])
		tee_write(c->streams[stream], stream, data, size);
}

static void add(char *out, size_t room, const char *label, const char *value)
{
	size_t used = strlen(out);

	snprintf(out + used, room - used, ", %s%s", label, value);
}

const char *progress_format(const struct progress *p, char *out, size_t room)
{
	char text[PRINT_ROOM];

	snprintf(out, room, "%s %s", p->stage ? p->stage : "running", print_duration(p->elapsed_ms, text));
	if (p->cpu_ms >= 0)
		add(out, room, "cpu ", print_duration(p->cpu_ms, text));
	if (p->memory_bytes >= 0)
		add(out, room, "memory ", print_size(p->memory_bytes, text));
	if (p->disk_files >= 0)
		add(out, room, "", print_count((uint64_t)p->disk_files, "file", text));
	return out;
}

void console_progress(void *console, const struct progress *p)
{
	struct console *c = console;
	char line[PROGRESS_ROOM];
	int width = terminal_width(c->terminal);

	if (!c->streams[STREAM_STDERR] || p->elapsed_ms < PROGRESS_AFTER_MS)
		return;
	if (p->bytes_total)
		bar_format(&(struct bar_state){.what = p->stage,
					       .done = p->bytes,
					       .total = p->bytes_total,
					       .elapsed_ms = p->elapsed_ms},
			   width, line, sizeof line);
	else
		progress_format(p, line, sizeof line);
	/* A line that wraps could not be erased. */
	if (width < PROGRESS_ROOM)
		line[width > 0 ? width - 1 : 0] = 0;
	tee_status(c->streams[STREAM_STDERR], line);
}

/* How much the reader has missed so far: nothing more can be missed once the analysis has ended. */
static uint64_t console_dropped(const struct console *c)
{
	uint64_t dropped = c->streams[0] ? tee_dropped(c->streams[0]) : 0;

	if (c->streams[1] && c->streams[1] != c->streams[0])
		dropped += tee_dropped(c->streams[1]);
	return dropped;
}

void console_say(struct console *c, const char *text)
{
	char note[128], size[PRINT_ROOM];
	uint64_t dropped = console_dropped(c);

	if (!c->streams[STREAM_STDERR])
		return;
	tee_status(c->streams[STREAM_STDERR], NULL);
	if (dropped > 0) {
		snprintf(note, sizeof note,
			 "fumehood: %s of output were not shown, because nobody read them in time\n",
			 print_size((int64_t)dropped, size));
		tee_say(c->streams[STREAM_STDERR], note);
	}
	if (*text)
		tee_say(c->streams[STREAM_STDERR], text);
}

void console_warned(void *console, const char *text)
{
	struct console *c = console;
	_cleanup_free_ char *line = view_warning(text, c->terminal->colour);

	if (!c->streams[STREAM_STDERR] || !line)
		return;
	tee_status(c->streams[STREAM_STDERR], NULL);
	tee_say(c->streams[STREAM_STDERR], line);
	c->told++;
}

int console_close(struct console *c, int cancel_fd, struct error *err)
{
	int r[STREAM_COUNT] = {0};

	if (c->shows_terminal)
		session_close(&c->session);
	if (c->streams[1] && c->streams[1] != c->streams[0])
		r[1] = tee_finish(c->streams[1], cancel_fd);
	if (c->streams[0])
		r[0] = tee_finish(c->streams[0], cancel_fd);
	c->streams[0] = c->streams[1] = NULL;
	if (r[0] == 0 && r[1] == 0)
		return 0;
	return error_system(err, r[0] < 0 ? -r[0] : -r[1], "cannot write to the standard %s",
			    r[0] < 0 ? "output" : "error");
}
