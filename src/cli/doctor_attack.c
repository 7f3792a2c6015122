/*
 * fumehood doctor --attack: the attack suite, one line per attack.
 */
#include "cli.h"

#ifdef FUMEHOOD_ATTACK

#include <stdio.h>

#include "attack.h"
#include "print.h"

struct attacks {
	const struct cli *cli;
	json_t *array; /* with --json */
};

static void on_report(void *arg, const struct attack_report *report)
{
	struct attacks *a = arg;
	_cleanup_free_ char *why = text_safe(report->why ? report->why : "");
	const struct terminal *t = &a->cli->out;
	enum style style = report->result == ATTACK_HELD      ? STYLE_GREEN
			   : report->result == ATTACK_ESCAPED ? STYLE_RED
							      : STYLE_YELLOW;

	if (a->cli->json) {
		json_array_append_new(a->array,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "family", report->family,
						"name", report->name, "mechanism", report->mechanism,
						"result", attack_result_name(report->result), "why",
						why ? why : "", "milliseconds", report->milliseconds));
		return;
	}
	if (a->cli->quiet && report->result == ATTACK_HELD)
		return;
	printf("%s%-17s%s %-10s %-28s %s\n", terminal_style(t, style), attack_result_name(report->result),
	       terminal_style(t, STYLE_RESET), report->family, report->name,
	       report->result == ATTACK_HELD ? report->mechanism
	       : why			     ? why
					     : "");
	fflush(stdout);
}

int doctor_attack(struct cli *cli, struct hood *h UNUSED, struct error *err)
{
	struct attacks attacks = {.cli = cli, .array = json_array()};
	struct attack_options options = {0};
	struct attack_summary sum = {0};
	int r = attacks.array ? attack_suite_run(&options, on_report, &attacks, &sum, err)
			      : error_memory(err);

	if (r < 0) {
		json_decref(attacks.array);
		return r;
	}
	if (cli->json)
		r = cli_print_json(cli,
				   json_pack("{s:i, s:i, s:i, s:o}", "held", (int)sum.held, "escaped",
					     (int)sum.escaped, "not_testable", (int)sum.not_testable,
					     "attacks", attacks.array),
				   err);
	else
		printf("\n%u held, %u escaped, %u not testable here\n", sum.held, sum.escaped,
		       sum.not_testable);
	if (!cli->json)
		json_decref(attacks.array);
	return r < 0 ? r : sum.escaped > 0 || sum.held == 0;
}

#else

int doctor_attack(struct cli *cli UNUSED, struct hood *h UNUSED, struct error *err)
{
	return error_set(err, ERROR_REFUSED,
			 "the attack suite is not part of this build: fumehood doctor says what is in force");
}

#endif
