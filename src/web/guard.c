#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "file.h"
#include "id.h"
#include "text.h"

enum { SECRET_MIN = 16, SECRET_MAX = 256 };

int guard_open(struct guard *g, unsigned port, struct error *err)
{
	*g = (struct guard){0};
	snprintf(g->cookie, sizeof g->cookie, "fumehood-%u", port);
	return token_make(g->token, err);
}

void guard_session(const struct guard *g, int64_t uid, char out[GUARD_SESSION + 1])
{
	uint8_t digest[DIGEST_SIZE];
	char words[96 + GUARD_TOKEN];

	snprintf(words, sizeof words, "fumehood web session %s of %" PRId64, g->token, uid);
	digest_bytes(words, strlen(words), digest);
	hex_encode(digest, sizeof digest, out + snprintf(out, GUARD_SESSION, "%" PRId64 ".", uid));
}

int guard_add_host(struct guard *g, const char *host, struct error *err)
{
	return strv_append(&g->hosts, host, err);
}

int guard_read_secret(struct guard *g, const char *path, struct error *err)
{
	char text[SECRET_MAX + 2];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	struct stat st;

	if (n < 0 || fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot read the secret in '%s'", path);
	if (st.st_mode & 077)
		return error_set(err, ERROR_REFUSED, "others can read the secret in '%s': chmod 600 it",
				 path);
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	if (strlen(text) < SECRET_MIN || strlen(text) > SECRET_MAX)
		return error_set(err, ERROR_REFUSED,
				 "the secret in '%s' has %zu characters: it takes from %d to %d", path,
				 strlen(text), SECRET_MIN, SECRET_MAX);
	return text_set(&g->secret, text, err);
}

void guard_done(struct guard *g)
{
	free(g->secret);
	strv_free(g->hosts);
	explicit_bzero(g, sizeof *g);
}

bool guard_knows_host(const struct guard *g, const char *host)
{
	if (!g->hosts)
		return true;
	for (char **known = g->hosts; host && *known; known++)
		if (strcasecmp(*known, host) == 0)
			return true;
	return false;
}

/* As long for a wrong one, wherever it is wrong. */
static bool is_same(const char *secret, size_t size, const char *given, size_t given_size)
{
	unsigned char differs = given_size != size;

	for (size_t i = 0; i < size; i++)
		differs |= (unsigned char)(secret[i] ^ (i < given_size ? given[i] : 0));
	return differs == 0;
}

bool guard_knows_cookie(const struct guard *g, const char *cookies, int64_t *ret_uid)
{
	char session[GUARD_SESSION + 1];
	size_t n = strlen(g->cookie);

	for (const char *at = cookies; at && *at;) {
		size_t size;

		at += strspn(at, "; ");
		size = strcspn(at, ";");
		if (size > n && strncmp(at, g->cookie, n) == 0 && at[n] == '=') {
			*ret_uid = strtoll(at + n + 1, NULL, 10);
			guard_session(g, *ret_uid, session);
			if (is_same(session, strlen(session), at + n + 1, size - n - 1))
				return true;
		}
		at += size;
	}
	return false;
}

bool guard_knows_token(const struct guard *g, const char *token)
{
	return token && is_same(g->token, GUARD_TOKEN, token, strlen(token));
}

bool guard_knows_bearer(const struct guard *g, const char *authorization)
{
	return authorization && strncasecmp(authorization, "Bearer ", 7) == 0 &&
	       guard_knows_token(g, authorization + 7);
}

bool guard_knows_secret(const struct guard *g, const char *secret)
{
	return g->secret && secret && is_same(g->secret, strlen(g->secret), secret, strlen(secret));
}

bool guard_is_own_page(const struct guard *g, const char *origin, const char *fetch_site)
{
	if (fetch_site && strcmp(fetch_site, "same-origin") != 0)
		return false;
	if (!origin) /* no browser leaves both out */
		return true;
	return strncmp(origin, "http://", 7) == 0
		       ? guard_knows_host(g, origin + 7)
		       : strncmp(origin, "https://", 8) == 0 && guard_knows_host(g, origin + 8);
}
