/*
 * Version 8. An analysis that a worker has claimed may be handed over to others who run it elsewhere (handover.h).
 *
 * queue.dispatcher: the worker that has claimed it to hand it over, NULL: one that runs it itself. As long as it is the row's worker, too,
 * nobody has taken it. batch, batch_index: as what it was handed over. handle: what is known of it there, as JSON.
 * attempt.engine: the same, as it was at the end. NULL: it ran on its worker's host.
 */
#include "sql.h"

const char sql_version_8_sqlite[] =
	"ALTER TABLE fumehood_queue ADD COLUMN dispatcher TEXT;"
	"ALTER TABLE fumehood_queue ADD COLUMN batch TEXT;"
	"ALTER TABLE fumehood_queue ADD COLUMN batch_index INTEGER;"
	"ALTER TABLE fumehood_queue ADD COLUMN handle TEXT;"
	"CREATE UNIQUE INDEX fumehood_queue_batch ON fumehood_queue(batch, batch_index) WHERE batch IS NOT NULL;"
	"ALTER TABLE fumehood_attempt ADD COLUMN engine TEXT;";

const char sql_version_8_postgres[] =
	"ALTER TABLE fumehood.queue ADD COLUMN dispatcher text, ADD COLUMN batch text COLLATE \"C\","
	"	ADD COLUMN batch_index integer, ADD COLUMN handle jsonb;"
	"CREATE UNIQUE INDEX queue_batch ON fumehood.queue(batch, batch_index) WHERE batch IS NOT NULL;"
	"ALTER TABLE fumehood.attempt ADD COLUMN engine jsonb;";
