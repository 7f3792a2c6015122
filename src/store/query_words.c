#include "query.h"

#include <string.h>
#include <strings.h>

#include "macros.h"
#include "text.h"

enum token {
	TOKEN_END,
	TOKEN_OTHER,
	TOKEN_NAME,
	TOKEN_QUOTED_NAME,
	TOKEN_TEXT,
	TOKEN_SEMICOLON,
	TOKEN_BROKEN
};

struct scan {
	const char *at, *end;
	const char *token; /* the last one */
	size_t size;
};

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name_part(char c)
{
	return is_name_start(c) || (c >= '0' && c <= '9') || c == '$';
}

static bool starts(const struct scan *s, const char *two)
{
	return s->end - s->at >= 2 && memcmp(s->at, two, 2) == 0;
}

/* Comments nest in PostgreSQL, and do not in SQLite: the text is refused where that could matter. */
static int skip_comment(struct scan *s)
{
	s->at += 2;
	while (s->at < s->end && !starts(s, "*/")) {
		if (starts(s, "/*"))
			return -1;
		s->at++;
	}
	if (s->at >= s->end)
		return -1;
	s->at += 2;
	return 0;
}

static int skip_blanks(struct scan *s)
{
	for (;;) {
		while (s->at < s->end && strchr(" \t\n\r\f\v", *s->at))
			s->at++;
		if (starts(s, "--")) {
			while (s->at < s->end && *s->at != '\n' && *s->at != '\r')
				s->at++;
		} else if (starts(s, "/*")) {
			if (skip_comment(s) < 0)
				return -1;
		} else {
			return 0;
		}
	}
}

/* From one quote to the next that is not doubled. */
static enum token take_quoted(struct scan *s, char quote, enum token kind)
{
	for (s->at++; s->at < s->end; s->at++) {
		if (*s->at != quote)
			continue;
		if (s->at + 1 < s->end && s->at[1] == quote)
			s->at++;
		else
			break;
	}
	if (s->at >= s->end)
		return TOKEN_BROKEN;
	s->at++;
	s->size = (size_t)(s->at - s->token);
	return kind;
}

static enum token scan_next(struct scan *s)
{
	if (skip_blanks(s) < 0)
		return TOKEN_BROKEN;
	s->token = s->at;
	s->size = 0;
	if (s->at >= s->end)
		return TOKEN_END;
	if (*s->at == '\'')
		return take_quoted(s, '\'', TOKEN_TEXT);
	if (*s->at == '"')
		return take_quoted(s, '"', TOKEN_QUOTED_NAME);
	if (is_name_start(*s->at)) {
		while (s->at < s->end && is_name_part(*s->at))
			s->at++;
		s->size = (size_t)(s->at - s->token);
		return TOKEN_NAME;
	}
	if (*s->at >= '0' && *s->at <= '9') {
		while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
			s->at++;
		s->size = (size_t)(s->at - s->token);
		return TOKEN_OTHER;
	}
	s->size = 1;
	return *s->at++ == ';' ? TOKEN_SEMICOLON : TOKEN_OTHER;
}

int query_trim(const char *sql, size_t *ret_size, struct error *err)
{
	struct scan s = {.at = sql, .end = sql + strlen(sql)};
	const char *last = sql;
	enum token t;

	while ((t = scan_next(&s)) != TOKEN_END && t != TOKEN_SEMICOLON && t != TOKEN_BROKEN)
		last = s.at;
	if (t == TOKEN_SEMICOLON)
		t = scan_next(&s);
	if (t == TOKEN_BROKEN)
		return error_set(err, ERROR_REFUSED,
				 "a quote or a comment in it is not closed, or a comment is nested");
	if (t != TOKEN_END)
		return error_set(err, ERROR_REFUSED, "it is more than one statement");
	if (last == sql)
		return error_set(err, ERROR_REFUSED, "it is empty");
	*ret_size = (size_t)(last - sql);
	return 0;
}

/* What reads or changes the server itself, runs text as a query, or takes back the role. */
static bool is_forbidden(const char *name, size_t size)
{
	static const char *const prefixes[] = {
		"pg_",		"lo_",		 "dblink",	    "query_to_xml",   "cursor_to_xml",
		"table_to_xml", "schema_to_xml", "database_to_xml", "binary_upgrade", "fumehood",
		"crosstab"};
	static const char *const words[] = {"set_config",
					    "ts_stat",
					    "ts_rewrite",
					    "setval",
					    "nextval",
					    "xpath_table",
					    "connectby",
					    "loread",
					    "lowrite",
					    "txid_current",
					    "brin_summarize_new_values",
					    "gin_clean_pending_list"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (size >= strlen(prefixes[i]) && strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (size == strlen(words[i]) && strncasecmp(name, words[i], size) == 0)
			return true;
	return false;
}

int query_check_words(const char *sql, size_t size, struct error *err)
{
	struct scan s = {.at = sql, .end = sql + size};
	char shown[128];
	enum token t;

	while ((t = scan_next(&s)) != TOKEN_END) {
		const char *name = t == TOKEN_QUOTED_NAME ? s.token + 1 : s.token;
		size_t n = t == TOKEN_QUOTED_NAME ? s.size - 2 : s.size;

		if (t == TOKEN_BROKEN)
			return error_set(err, ERROR_REFUSED, "a quote or a comment in it is not closed");
		/* E'…', U&'…', U&"…" and $$…$$ have escapes of their own, in which a name could hide. */
		if (t == TOKEN_NAME && s.at < s.end &&
		    ((*s.at == '\'' && n == 1 && (*name | 0x20) == 'e') ||
		     (*s.at == '&' && n == 1 && (*name | 0x20) == 'u')))
			return error_set(err, ERROR_REFUSED,
					 "it has a text with escapes (%.*s…): write it plainly", (int)n,
					 name);
		if (t == TOKEN_OTHER && *s.token == '$')
			return error_set(err, ERROR_REFUSED,
					 "it has a '$' outside of a text: write texts as '…'");
		if ((t == TOKEN_NAME || t == TOKEN_QUOTED_NAME) && is_forbidden(name, n))
			return error_set(
				err, ERROR_REFUSED,
				"it names '%s', which is the database server's own and not for queries",
				text_escape_into(shown, sizeof shown, name, n));
	}
	return 0;
}

int csv_put(struct buffer *b, const char *text, size_t size)
{
	bool quoted = size == 0;

	if (!text)
		return 0;
	for (size_t i = 0; i < size && !quoted; i++)
		quoted = strchr(",\"\n\r", text[i]) != NULL;
	if (!quoted)
		return buffer_append(b, text, size);
	buffer_puts(b, "\"");
	for (size_t i = 0; i < size; i++)
		buffer_append(b, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
	return buffer_puts(b, "\"");
}
