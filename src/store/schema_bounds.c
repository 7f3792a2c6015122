/*
 * Version 9. A state of the queue, `restored`; and how long a text may be that a role writes which is not the tables' owner: what is longer
 * is cut, once. What a submitter's functions take is bounded in them (roles.sql).
 * SQLite cannot alter a CHECK: its text is changed where it stands, as SQLite's manual has it, so that millions are upgraded at once.
 */
#include "sql.h"

#define STATES_8 "''waiting'', ''queued'', ''running'', ''finished'', ''cancelled''"

const char sql_version_9_sqlite[] =
	"PRAGMA writable_schema = ON;"
	"UPDATE sqlite_master SET sql = replace(sql, '(" STATES_8 ")', '(" STATES_8 ", ''restored'')')"
	"	WHERE type = 'table' AND name = 'fumehood_queue';"
	"PRAGMA writable_schema = RESET;"
	/* After a change that SQLite itself has made whoever has the file open reads the schema anew. */
	"CREATE TABLE fumehood_changed(one); DROP TABLE fumehood_changed;";

const char sql_version_9_postgres[] =
	"ALTER TABLE fumehood.queue DROP CONSTRAINT queue_state_check, ADD CONSTRAINT queue_state_check"
	"	CHECK (state IN ('waiting', 'queued', 'running', 'finished', 'cancelled', 'restored'));"
	"DO $$ DECLARE b record; BEGIN"
	"	FOR b IN SELECT * FROM (VALUES ('queue', 'reason', 4096), ('queue', 'submitter', 1024), ('queue', 'worker', 1024),"
	"		('worker', 'host', 1024), ('worker', 'engine', 1024), ('worker', 'version', 1024)) v(t, c, most) LOOP"
	"		EXECUTE format('UPDATE fumehood.%I SET %I = left(%2$I, %s) WHERE octet_length(%2$I) > %s',"
	"			b.t, b.c, b.most / 4, b.most);"
	"		EXECUTE format('ALTER TABLE fumehood.%I ADD CONSTRAINT %I CHECK (octet_length(%I) <= %s)',"
	"			b.t, b.t || '_' || b.c || '_bound', b.c, b.most);"
	"	END LOOP;"
	"END $$;";
