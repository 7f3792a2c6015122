/* What the receipt of --strength landlock says beside init's own lines: what stands in place of the namespaces, and what does not. */
#ifndef SANDBOX_RECEIPT_BARE_H
#define SANDBOX_RECEIPT_BARE_H

#include "receipt.h"

#include <sys/types.h>

/* uid: who the analysis is. To 0, even without capabilities, /proc shows more. */
void receipt_add_bare(struct receipt *receipt, uid_t uid);

#endif
