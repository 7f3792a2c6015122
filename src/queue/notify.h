/*
 * What systemd wants to hear from a service (sd_notify(3)), without its library. Does nothing where nobody listens.
 */
#ifndef QUEUE_NOTIFY_H
#define QUEUE_NOTIFY_H

#include <stdint.h>

#include "macros.h"

/* "READY=1", "STATUS=…", "WATCHDOG=1", "STOPPING=1"; several with a newline between. Failure is no matter. */
void notify_send(const char *format, ...) PRINTF_LIKE(1, 2);
/* How often WATCHDOG=1 is wanted, ns: half of what systemd waits. 0: not at all. */
uint64_t notify_watchdog(void);

#endif
