#include "workspace.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Version 2 has who held it before, version 3 what is about a kept one; what has neither is version 1, which older programs know. */
enum { RECORD_VERSION = 3, CGROUPS_MAX = 16, KILL_WAIT_MS = 10000 };

static const char *const owner_names[] = {
	[OWNER_SUPERVISOR] = "supervisor",
	[OWNER_PROCESS] = "process",
	[OWNER_UNTIL] = "until",
	[OWNER_KEPT] = "kept",
};

void record_init(struct record *r)
{
	memset(r, 0, sizeof *r);
}

void record_done(struct record *r)
{
	strv_free(r->cgroups);
	free(r->path);
	free(r->scratch);
	free(r->ledger);
	json_decref(r->extra);
	record_init(r);
}

static json_t *process_to_json(const struct process_id *p)
{
	return json_pack("{s:i, s:I}", "pid", (int)p->pid, "start", (json_int_t)p->start);
}

static json_t *cgroups_to_json(char *const *list)
{
	json_t *array = json_array();

	for (; array && list && *list; list++)
		if (json_array_append_new(array, json_string(*list)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *holding_to_json(const struct holding *h)
{
	if (h->owner == OWNER_SUPERVISOR)
		return NULL;
	return json_pack("{s:s, s:o, s:I, s:s}", "owner", owner_names[h->owner], "process",
			 process_to_json(&h->process), "until", (json_int_t)h->until, "token", h->token);
}

static int record_version(const struct record *r)
{
	if (r->aside[0] || r->held.owner == OWNER_KEPT)
		return 3;
	return r->held.owner == OWNER_SUPERVISOR ? 1 : 2;
}

json_t *record_to_json(const struct record *r)
{
	/* Device and inode are unsigned; JSON's integers here are 64 bits, and come back as the same bits. */
	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:I, s:s, s:o, s:I, s:o, s:o, s:s, s:I, s:I, s:s, s:s*, s:O*, s:o*, s:s*}",
		"version", record_version(r), "id", r->id, "token", r->token, "machine", r->machine, "boot",
		r->boot, "uid", (json_int_t)r->uid, "owner", owner_names[r->owner], "process",
		process_to_json(&r->process), "until", (json_int_t)r->until, "init",
		process_to_json(&r->init), "cgroups", cgroups_to_json(r->cgroups), "path", r->path, "device",
		(json_int_t)r->device, "inode", (json_int_t)r->inode, "scratch", r->scratch, "ledger",
		r->ledger, "extra", r->extra, "held", holding_to_json(&r->held), "aside",
		r->aside[0] ? r->aside : NULL);
}

static int nonsense(struct error *err, const char *what)
{
	return error_set(err, ERROR_REFUSED, "the record makes no sense: %s", what);
}

/* Copies text of at most room - 1 bytes, all of which are in the set (NULL: letters, digits, '-'). */
static int take_word(char *out, size_t room, const char *text, const char *set)
{
	static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
	size_t n = strlen(text);

	if (n >= room || strspn(text, set ? set : plain) != n)
		return -EINVAL;
	memcpy(out, text, n + 1);
	return 0;
}

static int take_owner(enum owner_kind *ret, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(owner_names); i++)
		if (strcmp(name, owner_names[i]) == 0) {
			*ret = (enum owner_kind)i;
			return 0;
		}
	return -EINVAL;
}

static int take_process(struct process_id *p, json_int_t pid, json_int_t start)
{
	if (pid < 0 || pid > INT32_MAX || start < 0)
		return -EINVAL;
	p->pid = (pid_t)pid;
	p->start = (uint64_t)start;
	return 0;
}

/* Absolute, with no component that leads elsewhere. */
static bool is_clean_path(const char *path)
{
	size_t n = strlen(path);

	return path[0] == '/' && n < 4096 && !strstr(path, "//") && !strstr(path, "/./") &&
	       !strstr(path, "/../") && path[n - 1] != '/' && !(n >= 2 && strcmp(path + n - 2, "/.") == 0) &&
	       !(n >= 3 && strcmp(path + n - 3, "/..") == 0);
}

static int take_path(char **to, const char *path, struct error *err)
{
	if (!is_clean_path(path))
		return nonsense(err, "a path in it is not absolute and clean");
	return text_set(to, path, err);
}

static int take_cgroups(struct record *r, const json_t *array, struct error *err)
{
	const json_t *item;
	size_t i;
	int e;

	if (!json_is_array(array) || json_array_size(array) > CGROUPS_MAX)
		return nonsense(err, "its cgroups are not a short list of absolute paths");
	json_array_foreach (array, i, item) {
		if (!json_is_string(item) || !is_clean_path(json_string_value(item)))
			return nonsense(err, "its cgroups are not a short list of absolute paths");
		e = strv_append(&r->cgroups, json_string_value(item), err);
		if (e < 0)
			return e;
	}
	return 0;
}

static int damaged(struct error *err, const char *what)
{
	return error_damaged(err, nonsense(err, what));
}

/* A newer program's record is not damaged, whatever else is in it. */
static bool is_of_another_version(const json_t *json)
{
	const json_t *version = json_object_get(json, "version");

	return json_is_integer(version) &&
	       (json_integer_value(version) < 1 || json_integer_value(version) > RECORD_VERSION);
}

static int take_token(char out[TOKEN_SIZE], const char *token)
{
	return strlen(token) == TOKEN_SIZE - 1 ? take_word(out, TOKEN_SIZE, token, "0123456789abcdef")
					       : -EINVAL;
}

static int take_holding(struct holding *h, json_t *json)
{
	json_int_t pid, start, until;
	const char *owner, *token;

	if (!json)
		return 0;
	if (json_unpack_ex(json, NULL, JSON_STRICT, "{s:s, s:{s:I, s:I !}, s:I, s:s}", "owner", &owner,
			   "process", "pid", &pid, "start", &start, "until", &until, "token", &token) < 0 ||
	    take_owner(&h->owner, owner) < 0 || h->owner == OWNER_SUPERVISOR ||
	    take_process(&h->process, pid, start) < 0)
		return -EINVAL;
	h->until = until;
	return take_token(h->token, token);
}

static int take_fields(struct record *r, json_t *json, struct error *err)
{
	const char *id, *token, *machine, *boot, *owner, *path, *scratch, *ledger = NULL, *aside = NULL;
	json_int_t uid, pid, start, until, init_pid, init_start, device, inode;
	json_t *cgroups, *extra = NULL, *held = NULL;
	json_error_t why;
	int version, e;

	if (json_unpack_ex(
		    json, &why, JSON_STRICT,
		    "{s:i, s:s, s:s, s:s, s:s, s:I, s:s, s:{s:I, s:I !}, s:I, s:{s:I, s:I !}, s:o, s:s, s:I, "
		    "s:I, s:s, s?s, s?o, s?o, s?s}",
		    "version", &version, "id", &id, "token", &token, "machine", &machine, "boot", &boot,
		    "uid", &uid, "owner", &owner, "process", "pid", &pid, "start", &start, "until", &until,
		    "init", "pid", &init_pid, "start", &init_start, "cgroups", &cgroups, "path", &path,
		    "device", &device, "inode", &inode, "scratch", &scratch, "ledger", &ledger, "extra",
		    &extra, "held", &held, "aside", &aside) < 0) {
		char shown[200];

		text_escape_into(shown, sizeof shown, why.text, strlen(why.text));
		return is_of_another_version(json) ? nonsense(err, shown) : damaged(err, shown);
	}
	if (version < 1 || version > RECORD_VERSION)
		return error_set(err, ERROR_REFUSED,
				 "the record has version %d, this program knows version %d", version,
				 RECORD_VERSION);
	if (id_check(id, err) < 0)
		return error_prefix(err, -EINVAL, "the record makes no sense");
	memcpy(r->id, id, strlen(id) + 1);
	if (take_token(r->token, token) < 0)
		return nonsense(err, "its token is not 32 hexadecimal digits");
	if (take_word(r->machine, sizeof r->machine, machine, NULL) < 0 ||
	    take_word(r->boot, sizeof r->boot, boot, NULL) < 0)
		return nonsense(err, "its machine or boot is not an identifier");
	if (uid < 0 || uid >= UINT32_MAX)
		return nonsense(err, "its uid is not one");
	r->uid = (uid_t)uid;
	if (take_owner(&r->owner, owner) < 0 || take_holding(&r->held, held) < 0)
		return nonsense(err, "its owner is of no known kind");
	if (aside && take_word(r->aside, sizeof r->aside, aside, "0123456789.") < 0)
		return nonsense(err, "where it is aside is not a number");
	if (take_process(&r->process, pid, start) < 0 || take_process(&r->init, init_pid, init_start) < 0)
		return nonsense(err, "a process in it is not one");
	r->until = until;
	r->device = (uint64_t)device;
	r->inode = (uint64_t)inode;
	r->extra = json_incref(extra);
	if ((e = take_path(&r->path, path, err)) < 0 || (e = take_path(&r->scratch, scratch, err)) < 0 ||
	    (e = take_cgroups(r, cgroups, err)) < 0)
		return e;
	return text_set(&r->ledger, ledger, err);
}

void record_last_line(const char **text, size_t *size)
{
	const char *from = *text, *end;

	*size = strnlen(from, *size);
	end = memrchr(from, '\n', *size);
	if (!end)
		return;
	while (end > from && end[-1] == '\n')
		end--;
	*size = (size_t)(end - from);
	end = memrchr(from, '\n', *size);
	if (end) {
		*text = end + 1;
		*size -= (size_t)(*text - from);
	}
}

int record_parse(struct record *r, const char *text, size_t size, struct error *err)
{
	struct record fresh;
	json_error_t why;
	json_t *json;
	int result;

	record_last_line(&text, &size);
	json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
	if (!json) {
		char shown[200];

		if (json_error_code(&why) == json_error_out_of_memory)
			return error_memory(err);
		return damaged(err, text_escape_into(shown, sizeof shown, why.text, strlen(why.text)));
	}
	record_init(&fresh);
	result = take_fields(&fresh, json, err);
	json_decref(json);
	if (result < 0) {
		record_done(&fresh);
		return result;
	}
	*r = fresh;
	return 0;
}

bool record_is_of_this_boot(const struct record *r)
{
	char machine[MACHINE_ID_SIZE], boot[BOOT_ID_SIZE];

	machine_id(machine);
	boot_id(boot);
	return strcmp(r->machine, machine) == 0 && strcmp(r->boot, boot) == 0;
}

int record_kill(const struct record *r, struct error *err)
{
	_cleanup_close_ int fd = -1;
	int result;

	if (r->init.pid <= 0 || !record_is_of_this_boot(r))
		return 0;
	fd = process_open(&r->init);
	if (fd == -ESRCH)
		return 0;
	if (fd < 0)
		return error_system(err, -fd, "cannot reach process %d of analysis '%s'", (int)r->init.pid,
				    r->id);
	if (json_is_true(json_object_get(r->extra, RECORD_ENDS_ITSELF))) {
		pidfd_kill(fd, SIGCONT);
		(void)pidfd_wait(fd, KILL_WAIT_MS);
	}
	result = pidfd_kill(fd, SIGKILL);
	if (result < 0 && result != -ESRCH)
		return error_system(err, -result, "cannot kill process %d of analysis '%s'", (int)r->init.pid,
				    r->id);
	result = pidfd_wait(fd, KILL_WAIT_MS);
	if (result == -ETIMEDOUT)
		return error_set(
			err, ERROR_BUSY,
			"process %d of analysis '%s' was killed and has not ended after %d s: try again later",
			(int)r->init.pid, r->id, KILL_WAIT_MS / 1000);
	return result < 0 ? error_system(err, -result, "cannot wait for process %d of analysis '%s'",
					 (int)r->init.pid, r->id)
			  : 0;
}
