/*
 * Version 5, the queue's part (schema_store.c puts it together).
 *
 * The index of what is ready has the sizes before the order, so that a claim steps over all that is too large for its host at
 * once; who was served last is found by an index, and with it who is next in line. lease_ms is that of who holds the row.
 */
#ifndef STORE_SCHEMA_CLAIMS_H
#define STORE_SCHEMA_CLAIMS_H

#define VERSION_5_CLAIMS_SQLITE                                                                              \
	"ALTER TABLE fumehood_queue ADD COLUMN lease_ms INTEGER;"                                            \
	"DROP INDEX fumehood_queue_ready;"                                                                   \
	"CREATE INDEX fumehood_queue_ready ON fumehood_queue(owner, submitter, priority DESC, memory_bytes," \
	"	cpus_milli, seq) WHERE state = 'queued';"                                                          \
	"CREATE INDEX fumehood_queue_submitter_served ON fumehood_queue_submitter(served_at);"               \
	"CREATE INDEX fumehood_queue_submitter_owner ON fumehood_queue_submitter(owner, served_at);"

#define VERSION_5_CLAIMS_POSTGRES                                                                                    \
	"ALTER TABLE fumehood.queue ADD COLUMN lease_ms bigint;"                                                     \
	"DROP INDEX fumehood.queue_ready;"                                                                           \
	"CREATE INDEX queue_ready ON fumehood.queue(owner, submitter, priority DESC, memory_bytes, cpus_milli, seq)" \
	"	WHERE state = 'queued';"                                                                                   \
	"CREATE INDEX queue_submitter_served ON fumehood.queue_submitter(served_at);"                                \
	"CREATE INDEX queue_submitter_owner ON fumehood.queue_submitter(owner, served_at);"

#endif
