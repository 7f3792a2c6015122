/*
 * Collection and clean-up: the directories and records that a supervisor trusts between two runs. The attacker is
 * another user of the host, an earlier analysis, or an adopted workspace that is not what it was. The control is a
 * platform that removes what its record names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>

#include "act.h"
#include "file.h"
#include "launch.h"
#include "stage.h"

ACT(write_through_data)
{
	return spoil(a->arg);
}

ACT(read_through_data)
{
	int r = -ENOENT;
	for (int i = 0; r && i < 50; i++, linger(1))
		r = show_file(a->arg);
	return r;
}

ACT(plant_here)
{
	return spoil_at(AT_FDCWD, "planted", O_WRONLY | O_CREAT);
}

/* `fumehood COMMAND… ID`; its words are not the attack's. */
static int command(struct stage *s, const char *one, const char *two, const char *three)
{
	char *argv[] = {s->platform->fumehood, (char *)one, (char *)two, (char *)three, NULL};
	int r = launch(s, argv, 10000 * s->platform->slowness);
	return r ? r : WIFEXITED(s->status) ? -WEXITSTATUS(s->status) : -EIO;
}

/* A held workspace whose owner, the launcher, is dead by the time this returns. */
static int make_held(struct stage *s)
{
	if (!s->hooded)
		return mkdir(s->workspace, 0777) ? -errno : 0;
	int r = command(s, "workspace", "create", s->id);
	if (r)
		snprintf(s->why, sizeof(s->why), "workspace create: %.200s",
			 s->errors.data ? s->errors.data : "");
	s->output.size = s->errors.size = 0;
	return r;
}

static int make_held_for_long(struct stage *s)
{
	if (!s->hooded)
		return mkdir(s->workspace, 0777) ? -errno : 0;
	char *argv[] = {s->platform->fumehood,
			(char *)"workspace",
			(char *)"create",
			s->id,
			(char *)"--for",
			(char *)"1h",
			NULL};
	int r = launch(s, argv, 10000 * s->platform->slowness);
	if (!r && s->status)
		r = -EIO;
	if (r)
		snprintf(s->why, sizeof(s->why), "workspace create: %.200s",
			 s->errors.data ? s->errors.data : "");
	s->output.size = s->errors.size = 0;
	return r;
}

/* What `gc` is for; without the hood: remove what the record names. */
static int collect_garbage(struct stage *s, const char *named)
{
	if (s->hooded) {
		command(s, "gc", NULL, NULL);
		return 0;
	}
	char line[1024];
	snprintf(line, sizeof(line), "rm -rf %s/* %s", named, named);
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", line, NULL};
	return launch(s, argv, 5000 * s->platform->slowness);
}

/* Replaces a word in the record of the held workspace, in place. */
static int tamper(struct stage *s, const char *old, const char *new)
{
	char path[700];
	struct error err = ERROR_INIT;
	_cleanup_buffer_ struct buffer text = {0}, changed = {0};
	if (!s->hooded)
		return 0;
	snprintf(path, sizeof(path), "%s/var/state/fumehood/runs/%s/record.json", s->platform->root, s->id);
	if (file_load(AT_FDCWD, path, 1 << 20, &text, &err)) {
		snprintf(s->why, sizeof(s->why), "%.250s", err.message);
		return -ENOENT;
	}
	char *at = text.data;
	for (char *found; (found = strstr(at, old)); at = found + strlen(old)) {
		buffer_append(&changed, at, (size_t)(found - at));
		buffer_puts(&changed, new);
	}
	buffer_puts(&changed, at);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	return fd < 0 ? -errno : file_write_all(fd, changed.data, changed.size);
}

static int gc_named_elsewhere(struct stage *s)
{
	const char *site = targets_text(stage_targets(s), "site");
	return make_held(s) ?: tamper(s, s->workspace, site) ?: collect_garbage(s, site);
}

/* The value of a string field of the record; the caller frees it. */
static char *record_field(struct stage *s, const char *field)
{
	char path[700], key[64];
	struct error err = ERROR_INIT;
	_cleanup_buffer_ struct buffer text = {0};
	snprintf(path, sizeof(path), "%s/var/state/fumehood/runs/%s/record.json", s->platform->root, s->id);
	snprintf(key, sizeof(key), "\"%s\"", field);
	if (!s->hooded || file_load(AT_FDCWD, path, 1 << 20, &text, &err))
		return NULL;
	char *at = strstr(text.data, key), *from = at ? strchr(at + strlen(key), '"') : NULL,
	     *to = from ? strchr(from + 1, '"') : NULL;
	return to ? strndup(from + 1, (size_t)(to - from - 1)) : NULL;
}

static int gc_other_machine(struct stage *s)
{
	int r = make_held(s);
	_cleanup_free_ char *machine = r ? NULL : record_field(s, "machine");
	if (!r && s->hooded && (!machine || !machine[0])) {
		snprintf(s->why, sizeof(s->why), "the record names no machine");
		return -ENOENT;
	}
	return r ?: tamper(s, machine, "00000000000000000000000000000001") ?: collect_garbage(s, s->workspace);
}

static int gc_other_user(struct stage *s)
{
	const char *site = targets_text(stage_targets(s), "site");
	int r = make_held(s) ?: tamper(s, s->workspace, site);
	char path[700];
	snprintf(path, sizeof(path), "%s/var/state/fumehood/runs/%s/record.json", s->platform->root, s->id);
	if (!r && s->hooded && chown(path, 65534, 65534))
		r = -errno;
	return r ?: collect_garbage(s, site);
}

static int replace_by_link(struct stage *s)
{
	if (rmdir(s->workspace) && errno != ENOENT)
		return -errno;
	return result(symlink(targets_text(stage_targets(s), "site"), s->workspace));
}

static int gc_replaced_by_link(struct stage *s)
{
	return make_held(s) ?: replace_by_link(s) ?: collect_garbage(s, s->workspace);
}

static int cleanup_replaced_by_link(struct stage *s)
{
	int r = make_held(s) ?: replace_by_link(s);
	if (!r && s->hooded)
		command(s, "workspace", "cleanup", s->id);
	else if (!r)
		r = collect_garbage(s, s->workspace);
	return r;
}

static int make_foreign_directory(struct stage *s)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/not-ours", s->workspace);
	if (mkdir(s->workspace, 0777))
		return -errno;
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	return result(fd);
}

static int gc_replaced_by_directory(struct stage *s)
{
	int r = make_held(s);
	/* Another directory under the same name. The old one stays, or its inode could be used again. */
	char aside[600];
	snprintf(aside, sizeof(aside), "%s/var/aside-%s", s->platform->root, s->id);
	if (!r && rename(s->workspace, aside))
		r = -errno;
	return r ?: make_foreign_directory(s) ?: collect_garbage(s, s->workspace);
}

static void judge_foreign_directory(struct stage *s)
{
	if (access(text("%s/not-ours", s->workspace), F_OK))
		stage_hit(s, "a directory that is not ours was removed");
}

static void judge_still_there(struct stage *s)
{
	if (access(s->workspace, F_OK))
		stage_hit(s, "the workspace of another machine was removed");
}

static int state_link(struct stage *s)
{
	char path[700];
	const char *site = targets_text(stage_targets(s), "site");
	if (!s->hooded)
		return collect_garbage(s, site);
	snprintf(path, sizeof(path), "%s/var/state/fumehood/runs", s->platform->root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/var/state/fumehood/runs/%s", s->platform->root, s->id);
	int r = result(symlink(site, path)) ?: collect_garbage(s, site);
	unlink(path);
	return r;
}

static int existing_link(struct stage *s)
{
	return result(symlink(targets_text(stage_targets(s), "site"), s->workspace));
}

static int adopt_with_link(struct stage *s)
{
	char path[600];
	int r = make_held_for_long(s);
	if (r)
		return r;
	const char *name = s->attack->options && strstr(s->attack->options, ":") ? "sub"
			   : !strncmp(s->attack->name, "adopt-docs", 10)	 ? "docs"
			   : !strncmp(s->attack->name, "adopt-stage", 11)	 ? "attacker"
										 : "data";
	const char *to = targets_text(stage_targets(s), !strcmp(name, "attacker") ? "api.file" : "site");
	snprintf(path, sizeof(path), "%s/%s", s->workspace, name);
	if (s->attack->effect == EFFECT_SECRET)
		to = targets_text(stage_targets(s), "secrets");
	return result(symlink(to, path));
}

/* CVE-2021-30465: the link comes and goes while the mounts are being made. */
static int adopt_with_race(struct stage *s)
{
	char data[600], link[600];
	int r = make_held_for_long(s);
	if (r)
		return r;
	snprintf(data, sizeof(data), "%s/data", s->workspace);
	snprintf(link, sizeof(link), "%s/other", s->workspace);
	if (mkdir(data, 0777) || symlink(targets_text(stage_targets(s), "secrets"), link))
		return -errno;
	s->racer = fork();
	if (s->racer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			renameat2(AT_FDCWD, data, AT_FDCWD, link, RENAME_EXCHANGE);
	}
	return s->racer < 0 ? -errno : 0;
}

static void end_racer(struct stage *s)
{
	if (s->racer > 0 && !kill(s->racer, SIGKILL))
		waitpid(s->racer, NULL, 0);
	s->racer = 0;
}

#define STATE(n, how, fn, e, ...)                                                    \
	{                                                                            \
		.name = n, .mechanism = how, .prepare = fn, .effect = e, __VA_ARGS__ \
	}
#define ADOPT(n, how, fn, target, prep, e, ...)                                                      \
	{                                                                                            \
		.name = n, .mechanism = how, .run = fn, .arg = target, .prepare = prep, .effect = e, \
		__VA_ARGS__                                                                          \
	}

static const struct attack table[] = {
	STATE("gc-elsewhere", "a record that names another directory", gc_named_elsewhere, EFFECT_TREE,
	      .flags = NO_ATTACKER),
	STATE("gc-other-user", "a record planted by another user", gc_other_user, EFFECT_TREE,
	      .flags = NO_ATTACKER | ROOT_ONLY),
	STATE("gc-other-machine", "a record of another machine", gc_other_machine, EFFECT_HIT,
	      .judge = judge_still_there, .flags = NO_ATTACKER),
	STATE("gc-link", "a workspace that has become a link", gc_replaced_by_link, EFFECT_TREE,
	      .flags = NO_ATTACKER),
	STATE("gc-directory", "a workspace that has become another directory", gc_replaced_by_directory,
	      EFFECT_HIT, .judge = judge_foreign_directory, .flags = NO_ATTACKER),
	STATE("gc-state-link", "a state directory that is a link", state_link, EFFECT_TREE,
	      .flags = NO_ATTACKER),
	STATE("cleanup-link", "`workspace cleanup` of one that has become a link", cleanup_replaced_by_link,
	      EFFECT_TREE, .flags = NO_ATTACKER),
	ADOPT("existing-link", "the workspace's path is a link already", plant_here, "", existing_link,
	      EFFECT_TREE, .flags = REFUSAL_HOLDS),
	ADOPT("adopt-data-link", "an adopted workspace whose data/ is a link, CVE-2021-30465",
	      write_through_data, "data/index.html", adopt_with_link, EFFECT_TREE, .flags = REFUSAL_HOLDS),
	ADOPT("adopt-data-read", "an adopted workspace whose data/ is a link to the secrets, CVE-2021-30465",
	      read_through_data, "data/token", adopt_with_link, EFFECT_SECRET, .flags = REFUSAL_HOLDS),
	ADOPT("adopt-docs-link", "an adopted workspace whose docs/ is a link, CVE-2025-31133",
	      write_through_data, "docs/index.html", adopt_with_link, EFFECT_TREE, .flags = REFUSAL_HOLDS),
	ADOPT("adopt-data-race", "data/ swapped for a link while the hood is raised, CVE-2021-30465",
	      read_through_data, "data/token", adopt_with_race, EFFECT_SECRET, .judge = end_racer,
	      .flags = REFUSAL_HOLDS),
	ADOPT("adopt-stage-link",
	      "an adopted workspace in which a file to be staged is a link, CVE-2024-28185", plant_here, "",
	      adopt_with_link, EFFECT_TREE, .flags = REFUSAL_HOLDS),
};

const struct attack_family collection_state = {
	.name = "collection", .title = "collection and clean-up", FAMILY(table)};
