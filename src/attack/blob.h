/* The attacker's program, as bytes (blob.S is made by the build). */
#ifndef ATTACK_BLOB_H
#define ATTACK_BLOB_H

extern const char attacker_blob[], attacker_blob_end[];

#endif
