-- The roles of a ledger in PostgreSQL, and what each may do: a script that `db init --roles` runs, and that every upgrade of a
-- ledger that has them runs again, in its transaction. It takes away what was granted before and grants anew, so that it may be
-- run any number of times, and a table that is new has its rules from the first moment.
--
--   fumehood_owner      has the tables, and with them everything
--   fumehood_worker     claims and commits. COPY is refused under row-level rules, so the role bypasses them; an attribute is
--                       not inherited, so a worker's connection becomes this role (postgres.c)
--   fumehood_reader     reads everything
--   fumehood_submitter  reads what is its own, and writes it through functions that run with the owner's rights: each checks
--                       what a row may say
--
-- Whose a row is says session_user, which SET ROLE does not change; as text, or no index by owner is used. A content is
-- readable for whom it came out of an analysis, and may be an input only of who has put its bytes: blob_put notes that,
-- since a digest alone proves nothing. Every name is written in full, and the functions have their own search_path.

DO $$
DECLARE
	r text;
BEGIN
	FOREACH r IN ARRAY ARRAY['fumehood_reader', 'fumehood_submitter', 'fumehood_worker', 'fumehood_owner'] LOOP
		IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r AND (rolcanlogin OR rolsuper)) THEN
			RAISE EXCEPTION 'the role % exists, and is none to be a member of', r;
		END IF;
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
			EXECUTE format('CREATE ROLE %I NOLOGIN', r);
		END IF;
	END LOOP;
	IF NOT (SELECT rolbypassrls FROM pg_roles WHERE rolname = 'fumehood_worker') THEN
		ALTER ROLE fumehood_worker BYPASSRLS;
	END IF;
END $$;

-- Who had the tables until now goes on having them, as a member.
DO $$
DECLARE
	had text;
	who text;
	c record;
BEGIN
	SELECT pg_get_userbyid(relowner) INTO had FROM pg_class WHERE oid = 'fumehood.queue'::regclass;
	FOREACH who IN ARRAY ARRAY[had, session_user::text] LOOP
		IF NOT pg_has_role(who, 'fumehood_owner', 'MEMBER') THEN
			EXECUTE format('GRANT fumehood_owner TO %I', who);
		END IF;
	END LOOP;

	CREATE TABLE IF NOT EXISTS fumehood.blob_put(
		owner text COLLATE "C" NOT NULL,
		sha256 bytea NOT NULL REFERENCES fumehood.blob(sha256) ON DELETE CASCADE,
		PRIMARY KEY (owner, sha256));
	CREATE INDEX IF NOT EXISTS output_sha256 ON fumehood.output(sha256);
	CREATE INDEX IF NOT EXISTS attempt_owner ON fumehood.attempt(owner, created_at, analysis_id);

	ALTER SCHEMA fumehood OWNER TO fumehood_owner;
	FOR c IN SELECT oid::regclass AS name FROM pg_class
		WHERE relnamespace = 'fumehood'::regnamespace AND relkind IN ('r', 'v') LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO fumehood_owner', c.name);
	END LOOP;
END $$;

-- What a submitter writes. An error whose state begins with FH is shown to the user as it is (pq.c).

CREATE OR REPLACE FUNCTION fumehood.put_blob(content bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF octet_length(content) > 16777216 THEN
		RAISE EXCEPTION USING ERRCODE = 'FH003', MESSAGE = 'an input of a submitter is 16 MiB at most';
	END IF;
	-- Until it is there, and held: a sweep may be about to take it.
	LOOP
		INSERT INTO fumehood.blob(sha256, size, content)
			VALUES (sha256(content), octet_length(content), content) ON CONFLICT DO NOTHING;
		PERFORM 1 FROM fumehood.blob_hold(ARRAY[sha256(content)]);
		EXIT WHEN FOUND;
	END LOOP;
	INSERT INTO fumehood.blob_put(owner, sha256) VALUES (session_user, sha256(content)) ON CONFLICT DO NOTHING;
END $$;

-- The columns of the table, as an array of JSON objects. A digest counts wherever it stands in them.
CREATE OR REPLACE FUNCTION fumehood.put_queue(jobs jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me constant text := session_user;
	taken text;
BEGIN
	IF EXISTS (SELECT 1 FROM jsonb_array_elements(jobs) j
		WHERE j->>'id' IS NULL OR (j->>'id') COLLATE "C" !~ '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$') THEN
		RAISE EXCEPTION USING ERRCODE = 'FH003', MESSAGE = 'an id is 1 to 128 letters, digits, dots, _ and -';
	END IF;
	IF EXISTS (SELECT 1 FROM jsonb_array_elements(jobs) j
		WHERE (j->>'priority')::int NOT BETWEEN -1000 AND 1000 OR (j->>'retries')::int NOT BETWEEN 0 AND 100
		OR (j->>'memory_bytes')::bigint < 0 OR (j->>'cpus_milli')::bigint < 0
		OR octet_length(j->>'submitter') > 1024) THEN
		RAISE EXCEPTION USING ERRCODE = 'FH003', MESSAGE = 'a number is out of its bounds';
	END IF;
	IF EXISTS (SELECT 1 FROM jsonb_array_elements(jobs) j WHERE octet_length(j::text) > 67108864) THEN
		RAISE EXCEPTION USING ERRCODE = 'FH003', MESSAGE = 'a submission is 64 MiB at most, without its contents';
	END IF;
	PERFORM 1 FROM fumehood.blob_hold(ARRAY(SELECT decode(p.sha256, 'hex') FROM (SELECT d #>> '{}' AS sha256
		FROM jsonb_path_query(jobs, '$.**.sha256') d) p WHERE p.sha256 ~ '^([0-9a-f][0-9a-f])*$'));
	IF EXISTS (SELECT 1 FROM jsonb_path_query(jobs, '$.**.sha256') d
		WHERE NOT EXISTS (SELECT 1 FROM fumehood.blob_put p
			WHERE p.owner = me AND p.sha256 = decode(d #>> '{}', 'hex'))) THEN
		RAISE EXCEPTION USING ERRCODE = 'FH002', MESSAGE = 'an input has a content that its submitter has not put';
	END IF;
	SELECT j->>'id' INTO taken FROM jsonb_array_elements(jobs) j
		WHERE EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = j->>'id')
		OR EXISTS (SELECT 1 FROM fumehood.analysis a WHERE a.id = j->>'id' AND a.owner <> me) LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'FH001',
			MESSAGE = format('cannot submit ''%s'': the name is taken; choose another', taken);
	END IF;
	-- One name is an analysis's or an array's, whosever they are. Not EXISTS: see sql.c.
	SELECT j->>'id' INTO taken FROM jsonb_array_elements(jobs) j
		WHERE (SELECT q.id FROM fumehood.queue q WHERE q.id > (j->>'id') || '.' AND q.id < (j->>'id') || '/'
			AND ltrim(substr(q.id, length(j->>'id') + 2), '0123456789') = '' ORDER BY q.id LIMIT 1) IS NOT NULL
		OR (SELECT a.id FROM fumehood.analysis a WHERE a.id > (j->>'id') || '.' AND a.id < (j->>'id') || '/'
			AND ltrim(substr(a.id, length(j->>'id') + 2), '0123456789') = '' ORDER BY a.id LIMIT 1) IS NOT NULL
		LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'FH001',
			MESSAGE = format('cannot submit ''%s'': there is an array of this name; choose another name', taken);
	END IF;
	SELECT n.name INTO taken FROM (SELECT DISTINCT substring(j->>'id' FROM '^(.+)[.][0-9]+$') AS name
			FROM jsonb_array_elements(jobs) j) n
		WHERE EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = n.name)
		OR EXISTS (SELECT 1 FROM fumehood.analysis a WHERE a.id = n.name)
		-- Another's array, which all has one owner: the first that there is tells.
		OR (SELECT q.owner FROM fumehood.queue q WHERE q.id > n.name || '.' AND q.id < n.name || '/'
			AND ltrim(substr(q.id, length(n.name) + 2), '0123456789') = '' ORDER BY q.id LIMIT 1) <> me
		OR (SELECT a.owner FROM fumehood.analysis a WHERE a.id > n.name || '.' AND a.id < n.name || '/'
			AND ltrim(substr(a.id, length(n.name) + 2), '0123456789') = '' ORDER BY a.id LIMIT 1) <> me LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'FH001',
			MESSAGE = format('cannot submit a task of the array ''%s'': the name is taken; '
				'choose another name', taken);
	END IF;
	-- Of one whose row was removed, and that came after something then.
	DELETE FROM fumehood.queue_after WHERE id IN (SELECT j->>'id' FROM jsonb_array_elements(jobs) j);
	INSERT INTO fumehood.queue_submitter(owner, submitter)
		SELECT DISTINCT me, j->>'submitter' FROM jsonb_array_elements(jobs) j ON CONFLICT DO NOTHING;
	INSERT INTO fumehood.queue(id, state, submitter, priority, retries, retry_on, again, tries, request, inputs,
			memory_bytes, cpus_milli, submitted_at, attempt, cancelling)
		SELECT j.id, CASE j.state WHEN 'waiting' THEN 'waiting' ELSE 'queued' END, j.submitter, j.priority,
			j.retries, j.retry_on, j.again, 0, j.request, j.inputs, j.memory_bytes, j.cpus_milli,
			j.submitted_at, 0, false
		FROM ROWS FROM (jsonb_to_recordset(jobs) AS (id text, state text, submitter text, priority int,
			retries int, retry_on int, again bool, request jsonb, inputs jsonb, memory_bytes bigint,
			cpus_milli bigint, submitted_at timestamptz)) WITH ORDINALITY j ORDER BY j.ordinality;
END $$;

-- Another's is what nobody knows.
CREATE OR REPLACE FUNCTION fumehood.put_queue_after(pairs jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me constant text := session_user;
BEGIN
	IF EXISTS (SELECT 1 FROM jsonb_array_elements(pairs) p
		WHERE NOT EXISTS (SELECT 1 FROM fumehood.queue q
			WHERE q.id = p->>'id' AND q.owner = me AND q.state IN ('waiting', 'queued'))
		OR NOT (EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = p->>'after' AND q.owner = me)
			OR EXISTS (SELECT 1 FROM fumehood.analysis a WHERE a.id = p->>'after' AND a.owner = me)
			OR EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id > (p->>'after') || '.'
				AND q.id < (p->>'after') || '/' AND q.owner = me)
			OR EXISTS (SELECT 1 FROM fumehood.analysis a WHERE a.id > (p->>'after') || '.'
				AND a.id < (p->>'after') || '/' AND a.owner = me))) THEN
		RAISE EXCEPTION USING ERRCODE = 'FH003', MESSAGE = 'one comes after another, which nobody knows';
	END IF;
	INSERT INTO fumehood.queue_after(id, after, met)
		SELECT p.id, p.after, p.met FROM jsonb_to_recordset(pairs) AS p(id text, after text, met bool);
END $$;

CREATE OR REPLACE FUNCTION fumehood.queue_cancel(ids jsonb, why text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	UPDATE fumehood.queue SET state = 'cancelled', due_at = NULL, reason = left(why, 1000)
		WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(ids))) AND owner = session_user::text
		AND state IN ('waiting', 'queued', 'restored');
END $$;

CREATE OR REPLACE FUNCTION fumehood.queue_cancelling(which text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	UPDATE fumehood.queue SET cancelling = true
		WHERE id = which AND owner = session_user::text AND state = 'running';
END $$;

CREATE OR REPLACE FUNCTION fumehood.queue_again(which text, wanted text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	-- Who may start at once has waited for all; that is its submitter's to say, who might have named nobody.
	UPDATE fumehood.queue_after a SET met = true WHERE a.id = which AND NOT a.met
		AND EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = which AND q.owner = session_user::text
			AND q.state IN ('finished', 'cancelled', 'restored'))
		AND (wanted = 'queued' OR (NOT EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = a.after)
		AND (SELECT t.verdict = 'succeeded' AND t.owner = session_user::text FROM fumehood.attempt t
			WHERE t.analysis_id = a.after ORDER BY t.number DESC LIMIT 1)));
	UPDATE fumehood.queue SET state = CASE wanted WHEN 'waiting' THEN 'waiting' ELSE 'queued' END, tries = 0,
			cancelling = false, verdict = NULL, status = NULL, reason = NULL, due_at = NULL, worker = NULL,
			token = NULL
		WHERE id = which AND owner = session_user::text
		AND state IN ('finished', 'cancelled', 'restored') AND verdict IS DISTINCT FROM 'succeeded';
END $$;

CREATE OR REPLACE FUNCTION fumehood.queue_forget(ids jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	WITH gone AS (DELETE FROM fumehood.queue WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text(ids)))
			AND owner = session_user::text AND state IN ('finished', 'cancelled') RETURNING id)
		DELETE FROM fumehood.queue_after WHERE id IN (SELECT g.id FROM gone g);
END $$;

-- Its own, of what has ended; another's is passed by, as what nobody knows.
CREATE OR REPLACE FUNCTION fumehood.remove_own(list jsonb, keep boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM fumehood.remove_attempts(coalesce((SELECT jsonb_agg(e) FROM jsonb_array_elements(list) e
		WHERE EXISTS (SELECT 1 FROM fumehood.attempt a WHERE a.analysis_id = e->>0 AND a.number = (e->>1)::integer
			AND a.owner = session_user::text)
		OR ((e->>1)::integer <= 0 AND EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = e->>0
			AND q.owner = session_user::text))), '[]'), keep);
END $$;

DO $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'fumehood'::regnamespace LOOP
		EXECUTE format('ALTER FUNCTION %s OWNER TO fumehood_owner', c.name);
	END LOOP;
END $$;

-- Rights. PUBLIC's are the default for functions.

REVOKE ALL ON SCHEMA fumehood FROM PUBLIC, fumehood_reader, fumehood_worker, fumehood_submitter;
REVOKE ALL ON ALL TABLES IN SCHEMA fumehood FROM PUBLIC, fumehood_reader, fumehood_worker, fumehood_submitter;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fumehood FROM PUBLIC, fumehood_reader, fumehood_worker, fumehood_submitter;
GRANT USAGE ON SCHEMA fumehood TO fumehood_reader, fumehood_worker, fumehood_submitter;
GRANT SELECT ON fumehood.schema_version TO fumehood_reader, fumehood_worker, fumehood_submitter;

-- Each table has its rule here, or nobody but a worker and the owner sees a row of it. What `output` shows is the submitter's
-- own; that a file may be empty is no secret.
DO $$
DECLARE
	c record;
	own text;
BEGIN
	FOR c IN SELECT relname AS name FROM pg_class
		WHERE relnamespace = 'fumehood'::regnamespace AND relkind = 'r' AND relname <> 'schema_version' LOOP
		own := CASE
			WHEN c.name IN ('analysis', 'attempt', 'queue', 'queue_submitter', 'blob_put', 'tombstone') THEN
				'owner = session_user::text'
			WHEN c.name IN ('output', 'rejected_output', 'input', 'query', 'posted_chunk', 'denial', 'sample', 'step', 'log',
					'event') THEN
				format('EXISTS (SELECT 1 FROM fumehood.attempt a WHERE a.analysis_id = %1$I.analysis_id '
					'AND a.number = %1$I.attempt AND a.owner = session_user::text)', c.name)
			WHEN c.name = 'queue_after' THEN
				'EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = queue_after.id '
					'AND q.owner = session_user::text)'
			WHEN c.name = 'blob' THEN
				'size = 0 OR EXISTS (SELECT 1 FROM fumehood.output o WHERE o.sha256 = blob.sha256)'
			WHEN c.name = 'tombstone_from' THEN
				'EXISTS (SELECT 1 FROM fumehood.tombstone t WHERE t.analysis_id = tombstone_from.analysis_id '
					'AND t.attempt = tombstone_from.attempt AND t.owner = session_user::text)'
			-- Whether there is anybody who would run it is every submitter's business.
			WHEN c.name IN ('store', 'worker') THEN 'true'
			WHEN c.name IN ('object', 'object_chunk') THEN
				format('EXISTS (SELECT 1 FROM fumehood.output o WHERE o.sha256 = %I.sha256)', c.name)
			ELSE 'false' END;
		EXECUTE format('ALTER TABLE fumehood.%I ENABLE ROW LEVEL SECURITY', c.name);
		EXECUTE format('DROP POLICY IF EXISTS reader ON fumehood.%I', c.name);
		EXECUTE format('DROP POLICY IF EXISTS submitter ON fumehood.%I', c.name);
		EXECUTE format('CREATE POLICY reader ON fumehood.%I FOR SELECT TO fumehood_reader USING (true)', c.name);
		EXECUTE format('CREATE POLICY submitter ON fumehood.%I FOR SELECT TO fumehood_submitter USING (%s)', c.name, own);
		EXECUTE format('GRANT SELECT ON fumehood.%I TO fumehood_reader, fumehood_worker, fumehood_submitter', c.name);
	END LOOP;
END $$;

-- To lock a row one must be able to write some of it; but who may write, or delete from, a whole table may lock it all.
DROP POLICY IF EXISTS submitter_locks ON fumehood.queue;
CREATE POLICY submitter_locks ON fumehood.queue FOR UPDATE TO fumehood_submitter USING (owner = session_user::text);
GRANT UPDATE (reason) ON fumehood.queue TO fumehood_submitter;
GRANT EXECUTE ON FUNCTION fumehood.put_blob(bytea), fumehood.put_queue(jsonb), fumehood.put_queue_after(jsonb),
	fumehood.queue_cancel(jsonb, text), fumehood.queue_cancelling(text), fumehood.queue_again(text, text),
	fumehood.queue_forget(jsonb), fumehood.remove_own(jsonb, boolean) TO fumehood_submitter;

-- What is committed is changed only where its rows are posted again. A worker submits under its own name, too. The row of
-- schema_version is locked where claims take turns.
GRANT INSERT ON fumehood.analysis, fumehood.attempt, fumehood.blob, fumehood.object, fumehood.object_chunk, fumehood.output, fumehood.rejected_output, fumehood.input,
	fumehood.query, fumehood.posted_chunk, fumehood.denial, fumehood.sample, fumehood.step, fumehood.log, fumehood.event, fumehood.queue,
	fumehood.queue_after, fumehood.queue_submitter TO fumehood_worker;
GRANT UPDATE (fumehood) ON fumehood.schema_version TO fumehood_worker;
GRANT UPDATE (id) ON fumehood.analysis TO fumehood_worker;
-- To lock what it is about to refer to. Only what nobody refers to can be removed, by a function.
GRANT UPDATE (put_at) ON fumehood.object TO fumehood_worker;
GRANT EXECUTE ON FUNCTION fumehood.object_sweep(interval), fumehood.blob_hold(bytea[]), fumehood.blob_sweep(text, bytea[]),
	fumehood.remove_attempts(jsonb, boolean) TO fumehood_worker;
GRANT UPDATE (sweep), DELETE ON fumehood.blob_loose TO fumehood_worker;
GRANT UPDATE (verdict, status, reason) ON fumehood.attempt TO fumehood_worker;
GRANT UPDATE (state, tries, due_at, attempt, token, worker, lease_until, lease_ms, cancelling, verdict, status, reason), DELETE
	ON fumehood.queue TO fumehood_worker;
GRANT UPDATE (met), DELETE ON fumehood.queue_after TO fumehood_worker;
GRANT UPDATE (served_at) ON fumehood.queue_submitter TO fumehood_worker;
GRANT DELETE ON fumehood.posted_chunk TO fumehood_worker;
GRANT INSERT, UPDATE, DELETE ON fumehood.worker TO fumehood_worker;
GRANT UPDATE (live, dispatcher, batch, batch_index, handle) ON fumehood.queue TO fumehood_worker;
GRANT UPDATE (store_id, joined_at, host, path) ON fumehood.store TO fumehood_worker;

-- A view has its owner's rights, unless it is told otherwise, which it can be from PostgreSQL 15 on. Rows that the database
-- does not take are looked for in a temporary table.
GRANT SELECT ON fumehood.posted_row TO fumehood_reader, fumehood_worker;
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 150000 THEN
		EXECUTE 'ALTER VIEW fumehood.posted_row SET (security_invoker = true)';
		EXECUTE 'GRANT SELECT ON fumehood.posted_row TO fumehood_submitter';
	END IF;
	EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO fumehood_worker', current_database());
END $$;
