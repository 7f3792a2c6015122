#include "asked.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file.h"

enum { REQUEST_FILE_MAX = 4 << 20 };

static const char *option_name(size_t i)
{
	struct option_info o;

	return request_option_at(i, &o) ? o.name : NULL;
}

static int apply_option(void *request, const char *name, const char *value, struct error *err)
{
	return request_option(request, name, value, err);
}

int asked_begin(struct cli *cli, const struct option_row *own, struct request *r, struct error *err)
{
	cli->o = (struct options){
		.others_take_value = request_option_takes_value,
		.others_apply = apply_option,
		.others_arg = r,
		.others_name = option_name,
	};
	return cli_begin(cli, own, err);
}

int asked_take_words(struct cli *cli, struct request *r, bool may_lack, struct error *err)
{
	const struct options *o = &cli->o;
	int k = 0;

	if (o->n_words > 1)
		return error_set(err, ERROR_USAGE,
				 "'%s' is one word too many: put -- before the command: fumehood %s",
				 SHOWN(64, o->words[1]), cli->command->usage);
	if (!may_lack && !(o->rest && *o->rest))
		return error_set(err, ERROR_USAGE, "there is no command: put -- before it: fumehood %s",
				 cli->command->usage);
	if (o->n_words == 1) {
		cli_set_id(cli, o->words[0]);
		k = text_set(&r->id, o->words[0], err);
	}
	for (char **word = o->rest; k == 0 && word && *word; word++)
		k = strv_append(&r->command, *word, err);
	return k;
}

static int load_file(struct request *request, const char *file, struct error *err)
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

int asked_complete(struct request *r, const char *file, struct error *err)
{
	int k = file ? load_file(r, file, err) : 0;

	if (k < 0 || r->directory)
		return k;
	r->directory = getcwd(NULL, 0);
	return r->directory ? 0 : error_system(err, errno, "cannot tell the current directory");
}
