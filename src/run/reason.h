/*
 * Why a command ended, in words: the evidence that its verdict rests on, with the limit that was reached.
 */
#ifndef RUN_REASON_H
#define RUN_REASON_H

#include "box.h"
#include "buffer.h"

struct end {
	const struct plan *plan;
	const struct evidence *evidence;
	const struct usage *usage;
	const struct disk_use *disk;
	int workspace;		      /* its descriptor, to look at what could not be executed; -1: none */
	bool looks_outside;	      /* see exec_reason.h */
	const struct limits *maximum; /* the site's, NULL: none */
};

/* Half a sentence, "the limit is 2s; --wall raises it"; nothing for a success, and for what the command itself cannot know (output_missing,
 * post_process_failed). */
void end_reason(const struct end *end, struct buffer *b);

#endif
