#include "backend.h"

int postgres_open(const struct ledger_url *url, unsigned flags, struct backend **ret, struct error *err)
{
	(void)url, (void)flags, (void)ret;
	return error_set(err, ERROR_REFUSED, "PostgreSQL is not there yet");
}
