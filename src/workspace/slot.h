/*
 * Slots in a directory of one's own choice, private to this module and its tests: slot_take() is this in /run/fumehood.
 */
#ifndef WORKSPACE_SLOT_H
#define WORKSPACE_SLOT_H

#include "workspace.h"

enum { SLOT_COUNT = 65536, SLOT_FIRST_UID = 0x70000000 };

/* dirfd: a private directory. At most count slots are tried. */
int slot_take_in(int dirfd, unsigned count, struct slot *ret, struct error *err);

#endif
