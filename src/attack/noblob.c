/* The attacker's program shares its sources with the suite and carries no copy of itself. */
#include "blob.h"

const char attacker_blob[1] = "";
const size_t attacker_blob_size = 0;
