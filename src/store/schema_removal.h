/*
 * Version 6, what removes (schema_week.c puts it together): functions of PostgreSQL, which run with the owner's rights, so that who
 * may remove an attempt cannot tear one. SQLite has the same as a script (sql_remove.c).
 *
 * blob_hold: these contents, as far as they are there, stay until the end of the transaction, and are loose no more. blob_loosen: marks
 * them, but for those that somebody holds at this moment. blob_sweep: removes those that are still marked by this round.
 * remove_attempts: a list of [id, number]; number 0 is only the row of the queue, if the analysis has no attempt any more, and -1
 * that row in any case. What has not ended in the queue is passed by.
 */
#ifndef STORE_SCHEMA_REMOVAL_H
#define STORE_SCHEMA_REMOVAL_H

#define DEFINER " SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ "

#define VERSION_6_BLOBS_POSTGRES                                                                                 \
	"CREATE FUNCTION fumehood.blob_hold(digests bytea[]) RETURNS TABLE(digest bytea, is_object boolean)"     \
	" LANGUAGE plpgsql" DEFINER "BEGIN"                                                                      \
	"	RETURN QUERY SELECT b.sha256, b.content IS NULL FROM fumehood.blob b WHERE b.sha256 = ANY (digests)"   \
	"		ORDER BY b.sha256 FOR KEY SHARE;"                                                                     \
	"	DELETE FROM fumehood.blob_loose l WHERE l.sha256 = ANY (digests);"                                     \
	"END $$;"                                                                                                \
	"CREATE FUNCTION fumehood.blob_loosen(digests bytea[]) RETURNS void LANGUAGE plpgsql" DEFINER            \
	"BEGIN"                                                                                                  \
	"	INSERT INTO fumehood.blob_loose(sha256) SELECT h.sha256 FROM (SELECT b.sha256 FROM fumehood.blob b"    \
	"		WHERE b.sha256 = ANY (digests) ORDER BY b.sha256 FOR UPDATE SKIP LOCKED) h"                           \
	"		ORDER BY h.sha256 ON CONFLICT (sha256) DO UPDATE SET sweep = NULL;"                                   \
	"END $$;"                                                                                                \
	"CREATE FUNCTION fumehood.blob_sweep(round text, digests bytea[]) RETURNS TABLE(n bigint, bytes bigint)" \
	" LANGUAGE plpgsql" DEFINER "DECLARE held bytea[]; gone bytea[]; BEGIN"                                  \
	"	held := ARRAY(SELECT b.sha256 FROM fumehood.blob b WHERE b.sha256 = ANY (digests)"                     \
	"		ORDER BY b.sha256 FOR UPDATE SKIP LOCKED);"                                                           \
	"	WITH g AS (DELETE FROM fumehood.blob_loose l WHERE l.sha256 = ANY (held) AND l.sweep = round"          \
	"		RETURNING l.sha256) SELECT array_agg(g.sha256) INTO gone FROM g;"                                     \
	"	RETURN QUERY WITH d AS (DELETE FROM fumehood.blob b WHERE b.sha256 = ANY (gone) RETURNING b.size)"     \
	"		SELECT count(*), coalesce(sum(d.size), 0)::bigint FROM d;"                                            \
	"END $$;"

#define OF_VICTIMS "unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.attempt = v.nr"

#define VERSION_6_REMOVAL_POSTGRES                                                                                                            \
	VERSION_6_BLOBS_POSTGRES                                                                                                              \
	"CREATE FUNCTION fumehood.remove_attempts(list jsonb, keep boolean) RETURNS void LANGUAGE plpgsql" DEFINER                            \
	"DECLARE a text[]; n integer[]; ended text[]; name text; BEGIN"                                                                       \
	"	SELECT array_agg(e->>0), array_agg((e->>1)::integer) INTO a, n FROM jsonb_array_elements(list) e"                                   \
	"		WHERE NOT EXISTS (SELECT 1 FROM fumehood.queue q WHERE q.id = e->>0"                                                               \
	"			AND q.state NOT IN ('finished', 'cancelled'));"                                                                                   \
	"	IF a IS NULL THEN RETURN; END IF;"                                                                                                  \
	"	PERFORM 1 FROM fumehood.analysis x WHERE x.id = ANY (a) ORDER BY x.id FOR UPDATE;"                                                  \
	"	PERFORM fumehood.blob_loosen(ARRAY("                                                                                                \
	"		SELECT t.sha256 FROM fumehood.output t, " OF_VICTIMS " AND NOT keep UNION"                                            \
	"		SELECT t.sha256 FROM fumehood.input t, " OF_VICTIMS " UNION"                                                          \
	"		SELECT t.sha256 FROM fumehood.query t, " OF_VICTIMS "));"                                                             \
	"	IF NOT keep THEN"                                                                                                                   \
	"		INSERT INTO fumehood.tombstone(analysis_id, attempt, owner, token, verdict, created_at, removed_at)"                               \
	"			SELECT t.analysis_id, t.number, t.owner, t.token, t.verdict, t.created_at, clock_timestamp()"                                     \
	"			FROM fumehood.attempt t, unnest(a, n) v(id, nr) WHERE t.analysis_id = v.id AND t.number = v.nr;"                                  \
	"		INSERT INTO fumehood.tombstone_from(analysis_id, attempt, from_analysis, from_attempt)"                                            \
	"			SELECT DISTINCT t.analysis_id, t.attempt, t.from_analysis, t.from_attempt FROM fumehood.input t, " OF_VICTIMS \
	" AND t.from_analysis IS NOT NULL AND t.from_attempt IS NOT NULL;"                                                                    \
	"	END IF;"                                                                                                                            \
	"	FOREACH name IN ARRAY ARRAY['log', 'sample', 'event', 'rejected_output', 'denial', 'query'] LOOP"                                   \
	"		EXECUTE format('DELETE FROM fumehood.%I t USING unnest($1, $2) v(id, nr)"                                                          \
	" WHERE t.analysis_id = v.id AND t.attempt = v.nr', name) USING a, n;"                                                                \
	"	END LOOP;"                                                                                                                          \
	"	DELETE FROM fumehood.input t USING " OF_VICTIMS                                                                               \
	" AND (NOT keep OR t.from_analysis IS NULL);"                                                                                         \
	"	IF keep THEN"                                                                                                                       \
	"		UPDATE fumehood.attempt t SET pruned_at = clock_timestamp() FROM unnest(a, n) v(id, nr)"                                           \
	"			WHERE t.analysis_id = v.id AND t.number = v.nr;"                                                                                  \
	"	ELSE"                                                                                                                               \
	"		DELETE FROM fumehood.output t USING " OF_VICTIMS ";"                                                                  \
	"		DELETE FROM fumehood.posted_chunk t USING " OF_VICTIMS ";"                                                            \
	"		DELETE FROM fumehood.step t USING " OF_VICTIMS ";"                                                                    \
	"		DELETE FROM fumehood.attempt t USING unnest(a, n) v(id, nr)"                                                                       \
	"			WHERE t.analysis_id = v.id AND t.number = v.nr;"                                                                                  \
	"		DELETE FROM fumehood.analysis x WHERE x.id = ANY (a)"                                                                              \
	"			AND NOT EXISTS (SELECT 1 FROM fumehood.attempt t WHERE t.analysis_id = x.id);"                                                    \
	"	END IF;"                                                                                                                            \
	"	ended := ARRAY(SELECT q.id FROM fumehood.queue q WHERE q.id IN (SELECT v.id FROM unnest(a, n) v(id, nr)"                            \
	"		WHERE v.nr = -1 OR NOT EXISTS (SELECT 1 FROM fumehood.attempt t WHERE t.analysis_id = v.id))"                                      \
	"		AND q.state IN ('finished', 'cancelled') ORDER BY q.id FOR UPDATE);"                                                               \
	"	PERFORM fumehood.blob_loosen(ARRAY(SELECT DISTINCT decode(d #>> '{}', 'hex') FROM fumehood.queue q,"                                \
	"		jsonb_path_query(q.inputs, '$.**.sha256') d WHERE q.id = ANY (ended)));"                                                           \
	"	DELETE FROM fumehood.queue_after x WHERE x.id = ANY (ended);"                                                                       \
	"	DELETE FROM fumehood.queue q WHERE q.id = ANY (ended);"                                                                             \
	"END $$;"                                                                                                                             \
	"REVOKE ALL ON FUNCTION fumehood.blob_loosen(bytea[]),"                                                                               \
	" fumehood.blob_sweep(text, bytea[]), fumehood.remove_attempts(jsonb, boolean) FROM PUBLIC;"

#endif
