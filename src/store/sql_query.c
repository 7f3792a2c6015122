/*
 * What stands around a stranger's query on PostgreSQL.
 */
#include "sql.h"

#include <inttypes.h>

#include "buffer.h"

const char sql_postgres_query_session[] = "SET default_transaction_read_only = on";

/* Parameters that change what a text means, or what happens on the way. */
const char sql_postgres_query_start[] =
	"START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog; "
	"SET LOCAL standard_conforming_strings = on; SET LOCAL idle_in_transaction_session_timeout = '1min'; "
	"SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; "
	"SET LOCAL bytea_output = 'hex'; SET LOCAL jit = off";

/* All that a query can do to a session goes with its transaction, but for such a lock. */
const char sql_postgres_query_end[] = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

const char sql_postgres_query_login[] = "SELECT rolcanlogin FROM pg_catalog.pg_roles WHERE rolname = $1";

/* Not a superuser, not the ledger's user, nor with the rights of one of the server's own roles but those that only read
 * tables; and nothing of the ledger's is its to write. */
const char sql_postgres_query_role[] =
	"SELECT NOT r.rolsuper AND NOT r.rolreplication AND NOT r.rolbypassrls AND NOT r.rolcreaterole "
	"AND NOT r.rolcreatedb AND r.rolname <> $1 AND NOT EXISTS (SELECT 1 FROM pg_roles m WHERE m.oid <> r.oid AND "
	"pg_has_role(r.oid, m.oid, 'MEMBER') AND (m.rolsuper OR m.rolname = $1 OR m.rolname IN "
	"('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend', "
	"'pg_write_all_data'))) AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = "
	"to_regnamespace('fumehood') AND c.relkind IN ('r', 'p', 'v') AND (has_table_privilege(r.oid, c.oid, "
	"'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER') OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE'))) "
	"FROM pg_roles r WHERE r.rolname = session_user";

const char sql_postgres_query_after[] = "SELECT session_user = $1 AND current_user = $1 AND "
					"current_setting('transaction_read_only') = 'on'";

/* The path of the role or the database, not ours. */
char *sql_postgres_query_begin(uint64_t timeout_ms)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b,
		      "SET LOCAL statement_timeout = %" PRIu64 "; "
		      "SELECT set_config('search_path', reset_val, true) FROM pg_settings "
		      "WHERE name = 'search_path'",
		      timeout_ms);
	return buffer_take(&b);
}

/* The line break ends a comment with which the query may end. */
char *sql_postgres_query_copy(const char *sql, uint64_t row_max)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b,
		      "COPY (SELECT fumehood_row.* FROM (%s\n) AS fumehood_row WHERE CASE WHEN "
		      "octet_length(fumehood_row::text) <= %" PRIu64
		      " THEN true ELSE octet_length(fumehood_row::text) / "
		      "(octet_length(fumehood_row::text) * 0) = 0 END) TO STDOUT (FORMAT csv, HEADER)",
		      sql, row_max);
	return buffer_take(&b);
}
