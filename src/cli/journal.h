/*
 * Systemd's journal, without its library: lines with fields of their own, by which an operator finds them (journalctl FUMEHOOD_ID=a42).
 * Only where our stderr goes to the journal anyhow; who cannot send falls back on that.
 */
#ifndef CLI_JOURNAL_H
#define CLI_JOURNAL_H

struct journal_field {
	const char *name;
	const char *value; /* any text, lines too; NULL: it is left out */
};

/* A descriptor to send to; -1: stderr is no stream of the journal's (JOURNAL_STREAM), or nobody listens. */
int journal_open(void);
/* One entry; the last field has no name. 0 or -errno. */
int journal_send(int fd, const struct journal_field *fields);

#endif
