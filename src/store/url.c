#include "url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "file.h"
#include "ledger.h"
#include "limit.h"
#include "text.h"

static bool is_postgres(const char *url)
{
	return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

void ledger_url_done(struct ledger_url *u)
{
	free(u->location);
	free(u->objects);
	free(u->group);
}

/* "%2F" → "/", in place. */
static int percent_decode(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		char digits[3] = {0};
		uint8_t byte = (uint8_t)*p;

		if (*p == '%') {
			memcpy(digits, p + 1, strnlen(p + 1, 2));
			if (hex_decode(digits, &byte, 1) < 0 || byte == 0)
				return -EINVAL;
			p += 2;
		}
		*to++ = (char)byte;
	}
	*to = 0;
	return 0;
}

static const char objects_are_inside[] = "postgresql";

static int parameter_objects(struct ledger_url *u, const char *value)
{
	free(u->objects);
	u->objects = NULL;
	u->objects_inside = strcmp(value, objects_are_inside) == 0;
	if (u->objects_inside)
		return u->is_postgres ? 0 : -EINVAL;
	/* Beside a server a relative path is a slip: it would be another place for everybody who is connected. */
	if (u->is_postgres && *value != '/')
		return -EINVAL;
	u->objects = strdup(value);
	for (char *end = strchr(u->objects ? u->objects : "", 0); end > u->objects + 1 && end[-1] == '/';)
		*--end = 0;
	u->objects_named = true;
	return u->objects && *value ? 0 : -EINVAL;
}

static int parameter_objects_max(struct ledger_url *u, const char *value)
{
	return size_parse(value, &u->objects_max) < 0 || u->objects_max > OBJECTS_MAX_MOST ? -EINVAL : 0;
}

static int parameter_group(struct ledger_url *u, const char *value)
{
	free(u->group);
	u->group = strdup(value);
	return u->group && *value ? 0 : -EINVAL;
}

static int parameter_blob_max(struct ledger_url *u, const char *value)
{
	return size_parse(value, &u->blob_max) < 0 || u->blob_max > BLOB_MAX_MOST ? -EINVAL : 0;
}

static int parameter_busy(struct ledger_url *u, const char *value)
{
	uint64_t ns;

	if (duration_parse(value, &ns) < 0 || ns > 3600 * NSEC_PER_SEC)
		return -EINVAL;
	u->busy_ms = ns / NSEC_PER_MSEC;
	return 0;
}

static int parameter_statement(struct ledger_url *u, const char *value)
{
	uint64_t ns;

	if (duration_parse(value, &ns) < 0 || ns < NSEC_PER_MSEC || ns > 24 * 3600 * NSEC_PER_SEC)
		return -EINVAL;
	u->statement_ms = ns / NSEC_PER_MSEC;
	return 0;
}

static int parameter_filesystem(struct ledger_url *u, const char *value)
{
	u->any_filesystem = strcmp(value, "any") == 0;
	return u->any_filesystem ? 0 : -EINVAL;
}

static const struct {
	const char *name; /* with its '=' */
	int (*take)(struct ledger_url *u, const char *value);
	const char *example;
} parameters[] = {
	{"objects=", parameter_objects,
	 "a directory; of a PostgreSQL ledger its absolute path, or the word postgresql"},
	{"objects_max=", parameter_objects_max, "a size up to 1T, such as 1G"},
	{"group=", parameter_group, "the name of a group"},
	{"blob_max=", parameter_blob_max, "a size up to 16M, such as 64K"},
	{"busy=", parameter_busy, "a time up to 1h, such as 20s"},
	{"statement=", parameter_statement, "a time up to 24h, such as 1h"},
	{"filesystem=", parameter_filesystem, "any"},
};

/* The row of parameters that "name=value" belongs to, or -1. */
static int parameter_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (strncmp(word, parameters[i].name, strlen(parameters[i].name)) == 0)
			return (int)i;
	return -1;
}

/* Takes "name=value" if it is one of ours: 1, 0 if not, negative if it makes no sense. */
static int parameter_take(struct ledger_url *u, const char *word, size_t size, struct error *err)
{
	_cleanup_free_ char *value = NULL;
	int i = parameter_find(word);
	size_t name;

	if (i < 0)
		return 0;
	name = strlen(parameters[i].name);
	value = strndup(word + name, size - name);
	if (!value)
		return error_memory(err);
	/* The value is not repeated: of a URL that was written wrongly it may be the rest of a password. */
	if (percent_decode(value) < 0 || parameters[i].take(u, value) < 0)
		return error_set(err, ERROR_USAGE, "what the ledger's URL says after '%s' must be %s",
				 parameters[i].name, parameters[i].example);
	return 1;
}

/* Where the query part begins. What comes before an '@' in the authority may hold a '?', as libpq reads it. */
static const char *query_of(const char *authority)
{
	size_t n = strcspn(authority, "@/");
	const char *from = authority[n] == '@' ? authority + n : authority;

	return from + strcspn(from, "?");
}

/* Moves our parameters from the query part of location into u. */
static int query_take(struct ledger_url *u, struct error *err)
{
	char *query = u->is_postgres ? (char *)query_of(strstr(u->location, "://") + 3)
				     : strrchr(u->location, '?'),
	     *to;

	if (!query || !*query)
		return 0;
	to = query;
	for (char *word = query + 1, *next; word; word = next) {
		size_t size = strcspn(word, "&");
		int r = parameter_take(u, word, size, err);

		if (r < 0)
			return r;
		next = word[size] ? word + size + 1 : NULL;
		if (r > 0)
			continue;
		*to = to == query ? '?' : '&';
		memmove(to + 1, word, size);
		to += size + 1;
	}
	*to = 0;
	return 0;
}

/* Of a path, "?" is part of it unless what follows is ours. */
static bool path_has_query(const char *path)
{
	const char *query = strrchr(path, '?');

	return query && parameter_find(query + 1) >= 0;
}

/* A directory of this host's would not be there on another one that has the same server: who names none has his objects in
 * the database. */
static int objects_default(struct ledger_url *u, struct error *err)
{
	if (!u->is_postgres)
		return text_print(&u->objects, err, "%s.objects", u->location);
	u->objects_unsaid = !u->objects_inside;
	u->objects_inside = true;
	return 0;
}

int ledger_url_parse(const char *url, struct ledger_url *ret, struct error *err)
{
	_cleanup_ledger_url_ struct ledger_url u = {.is_postgres = is_postgres(url),
						    .blob_max = BLOB_MAX_DEFAULT,
						    .objects_max = OBJECTS_MAX_DEFAULT,
						    .busy_ms = BUSY_DEFAULT_MS,
						    .statement_ms = STATEMENT_DEFAULT_MS};
	bool has_scheme = strncmp(url, "sqlite:", 7) == 0;
	const char *location = has_scheme ? url + 7 : url;

	/* "sqlite:///abs" is how other programs write it. */
	if (has_scheme && strncmp(location, "///", 3) == 0)
		location += 2;
	if (*location == 0)
		return error_set(err, ERROR_USAGE,
				 "the ledger has no path: write sqlite:PATH or postgresql://…");
	if (ledger_url_check(url, err) < 0)
		return -EINVAL;
	if (text_set(&u.location, location, err) < 0 ||
	    ((u.is_postgres || (has_scheme && path_has_query(u.location))) && query_take(&u, err) < 0) ||
	    (!u.objects && objects_default(&u, err) < 0))
		return -1;
	*ret = u;
	u = (struct ledger_url){0};
	return 0;
}

int ledger_url_objects(const char *url, char **ret, uint64_t *ret_max, struct error *err)
{
	_cleanup_ledger_url_ struct ledger_url u = {0};

	if (ledger_url_parse(url, &u, err) < 0)
		return -1;
	*ret = u.objects_inside ? strdup(objects_are_inside) : TAKE_PTR(u.objects);
	*ret_max = u.objects_inside ? u.objects_max : UINT64_MAX;
	return *ret ? 0 : error_memory(err);
}

/* A parameter's name as libpq reads it: decoded. Too long or senseless ones are no name that it knows. */
static const char *parameter_name(const char *word, char out[32])
{
	size_t n = strcspn(word, "=&");

	out[0] = 0;
	if (n < 32) {
		memcpy(out, word, n);
		out[n] = 0;
		if (percent_decode(out) < 0)
			out[0] = 0;
	}
	return out;
}

static int refuse_parameter(const char *name, const char *shown, struct error *err)
{
	_cleanup_buffer_ struct buffer all = {0};
	char typed[40];

	snprintf(typed, sizeof typed, "%s=", name);
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
		if (text_distance(typed, parameters[i].name) <= 2)
			return error_set(
				err, ERROR_USAGE,
				"the URL of a ledger has no parameter '%s': did you mean %s? (in %s)", name,
				parameters[i].name, shown);
		buffer_printf(&all, "%s, ", parameters[i].name);
	}
	if (buffer_check(&all, err) < 0)
		return -1;
	return error_set(err, ERROR_USAGE,
			 "the URL of a ledger has no parameter '%s': there are %sand those of libpq (in %s)",
			 name, all.data, shown);
}

/* A '@' in the query part: what looks like a parameter may be the rest of a password. */
int ledger_url_refuse_stranger(const char *url, const char *shown, parameter_known_fn is_known,
			       const void *arg, struct error *err)
{
	const char *query = is_postgres(url) ? query_of(strstr(url, "://") + 3) : "";
	char name[32];

	if (strchr(query, '@'))
		return 0;
	for (const char *word = query; *word; word += strcspn(word, "&")) {
		parameter_name(++word, name);
		if (*name && word[strcspn(word, "=&")] == '=' &&
		    name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] == 0 && !is_known(arg, name))
			return refuse_parameter(name, shown, err);
	}
	return 0;
}

/* password, sslpassword, oauth_client_secret, scram_client_key … */
static bool is_secret(const char *word)
{
	static const char *const parts[] = {"password", "secret", "_key"};
	char name[32];

	parameter_name(word, name);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return *name == 0;
}

/* Is it one of the words, which have a space between them? */
static bool is_one_of(const char *words, const char *word, size_t size,
		      int (*compare)(const char *a, const char *b, size_t n))
{
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == size && compare(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* Who connects, with what, and how: all but where. */
static bool is_no_place(const char *word)
{
	static const char names[] =
		"user busy statement blob_max objects_max objects group connect_timeout application_name "
		"keepalives keepalives_idle keepalives_count keepalives_interval tcp_user_timeout passfile";
	char name[32];

	parameter_name(word, name);
	return is_one_of(names, name, strlen(name), strncasecmp) || is_secret(word);
}

/* What may be shown of a query: these words. Any other, however it is written, may be a password, and what follows it
 * may be its rest. */
static bool is_odd(const char *word)
{
	static const char names[] =
		"host hostaddr port dbname user options service connect_timeout client_encoding application_name "
		"fallback_application_name keepalives keepalives_idle keepalives_interval keepalives_count "
		"tcp_user_timeout target_session_attrs load_balance_hosts gssencmode krbsrvname channel_binding "
		"require_auth requirepeer passfile ssl sslmode sslnegotiation sslcert sslcertmode sslkey "
		"sslrootcert sslcrl sslcrldir sslsni ssl_min_protocol_version ssl_max_protocol_version";
	size_t size = strcspn(word, "=&");

	return word[size] != '=' || (!is_one_of(names, word, size, strncmp) && parameter_find(word) < 0);
}

/* Of a query its parameters, one after the other; NULL at the end. */
static const char *word_first(const char *query)
{
	return *query ? query + 1 : NULL;
}

static const char *word_next(const char *word)
{
	word += strcspn(word, "&");
	return *word ? word + 1 : NULL;
}

/* All but these; or only as far as the first of these. */
static int copy_parameters(const char *query, bool (*leave_out)(const char *word), bool ends,
			   struct buffer *b)
{
	const char *before = "?";

	for (const char *word = word_first(query); word; word = word_next(word)) {
		size_t size = strcspn(word, "&");
		bool is_left_out = leave_out(word);

		if (is_left_out && ends)
			break;
		if (is_left_out || (!size && !ends))
			continue;
		buffer_puts(b, before);
		buffer_append(b, word, size);
		before = "&";
	}
	return buffer_check(b, NULL);
}

/* ":5432", ":5432,other:5433", and then a path, a query or nothing. */
static bool are_ports(const char *colon)
{
	const char *end;

	for (;; colon = end) {
		end = colon + 1 + strspn(colon + 1, "0123456789");
		if (*end == ',')
			end += strcspn(end, ":/?");
		if (*end != ':')
			return *end == 0 || *end == '/' || *end == '?';
	}
}

/* The first ':' that is no part of an address in brackets, nor of a query. */
static const char *colon_find(const char *authority)
{
	const char *end = authority, *found;

	if (*end == '[')
		end += 1 + strspn(end + 1, "0123456789abcdefABCDEF:.%");
	found = *end == ']' ? end : authority;
	found += strcspn(found, ":?");
	return *found == ':' ? found : NULL;
}

/* Something like "?password=x" stands before the '@': which may then be part of that one. */
static bool is_in_query(const char *colon, const char *at)
{
	const char *query = memchr(colon, '?', (size_t)(at - colon));

	return query && memchr(query, '=', (size_t)(at - query));
}

/* As libpq reads it nothing is left that could be a password, or the rest of one. */
static bool is_plain(const char *authority)
{
	const char *query = query_of(authority), *first = authority + strcspn(authority, "@/");
	const char *colon = colon_find(authority), *host = *first == '@' ? first + 1 : authority;

	if (memchr(host, '@', (size_t)(query - host)) || (*first != '@' && colon && !are_ports(colon)))
		return false;
	for (const char *word = word_first(query); word; word = word_next(word)) {
		size_t size = strcspn(word, "&");

		if (is_odd(word) && !is_secret(word))
			return false;
		/* Behind a ':' an '@' may still be the end of a password. */
		if (!memchr(word, '=', size) || memchr(word, '?', size) || (colon && memchr(word, '@', size)))
			return false;
	}
	return true;
}

static int redact_plain(const char *url, struct buffer *b)
{
	const char *authority = strstr(url, "://") + 3;
	const char *query = query_of(authority);
	const char *at = memrchr(authority, '@', (size_t)(query - authority));
	const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
	const char *cut = colon ? colon : query;

	buffer_append(b, url, (size_t)(cut - url));
	if (colon)
		buffer_append(b, at, (size_t)(query - at));
	return copy_parameters(query, is_secret, false, b);
}

/* Of a URL that libpq would not understand: what stands between the first ':' and the last '@' may be a password, whatever
 * is in it; without an '@', all of it. And from the first word on that nobody knows. */
static int redact_odd(const char *url, struct buffer *b)
{
	const char *authority = strstr(url, "://") + 3, *end = url + strlen(url);
	const char *at = strrchr(authority, '@'), *colon = colon_find(authority), *rest, *query;

	if (colon && (at ? colon > at : are_ports(colon)))
		colon = NULL;
	rest = !colon ? authority : at && !is_in_query(colon, at) ? at : end;
	query = rest + strcspn(rest, "?");
	buffer_append(b, url, (size_t)((colon ? colon : authority) - url));
	buffer_append(b, rest, (size_t)(query - rest));
	return copy_parameters(query, is_odd, true, b);
}

char *ledger_url_redacted(const char *url)
{
	_cleanup_buffer_ struct buffer b = {0};

	/* What is refused may have a password anywhere. */
	if (!is_postgres(url))
		return strdup(ledger_url_check(url, NULL) < 0 ? "…" : url);
	return (is_plain(strstr(url, "://") + 3) ? redact_plain : redact_odd)(url, &b) == 0 ? buffer_take(&b)
											    : NULL;
}

/* Host, database and what else says where. */
static int place_of(const char *url, struct buffer *b)
{
	const char *authority = strstr(url, "://") + 3;
	const char *query = query_of(authority);
	const char *at = memrchr(authority, '@', (size_t)(query - authority));
	const char *host = at ? at + 1 : authority;

	buffer_append(b, host, (size_t)(query - host));
	return copy_parameters(query, is_no_place, false, b);
}

/* How much of the URL of a file is its path, and where that begins. */
static size_t path_of(const char **url)
{
	const char *query = NULL;

	if (strncmp(*url, "sqlite:", 7) == 0) {
		*url += strncmp(*url, "sqlite:///", 10) == 0 ? 9 : 7;
		query = path_has_query(*url) ? strrchr(*url, '?') : NULL;
	}
	return query ? (size_t)(query - *url) : strlen(*url);
}

int ledger_url_same(const char *a, const char *b)
{
	_cleanup_buffer_ struct buffer x = {0}, y = {0};

	if (is_postgres(a) != is_postgres(b))
		return 0;
	if (!is_postgres(a)) {
		size_t n = path_of(&a);

		return n == path_of(&b) && memcmp(a, b, n) == 0;
	}
	if (place_of(a, &x) < 0 || place_of(b, &y) < 0)
		return -ENOMEM;
	return x.size == y.size && (x.size == 0 || memcmp(x.data, y.data, x.size) == 0);
}

/* "host=db dbname=lab password=…", "Server=db;Pwd=…": how other programs are told, which would else be the name of a file
 * with a password in it. */
static bool is_connection_string(const char *url)
{
	static const char names[] =
		"host hostaddr port dbname user password passfile service sslmode application_name server "
		"database username uid pwd";
	static const char between[] = " \t\n;";

	for (const char *word = url + strspn(url, between); *word; word += strspn(word, between)) {
		size_t n = strcspn(word, "= \t\n;");
		const char *sign = word + n + strspn(word + n, " \t\n");

		if (*sign == '=' && is_one_of(names, word, n, strncasecmp))
			return true;
		word += n + strcspn(word + n, between);
	}
	return false;
}

/* How long the scheme is that it begins with, "mysql" of "mysql://x" and of "mysql:x"; 0: none. */
static size_t scheme_of(const char *url)
{
	static const char others[] = "0123456789+.-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = strspn(url, others + strlen("0123456789+.-"));

	if (n == 0)
		return 0;
	n += strspn(url + n, others);
	return url[n] == ':' ? n : 0;
}

static const char server_form[] = "postgresql://USER@HOST:PORT/DATABASE";

/* What is no scheme may be a user, and what follows it a password: only what "://" makes one is repeated. */
static int refuse_scheme(const char *url, size_t size, struct error *err)
{
	_cleanup_free_ char *scheme = strndup(url, size);

	if (!scheme)
		return error_memory(err);
	if (strncmp(url + size, "://", 3) != 0)
		return error_set(
			err, ERROR_USAGE,
			"the ledger's name begins with a word and a ':' that is neither sqlite: nor postgresql://: "
			"write sqlite:PATH for a file of that name, or %s for a server",
			server_form);
	if (strcasestr(scheme, "postgres"))
		return error_set(err, ERROR_USAGE,
				 "the ledger's URL begins with '%s://', as other programs write it: write %s",
				 SHOWN(64, scheme), server_form);
	return error_set(
		err, ERROR_USAGE,
		"the ledger cannot be kept behind '%s://': write sqlite:PATH for a file, or %s for a server",
		SHOWN(64, scheme), server_form);
}

int ledger_url_check(const char *url, struct error *err)
{
	bool is_file = strncmp(url, "sqlite:", 7) == 0;
	const char *path = is_file ? url + 7 : url;
	size_t scheme = is_file ? 0 : scheme_of(url);

	if (is_postgres(url))
		return 0;
	if (scheme)
		return refuse_scheme(url, scheme, err);
	if ((!is_file || (*path != '/' && *path != '.')) && is_connection_string(path))
		return error_set(
			err, ERROR_USAGE,
			"the ledger is named by a URL, not by a connection string of names and values: write %s",
			server_form);
	if (strstr(path, is_file ? "postgresql://" : "://") || (is_file && strstr(path, "postgres://")) ||
	    (strncmp(path, "//", 2) == 0 && path[2] != '/' && strchr(path, '@')))
		return error_set(
			err, ERROR_USAGE,
			"the ledger's name is a path and a server's URL in one: write sqlite:PATH, or %s",
			server_form);
	return 0;
}
