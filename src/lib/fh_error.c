#include "lib.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FH_USAGE == (int)ERROR_USAGE && FH_REFUSED == (int)ERROR_REFUSED &&
		       FH_BUSY == (int)ERROR_BUSY && FH_NOT_FOUND == (int)ERROR_NOT_FOUND &&
		       FH_LEDGER == (int)ERROR_LEDGER && FH_LEASE == (int)ERROR_LEASE &&
		       FH_SYSTEM == (int)ERROR_SYSTEM,
	       "public codes are error kinds");

FH_PUBLIC const char *fh_version(void)
{
	return FUMEHOOD_VERSION;
}

FH_PUBLIC void fh_free(void *text)
{
	free(text);
}

FH_PUBLIC const char *fh_code_name(int code)
{
	return code == FH_OK ? "none"
			     : error_kind_name(code > 0 && code <= FH_SYSTEM ? (enum error_kind)code
									     : ERROR_SYSTEM);
}

int fail(fh_error *err, const struct error *why)
{
	int code = (int)error_kind_shown(why->kind);

	if (code == FH_OK)
		return fail_memory(err);
	if (err) {
		*err = (fh_error){.code = code, .errnum = why->errnum};
		snprintf(err->stage, sizeof err->stage, "%s", why->stage ? why->stage : "");
		snprintf(err->message, sizeof err->message, "%s", why->message);
	}
	return -code;
}

int fail_with(fh_error *err, enum fh_code code, const char *format, ...)
{
	va_list ap;

	if (err) {
		*err = (fh_error){.code = (int)code};
		snprintf(err->stage, sizeof err->stage, "request");
		va_start(ap, format);
		vsnprintf(err->message, sizeof err->message, format, ap);
		va_end(ap);
	}
	return -(int)code;
}

int flags_check(const char *call, unsigned flags, unsigned known, fh_error *err)
{
	if (!(flags & ~known))
		return 0;
	return fail_with(err, FH_USAGE, "%s() knows no flag 0x%x: is the library too old?", call, flags);
}

int fail_memory(fh_error *err)
{
	return fail_with(err, FH_SYSTEM, "out of memory");
}

int error_from_public(struct error *err, const fh_error *why)
{
	return error_set(err,
			 why->code > 0 && why->code <= FH_SYSTEM ? (enum error_kind)why->code : ERROR_REFUSED,
			 "%.*s", (int)sizeof why->message - 1, why->message);
}
