/*
 * Version 5. The ledger has an id of its own, and that of its object store, once there is one: the directory has both in
 * its file `id` (store_id.h). One row, for good.
 *
 * blob_staged: contents that nobody refers to yet, since the commit that they are for is still to come (stage.c). Only
 * SQLite, which has one writer at a time, has any.
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
	"INSERT INTO fumehood.store(one, ledger_id) VALUES (1, replace(gen_random_uuid()::text, '-', ''));" VERSION_5_CLAIMS_POSTGRES;
