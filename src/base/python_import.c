#include "python_import.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct scan {
	const char *at, *end;
	python_import_fn fn;
	void *arg;
	unsigned count;
	int stop; /* what fn said */
};

/* Blanks, and line ends that a backslash hides, or brackets do. */
static void skip_blanks(struct scan *s, bool in_brackets)
{
	for (; s->at < s->end; s->at++) {
		size_t left = (size_t)(s->end - s->at);

		if (*s->at == ' ' || *s->at == '\t' || *s->at == '\f' || (in_brackets && *s->at == '\n') ||
		    (in_brackets && *s->at == '\r'))
			continue;
		if (in_brackets && *s->at == '#') {
			const char *line = memchr(s->at, '\n', left);

			if (!line) {
				s->at = s->end;
				return;
			}
			s->at = line;
			continue;
		}
		if (*s->at != '\\' || left < 2 || (s->at[1] != '\n' && s->at[1] != '\r'))
			return;
		s->at += s->at[1] == '\r' && left > 2 && s->at[2] == '\n' ? 2 : 1;
	}
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (uint8_t)c >= 0x80;
}

static bool is_name_part(char c)
{
	return is_name_start(c) || (c >= '0' && c <= '9');
}

/* One name, appended to what is there; false: there is none, or it is too long. */
static bool take_name(struct scan *s, char out[PYTHON_NAME_ROOM])
{
	size_t used = strlen(out), n;
	const char *from = s->at;

	if (s->at >= s->end || !is_name_start(*s->at))
		return false;
	while (s->at < s->end && is_name_part(*s->at))
		s->at++;
	n = (size_t)(s->at - from);
	if (n >= PYTHON_NAME_ROOM - used)
		return false;
	memcpy(out + used, from, n);
	out[used + n] = 0;
	return true;
}

/* "a.b.c" */
static bool take_module(struct scan *s, char out[PYTHON_NAME_ROOM])
{
	out[0] = 0;
	if (!take_name(s, out))
		return false;
	for (;;) {
		size_t n = strlen(out);

		skip_blanks(s, false);
		if (s->at >= s->end || *s->at != '.')
			return true;
		s->at++;
		skip_blanks(s, false);
		if (n + 2 >= PYTHON_NAME_ROOM)
			return false;
		out[n] = '.';
		out[n + 1] = 0;
		if (!take_name(s, out))
			return false;
	}
}

static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word), left = (size_t)(s->end - s->at);

	if (left < n || memcmp(s->at, word, n) != 0 || (left > n && is_name_part(s->at[n])))
		return false;
	s->at += n;
	return true;
}

static void tell(struct scan *s, const char *module, unsigned level)
{
	if (s->stop == 0 && s->count < PYTHON_IMPORTS_MAX) {
		s->count++;
		s->stop = s->fn(s->arg, module, level);
	}
}

/* " as x", then a comma: there is one more. */
static bool take_comma(struct scan *s, bool in_brackets)
{
	char ignored[PYTHON_NAME_ROOM] = "";

	skip_blanks(s, in_brackets);
	if (take_word(s, "as")) {
		skip_blanks(s, in_brackets);
		(void)take_name(s, ignored);
		skip_blanks(s, in_brackets);
	}
	if (s->at >= s->end || *s->at != ',')
		return false;
	s->at++;
	skip_blanks(s, in_brackets);
	return true;
}

/* What follows "import" of a statement that begins with it. */
static void take_imports(struct scan *s)
{
	char module[PYTHON_NAME_ROOM];

	do {
		skip_blanks(s, false);
		if (!take_module(s, module))
			return;
		tell(s, module, 0);
	} while (take_comma(s, false));
}

/* "from . import a, b": the names are modules. */
static void take_siblings(struct scan *s, unsigned level)
{
	bool in_brackets;

	skip_blanks(s, false);
	in_brackets = s->at < s->end && *s->at == '(';
	s->at += in_brackets;
	do {
		char name[PYTHON_NAME_ROOM] = "";

		skip_blanks(s, in_brackets);
		if (!take_name(s, name))
			return;
		tell(s, name, level);
	} while (take_comma(s, in_brackets));
}

/* What follows "from". It counts only with its "import": "from" is a word of English too. */
static void take_from(struct scan *s)
{
	char module[PYTHON_NAME_ROOM];
	unsigned level = 0;

	skip_blanks(s, false);
	for (; s->at < s->end && (*s->at == '.' || *s->at == ' '); s->at++)
		level += *s->at == '.' && level < 1000;
	if (level && take_word(s, "import")) {
		take_siblings(s, level);
		return;
	}
	if (!take_module(s, module))
		return;
	skip_blanks(s, false);
	if (take_word(s, "import"))
		tell(s, module, level);
}

int python_imports(const char *text, size_t size, python_import_fn fn, void *arg)
{
	struct scan s = {.at = text, .end = text + size, .fn = fn, .arg = arg};

	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		s.at += 3;
	while (s.at < s.end && s.stop == 0 && s.count < PYTHON_IMPORTS_MAX) {
		while (s.at < s.end && (*s.at == ' ' || *s.at == '\t' || *s.at == '\f' || *s.at == ';'))
			s.at++;
		if (take_word(&s, "import"))
			take_imports(&s);
		else if (take_word(&s, "from"))
			take_from(&s);
		/* To the next statement: behind a semicolon that follows at once, or on the next line. */
		if (s.at < s.end && *s.at == ';')
			continue;
		while (s.at < s.end && *s.at++ != '\n')
			;
	}
	return s.stop;
}
