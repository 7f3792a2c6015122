/*
 * What somebody types at a terminal, on its way to the terminal of a command: every key goes there, but for the one word that is
 * for us. `~.` at the beginning of a line means that he wants out, `~~` there is a tilde; as in ssh. The command cannot see to it
 * that it is not heard.
 */
#ifndef SUPERVISE_KEYS_H
#define SUPERVISE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: nothing was typed yet, which is the beginning of a line. */
struct keys {
	bool in_line;
	bool has_tilde; /* at the beginning of a line, and not passed on yet */
};

/* Writes what is for the command to out, which has room for size + 1 bytes, and how much that is to *ret_size. True: he wants out;
 * nothing typed after that counts. */
bool keys_pass(struct keys *k, const char *data, size_t size, char *out, size_t *ret_size);

#endif
