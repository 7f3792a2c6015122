/* What is PostgreSQL's alone: connections that fail, or vanish in the middle. Runs under tests/support/with-postgres. */
#include "postgres.h"
#include "store.h"

#include "test_store.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static bool sends_nothing;

/* libpq's, too: what is exported here comes before the C library's. */
ssize_t send(int fd, const void *data, size_t size, int flags)
{
	if (!sends_nothing)
		return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
	sends_nothing = false;
	errno = ENOMEM;
	return -1;
}

static pid_t server_pid(void)
{
	return (pid_t)atoi(getenv("TEST_POSTGRES_PID"));
}

/* The process that serves us: the server's child whose title says so. */
static pid_t backend_pid(void)
{
	_cleanup_buffer_ struct buffer children = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", server_pid(), server_pid());
	OK(file_load(AT_FDCWD, path, 4096, &children, &err));
	for (char *save = NULL, *word = strtok_r(children.data, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		_cleanup_buffer_ struct buffer title = {0};

		snprintf(path, sizeof path, "/proc/%s/cmdline", word);
		if (file_load(AT_FDCWD, path, 4096, &title, &err) == 0 &&
		    strstr(title.data, "owner postgres"))
			return (pid_t)atoi(word);
	}
	fail_msg("nobody serves us");
	return -1;
}

static void test_a_wrong_password_is_one_clear_sentence_without_it(void **state)
{
	struct ledger *l = NULL;
	char url[512], *password;

	(void)state;
	snprintf(url, sizeof url, "%s", getenv("TEST_POSTGRES_TCP"));
	password = strstr(url, "s3cret");
	memcpy(password, "wr0ng!", 6);
	REFUSED(ledger_open(url, LEDGER_CREATE, &l, &err), "password authentication failed");
	assert_null(strstr(err.message, "wr0ng!"));
	assert_null(strchr(err.message, '\n'));
	assert_int_equal(err.kind, ERROR_LEDGER);
}

static void test_the_right_password_opens_and_is_not_in_the_status(void **state)
{
	struct ledger *l = NULL;
	json_t *status = NULL;
	_cleanup_free_ char *text = NULL;

	(void)state;
	OK(ledger_open(getenv("TEST_POSTGRES_TCP"), LEDGER_CREATE, &l, &err));
	OK(ledger_status(l, &status, &err));
	text = json_dumps(status, 0);
	assert_null(strstr(text, "s3cret"));
	json_decref(status);
	ledger_close(l);
}

static void test_a_url_that_makes_no_sense_is_not_quoted_with_its_password(void **state)
{
	struct ledger *l = NULL;

	(void)state;
	REFUSED(ledger_open("postgresql://u:s3cret@[::1/db?nonsense", LEDGER_CREATE, &l, &err),
		"cannot understand");
	assert_null(strstr(err.message, "s3cret"));
	/* What may be the rest of a password is no parameter. */
	REFUSED(ledger_open("postgresql://u:x/y?s3cret=z@h/db", LEDGER_CREATE, &l, &err),
		"cannot understand");
	assert_null(strstr(err.message, "s3cret"));
}

static void test_a_parameter_that_nobody_knows_is_named(void **state)
{
	struct ledger *l = NULL;

	(void)state;
	REFUSED(ledger_open("postgresql://u:s3cret@h/db?sslmode=disable&objekts=v4lue&busy=1s", LEDGER_CREATE,
			    &l, &err),
		"no parameter 'objekts': did you mean objects=?");
	assert_null(strstr(err.message, "s3cret"));
	assert_null(strstr(err.message, "v4lue"));
	REFUSED(ledger_open("postgresql:///db?colour=red", LEDGER_CREATE, &l, &err),
		"no parameter 'colour': there are objects=, ");
	/* libpq's own, with a value missing. */
	REFUSED(ledger_open("postgresql:///db?sslmode", LEDGER_CREATE, &l, &err), "cannot understand");
}

static void test_no_server_and_no_database_are_one_clear_sentence_each(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;
	char url[512], *database;

	snprintf(url, sizeof url, "postgresql://u@/db?host=%s", p->dir);
	REFUSED(ledger_open(url, LEDGER_CREATE, &l, &err),
		"cannot connect to the ledger 'postgresql://u@/db?host=");
	assert_null(strchr(err.message, '\n'));
	snprintf(url, sizeof url, "%s", getenv("TEST_POSTGRES_TCP"));
	database = strstr(url, "/postgres");
	strcpy(database, "/none");
	REFUSED(ledger_open(url, LEDGER_CREATE, &l, &err), "database \"none\" does not exist");
}

static void test_a_user_without_the_right_is_told_so(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;
	char url[1024];

	place_sql(p, NULL, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN");
	snprintf(url, sizeof url, "postgresql://guest@%s", strchr(p->url, '@') + 1);
	REFUSED(ledger_open(url, LEDGER_CREATE, &l, &err), "permission denied");
	place_sql(p, NULL, "DROP ROLE guest");
}

static void test_a_read_only_server_is_one_clear_sentence(void **state)
{
	const struct place *p = *state;
	struct ledger *l = ledger_close(place_open(p));
	_cleanup_attempt_ struct attempt a;
	char url[1200];
	int number;

	snprintf(url, sizeof url, "%s&options=-c%%20default_transaction_read_only%%3Don", p->url);
	OK(ledger_open(url, LEDGER_CREATE, &l, &err));
	attempt_make(&a, "a");
	REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err), "it is read-only");
	ledger_close(l);
}

/* Does something to the server in the middle of a transaction, once. */
struct accident {
	const struct place *place;
	void (*happen)(void);
	bool happened;
};

static int accident_content(void *arg, const struct output *o, struct error *e)
{
	struct accident *a = arg;

	if (!a->happened)
		a->happen();
	a->happened = true;
	return place_content((void *)a->place, o, e);
}

static void terminate_backend(void)
{
	kill(backend_pid(), SIGTERM);
}

/* The server restarts every process when one of them was killed. */
static void kill_backend(void)
{
	kill(backend_pid(), SIGKILL);
}

static pid_t stopped;

static void stop_backend(void)
{
	stopped = backend_pid();
	kill(stopped, SIGSTOP);
}

static void assert_survives(const struct place *p, void (*happen)(void))
{
	struct accident accident = {p, happen, false};
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	json_t *check = NULL;
	int number;

	attempt_make(&a, "accident");
	attempt_output(&a, p, "x", "content", 7);
	OK(ledger_commit(l, &a, accident_content, &accident, &number, &err));
	assert_true(accident.happened);
	assert_int_equal(number, 1);
	OK(ledger_check(l, &check, &err));
	assert_int_equal(json_array_size(json_object_get(check, "problems")), 0);
	json_decref(check);
	ledger_close(l);
}

static void test_a_connection_that_is_cut_during_the_commit_is_made_again(void **state)
{
	assert_survives(*state, terminate_backend);
}

static void test_a_server_that_is_killed_and_restarts_during_the_commit_gets_it(void **state)
{
	assert_survives(*state, kill_backend);
}

static struct ledger *short_of_memory;

static void run_out_of_memory(void)
{
	buffer_fail(&postgres_of(short_of_memory->backend)->rows);
}

static void test_memory_that_was_out_is_out_for_one_transaction_only(void **state)
{
	const struct place *p = *state;
	struct accident accident = {p, run_out_of_memory, false};
	struct ledger *l = short_of_memory = place_open(p);
	_cleanup_attempt_ struct attempt a;
	int number;

	attempt_make(&a, "short");
	attempt_output(&a, p, "x", "content", 7);
	REFUSED(ledger_commit(l, &a, accident_content, &accident, &number, &err), "Cannot allocate memory");
	assert_true(accident.happened);
	OK(ledger_commit(l, &a, accident_content, &accident, &number, &err));
	assert_int_equal(number, 1);
	ledger_close(l);
}

/* A ledger that is there already, with more parameters. */
static struct ledger *open_with(const struct place *p, const char *parameters)
{
	struct ledger *l = ledger_close(place_open(p));
	char url[1200];

	snprintf(url, sizeof url, "%s&%s", p->url, parameters);
	OK(ledger_open(url, 0, &l, &err));
	return l;
}

static void send_nothing(void)
{
	sends_nothing = true;
}

/* libpq forgets what it cannot send, and waits for an answer. */
static void test_what_could_not_be_sent_is_not_waited_for(void **state)
{
	const struct place *p = *state;
	struct accident accident = {p, send_nothing, false};
	struct ledger *l = open_with(p, "busy=200ms");
	_cleanup_attempt_ struct attempt a;
	int number;

	attempt_make(&a, "unsent");
	attempt_output(&a, p, "x", "content", 7);
	OK(ledger_commit(l, &a, accident_content, &accident, &number, &err));
	assert_false(sends_nothing);
	assert_int_equal(number, 1);
	ledger_close(l);
}

/* Nobody answers any more, not even who asks whether somebody is there. */
static void stop_server(void)
{
	stop_backend();
	kill(server_pid(), SIGSTOP);
}

static void test_a_server_that_is_stopped_is_given_up_in_time_and_gets_it_later(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "busy=200ms");
	struct accident accident = {p, stop_server, false};
	_cleanup_attempt_ struct attempt a;
	int number, r;

	attempt_make(&a, "stopped");
	attempt_output(&a, p, "x", "content", 7);
	setenv("PGCONNECT_TIMEOUT", "2", 1);
	r = ledger_commit(l, &a, accident_content, &accident, &number, &err);
	kill(server_pid(), SIGCONT);
	kill(stopped, SIGCONT);
	unsetenv("PGCONNECT_TIMEOUT");
	if (r >= 0 || !strstr(err.message, "is its server stopped?"))
		fail_msg("it was not given up: %s", err.message);
	ledger_close(l);
	l = place_open(p);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	ledger_close(l);
}

/* The server answers others. If this process of it was stopped while it read, it seems to wait for us, and it is tried again,
 * against its locks; else it seems to work, and only the time of a statement ends it. */
static void test_a_process_of_the_server_that_is_stopped_is_given_up_in_time_and_gets_it_later(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "busy=200ms&statement=1s");
	struct accident accident = {p, stop_backend, false};
	_cleanup_attempt_ struct attempt a;
	int number, r;

	attempt_make(&a, "stopped");
	attempt_output(&a, p, "x", "content", 7);
	r = ledger_commit(l, &a, accident_content, &accident, &number, &err);
	kill(stopped, SIGCONT);
	if (r >= 0 ||
	    (!strstr(err.message, "have kept the ledger") && !strstr(err.message, "is its server stopped?")))
		fail_msg("it was not given up: %s", err.message);
	ledger_close(l);
	l = place_open(p);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	ledger_close(l);
}

static void test_a_statement_that_takes_its_time_is_no_dead_server(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "busy=200ms");
	json_t *check = NULL;

	quick_commit(l, p, "first", VERDICT_SUCCEEDED);
	place_sql(p, NULL,
		  "CREATE FUNCTION fumehood.slow() RETURNS trigger LANGUAGE plpgsql AS "
		  "'BEGIN PERFORM pg_catalog.pg_sleep(4); RETURN NULL; END';"
		  "CREATE TRIGGER slow AFTER INSERT ON fumehood.attempt EXECUTE FUNCTION fumehood.slow()");
	assert_int_equal(quick_commit(l, p, "slow", VERDICT_SUCCEEDED), 1);
	/* db check, on a server that is slow to read. */
	place_sql(
		p, NULL,
		"ALTER TABLE fumehood.output RENAME TO output_real;"
		"CREATE VIEW fumehood.output AS SELECT o.* FROM pg_catalog.pg_sleep(2), fumehood.output_real o");
	OK(ledger_check(l, &check, &err));
	assert_int_equal(json_array_size(json_object_get(check, "problems")), 0);
	json_decref(check);
	ledger_close(l);
}

static void test_a_statement_that_takes_longer_than_it_may_is_ended_by_the_server(void **state)
{
	const struct place *p = *state;
	struct ledger *l = open_with(p, "statement=500ms");
	_cleanup_attempt_ struct attempt a;
	int number;

	place_sql(p, NULL,
		  "CREATE FUNCTION fumehood.slow() RETURNS trigger LANGUAGE plpgsql AS "
		  "'BEGIN PERFORM pg_catalog.pg_sleep(100); RETURN NULL; END';"
		  "CREATE TRIGGER slow AFTER INSERT ON fumehood.attempt EXECUTE FUNCTION fumehood.slow()");
	attempt_make(&a, "slow");
	REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err), "statement=");
	ledger_close(l);
}

static void test_an_idle_connection_that_was_cut_is_made_again(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct analysis_state s;

	quick_commit(l, p, "a", VERDICT_FAILED);
	terminate_backend();
	OK(ledger_analysis(l, "a", &s, &err));
	assert_int_equal(s.last_attempt, 1);
	terminate_backend();
	assert_int_equal(quick_commit(l, p, "a", VERDICT_FAILED), 2);
	ledger_close(l);
}

static int socket_at(const char *dir, int port, bool listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.%d", dir, port);
	if (listening ? bind(fd, (void *)&address, sizeof address) < 0 || listen(fd, 8) < 0
		      : connect(fd, (void *)&address, sizeof address) < 0)
		_exit(1);
	return fd;
}

/* Passes on what the two say. With cut, the first COMMIT reaches the server, and its answer nobody. */
static bool relay(int client, int server, bool cut)
{
	static char data[65536];
	bool cutting = false;

	for (;;) {
		struct pollfd fds[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
		ssize_t n;

		poll(fds, 2, -1);
		for (int i = 0; i < 2; i++) {
			if (!fds[i].revents)
				continue;
			n = read(fds[i].fd, data, sizeof data);
			if (n <= 0 || (i == 1 && cutting))
				return cutting;
			cutting = cutting || (i == 0 && cut && memmem(data, (size_t)n, "COMMIT", 6));
			if (file_write_all(fds[1 - i].fd, data, (size_t)n) < 0)
				return cutting;
		}
	}
}

static void proxy(const char *dir, const char *server_dir, int port, int ready)
{
	int listener = socket_at(dir, port, true);
	bool cut = true;

	close(ready);
	for (;;) {
		int client = accept(listener, NULL, NULL), server = socket_at(server_dir, port, false);

		if (relay(client, server, cut))
			cut = false;
		close(client);
		close(server);
	}
}

static void test_a_commit_of_unknown_outcome_is_asked_for_by_its_token(void **state)
{
	const struct place *p = *state;
	char url[1024], server_dir[128];
	struct ledger *l = ledger_close(place_open(p));
	_cleanup_attempt_ struct attempt a;
	int ready[2], port, number = 0;
	json_t *attempts = NULL;
	pid_t pid;
	char byte;

	assert_int_equal(sscanf(strstr(p->url, "host="), "host=%127[^&]&port=%d", server_dir, &port), 2);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		close(ready[0]);
		proxy(p->dir, server_dir, port, ready[1]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	snprintf(url, sizeof url, "postgresql://owner@/postgres?host=%s&port=%d&objects=%s", p->dir, port,
		 p->objects);
	OK(ledger_open(url, 0, &l, &err));
	attempt_make(&a, "unknown");
	attempt_output(&a, p, "x", "content", 7);
	OK(ledger_commit(l, &a, place_content, (void *)p, &number, &err));
	assert_int_equal(number, 1);
	OK(ledger_attempts(l, "unknown", &attempts, &err));
	assert_int_equal(json_array_size(attempts), 1);
	json_decref(attempts);
	ledger_close(l);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(a_wrong_password_is_one_clear_sentence_without_it),
		ROW(the_right_password_opens_and_is_not_in_the_status),
		ROW(a_url_that_makes_no_sense_is_not_quoted_with_its_password),
		ROW(a_parameter_that_nobody_knows_is_named),
		ROW(no_server_and_no_database_are_one_clear_sentence_each),
		ROW(a_user_without_the_right_is_told_so),
		ROW(a_read_only_server_is_one_clear_sentence),
		ROW(a_connection_that_is_cut_during_the_commit_is_made_again),
		ROW(a_server_that_is_killed_and_restarts_during_the_commit_gets_it),
		ROW(memory_that_was_out_is_out_for_one_transaction_only),
		ROW(what_could_not_be_sent_is_not_waited_for),
		ROW(a_server_that_is_stopped_is_given_up_in_time_and_gets_it_later),
		ROW(a_process_of_the_server_that_is_stopped_is_given_up_in_time_and_gets_it_later),
		ROW(a_statement_that_takes_its_time_is_no_dead_server),
		ROW(a_statement_that_takes_longer_than_it_may_is_ended_by_the_server),
		ROW(an_idle_connection_that_was_cut_is_made_again),
		ROW(a_commit_of_unknown_outcome_is_asked_for_by_its_token),
	};

	if (!getenv("TEST_LEDGER") || !getenv("TEST_POSTGRES_PID")) {
		fprintf(stderr, "run this with tests/support/with-postgres\n");
		return 1;
	}
	return cmocka_run_group_tests_name("store's PostgreSQL", tests, NULL, NULL);
}
