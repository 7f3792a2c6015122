/*
 * filter_compile MACHINE: runs at build time and prints the policy (policy.c) as BPF programs (filter.h) for that machine, which may be
 * another than the one that it runs on; libseccomp only translates names into numbers.
 *
 * A program is a binary search over ranges of numbers, then the checks of the one call: about ten instructions for most calls.
 * Numbers are compared by their lower half, as the kernel itself truncates them: a flag hidden with high bits set
 * (TIOCSTI | 1 << 32) is the same flag. Only a pointer needs both halves.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "policy.h"

enum { CODE_MAX = 4096, ANOTHERS = __NR_SCMP_ERROR - 1 };

/* As Meson names them. What the rows compare (flags, modes, requests of ioctl) is the same on both. */
static const struct machine {
	const char *name;
	uint32_t audit; /* what the kernel tells a filter */
	uint32_t seccomp;
} machines[] = {
	{"x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64},
	{"aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64},
};
static const struct machine *machine;

/* What the table says of one call. */
static struct call {
	const struct policy_row *row; /* NULL: ENOSYS */
	char *name;
	bool watched;
} calls[FILTER_CALLS];

static struct sock_filter code[CODE_MAX];
static unsigned length;
static enum filter_kind kind; /* which program is being made */

static void die(const char *what, const char *name)
{
	fprintf(stderr, "filter_compile: %s: %s\n", what, name);
	exit(1);
}

/* Of a call that is newer than libseccomp. Only from 424 on a number is the same on every machine. */
static int number_given(const char *digits)
{
	int number = atoi(digits);

	return number >= 424 || machine->audit == AUDIT_ARCH_X86_64 ? number : ANOTHERS;
}

/* Its number; below 0 it is another architecture's. */
static int number_of(char *word)
{
	char *colon = strchr(word, ':');
	int number =
		colon ? number_given(colon + 1) : seccomp_syscall_resolve_name_arch(machine->seccomp, word);

	if (colon)
		*colon = 0;
	if (number == __NR_SCMP_ERROR)
		die("no such system call", word);
	if (number >= FILTER_CALLS)
		die("number too large", word);
	return number;
}

/* again: in place of what an earlier row says. */
static void enter(const struct policy_row *row, bool again)
{
	char *words = strdup(row->calls), *rest = words, *word;

	while ((word = strtok_r(rest, " ", &rest))) {
		int number = number_of(word);

		if (number < 0)
			continue;
		if (!calls[number].row == again)
			die(again ? "named by no other row" : "named twice", word);
		free(calls[number].name);
		calls[number] = (struct call){.row = row, .name = strdup(word)};
	}
	free(words);
}

static void enter_watched(void)
{
	char *words = strdup(policy_watched), *rest = words, *word;

	while ((word = strtok_r(rest, " ", &rest))) {
		int number = number_of(word);

		if (number >= 0)
			calls[number].watched = true;
	}
	free(words);
}

static unsigned emit(unsigned short op, uint32_t k, unsigned yes, unsigned no)
{
	if (length == CODE_MAX || yes > 255 || no > 255)
		die("the program is too long", "");
	code[length] = (struct sock_filter){op, (uint8_t)yes, (uint8_t)no, k};
	return length++;
}

/* What a refusal is in the program that is being made, and what an allowance. */
static void emit_return(uint32_t action, bool watched)
{
	bool refused = (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
	uint32_t error = action & SECCOMP_RET_DATA & ~POLICY_USUAL;

	if (kind != FILTER_SILENT && refused && error && error != ENOSYS && !(action & POLICY_USUAL))
		action = SECCOMP_RET_USER_NOTIF;
	else if (kind == FILTER_EXPLAIN && action == ALLOW && watched)
		action = SECCOMP_RET_USER_NOTIF;
	else if (refused)
		action = REFUSE(error);
	emit(BPF_RET | BPF_K, action, 0, 0);
}

/* One half of an argument; both architectures are little-endian. */
static void emit_load(int arg)
{
	uint32_t half = (uint32_t)arg % UPPER(0) * 8 + (arg < UPPER(0) ? 0 : 4);

	emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args) + half, 0, 0);
}

static void emit_list(const struct policy_list *any)
{
	unsigned n = 0;

	while (any->numbers[n])
		n++;
	emit_load(any->arg);
	for (unsigned i = 0; i < n; i++)
		emit(BPF_JMP | BPF_JEQ | BPF_K, any->numbers[i], n - i, 0);
}

/* Each check jumps to the next clause when it does not hold; the length of a clause is known beforehand. */
static void emit_call(const struct call *call)
{
	const struct policy_row *row = call->row;

	if (!row) {
		emit_return(REFUSE(ENOSYS), false);
		return;
	}
	for (const struct clause *c = row->clauses; c->n >= 0; c++) {
		for (int i = 0; i < c->n; i++) {
			const struct policy_check *k = &c->checks[i];
			unsigned rest = (unsigned)(c->n - i - 1) * 3 + 1;

			emit_load(k->arg);
			emit(BPF_ALU | BPF_AND | BPF_K, k->mask, 0, 0);
			emit(BPF_JMP | BPF_JEQ | BPF_K, k->value, 0, rest);
		}
		emit_return(c->action, call->watched);
	}
	if (row->any.numbers)
		emit_list(&row->any);
	emit_return(row->action, call->watched);
	if (row->any.numbers)
		emit_return(ALLOW, call->watched);
}

struct policy_range {
	uint32_t start;
	const struct call *call;
};

static bool is_plain(const struct policy_row *row)
{
	return row->clauses[0].n < 0 && !row->any.numbers;
}

static bool same_action(const struct call *a, const struct call *b)
{
	if (kind == FILTER_EXPLAIN && a->watched != b->watched)
		return false;
	if (a->row == b->row)
		return true;
	return a->row && b->row && is_plain(a->row) && is_plain(b->row) && a->row->action == b->row->action;
}

/* The calls from ranges[low] to ranges[high - 1]: a comparison, then the lower half, then the upper. */
static void emit_search(const struct policy_range *ranges, int low, int high)
{
	int middle = (low + high) / 2;
	unsigned jump;

	if (high - low == 1) {
		emit_call(ranges[low].call);
		return;
	}
	emit(BPF_JMP | BPF_JGE | BPF_K, ranges[middle].start, 0, 1);
	jump = emit(BPF_JMP | BPF_JA, 0, 0, 0);
	emit_search(ranges, low, middle);
	code[jump].k = length - jump - 1;
	emit_search(ranges, middle, high);
}

static void compile(void)
{
	struct policy_range ranges[FILTER_CALLS + 1];
	int n = 0;

	length = 0;
	for (uint32_t i = 0; i < FILTER_CALLS; i++)
		if (n == 0 || !same_action(ranges[n - 1].call, &calls[i]))
			ranges[n++] = (struct policy_range){i, &calls[i]};
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(BPF_JMP | BPF_JEQ | BPF_K, machine->audit, 1, 0);
	emit_return(REFUSE(ENOSYS), false); /* i386 and others */
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit(BPF_JMP | BPF_JGE | BPF_K, FILTER_CALLS, 0, 1);
	emit_return(REFUSE(ENOSYS), false); /* x32, and what does not exist */
	emit_search(ranges, 0, n);
}

/* The programs and what is said of the calls, as the table is now. */
static void print_all(const char *suffix)
{
	unsigned lengths[FILTER_KINDS];

	enter_watched();
	for (kind = 0; kind < FILTER_KINDS; kind++) {
		compile();
		lengths[kind] = length;
		printf("static const struct sock_filter code%s_%d[] = {\n", suffix, (int)kind);
		for (unsigned i = 0; i < length; i++)
			printf("\t{0x%02x, %u, %u, 0x%08x},\n", code[i].code, code[i].jt, code[i].jf,
			       code[i].k);
		printf("};\n\n");
	}
	printf("const struct filter filters%s[FILTER_KINDS] = {\n", suffix);
	for (int i = 0; i < FILTER_KINDS; i++)
		printf("\t{code%s_%d, %u},\n", suffix, i, lengths[i]);
	printf("};\n\nconst char *const filter_names%s[FILTER_CALLS] = {\n", suffix);
	for (int i = 0; i < FILTER_CALLS; i++)
		if (calls[i].row)
			printf("\t[%d] = \"%s\",\n", i, calls[i].name);
	printf("};\n");
}

static const struct machine *machine_named(const char *name)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (strcmp(machines[i].name, name) == 0)
			return &machines[i];
	die("no such machine", name);
	return NULL;
}

int main(int argc, char **argv)
{
	machine = machine_named(argc == 2 ? argv[1] : "none was named");
	printf("/* Made by filter_compile.c from policy.c and policy_bare.c. */\n#include \"filter.h\"\n\n");
	for (unsigned i = 0; i < policy_rows; i++)
		enter(&policy[i], false);
	print_all("");
	for (unsigned i = 0; i < policy_bare_rows; i++)
		enter(&policy_bare[i], true);
	print_all("_bare");
	return 0;
}
