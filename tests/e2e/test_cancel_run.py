"""`cancel` of what `run` or a program has started here: ended as by SIGTERM, by nobody's pid, and only by who may."""
import json
import signal
import subprocess

import pytest

import records
from leaks import opened
from until import until

FOREVER = 'echo started; exec sleep 1000'


def folder(hood, id):
    return hood.home / 'state/fumehood/runs' / id


def test_what_run_started_is_cancelled_and_waited_for(hood, ledger):
    process, id = hood.start(FOREVER)
    said = hood.succeed('cancel', id)
    assert said.out == f'{id} was running here, and is cancelled\n', said
    assert hood.verdict(id) == 'cancelled' and not hood.workspace(id).exists(), 'it was waited for'
    assert process.wait(60) == 143


def test_it_may_end_in_its_own_way(hood):
    process, id = hood.start('trap "echo bye; exit 3" TERM; echo started; sleep 1000 & wait')
    said = hood.succeed('cancel', id, '--json').json
    assert said == {'analyses': [{'id': id, 'was': 'running', 'verdict': 'cancelled'}]}
    assert hood.log(id) == 'started\nbye\n'
    process.wait(60)


def test_several_at_once_and_one_that_is_not_there(hood):
    first, one = hood.start(FOREVER)
    second, two = hood.start(FOREVER)
    said = hood.cli('cancel', one, 'nobody-knows-it', two)
    assert said.status == 125 and f'{one} was running here' in said.out and f'{two} was running here' in said.out, said
    assert "'nobody-knows-it' is not in the queue" in said.err and 'on another host' in said.err, said
    assert first.wait(60) == second.wait(60) == 143


def test_one_that_has_ended_stays_as_it_is(hood):
    id = hood.id()
    hood.run('true', id=id)
    said = hood.cli('cancel', id)
    assert said.status == 125 and said.err.count('\n') == 1, said
    assert hood.verdict(id) == 'succeeded'


def test_a_step_is_cancelled_and_the_workspace_stays(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    hood.succeed('run', id, '--', 'sh', '-c', 'echo one >one')
    process, _ = hood.start(FOREVER, id=id)
    assert hood.succeed('cancel', id).out == f'{id} step 2 was running here, and is cancelled\n'
    assert process.wait(60) == 143 and hood.workspace(id).exists()
    hood.succeed('run', id, '--', 'sh', '-c', 'test -e one')
    hood.succeed('workspace', 'cleanup', id)
    steps = json.loads(hood.succeed('show', id, '--json').out)['steps']
    assert [step['verdict'] for step in steps] == ['succeeded', 'cancelled', 'succeeded']


def test_a_dead_supervisor_is_not_taken_for_another_process(hood):
    process, id = hood.start(FOREVER)
    process.kill()
    process.wait(60)
    bystander = subprocess.Popen(['sleep', '1000'])
    record = records.read(folder(hood, id) / 'record.json')
    record['process']['pid'] = bystander.pid  # the pid was used again, and by us
    hood.write(folder(hood, id) / 'record.json', json.dumps(record), 0o600)
    said = hood.cli('cancel', id)
    assert said.status == 125 and 'nothing of that name runs here' in said.err, said
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    hood.succeed('gc')


def test_a_fifo_that_nobody_reads_is_not_waited_for(hood):
    process, id = hood.start(FOREVER)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert (folder(hood, id) / 'stop').is_fifo()
    assert hood.cli('cancel', id).status == 125
    hood.succeed('gc')
    assert not folder(hood, id).exists()


@pytest.mark.parametrize('what', ['file', 'link', 'none'])
def test_what_lies_there_instead_of_the_fifo_is_not_written_to(hood, what):
    process, id = hood.start(FOREVER)
    stop, victim = folder(hood, id) / 'stop', hood.write('victim', 'as it was')
    stop.unlink()
    if what == 'file':
        hood.write(stop, 'as it was')
    elif what == 'link':
        stop.symlink_to(victim)
    assert hood.cli('cancel', id).status == 125
    assert victim.read_text() == 'as it was'
    assert what != 'file' or stop.read_text() == 'as it was'
    process.terminate()
    assert process.wait(60) == 143


def test_the_analysis_and_other_users_cannot_reach_it(hood, stranger):
    process, id = hood.start('echo started; ls /var/tmp /run /tmp; find / -type p 2>/dev/null; exec sleep 1000')
    assert (folder(hood, id) / 'stop').stat().st_mode & 0o777 == 0o600
    status, said = stranger('sh', '-c', f'echo x >{folder(hood, id)}/stop')
    assert status != 0 and process.poll() is None, said
    assert 'runs/' not in hood.cli('logs', id).out
    hood.succeed('cancel', id)
    process.wait(60)


def test_one_for_another_ledger_is_left_alone(hood):
    other = hood.home / 'other.db'
    process, id = hood.start(FOREVER, '--db', f'sqlite:{other}')
    said = hood.cli('cancel', id)
    assert said.status == 125 and f"its result is for another ledger, 'sqlite:{other}'" in said.err, said
    assert process.poll() is None
    hood.succeed('cancel', id, '--db', f'sqlite:{other}')
    assert process.wait(60) == 143


def test_who_stops_waiting_has_cancelled_nevertheless(hood):
    process, id = hood.start('trap "" TERM; echo started; while :; do sleep 0.1; done', '--grace', '5s')
    cancel = hood.popen('cancel', id)
    assert until(lambda: opened(cancel.pid, folder(hood, id) / 'stop'))
    cancel.send_signal(signal.SIGINT)
    assert cancel.wait(60) == 125 and 'stopped waiting' in cancel.stderr.read()
    assert process.wait(60) == 143 and hood.verdict(id) == 'cancelled'


def test_twice_does_not_wait_for_its_grace(hood):
    process, id = hood.start('trap "" TERM; echo started; while :; do sleep 0.1; done', '--grace', '10m')
    first = hood.popen('cancel', id)
    assert until(lambda: opened(first.pid, folder(hood, id) / 'stop'))
    hood.succeed('cancel', id)
    assert first.wait(60) == 0 and process.wait(60) == 143
