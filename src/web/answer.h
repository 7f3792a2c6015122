/*
 * What is answered, before it is sent. Zero is an empty page that was found.
 */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "error.h"

struct answer {
	int status; /* of HTTP; 0: 200 */
	const char *type;
	struct buffer body;
	bool has_file; /* instead of it, a file from its beginning */
	int fd;
	uint64_t size;
	char *file_name;  /* to be saved under this name, never shown; NULL: shown */
	char *location;	  /* see there instead; or NULL */
	char *next;	  /* the address of the page that follows, or NULL */
	char *cookie;	  /* to be kept, or NULL */
	bool is_constant; /* until another version of us is installed */
};

void answer_done(struct answer *a);
/* The object as `--json` prints it. Takes json, which may be NULL: memory is out. */
int answer_json(struct answer *a, json_t *json, struct error *err);
/* The sentence, as a page or as JSON, with the status that goes with its kind. What was there before is gone. */
void answer_error(struct answer *a, bool wants_json, int status, const struct error *why);

#endif
