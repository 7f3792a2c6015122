-- The same tables in PostgreSQL: what they are for stands in schema_sqlite.sql.
-- The owner is an identity that the submitter cannot choose: the role that has logged in, which the server writes, whatever an INSERT says.

CREATE TABLE fumehood.schema_version(
	version integer PRIMARY KEY,
	applied_at timestamptz NOT NULL,
	fumehood text NOT NULL);

CREATE TABLE fumehood.analysis(
	id text COLLATE "C" PRIMARY KEY,
	created_at timestamptz NOT NULL,
	owner text COLLATE "C" NOT NULL DEFAULT session_user::text);

CREATE TABLE fumehood.attempt(
	analysis_id text COLLATE "C" NOT NULL REFERENCES fumehood.analysis(id),
	number integer NOT NULL CHECK (number > 0),
	token text NOT NULL UNIQUE,
	verdict text,
	exit_code integer,
	signal integer,
	status integer NOT NULL,
	created_at timestamptz,
	started_at timestamptz,
	ended_at timestamptz,
	workspace bytea,
	kept boolean NOT NULL,
	host text,
	reason text,
	usage jsonb,
	error_stage text,
	error_code text,
	error_message text,
	request jsonb,
	plan jsonb,
	receipt jsonb,
	result jsonb,
	missing jsonb,
	present jsonb,
	rejected_more bigint NOT NULL,
	sample_interval_ms bigint,
	committed_at timestamptz NOT NULL,
	owner text COLLATE "C" NOT NULL DEFAULT session_user::text,
	pruned_at timestamptz,
	denials_more bigint,
	engine jsonb,
	PRIMARY KEY (analysis_id, number));
CREATE INDEX attempt_created ON fumehood.attempt(created_at);
CREATE INDEX attempt_verdict ON fumehood.attempt(verdict, created_at);

CREATE TABLE fumehood.blob(
	sha256 bytea PRIMARY KEY CHECK (octet_length(sha256) = 32),
	size bigint NOT NULL,
	content bytea CHECK (octet_length(content) = size));
ALTER TABLE fumehood.blob ALTER COLUMN content SET STORAGE EXTERNAL;

-- No foreign keys: PostgreSQL would look up both for each of thousands of rows, a quarter of the whole commit. A commit writes all three
-- tables or none, and the check compares them.
CREATE TABLE fumehood.output(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	path bytea NOT NULL,
	sha256 bytea NOT NULL,
	size bigint NOT NULL,
	media_type text NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position));

CREATE TABLE fumehood.rejected_output(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	path bytea NOT NULL,
	reason text NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.input(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	path bytea NOT NULL,
	source bytea,
	sha256 bytea NOT NULL,
	size bigint NOT NULL,
	mode integer NOT NULL,
	from_analysis text COLLATE "C",
	from_attempt integer,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));
CREATE INDEX input_from ON fumehood.input(from_analysis, from_attempt) WHERE from_analysis IS NOT NULL;

CREATE TABLE fumehood.query(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	name text NOT NULL,
	sql text NOT NULL,
	sha256 bytea,
	size bigint,
	row_count bigint,
	started_at timestamptz,
	duration_ms bigint,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.posted_chunk(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	target text NOT NULL,
	row_count integer NOT NULL,
	fields text NOT NULL,
	posted_at timestamptz NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));
ALTER TABLE fumehood.posted_chunk ALTER COLUMN fields SET STORAGE EXTERNAL;

CREATE VIEW fumehood.posted_row AS SELECT c.analysis_id, c.attempt,
	(c.position + r.n - 1)::integer AS position, c.target, r.fields::jsonb AS fields, c.posted_at
	FROM fumehood.posted_chunk c, json_array_elements(c.fields::json) WITH ORDINALITY AS r(fields, n);

CREATE TABLE fumehood.denial(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	at timestamptz,
	layer text NOT NULL,
	operation text NOT NULL,
	path bytea,
	count bigint NOT NULL,
	target text,
	errno text,
	hint text,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.sample(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	at_ms bigint NOT NULL,
	cpu_ms bigint,
	memory_bytes bigint,
	pids bigint,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.log(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	stream text NOT NULL,
	head bytea NOT NULL,
	tail bytea NOT NULL,
	omitted bigint NOT NULL,
	PRIMARY KEY (analysis_id, attempt, stream),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.event(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	at timestamptz NOT NULL,
	stage text NOT NULL,
	text text NOT NULL,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.step(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	position integer NOT NULL,
	verdict text,
	exit_code integer,
	signal integer,
	status integer NOT NULL,
	started_at timestamptz,
	ended_at timestamptz,
	reason text,
	usage jsonb,
	request jsonb,
	plan jsonb,
	receipt jsonb,
	PRIMARY KEY (analysis_id, attempt, position),
	FOREIGN KEY (analysis_id, attempt) REFERENCES fumehood.attempt(analysis_id, number));

CREATE TABLE fumehood.tombstone(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	owner text COLLATE "C" NOT NULL,
	token text NOT NULL UNIQUE,
	verdict text,
	created_at timestamptz,
	removed_at timestamptz NOT NULL,
	PRIMARY KEY (analysis_id, attempt));

CREATE TABLE fumehood.tombstone_from(
	analysis_id text COLLATE "C" NOT NULL,
	attempt integer NOT NULL,
	from_analysis text COLLATE "C" NOT NULL,
	from_attempt integer NOT NULL,
	PRIMARY KEY (analysis_id, attempt, from_analysis, from_attempt));
CREATE INDEX tombstone_from_from ON fumehood.tombstone_from(from_analysis, from_attempt);

CREATE TABLE fumehood.blob_loose(sha256 bytea PRIMARY KEY, sweep text);

-- What removes runs with the owner's rights, so that who may remove an attempt cannot tear one; SQLite has the same as a script (sql_remove.c).
-- blob_hold: these contents, as far as they are there, stay until the end of the transaction, and are loose no more. blob_loosen: marks them,
-- but for those that somebody holds at this moment. blob_sweep: removes those that are still marked by this round. remove_attempts: a list of
-- [id, number]; number 0 is only the row of the queue, if the analysis has no attempt any more, and -1 that row in any case. What has not
-- ended in the queue is passed by.
CREATE FUNCTION fumehood.blob_hold(digests bytea[]) RETURNS TABLE(digest bytea, is_object boolean) LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	RETURN QUERY SELECT b.sha256, b.content IS NULL FROM fumehood.blob b WHERE b.sha256 = ANY (digests)
		ORDER BY b.sha256 FOR KEY SHARE;
	DELETE FROM fumehood.blob_loose l WHERE l.sha256 = ANY (digests);
END $$;

CREATE FUNCTION fumehood.blob_loosen(digests bytea[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	INSERT INTO fumehood.blob_loose(sha256) SELECT h.sha256 FROM (SELECT b.sha256 FROM fumehood.blob b
		WHERE b.sha256 = ANY (digests) ORDER BY b.sha256 FOR UPDATE SKIP LOCKED) h
		ORDER BY h.sha256 ON CONFLICT (sha256) DO UPDATE SET sweep = NULL;
END $$;

CREATE FUNCTION fumehood.blob_sweep(round text, digests bytea[]) RETURNS TABLE(n bigint, bytes bigint) LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ DECLARE held bytea[]; gone bytea[]; BEGIN
	held := ARRAY(SELECT b.sha256 FROM fumehood.blob b WHERE b.sha256 = ANY (digests)
		ORDER BY b.sha256 FOR UPDATE SKIP LOCKED);
	WITH g AS (DELETE FROM fumehood.blob_loose l WHERE l.sha256 = ANY (held) AND l.sweep = round
		RETURNING l.sha256) SELECT array_agg(g.sha256) INTO gone FROM g;
	RETURN QUERY WITH d AS (DELETE FROM fumehood.blob b WHERE b.sha256 = ANY (gone) RETURNING b.size)
		SELECT count(*), coalesce(sum(d.size), 0)::bigint FROM d;
END $$;

CREATE FUNCTION fumehood.remove_attempts(list jsonb, keep boolean) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ DECLARE a text[]; n integer[]; ended text[]; name text; BEGIN
	SELECT array_agg(e->>0), array_agg((e->>1)::integer) INTO a, n FROM jsonb_array_elements(list) e
		WHERE NOT EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = e->>0
			AND q.state NOT IN ('finished', 'cancelled'));
	IF a IS NULL THEN RETURN; END IF;
	PERFORM 1 FROM fumehood.analysis x WHERE x.id = ANY (a) ORDER BY x.id FOR UPDATE;
	PERFORM fumehood.blob_loosen(ARRAY(
		SELECT t.sha256 FROM fumehood.output t, unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr
			AND NOT keep UNION
		SELECT t.sha256 FROM fumehood.input t, unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr UNION
		SELECT t.sha256 FROM fumehood.query t, unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr));
	IF NOT keep THEN
		INSERT INTO fumehood.tombstone(analysis_id, attempt, owner, token, verdict, created_at, removed_at)
			SELECT t.analysis_id, t.number, t.owner, t.token, t.verdict, t.created_at, clock_timestamp()
			FROM fumehood.attempt t, unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.number = v.nr;
		INSERT INTO fumehood.tombstone_from(analysis_id, attempt, from_analysis, from_attempt)
			SELECT DISTINCT t.analysis_id, t.attempt, t.from_analysis, t.from_attempt FROM fumehood.input t,
			unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr AND t.from_analysis IS NOT NULL AND t.from_attempt IS NOT NULL;
	END IF;
	FOREACH name IN ARRAY ARRAY['log', 'sample', 'event', 'rejected_output', 'denial', 'query'] LOOP
		EXECUTE format('DELETE FROM fumehood.%I t USING unnest($1, $2) v(id, nr)
			WHERE t.analysis_id = v.id AND t.attempt = v.nr', name) USING a, n;
	END LOOP;
	DELETE FROM fumehood.input t USING unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr
		AND (NOT keep OR t.from_analysis IS NULL);
	IF keep THEN
		UPDATE fumehood.attempt t SET pruned_at = clock_timestamp() FROM unnest(a, n) v(id, nr)
			WHERE t.analysis_id = v.id AND t.number = v.nr;
	ELSE
		DELETE FROM fumehood.output t USING unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr;
		DELETE FROM fumehood.posted_chunk t USING unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr;
		DELETE FROM fumehood.step t USING unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr;
		DELETE FROM fumehood.attempt t USING unnest(a, n) v(id, nr)
			WHERE t.analysis_id = v.id AND t.number = v.nr;
		DELETE FROM fumehood.analysis x WHERE x.id = ANY (a)
			AND NOT EXISTS (SELECT 1 FROM fumehood.attempt t WHERE t.analysis_id = x.id);
	END IF;
	ended := ARRAY(SELECT q.id FROM fumehood.queue q WHERE q.id IN (SELECT v.id FROM unnest(a, n) v(id, nr)
		WHERE v.nr = -1 OR NOT EXISTS (SELECT 1 FROM fumehood.attempt t WHERE t.analysis_id = v.id))
		AND q.state IN ('finished', 'cancelled') ORDER BY q.id FOR UPDATE);
	PERFORM fumehood.blob_loosen(ARRAY(SELECT DISTINCT decode(d #>> '{}', 'hex') FROM fumehood.queue q,
		jsonb_path_query(q.inputs, '$.**.sha256') d WHERE q.id = ANY (ended)));
	DELETE FROM fumehood.queue_after x WHERE x.id = ANY (ended);
	DELETE FROM fumehood.queue q WHERE q.id = ANY (ended);
END $$;
REVOKE ALL ON FUNCTION fumehood.blob_loosen(bytea[]), fumehood.blob_sweep(text, bytea[]),
	fumehood.remove_attempts(jsonb, boolean) FROM PUBLIC;

CREATE TABLE fumehood.worker(
	id text COLLATE "C" PRIMARY KEY,
	owner text COLLATE "C" NOT NULL DEFAULT session_user::text,
	host text NOT NULL,
	pid integer NOT NULL,
	engine text NOT NULL,
	seats integer NOT NULL,
	running integer NOT NULL,
	state text NOT NULL,
	version text NOT NULL,
	started_at timestamptz NOT NULL,
	seen_at timestamptz NOT NULL,
	lease_ms bigint NOT NULL) WITH (fillfactor = 50);

-- Room is left in each page, so that a heartbeat writes a row's next version beside it and touches no index.
CREATE TABLE fumehood.queue(
	seq bigint GENERATED ALWAYS AS IDENTITY,
	id text COLLATE "C" PRIMARY KEY,
	state text NOT NULL CHECK (state IN ('waiting', 'queued', 'running', 'finished', 'cancelled')),
	submitter text COLLATE "C" NOT NULL,
	priority integer NOT NULL,
	retries integer NOT NULL,
	retry_on integer NOT NULL,
	again boolean NOT NULL,
	tries integer NOT NULL,
	request jsonb NOT NULL,
	inputs jsonb NOT NULL,
	memory_bytes bigint NOT NULL,
	cpus_milli bigint NOT NULL,
	submitted_at timestamptz NOT NULL,
	due_at timestamptz,
	attempt integer NOT NULL,
	token text,
	worker text,
	lease_until timestamptz,
	cancelling boolean NOT NULL,
	verdict text,
	status integer,
	reason text,
	owner text COLLATE "C" NOT NULL DEFAULT session_user::text,
	lease_ms bigint,
	live jsonb,
	dispatcher text,
	batch text COLLATE "C",
	batch_index integer,
	handle jsonb) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX queue_ready ON fumehood.queue(owner, submitter, priority DESC, memory_bytes, cpus_milli, seq)
	WHERE state = 'queued';
CREATE INDEX queue_running ON fumehood.queue(owner, submitter) WHERE state = 'running';
CREATE INDEX queue_open ON fumehood.queue(state, seq) WHERE state <> 'finished';
CREATE UNIQUE INDEX queue_batch ON fumehood.queue(batch, batch_index) WHERE batch IS NOT NULL;
CREATE INDEX queue_due ON fumehood.queue(due_at) WHERE state = 'waiting' AND due_at IS NOT NULL;

CREATE TABLE fumehood.queue_after(
	id text COLLATE "C" NOT NULL,
	after text COLLATE "C" NOT NULL,
	met boolean NOT NULL,
	PRIMARY KEY (id, after));
CREATE INDEX queue_after_after ON fumehood.queue_after(after);

CREATE TABLE fumehood.queue_submitter(
	submitter text COLLATE "C" NOT NULL,
	served_at timestamptz,
	owner text COLLATE "C" NOT NULL DEFAULT session_user::text,
	PRIMARY KEY (owner, submitter));
CREATE INDEX queue_submitter_served ON fumehood.queue_submitter(served_at);
CREATE INDEX queue_submitter_owner ON fumehood.queue_submitter(owner, served_at);

-- An attempt is whose the submission was that its token was given to; without one, it is whose connection commits it. Those with a definer's
-- rights: whoever may add an attempt need not be able to read the queue. Thousands are submitted at once, mostly by who claims to be nobody else.
CREATE FUNCTION fumehood.owner_is_session() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN NEW.owner := session_user; RETURN NEW; END $$;

CREATE FUNCTION fumehood.owner_is_submission() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	NEW.owner := coalesce((SELECT q.owner FROM fumehood.queue q
		WHERE q.id = NEW.analysis_id AND q.token = NEW.token), session_user);
	RETURN NEW; END $$;

CREATE FUNCTION fumehood.owner_is_queue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	NEW.owner := coalesce((SELECT q.owner FROM fumehood.queue q WHERE q.id = NEW.id), session_user);
	RETURN NEW; END $$;

CREATE FUNCTION fumehood.owner_keep() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp AS $$ BEGIN NEW.owner := OLD.owner; RETURN NEW; END $$;
CREATE TRIGGER owner_made BEFORE INSERT ON fumehood.queue
	FOR EACH ROW WHEN (NEW.owner IS DISTINCT FROM session_user::text) EXECUTE FUNCTION fumehood.owner_is_session();
CREATE TRIGGER owner_kept BEFORE UPDATE OF owner ON fumehood.queue
	FOR EACH ROW EXECUTE FUNCTION fumehood.owner_keep();
CREATE TRIGGER owner_made BEFORE INSERT ON fumehood.attempt FOR EACH ROW EXECUTE FUNCTION fumehood.owner_is_submission();
CREATE TRIGGER owner_kept BEFORE UPDATE OF owner ON fumehood.attempt
	FOR EACH ROW EXECUTE FUNCTION fumehood.owner_keep();
CREATE TRIGGER owner_made BEFORE INSERT ON fumehood.analysis FOR EACH ROW EXECUTE FUNCTION fumehood.owner_is_queue();
CREATE TRIGGER owner_kept BEFORE UPDATE OF owner ON fumehood.analysis
	FOR EACH ROW EXECUTE FUNCTION fumehood.owner_keep();

CREATE TABLE fumehood.store(
	one integer PRIMARY KEY CHECK (one = 1),
	ledger_id text NOT NULL,
	store_id text,
	joined_at timestamptz,
	host text,
	path bytea);
INSERT INTO fumehood.store(one, ledger_id) VALUES (1, replace(gen_random_uuid()::text, '-', ''));

-- Large contents in PostgreSQL itself (chunks.h): a content is a row of object with rows of object_chunk, all written by one transaction. What
-- refers to it is a row of blob without bytes, as for an object in a directory. Chunks are not compressed: outputs mostly are already.
CREATE TABLE fumehood.object(
	sha256 bytea PRIMARY KEY CHECK (octet_length(sha256) = 32),
	put_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE fumehood.object_chunk(
	sha256 bytea NOT NULL REFERENCES fumehood.object(sha256) ON DELETE CASCADE,
	position integer NOT NULL CHECK (position >= 0),
	bytes bytea NOT NULL,
	PRIMARY KEY (sha256, position));
ALTER TABLE fumehood.object_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Removes some that nobody refers to and that were put before the time given; how many is the answer. A definer's: who may add contents need
-- not be able to remove any that is referred to. A row is locked first, and looked at again then: a commit that was about to refer to it
-- either has done so by now, or waits for us and finds it gone (commit.c).
CREATE FUNCTION fumehood.object_sweep(older interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$ DECLARE orphans bytea[]; n bigint; BEGIN
	orphans := ARRAY(SELECT o.sha256 FROM fumehood.object o WHERE o.put_at < clock_timestamp() - older
		AND NOT EXISTS (SELECT 1 FROM fumehood.blob b WHERE b.sha256 = o.sha256)
		ORDER BY o.sha256 LIMIT 16 FOR UPDATE OF o SKIP LOCKED);
	DELETE FROM fumehood.object o WHERE o.sha256 = ANY (orphans)
		AND NOT EXISTS (SELECT 1 FROM fumehood.blob b WHERE b.sha256 = o.sha256);
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n; END $$;
REVOKE ALL ON FUNCTION fumehood.object_sweep(interval) FROM PUBLIC;
