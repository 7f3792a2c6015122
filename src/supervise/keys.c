#include "keys.h"

enum { TILDE = '~', OUT = '.' };

bool keys_pass(struct keys *k, const char *data, size_t size, char *out, size_t *ret_size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		char c = data[i];

		if (k->has_tilde && c == OUT) {
			*ret_size = n;
			return true;
		}
		if (!k->in_line && !k->has_tilde && c == TILDE) {
			k->has_tilde = true;
			continue;
		}
		/* The second of two is the one that goes. */
		if (k->has_tilde && c != TILDE)
			out[n++] = TILDE;
		k->has_tilde = false;
		k->in_line = c != '\r' && c != '\n';
		out[n++] = c;
	}
	*ret_size = n;
	return false;
}
