/*
 * The login of query.role: the same server and database as the ledger's, another user, and none of the ledger's secrets.
 * A role that is lent by SET ROLE can be given back in the midst of a query; one that has logged in has nothing behind
 * it.
 *
 * Its password comes from a password file, as libpq reads it. PGPASSWORD would go before that, and is the ledger's: where
 * it is set the file is read here, and what was found is given as if by hand.
 */
#include "postgres.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "ledger.h"
#include "query.h"
#include "text.h"

enum { OPTIONS_MAX = 64, PASSFILE_MAX = 1024 * 1024 };

struct login {
	const char *names[OPTIONS_MAX + 1], *values[OPTIONS_MAX + 1];
	size_t count;
	PQconninfoOption *options; /* of the ledger's URL */
	char *passfile, *password;
};

static void login_add(struct login *l, const char *name, const char *value)
{
	if (!value || !*value || l->count >= OPTIONS_MAX)
		return;
	l->names[l->count] = name;
	l->values[l->count++] = value;
}

/* What belongs to the ledger's user alone. */
static bool is_personal(const char *name)
{
	static const char *const personal[] = {"user", "password", "passfile", "options", "service"};

	for (size_t i = 0; i < ARRAY_SIZE(personal); i++)
		if (strcmp(name, personal[i]) == 0)
			return true;
	return false;
}

static char *passfile_default(void)
{
	const char *from = getenv("PGPASSFILE"), *home = getenv("HOME");
	const struct passwd *me = home && *home ? NULL : getpwuid(geteuid());

	if (from && *from)
		return strdup(from);
	if (!home || !*home)
		home = me ? me->pw_dir : "/";
	return path_join(home, ".pgpass");
}

/* One field of a line, up to a colon that no backslash precedes: does it say value, or '*'? *line is left behind it. */
static bool field_matches(char **line, const char *value)
{
	char *p = *line;
	bool star = p[0] == '*' && (p[1] == ':' || p[1] == 0), same = true;

	for (; *p && *p != ':'; p++) {
		if (*p == '\\' && p[1])
			p++;
		same = same && *value && *value++ == *p;
	}
	*line = *p ? p + 1 : p;
	return star || (same && *value == 0);
}

/* Takes the backslashes out, in place. */
static char *unescaped(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		*to++ = *p;
	}
	*to = 0;
	return text;
}

/* "host:port:database:user:password": the first line that fits. */
static char *passfile_find(char *text, const char *const key[4])
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		bool fits = *line != '#';

		for (size_t i = 0; fits && i < 4; i++)
			fits = field_matches(&line, key[i]);
		if (fits)
			return strdup(unescaped(line));
	}
	return strdup("");
}

/* A file that others may read is not believed, as libpq does not. */
static int password_find(struct login *l, const struct postgres *p, const char *role, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	const char *host = p->q.PQhost(p->q.conn), *port = p->q.PQport(p->q.conn);
	const char *key[] = {host && *host ? host : "localhost", port ? port : "", p->q.PQdb(p->q.conn),
			     role};
	struct stat st;

	if (stat(l->passfile, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 077) &&
	    file_load(AT_FDCWD, l->passfile, PASSFILE_MAX, &text, NULL) == 0 && text.data)
		l->password = passfile_find(text.data, key);
	else
		l->password = strdup("");
	explicit_bzero(text.data ? text.data : (char *)"", text.size);
	return l->password ? 0 : error_memory(err);
}

static void login_done(struct login *l, struct pq *q)
{
	if (l->options)
		q->PQconninfoFree(l->options);
	if (l->password)
		explicit_bzero(l->password, strlen(l->password));
	free(l->password);
	free(l->passfile);
}

static int login_fill(struct login *l, struct pq *q, const struct postgres *p,
		      const struct ledger_query *query, struct error *err)
{
	const char *from_env = getenv("PGPASSWORD"), *passfile = query->passfile;

	l->options = q->PQconninfoParse(p->url, NULL);
	if (!l->options)
		return error_memory(err);
	for (const PQconninfoOption *o = l->options; o->keyword; o++) {
		if (!is_personal(o->keyword))
			login_add(l, o->keyword, o->val);
		else if (!passfile && strcmp(o->keyword, "passfile") == 0)
			passfile = o->val;
	}
	l->passfile = passfile ? strdup(passfile) : passfile_default();
	if (!l->passfile)
		return error_memory(err);
	login_add(l, "user", query->role);
	login_add(l, "passfile", l->passfile);
	if (from_env && *from_env && password_find(l, p, query->role, err) < 0)
		return -1;
	/* An empty one counts as none, and then PGPASSWORD is offered after all. */
	if (l->password)
		login_add(l, "password", *l->password ? l->password : "-");
	return 0;
}

/* Whether the role is there and may log in, which only the ledger's own session can tell now. */
static int look_up(struct pq *q, const char *url, const char *role, bool *ret_exists, bool *ret_can)
{
	const char *values[] = {role};
	PGresult *result = NULL;

	if (pq_connect(q, url, NULL) < 0 ||
	    !q->PQsendQueryParams(q->conn, sql_postgres_query_login, 1, NULL, values, NULL, NULL, 0) ||
	    pq_result(q, &result, NULL) < 0 || !result)
		return -EIO;
	*ret_exists = q->PQntuples(result) == 1;
	*ret_can = *ret_exists && q->PQgetvalue(result, 0, 0)[0] == 't';
	q->PQclear(result);
	return 0;
}

static int explain(struct pq *q, const char *url, const char *role, const char *passfile, struct error *err)
{
	char shown[128], name[160], file[256], said[300];
	_cleanup_free_ char *quoted = sql_quote_name(role);
	bool exists, can;

	if (!quoted)
		return error_memory(err);
	text_escape_into(shown, sizeof shown, role, strlen(role));
	text_escape_into(name, sizeof name, quoted, strlen(quoted));
	text_escape_into(file, sizeof file, passfile, strlen(passfile));
	pq_said(q, said, sizeof said);
	if (look_up(q, url, role, &exists, &can) == 0 && !can)
		return error_set(
			err, ERROR_REFUSED,
			"query.role '%s' %s, and queries connect as it: `%s ROLE %s LOGIN PASSWORD '…'` mends that, "
			"with a line for it in the password file '%s' (another: query.passfile, PGPASSFILE)",
			shown, exists ? "cannot log in" : "does not exist", exists ? "ALTER" : "CREATE", name,
			file);
	return error_set(err, ERROR_REFUSED,
			 "cannot connect as query.role '%s': %s; its password belongs into the password file "
			 "'%s', which only its owner may read (another: query.passfile, PGPASSFILE)",
			 shown, said, file);
}

int postgres_login(struct postgres *p, struct pq *q, const struct ledger_query *query, struct error *err)
{
	struct login l = {0};
	int r = login_fill(&l, q, p, query, err);

	if (r == 0) {
		r = pq_connect_with(q, l.names, l.values, err);
		if (r < 0 && q->conn && q->PQstatus(q->conn) != CONNECTION_OK)
			r = explain(q, p->url, query->role, l.passfile, err);
	}
	login_done(&l, q);
	return r;
}
