#include "web.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "http.h"
#include "picture.h"
#include "text.h"

enum { ASKERS = 2 };

struct house {
	struct loop *loop;
	struct http_staff staff;
	struct http *http;
	struct guard guard;
	struct listening at;
};

/* Askers end first: what they were asked is sent, and nothing is suspended when the rest goes. */
static void house_done(struct house *s)
{
	http_quiet(s->http);
	askers_close(s->staff.askers);
	askers_close(s->staff.painter);
	http_close(s->http);
	pictures_close(s->staff.pictures);
	loop_close(s->loop);
	listen_close(&s->at);
	guard_done(&s->guard);
}

static int on_signal(void *arg, int fd UNUSED, uint32_t events UNUSED, struct error *err UNUSED)
{
	loop_quit(arg);
	return 0;
}

/* The names that this host has for itself, and those that somebody says it has. */
static int know_hosts(struct house *s, char *const *more, struct error *err)
{
	static const char *const own[] = {"127.0.0.1", "localhost", "[::1]"};

	if (s->at.is_unix)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		_cleanup_free_ char *host = NULL;

		if (text_print(&host, err, "%s:%u", own[i], s->at.port) < 0 ||
		    guard_add_host(&s->guard, host, err) < 0)
			return -1;
	}
	if (guard_add_host(&s->guard, s->at.name, err) < 0)
		return -1;
	for (; more && *more; more++)
		if (guard_add_host(&s->guard, *more, err) < 0)
			return -1;
	return 0;
}

static int tell(const struct house *s, const struct web_options *o, struct error *err)
{
	_cleanup_free_ char *address = NULL;

	if (s->at.is_unix ? text_print(&address, err, "%s", s->at.name) < 0
			  : text_print(&address, err, "http://%s/#%s", s->at.name, s->guard.token) < 0)
		return -1;
	return o->ready(o->arg, address, err);
}

static int house_open(struct house *s, const struct web_options *o, struct error *err)
{
	struct hood_options hood = o->hood;

	hood.only_reads = true;
	if (listen_open(o->listen, &s->at, err) < 0 || guard_open(&s->guard, s->at.port, err) < 0 ||
	    know_hosts(s, o->hosts, err) < 0 ||
	    (o->secret_file && guard_read_secret(&s->guard, o->secret_file, err) < 0) ||
	    loop_open(&s->loop, err) < 0 ||
	    loop_add_fd(s->loop, o->signal_fd, EPOLLIN, on_signal, s->loop, NULL, err) < 0 ||
	    askers_open(&hood, ASKERS, &s->staff.askers, err) < 0 ||
	    askers_open(&hood, 1, &s->staff.painter, err) < 0 || pictures_open(&s->staff.pictures, err) < 0 ||
	    tell(s, o, err) < 0)
		return -EINVAL;
	return http_open(s->loop, &s->guard, &s->staff, &hood, &s->at, &s->http, err);
}

int web_serve(const struct web_options *o, struct error *err)
{
	struct house s = {.at = {.fd = -1}};
	int r = house_open(&s, o, err);

	if (r == 0)
		r = loop_run(s.loop, err);
	house_done(&s);
	return r;
}
