/*
 * What every fuzzer here is: one function that takes any bytes and returns 0, or aborts where the code under test
 * broke a promise. libFuzzer calls it, and so does replay.c for the files of a corpus.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                              \
	do {                                                                                            \
		if (!(condition)) {                                                                     \
			fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                        \
		}                                                                                       \
	} while (0)

/* A NUL-terminated copy on the heap, so that a sanitizer sees reads beyond the end. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
