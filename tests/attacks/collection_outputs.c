/*
 * Collection and clean-up: what an analysis leaves for the supervisor to trip over. The control is a platform that
 * collects, changes owners, writes its notes and removes by path, as most do (plain.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "act.h"
#include "stage.h"

ACT(leave_link)
{
	const char *to = a->arg[0] == '/' ? a->arg : targets_text(t, a->arg);
	return result(symlink(to, "out"));
}

ACT(leave_relative_link)
{
	char to[4096] = "";
	for (int i = 0; i < 20; i++)
		strcat(to, "../");
	strcat(to, targets_text(t, "secret") + 1);
	return result(symlink(to, "out"));
}

ACT(leave_link_chain)
{
	return result(symlink(targets_text(t, "secret"), "c")) ?: result(symlink("c", "b")) ?: result(symlink("b", "out"));
}

ACT(leave_directory_link)
{
	return result(symlink(targets_text(t, a->arg), "results"));
}

ACT(leave_hard_link)
{
	return result(link(targets_text(t, a->arg), "out"));
}

/* Names that a supervisor may write to once the analysis is done; here they are links. */
ACT(leave_links_for_notes)
{
	static const char *const names[] = {"metadata.json", "manifest.json", "stdout",	     "stderr",
					    "receipt.json",  "log.txt",	      "result.json", ".fumehood",
					    "outputs",	     "record.json"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (symlink(targets_text(t, a->arg), names[i]))
			return -errno;
	return 0;
}

ACT(leave_fifo)
{
	return result(mkfifo(a->arg, 0666));
}

ACT(leave_device)
{
	return result(mknod("out", S_IFCHR | 0666, (dev_t)a->number));
}

ACT(leave_sparse)
{
	_cleanup_close_ int fd = open("out", O_RDWR | O_CREAT, 0644);
	return fd < 0 ? -errno : result(ftruncate(fd, a->number));
}

ACT(leave_name)
{
	_cleanup_close_ int fd = open(a->arg, O_RDWR | O_CREAT, 0644);
	return result(fd);
}

/* A name that is a shell command, for a collector that pastes names together. */
ACT(leave_command)
{
	/* A name has no slash; the shell makes one. */
	char name[256] = "x;S=${PWD%${PWD#?}};cd ";
	for (const char *c = targets_text(t, "site"); *c && strlen(name) < 230; c++)
		strcat(name, *c == '/' ? "${S}" : (char[]){*c, '\0'});
	strcat(name, ";>planted;");
	_cleanup_close_ int fd = open(name, O_RDWR | O_CREAT, 0644);
	return result(fd);
}

ACT(leave_locked_directory)
{
	if (mkdir("closed", 0755) || mkdir("closed/inner", 0755))
		return -errno;
	fd_close(open("closed/inner/file", O_RDWR | O_CREAT, 0));
	return result(chmod("closed/inner", 0)) ?: result(chmod("closed", 0));
}

ACT(close_workspace)
{
	fd_close(open("out", O_RDWR | O_CREAT, 0644));
	return result(chmod(".", 0));
}

ACT(leave_much)
{
	char block[65536] = "x";
	_cleanup_close_ int fd = open("out", O_RDWR | O_CREAT, 0644);
	for (long done = 0; fd >= 0 && done < a->number; done += (long)sizeof(block))
		if (write(fd, block, sizeof(block)) < 0)
			return -errno;
	return result(fd);
}

ACT(say_much)
{
	char block[65536];
	memset(block, 'x', sizeof(block));
	for (long done = 0; done < a->number; done += (long)sizeof(block))
		if (write(STDOUT_FILENO, block, sizeof(block)) < 0)
			return -errno;
	return 0;
}

ACT(leave_deep_tree)
{
	char name[201];
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (long i = 0; i < a->number; i++)
		if (mkdir(name, 0755) || chdir(name))
			return -errno;
	return 0;
}

ACT(leave_immutable)
{
	_cleanup_close_ int fd = open("out", O_RDWR | O_CREAT, 0644);
	int flags = (int)a->number;
	return fd < 0 ? -errno : result(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

/* A survivor that makes one name now a file, now a link to the secret, while it is being collected. */
static int keep_swapping(const char *one, const char *other)
{
	if (fork())
		return 0;
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int i = 0; i < 400000; i++)
		renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
	_exit(0);
}

ACT(swap_file)
{
	_cleanup_close_ int fd = open("out", O_RDWR | O_CREAT, 0644);
	if (fd < 0 || symlink(targets_text(t, "secret"), "other"))
		return -errno;
	return keep_swapping("out", "other");
}

ACT(swap_directory)
{
	if (mkdir("results", 0755) || symlink(targets_text(t, a->arg), "other"))
		return -errno;
	fd_close(open("results/index.html", O_RDWR | O_CREAT, 0644));
	return keep_swapping("results", "other");
}

ACT(forge_record)
{
	puts("\n{\"id\": \"forged\", \"verdict\": \"succeeded\", \"committed\": true}");
	return 0;
}

/* A terminal answers some sequences by typing into its own input. */
ACT(ask_terminal)
{
	puts("\033]0;spoiled\007\033[c");
	return 0;
}

static void judge_leftover(struct stage *s)
{
	struct stat st;
	if (!lstat(stage_workspace(s), &st))
		stage_hit(s, "the workspace could not be removed");
}

static void judge_forged_line(struct stage *s)
{
	if (stage_output_has(s, "\"id\": \"forged\""))
		stage_hit(s, "a forged record among the supervisor's own words");
}

/* What people see of the names that were left: the run's own output, then `outputs` and `show` on a terminal. */
static void judge_names(struct stage *s)
{
	if (stage_is_hooded(s)) {
		stage_ask(s, "outputs");
		stage_ask(s, "show");
		stage_ask(s, "logs");
	}
	if (stage_output_has(s, "\033]0;spoiled"))
		stage_hit(s, "an escape sequence reached the terminal");
	if (stage_output_has(s, "\xe2\x80\xae") || stage_output_has(s, "\xc2\x9b"))
		stage_hit(s, "a control character beyond ASCII reached the terminal");
	if (stage_output_has(s, "\nforged line"))
		stage_hit(s, "a name with a newline made a line of its own");
}

static void judge_json(struct stage *s)
{
	for (const char *line = NULL; (line = stage_output_json(s, line));) {
		json_error_t error;
		json_t *json = json_loads(line, JSON_DISABLE_EOF_CHECK, &error);
		if (!json)
			stage_hit(s, "the record is no JSON: %s", error.text);
		json_decref(json);
	}
}

/* What the user has in the directory that outputs are copied to. */
static int put_before(struct stage *s)
{
	mkdir(stage_path(s, "var/into"), 0777);
	if (mkdir(stage_into(s), 0777) && errno != EEXIST)
		return -errno;
	_cleanup_close_ int fd = open(text("%s/%s", stage_into(s), stage_attack(s)->arg),
				      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd < 0 || write(fd, "mine\n", 5) != 5 ? -errno : 0;
}

static void judge_overwritten(struct stage *s)
{
	char words[8] = "";
	_cleanup_close_ int fd =
		open(text("%s/%s", stage_into(s), stage_attack(s)->arg), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || read(fd, words, sizeof(words) - 1) < 0 || strcmp(words, "mine\n"))
		stage_hit(s, "a file of the user's was overwritten by an output");
}

static void judge_planted(struct stage *s)
{
	if (!access(text("%s/%s", stage_into(s), stage_attack(s)->arg), F_OK))
		stage_hit(s, "a dot-file was made among the user's files");
}

static off_t size_of(const char *path)
{
	struct stat st;
	return stat(path, &st) ? 0 : st.st_size;
}

static void judge_flood(struct stage *s)
{
	if (size_of(text("%s/out", stage_into(s))) > 8 << 20)
		stage_hit(s, "more was collected than --output-max");
}

/* Without the hood the log is the file behind stdout; under it the ledger with what lies beside it. */
static void judge_log_flood(struct stage *s)
{
	off_t size = size_of(stage_path(s, "var/stdout")) + size_of(stage_path(s, "var/ledger.db")) +
		     size_of(stage_path(s, "var/ledger.db-wal"));
	if (size > 12 << 20)
		stage_hit(s, "the log took %lld bytes", (long long)size);
}

static void judge_live_flood(struct stage *s)
{
	off_t size = size_of(stage_path(s, "var/stdout"));
	if (size > 1 << 20)
		stage_hit(s, "%lld bytes were passed on", (long long)size);
}

static void judge_flags_and_leftover(struct stage *s)
{
	judge_leftover(s);
	_cleanup_close_ int fd = open(text("%s/out", stage_workspace(s)), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int none = 0;
	if (fd >= 0)
		ioctl(fd, FS_IOC_SETFLAGS, &none);
}

#define LEAVE(n, how, fn, target, e, ...)                                                       \
	{                                                                                       \
		.name = n, .mechanism = how, .run = fn, .arg = target, .effect = e, __VA_ARGS__ \
	}

static const struct attack table[] = {
	LEAVE("output-link", "an output that is a link to a secret, CVE-2024-28185", leave_link, "secret",
	      EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-relative-link", "an output that is a link upwards", leave_relative_link, "",
	      EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-link-chain", "an output that is a link to a link to a link", leave_link_chain, "",
	      EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-environ", "an output that is a link to /proc/self/environ: the collector's own",
	      leave_link, "/proc/self/environ", EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-leaked-fd", "an output that is a link to a descriptor of the collector", leave_link,
	      "leak.link", EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-directory-link", "a directory of outputs that is a link to the secrets",
	      leave_directory_link, "secrets", EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("output-hard-link", "an output that is a hard link of a secret", leave_hard_link, "secret",
	      EFFECT_SECRET, .flags = COLLECTED),
	LEAVE("chown-link", "a link where the supervisor changes owners, CVE-2024-28189 and CVE-2024-29021",
	      leave_link, "site.file", EFFECT_TREE, .flags = COLLECTED),
	LEAVE("notes-link", "links where the supervisor writes its notes, CVE-2024-28185",
	      leave_links_for_notes, "api.file", EFFECT_TREE, .flags = COLLECTED),
	LEAVE("remove-link", "a directory link that removal follows", leave_directory_link, "site",
	      EFFECT_TREE, .flags = COLLECTED),
	LEAVE("output-fifo", "an output that is a FIFO: the collector waits for ever", leave_fifo, "out",
	      EFFECT_HIT, .flags = COLLECTED | HANGS),
	LEAVE("output-zero", "an output that is a link to /dev/zero: it never ends", leave_link, "/dev/zero",
	      EFFECT_HIT, .flags = COLLECTED | HANGS),
	LEAVE("output-device", "an output that is a device", leave_device, "", EFFECT_HIT,
	      .number = 0x105 /* zero */, .flags = COLLECTED | HANGS | ROOT_ONLY),
	LEAVE("output-sparse", "an output of 1 TiB without a block", leave_sparse, "", EFFECT_HIT,
	      .number = 1L << 40, .flags = COLLECTED | HANGS),
	LEAVE("name-newline", "a name with a newline: a forged line", leave_name, "out\nforged line",
	      EFFECT_HIT, .judge = judge_names, .flags = COLLECTED),
	LEAVE("name-escape", "a name with an escape sequence", leave_name, "\033]0;spoiled\007", EFFECT_HIT,
	      .judge = judge_names, .flags = COLLECTED),
	LEAVE("name-bidi", "a name that turns the reading direction (U+202E)", leave_name, "\xe2\x80\xaeout",
	      EFFECT_HIT, .judge = judge_names, .flags = COLLECTED),
	LEAVE("name-c1", "a name with a control sequence in C1 (U+009B)", leave_name,
	      "\xc2\x9b"
	      "2Jout",
	      EFFECT_HIT, .judge = judge_names, .flags = COLLECTED),
	LEAVE("name-not-utf8", "a name that is not UTF-8: a record that is no JSON", leave_name,
	      "out\xff\xfe\"x", EFFECT_HIT, .judge = judge_json, .options = "--json", .flags = COLLECTED),
	LEAVE("name-command", "a name that is a shell command", leave_command, "", EFFECT_TREE,
	      .flags = COLLECTED),
	LEAVE("mode-000", "directories of mode 000: removal fails", leave_locked_directory, "", EFFECT_HIT,
	      .judge = judge_leftover, .flags = COLLECTED | UNPRIVILEGED),
	LEAVE("mode-000-top", "the workspace itself of mode 000", close_workspace, "", EFFECT_HIT,
	      .judge = judge_leftover, .flags = COLLECTED | UNPRIVILEGED),
	LEAVE("output-flood", "more output than --output-max allows", leave_much, "", EFFECT_HIT,
	      .number = 16 << 20, .options = "--output-max 1M", .judge = judge_flood, .flags = COLLECTED),
	LEAVE("log-flood", "more words than --log-max allows", say_much, "", EFFECT_HIT, .number = 16 << 20,
	      .options = "--log-max 64K --json", .judge = judge_log_flood, .flags = COLLECTED | STDOUT_FILE),
	LEAVE("live-flood", "more words than --log-max allows, to a caller that captures them", say_much, "",
	      EFFECT_HIT, .number = 16 << 20, .options = "--log-max 64K", .judge = judge_live_flood,
	      .flags = COLLECTED | STDOUT_FILE),
	LEAVE("into-dot-file", "an output .bashrc where outputs are copied to", leave_name, ".bashrc",
	      EFFECT_HIT, .judge = judge_planted, .flags = COLLECTED),
	LEAVE("into-overwrite", "an output with the name of a file that the user has", leave_name, "report",
	      EFFECT_HIT, .prepare = put_before, .judge = judge_overwritten, .flags = COLLECTED),
	LEAVE("deep-tree", "a tree deeper than any path is long", leave_deep_tree, "", EFFECT_HIT,
	      .number = 30, .judge = judge_leftover, .flags = COLLECTED),
	LEAVE("immutable", "an output with the immutable flag: removal fails", leave_immutable, "",
	      EFFECT_HIT, .number = FS_IMMUTABLE_FL, .judge = judge_flags_and_leftover,
	      .flags = COLLECTED | ROOT_ONLY),
	LEAVE("append-only", "an output with the append-only flag: removal fails", leave_immutable, "",
	      EFFECT_HIT, .number = FS_APPEND_FL, .judge = judge_flags_and_leftover,
	      .flags = COLLECTED | ROOT_ONLY),
	LEAVE("swap-file", "a survivor that swaps an output for a link while it is collected", swap_file, "",
	      EFFECT_SECRET, .flags = COLLECTED | OUTLIVES),
	LEAVE("swap-directory", "a survivor that swaps a directory for a link while it is removed",
	      swap_directory, "site", EFFECT_TREE, .flags = COLLECTED | OUTLIVES),
	LEAVE("forged-record", "a forged record on stdout", forge_record, "", EFFECT_HIT, .options = "--json",
	      .judge = judge_forged_line, .flags = COLLECTED),
	LEAVE("terminal-answer", "output that makes the terminal type: ESC [ c, and a new title",
	      ask_terminal, "", EFFECT_HIT, .flags = ON_TERMINAL, .judge = judge_names),
};

const struct attack_family collection_outputs = {
	.name = "collection", .title = "collection and clean-up", FAMILY(table)};
