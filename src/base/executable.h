/*
 * What a file that is to be executed says of itself in its first bytes: a script with its interpreter, a program with the
 * machine that it is for and the loader that it wants, or none of these. Pure: bytes that anybody may have written go in, and
 * nothing is opened because of them.
 */
#ifndef BASE_EXECUTABLE_H
#define BASE_EXECUTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* So much of the file is looked at: what the kernel reads, and the headers of what linkers make. */
enum { EXECUTABLE_LOOK = 4096 };

enum executable_kind {
	EXECUTABLE_EMPTY,
	EXECUTABLE_SCRIPT, /* "#!": word[0] is the interpreter */
	EXECUTABLE_PROGRAM, /* ELF for this machine: word[0] is its loader, "" if it needs none or it lies further behind */
	EXECUTABLE_FOREIGN, /* ELF for another one: word[0] is its name */
	EXECUTABLE_WINDOWS,
	EXECUTABLE_MACOS,
	EXECUTABLE_TEXT, /* printable, and no "#!" at its beginning */
	EXECUTABLE_OTHER,
};

struct executable {
	enum executable_kind kind;
	bool has_mark;	   /* a byte order mark stands before its text */
	bool has_return;   /* its first line ends in a carriage return */
	char word[2][256]; /* of a script: interpreter and the first word behind it, "" if there is none */
};

void executable_judge(const char *bytes, size_t size, struct executable *ret);
/* As `uname -m` says it. */
const char *executable_machine(void);

#endif
