/*
 * fumehood doctor --attack: becomes the attack suite, a program of its own that is carried along.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "attack_program.h"
#include "cli.h"
#include "file.h"

int doctor_attack(const struct cli *cli, const char *strength, struct error *err)
{
	_cleanup_close_ int program = -1, self = -1;
	char descriptor[16];
	const char *argv[10] = {"fumehood-attack", "suite", "-x", descriptor};
	size_t n = 4;

	if (attack_program_size == 0)
		return error_set(
			err, ERROR_REFUSED,
			"this build has no attack suite: build one with `meson setup -Dattack=true build` and "
			"`ninja -C build`; fumehood doctor says what is in force");
	program = file_in_memory("fumehood-attack", attack_program, attack_program_size, true, err);
	if (program < 0)
		return program;
	self = open("/proc/self/exe",
		    O_RDONLY); /* the suite inherits it: what it tries is this very program */
	if (self < 0)
		return error_system(err, errno,
				    "cannot open this program, '/proc/self/exe', for the attack suite");
	snprintf(descriptor, sizeof(descriptor), "%d", self);
	if (cli->json)
		argv[n++] = "-j";
	if (cli->quiet)
		argv[n++] = "-q";
	if (cli->out.colour)
		argv[n++] = "-C";
	if (strength) {
		argv[n++] = "-S";
		argv[n++] = strength;
	}
	fflush(stdout);
	fexecve(program, (char *const *)argv, environ);
	return error_system(
		err, errno,
		"cannot execute the attack suite from memory (is vm.memfd_noexec 2 on this host?)");
}
