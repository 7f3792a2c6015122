/*
 * What the ways of holding limits share. A cgroup is a handful of directories ("groups"): one for each hierarchy of
 * v1, a single one on v2. What differs between v1 and v2 is a dialect: a table of the files that hold counters,
 * and how a limit is written. systemd only makes the place; the dialect there is v2's.
 */
#ifndef SUPERVISE_CGROUP_PRIVATE_H
#define SUPERVISE_CGROUP_PRIVATE_H

#include <stddef.h>

#include "cgroup.h"

#define CGROUP_PREFIX	       "fumehood-"
#define CGROUP_DELEGATE_FORMAT "fumehood.%u" /* what `doctor --delegate` makes for a uid without systemd */
#define CGROUP_OWN_LEAF	       "supervisor"  /* where we live in a v2 subtree of ours */
enum { CGROUP_PATH_ROOM = 512, CGROUP_REMOVE_MS = 10000 };

/* The order of cgroup_host.v1_parent. */
enum controller {
	CONTROLLER_MEMORY,
	CONTROLLER_PIDS,
	CONTROLLER_CPU,
	CONTROLLER_CPUACCT,
	CONTROLLER_FREEZER,
	CONTROLLER_BLKIO,
	CONTROLLER_COUNT
};
extern const char *const controller_names_v1[CONTROLLER_COUNT];
extern const enum limit controller_limits[CONTROLLER_COUNT]; /* LIMIT_COUNT: holds none */

/* --- where we are: cgroup_place.c --- */

/* One hierarchy that is mounted and in which we live. */
struct cgroup_place {
	bool known;
	bool read_only;
	size_t root_length;	    /* dir up to here is the mount point */
	char dir[CGROUP_PATH_ROOM]; /* our own cgroup's directory */
};

struct cgroup_places {
	struct cgroup_place v1[CONTROLLER_COUNT];
	struct cgroup_place v1_cpuset; /* only looked at */
	struct cgroup_place v2;
	bool slurm; /* the cgroup of a Slurm job */
};

/* From the texts of /proc/self/cgroup and /proc/self/mountinfo. */
void cgroup_places_parse(const char *cgroup, const char *mountinfo, struct cgroup_places *ret);
int cgroup_places_read(struct cgroup_places *ret, struct error *err);
/* Shortens dir to its parent; false at the mount point. */
bool cgroup_dir_up(char *dir, size_t root_length);
/* The place of another process on v2, such as one that systemd has moved; -errno. */
int cgroup_place_of(pid_t pid, struct cgroup_place *ret);

/* What can be done from these places; the second half of cgroup_host_probe. */
void cgroup_host_choose(const struct cgroup_places *places, struct cgroup_host *ret);
bool cgroup_list_has(const char *list, const char *word);

/* --- small files of the kernel: cgroup_place.c --- */

int cgroup_file_write(int dirfd, const char *name, const char *text); /* -errno */
PRINTF_LIKE(4, 5) int cgroup_path_format(char *out, size_t room, struct error *err, const char *format, ...);

/* --- one analysis --- */

struct cgroup_group {
	char *path;
	int dir;
	int join; /* the file to which a process with one thread writes "0" */
};

/* One file with counters; values[].key NULL: the file is one number. What several have of a field is added up. */
struct counter_file {
	enum controller controller;
	const char *name;
	bool sampled; /* cgroup_sample reads it too, through a descriptor that stays open */
	bool sums;    /* a key occurs once per device: added up, and none is 0 */
	struct {
		const char *key;
		size_t field; /* offset in struct cgroup_counters */
		int64_t scale;
	} values[4];
	int n_values;
};

#define COUNTER_FIELD(name) offsetof(struct cgroup_counters, name)
/* A file of which one number counts. */
#define COUNTER_ONE(controller, name, sampled, key, field, scale)                         \
	{                                                                                 \
		controller, name, sampled, false, {{key, COUNTER_FIELD(field), scale}}, 1 \
	}

enum { COUNTER_FILES_MAX = 16 };

struct cgroup_dialect {
	const struct counter_file *counters;
	size_t n_counters;
	/* Writes a limit; 0, or negative: it does not hold, and *why may say so. */
	int (*limit)(const struct cgroup *c, enum limit which, uint64_t value, const char **why);
};
extern const struct cgroup_dialect cgroup_dialect_v1, cgroup_dialect_v2;

struct cgroup_scope;

struct cgroup {
	enum cgroup_way way;
	const struct cgroup_dialect *dialect; /* NULL: none */
	struct cgroup_group groups[CONTROLLER_COUNT];
	int n_groups;
	int group_of[CONTROLLER_COUNT]; /* index in groups, or -1 */
	char **paths;
	int *counters; /* descriptors of the sampled files, opened when first needed, through a const cgroup */
	struct cgroup_scope *scope; /* CGROUP_SYSTEMD */
};

/* The directory of a controller, or -1. */
int cgroup_dir(const struct cgroup *c, enum controller controller);
/* Makes and opens the directory parent/name as the next group; the index or negative. */
int cgroup_group_add(struct cgroup *c, const char *parent, const char *name, struct error *err);
int cgroup_path_remember(struct cgroup *c, const char *path, struct error *err);

int cgroup_v1_make(struct cgroup *c, const struct cgroup_host *host, const char *name, struct error *err);
int cgroup_v2_make(struct cgroup *c, const char *parent, const char *name, struct error *err);
/* Gives the children of a v2 directory the controllers that we want, as far as it has them itself. */
void cgroup_v2_enable(int dir);
int cgroup_systemd_make(struct cgroup *c, const struct cgroup_host *host, const char *name,
			struct error *err);
int cgroup_systemd_adopt(const struct cgroup *c, pid_t pid, struct error *err);
/* Ends the scope and frees it. */
int cgroup_systemd_remove(struct cgroup_scope *scope, struct error *err);
bool cgroup_systemd_booted(void);
/* The socket of the manager that would serve us, "" if there is none. */
void cgroup_systemd_socket(bool user, char out[CGROUP_PATH_ROOM]);
/* True if systemd has left this directory and what is below it to whoever runs in it. */
bool cgroup_systemd_delegated(const char *dir);

/* Calls to systemd: cgroup_bus.c. Those that start and stop return when it is done. */
int cgroup_bus_scope_start(bool user, const char *unit, const char *slice, pid_t pid, struct error *err);
int cgroup_bus_attach(bool user, const char *unit, const char *subcgroup, pid_t pid, struct error *err);
int cgroup_bus_unit_start(bool user, const char *unit, struct error *err);
int cgroup_bus_unit_stop(bool user, const char *unit, struct error *err);
int cgroup_bus_reload(bool user, struct error *err);

/* Thousandths of a cpu → quota and period in µs. */
void cgroup_cpu_quota(uint64_t millicpus, uint64_t *quota_us, uint64_t *period_us);

/* Applies all limits by the policy of cgroup.h and writes the receipt. why: for what cannot be held. */
int cgroup_limits_apply(const struct cgroup *c, const struct limits *limits, bool allow_unlimited,
			const char *why, struct receipt *receipt, struct error *err);
/* The tightest limit around a directory (and including it), LIMIT_NONE if there is none. */
uint64_t cgroup_enclosing(const struct cgroup_place *place, bool v2, enum limit which);
/* How many cpus a list such as "0-3,8" names. */
uint64_t cgroup_cpu_list_count(const char *list);
/* That of one directory alone. */
uint64_t cgroup_limit_here(const char *dir, bool v2, enum limit which);

void cgroup_counters_read(const struct cgroup *c, struct cgroup_counters *ret, bool sample_only);

/* --- the end: cgroup_remove.c --- */

/* Removes a directory and what is below it, killing as needed; missing is fine. */
int cgroup_dir_remove(const char *path, uint64_t deadline, struct error *err);

#endif
