/*
 * One table of what a request consists of. Options, request files, the configuration's defaults and stored JSON are
 * all read and written through it, so that a field has one name and one meaning. Help and "did you mean" come out of it
 * too, and so do the tables of docs/FORMATS.md and the JSON Schemas (scripts/texts). Private to the model.
 */
#ifndef MODEL_FIELD_H
#define MODEL_FIELD_H

#include "node.h"
#include "request.h"
#include "verdict.h"

enum field_kind {
	FIELD_TEXT,
	FIELD_COMMAND, /* words, or one text that is split into them */
	FIELD_LIST,
	FIELD_PATHS,   /* pairs "FROM:TO" */
	FIELD_QUERIES, /* pairs "NAME=SQL" */
	FIELD_FLAG,
	FIELD_CHOICE,
	FIELD_LIMITS,
	FIELD_NUMBER,	/* int, from min to max */
	FIELD_VERDICTS, /* a set of them, bit by bit; one word may name several, with commas */
};

/* Where a field may stand. */
enum { FIELD_IN_REQUEST = 1, FIELD_IN_DEFAULTS = 2, FIELD_IN_STORE = 4 };

struct field {
	const char *key;
	const char *option; /* NULL: not on the command line (limits have their own table) */
	enum field_kind kind;
	unsigned where;
	size_t offset;
	size_t count_offset;	    /* PATHS, QUERIES: of the number of pairs */
	const char *const *choices; /* CHOICE: names by value, NULL-terminated; "" cannot be chosen */
	int min, max, built_in;	    /* NUMBER */
	enum option_group group;    /* where help shows the option */
	const char *value;	    /* what it takes, for help: "DIR"; NULL for flags, choices and numbers */
	const char *remark;	    /* beside it there, or NULL */
	const char *help;	    /* what it means, in a line: for FORMATS and the schemas */
};

extern const struct field field_table[];
extern const size_t field_count;

const struct field *field_by_key(const char *key, unsigned where); /* or NULL */
const struct field *field_by_option(const char *option);	   /* or NULL */

/* What trying again could change: the verdicts that VERDICTS are of. */
bool field_takes_verdict(enum verdict v);

/* Given a value, by these functions (even one that equals "unset", such as false) or by hand. */
bool field_is_set(const struct field *f, const struct request *r);
void field_mark(const struct field *f, struct request *r);
void field_done(const struct field *f, struct request *r);
int field_copy(const struct field *f, struct request *to, const struct request *from, struct error *err);
int field_from_option(const struct field *f, struct request *r, const char *value, struct error *err);
json_t *field_to_json(const struct field *f,
		      const struct request *r); /* new reference; NULL if memory is out */

/* The keys of a map into r, whose fields must be unset; where says which are known, name what the map is called. */
int request_read(struct request *r, const struct node *map, const char *file, const char *name,
		 unsigned where, enum limit_origin origin, struct error *err);
/* A map of limits; each is marked with origin. */
int limits_read(struct limits *l, const struct node *map, const char *file, enum limit_origin origin,
		struct error *err);

#endif
