/*
 * fumehood doctor: what this host can enforce, each item tried, and what to do about the rest.
 */
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "cli.h"

static const char help[] =
	"  fumehood doctor\n"
	"  fumehood doctor --attack            break out, with and without the hood, and see\n"
	"  fumehood doctor --attack --strength landlock   the same without namespaces\n"
	"  fumehood doctor --apparmor          a profile for this program, where AppArmor wants one\n"
	"  fumehood doctor --json | jq '.items[] | select(.ok | not)'\n"
	"\n"
	"Exit status: 0 when everything that is required is there, 1 when not.\n"
	"\n"
	"--attack  --strength full|landlock  --apparmor  --delegate USER  --db URL  --config FILE  --json  --quiet (only what is not there)\n";

static int examine(struct cli *cli, struct error *err)
{
	struct look look = terminal_look(&cli->out);

	return view_doctor_page(stdout, &look, cli->quiet, cli->hood, err);
}

static int do_delegate(struct cli *cli, const char *user, struct error *err)
{
	_cleanup_free_ char *done = NULL;
	int r = hood_delegate(user, &done, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, json_pack("{s:s, s:s}", "user", user, "done", done), err);
	if (!cli->quiet)
		printf("%s\n", done);
	return 0;
}

static int print_apparmor(struct cli *cli, struct error *err)
{
	_cleanup_free_ char *profile = NULL;
	int r = hood_apparmor(&profile, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, json_pack("{s:s}", "profile", profile), err);
	fputs(profile, stdout);
	return 0;
}

static int doctor_main(struct cli *cli, struct error *err)
{
	const char *delegate = NULL, *strength = NULL;
	bool attack = false, apparmor = false;
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--attack", OPTION_FLAG, &attack, NULL, "tries to break out, with and without the hood"},
		{"--strength", OPTION_TEXT, &strength, "full|landlock",
		 "with --attack: the strength that is tried, instead of the site's"},
		{"--apparmor", OPTION_FLAG, &apparmor, NULL,
		 "prints an AppArmor profile that lets this program make user namespaces"},
		{"--delegate", OPTION_TEXT, &delegate, "USER",
		 "as root: gives that user a cgroup to hold limits with"},
		{0}};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (strength && (!attack || (strcmp(strength, "full") != 0 && strcmp(strength, "landlock") != 0)))
		return error_set(
			err, ERROR_USAGE,
			"--strength goes with --attack, and is full or landlock: fumehood help doctor");
	if (apparmor)
		return print_apparmor(cli, err);
	if (delegate)
		return do_delegate(cli, delegate, err);
	r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	if (attack)
		return doctor_attack(cli, strength, err);
	return cli->json ? cli_answer(cli, view_doctor(cli->hood, &json, err), &json, err)
			 : examine(cli, err);
}

const struct command command_doctor = {
	.name = "doctor",
	.usage = "doctor [--attack [--strength full|landlock]] [--apparmor] [--delegate USER]",
	.summary = "what this host can enforce, and what to do about the rest",
	.help = help,
	.main = doctor_main,
};
