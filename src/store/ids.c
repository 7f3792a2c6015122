/*
 * Ids by their beginning, out of the index: as quick in a ledger of a million as in a small one.
 */
#include "store.h"

#include <stdio.h>
#include <string.h>

#include "id.h"

struct telling {
	ledger_id_fn fn;
	void *arg;
	int told, limit;
	bool more;
	char last[ID_ROOM]; /* that was told */
};

static int tell(struct telling *t, const char *id, struct error *err)
{
	snprintf(t->last, sizeof t->last, "%s", id);
	return t->fn(t->arg, id, err);
}

static int take_id(void *arg, const struct value *row, struct error *err)
{
	struct telling *t = arg;
	char id[ID_ROOM];

	value_to_fixed(&row[0], id, sizeof id);
	if (id_check(id, NULL) < 0)
		return 0;
	if (++t->told > t->limit) {
		t->more = true;
		return 0;
	}
	return tell(t, id, err);
}

static int take_last(void *arg, const struct value *row, struct error *err)
{
	struct telling *t = arg;
	char id[ID_ROOM];

	value_to_fixed(&row[0], id, sizeof id);
	return id_check(id, NULL) == 0 && strcmp(id, t->last) != 0 ? tell(t, id, err) : 0;
}

int ledger_ids(struct ledger *l, const char *prefix, int limit, ledger_id_fn fn, void *arg, struct error *err)
{
	struct telling t = {.fn = fn, .arg = arg, .limit = limit - 1};
	char end[ID_ROOM + 1];

	if (*prefix && id_check(prefix, NULL) < 0)
		return 0;
	/* No character of an id is as high as that. */
	snprintf(end, sizeof end, "%s\x7f", prefix);
	if (ledger_run(l, SQL_IDS, LEDGER_VALUES(value_text(prefix), value_text(end), value_integer(limit)),
		       take_id, &t, err) < 0)
		return -1;
	if (!t.more)
		return 0;
	return ledger_run(l, SQL_ID_LAST, LEDGER_VALUES(value_text(prefix), value_text(end)), take_last, &t,
			  err);
}
