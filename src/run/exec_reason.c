#include "exec_reason.h"
#include "executable.h"
#include "file.h"
#include "private.h"
#include "program.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* ---- looking ---- */

enum sight { SIGHT_ABSENT, SIGHT_UNKNOWN, SIGHT_HIDDEN, SIGHT_THERE };

/* Where a path inside lies on the host, if the plan shows it there: newly allocated, or NULL. */
static char *host_path(const struct exec_failure *f, const char *path)
{
	const struct mount *best = NULL;
	size_t longest = 0;

	if (path_is_system(path))
		return strdup(path);
	for (size_t i = 0; f->looks_outside && i < f->plan->n_mounts; i++) {
		const struct mount *m = &f->plan->mounts[i];
		size_t n = strlen(m->target);

		if (m->kind == MOUNT_DIR || n < longest || !path_is_below(path, m->target))
			continue;
		longest = n;
		best = m->kind == MOUNT_OVERLAY ? m : NULL;
	}
	if (!best)
		return NULL;
	return path[longest] ? path_join(best->source, path + longest + 1) : strdup(best->source);
}

/* Its name beneath the workspace; NULL: it does not lie there. The command's own directory is the workspace. */
static const char *workspace_name(const struct exec_failure *f, const char *path)
{
	const char *root = f->plan->workspace;
	size_t n = strlen(root);

	if (*path != '/')
		return path;
	if (!path_is_below(path, root) || !path[n])
		return NULL;
	path += n;
	return path + strspn(path, "/");
}

/* An O_PATH descriptor of what the analysis sees at this path. */
static enum sight look(const struct exec_failure *f, const char *path, int *ret_fd)
{
	const char *name = workspace_name(f, path);
	_cleanup_free_ char *host = NULL;
	int fd;

	if (name) {
		if (f->workspace < 0)
			return SIGHT_UNKNOWN;
		fd = file_open_beneath(f->workspace, name, O_PATH | O_NOFOLLOW, 0);
	} else {
		host = host_path(f, path);
		if (!host)
			return SIGHT_HIDDEN;
		fd = file_open_trusted(host, true);
	}
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? SIGHT_ABSENT : SIGHT_UNKNOWN;
	*ret_fd = fd;
	return SIGHT_THERE;
}

static enum sight glance(const struct exec_failure *f, const char *path)
{
	_cleanup_close_ int fd = -1;

	return look(f, path, &fd);
}

/* The first bytes of what is open as O_PATH, and is a plain file: nothing else is opened. */
static bool judge(int path_fd, struct executable *ret)
{
	char link[64], bytes[EXECUTABLE_LOOK];
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	n = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
	if (n < 0)
		return false;
	executable_judge(bytes, (size_t)n, ret);
	return true;
}

static bool is_on_path(const struct exec_failure *f, const char *name)
{
	char *const *env = f->plan->env;
	_cleanup_free_ char *copy = NULL;
	char *rest, *dir;

	while (env && *env && strncmp(*env, "PATH=", 5) != 0)
		env++;
	if (!env || !*env || !(copy = strdup(*env + 5)))
		return true; /* not known */
	rest = copy;
	while ((dir = strsep(&rest, ":"))) {
		_cleanup_free_ char *path = *dir == '/' ? path_join(dir, name) : NULL;

		if (path && glance(f, path) == SIGHT_THERE)
			return true;
	}
	return false;
}

/* A file of this name where the command was given, and ours to look at. */
static bool is_beside(const struct exec_failure *f, const char *name, struct stat *st)
{
	_cleanup_free_ char *path = f->looks_outside && f->plan->submitter_directory
					    ? path_join(f->plan->submitter_directory, name)
					    : NULL;

	return path && stat(path, st) == 0;
}

/* ---- saying ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Who would run it: by its first line, else by its name. */
static const char *runner(const struct executable *x, const char *name)
{
	static const char *const known[][2] = {{".py", "python3"}, {".R", "Rscript"}, {".r", "Rscript"},
					       {".jl", "julia"},   {".pl", "perl"},   {".rb", "ruby"},
					       {".js", "node"},	   {".bash", "bash"}};
	const char *dot = strrchr(name, '.');

	if (x->kind == EXECUTABLE_SCRIPT && strcmp(last_part(x->word[0]), "env") == 0 && x->word[1][0])
		return x->word[1];
	if (x->kind == EXECUTABLE_SCRIPT && *last_part(x->word[0]))
		return last_part(x->word[0]);
	for (size_t i = 0; dot && i < ARRAY_SIZE(known); i++)
		if (strcmp(dot, known[i][0]) == 0)
			return known[i][1];
	return "sh";
}

static void say_line_ends(const char *name, struct buffer *b)
{
	buffer_printf(b, "; convert it: sed -i 's/\\r$//' %s", SHOWN(256, name));
}

static void say_interpreter(const struct exec_failure *f, const struct executable *x, const char *name,
			    struct buffer *b)
{
	enum sight sight = x->word[0][0] == '/' ? glance(f, x->word[0]) : SIGHT_ABSENT;
	bool is_outside = f->looks_outside && x->word[0][0] == '/' && access(x->word[0], X_OK) == 0;

	if (x->has_return && (sight == SIGHT_THERE || !x->word[1][0])) {
		buffer_printf(
			b,
			": its first line ends in a carriage return (Windows line ends), so that its interpreter is '%s\\r'",
			SHOWN(256, x->word[0]));
		say_line_ends(name, b);
		return;
	}
	if (sight == SIGHT_THERE)
		return;
	buffer_printf(b, ": its interpreter '%s' ", SHOWN(256, x->word[0]));
	if (is_outside)
		buffer_printf(
			b, "exists here but is not shown to the analysis; begin the command with it: %s %s",
			SHOWN(256, x->word[0]), SHOWN(256, name));
	else
		buffer_printf(b, "is not there; correct its first line, or begin the command with another");
}

static void say_no_program(const struct executable *x, const char *name, struct buffer *b)
{
	switch (x->kind) {
	case EXECUTABLE_EMPTY:
		buffer_puts(b, ": it is empty");
		break;
	case EXECUTABLE_TEXT:
		buffer_printf(b, "%s; %sbegin the command with what runs it: %s %s",
			      x->has_mark
				      ? ": a byte order mark stands before its first line"
				      : ": its first line does not name an interpreter, as #!/bin/sh does",
			      x->has_mark ? "save it without, or " : "", runner(x, name), SHOWN(256, name));
		break;
	case EXECUTABLE_SCRIPT:
		buffer_puts(b, ": its first line names no interpreter, or is too long");
		break;
	case EXECUTABLE_PROGRAM:
		buffer_puts(b, ": it is damaged, or only a part of it is here");
		break;
	default:
		buffer_puts(b, ": it is neither a program nor a script");
		break;
	}
}

/* A plain file that is there. */
static void say_file(const struct exec_failure *f, int fd, const struct stat *st, struct buffer *b)
{
	const char *name = f->plan->command[0];
	struct executable x = {.kind = EXECUTABLE_OTHER};
	bool is_known = judge(fd, &x);
	struct statvfs fs;

	if (f->errnum == EACCES && !(st->st_mode & 0111)) {
		buffer_printf(b,
			      ": it is not executable; chmod +x it, or begin the command with what runs it: "
			      "%s %s",
			      SHOWN(256, runner(&x, name)), SHOWN(256, name));
		return;
	}
	if (f->errnum == EACCES && fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOEXEC) {
		buffer_puts(b, ": the file system that it lies on is mounted noexec");
		if (workspace_name(f, f->plan->program))
			buffer_puts(b, "; set workspace.root in the configuration to a directory on another");
		return;
	}
	if (!is_known)
		return;
	if (x.kind == EXECUTABLE_FOREIGN)
		buffer_printf(b, ": it is a program for %s, and this machine is %s; build it for this one",
			      x.word[0], executable_machine());
	else if (x.kind == EXECUTABLE_WINDOWS || x.kind == EXECUTABLE_MACOS)
		buffer_printf(b, ": it is a program for %s; build it for Linux",
			      x.kind == EXECUTABLE_WINDOWS ? "Windows" : "macOS");
	else if (f->errnum == ENOENT && x.kind == EXECUTABLE_SCRIPT)
		say_interpreter(f, &x, name, b);
	else if (f->errnum == ENOENT && x.kind == EXECUTABLE_PROGRAM && x.word[0][0] == '/' &&
		 glance(f, x.word[0]) != SIGHT_THERE)
		buffer_printf(b,
			      ": it needs the loader '%s', which is not here; build it on a system like this "
			      "one, or statically",
			      SHOWN(256, x.word[0]));
	else if (f->errnum == ENOEXEC)
		say_no_program(&x, name, b);
}

static void say_not_found(const struct exec_failure *f, struct buffer *b)
{
	const char *name = f->plan->command[0];
	_cleanup_free_ char *three = NULL;
	struct stat st;

	buffer_puts(b, ": it is not on PATH");
	if (is_beside(f, name, &st) && S_ISREG(st.st_mode))
		buffer_printf(b, "; a file of that name lies in the working directory: say ./%s",
			      SHOWN(256, name));
	else if (asprintf(&three, "%s3", name) > 0 && is_on_path(f, three))
		buffer_printf(b, "; there is '%s'", SHOWN(256, three));
	else
		buffer_puts(b, "; install it on this host, or name it by its path");
}

static void say_absent(const struct exec_failure *f, struct buffer *b)
{
	const char *name = f->plan->command[0];
	struct stat st;

	if (*name == '/')
		buffer_puts(b, ": there is no such file on this host");
	else if (!f->looks_outside)
		buffer_printf(b, ": it is not among the files that came with it; add --input %s",
			      SHOWN(256, name));
	else if (!is_beside(f, name, &st))
		buffer_printf(b, ": there is no such file in '%s'", SHOWN(256, f->plan->submitter_directory));
	else if (S_ISDIR(st.st_mode))
		buffer_puts(b, ": it is a directory; name the program in it");
	else
		buffer_printf(b, ": it exists here but is not shown to the analysis; add --input %s",
			      SHOWN(256, name));
}

static void say_why(const struct exec_failure *f, struct buffer *b)
{
	_cleanup_close_ int fd = -1;
	enum sight sight;
	struct stat st;

	if (f->errnum == E2BIG) {
		buffer_puts(b, ": its words and its environment are too long together; pass them in a file");
		return;
	}
	if (!strchr(f->plan->program, '/') && f->errnum == ENOENT) {
		say_not_found(f, b);
		return;
	}
	sight = look(f, f->plan->program, &fd);
	if (sight == SIGHT_ABSENT || (sight == SIGHT_HIDDEN && f->errnum == ENOENT))
		say_absent(f, b);
	if (sight != SIGHT_THERE || fstat(fd, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		buffer_puts(b, ": it is a directory; name the program in it");
	else if (S_ISREG(st.st_mode))
		say_file(f, fd, &st, b);
}

void exec_reason(const struct exec_failure *f, struct buffer *b)
{
	const char *name = f->plan->command ? f->plan->command[0] : f->plan->program;

	buffer_printf(b, "cannot execute '%s': %s", SHOWN(256, name), strerror(f->errnum));
	if (f->plan->command)
		say_why(f, b);
}

/* ---- it was executed ---- */

static bool is_shell(const char *path)
{
	static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh"};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(last_part(path), shells[i]) == 0)
			return true;
	return false;
}

static bool judge_inside(const struct exec_failure *f, const char *path, struct executable *ret)
{
	_cleanup_close_ int fd = -1;

	return look(f, path, &fd) == SIGHT_THERE && judge(fd, ret);
}

/* "#!/usr/bin/env python": what env did not find. */
static void hint_env(const struct exec_failure *f, const struct executable *x, struct buffer *b)
{
	const char *name = f->plan->command[0];

	if (x->kind != EXECUTABLE_SCRIPT || strcmp(last_part(x->word[0]), "env") != 0 || !x->word[1][0] ||
	    x->word[1][0] == '-')
		return;
	if (x->has_return) {
		buffer_printf(
			b,
			"; its first line ends in a carriage return (Windows line ends), so that its interpreter is '%s\\r'",
			SHOWN(256, x->word[1]));
		say_line_ends(name, b);
	} else if (!is_on_path(f, x->word[1])) {
		buffer_printf(b,
			      "; its interpreter '%s' is not on PATH: install it on this host, or begin the "
			      "command with another",
			      SHOWN(256, x->word[1]));
	}
}

/* A shell ran it, by the command or by the script's first line. */
static bool runs_shell(const struct exec_failure *f)
{
	struct executable x;

	return is_shell(f->plan->command[0]) ||
	       (workspace_name(f, f->plan->program) && judge_inside(f, f->plan->program, &x) &&
		x.kind == EXECUTABLE_SCRIPT &&
		(is_shell(x.word[0]) || (strcmp(last_part(x.word[0]), "env") == 0 && is_shell(x.word[1]))));
}

/* What a number above 125 means by a shell's own rule. */
static void hint_status(const struct exec_failure *f, struct buffer *b)
{
	int number = f->exit_code - 128;

	if (f->exit_code < 126 || number >= 32 || number == 0 || !runs_shell(f))
		return;
	if (number > 0)
		buffer_printf(b, ", as of a shell in which a program was ended by signal %d (%s)", number,
			      strsignal(number));
	else
		buffer_printf(b, ", as of a shell that %s a program",
			      f->exit_code == 127 ? "did not find" : "could not execute");
}

void exec_hint(const struct exec_failure *f, struct buffer *b)
{
	char *const *command = f->plan->command;
	struct executable x;

	if (!command || !command[0] || f->workspace < 0)
		return;
	hint_status(f, b);
	if (f->exit_code == 127 && workspace_name(f, f->plan->program) &&
	    judge_inside(f, f->plan->program, &x)) {
		hint_env(f, &x, b);
	} else if (is_shell(command[0]) && command[1] && *command[1] != '-' && *command[1] != '/' &&
		   judge_inside(f, command[1], &x) && x.has_return) {
		buffer_printf(
			b,
			"; the lines of '%s' end in a carriage return (Windows line ends), which a shell takes "
			"for part of the last word",
			SHOWN(256, command[1]));
		say_line_ends(command[1], b);
	}
}
