/*
 * What stands around a stranger's query on PostgreSQL.
 */
#include "sql.h"

#include <inttypes.h>

#include "buffer.h"

/* Parameters of the session that change what a text means, or what happens on the way. */
const char sql_postgres_query_session[] =
	"SET default_transaction_read_only = on; SET standard_conforming_strings = on; "
	"SET idle_in_transaction_session_timeout = '1min'; SET DateStyle = 'ISO, YMD'; SET TimeZone = 'UTC'; "
	"SET extra_float_digits = 1; SET bytea_output = 'hex'";

/* Not a superuser, not us, nor with the rights of one of the server's own roles but those that only read tables. */
const char sql_postgres_query_role[] =
	"SELECT NOT r.rolsuper AND NOT r.rolreplication AND NOT r.rolbypassrls AND NOT r.rolcreaterole "
	"AND r.rolname <> session_user AND NOT EXISTS (SELECT 1 FROM pg_roles m WHERE m.oid <> r.oid AND "
	"pg_has_role(r.oid, m.oid, 'MEMBER') AND (m.rolsuper OR m.rolname = session_user OR m.rolname IN "
	"('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend', "
	"'pg_write_all_data'))) FROM pg_roles r WHERE r.rolname = $1";

const char sql_postgres_query_after[] =
	"SELECT current_user = $1 AND current_setting('transaction_read_only') = 'on'";

char *sql_postgres_query_begin(const char *role, uint64_t timeout_ms)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r = buffer_printf(&b,
			      "START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; "
			      "SET LOCAL statement_timeout = %" PRIu64 "; "
			      "SELECT set_config('search_path', reset_val, true) FROM pg_settings "
			      "WHERE name = 'search_path'; SET LOCAL ROLE \"",
			      timeout_ms);

	for (; *role && r == 0; role++)
		r = *role == '"' ? buffer_puts(&b, "\"\"") : buffer_append(&b, role, 1);
	return r < 0 || buffer_puts(&b, "\"") < 0 ? NULL : buffer_take(&b);
}

/* The line break ends a comment with which the query may end. */
char *sql_postgres_query_copy(const char *sql)
{
	_cleanup_buffer_ struct buffer b = {0};

	return buffer_printf(&b, "COPY (%s\n) TO STDOUT (FORMAT csv, HEADER)", sql) < 0 ? NULL
											: buffer_take(&b);
}
