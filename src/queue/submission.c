#include "submission.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "buffer.h"
#include "clock.h"
#include "file.h"
#include "flow.h"
#include "text.h"

enum { READ_SIZE = 1 << 17, SHOWN_SIZE = 512, NOTES_MAX = 16 };

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
	size_t n;
	struct content *sources;
	size_t n_sources;
	char **notes;
	struct {
		submission_watch_fn fn; /* NULL: nobody looks */
		void *arg;
		uint64_t began, said, done, total;
	} watch;
	json_t *by_path;	/* {path: index into sources}; paths are bytes */
	json_t *ids;		/* of all jobs: an id twice is a mistake */
	struct job_array array; /* of jobs[0], unless array.job is NULL */
	char id[ID_ROOM];	/* what was asked for last */
};

int submitter_default(char *out, size_t room, struct error *err)
{
	struct passwd entry, *found = NULL;
	_cleanup_free_ char *scratch = malloc(16384);

	if (!scratch)
		return error_memory(err);
	if (getpwuid_r(geteuid(), &entry, scratch, 16384, &found) == 0 && found && *entry.pw_name)
		snprintf(out, room, "%s", entry.pw_name);
	else
		snprintf(out, room, "uid-%u", (unsigned)geteuid());
	return 0;
}

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
	strv_free(s->notes);
	free(s->submitter);
	json_decref(s->by_path);
	json_decref(s->ids);
	free(s);
}

/* ---- how far it is ---- */

void submission_watch(struct submission *s, submission_watch_fn fn, void *arg)
{
	s->watch.fn = fn;
	s->watch.arg = arg;
	s->watch.began = clock_now();
}

static void tell(struct submission *s, const char *what, uint64_t more)
{
	uint64_t now = clock_now();

	s->watch.done += more;
	if (!s->watch.fn || now - s->watch.began < NSEC_PER_SEC || now - s->watch.said < NSEC_PER_SEC / 10)
		return;
	s->watch.said = now;
	s->watch.fn(s->watch.arg, what, s->watch.done,
		    s->watch.total > s->watch.done ? s->watch.total : s->watch.done);
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

static int source_read(struct submission *s, const struct input *in, struct content *ret, struct error *err)
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
		tell(s, "reading", (uint64_t)n);
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
	struct content c, *more;

	if (known) {
		*ret = &s->sources[json_integer_value(known)];
		return 0;
	}
	if (source_read(s, in, &c, err) < 0)
		return -1;
	if (json_object_set_new_nocheck(s->by_path, path, json_integer((json_int_t)s->n_sources)) < 0 ||
	    !(more = ARRAY_ADD(s->sources, s->n_sources)))
		return error_memory(err);
	*more = c;
	*ret = more;
	return 0;
}

/* ---- jobs ---- */

static int job_digest(struct submission *s, struct job *j, struct error *err)
{
	for (size_t i = 0; i < j->inputs.count; i++)
		if (!json_object_get(s->by_path, j->inputs.list[i].source))
			s->watch.total += j->inputs.list[i].size;
	for (size_t i = 0; i < j->inputs.count; i++) {
		struct input *in = &j->inputs.list[i];
		const struct content *source = NULL;

		if (source_find(s, in, &source, err) < 0)
			return -1;
		memcpy(in->sha256, source->sha256, sizeof in->sha256);
		in->size = source->size;
	}
	return 0;
}

static int job_complete(struct submission *s, const struct request *request, struct job *j, struct error *err)
{
	free(j->submitter);
	strv_free(j->after);
	j->submitter = strdup(s->submitter);
	j->after = strv_copy(request->after);
	if (!j->submitter || !j->after)
		return error_memory(err);
	if (flows_after(request->from, &j->after, err) < 0)
		return -1;
	j->priority = request->priority;
	j->retries = request_retries(request);
	j->retry_on = request->retry_on;
	j->again = request->again;
	return job_digest(s, j, err);
}

/* Many of them have the same. */
static int take_notes(struct submission *s, const struct job *j, struct error *err)
{
	for (size_t i = 0; j->notes && j->notes[i]; i++) {
		size_t k = 0;
		int r;

		while (s->notes && s->notes[k] && strcmp(s->notes[k], j->notes[i]) != 0)
			k++;
		if ((!s->notes || !s->notes[k]) && k < NOTES_MAX &&
		    (r = strv_append(&s->notes, j->notes[i], err)) < 0)
			return r;
	}
	return 0;
}

char *const *submission_notes(const struct submission *s)
{
	return s->notes;
}

static int note_id(struct submission *s, const char *id, struct error *err)
{
	if (json_object_get(s->ids, id))
		return error_set(err, ERROR_USAGE, "'%s' is submitted twice: an id names one analysis", id);
	return json_object_set_new(s->ids, id, json_true()) < 0 ? error_memory(err) : 0;
}

/* stored: files that the ledger has already, and that become the job's; NULL: none. */
static int fill(struct submission *s, const struct request *request, struct inputs *stored, struct job *j,
		struct error *err)
{
	if (hood_job(s->hood, request, j, err) < 0 || job_complete(s, request, j, err) < 0)
		return -1;
	if (stored) {
		j->inputs = *stored;
		*stored = (struct inputs){0};
	}
	if (take_notes(s, j, err) < 0)
		return -1;
	return note_id(s, j->id, err);
}

static int add(struct submission *s, const struct request *request, struct inputs *stored, struct error *err)
{
	struct job *j = ARRAY_ADD(s->jobs, s->n);

	if (!j)
		return error_memory(err);
	job_init(j);
	if (fill(s, request, stored, j, err) == 0)
		return 0;
	job_done(j);
	s->n--;
	return -1;
}

int submission_add(struct submission *s, const struct request *request, struct error *err)
{
	return add(s, request, NULL, err);
}

/* ---- arrays ---- */

/* A number that no array reaches, to be found again where the task's belongs. */
#define TASK_MARK "3999999989"
static const unsigned task_mark = 3999999989;
static const char task_word[] = "{task}";

static bool has_word(char *const *list)
{
	for (; list && *list; list++)
		if (strstr(*list, task_word))
			return true;
	return false;
}

/* What the tasks differ in is only text: no file that is looked for, nobody that they come after. */
static bool is_plain(const struct request *r)
{
	json_auto_t *json = request_to_json(r);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (!text || strstr(text, TASK_MARK) || has_word(r->after) || has_word(r->from) || !r->command ||
	    !r->command[0] || strstr(r->command[0], task_word) ||
	    (r->id && strstr(r->id, task_word) != strrchr(r->id, '{')))
		return false;
	for (size_t i = 0; i < r->n_inputs; i++)
		if (strstr(r->inputs[i].from, task_word) ||
		    (r->inputs[i].to && strstr(r->inputs[i].to, task_word)))
			return false;
	return true;
}

/* "NAME" may be the beginning of what a word becomes: as far as its first {task} they agree, and a digit follows; or, if
 * there is none before the first '/', they are the same so far. */
static bool may_begin(const char *name, const char *word)
{
	size_t part = strcspn(word, "/"), n = strlen(name);
	const char *mark = strstr(word, task_word);

	if (!mark || mark >= word + part)
		return part == n && strncmp(name, word, n) == 0;
	part = (size_t)(mark - word);
	return n > part && strncmp(name, word, part) == 0 && name[part] >= '0' && name[part] <= '9';
}

static bool may_be_here(const char *directory, const char *word)
{
	DIR *dir = opendir(directory);
	const struct dirent *e;
	bool found = !dir;

	while (!found && (e = readdir(dir)))
		found = may_begin(e->d_name, word);
	if (dir)
		closedir(dir);
	return found;
}

static bool is_there(const char *directory, const char *word, unsigned task)
{
	_cleanup_buffer_ struct buffer path = {0};
	const char *at;

	if (buffer_printf(&path, "%s/", directory) < 0)
		return true;
	for (; (at = strstr(word, task_word)); word = at + strlen(task_word))
		if (buffer_append(&path, word, (size_t)(at - word)) < 0 ||
		    buffer_printf(&path, "%u", task) < 0)
			return true;
	return buffer_puts(&path, word) < 0 ||
	       faccessat(AT_FDCWD, path.data, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* A word of the command with {task} in it may name a file below the current directory, which would be staged. One look
 * at the directory mostly tells that it does not. */
static bool names_file(const char *directory, const char *word, const struct tasks *tasks)
{
	while (strncmp(word, "./", 2) == 0)
		word += 2;
	if (!may_be_here(directory, word))
		return false;
	for (size_t i = 0; i < tasks->count; i++)
		if (is_there(directory, word, tasks->list[i]))
			return true;
	return false;
}

static bool names_files(const struct request *r, const struct tasks *tasks)
{
	for (size_t i = 1; !r->no_stage && r->command[i]; i++) {
		const char *word = r->command[i];

		/* No name is as long as that. */
		if (strstr(word, task_word) && *word != '/' && *word != '-' && strlen(word) <= 2 * NAME_MAX &&
		    names_file(r->directory ? r->directory : ".", word, tasks))
			return true;
	}
	return false;
}

/* One of the array, as a request of its own. */
static int make_task(struct request *r, const struct request *request, unsigned task, struct error *err)
{
	request_init(r);
	if (request_inherit(r, request, err) < 0 || request_set_task(r, task, err) < 0)
		return -1;
	return request_check(r, err);
}

static int add_task(struct submission *s, const struct request *request, unsigned task, struct error *err)
{
	_cleanup_request_ struct request r;

	return make_task(&r, request, task, err) < 0 ? -1 : add(s, &r, NULL, err);
}

/* The last one has the longest words. */
static int check_task(const struct request *request, unsigned task, struct error *err)
{
	_cleanup_request_ struct request r;

	return make_task(&r, request, task, err);
}

/* The mark may be longer than any task: then it is done one by one, which says what is too long, if it is. */
static int add_pattern(struct submission *s, const struct request *request, const struct tasks *tasks,
		       struct error *err)
{
	struct error ignored = ERROR_INIT;

	if (check_task(request, tasks->list[0], err) < 0 ||
	    check_task(request, tasks->list[tasks->count - 1], err) < 0)
		return -1;
	if (!is_plain(request) || names_files(request, tasks) ||
	    add_task(s, request, task_mark, &ignored) < 0)
		return 0;
	s->array = (struct job_array){
		.job = &s->jobs[0], .name = request->id, .mark = TASK_MARK, .tasks = tasks};
	return 1;
}

int submission_add_array(struct submission *s, const struct request *request, const struct tasks *tasks,
			 struct error *err)
{
	int r = add_pattern(s, request, tasks, err);

	if (r != 0)
		return r < 0 ? r : 0;
	for (size_t i = 0; i < tasks->count; i++)
		if (add_task(s, request, tasks->list[i], err) < 0)
			return -1;
	return 0;
}

static int open_content(void *arg, const struct output *o, struct error *err)
{
	tell(arg, "storing", o->size);
	return source_open(o->path, 0, 0, err);
}

static bool has_id(struct submission *s, const char *id)
{
	const struct job_array *a = &s->array;
	size_t prefix;

	if (!a->job)
		return json_object_get(s->ids, id);
	prefix = (size_t)(strstr(a->job->id, a->mark) - a->job->id);
	if (strncmp(id, a->job->id, prefix) != 0)
		return false;
	for (size_t i = 0; i < submission_count(s); i++)
		if (strcmp(submission_id(s, i), id) == 0)
			return true;
	return false;
}

struct look_here {
	struct submission *submission;
	struct error *err;
	int refused;
};

/* What `run` has of this ledger on this host, and the ledger does not know of yet: in the end it may have succeeded. */
static int refuse_live(void *arg, const struct live *l)
{
	struct look_here *look = arg;
	struct submission *s = look->submission;
	int same;

	if (l->queued || l->held || !(l->alive || l->pending) || !has_id(s, l->id))
		return 0;
	same = l->ledger ? ledger_url_same(l->ledger, hood_ledger_url(s->hood)) : 1;
	if (same < 0)
		look->refused = error_memory(look->err);
	else if (same && l->pending)
		look->refused =
			error_set(look->err, ERROR_BUSY,
				  "'%s' has run, and is pending on this host: `fumehood gc` finishes it, or "
				  "`fumehood cancel %s` gives it up",
				  l->id, l->id);
	else if (same)
		look->refused =
			error_set(look->err, ERROR_BUSY,
				  "'%s' is running on this host: submit it when that has ended", l->id);
	return look->refused;
}

int submission_commit(struct submission *s, unsigned flags, struct error *err)
{
	struct look_here look = {.submission = s, .err = err};
	struct error ignored = ERROR_INIT;
	struct ledger *ledger;

	if (hood_ledger(s->hood, LEDGER_CREATE, &ledger, err) < 0)
		return -1;
	/* Who has no state directory has run nothing here. */
	(void)hood_live_each(s->hood, refuse_live, &look, &ignored);
	if (look.refused)
		return look.refused;
	s->is_new = calloc(submission_count(s) + 1, sizeof *s->is_new);
	if (!s->is_new)
		return error_memory(err);
	s->watch.done = 0; /* once more, into the ledger */
	if (s->array.job)
		return ledger_submit_array(ledger, &s->array, flags, open_content, s, s->is_new, err);
	return ledger_submit(ledger, s->jobs, s->n, flags, open_content, s, s->is_new, err);
}

size_t submission_count(const struct submission *s)
{
	return s->array.job ? job_array_count(&s->array) : s->n;
}

const char *submission_id(struct submission *s, size_t i)
{
	if (!s->array.job)
		return s->jobs[i].id;
	job_array_id(&s->array, i, s->id);
	return s->id;
}

bool submission_is_new(const struct submission *s, size_t i)
{
	return s->is_new && s->is_new[i];
}

/* ---- once more ---- */

/* A command that has started had all its files, and the ledger has them; those of a post-process it does not list. */
static bool is_whole(const struct attempt *a, const struct request *r)
{
	return a->started && r->no_stage && !r->post_process;
}

/* The files of his that it had. What it had of other analyses is looked up anew. */
static int copy_stored(const struct inputs *from, struct inputs *ret, struct error *err)
{
	for (size_t i = 0; i < from->count; i++)
		if (!from->list[i].from_analysis && inputs_add(ret, &from->list[i], err) < 0)
			return -1;
	return 0;
}

static bool is_staged(const struct job *j, const char *path)
{
	for (size_t i = 0; i < j->inputs.count; i++)
		if (!j->inputs.list[i].for_post && strcmp(j->inputs.list[i].path, path) == 0)
			return true;
	return false;
}

static int refuse_other(const struct attempt *a, const char *path, const char *how, struct error *err)
{
	return error_set(err, ERROR_REFUSED,
			 "cannot try '%s' again: '%s', which attempt %d had, %s, and the ledger has no copy; "
			 "`fumehood run %s` and `fumehood submit %s` take what is there now",
			 a->id, SHOWN(256, path), a->number, how, a->id, a->id);
}

/* One that `run` has run has its files where they were, or not any more: what it had then, the ledger knows by its digest. */
static int check_same(const struct job *j, const struct attempt *a, struct error *err)
{
	for (size_t i = 0; i < a->inputs.count; i++) {
		const struct input *then = &a->inputs.list[i];

		if (!then->from_analysis && !is_staged(j, then->path))
			return refuse_other(a, then->path, "is not there any more", err);
	}
	for (size_t i = 0; i < j->inputs.count; i++) {
		const struct input *now = &j->inputs.list[i], *then = inputs_find(&a->inputs, now->path);

		if (now->for_post || now->from_analysis)
			continue;
		if (!then || then->size != now->size ||
		    memcmp(then->sha256, now->sha256, sizeof now->sha256) != 0)
			return refuse_other(a, now->path, "is another now", err);
	}
	return 0;
}

static int submit_once_more(struct hood *h, const char *submitter, const struct attempt *a, struct error *err)
{
	_cleanup_submission_ struct submission *s = NULL;
	_cleanup_(inputs_done) struct inputs stored = {0};
	_cleanup_request_ struct request r;
	bool is_local;

	request_init(&r);
	if (a->verdict == VERDICT_SUCCEEDED)
		return error_set(err, ERROR_REFUSED, "cannot try '%s' again: it has succeeded", a->id);
	if (a->request && request_from_json(&r, a->request, err) < 0)
		return -1;
	if (r.terminal)
		return error_set(
			err, ERROR_REFUSED,
			"cannot try '%s' again: it had a terminal (-t), and there is none in the queue; `fumehood run %s "
			"--again -t -- …` runs it here, with the options and command that `fumehood show %s` has",
			a->id, a->id, a->id);
	is_local = !a->queued && a->started && !r.stdin_open;
	if (!is_whole(a, &r) && !is_local)
		return error_set(
			err, ERROR_REFUSED,
			"cannot try '%s' again: it is in the queue no more, and the ledger has not all that it "
			"needs; submit it once more: 'fumehood submit %s --again'",
			a->id, a->id);
	r.again = true;
	if (is_local && !is_whole(a, &r)) {
		if (submission_open(h, submitter, &s, err) < 0 || add(s, &r, NULL, err) < 0 ||
		    check_same(&s->jobs[0], a, err) < 0)
			return -1;
		return submission_commit(s, 0, err);
	}
	if (copy_stored(&a->inputs, &stored, err) < 0 || submission_open(h, submitter, &s, err) < 0 ||
	    add(s, &r, &stored, err) < 0)
		return -1;
	return submission_commit(s, 0, err);
}

int submission_retry(struct hood *h, const char *submitter, const char *id, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct error why = ERROR_INIT;
	struct ledger *ledger;
	int64_t removed = 0;
	int mine;

	attempt_init(&a);
	if (hood_ledger(h, LEDGER_CREATE, &ledger, err) < 0)
		return -1;
	if (ledger_retry(ledger, id, err) == 0)
		return 0;
	if (err->kind != ERROR_NOT_FOUND)
		return -1;
	if (ledger_load(ledger, id, 0, &a, &why) < 0) {
		/* That it was removed says more than that the queue does not know it. */
		if (ledger_removed(ledger, id, 0, &removed, &why) == 0 && removed)
			*err = why;
		return -1;
	}
	*err = why;
	mine = ledger_is_mine(ledger, &a, err);
	if (mine == 0)
		return error_set(
			err, ERROR_REFUSED,
			"cannot try '%s' again: the queue has it no more, and it is another's, who can",
			a.id);
	return mine < 0 ? mine : submit_once_more(h, submitter, &a, err);
}
