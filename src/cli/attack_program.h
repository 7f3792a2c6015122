/* The attack suite (tests/attacks), as bytes; none with -Dattack=false. Nothing reads them but `doctor --attack`. */
#ifndef CLI_ATTACK_PROGRAM_H
#define CLI_ATTACK_PROGRAM_H

#include <stddef.h>

extern const char attack_program[];
extern const size_t attack_program_size;

#endif
