/* Init, as bytes: written to a memfd and executed from there. */
#ifndef SANDBOX_EMBEDDED_H
#define SANDBOX_EMBEDDED_H

#include <stddef.h>

extern const unsigned char embedded_init[];
extern const size_t embedded_init_size;

#endif
