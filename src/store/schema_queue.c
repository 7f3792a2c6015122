/*
 * The tables of the queue: version 3.
 *
 * Only what is queued, running or due is in an index by its state, so that what ended costs a claim nothing, however
 * much of it there is. Of leases there is no index: those that run are few, and a heartbeat would have to move each in
 * it. seq is the order of submission.
 */
#include "sql.h"

const char sql_version_3_sqlite[] =
	"CREATE TABLE fumehood_queue("
	"	seq INTEGER PRIMARY KEY,"
	"	id TEXT NOT NULL UNIQUE,"
	"	state TEXT NOT NULL CHECK (state IN ('waiting', 'queued', 'running', 'finished', 'cancelled')),"
	"	submitter TEXT NOT NULL,"
	"	priority INTEGER NOT NULL,"
	"	retries INTEGER NOT NULL,"
	"	retry_on INTEGER NOT NULL,"
	"	again INTEGER NOT NULL,"
	"	tries INTEGER NOT NULL,"
	"	request TEXT NOT NULL,"
	"	inputs TEXT NOT NULL,"
	"	memory_bytes INTEGER NOT NULL,"
	"	cpus_milli INTEGER NOT NULL,"
	"	submitted_at INTEGER NOT NULL,"
	"	due_at INTEGER,"
	"	attempt INTEGER NOT NULL,"
	"	token TEXT,"
	"	worker TEXT,"
	"	lease_until INTEGER,"
	"	cancelling INTEGER NOT NULL,"
	"	verdict TEXT,"
	"	status INTEGER,"
	"	reason TEXT);"
	"CREATE INDEX fumehood_queue_ready ON fumehood_queue(submitter, priority DESC, seq) WHERE state = 'queued';"
	"CREATE INDEX fumehood_queue_running ON fumehood_queue(submitter) WHERE state = 'running';"
	"CREATE INDEX fumehood_queue_due ON fumehood_queue(due_at) WHERE state = 'waiting' AND due_at IS NOT NULL;"

	"CREATE TABLE fumehood_queue_after("
	"	id TEXT NOT NULL,"
	"	after TEXT NOT NULL,"
	"	met INTEGER NOT NULL,"
	"	PRIMARY KEY (id, after)) WITHOUT ROWID;"
	"CREATE INDEX fumehood_queue_after_after ON fumehood_queue_after(after);"

	"CREATE TABLE fumehood_queue_submitter("
	"	name TEXT PRIMARY KEY NOT NULL,"
	"	served_at INTEGER) WITHOUT ROWID;";

/* Room is left in each page, so that a heartbeat writes a row's next version beside it and touches no index. */
const char sql_version_3_postgres[] =
	"CREATE TABLE fumehood.queue("
	"	seq bigint GENERATED ALWAYS AS IDENTITY,"
	"	id text COLLATE \"C\" PRIMARY KEY,"
	"	state text NOT NULL CHECK (state IN ('waiting', 'queued', 'running', 'finished', 'cancelled')),"
	"	submitter text COLLATE \"C\" NOT NULL,"
	"	priority integer NOT NULL,"
	"	retries integer NOT NULL,"
	"	retry_on integer NOT NULL,"
	"	again boolean NOT NULL,"
	"	tries integer NOT NULL,"
	"	request jsonb NOT NULL,"
	"	inputs jsonb NOT NULL,"
	"	memory_bytes bigint NOT NULL,"
	"	cpus_milli bigint NOT NULL,"
	"	submitted_at timestamptz NOT NULL,"
	"	due_at timestamptz,"
	"	attempt integer NOT NULL,"
	"	token text,"
	"	worker text,"
	"	lease_until timestamptz,"
	"	cancelling boolean NOT NULL,"
	"	verdict text,"
	"	status integer,"
	"	reason text) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);"
	"CREATE INDEX queue_ready ON fumehood.queue(submitter, priority DESC, seq) WHERE state = 'queued';"
	"CREATE INDEX queue_running ON fumehood.queue(submitter) WHERE state = 'running';"
	"CREATE INDEX queue_due ON fumehood.queue(due_at) WHERE state = 'waiting' AND due_at IS NOT NULL;"

	"CREATE TABLE fumehood.queue_after("
	"	id text COLLATE \"C\" NOT NULL,"
	"	after text COLLATE \"C\" NOT NULL,"
	"	met boolean NOT NULL,"
	"	PRIMARY KEY (id, after));"
	"CREATE INDEX queue_after_after ON fumehood.queue_after(after);"

	"CREATE TABLE fumehood.queue_submitter("
	"	name text COLLATE \"C\" PRIMARY KEY,"
	"	served_at timestamptz);";
