/*
 * Requests: the same words as on the command line, the same tables behind them.
 */
#include "lib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"

FH_PUBLIC fh_request *fh_request_new(void)
{
	fh_request *request = calloc(1, sizeof *request);

	if (!request)
		return NULL;
	request_init(&request->request);
	request->stdin_fd = -1;
	return request;
}

FH_PUBLIC void fh_request_free(fh_request *request)
{
	if (!request)
		return;
	request_done(&request->request);
	fd_close(request->stdin_fd);
	free(request->submitter);
	free(request);
}

static int set_limit(struct request *r, int limit, const char *value, struct error *err)
{
	int k = limit_parse((enum limit)limit, value, &r->limits.value[limit], err);

	if (k == 0)
		r->limits.origin[limit] = LIMIT_ASKED;
	return k;
}

/* "false" is a value too: it overrides a default of the site's. */
static int set_flag(struct request *r, const char *name, const char *option, const char *value,
		    struct error *err)
{
	char text[80];

	if (!value || strcmp(value, "true") == 0)
		return request_option(r, option, NULL, err);
	if (strcmp(value, "false") != 0)
		return error_set(err, ERROR_USAGE, "'%s' is a flag: its value is \"true\" or \"false\"",
				 name);
	snprintf(text, sizeof text, "%s: false\n", name);
	return request_parse(r, text, strlen(text), "request", err);
}

static int set_submitter(char **field, const char *name, struct error *err)
{
	if (*name && strlen(name) < SUBMITTER_ROOM && utf8_valid(name, strlen(name)) && !strchr(name, '\n'))
		return text_set(field, name, err);
	return error_set(err, ERROR_USAGE,
			 "submitter '%s' makes no sense: give a name of 1 to %d bytes in UTF-8",
			 SHOWN(64, name), SUBMITTER_ROOM - 1);
}

static int set(fh_request *request, const char *name, const char *value, struct error *err)
{
	struct request *r = &request->request;
	char key[64], option[80];
	int limit, wants;

	if (strlen(name) >= sizeof key - 2)
		return error_set(err, ERROR_USAGE, "no option has so long a name");
	snprintf(key, sizeof key, "%s", name);
	for (char *c = key; *c; c++)
		*c = *c == '-' ? '_' : *c;
	snprintf(option, sizeof option, "--%s", key);
	for (char *c = option; *c; c++)
		*c = *c == '_' ? '-' : *c;
	if (strcmp(key, "terminal") == 0) /* a letter, on the command line */
		snprintf(option, sizeof option, "-t");
	limit = limit_by_name(key);
	wants = request_option_takes_value(option);
	if (wants == 0)
		return set_flag(r, key, option, value, err);
	if (!value)
		return error_set(err, ERROR_USAGE, "'%s' needs a value", key);
	if (strcmp(key, "id") == 0)
		return text_set(&r->id, value, err);
	if (strcmp(key, "directory") == 0)
		return *value == '/' ? text_set(&r->directory, value, err)
				     : error_set(err, ERROR_USAGE, "'directory' must be an absolute path");
	if (strcmp(key, "submitter") == 0)
		return set_submitter(&request->submitter, value, err);
	if (limit >= 0)
		return set_limit(r, limit, value, err);
	if (wants > 0)
		return request_option(r, option, value, err);
	return error_set(err, ERROR_USAGE, "there is no option '%s'", SHOWN(64, name));
}

static int request_end(int r, struct error *why, fh_error *err)
{
	if (r >= 0)
		return 0;
	why->stage = "request";
	return fail(err, why);
}

FH_PUBLIC int fh_request_set(fh_request *request, const char *name, const char *value, fh_error *err)
{
	struct error why = ERROR_INIT;

	return request_end(set(request, name, value, &why), &why, err);
}

FH_PUBLIC int fh_request_command(fh_request *request, const char *const *argv, fh_error *err)
{
	_cleanup_strv_ char **copy = strv_copy((char *const *)argv);

	if (!copy)
		return fail_memory(err);
	strv_free(request->request.command);
	request->request.command = TAKE_PTR(copy);
	return 0;
}

FH_PUBLIC int fh_request_add_word(fh_request *request, const char *word, fh_error *err)
{
	return strv_append(&request->request.command, word, NULL) < 0 ? fail_memory(err) : 0;
}

FH_PUBLIC int fh_request_parse(fh_request *request, const char *text, size_t size, const char *name,
			       fh_error *err)
{
	struct error why = ERROR_INIT;

	return request_end(request_parse(&request->request, text, size, name ? name : "request", &why), &why,
			   err);
}

FH_PUBLIC int fh_request_stdin(fh_request *request, int fd, fh_error *err)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	struct error why = ERROR_INIT;

	if (fd >= 0 && copy < 0) {
		error_system(&why, errno, "cannot duplicate descriptor %d for the analysis's stdin", fd);
		return request_end(-1, &why, err);
	}
	fd_close(request->stdin_fd);
	request->stdin_fd = copy;
	return 0;
}

FH_PUBLIC int fh_request_json(const fh_request *request, char **ret_json, fh_error *err)
{
	json_t *json = request_to_json(&request->request);
	char *text;

	if (json)
		json_object_del(json, "directory"); /* it is no word of a request file */
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	if (!text)
		return fail_memory(err);
	*ret_json = text;
	return 0;
}

int request_complete(const fh_request *from, struct request *ret, struct error *err)
{
	int r;

	request_init(ret);
	r = request_inherit(ret, &from->request, err);
	if (r < 0)
		return r;
	if (from->stdin_fd >= 0)
		ret->stdin_open = true;
	if (!ret->directory && !(ret->directory = getcwd(NULL, 0)))
		return error_system(err, errno, "cannot tell the current directory");
	return request_check(ret, err);
}
