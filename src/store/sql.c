#include "sql.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "columns.h"

/* ", analysis_id, number, …", and "tit…" */
#define NAME(type, member, column, kind)      ", " #column
#define READ(type, member, column, kind)      ", ~" LETTER_##kind #column
#define READ_OF_O(type, member, column, kind) ", ~" LETTER_##kind "o." #column
#define LETTER(type, member, column, kind)    LETTER_##kind
#define ATTEMPT_LIST			      ATTEMPT_LISTED_COLUMNS(READ)
#define ATTEMPT_READ			      ATTEMPT_LIST ATTEMPT_OTHER_COLUMNS(READ)
#define ATTEMPT_ALL			      ATTEMPT_LISTED_COLUMNS(NAME) ATTEMPT_OTHER_COLUMNS(NAME)
#define ATTEMPT_LETTERS			      ATTEMPT_LISTED_COLUMNS(LETTER) ATTEMPT_OTHER_COLUMNS(LETTER) "z"
_Static_assert(sizeof(ATTEMPT_LISTED_COLUMNS(LETTER)) == ATTEMPT_LISTED + 1 &&
		       sizeof(ATTEMPT_LETTERS) == ATTEMPT_COLUMNS + 1,
	       "sql.h counts the columns of an attempt");
#define QUEUE_ASKED                                                                                           \
	"q.id, ~tq.submitter, q.priority, q.retries, q.retry_on, q.again, q.tries, ~jq.request, ~jq.inputs, " \
	"q.memory_bytes, q.cpus_milli, q.submitted_at"
#define QUEUE_ALL    QUEUE_ASKED ", q.attempt, ~tq.token, ~tq.worker, !"
#define QUEUE_HANDED QUEUE_ALL ", ~tq.dispatcher, ~tq.handle, q.cancelling"
#define QUEUE_SHOWN                                                                                                     \
	"id, state, verdict, status, attempt, priority, cancelling, submitted_at, due_at, ~tsubmitter, ~tworker, " CUT( \
		"reason") ", !, ~tlive, ~thandle"
/* A reason is 4096 bytes at most, which a thousand letters never are more than; who writes the file of SQLite is bound by nothing. */
#define CUT(text) "substr(CAST(" text " AS TEXT), 1, 1000)"
/* Laid out as SQL: the formatter does not know where a statement breaks. */
/* clang-format off */
#define WINDOW "6" /* LINE_WINDOW */
#define READY "q.state = 'queued'"
#define READY_OF READY " AND q.owner = $1 AND q.submitter = $2"
/* For min() PostgreSQL may read them all, if it believes that there are few. */
#define FIRST_NAME(column, where) \
	"(SELECT q." column " FROM @queue q WHERE " where " ORDER BY q." column " LIMIT 1)"
#define CIRCLE(column, where, after, served) \
	"WITH RECURSIVE c(name, first, n) AS (SELECT f.name, f.name, 1 FROM (SELECT coalesce(" \
	FIRST_NAME(column, where " AND q." column " > coalesce(" after ", (SELECT b." column \
		" FROM @queue_submitter b WHERE " served "b.served_at IS NOT NULL ORDER BY b.served_at DESC LIMIT 1))") \
	", " FIRST_NAME(column, where) ") AS name LIMIT 1 OFFSET 0) AS f " \
	"UNION ALL SELECT coalesce(" FIRST_NAME(column, where " AND q." column " > c.name") \
	", " FIRST_NAME(column, where) "), c.first, c.n + 1 FROM c " \
	"WHERE c.name IS NOT NULL AND c.n < " WINDOW " AND (c.n = 1 OR c.name <> c.first)) "
#define CIRCLE_END "FROM c WHERE c.name IS NOT NULL AND (c.n = 1 OR c.name <> c.first) ORDER BY c.n"
#define CLAIM_OWNERS \
	CIRCLE("owner", READY, "CAST($1 AS TEXT)", "") "SELECT c.name, " \
	"(SELECT count(*) FROM @queue r WHERE r.state = 'running' AND r.owner = c.name), " \
	"(SELECT b.served_at FROM @queue_submitter b WHERE b.owner = c.name AND b.served_at IS NOT NULL " \
	"ORDER BY b.served_at DESC LIMIT 1) " CIRCLE_END
#define CLAIM_SUBMITTERS \
	CIRCLE("submitter", READY " AND q.owner = $1", "CAST($2 AS TEXT)", "b.owner = $1 AND ") "SELECT c.name, " \
	"(SELECT count(*) FROM @queue r WHERE r.state = 'running' AND r.owner = $1 AND r.submitter = c.name), " \
	"(SELECT b.served_at FROM @queue_submitter b WHERE b.owner = $1 AND b.submitter = c.name) " CIRCLE_END
/* From one to the next that may fit, down to the first priority in which one does. */
#define GROUP_KEY "q.priority, q.memory_bytes, q.cpus_milli, q.seq"
#define GROUP_ORDER "ORDER BY q.priority DESC, q.memory_bytes, q.cpus_milli, q.seq LIMIT 1"
#define GROUPS_ENOUGH "(g.n < 1000 OR g.found IS NULL)"
#define FITS(of) of ".memory_bytes <= $3 AND " of ".cpus_milli <= $4"
#define FOUND(of) "coalesce(g.found, CASE WHEN " FITS(of) " THEN " of ".priority END)"
#define NEXT_CPUS(of) \
	"FROM @queue q WHERE " READY_OF " AND q.priority = " of ".priority AND q.memory_bytes = " of ".memory_bytes " \
	"AND q.cpus_milli > " of ".cpus_milli AND q.cpus_milli <= $4 ORDER BY q.cpus_milli, q.seq LIMIT 1"
#define NEXT_MEMORY(of) \
	"FROM @queue q WHERE " READY_OF " AND q.priority = " of ".priority AND q.memory_bytes > " of ".memory_bytes " \
	"AND q.memory_bytes <= $3 ORDER BY q.memory_bytes, q.cpus_milli, q.seq LIMIT 1"
#define NEXT_PRIORITY(of) "FROM @queue q WHERE " READY_OF " AND q.priority < " of ".priority " GROUP_ORDER
#define CLAIM_GROUPS_SQLITE \
	"WITH RECURSIVE g(seq, found, n) AS (" \
	"SELECT f.seq, NULL, 1 FROM (SELECT (SELECT q.seq FROM @queue q WHERE " READY_OF " " GROUP_ORDER ") AS seq) AS f " \
	"UNION ALL SELECT coalesce((SELECT q.seq " NEXT_CPUS("p") "), (SELECT q.seq " NEXT_MEMORY("p") "), " \
	"CASE WHEN " FOUND("p") " IS NULL THEN (SELECT q.seq " NEXT_PRIORITY("p") ") END), " FOUND("p") ", g.n + 1 " \
	"FROM g CROSS JOIN @queue p WHERE p.seq = g.seq AND " GROUPS_ENOUGH ") " \
	"SELECT p.priority, p.memory_bytes, p.cpus_milli, p.seq FROM g CROSS JOIN @queue p WHERE p.seq = g.seq AND " FITS("p")
#define CLAIM_GROUPS_POSTGRES \
	"WITH RECURSIVE g(priority, memory_bytes, cpus_milli, seq, found, n) AS ((" \
	"SELECT " GROUP_KEY ", NULL::integer, 1 FROM @queue q WHERE " READY_OF " " GROUP_ORDER ") UNION ALL " \
	"SELECT x.priority, x.memory_bytes, x.cpus_milli, x.seq, f.found, g.n + 1 FROM g " \
	"CROSS JOIN LATERAL (SELECT " FOUND("g") " AS found) f CROSS JOIN LATERAL (SELECT u.* FROM (" \
	"(SELECT " GROUP_KEY " " NEXT_CPUS("g") ") UNION ALL (SELECT " GROUP_KEY " " NEXT_MEMORY("g") ") UNION ALL " \
	"(SELECT " GROUP_KEY " FROM (SELECT 1 WHERE f.found IS NULL) o " \
	"CROSS JOIN LATERAL (SELECT q.* " NEXT_PRIORITY("g") ") q)) u LIMIT 1) x WHERE " GROUPS_ENOUGH ") " \
	"SELECT g.priority, g.memory_bytes, g.cpus_milli, g.seq FROM g WHERE " FITS("g")
/* Two looks into an index each; a greatest() would need two names. */
#define LAST_NUMBER(id) \
	"(SELECT coalesce(max(m.number), 0) FROM (SELECT max(t.number) AS number FROM @attempt t WHERE t.analysis_id = " id \
	" UNION ALL SELECT max(d.attempt) FROM @tombstone d WHERE d.analysis_id = " id ") AS m)"
/* Written so that SQLite does not go along the index of verdicts: most have succeeded, and one analysis has few attempts. */
#define HAS_SUCCEEDED(id) \
	"EXISTS (SELECT 1 FROM @attempt s WHERE s.analysis_id = " id " AND coalesce(s.verdict, '') = 'succeeded')"
#define CLAIM_HEAD \
	"SELECT " QUEUE_ASKED ", " \
	"1 + " LAST_NUMBER("q.id") ", NULL, NULL, !, " \
	"q.seq FROM @queue q WHERE " READY_OF " AND q.priority = $3 AND q.memory_bytes = $4 " \
	"AND q.cpus_milli = $5 AND q.seq >= $6 ORDER BY q.seq LIMIT 1"
#define CLAIM_TAKE \
	"UPDATE @queue SET state = 'running', worker = $2, token = $3, attempt = $4, lease_until = $5, " \
	"lease_ms = $6, dispatcher = $7, reason = NULL WHERE id = $1"
/* What looking has cost so far, in pages; it counts on over several transactions. */
#define BLOCKS_OF(name) "pg_stat_get_xact_blocks_fetched('fumehood." name "'::regclass)"
#define CLAIM_BLOCKS \
	BLOCKS_OF("queue") " + " BLOCKS_OF("queue_ready") " + " BLOCKS_OF("queue_running") " + " \
	BLOCKS_OF("queue_submitter") " + " BLOCKS_OF("queue_submitter_owner")
#define HANDED_TOKEN \
	"SELECT " QUEUE_HANDED " FROM @queue q WHERE q.id = $1 AND q.state = 'running' AND q.token = $2"
#define LEASE_OVER \
	HANDED_TOKEN " AND q.lease_until = $3"
#define NOT_HANDED "dispatcher = NULL, batch = NULL, batch_index = NULL, handle = NULL"
/* What is locked is its owner's whim: nobody waits for it. */
#define HAND_OVER_SQLITE \
	"UPDATE @queue SET batch = $3, dispatcher = $2, handle = NULL, " \
	"batch_index = (SELECT j.key FROM json_each($1) AS j WHERE j.value = @queue.token) " \
	"WHERE state = 'running' AND worker = $2 AND token #"
#define HAND_OVER_POSTGRES \
	"UPDATE @queue q SET batch = $3, dispatcher = $2, handle = NULL, batch_index = f.n - 1 FROM (" \
	"SELECT o.id, j.n FROM json_array_elements_text($1::json) WITH ORDINALITY AS j(token, n) " \
	"JOIN @queue o ON o.token = j.token WHERE o.state = 'running' AND o.worker = $2 " \
	"FOR UPDATE OF o SKIP LOCKED) f WHERE q.id = f.id"
#define HANDLES_SET_SQLITE \
	"UPDATE @queue SET handle = (SELECT json_extract(j.value, '$$[2]') FROM json_each($1) AS j " \
	"WHERE json_extract(j.value, '$$[0]') = @queue.batch AND json_extract(j.value, '$$[1]') = @queue.batch_index) " \
	"WHERE seq IN (SELECT q.seq FROM json_each($1) AS j JOIN @queue q ON q.batch = json_extract(j.value, '$$[0]') " \
	"AND q.batch_index = json_extract(j.value, '$$[1]') WHERE q.state = 'running' AND q.batch IS NOT NULL)"
#define HANDLES_SET_POSTGRES \
	"UPDATE @queue q SET handle = f.handle FROM (SELECT o.id, j.value -> 2 AS handle " \
	"FROM jsonb_array_elements($1::jsonb) AS j(value) JOIN @queue o ON o.batch = j.value ->> 0 " \
	"AND o.batch_index = (j.value ->> 1)::integer WHERE o.state = 'running' AND o.batch IS NOT NULL " \
	"AND o.handle IS DISTINCT FROM j.value -> 2 FOR UPDATE OF o SKIP LOCKED) f WHERE q.id = f.id"
/* A clock that stands still, or is held back a little, moves it nevertheless: who watches it sees that its holder lives. */
#define PROLONG(second, step, live) \
	"UPDATE @queue SET lease_until = CASE WHEN lease_until >= $2 AND lease_until < $2 + " second " " \
	"THEN lease_until + " step " ELSE $2 END, lease_ms = $3, live = " live " WHERE "
#define LIVE_SQLITE "(SELECT j.value FROM json_each($4) AS j WHERE j.key = @queue.id)"
#define WORKER_COLUMNS "host, pid, engine, seats, running, state, version, started_at, seen_at, lease_ms"
#define WORKER_VALUES "$2, $3, $4, $5, $6, $7, $8, $9, $9, $10"
#define WORKER_AGAIN \
	"ON CONFLICT (id) DO UPDATE SET seats = excluded.seats, running = excluded.running, " \
	"state = excluded.state, seen_at = excluded.seen_at, lease_ms = excluded.lease_ms"
#define WORKERS(now) "SELECT ~tid, !, ~thost, pid, ~tengine, seats, running, ~tstate, ~tversion, started_at, seen_at, lease_ms, " \
	now " FROM @worker ORDER BY seen_at DESC, id"
#define LEASES_OVER(far) \
	"SELECT id, token, lease_until, lease_ms FROM @queue WHERE state = 'running' " \
	"AND (lease_until <= $1 OR lease_until > " far ") AND worker <> $3"
#define FIRST_OF(column, where) "(SELECT min(" column ") FROM @queue WHERE " where ")"
#define FIRST_LEASE FIRST_OF("lease_until", "state = 'running'")
#define FIRST_DUE FIRST_OF("due_at", "state = 'waiting' AND due_at IS NOT NULL")
#define STORE_ROW "SELECT ~tledger_id, ~tstore_id, ~thost, ~bpath FROM @store"
/* A task's id: digits follow the dot. */
#define TASK(id) \
	id " > $1 AND " id " < $2 AND ltrim(substr(" id ", length(CAST($1 AS TEXT)) + 1), '0123456789') = ''"
#define ACTIVE "q.state IN ('waiting', 'queued', 'running', 'restored')"
/* What others come after it concerns these. */
#define AWAITS "q.state IN ('waiting', 'restored')"
#define ARRAY_STANDING \
	"SELECT CAST(sum(n) AS BIGINT), CAST(sum(active) AS BIGINT), CAST(sum(good) AS BIGINT) FROM (" \
	"SELECT count(*) AS n, sum(CASE WHEN " ACTIVE " THEN 1 ELSE 0 END) AS active, " \
	"sum(CASE WHEN q.state = 'finished' AND q.verdict = 'succeeded' THEN 1 ELSE 0 END) AS good " \
	"FROM @queue q WHERE " TASK("q.id") " UNION ALL " \
	"SELECT count(*), 0, sum(CASE WHEN (SELECT t.verdict FROM @attempt t WHERE t.analysis_id = a.id " \
	"ORDER BY t.number DESC LIMIT 1) = 'succeeded' THEN 1 ELSE 0 END) FROM @analysis a " \
	"WHERE " TASK("a.id") " AND NOT EXISTS (SELECT 1 FROM @queue q WHERE q.id = a.id)) AS both_of_them"
#define ARRAY_WITNESS "SELECT q.id FROM @queue q WHERE " TASK("q.id") " AND " ACTIVE " ORDER BY q.id DESC LIMIT 1^"
/* Of each table only as many as are wanted, out of its index of ids. */
/* Of each analysis the latest attempt. */
#define LISTED(from, verdicts, ids) \
	"SELECT !" ATTEMPT_LIST " FROM " from " " \
	"WHERE created_at <= $4 AND created_at >= $6 AND (created_at < $4 OR analysis_id < $5) AND " verdicts " AND " ids \
	" AND number = (SELECT max(m.number) FROM @attempt m WHERE m.analysis_id = a.analysis_id) " \
	"AND (CAST($7 AS TEXT) IS NULL OR ! = CAST($7 AS TEXT) OR EXISTS (SELECT 1 FROM @queue q " \
	"WHERE q.id = a.analysis_id AND q.submitter = CAST($7 AS TEXT))) " \
	"ORDER BY created_at DESC, analysis_id DESC LIMIT $3"
#define BEGINS_SO \
	"(CAST($2 AS TEXT) IS NULL OR substr(analysis_id, 1, length(CAST($2 AS TEXT))) = CAST($2 AS TEXT))"
#define FIRST_IDS(table) \
	"SELECT id FROM (SELECT id FROM @" table " WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3) AS " table "_ids"
#define LAST_ID(table) "SELECT max(id) AS id FROM @" table " WHERE id >= $1 AND id < $2"
#define ARRAY_IDS(table) "SELECT id FROM @" table " WHERE id > $1 AND id < $2"
/* An EXISTS would have PostgreSQL read a table from its beginning, if it believes that there are many. */
#define TASK_OF_NAME(table) \
	"(SELECT t.id FROM @" table " t WHERE t.id > j.value || '.' AND t.id < j.value || '/' AND " \
	"ltrim(substr(t.id, length(j.value) + 2), '0123456789') = '' ORDER BY t.id LIMIT 1)"
#define ARRAYS_NAMED(list) \
	"SELECT n.value, n.task FROM (SELECT j.value AS value, " \
	"coalesce(" TASK_OF_NAME("queue") ", " TASK_OF_NAME("analysis") ") AS task FROM " list ") AS n " \
	"WHERE n.task IS NOT NULL LIMIT 1"
/* An interpreter alone would say little: what it is given first belongs to a command. */
#define COMMAND_SQLITE \
	"substr(json_extract(a.request, '$$.command[0]') || coalesce(' ' || json_extract(a.request, '$$.command[1]'), ''), 1, 120)"
#define COMMAND_POSTGRES \
	"left((a.request->'command'->>0) || coalesce(' ' || (a.request->'command'->>1), ''), 120)"
#define SPAN_QUEUED(column) \
	"(SELECT q." column " FROM @queue q WHERE q.id = a.analysis_id AND q.attempt = a.number)"
#define SPANS \
	"SELECT a.analysis_id, a.number, a.verdict, a.created_at, a.started_at, a.ended_at, ~ta.host, ~ta.owner, " \
	SPAN_QUEUED("submitter") ", " SPAN_QUEUED("submitted_at") " FROM @attempt a " \
	"WHERE a.created_at >= $1 AND a.created_at < $2 ORDER BY a.created_at DESC LIMIT $3"
#define COMMANDS(command, usage, number) \
	"SELECT t.command, count(*), sum(CASE WHEN coalesce(t.verdict, '') = 'succeeded' THEN 0 ELSE 1 END), " \
	"CAST(avg(t.wall) AS " number "), max(t.wall), CAST(avg(t.memory) AS " number "), max(t.memory) FROM (" \
	"SELECT " command " AS command, a.verdict, " usage("wall_ms") " AS wall, " usage("memory_peak_bytes") " AS memory " \
	"FROM @attempt a WHERE a.created_at >= $1 AND a.created_at < $2 ORDER BY a.created_at DESC LIMIT $3) AS t " \
	"GROUP BY t.command ORDER BY 2 DESC, 1 LIMIT 50"
#define USAGE_SQLITE(name) "CAST(json_extract(a.usage, '$$." name "') AS INTEGER)"
#define USAGE_POSTGRES(name) "CAST(a.usage->>'" name "' AS bigint)"
#define WRONG "verdict # AND created_at >= $2 AND created_at < $3 ORDER BY created_at DESC LIMIT $4"
#define FAILURES(command, from) \
	"SELECT t.command, t.verdict, t.reason, count(*), max(t.created_at) FROM (" \
	"SELECT " command " AS command, a.verdict, substr(a.reason, 1, 200) AS reason, a.created_at FROM " from ") AS t " \
	"GROUP BY t.command, t.verdict, t.reason ORDER BY 4 DESC, 5 DESC LIMIT 20"
/* A partial index is used only where its own words stand and the state is no parameter: what has ended costs nothing then. */
#define OPEN(name) "state <> 'finished' AND state = '" name "'"
#define QUEUE_LIST(which, prefix, limit) QUEUE_LISTED(QUEUE_SHOWN, which, prefix, limit)
#define QUEUE_LISTED(what, which, prefix, limit) \
	"SELECT " what " FROM @queue WHERE " which " AND (CAST(" prefix " AS TEXT) IS NULL OR " \
	"substr(id, 1, length(CAST(" prefix " AS TEXT))) = CAST(" prefix " AS TEXT)) ORDER BY seq DESC LIMIT " limit
#define QUEUE_OPEN(turn, name) \
	"SELECT * FROM (" QUEUE_LISTED(QUEUE_SHOWN ", " turn " AS turn, seq", OPEN(name), "$1", "$2") ") AS " name
#define QUEUE_OPENS \
	QUEUE_OPEN("1", "running") " UNION ALL " QUEUE_OPEN("2", "queued") " UNION ALL " QUEUE_OPEN("3", "waiting") \
	" UNION ALL " QUEUE_OPEN("4", "restored") " UNION ALL " QUEUE_OPEN("5", "cancelled")
#define COUNT_OPEN(name) "(SELECT count(*) FROM (SELECT 1 FROM @queue WHERE " OPEN(name) " LIMIT $1) AS c)"
#define OUTPUTS \
	"SELECT b.content IS NULL" OUTPUT_COLUMNS(READ_OF_O) " FROM @output o LEFT JOIN @blob b ON b.sha256 = o.sha256 " \
	"WHERE o.analysis_id = $1 AND o.attempt = $2 ORDER BY o.position"
#define REMOVE_SUMS(list, id, nr) \
	"SELECT (SELECT count(*) FROM " list " JOIN @output o ON o.analysis_id = " id " AND o.attempt = " nr "), " \
	"(SELECT CAST(coalesce(sum(o.size), 0) AS BIGINT) FROM " list " JOIN @output o ON o.analysis_id = " id " AND o.attempt = " nr "), " \
	"(SELECT CAST(coalesce(sum(length(o.head) + length(o.tail)), 0) AS BIGINT) FROM " list " JOIN @log o ON o.analysis_id = " id " AND o.attempt = " nr ")"
#define LOOSE_OF(table, join) \
	"SELECT l.sha256 FROM @" table " o " join " @blob_loose l WHERE l.sha256 = o.sha256 AND l.sweep = $1"
/* clang-format on */
/* clang-format off */
#define LATEST_SUCCESS(what, of) \
	"(SELECT " what " FROM @attempt s WHERE s.analysis_id = " of " AND s.verdict = 'succeeded' ORDER BY s.number DESC LIMIT 1)"
#define SUCCESSES \
	"SELECT i.id, " LATEST_SUCCESS("s.number", "i.id") ", " LATEST_SUCCESS("!", "i.id") " FROM (" \
	"SELECT q.id FROM @queue q WHERE " TASK("q.id") " AND (CAST($3 AS TEXT) IS NULL OR ! = CAST($3 AS TEXT)) UNION " \
	"SELECT a.id FROM @analysis a WHERE " TASK("a.id") " AND (CAST($3 AS TEXT) IS NULL OR ! = CAST($3 AS TEXT))) AS i"
#define LINKS(one, number, other, other_number) \
	"SELECT " one ", " number ", count(*) FROM @input WHERE " other " = $1 AND " other_number " = $2 " \
	"AND from_analysis IS NOT NULL GROUP BY " one ", " number " UNION ALL " \
	"SELECT " one ", " number ", NULL FROM @tombstone_from WHERE " other " = $1 AND " other_number " = $2"
/* clang-format on */
#define LOCK_IF_THERE "ON CONFLICT (id) DO UPDATE SET id = excluded.id"
#define ROWS_OF(columns, table) \
	"SELECT " columns " FROM @" table " WHERE analysis_id = $1 AND attempt = $2 ORDER BY position"
/* One row for each of what an attempt has many of. */
#define TABLE_OF(name, columns)                                                             \
	{                                                                                   \
		name, "analysis_id, attempt, position" columns(NAME), "tii" columns(LETTER) \
	}

/* Where PostgreSQL's text is NULL, SQLite's serves both; where a submitter's is, PostgreSQL's. */
static const struct {
	const char *sqlite, *postgres, *submitter;
} statements[SQL_COUNT] = {
	[SQL_VERSION_THERE] = {NULL, "SELECT to_regclass('fumehood.schema_version') IS NOT NULL"},
	[SQL_COMPUTED] = {"SELECT count(*) FROM sqlite_master m, pragma_table_xinfo(m.name) x "
			  "WHERE m.name LIKE 'fumehood%' AND x.hidden > 1"},
	[SQL_VERSION] = {"SELECT max(version) FROM @schema_version"},
	[SQL_VERSION_ADD] =
		{"INSERT INTO @schema_version(version, applied_at, fumehood) VALUES ($1, $2, $3)"},
	[SQL_IS_MINE] = {NULL, "SELECT count(*) FROM (SELECT 1) one WHERE session_user::text = $1"},
	[SQL_ROLES_THERE] = {NULL, "SELECT relrowsecurity FROM pg_class WHERE relname = 'queue' "
				   "AND relnamespace = to_regnamespace('fumehood')"},
	/* An update that changes nothing takes the row's lock in PostgreSQL, which DO NOTHING would not. */
	[SQL_ANALYSIS_LOCK] =
		{"INSERT INTO @analysis(id, created_at, owner) VALUES ($1, $2, !) " LOCK_IF_THERE,
		 "INSERT INTO @analysis(id, created_at) VALUES ($1, $2) " LOCK_IF_THERE},
	[SQL_ANALYSIS_STATE] = {"SELECT t.number, t.verdict, " HAS_SUCCEEDED(
		"$1") " "
		      "FROM @analysis a LEFT JOIN @attempt t ON t.analysis_id = a.id AND t.number = "
		      "(SELECT max(m.number) FROM @attempt m WHERE m.analysis_id = $1) WHERE a.id = $1"},
	/* Of one that was removed, too: it is not committed a second time, and its number is nobody else's. */
	[SQL_TOKEN] = {"SELECT number FROM @attempt WHERE token = $1 "
		       "UNION ALL SELECT attempt FROM @tombstone WHERE token = $1"},
	[SQL_NUMBER_NEXT] = {"SELECT 1 + " LAST_NUMBER("$1")},
	[SQL_NUMBER_TAKEN] = {"SELECT 1 FROM @attempt WHERE analysis_id = $1 AND number = $2 "
			      "UNION ALL SELECT 1 FROM @tombstone WHERE analysis_id = $1 AND attempt = $2"},
	[SQL_BLOB_STATE] = {"SELECT content IS NULL FROM @blob WHERE sha256 = $1",
			    "SELECT sha256, content IS NULL FROM @blob WHERE sha256 = ANY ($1)",
			    "SELECT sha256, false FROM @blob_put WHERE sha256 = ANY ($1)"},
	[SQL_BLOB_HOLD] = {NULL, "SELECT digest, is_object FROM @blob_hold($1)"},
	[SQL_STAGED_ANY] = {"SELECT 1 FROM @blob_staged LIMIT 1"},
	[SQL_STAGED_ADD] = {"INSERT INTO @blob_staged(sha256) VALUES ($1) ON CONFLICT DO NOTHING"},
	[SQL_STAGED_TAKE] = {"DELETE FROM @blob_staged WHERE sha256 = $1"},
	[SQL_STAGED_SWEEP] = {"DELETE FROM @blob WHERE sha256 IN "
			      "(SELECT sha256 FROM @blob_staged ORDER BY sha256 LIMIT $1)"},
	[SQL_STAGED_FORGET] = {"DELETE FROM @blob_staged WHERE sha256 IN "
			       "(SELECT sha256 FROM @blob_staged ORDER BY sha256 LIMIT $1)"},
	[SQL_CHANGES] = {"SELECT changes()"},
	[SQL_BLOB_CONTENT] = {"SELECT ~Bcontent, size FROM @blob WHERE sha256 = $1"},
	[SQL_STORE] = {STORE_ROW},
	[SQL_STORE_LOCK] = {STORE_ROW "^"},
	[SQL_STORE_SET] = {"UPDATE @store SET store_id = $1, joined_at = $2, host = $3, path = $4"},
	[SQL_STORE_CONTENTS] = {"SELECT sha256, size FROM @blob WHERE content IS NULL",
				"SELECT sha256, size FROM @blob b WHERE content IS NULL "
				"AND NOT EXISTS (SELECT 1 FROM @object o WHERE o.sha256 = b.sha256)"},
	[SQL_BLOB_PAGE] =
		{"SELECT sha256, size, ~Bcontent FROM @blob WHERE sha256 > $1 ORDER BY sha256 LIMIT $2"},
	[SQL_OBJECT_PATIENTLY] = {NULL, "SELECT set_config('lock_timeout', '5min', true)"},
	/* In the order of the digests, as everybody does. */
	[SQL_OBJECT_ADD] = {NULL,
			    "INSERT INTO @object(sha256) SELECT s FROM unnest($1::bytea[]) "
			    "WITH ORDINALITY AS u(s, n) ORDER BY n ON CONFLICT DO NOTHING RETURNING sha256"},
	[SQL_OBJECT_LOCK] =
		{NULL, "SELECT sha256 FROM @object WHERE sha256 = ANY ($1) ORDER BY sha256 FOR KEY SHARE"},
	[SQL_OBJECT_CHUNKS] = {NULL, "SELECT position, ~Bbytes FROM @object_chunk "
				     "WHERE sha256 = $1 AND position >= $2 ORDER BY position LIMIT $3"},
	[SQL_OBJECT_SWEEP] = {NULL, "SELECT @object_sweep(make_interval(secs => $1))"},
	[SQL_OBJECT_ORPHANS] =
		{NULL,
		 "SELECT o.sha256 FROM @object o WHERE o.put_at < clock_timestamp() - make_interval(secs => $1) "
		 "AND NOT EXISTS (SELECT 1 FROM @blob b WHERE b.sha256 = o.sha256) ORDER BY 1 LIMIT 1000"},
	[SQL_IDS] = {FIRST_IDS("analysis") " UNION " FIRST_IDS("queue") " ORDER BY 1 LIMIT $3"},
	[SQL_ID_LAST] = {"SELECT max(id) FROM (" LAST_ID("analysis") " UNION ALL " LAST_ID("queue") ") AS l"},
	[SQL_LIST] = {LISTED("@attempt a", "(CAST($1 AS TEXT) IS NULL OR verdict #)", BEGINS_SO)},
	[SQL_LIST_VERDICT] = {LISTED("@attempt a", "verdict = CAST($1 AS TEXT)", BEGINS_SO)},
	/* SQLite begins with the left one. */
	[SQL_LIST_IDS] = {LISTED(
		"(SELECT id FROM @analysis WHERE id >= $2 AND id < $8) i CROSS JOIN @attempt a",
		"(CAST($1 AS TEXT) IS NULL OR verdict #)", "a.analysis_id = i.id")},
	[SQL_IDS_MANY] = {"SELECT 1 FROM @analysis WHERE id >= $1 AND id < $2 LIMIT 1 OFFSET $3"},
	[SQL_ATTEMPT] = {"SELECT !" ATTEMPT_READ " FROM @attempt WHERE analysis_id = $1 AND number = $2"},
	[SQL_ATTEMPTS] =
		{"SELECT number, verdict, exit_code, signal, status, created_at, started_at, ended_at "
		 "FROM @attempt WHERE analysis_id = $1 ORDER BY number"},
	[SQL_OUTPUTS] = {OUTPUTS},
	[SQL_REJECTED] = {ROWS_OF("position" REJECTED_COLUMNS(READ), "rejected_output")},
	[SQL_INPUTS] = {ROWS_OF("position" INPUT_COLUMNS(READ), "input")},
	[SQL_QUERIES] = {ROWS_OF("position" QUERY_COLUMNS(READ), "query")},
	[SQL_EVENTS] = {ROWS_OF("position" EVENT_COLUMNS(READ), "event")},
	[SQL_SAMPLES] = {ROWS_OF("position" SAMPLE_COLUMNS(READ), "sample")},
	[SQL_STEPS] = {ROWS_OF("position" STEP_COLUMNS(READ), "step")},
	[SQL_DENIALS] = {ROWS_OF("position" DENIAL_COLUMNS(READ), "denial")},
	[SQL_LOG] =
		{"SELECT ~Bhead, ~Btail, omitted FROM @log WHERE analysis_id = $1 AND attempt = $2 AND stream = $3"},
	[SQL_CONTENT_BYTES] = {"SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM @blob"},
	[SQL_SUCCESS] = {"SELECT number, ! FROM @attempt WHERE analysis_id = $1 AND verdict = 'succeeded' "
			 "ORDER BY number DESC LIMIT 1"},
	[SQL_SUCCESSES] = {SUCCESSES},
	[SQL_LINEAGE_LATEST] =
		{"SELECT n FROM (SELECT number AS n, CASE verdict WHEN 'succeeded' THEN 0 ELSE 1 END AS k "
		 "FROM @attempt WHERE analysis_id = $1 UNION ALL SELECT attempt, 2 FROM @tombstone "
		 "WHERE analysis_id = $1) AS x ORDER BY k, n DESC LIMIT 1"},
	[SQL_LINEAGE_NODE] =
		{"SELECT verdict, created_at, 0 FROM @attempt WHERE analysis_id = $1 AND number = $2 UNION ALL "
		 "SELECT verdict, created_at, 1 FROM @tombstone WHERE analysis_id = $1 AND attempt = $2"},
	[SQL_LINEAGE_UP] = {LINKS("from_analysis", "from_attempt", "analysis_id", "attempt")},
	[SQL_LINEAGE_DOWN] = {LINKS("analysis_id", "attempt", "from_analysis", "from_attempt")},
	[SQL_SPANS] = {SPANS},
	/* Out of the index of verdicts alone. */
	[SQL_DAYS] =
		{"SELECT created_at / 86400000000000, verdict, count(*) FROM @attempt "
		 "WHERE verdict # AND created_at >= $2 AND created_at < $3 GROUP BY 1, 2",
		 "SELECT floor(extract(epoch FROM created_at) / 86400)::bigint, verdict, count(*) FROM @attempt "
		 "WHERE verdict # AND created_at >= $2 AND created_at < $3 GROUP BY 1, 2"},
	[SQL_COMMANDS] = {COMMANDS(COMMAND_SQLITE, USAGE_SQLITE, "INTEGER"),
			  COMMANDS(COMMAND_POSTGRES, USAGE_POSTGRES, "bigint")},
	/* SQLite finds the newest in the index of verdicts, and reads only those: their rows are large. */
	[SQL_FAILURES] = {FAILURES(COMMAND_SQLITE, "(SELECT rowid AS place FROM @attempt WHERE " WRONG
						   ") AS n CROSS JOIN @attempt a ON a.rowid = n.place"),
			  FAILURES(COMMAND_POSTGRES, "(SELECT * FROM @attempt WHERE " WRONG ") AS a")},
	[SQL_COUNTS] = {"SELECT (SELECT count(*) FROM @analysis), (SELECT count(*) FROM @attempt), "
			"(SELECT count(*) FROM @output), (SELECT count(*) FROM @blob), "
			"(SELECT count(*) FROM @blob WHERE content IS NULL)"},
	/* The class of a column: n numbers, b booleans, a arrays, j JSON, s all else. SQLite has only words, which mean
	 * by what is in them (sqlite_post.c). */
	[SQL_POST_COLUMNS] =
		{"SELECT name, '', '', type FROM pragma_table_xinfo($1) WHERE hidden <> 1",
		 "SELECT a.attname::text, "
		 "CASE WHEN b.typname IN ('json', 'jsonb') THEN 'j' WHEN b.typcategory = 'N' THEN 'n' "
		 "WHEN b.typcategory = 'B' THEN 'b' WHEN b.typcategory = 'A' THEN 'a' ELSE 's' END, "
		 "coalesce((SELECT l FROM (VALUES ('int2', 'h'), ('int4', 'i'), ('int8', 'I'), ('float4', 'f'), "
		 "('float8', 'd'), ('bool', 'o'), ('text', 't'), ('varchar', 't'), ('bpchar', 't'), "
		 "('json', 'J'), ('jsonb', 'j')) AS v(n, l) WHERE n = b.typname AND b.typnamespace = "
		 "'pg_catalog'::regnamespace), ''), "
		 "format_type(a.atttypid, a.atttypmod) "
		 "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
		 "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid "
		 "JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END "
		 "WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped "
		 "AND n.nspname NOT IN ('fumehood', 'pg_catalog', 'information_schema')"},
	[SQL_POST_SUM] = {"SELECT sum(row_count) FROM @posted_chunk WHERE analysis_id = $1 AND attempt = $2"},
	[SQL_POST_CHUNKS] = {ROWS_OF("~ttarget, row_count, ~jfields", "posted_chunk")},
	[SQL_POST_FORGET] = {"DELETE FROM @posted_chunk WHERE analysis_id = $1 AND attempt = $2"},
	[SQL_VERDICT_SET] = {"UPDATE @attempt SET verdict = $3, status = $4, reason = $5 "
			     "WHERE analysis_id = $1 AND number = $2"},
	[SQL_EVENT_NEXT] = {"SELECT coalesce(max(position), -1) + 1 FROM @event "
			    "WHERE analysis_id = $1 AND attempt = $2"},
	[SQL_PATHS] = {"SELECT 'output', ~tanalysis_id, attempt, ~bpath FROM @output UNION ALL "
		       "SELECT 'input', ~tanalysis_id, attempt, ~bpath FROM @input"},
	[SQL_DANGLING] =
		{"SELECT o.analysis_id, o.attempt, ~bo.path, b.size, t.number FROM @output o "
		 "LEFT JOIN @blob b ON b.sha256 = o.sha256 "
		 "LEFT JOIN @attempt t ON t.analysis_id = o.analysis_id AND t.number = o.attempt "
		 "WHERE b.size IS NULL OR b.size <> o.size OR t.number IS NULL ORDER BY 1, 2 LIMIT 1000"},
	[SQL_LOCK_FOR] = {NULL, "SELECT set_config('lock_timeout', $1, true)"},
	[SQL_NOW] = {NULL, "SELECT clock_timestamp()"},
	[SQL_TOKEN_VERDICT] = {"SELECT verdict FROM @attempt WHERE token = $1"},
	[SQL_QUEUE_STATES] =
		{"SELECT q.id, q.state, q.submitted_at FROM @queue q WHERE q.id # ORDER BY q.id^"},
	[SQL_KNOWN] = {"SELECT a.id, (SELECT t.verdict = 'succeeded' FROM @attempt t "
		       "WHERE t.analysis_id = a.id ORDER BY t.number DESC LIMIT 1) "
		       "FROM @analysis a WHERE a.id #"},
	[SQL_QUEUE_FORGET] = {"DELETE FROM @queue WHERE id #", NULL, "SELECT @queue_forget($1::jsonb)"},
	[SQL_AFTER_FORGET] = {"DELETE FROM @queue_after WHERE id #", NULL,
			      "SELECT $1::text"}, /* goes with it */
	[SQL_SUBMITTER_ADD] =
		{"INSERT INTO @queue_submitter(owner, submitter) VALUES (!, $1) ON CONFLICT DO NOTHING",
		 "INSERT INTO @queue_submitter(submitter) VALUES ($1) ON CONFLICT DO NOTHING",
		 "SELECT $1::text"}, /* goes with the rows */
	[SQL_CLAIM_ANY] = {"SELECT 1 FROM @queue WHERE state = 'queued' LIMIT 1"},
	/* A row that only workers may lock: an advisory lock is anybody's. */
	[SQL_CLAIM_LOCK] = {NULL,
			    "SELECT version FROM @schema_version ORDER BY version LIMIT 1 FOR NO KEY UPDATE"},
	[SQL_CLAIM_BEGIN] = {NULL, "SELECT clock_timestamp(), " CLAIM_BLOCKS},
	/* In a circle, from the one after $1, or after who was served last. */
	[SQL_CLAIM_OWNERS] = {CLAIM_OWNERS},
	[SQL_CLAIM_SUBMITTERS] = {CLAIM_SUBMITTERS},
	[SQL_CLAIM_GROUPS] = {CLAIM_GROUPS_SQLITE, CLAIM_GROUPS_POSTGRES},
	[SQL_CLAIM_HEAD] = {CLAIM_HEAD, CLAIM_HEAD " FOR UPDATE OF q SKIP LOCKED"},
	[SQL_CLAIM_TAKE] = {CLAIM_TAKE, CLAIM_TAKE " RETURNING " CLAIM_BLOCKS},
	/* Somebody else who is serving him now will have said so. */
	[SQL_CLAIM_SERVED] =
		{"UPDATE @queue_submitter SET served_at = $3 WHERE owner = $1 AND submitter = $2",
		 "UPDATE @queue_submitter b SET served_at = $3 FROM (SELECT s.owner, s.submitter "
		 "FROM @queue_submitter s WHERE s.owner = $1 AND s.submitter = $2 FOR UPDATE SKIP LOCKED) f "
		 "WHERE b.owner = f.owner AND b.submitter = f.submitter"},
	[SQL_CLAIMED] = {"SELECT " QUEUE_ALL " FROM @queue q WHERE q.state = 'running' AND q.token #"},
	/* What is locked is being committed at this moment: nobody takes it for lost, and nobody waits for it. */
	[SQL_LEASE_PROLONG] =
		{PROLONG("1000000000", "1000", LIVE_SQLITE) "state = 'running' AND worker = $1",
		 PROLONG("interval '1 second'", "interval '1 microsecond'",
			 "$4::jsonb -> id") "id IN (SELECT q.id FROM @queue q WHERE q.state = 'running' AND q.worker = $1 "
					    "FOR UPDATE SKIP LOCKED)"},
	[SQL_WORKER_SIGN] = {"INSERT INTO @worker(id, owner, " WORKER_COLUMNS
			     ") VALUES ($1, !, " WORKER_VALUES ") " WORKER_AGAIN,
			     "INSERT INTO @worker(id, " WORKER_COLUMNS ") VALUES ($1, " WORKER_VALUES
			     ") " WORKER_AGAIN},
	[SQL_WORKER_GONE] = {"DELETE FROM @worker WHERE id = $1"},
	[SQL_WORKERS] = {WORKERS("NULL"), WORKERS("clock_timestamp()")},
	[SQL_WORKERS_SILENT] = {"SELECT 1 FROM @worker WHERE seen_at < $1 LIMIT 1"},
	[SQL_WORKERS_FORGET] = {"DELETE FROM @worker WHERE seen_at < $1"},
	[SQL_LEASES] = {"SELECT id, token, cancelling FROM @queue WHERE state = 'running' AND worker = $1"},
	/* Over, or so far off that a clock was ahead, or was set back since. */
	[SQL_LEASES_OVER] = {LEASES_OVER("$1 + 2 * coalesce(lease_ms, $2) * 1000000"),
			     LEASES_OVER("$1 + 2 * coalesce(lease_ms, $2) * interval '1 millisecond'")},
	[SQL_LEASE_OVER] = {LEASE_OVER, LEASE_OVER " FOR UPDATE SKIP LOCKED"},
	[SQL_HAND_OVER] = {HAND_OVER_SQLITE, HAND_OVER_POSTGRES},
	[SQL_BATCH] = {"SELECT batch_index, token FROM @queue WHERE batch = $1"},
	[SQL_HANDLES_SET] = {HANDLES_SET_SQLITE, HANDLES_SET_POSTGRES},
	[SQL_HANDED] =
		{"SELECT id, token, batch, batch_index, handle, worker, worker <> dispatcher, cancelling, "
		 "tries, retries FROM @queue WHERE state = 'running' AND dispatcher = $1 ORDER BY seq"},
	[SQL_HANDED_ROW] = {"SELECT " QUEUE_HANDED " FROM @queue q WHERE q.batch = $1 AND q.batch_index = $2 "
			    "AND q.state = 'running'^"},
	[SQL_HANDED_TOKEN] = {HANDED_TOKEN "^"},
	[SQL_HANDED_FENCE] = {"UPDATE @queue SET token = $2 WHERE id = $1"},
	[SQL_TAKE] =
		{"UPDATE @queue SET state = 'running', worker = $2, token = $3, attempt = $4, lease_until = $5, "
		 "lease_ms = $6, dispatcher = $7, batch = $8, batch_index = $9, handle = $10, due_at = NULL, "
		 "verdict = NULL, status = NULL, reason = NULL, live = NULL WHERE id = $1"},
	[SQL_QUEUE_DUE] =
		{"UPDATE @queue SET state = 'queued', due_at = NULL "
		 "WHERE state = 'waiting' AND due_at IS NOT NULL AND due_at <= $1",
		 "UPDATE @queue SET state = 'queued', due_at = NULL WHERE id IN (SELECT q.id FROM @queue q "
		 "WHERE q.state = 'waiting' AND q.due_at IS NOT NULL AND q.due_at <= $1 "
		 "FOR UPDATE SKIP LOCKED)"},
	[SQL_DUES] = {"SELECT id, due_at, tries, worker FROM @queue "
		      "WHERE state = 'waiting' AND due_at IS NOT NULL AND due_at > $1"},
	[SQL_QUEUE_WAKE] =
		{"UPDATE @queue SET state = 'queued', due_at = NULL "
		 "WHERE id = $1 AND state = 'waiting' AND due_at = $2",
		 "UPDATE @queue SET state = 'queued', due_at = NULL WHERE id IN (SELECT q.id FROM @queue q "
		 "WHERE q.id = $1 AND q.state = 'waiting' AND q.due_at = $2 FOR UPDATE SKIP LOCKED)"},
	[SQL_QUEUE_NEXT] = {"SELECT NULL, " FIRST_LEASE ", " FIRST_DUE,
			    "SELECT clock_timestamp(), " FIRST_LEASE ", " FIRST_DUE},
	[SQL_QUEUE_ROW] = {"SELECT q.state, q.token, q.retries, q.retry_on, q.tries, q.cancelling, q.verdict "
			   "FROM @queue q WHERE q.id = $1^"},
	[SQL_QUEUE_SETTLE] = {"UPDATE @queue SET state = $2, tries = $3, due_at = $4, verdict = $5, "
			      "status = $6, reason = " CUT(
				      "$7") ", attempt = $8, lease_until = NULL, live = NULL, " NOT_HANDED
					    " WHERE id = $1"},
	[SQL_QUEUE_RELEASE] = {"UPDATE @queue SET state = $2, due_at = $3, attempt = attempt - 1, "
			       "worker = NULL, token = NULL, lease_until = NULL, reason = " CUT(
				       "$4") ", live = NULL, " NOT_HANDED " WHERE id = $1"},
	[SQL_QUEUE_CANCEL] = {"UPDATE @queue SET state = 'cancelled', due_at = NULL, reason = $2 WHERE id #",
			      NULL, "SELECT @queue_cancel($1::jsonb, $2)"},
	[SQL_QUEUE_CANCELLING] = {"UPDATE @queue SET cancelling = true WHERE id = $1", NULL,
				  "SELECT @queue_cancelling($1)"},
	[SQL_QUEUE_AGAIN] = {"UPDATE @queue SET state = $2, tries = 0, cancelling = false, verdict = NULL, "
			     "status = NULL, reason = NULL, due_at = NULL, worker = NULL, token = NULL "
			     "WHERE id = $1",
			     NULL, "SELECT @queue_again($1, $2)"},
	[SQL_QUEUE_RESTORED] =
		{"UPDATE @queue SET reason = 'it was ' || state || ' when the backup was made: fumehood retry lets it go', "
		 "attempt = attempt - CASE state WHEN 'running' THEN 1 ELSE 0 END, state = 'restored', due_at = NULL, "
		 "cancelling = false, token = NULL, worker = NULL, lease_until = NULL, live = NULL, " NOT_HANDED
		 " WHERE state IN ('waiting', 'queued', 'running')"},
	[SQL_AFTER_WAITING] = {"SELECT q.id FROM @queue q WHERE " AWAITS " AND q.id IN "
			       "(SELECT a.id FROM @queue_after a WHERE NOT a.met AND a.after #) "
			       "ORDER BY q.id^"},
	[SQL_AFTER_LOCK] = {"SELECT count(*) FROM (SELECT q.id FROM @queue q WHERE " AWAITS " AND q.id IN "
			    "(SELECT a.id FROM @queue_after a WHERE NOT a.met AND a.after = $1) "
			    "ORDER BY q.id^) AS w"},
	[SQL_AFTER_READY] = {"UPDATE @queue AS q SET state = 'queued' WHERE q.state = 'waiting' "
			     "AND q.id IN (SELECT a.id FROM @queue_after a WHERE NOT a.met AND a.after = $1) "
			     "AND NOT EXISTS (SELECT 1 FROM @queue_after o WHERE o.id = q.id AND NOT o.met "
			     "AND o.after <> $1)"},
	[SQL_AFTER_MET] = {"UPDATE @queue_after SET met = true WHERE after = $1 AND NOT met"},
	[SQL_AFTER_RECALL] =
		{"UPDATE @queue_after SET met = true WHERE id = $1 AND NOT met AND NOT EXISTS "
		 "(SELECT 1 FROM @queue q WHERE q.id = after) AND (SELECT t.verdict = 'succeeded' "
		 "FROM @attempt t WHERE t.analysis_id = after ORDER BY t.number DESC LIMIT 1)",
		 NULL, "SELECT $1::text"}, /* goes with trying it again */
	[SQL_AFTER_ALL_MET] = {"UPDATE @queue_after SET met = true WHERE id = $1 AND NOT met", NULL,
			       "SELECT $1::text"},
	[SQL_ARRAY_STANDING] = {ARRAY_STANDING},
	[SQL_ARRAY_WITNESS] = {ARRAY_WITNESS},
	[SQL_ARRAY_PASS] =
		{"INSERT INTO @queue_after(id, after, met) SELECT a.id, $3, false FROM @queue_after a "
		 "WHERE a.after = $1 AND NOT a.met AND EXISTS (SELECT 1 FROM @queue_after b "
		 "WHERE b.id = a.id AND b.after = $2 AND NOT b.met) "
		 "ON CONFLICT (id, after) DO UPDATE SET met = false"},
	[SQL_ARRAY_MET] = {"UPDATE @queue_after SET met = true WHERE after = $2 AND NOT met AND id IN "
			   "(SELECT a.id FROM @queue_after a WHERE a.after = $1 AND NOT a.met)"},
	[SQL_AFTER] = {"SELECT after, met FROM @queue_after WHERE id = $1 ORDER BY after"},
	[SQL_QUEUE_LIST] = {QUEUE_LIST("(CAST($1 AS TEXT) IS NULL OR state = CAST($1 AS TEXT))", "$2", "$3")},
	[SQL_QUEUE_LIST_WAITING] = {QUEUE_LIST(OPEN("waiting"), "$1", "$2")},
	[SQL_QUEUE_LIST_QUEUED] = {QUEUE_LIST(OPEN("queued"), "$1", "$2")},
	[SQL_QUEUE_LIST_RUNNING] = {QUEUE_LIST(OPEN("running"), "$1", "$2")},
	[SQL_QUEUE_LIST_CANCELLED] = {QUEUE_LIST(OPEN("cancelled"), "$1", "$2")},
	[SQL_QUEUE_LIST_RESTORED] = {QUEUE_LIST(OPEN("restored"), "$1", "$2")},
	/* SQLite takes one part after the other; PostgreSQL may read them side by side. */
	[SQL_QUEUE_LIST_OPEN] = {QUEUE_OPENS, QUEUE_OPENS " ORDER BY turn, seq DESC"},
	[SQL_QUEUE_OPEN_COUNTS] = {"SELECT " COUNT_OPEN("waiting") ", " COUNT_OPEN("queued") ", " COUNT_OPEN(
		"running") ", " COUNT_OPEN("cancelled") ", " COUNT_OPEN("restored")},
	[SQL_RECENT] = {"SELECT r.verdict, r.ended_at FROM @attempt r WHERE r.created_at >= $1 "
			"ORDER BY r.created_at DESC LIMIT $2"},
	[SQL_QUEUE_LOOK] = {"SELECT " QUEUE_SHOWN " FROM @queue WHERE id #"},
	[SQL_ENDED_LOOK] =
		{"SELECT a.analysis_id, a.number, a.verdict, a.status, ~ta.reason, ! FROM @attempt a "
		 "WHERE a.analysis_id # AND a.number = "
		 "(SELECT max(m.number) FROM @attempt m WHERE m.analysis_id = a.analysis_id)"},
	[SQL_RANGE_KNOWN] = {"SELECT EXISTS (SELECT 1 FROM @queue WHERE id >= $1 AND id <= $2), "
			     "EXISTS (SELECT 1 FROM @analysis WHERE id >= $1 AND id <= $2), "
			     "EXISTS (SELECT 1 FROM @queue_after WHERE id >= $1 AND id <= $2)"},
	[SQL_ARRAY_QUEUED] = {ARRAY_IDS("queue")},
	[SQL_ARRAY_KNOWN] = {ARRAY_IDS("queue") " UNION " ARRAY_IDS("analysis")},
	[SQL_ARRAYS_NAMED] = {ARRAYS_NAMED("json_each($1) AS j"),
			      ARRAYS_NAMED("json_array_elements_text($1::json) AS j(value)")},
	[SQL_RUN_KNOWN] = {"SELECT " HAS_SUCCEEDED(
		"$3") ", "
		      "1 + " LAST_NUMBER("$3") ", (SELECT j.state FROM @queue j WHERE j.id = $3), "
					       "(SELECT q.id FROM @queue q WHERE " TASK(
						       "q.id") " ORDER BY q.id LIMIT 1)"},
	[SQL_QUEUE_JOB] = {"SELECT " QUEUE_ALL " FROM @queue q WHERE q.id = $1"},
	[SQL_QUEUE_COUNTS] = {"SELECT state, count(*) FROM @queue GROUP BY state"},
	[SQL_QUEUE_COUNTS_SOME] =
		{"SELECT p.state, count(*), max(p.id) FROM (SELECT q.id, q.state FROM @queue q "
		 "WHERE q.id > $1 ORDER BY q.id LIMIT $2) AS p GROUP BY p.state"},
	[SQL_TOMBSTONE] = {"SELECT attempt, removed_at FROM @tombstone WHERE analysis_id = $1 "
			   "AND (attempt = $2 OR 0 = $2) ORDER BY attempt DESC LIMIT 1"},
	[SQL_REMOVE_OF] = {"SELECT analysis_id, number FROM @attempt WHERE analysis_id # "
			   "ORDER BY analysis_id, number DESC"},
	[SQL_REMOVE_PAGE] =
		{"SELECT a.analysis_id, a.number, a.created_at, a.number = (SELECT max(m.number) FROM @attempt m "
		 "WHERE m.analysis_id = a.analysis_id) FROM @attempt a WHERE a.created_at <= $3 AND (a.created_at < $3 "
		 "OR a.analysis_id < $4 OR (a.analysis_id = $4 AND a.number < $5)) "
		 "AND (CAST($1 AS TEXT) IS NULL OR a.verdict #) AND ($6 = 0 OR a.pruned_at IS NULL) "
		 "ORDER BY a.created_at DESC, a.analysis_id DESC, a.number DESC LIMIT $2"},
	[SQL_REMOVE_QUEUED] =
		{"SELECT q.id FROM @queue q WHERE q.id > $3 AND q.state IN ('finished', 'cancelled') "
		 "AND q.submitted_at < $2 AND (CAST($1 AS TEXT) IS NULL OR "
		 "CASE WHEN q.state = 'cancelled' THEN 'cancelled' ELSE q.verdict END #) ORDER BY q.id LIMIT $4"},
	[SQL_REMOVE_BUILT] =
		{"SELECT DISTINCT i.from_analysis, i.from_attempt, i.analysis_id, i.attempt FROM @input i "
		 "WHERE i.from_analysis IS NOT NULL AND i.from_analysis # AND i.analysis_id <> i.from_analysis"},
	[SQL_REMOVE_AWAITED] = {"SELECT a.after, a.id FROM @queue_after a JOIN @queue q ON q.id = a.id "
				"WHERE a.after # AND " ACTIVE},
	[SQL_REMOVE_SUMS] = {REMOVE_SUMS("json_each($1) v", "json_extract(v.value, '$$[0]')",
					 "json_extract(v.value, '$$[1]')"),
			     REMOVE_SUMS("json_array_elements($1::json) v(value)", "v.value->>0",
					 "(v.value->>1)::integer")},
	[SQL_REMOVE_LIST] = {"INSERT INTO temp.fumehood_victim(id, nr) SELECT json_extract(value, '$$[0]'), "
			     "json_extract(value, '$$[1]') FROM json_each($1)"},
	[SQL_REMOVE] = {NULL, "SELECT @remove_attempts($1::jsonb, $2::integer <> 0)",
			"SELECT @remove_own($1::jsonb, $2::integer <> 0)"},
	[SQL_LOOSE_ANY] = {"SELECT 1 FROM @blob_loose LIMIT 1"},
	[SQL_LOOSE_TAKE] = {"DELETE FROM @blob_loose WHERE sha256 = $1"},
	[SQL_LOOSE_PAGE] = {"SELECT sha256 FROM @blob_loose WHERE sha256 > $1 ORDER BY sha256 LIMIT $2"},
	[SQL_LOOSE_CLAIM] = {"UPDATE @blob_loose SET sweep = $1 WHERE sha256 > $2 AND sha256 <= $3"},
	/* From what refers to the few that are loose. Inputs are what a retry would be made from. */
	[SQL_LOOSE_KEPT] =
		{LOOSE_OF("output", "CROSS JOIN") " UNION " LOOSE_OF("input", "CROSS JOIN") " UNION " LOOSE_OF(
			 "query",
			 "CROSS JOIN") " UNION SELECT l.sha256 FROM @queue q CROSS JOIN json_tree(q.inputs) j "
				       "CROSS JOIN @blob_loose l WHERE q.inputs <> '[]' AND j.key = 'sha256' "
				       "AND l.sha256 = fumehood_bytes(j.value) AND l.sweep = $1",
		 LOOSE_OF("output", ",") " UNION " LOOSE_OF("input", ",") " UNION " LOOSE_OF(
			 "query",
			 ",") " UNION SELECT l.sha256 FROM @queue q, jsonb_path_query(q.inputs, '$$.**.sha256') j, @blob_loose l "
			      "WHERE l.sha256 = decode(trim('\"' FROM j::text), 'hex') AND l.sweep = $1"},
	[SQL_LOOSE_LEFT] = {"SELECT sha256 FROM @blob_loose WHERE sweep = $1 AND sha256 > $2 "
			    "ORDER BY sha256 LIMIT $3"},
	[SQL_LOOSE_FORGET] = {"DELETE FROM @blob_loose WHERE sha256 = $1 AND sweep = $2",
			      "DELETE FROM @blob_loose WHERE sha256 = ANY ($1) AND sweep = $2"},
	[SQL_LOOSE_SIZE] = {"SELECT b.size FROM @blob b JOIN @blob_loose l ON l.sha256 = b.sha256 "
			    "WHERE b.sha256 = $1 AND l.sweep = $2"},
	[SQL_LOOSE_SWEEP] = {"DELETE FROM @blob WHERE sha256 = $1",
			     "SELECT n, bytes FROM @blob_sweep($1, $2)"},
};

const struct sql_table_info sql_tables[TABLE_COUNT] = {
	[TABLE_ATTEMPT] = {"attempt", &(ATTEMPT_ALL ", committed_at")[2], ATTEMPT_LETTERS, true},
	[TABLE_BLOB] = {"blob", "sha256, size, content", "bIb"},
	[TABLE_CHUNK] = {"object_chunk", "sha256, position, bytes", "bib"},
	[TABLE_OUTPUT] = TABLE_OF("output", OUTPUT_COLUMNS),
	[TABLE_REJECTED] = TABLE_OF("rejected_output", REJECTED_COLUMNS),
	[TABLE_INPUT] = TABLE_OF("input", INPUT_COLUMNS),
	[TABLE_LOG] = {"log", "analysis_id, attempt, stream, head, tail, omitted", "titbbI"},
	[TABLE_EVENT] = TABLE_OF("event", EVENT_COLUMNS),
	[TABLE_SAMPLE] = TABLE_OF("sample", SAMPLE_COLUMNS),
	[TABLE_STEP] = TABLE_OF("step", STEP_COLUMNS),
	[TABLE_DENIAL] = TABLE_OF("denial", DENIAL_COLUMNS),
	[TABLE_QUERY] = TABLE_OF("query", QUERY_COLUMNS),
	[TABLE_POSTED] = {"posted_chunk",
			  "analysis_id, attempt, position, target, row_count, fields, posted_at", "tiitibz"},
	[TABLE_QUEUE] = {"queue",
			 "id, state, submitter, priority, retries, retry_on, again, tries, request, inputs, "
			 "memory_bytes, cpus_milli, submitted_at, attempt, cancelling",
			 "tttiiioijjIIzio", true},
	[TABLE_QUEUE_AFTER] = {"queue_after", "id, after, met", "tto"},
};

/* Names are ours or the server's own, never a stranger's. Who left off fsyncing commits for speed did not mean these. */
char *sql_postgres_settings(bool is_local, enum sql_part part, uint64_t lock_ms, uint64_t statement_ms)
{
	const char *set = is_local ? "SET LOCAL" : "SET";
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b,
		      "%s search_path = pg_catalog; %s idle_in_transaction_session_timeout = '1min'; "
		      "%s jit = off; %s lock_timeout = %" PRIu64 "; %s statement_timeout = %" PRIu64 "; "
		      "SELECT set_config('synchronous_commit', 'on', %s) "
		      "WHERE current_setting('synchronous_commit') = 'off'",
		      set, set, set, set, lock_ms, set, statement_ms, is_local ? "true" : "false");
	if (part == PART_WORKER)
		buffer_printf(&b, "; %s ROLE fumehood_worker", set);
	return buffer_take(&b);
}

char *sql_postgres_begin(const char *settings, bool asks_version)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b, "BEGIN ISOLATION LEVEL READ COMMITTED; %s%s", settings,
		      asks_version ? "; SELECT max(version) FROM fumehood.schema_version" : "");
	return buffer_take(&b);
}

/* An advisory lock is anybody's, so it is only for the first time. What another has made meanwhile is seen by the next
 * statement that reads a table; to_regnamespace() would believe what it knew before. CREATE SCHEMA IF NOT EXISTS wants
 * the right to create one even if it exists. */
const char sql_postgres_migrate_lock[] =
	"DO $$ BEGIN IF to_regclass('fumehood.schema_version') IS NOT NULL THEN "
	"LOCK TABLE fumehood.schema_version IN ACCESS EXCLUSIVE MODE; "
	"ELSE PERFORM pg_advisory_xact_lock(7308620195); END IF; END $$;"
	"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'fumehood') THEN "
	"CREATE SCHEMA fumehood; END IF; END $$";

/* Whom the rules of the roles do not concern writes tables, as if there were no roles. The two are one transaction. */
const char sql_postgres_part[] = "SET LOCAL search_path = pg_catalog; "
				 "SELECT CASE WHEN c.oid IS NULL OR NOT row_security_active(c.oid) THEN 0 "
				 "WHEN EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname = 'fumehood_worker' "
				 "AND pg_has_role(r.oid, 'MEMBER')) THEN 1 ELSE 2 END "
				 "FROM (VALUES (0)) v(n) LEFT JOIN pg_class c ON c.relname = 'queue' "
				 "AND c.relnamespace = to_regnamespace('fumehood')";

const char sql_sqlite_trusting[] = "PRAGMA foreign_keys = OFF";
const char sql_sqlite_checking[] = "PRAGMA foreign_keys = ON";

const char sql_postgres_notify[] = "NOTIFY fumehood_queue";
const char sql_postgres_listen[] = "LISTEN fumehood_queue";
const char sql_postgres_unlisten[] = "UNLISTEN fumehood_queue";

static const char *const prefixes[SQL_DIALECTS] = {"fumehood_", "fumehood.", "fumehood."};
static const char *const owners[SQL_DIALECTS] = {"fumehood_owner()", "owner", "owner"};

/* "~tNAME", from its letter on: so much of a column as a reader takes (backend.h), where the server would send more. Returns its
 * last character. */
static const char *expand_piece(struct buffer *b, const char *p, enum sql_dialect dialect)
{
	int n = (int)strspn(p + 1, "abcdefghijklmnopqrstuvwxyz0123456789_.");
	int most = *p == 'B' || *p == 'j' ? VALUE_SIZE_MAX : VALUE_TEXT_MAX;

	if (dialect == SQL_SQLITE || !strchr("tjbB", *p))
		buffer_append(b, p + 1, (size_t)n);
	else
		buffer_printf(b, *p == 't' || *p == 'j' ? "left(%.*s::text, %d)" : "substr(%.*s, 1, %d)", n,
			      p + 1, most);
	return p + n;
}

char *sql_expand(enum sql which, enum sql_dialect dialect)
{
	static const char *const locks[SQL_DIALECTS] = {"", " FOR UPDATE", " FOR UPDATE"};
	/* As an array PostgreSQL looks each up in an index, whatever it believes of the table. */
	const char *list = dialect == SQL_SQLITE ? "IN (SELECT value FROM json_each(?1))"
						 : "= ANY (ARRAY(SELECT json_array_elements_text($1::json)))";
	const char *text = statements[which].sqlite;
	_cleanup_buffer_ struct buffer b = {0};

	if (dialect != SQL_SQLITE && statements[which].postgres)
		text = statements[which].postgres;
	if (dialect == SQL_SUBMITTER && statements[which].submitter)
		text = statements[which].submitter;
	assert(text); /* else this database has no such statement */
	for (const char *p = text; *p; p++) {
		if (*p == '@')
			buffer_puts(&b, prefixes[dialect]);
		else if (*p == '$' && p[1] == '$') /* a dollar */
			buffer_append(&b, p++, 1);
		else if (*p == '$' && dialect == SQL_SQLITE)
			buffer_puts(&b, "?");
		else if (*p == '#')
			buffer_puts(&b, list);
		else if (*p == '^')
			buffer_puts(&b, locks[dialect]);
		else if (*p == '!')
			buffer_puts(&b, owners[dialect]);
		else if (*p == '~')
			p = expand_piece(&b, p + 1, dialect);
		else
			buffer_append(&b, p, 1);
	}
	return buffer_take(&b);
}

char *sql_insert(enum sql_table table)
{
	const struct sql_table_info *t = &sql_tables[table];
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b, "INSERT INTO fumehood_%s(%s%s) VALUES (", t->name, t->columns,
		      t->owned ? ", owner" : "");
	for (size_t i = 0; t->types[i]; i++)
		buffer_printf(&b, "%s?%zu", i ? ", " : "", i + 1);
	buffer_puts(&b, t->owned ? ", fumehood_owner())" : ")");
	return buffer_take(&b);
}

char *sql_copy(enum sql_table table)
{
	const struct sql_table_info *t = &sql_tables[table];
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b, "COPY fumehood.%s(%s) FROM STDIN (FORMAT binary)", t->name, t->columns);
	return buffer_take(&b);
}

char *sql_put(enum sql_table table)
{
	char *text;

	if (table != TABLE_BLOB && table != TABLE_QUEUE && table != TABLE_QUEUE_AFTER)
		return NULL;
	return asprintf(&text, "SELECT fumehood.put_%s($1)", sql_tables[table].name) < 0 ? NULL : text;
}
