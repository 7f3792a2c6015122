/*
 * What SQLite does to remove attempts: scripts over a list of them that is temporary. PostgreSQL has a function (schema_removal.h),
 * which says what the numbers 0 and -1 mean.
 */
#include "sql.h"

#define VICTIMS	   "(SELECT v.id, v.nr FROM temp.fumehood_victim v)"
#define ROWS(name) "fumehood_" name " WHERE (analysis_id, attempt) IN " VICTIMS
#define NOW_NS	   "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000000"
#define LOOSEN                                                                         \
	" AS s WHERE EXISTS (SELECT 1 FROM fumehood_blob b WHERE b.sha256 = s.sha256)" \
	" ON CONFLICT (sha256) DO UPDATE SET sweep = NULL;"
#define ENDED                                                                                        \
	"q.state IN ('finished', 'cancelled') AND q.id IN (SELECT v.id FROM temp.fumehood_victim v " \
	"WHERE v.nr = -1 OR NOT EXISTS (SELECT 1 FROM fumehood_attempt t WHERE t.analysis_id = v.id))"

/* Goes with the last attempt, or by itself. */
#define REMOVE_ENDED                                                                                        \
	"INSERT INTO fumehood_blob_loose(sha256) SELECT DISTINCT s.sha256 FROM "                            \
	"(SELECT fumehood_bytes(j.value) AS sha256 FROM fumehood_queue q, json_tree(q.inputs) j "           \
	"WHERE " ENDED " AND j.key = 'sha256')" LOOSEN                                                      \
	"DELETE FROM fumehood_queue_after WHERE id IN (SELECT q.id FROM fumehood_queue q WHERE " ENDED ");" \
	"DELETE FROM fumehood_queue AS q WHERE " ENDED ";"

#define REMOVE_RECORDS                                                                                                \
	"DELETE FROM " ROWS("log") ";DELETE FROM " ROWS("sample") ";DELETE FROM " ROWS("event") ";DELETE FROM " ROWS( \
		"rejected_output") ";DELETE FROM " ROWS("denial") ";DELETE FROM " ROWS("query") ";"

const char sql_sqlite_remove_begin[] = "CREATE TEMP TABLE IF NOT EXISTS fumehood_victim(id TEXT, nr INTEGER);"
				       "DELETE FROM temp.fumehood_victim;";

const char sql_sqlite_remove[] =
	"INSERT INTO fumehood_blob_loose(sha256) SELECT DISTINCT s.sha256 FROM ("
	"SELECT sha256 FROM " ROWS("output") " UNION SELECT sha256 FROM " ROWS("input") " UNION SELECT sha256 FROM " ROWS(
		"query") ")" LOOSEN
			 "INSERT INTO fumehood_tombstone(analysis_id, attempt, owner, token, verdict, created_at, removed_at) "
			 "SELECT analysis_id, number, owner, token, verdict, created_at, " NOW_NS
			 " FROM fumehood_attempt WHERE (analysis_id, number) IN " VICTIMS ";"
			 "INSERT INTO fumehood_tombstone_from(analysis_id, attempt, from_analysis, from_attempt) "
			 "SELECT DISTINCT analysis_id, attempt, from_analysis, from_attempt FROM " ROWS(
				 "input") " AND from_analysis IS NOT NULL AND from_attempt IS NOT NULL;" REMOVE_RECORDS
					  "DELETE FROM " ROWS("input") ";DELETE FROM " ROWS("output") ";DELETE FROM " ROWS("posted_chunk") ";DELETE FROM " ROWS(
						  "step") ";"
							  "DELETE FROM fumehood_attempt WHERE (analysis_id, number) IN " VICTIMS
							  ";"
							  "DELETE FROM fumehood_analysis WHERE id IN (SELECT v.id FROM temp.fumehood_victim v) AND NOT EXISTS "
							  "(SELECT 1 FROM fumehood_attempt t WHERE t.analysis_id = fumehood_analysis.id);" REMOVE_ENDED;

const char sql_sqlite_prune[] =
	"INSERT INTO fumehood_blob_loose(sha256) SELECT DISTINCT s.sha256 FROM ("
	"SELECT sha256 FROM " ROWS("input") " UNION SELECT sha256 FROM " ROWS(
		"query") ")" LOOSEN REMOVE_RECORDS
			 "DELETE FROM " ROWS("input") " AND from_analysis IS NULL;"
						      "UPDATE fumehood_attempt SET pruned_at = " NOW_NS
						      " WHERE (analysis_id, number) IN " VICTIMS
						      ";" REMOVE_ENDED;
