/*
 * Version 5. The ledger has an id of its own, and that of its object store, once there is one: the directory has both in
 * its file `id` (store_id.h). One row, for good.
 *
 * blob_staged: contents that nobody refers to yet, since the commit that they are for is still to come (commit_stage.c). Only
 * SQLite, which has one writer at a time, has any.
 *
 * Large contents in PostgreSQL itself (chunks.h): a content is a row of object with rows of object_chunk, all written by one
 * transaction. What refers to it is a row of blob without bytes, as for an object in a directory. Chunks are not compressed:
 * outputs mostly are already.
 */
#include "schema_claims.h"
#include "sql.h"

const char sql_version_5_sqlite[] =
	"CREATE TABLE fumehood_store("
	"	one INTEGER PRIMARY KEY CHECK (one = 1),"
	"	ledger_id TEXT NOT NULL,"
	"	store_id TEXT,"
	"	joined_at INTEGER,"
	"	host TEXT,"
	"	path BLOB);"
	"INSERT INTO fumehood_store(one, ledger_id) VALUES (1, lower(hex(randomblob(16))));"
	"CREATE TABLE fumehood_blob_staged(sha256 BLOB PRIMARY KEY NOT NULL) WITHOUT ROWID;" VERSION_5_CLAIMS_SQLITE;

const char sql_version_5_postgres[] =
	"CREATE TABLE fumehood.store("
	"	one integer PRIMARY KEY CHECK (one = 1),"
	"	ledger_id text NOT NULL,"
	"	store_id text,"
	"	joined_at timestamptz,"
	"	host text,"
	"	path bytea);"
	"INSERT INTO fumehood.store(one, ledger_id) VALUES (1, replace(gen_random_uuid()::text, '-', ''));"

	"CREATE TABLE fumehood.object("
	"	sha256 bytea PRIMARY KEY CHECK (octet_length(sha256) = 32),"
	"	put_at timestamptz NOT NULL DEFAULT clock_timestamp());"
	"CREATE TABLE fumehood.object_chunk("
	"	sha256 bytea NOT NULL REFERENCES fumehood.object(sha256) ON DELETE CASCADE,"
	"	position integer NOT NULL CHECK (position >= 0),"
	"	bytes bytea NOT NULL,"
	"	PRIMARY KEY (sha256, position));"
	"ALTER TABLE fumehood.object_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;"

	/* Removes some that nobody refers to and that were put before the time given; how many is the answer. A definer's: who
	 * may add contents need not be able to remove any that is referred to. A row is locked first, and looked at again then: a
	 * commit that was about to refer to it either has done so by now, or waits for us and finds it gone (commit.c). */
	"CREATE FUNCTION fumehood.object_sweep(older interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER "
	"SET search_path = pg_catalog, pg_temp AS $$ DECLARE orphans bytea[]; n bigint; BEGIN"
	"	orphans := ARRAY(SELECT o.sha256 FROM fumehood.object o WHERE o.put_at < clock_timestamp() - older"
	"		AND NOT EXISTS (SELECT 1 FROM fumehood.blob b WHERE b.sha256 = o.sha256)"
	"		ORDER BY o.sha256 LIMIT 16 FOR UPDATE OF o SKIP LOCKED);"
	"	DELETE FROM fumehood.object o WHERE o.sha256 = ANY (orphans)"
	"		AND NOT EXISTS (SELECT 1 FROM fumehood.blob b WHERE b.sha256 = o.sha256);"
	"	GET DIAGNOSTICS n = ROW_COUNT;"
	"	RETURN n; END $$;"
	"REVOKE ALL ON FUNCTION fumehood.object_sweep(interval) FROM PUBLIC;" VERSION_5_CLAIMS_POSTGRES;
