/*
 * Runs the attack suite against any program that understands `run ID [options] -- CMD`, so that the suite itself can be
 * tried without the command, and other sandboxes with it: attack-driver [-c] [-k] [-f FAMILY] [-n GLOB] PROGRAM
 */
#include <getopt.h>
#include <stdio.h>

#include "attack.h"

static void print(void *arg, const struct attack_report *r)
{
	(void)arg;
	printf("%-17s %-10s %-26s %5d ms  %s\n", attack_result_name(r->result), r->family, r->name,
	       r->milliseconds, r->why);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct attack_options options = {0};
	struct attack_summary summary;
	struct error err = ERROR_INIT;
	for (int c; (c = getopt(argc, argv, "ckf:n:s:")) != -1;) {
		if (c == 'c')
			options.controls_only = true;
		else if (c == 'k')
			options.keep = true;
		else if (c == 'f')
			options.family = optarg;
		else if (c == 'n')
			options.name = optarg;
		else if (c == 's')
			options.scratch = optarg;
		else
			return 2;
	}
	options.fumehood = argv[optind];
	if (attack_suite_run(&options, print, NULL, &summary, &err)) {
		fprintf(stderr, "attack-driver: %s\n", err.message);
		return 2;
	}
	printf("%u held, %u escaped, %u not testable here\n", summary.held, summary.escaped,
	       summary.not_testable);
	return summary.escaped ? 1 : 0;
}
