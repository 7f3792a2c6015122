#include "site.h"

#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void write_config(const struct site *s)
{
	FILE *f = fopen(s->config, "w");

	assert_non_null(f);
	fprintf(f,
		"ledger: sqlite:%s/ledger.db\nstate_dir: %s/state\nworkspace: {root: %s/spaces, prefix: lib-}\n"
		"post_process:\n  tables:\n    finding: [title, score]\n",
		s->directory, s->directory, s->directory);
	assert_int_equal(fclose(f), 0);
}

void site_open(struct site *s)
{
	fh_error err = {0};

	fh_close(s->hood);
	s->hood = NULL;
	assert_ok(fh_open(s->config, getenv("TEST_LEDGER"), &s->hood, &err),
		  err); /* of with-postgres, or NULL */
}

int site_setup(void **state)
{
	struct site *s = calloc(1, sizeof *s);
	char path[128];

	assert_non_null(s);
	strcpy(s->directory, "/tmp/fumehood-lib-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	chmod(s->directory, 0755); /* the analysis's own user must get through to its workspace */
	snprintf(s->config, sizeof s->config, "%s/config.yaml", s->directory);
	snprintf(path, sizeof path, "%s/spaces", s->directory);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 01777), 0);
	write_config(s);
	site_open(s);
	*state = s;
	return 0;
}

int site_teardown(void **state)
{
	struct site *s = *state;

	fh_close(s->hood);
	nftw(s->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

fh_request *shell(const char *id, const char *script)
{
	const char *command[] = {"/bin/sh", "-c", script, NULL};
	fh_request *request = fh_request_new();
	fh_error err = {0};

	assert_non_null(request);
	if (id)
		assert_ok(fh_request_set(request, "id", id, &err), err);
	assert_ok(fh_request_set(request, "wall", "20s", &err), err);
	assert_ok(fh_request_set(request, "directory", "/", &err), err);
	assert_ok(fh_request_command(request, command, &err), err);
	return request;
}

fh_result *perform(struct site *s, const char *id, const char *script)
{
	fh_request *request = shell(id, script);
	fh_result *result = NULL;
	fh_error err = {0};

	assert_ok(fh_perform(s->hood, request, &result, &err), err);
	fh_request_free(request);
	return result;
}

unsigned count_entries(const char *directory, const char *prefix)
{
	DIR *dir = opendir(directory);
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (dir)
		closedir(dir);
	return n;
}

void assert_nothing_left(const struct site *s)
{
	char path[128];

	snprintf(path, sizeof path, "%s/spaces", s->directory);
	assert_int_equal(count_entries(path, ""), 0);
	snprintf(path, sizeof path, "%s/state/runs", s->directory);
	assert_int_equal(count_entries(path, ""), 0);
}

json_t *parse(char *text)
{
	json_error_t at;
	json_t *json = json_loads(text, JSON_DECODE_ANY, &at);

	if (!json)
		fail_msg("not JSON: %s: %s", at.text, text);
	fh_free(text);
	return json;
}

pid_t find_process(const char *text)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (dir && !found && (e = readdir(dir))) {
		char path[300], words[512] = "";
		FILE *f;
		size_t n;

		snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
		f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		n = fread(words, 1, sizeof words - 1, f);
		fclose(f);
		for (size_t i = 0; i + 1 < n; i++)
			words[i] = words[i] ? words[i] : ' ';
		if (strstr(words, text) && atoi(e->d_name) != getpid())
			found = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool await_process(const char *text, bool there)
{
	int64_t end = now_ms() + 10000;

	while ((find_process(text) != 0) != there) {
		if (now_ms() > end)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}
