#include "program.h"
#include "file.h"
#include "private.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void program_done(struct program *p)
{
	free(p->path);
	free(p->relative);
	free(p->user_base);
	free(p->note);
	strv_free(p->prefixes);
	*p = (struct program){0};
}

bool path_is_system(const char *path)
{
	static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

	for (size_t i = 0; i < ARRAY_SIZE(system); i++)
		if (path_is_below(path, system[i]))
			return true;
	return false;
}

/* "/x/bin/python3" → "/x", newly allocated; NULL if it is not in a bin directory. */
static char *prefix_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash - path < 5 || strncmp(slash - 4, "/bin", 4) != 0)
		return NULL;
	return strndup(path, (size_t)(slash - 4 - path));
}

static int prefix_add(struct program *p, const char *prefix, struct error *err);

/* A venv names the directory of its base interpreter: "home = /opt/python/bin". */
static int venv_add_base(struct program *p, const char *prefix, struct error *err)
{
	_cleanup_free_ char *path = path_join(prefix, "pyvenv.cfg"), *base = NULL;
	_cleanup_buffer_ struct buffer text = {0};
	struct error ignored = ERROR_INIT;
	char *rest, *line;

	if (!path)
		return error_memory(err);
	if (file_load(AT_FDCWD, path, 65536, &text, &ignored) < 0)
		return 0;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');

		if (!value || strncmp(line, "home", 4) != 0)
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\r")] = 0;
		/* home is the bin directory itself. */
		if (strlen(value) > 4 && strcmp(value + strlen(value) - 4, "/bin") == 0) {
			base = strndup(value, strlen(value) - 4);
			return base ? prefix_add(p, base, err) : error_memory(err);
		}
	}
	return 0;
}

/* The first reason is the one that is told. */
static struct error *why_of(struct program *p)
{
	return p->why.message[0] ? NULL : &p->why;
}

static int show(struct program *p, const char *path, struct error *err)
{
	int r;

	for (size_t i = 0; p->prefixes && p->prefixes[i]; i++)
		if (strcmp(p->prefixes[i], path) == 0)
			return 0;
	r = strv_append(&p->prefixes, path, err);
	return r < 0 ? r : 1;
}

static int prefix_add(struct program *p, const char *prefix, struct error *err)
{
	char real[PATH_MAX];
	int r;

	if (!realpath(prefix, real) || path_is_system(real) || !prefix_has_language(real))
		return 0;
	if (prefix_check(p->hood, real, why_of(p)) < 0)
		return 0;
	r = show(p, real, err);
	return r == 1 ? venv_add_base(p, real, err) : r;
}

/* ~/.local/bin/tool is what `pip install --user` made: itself, and the packages beside it, not all of ~/.local. */
static int user_site_add(struct program *p, const char *path, struct error *err)
{
	_cleanup_free_ char *prefix = prefix_of(path), *local = NULL;
	const char *home = getenv("HOME");
	int r;

	if (!prefix || !home || !(local = path_join(home, ".local")) || strcmp(prefix, local) != 0)
		return 0;
	for (int minor = 0; minor < 40; minor++) {
		char packages[PATH_MAX + 64], real[PATH_MAX];

		snprintf(packages, sizeof packages, "%s/lib/python3.%d/site-packages", prefix, minor);
		/* Where a link leads is not what pip made. */
		if (!realpath(packages, real) || strcmp(real, packages) != 0)
			continue;
		if (input_check(p->hood, real, "the directory of packages", why_of(p)) < 0)
			continue;
		if ((r = show(p, real, err)) < 0 || (r = show(p, path, err)) < 0 ||
		    (!p->user_base && (r = text_set(&p->user_base, prefix, err)) < 0))
			return r;
	}
	return 0;
}

/* The prefixes that a program at this path needs: by its name as found, and by where its links lead. */
static int prefixes_for(struct program *p, const char *path, struct error *err)
{
	_cleanup_free_ char *prefix = prefix_of(path), *real_prefix = NULL;
	char real[PATH_MAX];
	int r;

	if ((prefix && (r = prefix_add(p, prefix, err)) < 0) ||
	    (realpath(path, real) && (real_prefix = prefix_of(real)) &&
	     (r = prefix_add(p, real_prefix, err)) < 0))
		return r;
	return user_site_add(p, path, err);
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The version that pyenv would choose: its variable, the nearest .python-version, the global one. */
static bool pyenv_version(const char *root, const char *directory, char *out, size_t room)
{
	const char *chosen = getenv("PYENV_VERSION");
	_cleanup_free_ char *at = strdup(directory), *global = path_join(root, "version");
	struct error ignored = ERROR_INIT;
	_cleanup_buffer_ struct buffer text = {0};

	if (!at || !global)
		return false;
	if (chosen && *chosen) {
		snprintf(out, room, "%s", chosen);
	} else {
		for (;;) {
			_cleanup_free_ char *file = path_join(*at ? at : "/", ".python-version");
			char *slash = strrchr(at, '/');

			if (file && file_load(AT_FDCWD, file, 4096, &text, &ignored) == 0)
				break;
			if (!slash)
				break;
			*slash = 0;
		}
		if (text.size == 0 && file_load(AT_FDCWD, global, 4096, &text, &ignored) < 0)
			return false;
		snprintf(out, room, "%s", text.data ? text.data : "");
	}
	out[strcspn(out, ": \t\r\n")] = 0; /* the first of several */
	return *out && !strchr(out, '/');
}

static bool is_shim(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && name - path >= 7 && strncmp(name - 6, "/shims", 6) == 0;
}

/* "/root/.pyenv/shims/python3" is a script that looks up the real one: do as it does. NULL: not a shim, or "system". */
static char *pyenv_target(const char *path, const char *directory)
{
	const char *name = strrchr(path, '/');
	_cleanup_free_ char *root = NULL, *versions = NULL;
	char version[64], *target = NULL;

	if (!is_shim(path))
		return NULL;
	root = strndup(path, (size_t)(name - 6 - path));
	versions = root ? path_join(root, "versions") : NULL;
	if (!versions || access(versions, F_OK) < 0 ||
	    !pyenv_version(root, directory, version, sizeof version))
		return NULL;
	if (asprintf(&target, "%s/versions/%s/bin%s", root, version, name) < 0)
		return NULL;
	if (is_program(target))
		return target;
	free(target);
	return NULL;
}

/* The first program of this name along a PATH; NULL if there is none. */
static char *search_path(const char *name, const char *search, const char *directory)
{
	_cleanup_free_ char *copy = strdup(search);
	char *rest = copy, *dir;

	while (rest && (dir = strsep(&rest, ":"))) {
		_cleanup_free_ char *path = *dir == '/' ? path_join(dir, name) : NULL;
		char *target;

		if (!path || !is_program(path))
			continue;
		if (!is_shim(path))
			return TAKE_PTR(path);
		target = pyenv_target(path, directory);
		if (target)
			return target;
	}
	return NULL;
}

/* What a staged file says is the analysis's word: nothing is shown for it, and the user hears what he may miss. */
static int note_interpreter(struct program *p, const char *found, struct error *err)
{
	if (path_is_system(found) || p->note || access(found, F_OK) < 0)
		return 0;
	return text_print(
		&p->note, err,
		"'%s' names an interpreter that is '%s' here: nothing is shown because a staged file says so, "
		"begin the command with the interpreter if that is the one",
		p->relative, found);
}

/* A script's interpreter needs its prefix as well: "#!/srv/venv/bin/python", "#!/usr/bin/env python3". */
static int follow_shebang(struct program *p, const char *path, const char *directory, const char *search,
			  struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *found = NULL;
	char line[512], *word, *rest = line + 2;
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

	if (n < 4 || strncmp(line, "#!", 2) != 0)
		return 0;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	do
		word = strsep(&rest, " \t");
	while (word && !*word);
	if (!word)
		return 0;
	if (strcmp(word, "/usr/bin/env") != 0)
		return p->relative ? note_interpreter(p, word, err) : prefixes_for(p, word, err);
	do
		word = strsep(&rest, " \t");
	while (word && (!*word || *word == '-'));
	found = word ? search_path(word, search, directory) : NULL;
	if (!found)
		return 0;
	return p->relative ? note_interpreter(p, found, err) : prefixes_for(p, found, err);
}

int program_find_language(const struct hood *h, const char *name, const char *directory, const char *search,
			  struct program *ret, struct error *err)
{
	_cleanup_free_ char *prefix = NULL;
	char real[PATH_MAX];
	int r;

	ret->hood = h;
	ret->path = search_path(name, search, directory);
	if (!ret->path || !(prefix = prefix_of(ret->path)))
		return 0;
	if ((r = prefix_add(ret, prefix, err)) < 0 || !realpath(ret->path, real))
		return r;
	free(prefix);
	prefix = prefix_of(real);
	return prefix ? prefix_add(ret, prefix, err) : 0;
}

int program_find_prefix(const struct hood *h, const char *prefix, struct program *ret, struct error *err)
{
	ret->hood = h;
	return prefix_add(ret, prefix, err);
}

/* "venv/bin/python": given by a relative path, and yet an interpreter with a prefix of its own, not a file to stage. */
static int claim_by_prefix(struct program *p, const char *path, struct error *err)
{
	const char *name = strrchr(path, '/') + 1;
	_cleanup_free_ char *directory = strndup(path, (size_t)(name - path)), *full = NULL;
	char real[PATH_MAX];

	if (!directory)
		return error_memory(err);
	if (!realpath(directory, real))
		return 0;
	full = path_join(real, name);
	if (!full)
		return error_memory(err);
	for (size_t i = 0; p->prefixes && p->prefixes[i]; i++)
		if (path_is_below(full, p->prefixes[i])) {
			free(p->relative);
			p->relative = NULL;
			p->path = TAKE_PTR(full);
			return 0;
		}
	return 0;
}

int program_find(const struct hood *h, const char *command, const char *directory, const char *search,
		 struct program *ret, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r;

	ret->hood = h;
	if (!strchr(command, '/')) {
		ret->path = search_path(command, search, directory);
	} else if (*command == '/') {
		ret->path = is_shim(command) ? pyenv_target(command, directory) : NULL;
		if (!ret->path)
			ret->path = strdup(command);
	} else {
		ret->relative = strdup(command);
		path = path_join(directory, command);
		if (!ret->relative || !path)
			return error_memory(err);
	}
	if (!path && ret->path)
		path = strdup(ret->path);
	if (!path)
		return 0;
	if ((r = prefixes_for(ret, path, err)) < 0 ||
	    (ret->relative && (r = claim_by_prefix(ret, path, err)) < 0))
		return r;
	return follow_shebang(ret, path, directory, search, err);
}
