/*
 * Whose an analysis is: version 4.
 *
 * The owner is an identity that the submitter cannot choose. In PostgreSQL it is the role that has logged in, and the
 * server writes it, whatever an INSERT says: a default for who says nothing, and a trigger for who says something else. An
 * attempt is whose the submission was that its token was given to; without one, it is whose connection commits it. In
 * SQLite everything is the file's owner's, so what is stored is only for those who read the tables themselves.
 *
 * What was there before is the owner's of the tables: all that could write one row could write any. A column with a
 * constant default costs no rewriting, however large the table is.
 *
 * The column of queue_submitter has another name than before, so that a worker of an older version, which connected before the
 * upgrade, can claim nothing that it would only hand back.
 */
#include "sql.h"

/* "%owner%" is the file's owner, quoted (sqlite.c). */
const char sql_version_4_sqlite[] =
	"ALTER TABLE fumehood_analysis ADD COLUMN owner TEXT NOT NULL DEFAULT %owner%;"
	"ALTER TABLE fumehood_attempt ADD COLUMN owner TEXT NOT NULL DEFAULT %owner%;"
	"ALTER TABLE fumehood_queue ADD COLUMN owner TEXT NOT NULL DEFAULT %owner%;"
	"DROP INDEX fumehood_queue_ready;"
	"DROP INDEX fumehood_queue_running;"
	"CREATE INDEX fumehood_queue_ready ON fumehood_queue(owner, submitter, priority DESC, seq) "
	"	WHERE state = 'queued';"
	"CREATE INDEX fumehood_queue_running ON fumehood_queue(owner, submitter) WHERE state = 'running';"

	"ALTER TABLE fumehood_queue_submitter RENAME TO fumehood_queue_submitter_3;"
	"CREATE TABLE fumehood_queue_submitter("
	"	owner TEXT NOT NULL,"
	"	submitter TEXT NOT NULL,"
	"	served_at INTEGER,"
	"	PRIMARY KEY (owner, submitter)) WITHOUT ROWID;"
	"INSERT INTO fumehood_queue_submitter SELECT %owner%, name, served_at FROM fumehood_queue_submitter_3;"
	"DROP TABLE fumehood_queue_submitter_3;";

#define OWNER_TRIGGERS(table, function)                                                            \
	"CREATE TRIGGER owner_made BEFORE INSERT ON fumehood." table " FOR EACH ROW " function ";" \
	"CREATE TRIGGER owner_kept BEFORE UPDATE OF owner ON fumehood." table                      \
	"	FOR EACH ROW EXECUTE FUNCTION fumehood.owner_keep();"

const char sql_version_4_postgres[] =
	"DO $$ DECLARE name text; who text; BEGIN"
	"	SELECT pg_get_userbyid(relowner) INTO who FROM pg_class WHERE oid = 'fumehood.queue'::regclass;"
	"	FOREACH name IN ARRAY ARRAY['analysis', 'attempt', 'queue', 'queue_submitter'] LOOP"
	"		EXECUTE format('ALTER TABLE fumehood.%I ADD COLUMN owner text COLLATE \"C\" NOT NULL DEFAULT %L', name, who);"
	"		EXECUTE format('ALTER TABLE fumehood.%I ALTER COLUMN owner SET DEFAULT session_user::text', name);"
	"	END LOOP;"
	"END $$;"
	"DROP INDEX fumehood.queue_ready;"
	"DROP INDEX fumehood.queue_running;"
	"CREATE INDEX queue_ready ON fumehood.queue(owner, submitter, priority DESC, seq) WHERE state = 'queued';"
	"CREATE INDEX queue_running ON fumehood.queue(owner, submitter) WHERE state = 'running';"
	"ALTER TABLE fumehood.queue_submitter RENAME COLUMN name TO submitter;"
	"ALTER TABLE fumehood.queue_submitter DROP CONSTRAINT queue_submitter_pkey;"
	"ALTER TABLE fumehood.queue_submitter ADD PRIMARY KEY (owner, submitter);"

	"CREATE FUNCTION fumehood.owner_is_session() RETURNS trigger LANGUAGE plpgsql "
	"SET search_path = pg_catalog, pg_temp AS $$ BEGIN NEW.owner := session_user; RETURN NEW; END $$;"
	/* A definer's: whoever may add an attempt need not be able to read the queue. */
	"CREATE FUNCTION fumehood.owner_is_submission() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
	"SET search_path = pg_catalog, pg_temp AS $$ BEGIN"
	"	NEW.owner := coalesce((SELECT q.owner FROM fumehood.queue q"
	"		WHERE q.id = NEW.analysis_id AND q.token = NEW.token), session_user);"
	"	RETURN NEW; END $$;"
	"CREATE FUNCTION fumehood.owner_is_queue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
	"SET search_path = pg_catalog, pg_temp AS $$ BEGIN"
	"	NEW.owner := coalesce((SELECT q.owner FROM fumehood.queue q WHERE q.id = NEW.id), session_user);"
	"	RETURN NEW; END $$;"
	"CREATE FUNCTION fumehood.owner_keep() RETURNS trigger LANGUAGE plpgsql "
	"SET search_path = pg_catalog, pg_temp AS $$ BEGIN NEW.owner := OLD.owner; RETURN NEW; END $$;"
	/* Thousands are submitted at once, mostly by who claims to be nobody else. */
	OWNER_TRIGGERS("queue", "WHEN (NEW.owner IS DISTINCT FROM session_user::text) "
				"EXECUTE FUNCTION fumehood.owner_is_session()")
		OWNER_TRIGGERS("attempt", "EXECUTE FUNCTION fumehood.owner_is_submission()")
			OWNER_TRIGGERS("analysis", "EXECUTE FUNCTION fumehood.owner_is_queue()");
