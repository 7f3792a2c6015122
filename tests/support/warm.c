/*
 * warm run ID [--NAME VALUE | --json | --again | -i]… -- CMD…: as `fumehood run`, but by the library, and by a spare (sandbox/stock.h): others go
 * before it, which leave nothing, until there is one. So that whoever takes a program that understands
 * `run`, the attack suite first of all, can be shown what a worker and the library do.
 *
 * Exit status 99: there was no spare, or it was not used.
 */
#include <fumehood.h>

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WARM_MAX = 50, NO_SPARE = 99 };

static void check(int r, const fh_error *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "warm: %s\n", err->message);
	exit(125);
}

/* A child of ours that is an init; with no command around, a spare. Its pid, or 0. */
static int spare_find(void)
{
	DIR *all = opendir("/proc");
	int found = 0;

	for (struct dirent *e; all && !found && (e = readdir(all));) {
		char path[300], text[400] = "", *end;
		FILE *f;

		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		f = isdigit((unsigned char)e->d_name[0]) ? fopen(path, "r") : NULL;
		if (f && fgets(text, sizeof text, f) && strstr(text, "(memfd:fumehood") &&
		    (end = strrchr(text, ')')) && atoi(end + 4) == getpid())
			found = atoi(text);
		if (f)
			fclose(f);
	}
	if (all)
		closedir(all);
	return found;
}

/* One that is dropped: it leaves nothing. */
static void go_before(fh_hood *hood, const char *id, int number)
{
	const char *command[] = {"/bin/true", NULL};
	fh_request *r = fh_request_new();
	fh_run *run = NULL;
	fh_error err = {0};
	char other[300];

	snprintf(other, sizeof other, "%.200s-before-%d", id, number);
	check(fh_request_set(r, "id", other, &err), &err);
	check(fh_request_command(r, command, &err), &err);
	check(fh_start(hood, r, FH_DEFER, &run, &err), &err);
	check(fh_run_wait(run, -1, &err), &err);
	fh_run_free(run);
	fh_request_free(r);
}

/* On a busy machine one may take longer than a spare lives. Its pid. */
static int heat(fh_hood *hood, const char *id)
{
	for (int i = 0; i < WARM_MAX; i++) {
		int pid = 0;

		go_before(hood, id, i);
		for (int ms = 0; i > 0 && ms < 100 && !pid; ms += 2) {
			poll(NULL, 0, 2);
			pid = spare_find();
		}
		if (pid) {
			poll(NULL, 0, 20); /* and is ready */
			return pid;
		}
	}
	exit(NO_SPARE);
}

/* As a terminal may be shown it: what the command does with more care (cli/passage.h). */
static void show(int fd, char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)data[i] < ' ' ? !strchr("\n\t", data[i]) : (unsigned char)data[i] > '~')
			data[i] = '?';
	(void)!write(fd, data, size);
}

/* The words up to "--"; the command's first. */
static int parse(int argc, char **argv, fh_request *request, int *ret_json)
{
	fh_error err = {0};
	int i = 3;

	check(fh_request_set(request, "id", argv[2], &err), &err);
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			*ret_json = 1;
		} else if (strcmp(argv[i], "--again") == 0) {
			check(fh_request_set(request, "again", NULL, &err), &err);
		} else if (strcmp(argv[i], "-i") == 0) {
			check(fh_request_stdin(request, 0, &err), &err);
		} else if (strncmp(argv[i], "--", 2) == 0 && i + 1 < argc) {
			check(fh_request_set(request, argv[i] + 2, argv[i + 1], &err), &err);
			i++;
		} else {
			fprintf(stderr, "warm: what is '%s'?\n", argv[i]);
			exit(2);
		}
	}
	check(fh_request_command(request, (const char *const *)(argv + i + (i < argc)), &err), &err);
	return 0;
}

/* With --json the record is alone on stdout. */
static void pass_on(fh_run *run, int json)
{
	char data[4096];
	ssize_t n;

	for (int stream = 0; stream < 2; stream++)
		while ((n = fh_run_read(run, stream, data, sizeof data, NULL)) > 0)
			show(json ? 2 : stream + 1, data, (size_t)n);
}

/* All but `run` is the command's, which lies two directories above us. */
static int become_command(char **argv)
{
	char path[4096] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 30);
	char *end = n > 0 ? strrchr(path, '/') : NULL;

	if (!end)
		return 2;
	memcpy(end, "/../../fumehood", sizeof "/../../fumehood");
	execv(path, argv);
	return 2;
}

int main(int argc, char **argv)
{
	fh_request *request = fh_request_new();
	fh_result *result = NULL;
	fh_hood *hood = NULL;
	fh_run *run = NULL;
	fh_error err = {0};
	int json = 0, spare, status;
	char *text = NULL;

	if (argc < 2 || strcmp(argv[1], "run") != 0)
		return become_command(argv);
	if (argc < 5)
		return 2;
	check(fh_open(NULL, NULL, &hood, &err), &err);
	parse(argc, argv, request, &json);
	spare = heat(hood, argv[2]);
	check(fh_start(hood, request, FH_FOLLOW | FH_WHOLE, &run, &err), &err);
	for (;;) {
		struct pollfd p = {.fd = fh_run_fd(run), .events = POLLIN};

		poll(&p, 1, -1);
		pass_on(run, json);
		if (fh_run_state(run) == FH_ENDED)
			break;
	}
	check(fh_run_result(run, &result, &err), &err);
	status = fh_result_status(result);
	if (fh_result_error(result, &err) != FH_OK)
		fprintf(stderr, "warm: %s\n", err.message);
	if (json && fh_result_json(result, 0, &text, &err) >= 0)
		printf("%s\n", text);
	if (spare_find() == spare && fh_result_error(result, &err) == FH_OK)
		status = NO_SPARE;
	fh_run_free(run);
	fh_close(hood);
	return status;
}
