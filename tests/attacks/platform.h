/*
 * The throw-away platform: a directory with data/, docs/, site/, api.py and secrets, services that count who reaches
 * them, a victim, PostgreSQL where it is installed, and another analysis beside the one that attacks.
 *
 * platform_up, then for each attack platform_furnish (everything as it was) and runs, then platform_down. Whatever is
 * in the directory belongs to the suite; helpers die with the process that called platform_up.
 */
#ifndef ATTACK_PLATFORM_H
#define ATTACK_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attack.h"
#include "buffer.h"
#include "targets.h"

enum { NONCE_SIZE = 33, LEAK_FIRST = 40, LEAK_HIGH = 700 };

/* Shared with the helper processes: what they have seen. Plain words, read when a run is over. */
struct board {
	volatile int hits;
	char first[128]; /* what was hit first */
	volatile int ready;
	volatile pid_t child; /* of the launcher: what it supervises */
	uintptr_t memory;     /* in the victim: where the secret lies */
	uintptr_t scratch;    /* in the victim: where `byte` is mapped */
	volatile char byte;   /* that nobody should change */
};

struct platform {
	char root[256];
	char nonce[NONCE_SIZE];
	char tag[9]; /* in the ids of its runs */
	char bin[320];
	char fumehood[384];
	char plain[384];
	char source[256];     /* what fumehood is a copy of */
	const char *strength; /* that it is asked for; NULL: none */
	int64_t written[2];   /* when the two were, ns */
	char view
		[300]; /* where the suite sees the platform's files: root, or through the helper's namespace */
	char other[256]; /* a workspace of another analysis */
	struct targets targets;
	struct board *board;
	pid_t server, victim;
	pid_t postgres;
	int pg_port;
	int mounts;	    /* descriptor of the mount namespace with the submount, -1 as an ordinary user */
	int victim_fd;	    /* the board's memfd */
	struct buffer tree; /* how the files should look */
	char state[1024];   /* how the victim should look */
	struct {
		pid_t pid;
		int output;
		char id[128];
		bool ready;
		struct buffer said;
	} beside[2];	       /* [hooded] */
	unsigned beside_count; /* for their ids */
	int slowness;	       /* 1, or how many times slower than usual this machine is */
};

int platform_up(struct platform *p, const struct attack_options *o, struct error *err);
void platform_down(struct platform *p, bool keep);

/* Writes the programs anew if an attack has spoiled them. */
int platform_repair(struct platform *p, struct error *err);
/* Makes every file as it was and takes it down as how it should look. */
void platform_furnish(struct platform *p);
/* The targets for one run, written to var/targets. */
int platform_write_targets(struct platform *p, bool hooded, const char *marker);
/* The tree as text, one line per file with everything that can change. */
void platform_describe(struct platform *p, struct buffer *ret);
void platform_describe_victim(struct platform *p, char *ret, size_t room);

/* What lies outside its directory (plant.c). */
void plant(struct platform *p);
void unplant(struct platform *p);

/* The helpers, each in a process of its own that ends with the caller. */
void server_main(struct platform *p, int parent) __attribute__((noreturn));
int victim_start(struct platform *p, struct error *err);
bool can_be_nobody(void);		 /* we are root, and NOBODY is a user here */
int postgres_start(struct platform *p);	 /* 0, or -errno: none here */
long postgres_count(struct platform *p); /* rows of the victims' table, -1 */

/* Whether text holds the secret. */
bool platform_secret_in(const struct platform *p, const char *data, size_t size);
void board_hit(struct board *b, const char *what);

#endif
