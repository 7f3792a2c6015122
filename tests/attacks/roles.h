/*
 * What the attacker's program can be: the attacker itself, the victim, an analysis beside it, a platform without a
 * hood, and a survivor that only waits.
 */
#ifndef ATTACK_ROLES_H
#define ATTACK_ROLES_H

int role_suite(int argc, char **argv);	/* suite [options] PROGRAM: all of them, each told */
int role_victim(int argc, char **argv); /* victim SECRET BOARD-FD SECRET-FD */
int role_plain(int argc, char **argv);	/* plain WORKSPACE INTO ROUNDS -- COMMAND … */
int role_beside(int argc, char **argv); /* beside MARKER: an analysis that talks to whoever comes */
int role_before(int argc, char **argv); /* before MARKER: one that leaves traces and ends */

#endif
