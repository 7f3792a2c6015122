-- The tables as they were in version 8, with which the list of steps begins (schema.c). Paths are bytes. Time is UTC: nanoseconds since 1970 in
-- SQLite, timestamptz in PostgreSQL. Outputs and the like have their position as the key and not their path, since an index row of
-- PostgreSQL ends at 2700 bytes and a path at 4096.
-- No table is STRICT: readers older than 3.37 could not open the platform's database any more. "%owner%" is the file's owner, quoted (sqlite.c).

CREATE TABLE fumehood_schema_version(
	version INTEGER PRIMARY KEY,
	applied_at INTEGER NOT NULL,
	fumehood TEXT NOT NULL);

CREATE TABLE fumehood_analysis(
	id TEXT PRIMARY KEY NOT NULL,
	created_at INTEGER NOT NULL,
	owner TEXT NOT NULL DEFAULT %owner%) WITHOUT ROWID;

CREATE TABLE fumehood_attempt(
	analysis_id TEXT NOT NULL REFERENCES fumehood_analysis(id),
	number INTEGER NOT NULL CHECK (number > 0),
	token TEXT NOT NULL UNIQUE,
	verdict TEXT,
	exit_code INTEGER,
	signal INTEGER,
	status INTEGER NOT NULL,
	created_at INTEGER,
	started_at INTEGER,
	ended_at INTEGER,
	workspace BLOB,
	kept INTEGER NOT NULL,
	host TEXT,
	reason TEXT,
	usage TEXT,
	error_stage TEXT,
	error_code TEXT,
	error_message TEXT,
	request TEXT,
	plan TEXT,
	receipt TEXT,
	result TEXT,
	missing TEXT,
	present TEXT,
	rejected_more INTEGER NOT NULL,
	sample_interval_ms INTEGER,
	committed_at INTEGER NOT NULL,
	owner TEXT NOT NULL DEFAULT %owner%,
	pruned_at INTEGER,
	denials_more INTEGER,
	engine TEXT,
	PRIMARY KEY (analysis_id, number));
CREATE INDEX fumehood_attempt_created ON fumehood_attempt(created_at);
CREATE INDEX fumehood_attempt_verdict ON fumehood_attempt(verdict, created_at);

-- content is null where the bytes are an object beside the database.
CREATE TABLE fumehood_blob(
	sha256 BLOB PRIMARY KEY NOT NULL CHECK (length(sha256) = 32),
	size INTEGER NOT NULL,
	content BLOB CHECK (length(content) = size));

CREATE TABLE fumehood_output(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	path BLOB NOT NULL,
	sha256 BLOB NOT NULL REFERENCES fumehood_blob(sha256),
	size INTEGER NOT NULL,
	media_type TEXT NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

CREATE TABLE fumehood_rejected_output(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	path BLOB NOT NULL,
	reason TEXT NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

CREATE TABLE fumehood_input(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	path BLOB NOT NULL,
	source BLOB,
	sha256 BLOB NOT NULL,
	size INTEGER NOT NULL,
	mode INTEGER NOT NULL,
	from_analysis TEXT,
	from_attempt INTEGER,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;
CREATE INDEX fumehood_input_from ON fumehood_input(from_analysis, from_attempt) WHERE from_analysis IS NOT NULL;

CREATE TABLE fumehood_query(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	name TEXT NOT NULL,
	sql TEXT NOT NULL,
	sha256 BLOB,
	size INTEGER,
	row_count INTEGER,
	started_at INTEGER,
	duration_ms INTEGER,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

-- Rows that were posted are written down many at a time, since a tuple for each would cost as much as the rows themselves; the view
-- shows them one by one. They are JSON that was checked already. position is that of a chunk's first row.
CREATE TABLE fumehood_posted_chunk(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	target TEXT NOT NULL,
	row_count INTEGER NOT NULL,
	fields TEXT NOT NULL,
	posted_at INTEGER NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number));

CREATE VIEW fumehood_posted_row AS SELECT c.analysis_id, c.attempt, c.position + r.key AS position,
	c.target, r.value AS fields, c.posted_at FROM fumehood_posted_chunk c, json_each(c.fields) r;

-- target, errno, hint: what was denied, for people; the error that the analysis saw, by its name; and what would help. path: bytes, where it
-- is about a path. attempt.denials_more: how many were only counted. NULL: nobody listened, and that there is no row means nothing.
CREATE TABLE fumehood_denial(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	at INTEGER,
	layer TEXT NOT NULL,
	operation TEXT NOT NULL,
	path BLOB,
	count INTEGER NOT NULL,
	target TEXT,
	errno TEXT,
	hint TEXT,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

CREATE TABLE fumehood_sample(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	cpu_ms INTEGER,
	memory_bytes INTEGER,
	pids INTEGER,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

CREATE TABLE fumehood_log(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	stream TEXT NOT NULL,
	head BLOB NOT NULL,
	tail BLOB NOT NULL,
	omitted INTEGER NOT NULL,
	PRIMARY KEY (analysis_id, attempt, stream),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number));

CREATE TABLE fumehood_event(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	at INTEGER NOT NULL,
	stage TEXT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

-- The commands of an attempt that ran in a held workspace, one after the other; position 0 is the first. Their logs are in log, "stdout.1"
-- the first one's.
CREATE TABLE fumehood_step(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	position INTEGER NOT NULL,
	verdict TEXT,
	exit_code INTEGER,
	signal INTEGER,
	status INTEGER NOT NULL,
	started_at INTEGER,
	ended_at INTEGER,
	reason TEXT,
	usage TEXT,
	request TEXT,
	plan TEXT,
	receipt TEXT,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood_attempt(analysis_id, number)) WITHOUT ROWID;

-- An attempt that was removed. Its number is not given again, its token is not committed again, and what came from it, or what it came from
-- (tombstone_from), still has a name. attempt.pruned_at: its outputs were kept, its logs and the like were not.
CREATE TABLE fumehood_tombstone(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	owner TEXT NOT NULL,
	token TEXT NOT NULL UNIQUE,
	verdict TEXT,
	created_at INTEGER,
	removed_at INTEGER NOT NULL,
	PRIMARY KEY (analysis_id, attempt)) WITHOUT ROWID;

CREATE TABLE fumehood_tombstone_from(
	analysis_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	from_analysis TEXT NOT NULL,
	from_attempt INTEGER NOT NULL,
	PRIMARY KEY (analysis_id, attempt, from_analysis, from_attempt)) WITHOUT ROWID;
CREATE INDEX fumehood_tombstone_from_from ON fumehood_tombstone_from(from_analysis, from_attempt);

-- A content that something referred to which was removed; whether anything else does is for the sweep to find out (loose.c).
CREATE TABLE fumehood_blob_loose(sha256 BLOB PRIMARY KEY NOT NULL, sweep TEXT) WITHOUT ROWID;

-- Who takes from the queue, and when it was last heard of. queue.live: what an analysis had used by its worker's last heartbeat, as JSON.
CREATE TABLE fumehood_worker(
	id TEXT PRIMARY KEY NOT NULL,
	owner TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	engine TEXT NOT NULL,
	seats INTEGER NOT NULL,
	running INTEGER NOT NULL,
	state TEXT NOT NULL,
	version TEXT NOT NULL,
	started_at INTEGER NOT NULL,
	seen_at INTEGER NOT NULL,
	lease_ms INTEGER NOT NULL) WITHOUT ROWID;

-- Only what is queued, running or due is in an index by its state, so that what ended costs a claim nothing, however much of it there is.
-- Of leases there is none: those that run are few, and a heartbeat would have to move each in it; lease_ms is that of who holds the row. seq is
-- the order of submission. The index of what is ready has the sizes before the order, so that a claim steps over all that is too large for its
-- host at once; who was served last is found by an index, and with it who is next in line.
-- dispatcher: the worker that has claimed it to hand it over (handover.h), NULL: one that runs it itself. As long as it is the row's worker,
-- too, nobody has taken it. batch, batch_index: as what it was handed over. handle: what is known of it there, as JSON; attempt.engine: at the end.
CREATE TABLE fumehood_queue(
	seq INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	state TEXT NOT NULL CHECK (state IN ('waiting', 'queued', 'running', 'finished', 'cancelled')),
	submitter TEXT NOT NULL,
	priority INTEGER NOT NULL,
	retries INTEGER NOT NULL,
	retry_on INTEGER NOT NULL,
	again INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	request TEXT NOT NULL,
	inputs TEXT NOT NULL,
	memory_bytes INTEGER NOT NULL,
	cpus_milli INTEGER NOT NULL,
	submitted_at INTEGER NOT NULL,
	due_at INTEGER,
	attempt INTEGER NOT NULL,
	token TEXT,
	worker TEXT,
	lease_until INTEGER,
	cancelling INTEGER NOT NULL,
	verdict TEXT,
	status INTEGER,
	reason TEXT,
	owner TEXT NOT NULL DEFAULT %owner%,
	lease_ms INTEGER,
	live TEXT,
	dispatcher TEXT,
	batch TEXT,
	batch_index INTEGER,
	handle TEXT);
CREATE INDEX fumehood_queue_ready ON fumehood_queue(owner, submitter, priority DESC, memory_bytes,
	cpus_milli, seq) WHERE state = 'queued';
CREATE INDEX fumehood_queue_running ON fumehood_queue(owner, submitter) WHERE state = 'running';
CREATE INDEX fumehood_queue_open ON fumehood_queue(state, seq) WHERE state <> 'finished';
CREATE UNIQUE INDEX fumehood_queue_batch ON fumehood_queue(batch, batch_index) WHERE batch IS NOT NULL;
CREATE INDEX fumehood_queue_due ON fumehood_queue(due_at) WHERE state = 'waiting' AND due_at IS NOT NULL;

CREATE TABLE fumehood_queue_after(
	id TEXT NOT NULL,
	after TEXT NOT NULL,
	met INTEGER NOT NULL,
	PRIMARY KEY (id, after)) WITHOUT ROWID;
CREATE INDEX fumehood_queue_after_after ON fumehood_queue_after(after);

CREATE TABLE fumehood_queue_submitter(
	owner TEXT NOT NULL,
	submitter TEXT NOT NULL,
	served_at INTEGER,
	PRIMARY KEY (owner, submitter)) WITHOUT ROWID;
CREATE INDEX fumehood_queue_submitter_served ON fumehood_queue_submitter(served_at);
CREATE INDEX fumehood_queue_submitter_owner ON fumehood_queue_submitter(owner, served_at);

-- The ledger has an id of its own, and that of its object store, once there is one: the directory has both in its file id (store_id.h).
CREATE TABLE fumehood_store(
	one INTEGER PRIMARY KEY CHECK (one = 1),
	ledger_id TEXT NOT NULL,
	store_id TEXT,
	joined_at INTEGER,
	host TEXT,
	path BLOB);
INSERT INTO fumehood_store(one, ledger_id) VALUES (1, lower(hex(randomblob(16))));

-- Contents that nobody refers to yet, since the commit that they are for is still to come (commit_stage.c). PostgreSQL needs none.
CREATE TABLE fumehood_blob_staged(sha256 BLOB PRIMARY KEY NOT NULL) WITHOUT ROWID;
