/*
 * What the attacker is told about its target: paths, ports, pids, addresses, as key=value lines in a file that lies
 * in its working directory. It is told everything but the secret.
 */
#ifndef ATTACK_TARGETS_H
#define ATTACK_TARGETS_H

#include <stddef.h>

#include "macros.h"

enum { TARGETS_MAX = 128 };

struct targets {
	size_t count;
	struct {
		char key[32];
		char *value;
	} pair[TARGETS_MAX];
};

int targets_set(struct targets *t, const char *key, const char *format, ...) PRINTF_LIKE(3, 4);
const char *targets_text(const struct targets *t, const char *key); /* "" if it is not there */
long targets_number(const struct targets *t, const char *key);	    /* 0 if it is not there */
int targets_save(const struct targets *t, const char *path);	    /* -errno */
int targets_load(struct targets *t, const char *path);		    /* -errno */
int targets_read(struct targets *t, int fd);			    /* the same, and closes fd */
void targets_done(struct targets *t);

#endif
