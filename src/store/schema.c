/*
 * The tables, and the steps to what they are now. Nothing was released before the tables of version 8 (schema_sqlite.sql,
 * schema_postgres.sql): what is older is not upgraded. A released step is never changed: the next one is added.
 */
#include "sql.h"

#include "macros.h"

extern const char sql_tables_sqlite[], sql_tables_postgres[];

const struct sql_migration sql_migrations[] = {
	{{sql_tables_sqlite, sql_tables_postgres}},
	{{sql_version_9_sqlite, sql_version_9_postgres}},
};

const int sql_version_wanted = SQL_VERSION_FIRST - 1 + ARRAY_SIZE(sql_migrations);
