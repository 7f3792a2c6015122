/*
 * fumehood picture SIDE: a PNG or JPEG from the standard input, as pixels on the standard output. For `fumehood web`, which starts it for each picture
 * of a stranger.
 */
#include "cli.h"
#include "picture_box.h"
#include "text.h"

static int picture_main(struct cli *cli, struct error *err)
{
	int side;

	if (cli->argc != 2 || int_parse(cli->argv[1], 1, PICTURE_SHOWN_MAX, &side) < 0)
		return cli_usage_error(cli, err);
	picture_box((uint32_t)side);
}

const struct command command_picture = {
	.name = "picture",
	.usage = "picture SIDE <FILE",
	.summary = "the pixels of a picture, for fumehood web",
	.help = "  fumehood picture 320 <plot.png | head -c 8 | od -An -tu4     how large it is shown\n",
	.main = picture_main,
};
