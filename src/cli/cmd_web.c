/*
 * fumehood web: the ledger as pages.
 */
#include <stdio.h>

#include "cli.h"
#include "signals.h"
#include "web.h"

static const char help[] =
	"  fumehood web                          prints an address: open it in a browser\n"
	"  fumehood web --listen 127.0.0.1:9000\n"
	"  fumehood web --listen unix:/run/fumehood/web.sock\n"
	"  ssh -L 9000:127.0.0.1:9000 HOST       then open it here\n"
	"\n"
	"It shows, and changes nothing: the ledger is opened without any right to write. Who looks needs the token in\n"
	"the address; on a unix socket it is its owner, or root. Every page has its JSON at the same address:\n"
	"  curl -H 'Authorization: Bearer TOKEN' -H 'Accept: application/json' http://127.0.0.1:9000/\n"
	"\n"
	"--listen ADDRESS   ADDRESS:PORT, PORT, or unix:PATH; else 127.0.0.1:8642, or another port if that is taken\n"
	"--host NAME:PORT   another name that browsers may know it by\n"
	"--secret FILE      what a server in front of it, which knows its users, sends as X-Fumehood-Secret\n"
	"--db URL  --config FILE\n";

static int on_ready(void *arg UNUSED, const char *address, struct error *err)
{
	printf("%s\n", address);
	return fflush(stdout) == 0 ? 0
				   : error_set(err, ERROR_SYSTEM,
					       "cannot say where the page is: stdout cannot be written to");
}

static int web_main(struct cli *cli, struct error *err)
{
	struct web_options w = {.ready = on_ready, .signal_fd = -1};
	const char *host = NULL;
	const struct option_row own[] = {
		{"--listen", OPTION_TEXT, &w.listen, "ADDRESS:PORT|unix:PATH", "where it can be asked"},
		{"--host", OPTION_TEXT, &host, "NAME:PORT", "another name that browsers may know it by"},
		{"--secret", OPTION_TEXT, &w.secret_file, "FILE",
		 "what a server in front of it sends as X-Fumehood-Secret, instead of a token"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0 || (r = signals_open(&w.signal_fd, err)) < 0)
		return r;
	w.hood = (struct hood_options){.config_file = cli->config, .ledger = cli->db};
	w.hosts = (char *[]){(char *)host, NULL};
	return web_serve(&w, err);
}

const struct command command_web = {
	.name = "web",
	.usage = "web [--listen ADDRESS:PORT|unix:PATH] [--host NAME:PORT] [--secret FILE]",
	.summary = "shows the ledger in a browser",
	.help = help,
	.main = web_main,
};
