#include "filter.h"

#include <errno.h>
#include <string.h>

/* A program has no loops, and only these instructions (filter_compile.c). */
uint32_t filter_judge(const struct filter *f, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned i = 0; i < f->length; i++) {
		const struct sock_filter *s = &f->code[i];

		switch (s->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + s->k, sizeof a);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= s->k;
			break;
		case BPF_JMP | BPF_JA:
			i += s->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			i += a == s->k ? s->jt : s->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			i += a >= s->k ? s->jt : s->jf;
			break;
		case BPF_RET | BPF_K:
			return s->k;
		default:
			return SECCOMP_RET_ERRNO | EPERM;
		}
	}
	return SECCOMP_RET_ERRNO | EPERM;
}
