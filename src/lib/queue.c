/*
 * The queue, which is not there yet.
 */
#include "lib.h"

static int later(fh_hood *hood, fh_error *err)
{
	int r = check_process(hood->pid, err);

	return r < 0 ? r : fail_with(err, FH_REFUSED, "the queue is not in version %s yet", FUMEHOOD_VERSION);
}

FH_PUBLIC int fh_submit(fh_hood *hood, fh_request *const *requests UNUSED, size_t n UNUSED,
			unsigned flags UNUSED, char **ret_json UNUSED, fh_error *err)
{
	return later(hood, err);
}

FH_PUBLIC int fh_queue(fh_hood *hood, const char *state UNUSED, const char *prefix UNUSED, int limit UNUSED,
		       char **ret_json UNUSED, fh_error *err)
{
	return later(hood, err);
}

FH_PUBLIC int fh_wait(fh_hood *hood, const char *const *ids UNUSED, int timeout_ms UNUSED, int stop_fd UNUSED,
		      char **ret_json UNUSED, fh_error *err)
{
	return later(hood, err);
}

FH_PUBLIC int fh_cancel(fh_hood *hood, const char *id UNUSED, const char **ret_state UNUSED, fh_error *err)
{
	return later(hood, err);
}

FH_PUBLIC int fh_retry(fh_hood *hood, const char *id UNUSED, fh_error *err)
{
	return later(hood, err);
}

FH_PUBLIC int fh_worker_run(fh_hood *hood, int jobs UNUSED, const char *lease UNUSED, int drain UNUSED,
			    int stop_fd UNUSED, fh_error *err)
{
	return later(hood, err);
}
