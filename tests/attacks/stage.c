#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "launch.h"
#include "text.h"

const char *stage_path(struct stage *s, const char *relative)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/%s", s->platform->view, relative);
	return path;
}

const struct targets *stage_targets(struct stage *s)
{
	return &s->platform->targets;
}

const struct attack *stage_attack(struct stage *s)
{
	return s->attack;
}

const char *stage_workspace(struct stage *s)
{
	return s->workspace;
}

const char *stage_into(struct stage *s)
{
	return s->into;
}

bool stage_is_hooded(struct stage *s)
{
	return s->hooded;
}

void stage_hit(struct stage *s, const char *format, ...)
{
	if (s->hit)
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(s->evidence, sizeof(s->evidence), format, args);
	va_end(args);
	s->hit = true;
}

void stage_remember(struct stage *s)
{
	platform_describe(s->platform, &s->platform->tree);
}

int stage_needs_protocol(struct stage *s, const char *protocol)
{
	_cleanup_buffer_ struct buffer list = {0};
	char line[64];
	snprintf(line, sizeof(line), "\n%s ", protocol);
	if (file_load(AT_FDCWD, "/proc/net/protocols", 1 << 20, &list, NULL) || !strstr(list.data, line)) {
		snprintf(s->why, sizeof(s->why), "the kernel has not loaded this protocol");
		return -ENOENT;
	}
	return 0;
}

bool stage_output_has(struct stage *s, const char *words)
{
	return s->output.data && memmem(s->output.data, s->output.size, words, strlen(words));
}

const char *stage_output_json(struct stage *s, const char *after)
{
	const char *line = after ? strchr(after, '\n') : s->output.data;
	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line == '{')
			break;
	}
	return line;
}

void stage_ask(struct stage *s, const char *command)
{
	struct attack quiet = {.name = s->attack->name, .flags = ON_TERMINAL};
	struct stage ask = *s;
	char *argv[] = {s->platform->fumehood, (char *)command, s->id, NULL};
	ask.attack = &quiet;
	ask.output = ask.errors = (struct buffer){0};
	if (!launch(&ask, argv, 5000 * s->platform->slowness) && ask.output.data)
		buffer_append(&s->output, ask.output.data, ask.output.size);
	buffer_free(&ask.output);
	buffer_free(&ask.errors);
}

void stage_judge_rows(struct stage *s)
{
	long rows = postgres_count(s->platform);
	if (rows > s->rows_before)
		stage_hit(s, "PostgreSQL has %ld row more", rows - s->rows_before);
}

/* Calls it a survivor if the marker is among the arguments; a zombie has none. */
static bool is_marked(pid_t pid, const char *marker)
{
	char path[64], words[4096];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words));
	return n > 0 && memmem(words, (size_t)n, marker, strlen(marker));
}

/* Ends every process of this run that is still there; returns how many there were. */
static int end_marked(const char *marker)
{
	int found = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *e; dir && (e = readdir(dir));) {
		pid_t pid = (pid_t)atoi(e->d_name);
		if (pid > 1 && pid != getpid() && is_marked(pid, marker)) {
			kill(pid, SIGKILL);
			found++;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A survivor is one as soon as the supervisor has said that it is over. The control gets some time to show one. */
void stage_judge_survivors(struct stage *s)
{
	bool expected = s->attack->judge == stage_judge_survivors;
	int total = 0;
	for (int round = 0; round < 50; round++) {
		int found = end_marked(s->marker);
		total += found;
		if (!found && (total || s->hooded || !expected))
			break;
		poll(NULL, 0,
		     (found ? 2 : 10) * s->platform->slowness); /* one that hops may have been missed */
	}
	if (total && (s->hooded || expected))
		stage_hit(s, "%d of its processes outlived it", total);
}

static void judge_tree(struct stage *s)
{
	_cleanup_buffer_ struct buffer now = {0};
	platform_describe(s->platform, &now);
	const char *a = s->platform->tree.data, *b = now.data;
	if (!a || !b || !strcmp(a, b))
		return;
	while (*a && *a == *b)
		a++, b++;
	while (b > now.data && b[-1] != '\n')
		b--;
	char line[160], shown[200];
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(b, "\n"), b);
	text_escape_into(shown, sizeof(shown), line, strlen(line));
	stage_hit(s, "changed: %s", shown[0] ? shown : "a file is gone");
}

static void judge_outputs(struct stage *s)
{
	DIR *dir = opendir(s->into);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		_cleanup_buffer_ struct buffer content = {0};
		if (e->d_type == DT_REG && !file_load(dirfd(dir), e->d_name, 1 << 20, &content, NULL) &&
		    platform_secret_in(s->platform, content.data, content.size))
			stage_hit(s, "the secret was collected as an output");
		if (e->d_type == DT_LNK)
			stage_hit(s, "a link was collected as an output");
	}
	if (dir)
		closedir(dir);
}

static void judge_claim(struct stage *s)
{
	const char *claim = s->output.data ? strstr(s->output.data, "REACHED ") : NULL;
	if (claim && s->started)
		stage_hit(s, "%.*s", (int)strcspn(claim + 8, "\r\n"), claim + 8);
}

static void judge_beside(struct stage *s)
{
	struct buffer *said = &s->platform->beside[s->hooded].said;
	char block[1024];
	ssize_t n;
	int fd = s->platform->beside[s->hooded].output;
	poll(NULL, 0, 30 * s->platform->slowness); /* it wakes every 20 ms */
	said->size = 0;
	while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
		buffer_append(said, block, (size_t)n);
	const char *hit = said->size ? memmem(said->data, said->size, "HIT ", 4) : NULL;
	if (hit)
		stage_hit(s, "the other analysis was %.*s", (int)strcspn(hit, "\n") - 4, hit + 4);
}

/* Signals that were sent are not yet handled: the victim gets a moment, in a control a longer one. */
static void await_hit(struct stage *s)
{
	int rounds = s->hooded ? 2 : s->attack->effect == EFFECT_HIT && !s->hit ? 40 : 0;
	for (int i = 0; i < rounds && !s->platform->board->hits; i++)
		poll(NULL, 0, 5 * s->platform->slowness);
}

static void judge_victim(struct stage *s)
{
	await_hit(s);
	char now[sizeof(s->platform->state)];
	platform_describe_victim(s->platform, now, sizeof(now));
	if (strcmp(now, s->platform->state))
		stage_hit(s, "the victim's state changed: %.120s", now);
	if (s->platform->board->byte)
		stage_hit(s, "the victim's memory was written to");
	s->platform->board->byte = 0;
	if (s->platform->board->hits)
		stage_hit(s, "reached: %s", s->platform->board->first);
}

void stage_judge_all(struct stage *s)
{
	if (s->attack->flags & HANGS && s->hung)
		stage_hit(s, "it did not come to its end");
	if (s->attack->flags & OUTLIVES)
		poll(NULL, 0, 100 * s->platform->slowness);
	if (s->attack->judge)
		s->attack->judge(s);
	stage_judge_survivors(s);
	if (s->output.data && platform_secret_in(s->platform, s->output.data, s->output.size))
		stage_hit(s, "the secret came out");
	judge_outputs(s);
	if (s->attack->flags & BESIDE)
		judge_beside(s);
	judge_victim(s);
	judge_tree(s);
	judge_claim(s);
}
