/*
 * --from ID[:GLOB[:AS]]: which outputs of another analysis one gets, and where it finds them. Pure text: what they are is
 * looked up when the attempt starts (run/resolve_flows.c).
 */
#ifndef MODEL_FLOW_H
#define MODEL_FLOW_H

#include <stdbool.h>

#include "error.h"
#include "id.h"
#include "macros.h"

/* Where they lie if AS is left out: each analysis's in a directory of its name. */
#define FLOW_ROOT "from"

struct flow {
	char id[ID_ROOM]; /* an analysis's, or the name of an array */
	bool is_array;	  /* it was written "NAME.*": the tasks, and nothing else */
	char *glob;	  /* as --output has it; NULL: all */
	char *as;	  /* a directory below the workspace, without "." and ".."; NULL: FLOW_ROOT/ID */
};

/* ID ends at the first colon, AS begins at the last: GLOB may have some in it if another follows. */
int flow_parse(const char *text, struct flow *ret, struct error *err);
void flow_done(struct flow *f);
#define _cleanup_flow_ _cleanup_(flow_done)

/* The directory that belongs to --from alone: AS, else FLOW_ROOT. */
const char *flow_root(const struct flow *f);

/* What a queued analysis with these waits for besides its own --after: added to after, each once. */
int flows_after(char *const *from, char ***after, struct error *err);

#endif
