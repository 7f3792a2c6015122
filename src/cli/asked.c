#include "asked.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file.h"

enum { REQUEST_FILE_MAX = 4 << 20 };

const char *asked_option_name(size_t i)
{
	struct option_info o;

	return request_option_at(i, &o) ? o.name : NULL;
}

int asked_apply_option(void *request, const char *name, const char *value, struct error *err)
{
	return request_option(request, name, value, err);
}

static int set_text(char **field, const char *text, struct error *err)
{
	char *copy = strdup(text);

	if (!copy)
		return error_memory(err);
	free(*field);
	*field = copy;
	return 0;
}

int asked_take_words(struct cli *cli, struct request *r, const struct options *o, bool may_lack,
		     struct error *err)
{
	char shown[64];

	if (o->n_words > 1)
		return error_set(err, ERROR_USAGE,
				 "'%s' is one word too many: put -- before the command: fumehood %s",
				 text_escape_into(shown, sizeof shown, o->words[1], strlen(o->words[1])),
				 cli->command->usage);
	if (!may_lack && !(o->rest && *o->rest))
		return error_set(err, ERROR_USAGE, "there is no command: put -- before it: fumehood %s",
				 cli->command->usage);
	if (o->n_words == 1) {
		cli_set_id(cli, o->words[0]);
		if (set_text(&r->id, o->words[0], err) < 0)
			return -ENOMEM;
	}
	for (char **word = o->rest; word && *word; word++)
		if (strv_append(&r->command, *word) < 0)
			return error_memory(err);
	return 0;
}

int asked_load_file(struct request *request, const char *file, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	bool is_stdin = strcmp(file, "-") == 0;
	int r;

	if (is_stdin) {
		r = file_read_all(STDIN_FILENO, &text, REQUEST_FILE_MAX);
		if (r < 0)
			return error_system(err, -r, "cannot read the request from the standard input");
	} else {
		r = file_load(AT_FDCWD, file, REQUEST_FILE_MAX, &text, err);
		if (r < 0)
			return r;
	}
	return request_parse(request, text.data ? text.data : "", text.size, is_stdin ? "stdin" : file, err);
}

int asked_set_directory(struct request *r, struct error *err)
{
	if (r->directory)
		return 0;
	r->directory = getcwd(NULL, 0);
	return r->directory ? 0 : error_system(err, errno, "cannot tell the current directory");
}
