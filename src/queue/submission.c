#include "submission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "text.h"

enum { READ_SIZE = 1 << 17, SHOWN_SIZE = 512 };

/* What a file held when it was first read. */
struct content {
	uint8_t sha256[DIGEST_SIZE];
	uint64_t size;
};

struct submission {
	struct hood *hood;
	char *submitter;
	struct job *jobs;
	bool *is_new;
	size_t n, room;
	struct content *sources;
	size_t n_sources;
	json_t *by_path; /* {path: index into sources}; paths are bytes */
	json_t *ids;	 /* of all jobs: an id twice is a mistake */
};

int submission_open(struct hood *h, const char *submitter, struct submission **ret, struct error *err)
{
	struct submission *s = calloc(1, sizeof *s);

	if (!s)
		return error_memory(err);
	s->hood = h;
	s->submitter = strdup(submitter);
	s->by_path = json_object();
	s->ids = json_object();
	if (!s->submitter || !s->by_path || !s->ids) {
		submission_close(s);
		return error_memory(err);
	}
	*ret = s;
	return 0;
}

void submission_close(struct submission *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		job_done(&s->jobs[i]);
	free(s->jobs);
	free(s->is_new);
	free(s->sources);
	free(s->submitter);
	json_decref(s->by_path);
	json_decref(s->ids);
	free(s);
}

/* ---- contents ---- */

static const char *shown(char out[SHOWN_SIZE], const char *path)
{
	return text_escape_into(out, SHOWN_SIZE, path, strlen(path));
}

/* By its canonical path, in which nothing is a link. inode 0: its content is verified by who reads it. */
static int source_open(const char *path, uint64_t device, uint64_t inode, struct error *err)
{
	_cleanup_close_ int fd =
		file_open_nolinks(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	char name[SHOWN_SIZE];
	struct stat st;

	if (fd == -ELOOP)
		return error_set(err, ERROR_REFUSED,
				 "cannot stage '%s': a part of its path has become a symbolic link",
				 shown(name, path));
	if (fd < 0)
		return error_system(err, -fd, "cannot stage '%s'", shown(name, path));
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot stage '%s'", shown(name, path));
	if (!S_ISREG(st.st_mode) || (inode && (st.st_dev != device || st.st_ino != inode)))
		return error_set(err, ERROR_REFUSED,
				 "cannot stage '%s': it is not the file any more that it was",
				 shown(name, path));
	return TAKE_FD(fd);
}

static int source_read(const struct input *in, struct content *ret, struct error *err)
{
	const char *path = in->source;
	_cleanup_close_ int fd = source_open(path, in->device, in->inode, err);
	_cleanup_free_ char *data = malloc(READ_SIZE);
	char name[SHOWN_SIZE];
	struct digest digest;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (!data)
		return error_memory(err);
	*ret = (struct content){0};
	digest_init(&digest);
	while ((n = read(fd, data, READ_SIZE)) > 0) {
		digest_update(&digest, data, (size_t)n);
		ret->size += (uint64_t)n;
	}
	if (n < 0)
		return error_system(err, errno, "cannot read '%s'", shown(name, path));
	digest_final(&digest, ret->sha256);
	return 0;
}

static int source_find(struct submission *s, const struct input *in, const struct content **ret,
		       struct error *err)
{
	const char *path = in->source;
	const json_t *known = json_object_get(s->by_path, path);
	struct content *more;
	int r;

	if (known) {
		*ret = &s->sources[json_integer_value(known)];
		return 0;
	}
	more = reallocarray(s->sources, s->n_sources + 1, sizeof *more);
	if (!more)
		return error_memory(err);
	s->sources = more;
	r = source_read(in, &more[s->n_sources], err);
	if (r < 0)
		return r;
	if (json_object_set_new_nocheck(s->by_path, path, json_integer((json_int_t)s->n_sources)) < 0)
		return error_memory(err);
	*ret = &more[s->n_sources++];
	return 0;
}

/* ---- jobs ---- */

static int job_digest(struct submission *s, struct job *j, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < j->inputs.count; i++) {
		struct input *in = &j->inputs.list[i];
		const struct content *source = NULL;

		r = source_find(s, in, &source, err);
		if (r == 0) {
			memcpy(in->sha256, source->sha256, sizeof in->sha256);
			in->size = source->size;
		}
	}
	return r;
}

static int job_complete(struct submission *s, const struct request *request, struct job *j, struct error *err)
{
	free(j->submitter);
	strv_free(j->after);
	j->submitter = strdup(s->submitter);
	j->after = strv_copy(request->after);
	if (!j->submitter || !j->after)
		return error_memory(err);
	j->priority = request->priority;
	j->retries = request_retries(request);
	j->retry_on = request->retry_on;
	j->again = request->again;
	return job_digest(s, j, err);
}

static int note_id(struct submission *s, const char *id, struct error *err)
{
	if (json_object_get(s->ids, id))
		return error_set(err, ERROR_USAGE, "'%s' is submitted twice: an id names one analysis", id);
	return json_object_set_new(s->ids, id, json_true()) < 0 ? error_memory(err) : 0;
}

int submission_add(struct submission *s, const struct request *request, struct error *err)
{
	struct job *more;
	int r;

	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 16;

		more = reallocarray(s->jobs, room, sizeof *more);
		if (!more)
			return error_memory(err);
		s->jobs = more;
		s->room = room;
	}
	job_init(&s->jobs[s->n]);
	r = hood_job(s->hood, request, &s->jobs[s->n], err);
	if (r == 0)
		r = job_complete(s, request, &s->jobs[s->n], err);
	if (r == 0)
		r = note_id(s, s->jobs[s->n].id, err);
	if (r < 0)
		job_done(&s->jobs[s->n]);
	else
		s->n++;
	return r;
}

static int open_content(void *arg UNUSED, const struct output *o, struct error *err)
{
	return source_open(o->path, 0, 0, err);
}

int submission_commit(struct submission *s, unsigned flags, struct error *err)
{
	struct ledger *ledger;
	int r = hood_ledger(s->hood, LEDGER_CREATE, &ledger, err);

	if (r < 0)
		return r;
	s->is_new = calloc(s->n + 1, sizeof *s->is_new);
	if (!s->is_new)
		return error_memory(err);
	return ledger_submit(ledger, s->jobs, s->n, flags, open_content, s, s->is_new, err);
}

size_t submission_count(const struct submission *s)
{
	return s->n;
}

const char *submission_id(const struct submission *s, size_t i)
{
	return s->jobs[i].id;
}

bool submission_is_new(const struct submission *s, size_t i)
{
	return s->is_new && s->is_new[i];
}
