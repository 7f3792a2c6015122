/*
 * The attacker's program: `attacker NAME MARKER` tries one attack and says how it went. Its other roles are those of
 * roles.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "act.h"
#include "roles.h"

static int role_linger(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int i = 0; i < 60; i++)
		poll(NULL, 0, 1000);
	return 0;
}

static int role_attack(const char *name)
{
	static struct targets t;
	const struct attack *a = attack_find(name);
	if (!a || !a->run) {
		fprintf(stderr, "attacker: no attack '%s'\n", name);
		return 2;
	}
	puts("attacker: started");
	fflush(stdout);
	int r = targets_load(&t, "targets");
	linger_scale(targets_number(&t, "slowness"));
	if (!r)
		r = a->run(&t, a);
	printf("attacker: %s\n", r ? strerror(-r) : "done");
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} roles[] = {{"suite", role_suite},   {"victim", role_victim}, {"beside", role_beside},
		     {"before", role_before}, {"plain", role_plain},   {"linger", role_linger}};
	if (argc < 2)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (!strcmp(argv[1], roles[i].name))
			return roles[i].run(argc - 1, argv + 1);
	return role_attack(argv[1]);
}
