/* A private site for one test: configuration, state, ledger and workspaces in a directory of its own. */
#ifndef TESTS_LIB_SITE_H
#define TESTS_LIB_SITE_H

#include <fumehood.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct site {
	char directory[64];
	char config[128];
	fh_hood *hood;
};

/* cmocka's setup and teardown: *state is a struct site. */
int site_setup(void **state);
int site_teardown(void **state);
/* The hood closed and opened again. */
void site_open(struct site *s);

/* Fails the test with what err says. */
#define assert_ok(r, err)                                                                             \
	do {                                                                                          \
		if ((r) < 0)                                                                          \
			fail_msg("%s: %s: %s", fh_code_name((err).code), (err).stage, (err).message); \
	} while (0)

/* A request for a shell command, with a short wall limit. id may be NULL. */
fh_request *shell(const char *id, const char *script);
/* The whole story of it. */
fh_result *perform(struct site *s, const char *id, const char *script);

/* How many entries a directory has whose names begin with prefix. */
unsigned count_entries(const char *directory, const char *prefix);
/* Nothing is in the workspace root, and no run has a record. */
void assert_nothing_left(const struct site *s);

json_t *parse(char *text); /* frees it */
/* A process with this text in its command line, zombies not counted: its pid, or 0. */
pid_t find_process(const char *text);
/* Waits until there is one, or none; false after ten seconds. */
bool await_process(const char *text, bool there);
/* Milliseconds of a monotonic clock. */
int64_t now_ms(void);

#endif
