#include "http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "metrics.h"
#include "news.h"
#include "pages.h"
#include "peer.h"
#include "text.h"

enum {
	CONNECTIONS_MAX = 512,
	CONNECTIONS_SPARE = 32,	 /* when fewer are left, who has not said who he is makes room */
	REQUEST_MAX = 32 * 1024, /* of its headers, with what is to be sent next */
	IDLE_S = 20,
	LOOK_S = 5, /* how often is looked for who takes too long */
	FORM_MAX = 256,
};

/* Of a server in front of us. */
#define SECRET_HEADER "X-Fumehood-Secret"

struct http {
	struct loop *loop;
	struct source *source, *timer, *bell;
	int bell_fd; /* rung by an asker whose answer can be sent: libmicrohttpd does not see that in another's loop */
	const struct guard *guard;
	struct http_staff staff;
	struct listening at;
	struct MHD_Daemon *daemon;
	struct news *news;
	struct web_counts counts;
	struct line *lines;
	int n_lines;
	struct source *watch;
	bool closing;
};

/* From the end of the answer before to that of the next; not for who looks at something live, or saves a file: who may do that is known, and is let
 * go when nothing moves (IDLE_S). */
static const uint64_t exchange_ns = 120 * NSEC_PER_SEC;

/* One connection. */
struct line {
	struct line *before, *after; /* of all that there are */
	struct http *http;
	int fd;
	uint64_t since; /* clock_now(): it began, or its last answer was sent */
	bool is_known;	/* it has once had what it takes to look */
	bool is_ended;	/* by make_room() */
	bool is_live;	/* what it is sent takes as long as it takes: something live, or a file */
	bool has_uid;	/* it was asked whose it is: */
	int64_t uid;	/* -1: of nobody on this host */
};

/* One request. It waits for the asker only while its connection is suspended. */
struct exchange {
	struct errand errand;
	struct http *http;
	struct MHD_Connection *connection;
	char *uri;
	struct ask ask;
	bool is_begun, is_given, wants_json, is_form, is_metrics;
	bool is_last;		  /* nothing more is read on its connection */
	struct web_counts counts; /* for /metrics, as they were when it was asked for */
	char form[FORM_MAX];
	size_t form_size;
	struct answer answer;
};

static void exchange_free(struct exchange *x)
{
	answer_done(&x->answer);
	free(x->uri);
	free(x);
}

/* ---- connections ---- */

static struct line *line_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static struct line *line_new(struct http *h, int fd)
{
	struct line *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	*l = (struct line){.http = h, .fd = fd, .since = clock_now(), .after = h->lines};
	if (l->after)
		l->after->before = l;
	h->n_lines++;
	return h->lines = l;
}

static void line_free(struct line *l)
{
	if (l->before)
		l->before->after = l->after;
	else
		l->http->lines = l->after;
	if (l->after)
		l->after->before = l->before;
	l->http->n_lines--;
	free(l);
}

/* Whoever can reach the port can hold connections; the oldest that came without a token goes for the next that comes. */
static void make_room(struct http *h)
{
	struct line *oldest = NULL;

	if (h->n_lines <= CONNECTIONS_MAX - CONNECTIONS_SPARE)
		return;
	for (struct line *l = h->lines; l; l = l->after)
		if (!l->is_known && !l->is_ended)
			oldest = l;
	if (oldest) {
		oldest->is_ended = true;
		shutdown(oldest->fd, SHUT_RDWR);
	}
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode how)
{
	if (how == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = line_new(
			arg,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
		make_room(arg);
	} else if (*context) {
		line_free(*context);
		*context = NULL;
	}
}

/* ---- what is sent ---- */

/* Nothing on a page is from elsewhere, and nothing in it runs but our own files. */
static const struct {
	const char *name, *value;
} always[] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
	 "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Referrer-Policy", "same-origin"}, /* "no-referrer" would take the Origin away from our own form */
	{"Vary", "Accept, Cookie"},
};

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
	if (value)
		MHD_add_response_header(r, name, value);
}

/* RFC 6266, with what a name cannot have in a header as %XX. */
static char *disposition(const char *name)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "attachment; filename*=UTF-8''");
	url_escape(&b, name);
	return buffer_take(&b);
}

static void add_headers(struct MHD_Response *r, const struct answer *a)
{
	_cleanup_free_ char *saved = a->file_name ? disposition(a->file_name) : NULL, *next = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		add_header(r, always[i].name, always[i].value);
	add_header(r, "Content-Type", a->type ? a->type : "application/octet-stream");
	add_header(r, "Cache-Control", a->is_constant ? "private, max-age=86400" : "no-store");
	add_header(r, "Content-Disposition", saved);
	add_header(r, "Location", a->location);
	add_header(r, "Set-Cookie", a->cookie);
	if (a->next && asprintf(&next, "<%s>; rel=\"next\"", a->next) >= 0)
		add_header(r, "Link", next);
}

static struct MHD_Response *response_of(struct answer *a)
{
	size_t size = a->body.size;
	char *data;

	if (a->has_file) {
		a->has_file = false;
		return MHD_create_response_from_fd64(a->size, a->fd);
	}
	data = buffer_take(&a->body);
	return data ? MHD_create_response_from_buffer(size, data, MHD_RESPMEM_MUST_FREE) : NULL;
}

static enum MHD_Result send_answer(struct exchange *x)
{
	bool is_file = x->answer.has_file;
	struct MHD_Response *r = response_of(&x->answer);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	line_of(x->connection)->is_live = is_file;
	add_headers(r, &x->answer);
	add_header(r, "Connection", x->is_last ? "close" : NULL);
	sent = MHD_queue_response(x->connection, x->answer.status ? (unsigned)x->answer.status : MHD_HTTP_OK,
				  r);
	MHD_destroy_response(r);
	return sent;
}

static enum MHD_Result refuse(struct exchange *x, int status, enum error_kind kind, const char *why)
{
	struct error err = ERROR_INIT;

	x->http->counts.refused++;
	error_set(&err, kind, "%s", why);
	answer_error(&x->answer, x->wants_json, status, &err);
	return send_answer(x);
}

/* ---- where a request ends ---- */

struct framing {
	int hosts, lengths, encodings;
	bool is_odd; /* the name of a header has a space in it */
};

static enum MHD_Result look_at_header(void *arg, enum MHD_ValueKind kind UNUSED, const char *name,
				      const char *value UNUSED)
{
	struct framing *f = arg;

	f->hosts += strcasecmp(name, "Host") == 0;
	f->lengths += strcasecmp(name, "Content-Length") == 0;
	f->encodings += strcasecmp(name, "Transfer-Encoding") == 0;
	f->is_odd = f->is_odd || strpbrk(name, " \t");
	return MHD_YES;
}

/* Else a server in front of us may see one request where we see two, and give somebody another's answer (RFC 9112, 6.3 and 11.2). */
static bool has_one_end(const struct exchange *x)
{
	struct framing f = {0};

	MHD_get_connection_values(x->connection, MHD_HEADER_KIND, look_at_header, &f);
	return !f.is_odd && f.hosts <= 1 && f.lengths + f.encodings <= 1;
}

/* ---- who asks ---- */

static const char *header(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* On a unix socket: ourselves, or root. */
static bool is_known_peer(const struct exchange *x)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(line_of(x->connection)->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static int64_t uid_of(const struct exchange *x)
{
	struct line *l = line_of(x->connection);

	if (!l->has_uid) {
		l->uid = peer_uid(l->fd);
		l->has_uid = true;
	}
	return l->uid;
}

/* A stranger, who has neither, does not make us look through all connections of the host. */
static bool may_look(const struct exchange *x)
{
	const struct guard *g = x->http->guard;
	int64_t uid;

	if (guard_knows_secret(g, header(x, SECRET_HEADER)))
		return true;
	if (x->http->at.is_unix)
		return is_known_peer(x);
	return guard_knows_bearer(g, header(x, "Authorization")) ||
	       (guard_knows_cookie(g, header(x, "Cookie"), &uid) && uid == uid_of(x));
}

/* ---- the form that gives the token ---- */

/* "token=…", as a form sends it. */
static const char *token_of(struct exchange *x)
{
	static const char name[] = "token=";

	x->form[x->form_size] = 0;
	x->form[strcspn(x->form, "&\r\n")] = 0;
	return strncmp(x->form, name, strlen(name)) == 0 ? x->form + strlen(name) : NULL;
}

static enum MHD_Result log_in(struct exchange *x)
{
	const struct guard *g = x->http->guard;
	char session[GUARD_SESSION + 1];
	struct error err = ERROR_INIT;

	if (!guard_is_own_page(g, header(x, "Origin"), header(x, "Sec-Fetch-Site")))
		return refuse(x, MHD_HTTP_FORBIDDEN, ERROR_REFUSED,
			      "another site's page may not log in here");
	if (!guard_knows_token(g, token_of(x))) {
		pages_login(true, &x->answer, &err);
		x->answer.status = MHD_HTTP_UNAUTHORIZED;
		return send_answer(x);
	}
	x->answer =
		(struct answer){.status = MHD_HTTP_SEE_OTHER, .type = "text/plain", .location = strdup("/")};
	guard_session(g, uid_of(x), session);
	if (asprintf(&x->answer.cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", g->cookie, session) < 0)
		x->answer.cookie = NULL;
	return send_answer(x);
}

static enum MHD_Result ask_to_log_in(struct exchange *x)
{
	struct error err = ERROR_INIT;

	if (x->wants_json)
		return refuse(
			x, MHD_HTTP_UNAUTHORIZED, ERROR_REFUSED,
			"who asks is not known: send 'Authorization: Bearer TOKEN', with the token that 'fumehood web' printed");
	if (pages_login(false, &x->answer, &err) < 0)
		return MHD_NO;
	x->answer.status = MHD_HTTP_UNAUTHORIZED;
	return send_answer(x);
}

/* ---- an exchange ---- */

static int make_answer(struct exchange *x, struct hood *h, struct error *err)
{
	if (!h)
		return error_set(err, ERROR_BUSY, "this page is being ended: ask again when it is back");
	if (x->is_metrics)
		return metrics_answer(h, &x->counts, &x->answer, err);
	if (pages_is_image(&x->ask))
		return page_image(h, x->http->staff.pictures, &x->ask, &x->answer, err);
	return pages_answer(h, &x->ask, x->wants_json, &x->answer, err);
}

static void work(struct errand *e, struct hood *h)
{
	struct exchange *x = (struct exchange *)(void *)e;
	static const uint64_t one = 1;
	int bell = x->http->bell_fd;
	struct error err = ERROR_INIT;

	if (make_answer(x, h, &err) < 0)
		answer_error(&x->answer, x->wants_json, 0, &err);
	MHD_resume_connection(x->connection); /* x may be gone from here on */
	(void)!write(bell, &one, sizeof one);
}

static bool is_login(const struct ask *a)
{
	return a->n_parts == 1 && strcmp(a->parts[0], "login") == 0;
}

/* "/events": the ledger; "/a/ID/events": one of it. */
static bool is_news(const struct ask *a)
{
	return (a->n_parts == 1 || (a->n_parts == 3 && strcmp(a->parts[0], "a") == 0)) &&
	       strcmp(a->parts[a->n_parts - 1], "events") == 0;
}

static enum MHD_Result send_news(struct exchange *x)
{
	const char *id = x->ask.n_parts == 3 ? x->ask.parts[1] : NULL;
	struct answer shape = {.type = "text/event-stream"};
	struct MHD_Response *r;
	enum MHD_Result sent;

	if (id && id_check(id, NULL) < 0)
		return refuse(x, MHD_HTTP_BAD_REQUEST, ERROR_USAGE, "that is no id of an analysis");
	line_of(x->connection)->is_live = true;
	r = news_view(x->http->news, x->connection, id);
	if (!r)
		return refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, ERROR_BUSY,
			      "too many look already: the page can be asked for again");
	add_headers(r, &shape);
	sent = MHD_queue_response(x->connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return sent;
}

static enum MHD_Result judge(struct exchange *x)
{
	struct error err = ERROR_INIT;
	int r;

	if (x->is_form)
		return log_in(x);
	r = pages_asset(&x->ask, &x->answer, &err);
	if (r == 0)
		return send_answer(x);
	if (!may_look(x))
		return ask_to_log_in(x);
	line_of(x->connection)->is_known = true;
	if (x->http->closing)
		return MHD_NO;
	if (is_news(&x->ask))
		return send_news(x);
	x->is_given = true;
	x->is_metrics = x->ask.n_parts == 1 && strcmp(x->ask.parts[0], "metrics") == 0;
	x->counts = x->http->counts;
	x->counts.news = news_count(x->http->news);
	MHD_suspend_connection(x->connection);
	askers_give(pages_is_image(&x->ask) ? x->http->staff.painter : x->http->staff.askers, &x->errand);
	return MHD_YES;
}

/* Before anything else is looked at. */
static enum MHD_Result begin(struct exchange *x, const char *method)
{
	struct error err = ERROR_INIT;

	x->is_begun = true;
	x->http->counts.requests++;
	x->wants_json = ask_wants_json(header(x, "Accept"));
	if (!has_one_end(x)) {
		x->is_last = true;
		return refuse(x, MHD_HTTP_BAD_REQUEST, ERROR_USAGE,
			      "the request can be read in two ways: it has one Host and one length");
	}
	if (!guard_knows_host(x->http->guard, header(x, "Host")))
		return refuse(
			x, MHD_HTTP_MISDIRECTED_REQUEST, ERROR_REFUSED,
			"this is not the host that was asked for; if it has that name, say so: fumehood web --host NAME:PORT");
	if (ask_parse(&x->ask, x->uri, &err) < 0)
		return refuse(x, MHD_HTTP_BAD_REQUEST, ERROR_USAGE, err.message);
	x->is_form = strcmp(method, "POST") == 0;
	if (x->is_form ? !is_login(&x->ask) : strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse(x, MHD_HTTP_METHOD_NOT_ALLOWED, ERROR_USAGE,
			      "nothing here can be changed: only GET and HEAD are known");
	return MHD_YES;
}

static enum MHD_Result on_request(void *arg UNUSED, struct MHD_Connection *connection, const char *url UNUSED,
				  const char *method, const char *version UNUSED, const char *data,
				  size_t *size, void **state)
{
	struct exchange *x = *state;

	if (!x || !line_of(connection)) /* memory was out */
		return MHD_NO;
	x->connection = connection;
	if (!x->is_begun)
		return begin(x, method);
	if (*size) {
		if (!x->is_form || *size >= sizeof x->form - x->form_size)
			return MHD_NO;
		memcpy(x->form + x->form_size, data, *size);
		x->form_size += *size;
		*size = 0;
		return MHD_YES;
	}
	return x->is_given ? send_answer(x) : judge(x);
}

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *connection UNUSED)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->http = arg;
	x->errand.work = work;
	x->uri = strdup(uri);
	if (x->uri)
		return x;
	exchange_free(x);
	return NULL;
}

static void on_completed(void *arg UNUSED, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode how UNUSED)
{
	struct line *l = line_of(connection);

	if (l) {
		l->since = clock_now();
		l->is_live = false;
	}
	if (*state)
		exchange_free(*state);
	*state = NULL;
}

/* We take addresses apart ourselves. */
static size_t leave_escaped(void *arg UNUSED, struct MHD_Connection *connection UNUSED, char *text)
{
	return strlen(text);
}

static void on_panic(void *arg UNUSED, const char *file UNUSED, unsigned line UNUSED, const char *why UNUSED)
{
	abort();
}

/* ---- in the loop ---- */

static int set_timer(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(h->daemon, &ms) != MHD_YES)
		return loop_timer_set(h->timer, 0);
	/* At once, if somebody can be sent more: a millisecond for each piece makes a file slow. */
	return loop_timer_set(h->timer, clock_now() + (ms ? (uint64_t)ms * NSEC_PER_MSEC : 1));
}

static int on_time(void *arg, struct error *err UNUSED)
{
	struct http *h = arg;

	MHD_run(h->daemon);
	return set_timer(h);
}

/* A byte now and then is not silence: who takes too long in all is cut off. */
static int on_watch(void *arg, struct error *err)
{
	struct http *h = arg;
	uint64_t now = clock_now();

	for (const struct line *l = h->lines; l; l = l->after)
		if (!l->is_live && now - l->since > exchange_ns)
			shutdown(l->fd, SHUT_RDWR);
	loop_timer_set(h->watch, now + LOOK_S * NSEC_PER_SEC);
	return on_time(h, err);
}

static int on_events(void *arg, int fd UNUSED, uint32_t events UNUSED, struct error *err)
{
	return on_time(arg, err);
}

static int on_bell(void *arg, int fd, uint32_t events UNUSED, struct error *err)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof n);
	return on_time(arg, err);
}

static void on_sent(void *arg)
{
	struct error ignored = ERROR_INIT;

	on_time(arg, &ignored);
}

static int daemon_start(struct http *h, struct error *err)
{
	const union MHD_DaemonInfo *info;

	MHD_set_panic_func(on_panic, NULL);
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
				     MHD_OPTION_LISTEN_SOCKET, h->at.fd, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)REQUEST_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
				     MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_UNESCAPE_CALLBACK,
				     leave_escaped, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
				     MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
	if (!h->daemon)
		return error_system(err, errno, "cannot serve pages on %s", h->at.name);
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (loop_add_fd(h->loop, info->epoll_fd, EPOLLIN, on_events, h, &h->source, err) < 0 ||
	    loop_add_fd(h->loop, h->bell_fd, EPOLLIN, on_bell, h, &h->bell, err) < 0 ||
	    loop_add_timer(h->loop, clock_now() + LOOK_S * NSEC_PER_SEC, on_watch, h, &h->watch, err) < 0 ||
	    loop_add_timer(h->loop, 0, on_time, h, &h->timer, err) < 0)
		return -1;
	return set_timer(h);
}

int http_open(struct loop *loop, const struct guard *guard, const struct http_staff *staff,
	      const struct hood_options *options, struct listening *at, struct http **ret, struct error *err)
{
	struct http *h = calloc(1, sizeof *h);

	if (!h)
		return error_memory(err);
	h->loop = loop;
	h->guard = guard;
	h->staff = *staff;
	h->at = *at;
	*at = (struct listening){.fd = -1};
	h->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->bell_fd < 0 || news_open(loop, options, on_sent, h, &h->news, err) < 0 ||
	    daemon_start(h, err) < 0) {
		if (h->bell_fd < 0)
			error_system(err, errno, "cannot make an eventfd");
		http_close(h);
		return -1;
	}
	*ret = h;
	return 0;
}

void http_quiet(struct http *h)
{
	if (!h)
		return;
	h->closing = true;
	news_quiet(h->news);
}

/* The askers are gone, and so nothing is suspended any more: MHD_stop_daemon() aborts else. */
struct http *http_close(struct http *h)
{
	if (!h)
		return NULL;
	loop_remove(h->source);
	loop_remove(h->timer);
	loop_remove(h->bell);
	loop_remove(h->watch);
	if (h->daemon) {
		MHD_quiesce_daemon(h->daemon);
		MHD_run(h->daemon);
		MHD_stop_daemon(h->daemon);
	}
	news_close(h->news);
	listen_close(&h->at);
	fd_close(h->bell_fd);
	free(h);
	return NULL;
}
