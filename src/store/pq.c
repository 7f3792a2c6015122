#include "pq.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "clock.h"
#include "macros.h"
#include "process.h"
#include "text.h"
#include "url.h"

enum {
	OLDEST_SERVER = 130000,
	CONNECT_OPTIONS_MAX = 64,
	ASK_MS = 5000,
	ON_ITS_WAY_MS = 1000,
	CONNECT_S = 10
};
/* What libpq makes of less. */
enum { CONNECT_LEAST_S = 2 };

int pq_load(struct pq *q, struct error *err)
{
	const char *missing = NULL;

	q->library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	if (!q->library)
		return error_set(
			err, ERROR_REFUSED,
			"cannot use the ledger %s: PostgreSQL's client library libpq.so.5 is not installed (package "
			"libpq5)",
			q->name);
#define PQ_FIND(function)                                      \
	*(void **)&q->function = dlsym(q->library, #function); \
	if (!q->function)                                      \
		missing = #function;
	PQ_FUNCTIONS(PQ_FIND)
#undef PQ_FIND
	if (missing)
		return error_set(err, ERROR_REFUSED,
				 "cannot use the ledger %s: libpq.so.5 is too old, it has no %s", q->name,
				 missing);
	return 0;
}

void pq_done(struct pq *q)
{
	/* The library stays: it brings OpenSSL along, which does not survive being unloaded. */
	if (q->conn)
		q->PQfinish(q->conn);
	q->conn = NULL;
}

/* libpq's messages have several lines and end with one. */
static const char *one_line(const char *text, char *out, size_t room)
{
	size_t n = 0;

	for (; *text && n + 1 < room; text++) {
		bool blank = (unsigned char)*text <= ' ';

		if (!blank)
			out[n++] = *text;
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
	return out;
}

static bool is_keyword(const void *arg, const char *name)
{
	for (const PQconninfoOption *o = arg; o->keyword; o++)
		if (strcmp(o->keyword, name) == 0)
			return true;
	return strcmp(name, "ssl") == 0; /* of a URL, as JDBC has it */
}

static int refuse_url(struct pq *q, const char *url, struct error *err)
{
	PQconninfoOption *known = q->PQconninfoParse("postgresql://", NULL);
	int r = known ? ledger_url_refuse_stranger(url, q->name, is_keyword, known, err) : 0;

	q->PQconninfoFree(known);
	if (r < 0)
		return r;
	return error_set(
		err, ERROR_USAGE,
		"cannot understand the ledger's URL %s: write postgresql://USER@HOST:PORT/DATABASE, with %%40 "
		"for an @ in a name or a password",
		q->name);
}

/* A URL that libpq cannot parse it would quote, password and all. *ret: the server's options that it names. */
static int check_url(struct pq *q, const char *url, char **ret, struct error *err)
{
	const char *given = getenv("PGOPTIONS");
	char *message = NULL;
	PQconninfoOption *options = q->PQconninfoParse(url, &message);
	int r;

	if (message)
		q->PQfreemem(message);
	if (!options)
		return refuse_url(q, url, err);
	for (const PQconninfoOption *o = options; o->keyword; o++)
		if (strcmp(o->keyword, "options") == 0 && o->val)
			given = o->val;
	r = text_set(ret, given ? given : "", err);
	q->PQconninfoFree(options);
	return r;
}

static void ignore_notice(void *arg UNUSED, const char *message UNUSED)
{
}

static int greet(struct pq *q, struct error *err)
{
	int version = q->PQserverVersion(q->conn);

	if (version < OLDEST_SERVER)
		return error_set(err, ERROR_REFUSED,
				 "cannot use the ledger %s: its server is PostgreSQL %d, 13 is needed",
				 q->name, version / 10000);
	q->lost = false;
	q->PQsetNoticeProcessor(q->conn, ignore_notice, NULL);
	return q->PQsetnonblocking(q->conn, 1) < 0 ? error_memory(err) : 0;
}

const char *pq_said(struct pq *q, char *out, size_t room)
{
	return one_line(q->PQerrorMessage(q->conn), out, room);
}

/* A pooler (PgBouncer) does not pass on what a connection begins with: it refuses or ignores it. Then whom we talk to is
 * another session at each transaction. So every connection begins with a word that nobody else knows, and asks for it. */
struct mark {
	char word[17];
	char *options; /* the URL's, and the word */
	bool is_found;
};

static void mark_done(struct mark *m)
{
	free(m->options);
}

static int mark_make(struct mark *m, const char *options, struct error *err)
{
	uint8_t bytes[sizeof m->word / 2];
	int r = random_bytes(bytes, sizeof bytes);

	if (r < 0)
		return error_system(err, -r, "cannot get random bytes");
	hex_encode(bytes, sizeof bytes, m->word);
	return text_print(&m->options, err, "%s -c fumehood.session=%s", options, m->word);
}

static int mark_take(void *arg, struct pq *q, const PGresult *result, struct error *err UNUSED)
{
	struct mark *m = arg;

	m->is_found = q->PQntuples(result) == 1 && strcmp(q->PQgetvalue(result, 0, 0), m->word) == 0;
	return 0;
}

static int mark_ask(struct pq *q, struct mark *m, struct error *err)
{
	int r = pq_query(q, "SELECT pg_catalog.current_setting('fumehood.session', true)", mark_take, m,
			 pq_error, err);

	q->is_pooled = r == 0 && !m->is_found;
	return r;
}

static const char *connect_timeout(const struct pq *q, char text[static 16])
{
	const char *timeout = getenv("PGCONNECT_TIMEOUT");

	snprintf(text, 16, "%d", q->connect_s ? q->connect_s : CONNECT_S);
	return timeout ? timeout : text;
}

void pq_hurry(struct pq *q, int silence_ms)
{
	int seconds = silence_ms / 1000;

	if (silence_ms >= q->silence_ms)
		return;
	q->silence_ms = silence_ms;
	q->connect_s = seconds < CONNECT_LEAST_S ? CONNECT_LEAST_S : seconds < CONNECT_S ? seconds : 0;
}

static int connect_once(struct pq *q, const char *const *more_names, const char *const *more_values,
			const char *options, struct error *err)
{
	char said[512], timeout[16];
	/* What the caller says comes last, and so it wins; options have it in them. */
	const char *names[CONNECT_OPTIONS_MAX + 9] = {
		"connect_timeout",     "fallback_application_name", "client_encoding", "keepalives_idle",
		"keepalives_interval", "keepalives_count",	    "tcp_user_timeout"};
	const char *values[CONNECT_OPTIONS_MAX + 9] = {
		connect_timeout(q, timeout), "fumehood", "UTF8", "10", "5", "3", "30000"};
	size_t n = 7;

	for (size_t i = 0; i < CONNECT_OPTIONS_MAX && more_names[i]; i++) {
		names[n] = more_names[i];
		values[n++] = more_values[i];
	}
	if (options) {
		names[n] = "options";
		values[n] = options;
	}
	if (q->conn)
		q->PQfinish(q->conn);
	q->conn = q->PQconnectdbParams(names, values, 1);
	if (!q->conn)
		return error_memory(err);
	q->lost = true;
	if (q->PQstatus(q->conn) != CONNECTION_OK)
		return error_set(err, ERROR_LEDGER, "cannot connect to the ledger %s: %s", q->name,
				 pq_said(q, said, sizeof said));
	return greet(q, err);
}

/* options: what the server is to be told besides. */
static int connect_marked(struct pq *q, const char *const *names, const char *const *values,
			  const char *options, struct error *err)
{
	_cleanup_(mark_done) struct mark mark = {0};
	int r;

	if (mark_make(&mark, options, err) < 0)
		return -1;
	r = connect_once(q, names, values, q->is_pooled ? NULL : mark.options, err);
	if (r < 0 && !q->is_pooled && q->conn &&
	    strstr(q->PQerrorMessage(q->conn), "unsupported startup parameter")) {
		q->is_pooled = true;
		r = connect_once(q, names, values, NULL, err);
	}
	return r < 0 || q->is_pooled ? r : mark_ask(q, &mark, err);
}

int pq_connect(struct pq *q, const char *url, struct error *err)
{
	const char *const names[] = {"dbname", NULL}, *const values[] = {url, NULL};
	_cleanup_free_ char *options = NULL;

	if (check_url(q, url, &options, err) < 0)
		return -1;
	return connect_marked(q, names, values, options, err);
}

int pq_connect_with(struct pq *q, const char *const *names, const char *const *values, struct error *err)
{
	const char *options = getenv("PGOPTIONS");

	return connect_marked(q, names, values, options ? options : "", err);
}

char *pq_peer_settings(struct pq *q)
{
	static const char *const names[][2] = {{"keepalives_idle", "tcp_keepalives_idle"},
					       {"keepalives_interval", "tcp_keepalives_interval"},
					       {"keepalives_count", "tcp_keepalives_count"},
					       {"tcp_user_timeout", "tcp_user_timeout"}};
	PQconninfoOption *options = q->PQconninfo(q->conn);
	_cleanup_buffer_ struct buffer b = {0};

	if (!options)
		return NULL;
	for (const PQconninfoOption *o = options; o->keyword; o++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (o->val && strcmp(o->keyword, names[i][0]) == 0)
				buffer_printf(&b, "; SET %s = %d", names[i][1], atoi(o->val));
	q->PQconninfoFree(options);
	return buffer_take(&b);
}

int pq_lost(struct pq *q, struct error *err)
{
	char said[512];

	q->lost = true;
	return error_set(err, ERROR_AGAIN, "the connection to the ledger %s was lost: %s", q->name,
			 pq_said(q, said, sizeof said));
}

/* Does the server that we are connected to answer anybody? One that refuses does. */
static bool is_there(struct pq *q)
{
	char timeout[16];
	const char *const names[] = {"connect_timeout", "host", "hostaddr", "port", "user", "dbname", NULL};
	const char *const values[] = {connect_timeout(q, timeout),
				      q->PQhost(q->conn),
				      q->PQhostaddr(q->conn),
				      q->PQport(q->conn),
				      q->PQuser(q->conn),
				      q->PQdb(q->conn),
				      NULL};

	return q->PQpingParams(names, values, 0) != PQPING_NO_RESPONSE;
}

/* Asked on a connection of its own, as the same user. No answer, or a pooler's, which knows another number: false. */
static bool server_waits(struct pq *q)
{
	PQconninfoOption *options = q->PQconninfo(q->conn);
	const char *names[CONNECT_OPTIONS_MAX + 1] = {0}, *values[CONNECT_OPTIONS_MAX + 1] = {0};
	struct pq other = *q;
	int waits = 0, n = 0;
	char text[160];

	for (const PQconninfoOption *o = options; o && o->keyword && n < CONNECT_OPTIONS_MAX; o++)
		if (o->val) {
			names[n] = o->keyword;
			values[n++] = o->val;
		}
	other.conn = NULL;
	other.is_asking = true;
	other.silence_ms = other.statement_ms = ASK_MS;
	snprintf(
		text, sizeof text,
		"SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE pid = %d AND wait_event = 'ClientRead'",
		q->PQbackendPID(q->conn));
	if (connect_once(&other, names, values, NULL, NULL) < 0 ||
	    pq_exec_number(&other, text, &waits, NULL) < 0)
		waits = 0;
	if (other.conn)
		q->PQfinish(other.conn);
	q->PQconninfoFree(options);
	return waits > 0;
}

/* We wait for it, and it waits for us: something that we sent never left (libpq forgets what cannot be sent, and waits for
 * the server to say why). Looked at twice, since an answer may be on its way. */
static bool is_deaf(struct pq *q)
{
	struct pollfd fd = {.fd = q->PQsocket(q->conn), .events = POLLIN};

	return !q->is_asking && server_waits(q) && poll(&fd, 1, ON_ITS_WAY_MS) == 0 && server_waits(q) &&
	       poll(&fd, 1, 0) == 0;
}

/* Waits until the socket is ready for one of events. */
static int wait_for(struct pq *q, short events, struct error *err)
{
	uint64_t silence = (uint64_t)q->silence_ms * NSEC_PER_MSEC, begun = clock_now();
	uint64_t end = begun + (uint64_t)q->statement_ms * NSEC_PER_MSEC + silence, ask_at = begun + silence;

	for (;;) {
		struct pollfd fd = {.fd = q->PQsocket(q->conn), .events = events};
		uint64_t now = clock_now();
		int n = poll(&fd, 1, now < ask_at ? (int)((ask_at - now) / NSEC_PER_MSEC) + 1 : 0);

		if (n > 0 && fd.revents & (POLLIN | POLLERR | POLLHUP) && !q->PQconsumeInput(q->conn))
			return pq_lost(q, err);
		if (n > 0)
			return 0;
		if (n == 0 && clock_now() >= ask_at) {
			if (clock_now() >= end || !is_there(q))
				break;
			if (is_deaf(q)) {
				q->lost = true;
				return error_set(
					err, ERROR_AGAIN,
					"the connection to the ledger %s was lost: its server never got what was sent",
					q->name);
			}
			ask_at = clock_now() + silence;
		}
		if (n < 0 && errno != EINTR) {
			/* In the middle of an answer: the conversation cannot be taken up again. */
			q->lost = true;
			return error_system(err, errno, "cannot wait for the ledger %s", q->name);
		}
	}
	q->lost = true;
	return error_set(err, ERROR_LEDGER, "the ledger %s has said nothing for %d s: is its server stopped?",
			 q->name, (int)((clock_now() - begun) / NSEC_PER_SEC));
}

int pq_wait(struct pq *q, struct error *err)
{
	return wait_for(q, POLLIN, err);
}

int pq_flush(struct pq *q, struct error *err)
{
	int r;

	while ((r = q->PQflush(q->conn)) > 0) {
		r = wait_for(q, POLLIN | POLLOUT, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? pq_lost(q, err) : 0;
}

int pq_result(struct pq *q, PGresult **ret, struct error *err)
{
	if (pq_flush(q, err) < 0)
		return -1;
	while (q->PQisBusy(q->conn))
		if (wait_for(q, POLLIN, err) < 0)
			return -1;
	*ret = q->PQgetResult(q->conn);
	return 0;
}

void pq_drain(struct pq *q)
{
	PGresult *result = NULL;

	while (!q->lost && pq_result(q, &result, NULL) == 0 && result)
		q->PQclear(result);
}

enum pq_state pq_state(struct pq *q, const PGresult *result)
{
	/* The first that fits; one of two characters is a whole class. */
	static const struct {
		const char *begins;
		enum pq_state state;
	} table[] = {
		{"57P0", PQ_ENDING},	  {"08", PQ_CUT_OFF},
		{"FH", PQ_SPOKEN},	  {"40", PQ_BUSY},
		{"23505", PQ_TAKEN},	  {"55P03", PQ_LOCKED},
		{"57014", PQ_TOO_LONG},	  {"25006", PQ_READ_ONLY},
		{"42501", PQ_DENIED},	  {"3F000", PQ_INCOMPLETE},
		{"42P01", PQ_INCOMPLETE}, {"42703", PQ_INCOMPLETE},
		{"53100", PQ_FULL},	  {"22012", PQ_DIVIDED_BY_ZERO},
		{"25", PQ_SERVER},	  {"53", PQ_SERVER},
		{"55", PQ_SERVER},	  {"57", PQ_SERVER},
		{"58", PQ_SERVER},	  {"XX", PQ_SERVER},
	};
	const char *is = q->PQresultErrorField(result, PG_DIAG_SQLSTATE);

	for (size_t i = 0; is && i < ARRAY_SIZE(table); i++)
		if (strncmp(is, table[i].begins, strlen(table[i].begins)) == 0)
			return table[i].state;
	return PQ_OTHER;
}

int pq_error(struct pq *q, const PGresult *result, struct error *err)
{
	static const struct {
		enum error_kind kind;
		const char *sentence;
	} table[] = {
		[PQ_BUSY] = {ERROR_AGAIN, "the ledger %s was busy: %s"},
		[PQ_TAKEN] = {ERROR_AGAIN, "another commit to the ledger %s was faster: %s"},
		[PQ_LOCKED] = {ERROR_LOCKED, "others have kept the ledger %s locked for too long (%s): find "
					     "and end them, then try again"},
		[PQ_TOO_LONG] = {ERROR_LEDGER,
				 "the ledger %s took longer for a statement than it may (%s): find "
				 "out why, or let it with statement=TIME in its URL"},
		[PQ_READ_ONLY] = {ERROR_LEDGER, "cannot write to the ledger %s: it is read-only (%s)"},
		[PQ_DENIED] = {ERROR_LEDGER, "cannot use the ledger %s: %s; grant it, or name another user"},
		[PQ_INCOMPLETE] = {ERROR_LEDGER,
				   "the ledger %s is incomplete (%s): restore it from a backup or "
				   "name another with --db"},
		[PQ_FULL] = {ERROR_LEDGER,
			     "cannot write to the ledger %s: no space is left there (%s); free some"},
		[PQ_ENDING] = {ERROR_LEDGER, NULL},
	};
	const char *text = q->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY), *sentence;
	enum pq_state state = pq_state(q, result);
	char said[512];

	if (q->PQstatus(q->conn) != CONNECTION_OK || state == PQ_ENDING)
		return pq_lost(q, err);
	if (state == PQ_SPOKEN)
		return error_set(err, ERROR_REFUSED, "%s", one_line(text ? text : "", said, sizeof said));
	one_line(text ? text : q->PQerrorMessage(q->conn), said, sizeof said);
	sentence = table[state].sentence;
	if (!sentence)
		return error_set(err, ERROR_LEDGER, "the ledger %s says: %s", q->name, said);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return error_set(err, table[state].kind, sentence, q->name, said);
#pragma GCC diagnostic pop
}

int pq_exec(struct pq *q, const char *text, struct error *err)
{
	return pq_exec_number(q, text, NULL, err);
}

static bool is_good(struct pq *q, const PGresult *result)
{
	switch (q->PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
	case PGRES_SINGLE_TUPLE:
	case PGRES_EMPTY_QUERY:
		return true;
	default:
		return false;
	}
}

int pq_results(struct pq *q, pq_take_fn take, void *arg, pq_fail_fn fail, struct error *err)
{
	int r = 0;

	for (;;) {
		PGresult *result = NULL;
		int n = pq_result(q, &result, r < 0 ? NULL : err);

		if (n < 0 || !result)
			return r < 0 ? r : n;
		if (r == 0 && !is_good(q, result))
			r = fail(q, result, err);
		else if (r == 0 && take)
			r = take(arg, q, result, err);
		q->PQclear(result);
	}
}

int pq_query(struct pq *q, const char *text, pq_take_fn take, void *arg, pq_fail_fn fail, struct error *err)
{
	if (q->lost || !q->PQsendQuery(q->conn, text))
		return pq_lost(q, err);
	return pq_results(q, take, arg, fail, err);
}

static int take_number(void *arg, struct pq *q, const PGresult *result, struct error *err UNUSED)
{
	if (q->PQntuples(result) > 0)
		*(int *)arg = atoi(q->PQgetvalue(result, 0, 0));
	return 0;
}

int pq_exec_number(struct pq *q, const char *text, int *ret, struct error *err)
{
	return pq_query(q, text, ret ? take_number : NULL, ret, pq_error, err);
}
