/*
 * Commands that have their names already and come in a later version. They are refused, in one sentence,
 * rather than unknown, so that nobody looks for a typing error.
 */
#include "cli.h"

static int later_main(struct cli *cli, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "'fumehood %s' is not in version %s yet: %s", cli->command->name,
			 FUMEHOOD_VERSION, cli->command->help);
}

#define LATER(n, u, s, instead)                                                          \
	{                                                                                \
		.name = n, .usage = u, .summary = s, .help = instead, .main = later_main \
	}

const struct command later_commands[] = {
	LATER("shell", "shell ID", "a shell under the same hood in a kept workspace",
	      "keep the workspace with run --keep always and look at it from outside"),
	{0},
};
