/*
 * Python's import lists directories and never names the file that it misses, so that nobody who watches hears of it. What a
 * staged program imports and the caller has beside it, unstaged, is therefore looked for before the start: where Python itself
 * would find it, with the caller's own rights.
 */
#include "hints.h"
#include "file.h"
#include "python_import.h"
#include "staging.h"
#include "text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SCANNED_FILES_MAX = 32, SCANNED_BYTES_MAX = 256 * 1024 };

/* A directory with modules: outside, and in the workspace ("": that itself). */
struct shelf {
	char beside[PATH_MAX], as[PATH_MAX];
};

struct importing {
	const struct request *request;
	struct plan *plan;
	const char *who;  /* as it is told: "analysis.py", "the program after -c" */
	struct shelf own; /* where it lies */
	struct shelf
		first; /* where the command's program lies: Python looks there for what is not relative */
	bool has_first;
	size_t notes, most;
};

/* ---- where a module lies ---- */

static bool is_kind(const char *directory, const char *name, const char *suffix, mode_t kind)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof path, "%s/%s%s", directory, name, suffix) < (int)sizeof path &&
	       stat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* A directory is a package if it says so, or if what is wanted of it lies there. */
static bool is_package(const char *directory, const char *name, const char *rest)
{
	char path[PATH_MAX], part[PYTHON_NAME_ROOM];

	if (!is_kind(directory, name, "", S_IFDIR) ||
	    snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
		return false;
	if (is_kind(path, "__init__", ".py", S_IFREG))
		return true;
	snprintf(part, sizeof part, "%.*s", (int)strcspn(rest, "."), rest);
	return part[0] && (is_kind(path, part, ".py", S_IFREG) || is_kind(path, part, "", S_IFDIR));
}

/* One directory up; false: that is none in the workspace. */
static bool climb(struct shelf *s)
{
	char *slash = strrchr(s->beside, '/');

	if (!*s->as || !slash)
		return false;
	*slash = 0;
	slash = strrchr(s->as, '/');
	if (!slash)
		slash = s->as;
	*slash = 0;
	return true;
}

/* ---- telling ---- */

/* As it is to be typed: from where the caller stands, or in full with its place. */
static void note_missing(struct importing *i, const char *module, const char *source, const char *as)
{
	_cleanup_free_ char *here = path_join(i->request->directory, as);
	char real[PATH_MAX];
	bool is_here = here && realpath(here, real) && strcmp(real, source) == 0;

	plan_note(i->plan,
		  "%s imports %s, which lies beside it but is not shown to the analysis; add --input %s%s%s",
		  SHOWN(256, i->who), SHOWN(PYTHON_NAME_ROOM, module), SHOWN(256, is_here ? as : source),
		  is_here ? "" : ":", is_here ? "" : SHOWN(256, as));
	i->notes++;
}

static int look_for_module(void *arg, const char *module, unsigned level)
{
	struct importing *i = arg;
	struct shelf shelf = level == 0 && i->has_first ? i->first : i->own;
	size_t n = strcspn(module, ".");
	char name[PYTHON_NAME_ROOM], source[PATH_MAX], as[PATH_MAX];
	const char *suffix = "";

	snprintf(name, sizeof name, "%.*s", (int)n, module);
	for (; level > 1; level--)
		if (!climb(&shelf))
			return 0;
	/* A package goes before a file of the same name. */
	if (!is_package(shelf.beside, name, module[n] ? module + n + 1 : "")) {
		suffix = ".py";
		if (!is_kind(shelf.beside, name, suffix, S_IFREG))
			return 0;
	}
	if (snprintf(source, sizeof source, "%s/%s%s", shelf.beside, name, suffix) >= (int)sizeof source ||
	    snprintf(as, sizeof as, "%s%s%s%s", shelf.as, *shelf.as ? "/" : "", name, suffix) >=
		    (int)sizeof as ||
	    hints_in_workspace(i->plan, as) || access(source, R_OK) < 0)
		return 0;
	note_missing(i, module, source, as);
	return i->notes >= i->most;
}

/* ---- what is looked at ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_python(const char *program)
{
	return strncmp(last_part(program), "python", 6) == 0;
}

static bool is_script(const struct stage *s)
{
	size_t n = strlen(s->as);

	return n > 3 && strcmp(s->as + n - 3, ".py") == 0;
}

static void find_directory(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(out, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 0, path);
}

static void find_shelf(const struct stage *s, struct shelf *ret)
{
	find_directory(s->source, ret->beside);
	find_directory(s->as, ret->as);
}

/* The command names it. */
static bool is_word(const struct request *r, const struct stage *s)
{
	char as[PATH_MAX];

	for (char **word = r->command; *word; word++)
		if (path_clean_relative(*word, as, sizeof as) && strcmp(s->as, as) == 0)
			return true;
	return false;
}

static void find_first(struct importing *i)
{
	for (size_t n = 0; !i->has_first && n < i->plan->n_stages; n++)
		if (is_script(&i->plan->stages[n]) && is_word(i->request, &i->plan->stages[n])) {
			find_shelf(&i->plan->stages[n], &i->first);
			i->has_first = true;
		}
}

/* The file that is to be staged, and no other. */
static void scan_file(struct importing *i, const struct stage *s)
{
	_cleanup_close_ int fd = file_open_nolinks(AT_FDCWD, s->source, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = fd < 0 ? NULL : malloc(SCANNED_BYTES_MAX);
	struct stat st;
	ssize_t n;

	if (!text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != s->inode ||
	    st.st_dev != s->device)
		return;
	n = pread(fd, text, SCANNED_BYTES_MAX, 0);
	if (n <= 0)
		return;
	i->who = s->as;
	find_shelf(s, &i->own);
	python_imports(text, (size_t)n, look_for_module, i);
}

/* `python3 -m package.part`; a single word that names a directory is hints.c's. */
static void look_for_main(struct importing *i, const char *module)
{
	char text[PYTHON_NAME_ROOM + 16];
	const char *dot = strchr(module, '.');

	i->who = "the command";
	if (dot && dot != module && snprintf(text, sizeof text, "import %s", module) < (int)sizeof text)
		python_imports(text, strlen(text), look_for_module, i);
}

/* `python3 -c '…'` and `python3 -m package`: from the working directory. */
static void scan_words(struct importing *i)
{
	char *const *command = i->request->command;

	if (!command[0] || !is_python(command[0]) || !realpath(i->request->directory, i->own.beside))
		return;
	for (size_t k = 1; command[k] && command[k][0] == '-'; k++) {
		const char *next = command[k + 1];

		if (!next || (strcmp(command[k], "-c") != 0 && strcmp(command[k], "-m") != 0))
			continue;
		i->who = "the program after -c";
		if (command[k][1] == 'c')
			python_imports(next, strlen(next), look_for_module, i);
		else
			look_for_main(i, next);
		return;
	}
}

size_t hints_add_imports(const struct request *r, struct plan *p, size_t most)
{
	struct importing i = {.request = r, .plan = p, .most = most};
	size_t scanned = 0;

	scan_words(&i);
	find_first(&i);
	for (size_t k = 0; k < p->n_stages && i.notes < most && scanned < SCANNED_FILES_MAX; k++) {
		const struct stage *s = &p->stages[k];

		/* What a link in a tree became lies elsewhere than what is beside it. */
		if (!is_script(s) || (!is_word(r, s) && strcmp(last_part(s->source), last_part(s->as)) != 0))
			continue;
		scanned++;
		scan_file(&i, s);
	}
	return i.notes;
}
