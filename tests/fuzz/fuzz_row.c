/* A line of a post-process: refused in one sentence, or a table and cells of the site's, the same as jansson reads. */
#include "fuzz.h"

#include <string.h>

#include "macros.h"
#include "row.h"

static const char site[] =
	"{\"genes\": [\"gene\", \"value\"], \"t\": {\"columns\": [\"a\", \"b\", \"c\"], "
	"\"fill\": {\"analysis_id\": \"{id}\"}, \"key\": [\"a\"], \"on_conflict\": \"update\"}}";

static void check_cell(const struct cell *c, const json_t *value)
{
	switch (c->kind) {
	case CELL_NULL:
		PROMISE(!value || json_is_null(value));
		return;
	case CELL_BOOL:
		PROMISE(json_is_boolean(value) && (c->text[0] == 't') == json_is_true(value));
		return;
	case CELL_NUMBER:
		PROMISE(json_is_number(value));
		return;
	case CELL_TEXT:
		PROMISE(json_string_length(value) == c->size);
		PROMISE(memcmp(json_string_value(value), c->text, c->size) == 0);
		PROMISE(!memchr(c->text, 0, c->size));
		return;
	case CELL_ARRAY:
		PROMISE(json_is_array(value));
		return;
	case CELL_OBJECT:
		PROMISE(json_is_object(value));
		return;
	}
	PROMISE(false);
}

static void check_array(const struct cell *c)
{
	_cleanup_buffer_ struct buffer scratch = {0};
	json_auto_t *array = json_loadb(c->json, c->json_size, JSON_DECODE_INT_AS_REAL, NULL);
	const char *at = NULL;
	struct cell element;
	size_t n = 0;

	while (cell_next(c, &at, &element, &scratch) == 1) {
		if (array)
			check_cell(&element, json_array_get(array, n));
		n++;
	}
	PROMISE(!array || n == json_array_size(array));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *config = json_loads(site, 0, NULL), *line = NULL;
	_cleanup_row_tables_ struct row_tables tables = {0};
	_cleanup_row_ struct row row = {0};
	_cleanup_free_ char *text = fuzz_text(data, size);
	struct error err = ERROR_INIT;

	PROMISE(text && row_tables_read(&tables, config, &err) == 0);
	if (row_parse_line(&tables, text, size, &row, &err) < 0) {
		PROMISE(err.kind == ERROR_REFUSED && err.message[0]);
		for (const unsigned char *p = (const unsigned char *)err.message; *p; p++)
			PROMISE(*p >= ' ' && *p != 0x7f);
		return 0;
	}
	/* jansson refuses numbers that no double can hold; for us they are text. */
	line = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, NULL);
	PROMISE(row.table_index < tables.count && row.table == &tables.list[row.table_index]);
	for (size_t i = 0; i < row.table->n_columns; i++) {
		const struct cell *c = &row.cells[i];

		PROMISE(!row.table->columns[i].fill || c->kind == CELL_NULL);
		if (line)
			check_cell(c,
				   json_object_get(json_object_get(line, "row"), row.table->columns[i].name));
		if (c->kind == CELL_ARRAY)
			check_array(c);
	}
	return 0;
}
