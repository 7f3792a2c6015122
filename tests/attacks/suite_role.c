/*
 * The suite's own role: takes its options, tells how each attack went in lines or as one object, and exits as `fumehood
 * doctor --attack` does, which becomes this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "attack.h"
#include "macros.h"
#include "roles.h"
#include "text.h"

enum { STATUS_OURS = 125 };

struct told {
	struct attack_options options;
	char program[32]; /* where a program that is given by descriptor is found */
	bool json, quiet, colour;
	json_t *attacks; /* with json */
};

static const char *colour_of(const struct told *t, enum attack_result r)
{
	static const char *const colours[] = {"\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[33m"};
	return t->colour ? colours[r] : "";
}

static void tell(void *arg, const struct attack_report *report)
{
	struct told *t = arg;
	_cleanup_free_ char *why = text_safe(report->why ? report->why : "");
	const char *result = attack_result_name(report->result);
	if (t->json) {
		json_array_append_new(t->attacks,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "family", report->family,
						"name", report->name, "mechanism", report->mechanism,
						"result", result, "why", why ? why : "", "milliseconds",
						report->milliseconds));
		return;
	}
	if (t->quiet && report->result == ATTACK_HELD)
		return;
	printf("%s%-17s%s %-10s %-28s %s\n", colour_of(t, report->result), result, t->colour ? "\x1b[0m" : "",
	       report->family, report->name,
	       report->result == ATTACK_HELD ? report->mechanism
	       : why			     ? why
					     : "");
	fflush(stdout);
}

/* On a terminal everything beyond ASCII is escaped: names may hold what a terminal obeys. */
static int print_json(json_t *json)
{
	int r = json ? json_dumpf(json, stdout,
				  JSON_INDENT(2) | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0))
		     : -1;
	json_decref(json);
	return r || puts("") == EOF;
}

static int fail(const struct told *t, const struct error *err)
{
	if (t->json)
		print_json(json_pack("{s:{s:s, s:s, s:s}}", "error", "stage", "doctor", "code",
				     error_kind_name(err->kind), "message", err->message));
	else
		fprintf(stderr, "fumehood: %s\n", err->message);
	return STATUS_OURS;
}

static int sum_up(struct told *t, const struct attack_summary *sum)
{
	bool lost = false;
	char not_held[64] = "";
	if (sum->not_held)
		snprintf(not_held, sizeof(not_held), "%u not held at this strength, ", sum->not_held);
	if (t->json)
		lost = print_json(json_pack("{s:i, s:i, s:i, s:i, s:O}", "held", (int)sum->held, "escaped",
					    (int)sum->escaped, "not_held", (int)sum->not_held, "not_testable",
					    (int)sum->not_testable, "attacks", t->attacks));
	else
		printf("\n%u held, %u escaped, %s%u not testable here\n", sum->held, sum->escaped, not_held,
		       sum->not_testable);
	if (lost || fflush(stdout)) {
		fprintf(stderr, "fumehood: cannot write the result of the attacks to the standard output\n");
		return STATUS_OURS;
	}
	return sum->escaped > 0 || sum->held == 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: fumehood-attack suite [-cjkqC] [-f FAMILY] [-n GLOB] [-s SCRATCH] [-S STRENGTH] PROGRAM | -x DESCRIPTOR\n");
	return STATUS_OURS;
}

/* The program to try may be open already: then it need not be found by a path, and nobody else inherits it. */
static bool take_program(struct told *t, const char *descriptor)
{
	int fd = atoi(descriptor);
	snprintf(t->program, sizeof(t->program), "/proc/self/fd/%d", fd);
	t->options.fumehood = t->program;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool take_options(struct told *t, int argc, char **argv)
{
	bool ok = true;
	for (int c; ok && (c = getopt(argc, argv, "cf:jkn:qs:x:CS:")) != -1;) {
		switch (c) {
		case 'c':
			t->options.controls_only = true;
			break;
		case 'f':
			t->options.family = optarg;
			break;
		case 'j':
			t->json = true;
			break;
		case 'k':
			t->options.keep = true;
			break;
		case 'n':
			t->options.name = optarg;
			break;
		case 'q':
			t->quiet = true;
			break;
		case 's':
			t->options.scratch = optarg;
			break;
		case 'x':
			ok = take_program(t, optarg);
			break;
		case 'C':
			t->colour = true;
			break;
		case 'S':
			t->options.strength = optarg;
			break;
		default:
			ok = false;
		}
	}
	if (ok && !t->options.fumehood)
		t->options.fumehood = argv[optind];
	return ok && t->options.fumehood;
}

int role_suite(int argc, char **argv)
{
	struct told t = {.json = false};
	struct attack_summary sum;
	struct error err = ERROR_INIT;
	if (!take_options(&t, argc, argv))
		return usage();
	t.attacks = json_array();
	int r = t.attacks ? attack_suite_run(&t.options, tell, &t, &sum, &err) : error_memory(&err);
	int status = r ? fail(&t, &err) : sum_up(&t, &sum);
	json_decref(t.attacks);
	return status;
}
