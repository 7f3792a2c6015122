/*
 * The tables that a request is read by (model/field.c, model/limit.c) and the list of verdicts (model/verdict.h), as JSON for
 * scripts/texts, which writes what is said about them elsewhere.
 */
#include <stdio.h>

#include "field.h"

static const char *const kinds[] = {
	[FIELD_TEXT] = "text",	       [FIELD_COMMAND] = "command", [FIELD_LIST] = "list",
	[FIELD_PATHS] = "list",	       [FIELD_QUERIES] = "list",    [FIELD_FLAG] = "flag",
	[FIELD_CHOICE] = "choice",     [FIELD_LIMITS] = "limits",   [FIELD_NUMBER] = "number",
	[FIELD_VERDICTS] = "verdicts",
};
static const char *const groups[] = {
	[GROUP_NONE] = "none",	   [GROUP_INPUTS] = "inputs", [GROUP_OUTPUTS] = "outputs",
	[GROUP_LIMITS] = "limits", [GROUP_REST] = "rest",     [GROUP_QUEUE] = "queue",
};
static const char *const units[] = {
	[UNIT_TIME] = "time", [UNIT_SIZE] = "size", [UNIT_COUNT] = "count", [UNIT_CPUS] = "cpus"};

static json_t *choices(const struct field *f)
{
	json_t *array = json_array();

	for (size_t i = 0; f->choices && f->choices[i]; i++)
		if (*f->choices[i])
			json_array_append_new(array, json_string(f->choices[i]));
	return array;
}

static json_t *fields(void)
{
	json_t *array = json_array();

	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];

		json_array_append_new(array,
				      json_pack("{s:s, s:s?, s:s, s:b, s:b, s:o, s:[iii], s:s, s:s?, s:s}",
						"key", f->key, "option", f->option, "kind", kinds[f->kind],
						"request", (f->where & FIELD_IN_REQUEST) != 0, "defaults",
						(f->where & FIELD_IN_DEFAULTS) != 0, "choices", choices(f),
						"range", f->min, f->max, f->built_in, "group",
						groups[f->group], "value", f->value, "help", f->help));
	}
	return array;
}

static json_t *limits(void)
{
	json_t *array = json_array();

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *l = &limit_table[i];
		char built_in[LIMIT_TEXT_SIZE], least[LIMIT_TEXT_SIZE];

		json_array_append_new(
			array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s}", "key", l->name, "option",
					 l->option, "unit", units[l->unit], "value", limit_unit_word(l->unit),
					 "built_in", limit_format_exact((enum limit)i, l->built_in, built_in),
					 "least", limit_format_exact((enum limit)i, l->least, least),
					 "always", l->always, "help", l->help));
	}
	return array;
}

static json_t *verdicts(void)
{
	json_t *array = json_array();

	for (int v = 0; v < VERDICT_COUNT; v++)
		json_array_append_new(array,
				      json_pack("{s:s, s:i, s:b}", "name", verdict_name((enum verdict)v),
						"number", v, "again", field_takes_verdict((enum verdict)v)));
	return array;
}

int main(void)
{
	json_auto_t *all =
		json_pack("{s:o, s:o, s:o}", "fields", fields(), "limits", limits(), "verdicts", verdicts());

	return json_dumpf(all, stdout, JSON_INDENT(1)) < 0;
}
