/*
 * Version 7.
 *
 * denial.target, errno, hint: what was denied, for people; the error that the analysis saw, by its name; and what would help. path stays what
 * it was, bytes, where it is about a path.
 * attempt.denials_more: how many were only counted. NULL: nobody listened, and that there is no row means nothing.
 */
#include "sql.h"

const char sql_version_7_sqlite[] = "ALTER TABLE fumehood_denial ADD COLUMN target TEXT;"
				    "ALTER TABLE fumehood_denial ADD COLUMN errno TEXT;"
				    "ALTER TABLE fumehood_denial ADD COLUMN hint TEXT;"
				    "ALTER TABLE fumehood_attempt ADD COLUMN denials_more INTEGER;";

const char sql_version_7_postgres[] =
	"ALTER TABLE fumehood.denial ADD COLUMN target text, ADD COLUMN errno text, ADD COLUMN hint text;"
	"ALTER TABLE fumehood.attempt ADD COLUMN denials_more bigint;";
