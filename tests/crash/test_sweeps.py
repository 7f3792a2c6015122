"""fumehood killed at each of its system calls, each call failing in turn, many runs killed at once."""
import pytest

from conftest import ALL

sample = pytest.mark.sample


@sample(sqlite=(11, 0), postgresql=(19, 5))
def test_a_run_killed_at_any_call_is_whole_lost_or_nothing(sweep):
    sweep('kill')


@sample(sqlite=(13, 2), postgresql=(29, 7))
def test_a_run_without_objects_killed_at_any_call(sweep):
    """From how it ended all is found out again."""
    sweep('kill', '--small')


@sample(postgresql=(23, 8))
def test_a_run_whose_contents_go_into_the_database_killed_at_any_call(sweep):
    sweep('kill', '--inside')


@sample(sqlite=(17, 3))
def test_the_very_first_run_may_be_killed_at_any_call(sweep):
    sweep('kill', '--fresh')


@sample(sqlite=(17, 7), postgresql=None)
def test_the_next_run_settles_what_a_killed_one_left(sweep):
    sweep('kill', '--by-run')


@sample(sqlite=(17, 5), postgresql=None)
def test_a_run_on_a_disk_of_its_own_killed_at_any_call(sweep):
    sweep('kill', '--disk')


@sample(sqlite=(13, 6), postgresql=None)
def test_a_run_without_namespaces_killed_at_any_call(sweep):
    """No kernel ends what it started, init does."""
    sweep('kill', '--landlock')


@sample(sqlite=(41, 9), postgresql=None)
def test_a_call_of_a_run_without_namespaces_that_fails(sweep):
    sweep('fault', '--landlock')


@sample(sqlite=(7, 4), postgresql=None)
def test_a_run_that_ends_pending_killed_at_any_call(sweep):
    sweep('kill', '--pending')


@sample(sqlite=(11, 9), postgresql=None)
def test_a_run_that_ends_pending_on_a_disk_of_its_own_killed_at_any_call(sweep):
    sweep('kill', '--pending', '--disk')


@sample(sqlite=(29, 1), postgresql=(97, 3))
def test_a_step_killed_at_any_call_leaves_the_workspace_to_the_next(sweep):
    sweep('kill-step')


@sample(sqlite=(43, 5), postgresql=None)
def test_a_step_on_a_disk_of_its_own_killed_at_any_call(sweep):
    sweep('kill-step', '--disk')


@sample(sqlite=(17, 2), postgresql=(61, 4))
def test_a_commit_of_steps_killed_at_any_call_is_there_once(sweep):
    sweep('kill-commit')


@sample(sqlite=(31, 6), postgresql=None)
def test_a_commit_of_steps_with_rows_killed_at_any_call(sweep):
    sweep('kill-commit', '--post')


@sample(sqlite=(17, 9), postgresql=None)
def test_a_commit_of_steps_that_ends_pending_killed_at_any_call(sweep):
    sweep('kill-commit', '--pending')


@sample(sqlite=(97, 11), postgresql=None)
def test_a_call_of_a_step_that_fails_leaves_the_workspace_to_the_next(sweep):
    sweep('fault-step')


@sample(sqlite=(41, 8), postgresql=None)
def test_a_call_of_a_commit_of_steps_that_fails_loses_nothing(sweep):
    sweep('fault-commit')


@sample(sqlite=(13, 6), postgresql=None)
def test_a_shell_killed_at_any_call_leaves_what_was_kept(sweep):
    sweep('kill-shell')


@sample(sqlite=(13, 2), postgresql=None)
def test_a_kept_workspace_is_there_wherever_the_next_attempt_is_killed(sweep):
    sweep('kill-aside')


@sample(sqlite=(29, 4), postgresql=(41, 7))
def test_rm_killed_at_any_call_leaves_it_whole_or_gone(sweep):
    sweep('kill-rm')


@sample(sqlite=(61, 3), postgresql=(97, 7))
def test_a_backup_killed_at_any_call_can_be_begun_anew(sweep):
    sweep('kill-backup')


@sample(sqlite=(43, 2), postgresql=None)
def test_gc_killed_at_any_call_can_be_repeated(sweep):
    sweep('kill-gc')


@sample(sqlite=(61, 7), postgresql=None)
def test_a_call_of_gc_that_fails_leaves_what_the_next_one_finishes(sweep):
    sweep('fault-gc')


@sample(sqlite=(11, 6), postgresql=(17, 5))
def test_rows_and_outputs_of_a_killed_run_are_there_together_or_not_at_all(sweep):
    sweep('kill', '--post')


@sample(sqlite=(61, 9), postgresql=None)
def test_a_call_that_fails_leaves_rows_and_outputs_together_or_not_at_all(sweep):
    sweep('fault', '--post')


@sample(sqlite=(1, 0), postgresql=None)
def test_what_cannot_be_removed_is_tried_again_or_left_to_gc(sweep):
    sweep('fault', '--post', '--removals')


@sample(sqlite=(1, 0), postgresql=None)
def test_a_run_that_can_remove_nothing_from_some_call_on_leaves_all_of_it_to_gc(sweep):
    sweep('fault', '--post', '--removals', '--lasting')


@sample(postgresql=(89, 3), full=4)
def test_a_server_killed_while_rows_are_committed(sweep, server_command):
    sweep('server', '--post', '--workers', '1', '--hurt', server_command('kill'), '--heal', server_command('start'))


@sample(sqlite=(29, 4), postgresql=(97, 9))
def test_a_call_that_fails_ends_in_success_pending_or_one_clear_sentence(sweep):
    sweep('fault')


@sample(sqlite=(61, 6))
def test_a_first_run_with_a_call_that_fails(sweep):
    sweep('fault', '--fresh')


@sample(sqlite=(61, 8), postgresql=None)
def test_a_call_that_fails_on_a_disk_of_its_own(sweep):
    sweep('fault', '--disk')


@sample(sqlite=(7, 0), postgresql=None)
def test_a_disk_that_is_full_from_some_call_on(sweep):
    sweep('fault', '--lasting', '--error', 'ENOSPC')


@sample(sqlite=(1, 0), postgresql=(1, 0))
def test_32_runs_killed_at_once(sweep):
    sweep('storm', '--workers', '1', '--rounds', '100' if ALL else '3')


# What happens to the server. One worker, because there is one server.

@sample(postgresql=(89, 1), full=4)
def test_a_server_stopped_during_the_commit(sweep, server_command):
    sweep('server', '--workers', '1', '--hurt', server_command('stop'), '--heal', server_command('go'))


@sample(postgresql=(89, 40), full=4)
def test_a_server_killed_during_the_commit(sweep, server_command):
    sweep('server', '--workers', '1', '--hurt', server_command('kill'), '--heal', server_command('start'))


@sample(postgresql=(61, 20), full=4)
def test_a_server_restarted_during_the_commit(sweep, server_command):
    sweep('server', '--workers', '1', '--hurt', server_command('restart'))
