"""A large workspace is removed while its user goes on; whatever happens to who removes it, nothing of it stays."""
import os
import signal
from pathlib import Path

import leaks
import pytest
from until import until

FILES = 3000
MAKE = f'import os\nfor i in range({FILES}): open(f"f{{i}}", "w").close()\nos.mkdir("d"); open("d/e", "w").close()'
RUN = ['--output', 'f1', '--', '/usr/bin/python3', '-c', MAKE]


def removers(id):
    return [pid for pid in leaks.processes(id) if Path(f'/proc/{pid}/comm').read_text() == 'fumehood-remove\n']


def names(id):
    return [name for name in os.listdir('/tmp') if id in name]


def test_who_waits_for_the_end_of_its_output_does_not_wait_for_its_removal(hood):
    id = hood.id()
    hood.succeed('run', id, *RUN)  # until its pipes are closed
    assert not hood.workspace(id).exists()
    assert until(lambda: not names(id) and not removers(id))


def test_the_same_id_runs_again_at_once(hood):
    id = hood.id()
    for attempt in range(3):
        hood.succeed('run', id, *(['--again'] if attempt else []), *RUN)
        assert not hood.workspace(id).exists()
    assert until(lambda: not names(id))


def test_who_cleans_up_a_held_one_need_not_wait(hood):
    id = hood.id()
    place = Path(hood.succeed('workspace', 'create', id, '--for', '1h').out.strip())
    for i in range(FILES):
        hood.write(place / f'f{i}', '')
    hood.succeed('workspace', 'cleanup', id)
    assert not place.exists()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    assert os.listdir(place) == []
    hood.succeed('workspace', 'cleanup', id)
    assert until(lambda: not names(id))


def test_where_all_that_it_has_started_is_killed_at_its_end_it_is_removed_before(hood):
    id = hood.id()
    hood.succeed('run', id, *RUN, env={'SLURM_JOB_ID': '7'})
    assert not names(id)


def killed(hood, id, call, nth):
    """A run that dies at its nth such call; False if it came to its end before that."""
    become = [] if hood.who.uid is None else ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups']
    hood.prefix = [*become, 'strace', '-qq', '-o', '/dev/null', '-e', f'trace={call}',
                   '-e', f'inject={call}:signal=KILL:when={nth}']
    try:
        return hood.cli('run', id, *RUN).status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    finally:
        hood.prefix = []


@pytest.mark.parametrize('call', ['renameat2', 'renameat', 'clone', 'fchown'])
def test_gc_goes_on_wherever_it_was_killed(hood, call):
    n = 0
    while True:
        n += 1
        id = hood.id()
        if not killed(hood, id, call, n):
            break
        until(lambda: not removers(id))
        hood.succeed('gc')
        assert not names(id), (call, n)
    assert n > 1
    assert until(lambda: not names(id))


def test_gc_goes_on_where_its_remover_was_killed(hood):
    """And says nothing of one that is still at it."""
    for _ in range(20):
        id = hood.id()
        hood.succeed('run', id, *RUN)
        pids = removers(id)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if pids and until(lambda: not removers(id)) and names(id):
            break
    else:
        pytest.fail('no remover was caught')
    hood.succeed('gc')
    assert not names(id)
    assert not os.listdir(hood.home / 'state/fumehood/runs')
