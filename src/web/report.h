/*
 * `fumehood report`: analyses as one file that stands alone, to be sent or kept. It has no script, asks for nothing, and its policy allows only the one
 * style that is in it. It is drawn as the pages are; where it would become too large, what comes later is told in less.
 */
#ifndef WEB_REPORT_H
#define WEB_REPORT_H

#include "buffer.h"
#include "hood.h"

enum { REPORT_BYTES_MAX = 5 * 1024 * 1024, REPORT_ANALYSES_MAX = 200 };

/* words: ids, or what they begin with. ERROR_NOT_FOUND names the word that is neither. *ret_count: analyses that are in it. */
int report_make(struct hood *h, char *const *words, struct buffer *ret, size_t *ret_count, struct error *err);

#endif
