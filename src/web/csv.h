/*
 * CSV as people write it (RFC 4180, and what is nearly that): fields between commas, quoted ones with commas, quotes and line breaks in them.
 */
#ifndef WEB_CSV_H
#define WEB_CSV_H

#include <stdbool.h>

#include "buffer.h"

/* The field at *at, without its quotes, into an empty buffer; *at is behind it and its comma or line break then. Was it the last one of its line? */
bool csv_field(const char **at, const char *end, struct buffer *field);

#endif
