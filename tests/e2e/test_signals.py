"""Being interrupted, killed and stopped: nothing is left behind, and the record says what happened."""
import json
import os
import signal
import time

import pytest

import leaks
from pace import Pace
from until import until

READY = 'echo ready; exec sleep 1000'
STUBBORN = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done"


@pytest.mark.asan
@pytest.mark.parametrize('number, status', [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_cancels(hood, number, status):
    process, id = hood.start(READY)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == status
    assert hood.verdict(id) == 'cancelled'
    assert not hood.workspace(id).exists()


@pytest.mark.asan
def test_a_cancelled_analysis_may_clean_up_within_its_grace(hood):
    process, id = hood.start("trap 'echo asked to stop > last.txt; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
                             '--grace', '20s')
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 143 and hood.verdict(id) == 'cancelled'
    assert [o['path'] for o in json.loads(hood.succeed('outputs', id, '--json').out)['outputs']] == ['last.txt']


def test_one_that_ignores_it_is_killed_after_its_grace(hood):
    process, id = hood.start(STUBBORN, '--grace', '200ms')
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130 and hood.verdict(id) == 'cancelled'


def test_a_second_ctrl_c_does_not_wait_and_leaves_nothing_either(hood):
    process, id = hood.start(STUBBORN, '--grace', '10m')
    process.send_signal(signal.SIGINT)
    # The first must have been taken before the second is sent, or they are one.
    until(lambda: not _pending(process.pid, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert not hood.workspace(id).exists()
    assert hood.verdict(id) == 'cancelled'


def _pending(pid, number):
    status = open(f'/proc/{pid}/status').read()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(('SigPnd', 'ShdPnd'))]
    return any(mask >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_any_moment_leaves_nothing(hood, number):
    """The signal comes later each time, so that it hits every stage from the start to after the commit."""
    seen = set()
    for step in range(40):
        id = hood.id()
        process = hood.popen('run', id, '--quiet', '--', 'sh', '-c', 'echo x > x')
        end = time.monotonic() + step * 0.001
        while time.monotonic() < end and process.poll() is None:
            pass
        process.send_signal(number)
        process.communicate(timeout=300)
        seen.add(process.returncode)
        assert process.returncode in (0, 128 + number, -number), process.returncode
        assert not hood.workspace(id).exists()
    hood.succeed('gc')
    assert {row['verdict'] for row in json.loads(hood.succeed('ls', '--json').out)} <= {'succeeded', 'cancelled', 'lost'}


def test_when_the_supervisor_is_killed_the_analysis_dies_with_it_and_gc_records_it_as_lost(hood):
    process, id = hood.start(f'setsid sleep 1000 {hood.tag} & setsid sleep 1000 {hood.tag} & echo ready; exec sleep 1000')
    process.kill()
    process.communicate()
    assert until(lambda: not leaks.processes(id)), 'the analysis outlived its supervisor'
    result = hood.succeed('gc')
    assert not leaks.find([id]), result
    shown = json.loads(hood.succeed('show', id, '--json').out)
    assert (shown['verdict'], shown['attempt'], shown['committed']) == ('lost', 1, True)
    hood.succeed('gc')
    assert len(json.loads(hood.succeed('show', id, '--json').out)['attempts']) == 1, 'recorded once'
    assert hood.run('true', id=id).json['attempt'] == 2


def test_a_new_run_of_a_lost_id_cleans_up_by_itself(hood):
    process, id = hood.start(READY)
    process.kill()
    process.communicate()
    result = hood.run('true', id=id)
    assert result.status == 0 and result.json['attempt'] == 2, result
    assert [a['verdict'] for a in json.loads(hood.succeed('show', id, '--json').out)['attempts']] == ['lost', 'succeeded']


def test_gc_leaves_a_living_run_alone(hood):
    process, id = hood.start(READY)
    hood.succeed('gc')
    assert process.poll() is None and hood.workspace(id).exists()
    process.terminate()
    process.communicate()
    assert hood.verdict(id) == 'cancelled'


def test_when_the_supervisor_is_stopped_the_time_limit_holds_all_the_same(hood):
    id = hood.id()
    with Pace() as pace:
        begun = time.monotonic()
        process, id = hood.start(STUBBORN, '--wall', '1s', '--grace', '500ms')
        process.send_signal(signal.SIGSTOP)
        mine = process.pid
        assert until(lambda: not [pid for pid in leaks.processes(id) if pid != mine])
        took = time.monotonic() - begun
    assert took < 1 + 0.5 + 1 + pace.late(), (took, pace.slowest)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=300)
    assert process.returncode == 124 and hood.verdict(id) == 'timed_out'


def test_the_analysis_cannot_signal_its_supervisor(hood):
    result = hood.run('kill -9 -1; kill -9 0; kill -9 $PPID; exit 4')
    assert result.status in (4, 137) and result.json['verdict'] == 'failed', result
    assert result.json['committed'] is True
