#include "folder.h"
#include "ability.h"
#include "digest.h"
#include "relative.h"
#include "ground.h"
#include "owned.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Leaves room in a name for the longest id, a token and ".new". */
enum { PREFIX_MAX = 64 };

static int check_private(int fd, const char *what, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at the state directory '%s'", what);
	if (st.st_uid != geteuid())
		return error_refuse_here(
			err,
			"the state directory '%s' belongs to user %u, not to user %u: choose another one",
			what, (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & 022)
		return error_refuse_here(
			err,
			"the state directory '%s' can be changed by other users: make it private with chmod 700",
			what);
	return 0;
}

static int open_state(struct site *s, const char *state_dir, struct error *err)
{
	int r = dir_make_private(state_dir, err);

	if (r < 0)
		return r == -EROFS || r == -ENOSPC || r == -EDQUOT
			       ? ground_refuse(GROUND_STATE, state_dir, -r, err)
			       : r;
	s->state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->state < 0)
		return error_system(err, errno, "cannot open the state directory '%s'", state_dir);
	r = check_private(s->state, state_dir, err);
	if (r < 0)
		return r;
	s->runs = dir_make(s->state, "runs", 0700, geteuid(), getegid());
	if (s->runs == -EEXIST)
		s->runs = openat(s->state, "runs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->runs < 0)
		return error_system(err, errno, "cannot open 'runs' in the state directory '%s'", state_dir);
	return check_private(s->runs, state_dir, err);
}

/* A directory in which nobody but us, and root, can exchange what is ours: sticky like /tmp, or private. */
static int open_root(struct site *s, const char *root, struct error *err)
{
	struct stat st;
	bool ours;

	if (root[0] != '/' || !utf8_valid(root, strlen(root)))
		return error_set(err, ERROR_USAGE, "the workspace root is not an absolute path in UTF-8");
	s->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0 || fstat(s->root_fd, &st) < 0)
		return error_system(err, errno, "cannot open the workspace root '%s'", root);
	ours = st.st_uid == geteuid();
	if (st.st_mode & S_ISVTX && (ours || st.st_uid == 0 || !ability_sees_all_ids()))
		return 0;
	if ((!ours && st.st_uid != 0) || st.st_mode & (S_IWOTH | S_IWGRP))
		return error_refuse_here(
			err,
			"the workspace root '%s' is another's, or can be changed by others and is not sticky: "
			"use chmod go-w, chmod +t, or another one",
			root);
	return 0;
}

static int copy_words(struct site *s, const char *root, const char *prefix, struct error *err)
{
	size_t n = strlen(root);

	if (prefix[0] == 0 || prefix[0] == '.' || strlen(prefix) > PREFIX_MAX || strchr(prefix, '/') ||
	    !utf8_valid(prefix, strlen(prefix)))
		return error_set(
			err, ERROR_USAGE,
			"the workspace prefix must be 1 to %d bytes of a plain name that does not start with '.'",
			PREFIX_MAX);
	while (n > 1 && root[n - 1] == '/')
		n--;
	s->root = strndup(root, n);
	s->prefix = strdup(prefix);
	return s->root && s->prefix ? 0 : error_memory(err);
}

int site_open(struct site *s, const char *state_dir, const char *root, const char *prefix, struct error *err)
{
	int r;

	*s = (struct site){.state = -1, .runs = -1, .root_fd = -1};
	if ((r = copy_words(s, root, prefix, err)) < 0 || (r = open_root(s, root, err)) < 0 ||
	    (r = open_state(s, state_dir, err)) < 0)
		site_close(s);
	return r;
}

void site_close(struct site *s)
{
	s->state = fd_close(s->state);
	s->runs = fd_close(s->runs);
	s->root_fd = fd_close(s->root_fd);
	free(s->root);
	free(s->prefix);
	s->root = s->prefix = NULL;
}

void workspace_scratch_name(const char *prefix, const char *id, const char *token, char *out, size_t room)
{
	uint8_t hash[DIGEST_SIZE];
	char mark[17];

	digest_bytes(token, strlen(token), hash);
	hex_encode(hash, 8, mark);
	snprintf(out, room, ".%.*s%.*s.%s", PREFIX_MAX, prefix, ID_MAX, id, mark);
}

void names_make(struct names *n, const struct site *site, const char *id, const char *token)
{
	snprintf(n->final, sizeof n->final, "%.*s%s", PREFIX_MAX, site->prefix, id);
	workspace_scratch_name(site->prefix, id, token, n->scratch, sizeof n->scratch);
	workspace_scratch_name(site->prefix, id, token, n->making, sizeof n->making - sizeof ".new");
	strcat(n->making, ".new");
	workspace_scratch_name(site->prefix, id, token, n->gone, sizeof n->gone - sizeof ".gone");
	strcat(n->gone, ".gone");
}

void names_of(struct names *n, const struct site *site, const struct record *r)
{
	names_make(n, site, r->id, r->token);
	if (r->aside[0])
		snprintf(n->final, sizeof n->final, "%.*s%s@%s", PREFIX_MAX, site->prefix, r->id, r->aside);
}
