/*
 * A complete program on libfumehood: it runs an analysis under the hood, follows what it writes, looks at what came out,
 * adds rows and a result of its own, and commits everything in one transaction.
 *
 *     cc analysis.c $(pkg-config --cflags --libs libfumehood) -o analysis
 *     ./analysis a42 python3 -c 'print("hello"); open("answer.txt", "w").write("42\n")'
 */
#include <fumehood.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain(const fh_error *err)
{
	fprintf(stderr, "analysis: %s: %s\n", err->stage, err->message);
	return 125;
}

/* What was asked for: the words of `fumehood run`, without their dashes. */
static fh_request *make_request(const char *id, char **command, fh_error *err)
{
	fh_request *request = fh_request_new();

	if (request && fh_request_set(request, "id", id, err) == 0 &&
	    fh_request_set(request, "again", "true", err) == 0 &&
	    fh_request_set(request, "wall", "5m", err) == 0 &&
	    fh_request_set(request, "optional_output", "*.txt", err) == 0 &&
	    fh_request_command(request, (const char *const *)command, err) == 0)
		return request;
	fh_request_free(request);
	return NULL;
}

/* Shows one stream as far as it goes. It is a stranger's: a real program would escape what a terminal obeys. */
static int show(fh_run *run, int stream)
{
	char text[4096];
	ssize_t n;

	while ((n = fh_run_read(run, stream, text, sizeof text, NULL)) > 0)
		fwrite(text, 1, (size_t)n, stream == FH_STDOUT ? stdout : stderr);
	return n == 0; /* there may be more later */
}

/* The descriptor fits into any event loop; here it is the only one that is waited for. */
static void follow(fh_run *run)
{
	struct pollfd p = {.fd = fh_run_fd(run), .events = POLLIN};
	int more = 1;

	while (more && (poll(&p, 1, -1) >= 0 || errno == EINTR)) {
		more = show(run, FH_STDOUT);
		more |= show(run, FH_STDERR);
	}
}

/* The verdict is known, nothing is committed, and the outputs can be read. They are hostile files: this one counts
 * bytes, and parses nothing. */
static long count_bytes(fh_run *run, const char *path, fh_error *err)
{
	char data[4096];
	long bytes = 0;
	ssize_t n;
	int fd = fh_run_open_output(run, path, err);

	if (fd < 0)
		return -1;
	while ((n = read(fd, data, sizeof data)) > 0)
		bytes += n;
	close(fd);
	return n < 0 ? -1 : bytes;
}

static int finish(fh_run *run, fh_error *err)
{
	fh_result *result = NULL;
	char summary[128];
	long bytes = 0;
	int r = fh_run_result(run, &result, err);

	for (size_t i = 0; r == 0 && i < fh_result_outputs(result); i++) {
		fh_output o;
		long n;

		r = fh_result_output(result, i, &o, err);
		if (r == 0 && (n = count_bytes(run, o.path, err)) > 0)
			bytes += n;
	}
	fh_result_free(result);
	if (r < 0 || fh_run_state(run) == FH_ENDED) /* refused: there is nothing to commit */
		return r;
	snprintf(summary, sizeof summary, "{\"bytes\": %ld}", bytes);
	return fh_run_commit(run, NULL, 0, summary, err);
}

/* What became of it; the exit status is the one of `fumehood run`. */
static int report(fh_run *run, fh_error *err)
{
	fh_result *result = NULL;
	int status;

	if (fh_run_result(run, &result, err) < 0)
		return complain(err);
	if (fh_result_error(result, err) != FH_OK)
		complain(err);
	fprintf(stderr, "%s attempt %d %s, %zu outputs, %lld ms of cpu, %s\n", fh_result_id(result),
		fh_result_attempt(result), fh_verdict_name(fh_result_verdict(result)),
		fh_result_outputs(result), (long long)fh_result_usage(result, "cpu_ms"),
		fh_result_committed(result) ? "committed" : "not committed");
	status = fh_result_status(result);
	fh_result_free(result);
	return status;
}

int main(int argc, char **argv)
{
	fh_error err = {0};
	fh_hood *hood = NULL;
	fh_request *request = NULL;
	fh_run *run = NULL;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: analysis ID COMMAND [ARGUMENT...]\n");
		return 125;
	}
	if (fh_open(NULL, NULL, &hood, &err) == 0 && (request = make_request(argv[1], argv + 2, &err)) &&
	    fh_start(hood, request, FH_DEFER | FH_FOLLOW, &run, &err) == 0) {
		follow(run);
		status = finish(run, &err) < 0 ? complain(&err) : report(run, &err);
	} else {
		status = complain(&err);
	}
	fh_run_free(run); /* had we left earlier, the analysis would be killed here, and nothing be left */
	fh_request_free(request);
	fh_close(hood);
	return status;
}
