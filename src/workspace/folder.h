/*
 * One id's folder in the state directory, private to this module: its lock, its record, and the judgement on what the
 * record claims. A record is believed only as far as the machine, the user, the path and the inode bear it out.
 *
 * The lock is taken on a file that others may be removing with its folder: after flock() the folder and the lock are
 * compared with what their names mean now, and everything begins again if that is something else. A folder is
 * removed by renaming it to ".gone-…" first, so that at any instant its name means a whole folder or none.
 */
#ifndef WORKSPACE_FOLDER_H
#define WORKSPACE_FOLDER_H

#include <limits.h>

#include "workspace.h"

#define RECORD_NAME  "record.json"
#define GONE_PREFIX  ".gone-"
#define ASIDE_PREFIX ".damaged-"

/* Entries of the workspace root that belong to one id and token. */
struct names {
	char final[NAME_MAX + 1];
	char scratch[NAME_MAX + 1];
	char making[NAME_MAX + 1]; /* the workspace before its rename */
	char gone[NAME_MAX + 1];   /* the workspace after its last one (retire.c) */
};
void names_make(struct names *n, const struct site *site, const char *id, const char *token);
/* The same of what a record is about, aside or not. */
void names_of(struct names *n, const struct site *site, const struct record *r);

/* The same of w, which may have its last name. */
void folder_names(const struct workspace *w, struct names *n);
/* The folder has its last name too: what it belonged to is free, and may be somebody else's already. */
bool folder_is_gone(const struct workspace *w);
/* Gives it one; the lock stays ours. */
int folder_let_go(struct workspace *w, struct error *err);

/* All of w but site is blank. */
void workspace_blank(struct workspace *w, const struct site *site);

/* 1: locked, w->run_fd, w->lock_fd and w->record.id are set. 0: there is no such folder and make is false. ERROR_BUSY. */
int folder_lock(struct workspace *w, const char *id, bool make, struct error *err);
/* Reads w's record. 1, or 0 if there is none: nothing was made then. Negative: err is marked if it is damaged. */
int folder_load(struct workspace *w, struct error *err);
int folder_save(struct workspace *w, bool sync, struct error *err);
/* The same for what is only known while it runs: a line more in its file. */
int folder_note(struct workspace *w, struct error *err);
/* Removes the locked folder; the lock is held until workspace_close(). */
int folder_remove(struct workspace *w, struct error *err);
/* What recovery begins with when it has the lock. 1: the record is read; 0: there was none, and the folder is removed. One
 * that is damaged is set aside. */
int folder_recall(struct workspace *w, struct error *err);

enum folder_standing {
	STANDING_FOREIGN, /* not ours to judge: why says what is wrong with it */
	STANDING_HELD,	  /* held or kept, and not over */
	STANDING_OVER,	  /* its owner is gone, or its time is */
};
/* The lock is ours, so a supervisor is dead. */
enum folder_standing folder_judge(const struct workspace *w, const char **ret_why);

/* aside.c: a kept workspace moves out of the way, or is moved on if somebody died over it. The lock is ours, the record read. */
int folder_move_aside(struct workspace *w, struct error *err);
/* It was about to move, and has not got there. */
bool folder_is_on_its_way(const struct workspace *w);

/* Opens the workspace that the record names as w->fd, if it is there; ERROR_REFUSED if something else is. */
int folder_attach(struct workspace *w, struct error *err);

#endif
