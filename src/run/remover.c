#include "remover.h"
#include "process.h"
#include "ended.h"
#include "hand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What a caller does not notice, and how many may be under way when he still goes on. */
enum { SMALL_FILES = 256, SMALL_BYTES = 64 << 20, RETIRED_MAX = 4 };

/* ---- a child ---- */

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Whoever waits for the end of a pipe of the command must not wait for us. */
static void close_others(const struct workspace *w)
{
	int keep[] = {w->site->root_fd, w->site->runs, w->run_fd, w->lock_fd, w->fd};
	int next = 0;

	qsort(keep, ARRAY_SIZE(keep), sizeof *keep, compare);
	for (size_t i = 0; i < ARRAY_SIZE(keep); i++) {
		if (keep[i] > next)
			close_range((unsigned)next, (unsigned)keep[i] - 1, 0);
		next = keep[i] < next ? next : keep[i] + 1;
	}
	close_range((unsigned)next, ~0U, 0);
}

static _Noreturn void remove_and_exit(struct workspace *w)
{
	struct error ignored = ERROR_INIT;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)!chdir("/");
	prctl(PR_SET_NAME, "fumehood-remove");
	close_others(w);
	/* What is opened must not be taken for a standard stream. */
	while (open("/dev/null", O_RDWR | O_CLOEXEC) >= 0 && fcntl(STDERR_FILENO, F_GETFD) < 0)
		;
	_exit(workspace_remove(w, &ignored) < 0);
}

static bool start_child(struct workspace *w)
{
	pid_t child = fork();

	if (child == 0)
		remove_and_exit(w);
	if (child < 0)
		return false;
	workspace_hand_over(w);
	return true;
}

/* ---- a thread ---- */

static void *remover_main(void *arg)
{
	struct remover *r = arg;
	struct error ignored = ERROR_INIT;

	(void)workspace_remove(r->workspace, &ignored);
	workspace_close(r->workspace);
	atomic_store(&r->done, true);
	return NULL;
}

void remover_close(struct remover *r)
{
	if (!r->has_thread)
		return;
	pthread_join(r->thread, NULL);
	free(TAKE_PTR(r->workspace));
	r->has_thread = false;
}

static bool start_thread(struct remover *r, struct workspace *w)
{
	if (r->has_thread && !atomic_load(&r->done))
		return false;
	remover_close(r);
	r->workspace = malloc(sizeof *r->workspace);
	if (!r->workspace)
		return false;
	*r->workspace = *w;
	atomic_store(&r->done, false);
	r->has_thread = thread_start(&r->thread, 0, remover_main, r) == 0;
	if (!r->has_thread) {
		free(TAKE_PTR(r->workspace));
		return false;
	}
	w->fd = w->run_fd = w->lock_fd = -1;
	record_init(&w->record);
	return true;
}

/* ---- two hands ---- */

/* What nobody asks for any more; the record stays until there is nothing that it names. */
static void sweep_folder(void *arg)
{
	static const char *const names[] = {ENDED_NAME, "stdout", "stderr", "pulse.json", "stop"};
	struct remover *r = arg;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(r->folder_fd, names[i], 0);
	r->folder_fd = fd_close(r->folder_fd);
}

/* One removes the workspace, the other most of its folder. Whoever looks for it by its id finds all of it or nothing, so it is taken out
 * of the way first. */
static int remove_small(struct remover *r, struct workspace *w, struct error *err)
{
	int result;

	if (!r->hand || !workspace_retire(w) || (r->folder_fd = fcntl(w->run_fd, F_DUPFD_CLOEXEC, 3)) < 0)
		return workspace_remove(w, err);
	hand_do(r->hand, sweep_folder, r);
	result = workspace_remove(w, err);
	hand_await(r->hand);
	return result;
}

/* ---- either ---- */

static const struct tree_size small = {.files = SMALL_FILES, .bytes = SMALL_BYTES};

/* As far as it takes to know. */
static struct tree_size look(const struct workspace *w)
{
	struct tree_size size = {0};
	struct tree_look *l = NULL;

	if (w->fd >= 0 && tree_look_open(&w->fd, 1, &small, &l) == 0)
		(void)tree_look_on(l, UINT64_MAX, &size);
	tree_look_free(l);
	return size;
}

int remover_remove(struct remover *r, struct workspace *w, const struct tree_size *size, struct error *err)
{
	struct tree_size seen = size ? *size : look(w);
	bool is_small = seen.files <= small.files && seen.bytes <= small.bytes;

	if (is_small)
		return remove_small(r, w, err);
	if (r->kind == REMOVER_NONE || workspace_count_retired(w->site) >= RETIRED_MAX ||
	    !workspace_retire(w))
		return workspace_remove(w, err);
	if (r->kind == REMOVER_CHILD ? start_child(w) : start_thread(r, w))
		return 0;
	return workspace_remove(w, err);
}
