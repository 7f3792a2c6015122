#include "inspect.h"
#include "file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

const char *const stage_names[STAGE_COUNT] = {
	[STAGE_PLAN] = "plan",	     [STAGE_WORKSPACE] = "workspace", [STAGE_LIMITS] = "limits",
	[STAGE_SANDBOX] = "sandbox", [STAGE_RUNNING] = "running",     [STAGE_COLLECT] = "collect",
	[STAGE_COMMIT] = "commit",   [STAGE_CLEAN_UP] = "clean up",   [STAGE_END] = "end",
};

static int run_folder(const struct ground *g, const char *id)
{
	char path[512];

	snprintf(path, sizeof path, "%s/state/fumehood/runs/%s", g->dir, id);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static json_t *record_read(int folder)
{
	_cleanup_buffer_ struct buffer b = {0};
	const char *line;

	if (folder < 0 || file_load(folder, "record.json", 1 << 24, &b, NULL) < 0 || b.size == 0)
		return NULL;
	/* Each is a record by itself, and the last counts. */
	b.size -= b.data[b.size - 1] == '\n';
	line = memrchr(b.data, '\n', b.size);
	line = line ? line + 1 : b.data;
	return json_loadb(line, b.size - (size_t)(line - b.data), 0, NULL);
}

static int children_of(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_type == DT_DIR && e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static bool cgroups_made(const struct ground *g)
{
	for (int i = 0; i < g->n_cgroups; i++)
		if (children_of(g->cgroups[i]) > 0)
			return true;
	return false;
}

static bool is_empty(int folder, const char *name)
{
	struct stat st;

	return folder < 0 || fstatat(folder, name, &st, 0) < 0 || st.st_size == 0;
}

bool run_has(const struct ground *g, const char *id, const char *name)
{
	_cleanup_close_ int folder = run_folder(g, id);

	return !is_empty(folder, name);
}

/* Taken out of the way, and not removed yet. */
static bool is_retired(const struct ground *g)
{
	char path[512];
	DIR *d;
	const struct dirent *e;
	bool found = false;

	snprintf(path, sizeof path, "%s/state/fumehood/runs", g->dir);
	d = opendir(path);
	while (d && (e = readdir(d)))
		found |= strncmp(e->d_name, ".gone-", 6) == 0;
	if (d)
		closedir(d);
	return found;
}

/* A zombie is dead: only its parent has not asked yet. */
static bool is_alive(pid_t pid)
{
	_cleanup_buffer_ struct buffer b = {0};
	const char *state;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (pid <= 0 || file_load(AT_FDCWD, path, 4096, &b, NULL) < 0 || !b.data)
		return false;
	state = strrchr(b.data, ')');
	return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

/* Its first child is the command from the moment that it is executed. */
static bool has_executed(pid_t init)
{
	_cleanup_buffer_ struct buffer b = {0}, name = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)init, (int)init);
	if (init <= 0 || file_load(AT_FDCWD, path, 4096, &b, NULL) < 0 || !b.data || atoi(b.data) <= 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/comm", atoi(b.data));
	return file_load(AT_FDCWD, path, 64, &name, NULL) == 0 && name.data &&
	       strncmp(name.data, "fumehood", 8) != 0;
}

static enum stage stage_tell(const struct ground *g, int folder, const json_t *record, bool gone)
{
	pid_t init = (pid_t)json_integer_value(json_object_get(json_object_get(record, "init"), "pid"));
	const char *scratch = json_string_value(json_object_get(record, "scratch"));
	bool cleans_up = !scratch || access(scratch, F_OK) < 0; /* it is the first to go */

	if (!record && gone)
		return is_retired(g) ? STAGE_CLEAN_UP : STAGE_END;
	if (!record)
		return STAGE_PLAN;
	if (!is_empty(folder, "finished.json"))
		return cleans_up ? STAGE_CLEAN_UP : STAGE_COMMIT;
	if (init == 0)
		return cgroups_made(g) ? STAGE_LIMITS : STAGE_WORKSPACE;
	if (init > 0 && !is_alive(init))
		return cleans_up ? STAGE_CLEAN_UP : STAGE_COLLECT;
	return has_executed(init) || !is_empty(folder, "stdout") ? STAGE_RUNNING : STAGE_SANDBOX;
}

void sight_take(const struct ground *g, const char *id, bool gone, struct sight *ret)
{
	_cleanup_close_ int folder = run_folder(g, id);
	json_t *record = record_read(folder);
	pid_t init = (pid_t)json_integer_value(json_object_get(json_object_get(record, "init"), "pid"));

	ret->stage = stage_tell(g, folder, record, gone);
	ret->init_noted = init > 0;
	ret->init_lives = is_alive(init);
	ret->ended = !is_empty(folder, "ended");
	ret->finished = ret->stage >= STAGE_COMMIT;
	ret->own_disk = g->own_disk;
	json_decref(record);
}

enum expected sight_expects(const struct sight *s)
{
	if (s->finished || (s->ended && !s->own_disk))
		return EXPECT_SUCCEEDED;
	if (!s->init_noted)
		return EXPECT_NOTHING;
	/* What lies on a file system that dies with its processes becomes lasting by the commit itself. */
	return s->own_disk && s->stage >= STAGE_COLLECT ? EXPECT_ENDED : EXPECT_LOST;
}
