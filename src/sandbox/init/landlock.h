/* Landlock's rulesets, sized by its ABI: too new a right is an error on an old kernel. */
#ifndef INIT_LANDLOCK_H
#define INIT_LANDLOCK_H

#include "init.h"

long landlock_abi(void); /* less than 1: none */
void landlock_say(long abi);

/* bare.c: from ABI 3 on. A ruleset that allows nothing, and what it then allows below a file or directory that is open. */
enum landlock_use { LANDLOCK_READ, LANDLOCK_WRITE, LANDLOCK_DEVICE };
int landlock_closed(long abi);
void landlock_open(int ruleset, int fd, const char *path, int directory, enum landlock_use use);
/* ABI 6: from now on our signals reach nobody but those we start. */
void landlock_scope_signals(void);

#endif
