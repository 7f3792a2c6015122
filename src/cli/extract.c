#include "extract.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "relative.h"
#include "text.h"

bool extract_is_stdout(const struct extract *x)
{
	return x->to && strcmp(x->to, "-") == 0;
}

/* The user's own words: as mkdir -p. */
static int make_directories(const char *path, struct error *err)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return error_memory(err);
	for (char *end = copy + strspn(copy, "/"); *end; end += strspn(end, "/")) {
		char after;

		end += strcspn(end, "/");
		after = *end;
		*end = 0;
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return error_system(err, errno, "cannot create directory '%s'", SHOWN(512, copy));
		*end = after;
	}
	return 0;
}

int extract_prepare(struct extract *x, size_t count, struct error *err)
{
	struct stat st;
	size_t n = x->to ? strlen(x->to) : 0;

	if (!x->to || extract_is_stdout(x))
		return 0;
	if (n == 0)
		return error_set(err, ERROR_USAGE, "-o wants the name of a file or a directory");
	x->is_directory =
		x->keeps_paths || x->to[n - 1] == '/' || (stat(x->to, &st) == 0 && S_ISDIR(st.st_mode));
	if (x->is_directory)
		return make_directories(x->to, err);
	return count > 1 ? error_set(err, ERROR_USAGE, "-o names one file for %zu outputs: name a directory",
				     count)
			 : 0;
}

struct extraction {
	struct ledger *ledger;
	const struct output *output;
};

static int fill(void *arg, int fd, struct error *err)
{
	const struct extraction *e = arg;

	return ledger_copy_output(e->ledger, e->output, fd, err);
}

/* Where it is put: *ret_path below the directory that is returned, open; *ret_file: its name, newly allocated. */
static int find_place(const struct extract *x, const struct output *o, struct relative *ret_path,
		      char **ret_file, struct error *err)
{
	bool is_named =
		x->to && !x->is_directory; /* -o NAME: the user's own words, resolved as any program would */
	bool is_whole = x->is_directory || x->keeps_paths;
	const char *path = is_named ? x->to : o->path, *slash = is_whole ? NULL : strrchr(path, '/');
	_cleanup_free_ char *directory = NULL, *file = NULL;
	int fd;

	path = slash ? slash + 1 : path;
	directory = is_named && slash ? strndup(x->to, (size_t)(path - x->to))
				      : strdup(x->is_directory ? x->to : ".");
	file = x->is_directory ? path_join(x->to, path) : strdup(is_named ? x->to : path);
	if (!directory || !file)
		return error_memory(err);
	if (relative_check(path, strlen(path), ret_path, err) < 0)
		return -1;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_system(err, errno, "cannot open directory '%s'", SHOWN(512, directory));
	*ret_file = TAKE_PTR(file);
	return fd;
}

int extract_look(const struct extract *x, const struct output *o, struct error *err)
{
	_cleanup_free_ char *file = NULL;
	_cleanup_close_ int fd = -1;
	struct relative path;

	if (extract_is_stdout(x))
		return 0;
	fd = find_place(x, o, &path, &file, err);
	return fd < 0 ? fd : relative_look(fd, path, x->force, err);
}

int extract_output(const struct extract *x, struct ledger *ledger, const struct output *o, char **ret_file,
		   struct error *err)
{
	struct extraction extraction = {ledger, o};
	_cleanup_free_ char *file = NULL;
	_cleanup_close_ int fd = -1;
	struct relative path;
	int r;

	fd = find_place(x, o, &path, &file, err);
	r = fd < 0 ? fd : relative_write(fd, path, x->force, fill, &extraction, err);
	if (r == 0)
		*ret_file = TAKE_PTR(file);
	return r;
}
