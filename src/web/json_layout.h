/*
 * JSON set out in lines, every word of it as it was written. Read and written anew, 0.1 would be another number, and of two members with one name
 * there would be one.
 */
#ifndef WEB_JSON_LAYOUT_H
#define WEB_JSON_LAYOUT_H

#include "html.h"

/* text is JSON: json_loadb() takes it. */
void json_layout(struct html *h, const char *text, size_t size);

#endif
