#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum error_kind error_kind_shown(enum error_kind kind)
{
	return kind > ERROR_SYSTEM ? ERROR_LEDGER : kind;
}

const char *error_kind_name(enum error_kind kind)
{
	static const char *const names[] = {
		[ERROR_NONE] = "none",	   [ERROR_USAGE] = "usage",	    [ERROR_REFUSED] = "refused",
		[ERROR_BUSY] = "busy",	   [ERROR_NOT_FOUND] = "not_found", [ERROR_LEDGER] = "ledger",
		[ERROR_SYSTEM] = "system", [ERROR_LEASE] = "lease_lost",
	};

	return names[error_kind_shown(kind)];
}

enum error_kind error_kind_parse(const char *name)
{
	for (int kind = ERROR_SYSTEM; name && kind > ERROR_NONE; kind--)
		if (strcmp(name, error_kind_name((enum error_kind)kind)) == 0)
			return (enum error_kind)kind;
	return ERROR_NONE;
}

PRINTF_LIKE(4, 0)
static void format_message(struct error *err, enum error_kind kind, int errnum, const char *format,
			   va_list ap)
{
	err->kind = kind;
	err->errnum = errnum;
	err->is_here = err->is_damaged = false;
	vsnprintf(err->message, sizeof err->message, format, ap);
}

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
	va_list ap;

	if (!err)
		return -EINVAL;
	va_start(ap, format);
	format_message(err, kind, 0, format, ap);
	va_end(ap);
	return -EINVAL;
}

int error_system(struct error *err, int errnum, const char *format, ...)
{
	va_list ap;
	size_t used;

	if (errnum <= 0)
		errnum = EIO;
	if (!err)
		return -errnum;
	va_start(ap, format);
	format_message(err, ERROR_SYSTEM, errnum, format, ap);
	va_end(ap);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof err->message - used, ": %s", strerror(errnum));
	return -errnum;
}

int error_prefix(struct error *err, int r, const char *format, ...)
{
	char message[sizeof err->message];
	va_list ap;
	size_t used;

	if (!err)
		return r;
	memcpy(message, err->message, sizeof message);
	va_start(ap, format);
	vsnprintf(err->message, sizeof err->message, format, ap);
	va_end(ap);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof err->message - used, ": %s", message);
	return r;
}

int error_here(struct error *err, int r)
{
	if (err)
		err->is_here = true;
	return r;
}

int error_damaged(struct error *err, int r)
{
	if (err)
		err->is_damaged = true;
	return r;
}

int error_memory(struct error *err)
{
	error_system(err, ENOMEM, "cannot go on");
	return -ENOMEM;
}

bool errno_is_passing(int errnum)
{
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EIO:
	case ENOMEM:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ESTALE:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

bool error_is_passing(const struct error *err)
{
	if (err->is_here)
		return true;
	switch (error_kind_shown(err->kind)) {
	case ERROR_BUSY:
	case ERROR_LEDGER:
		return true;
	case ERROR_SYSTEM:
		return errno_is_passing(err->errnum);
	default:
		return false;
	}
}
