/* What the receipt of --strength landlock says beside init's own lines: what stands in place of the namespaces, and what does not. */
#ifndef SANDBOX_RECEIPT_BARE_H
#define SANDBOX_RECEIPT_BARE_H

#include "receipt.h"

void receipt_add_bare(struct receipt *receipt);

#endif
