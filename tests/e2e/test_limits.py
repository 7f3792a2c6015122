"""Limits: held, or refused with a sentence; never silently ignored."""
import time

import pytest

from pace import Pace


def held_or_refused(hood, result, *words):
    """An ordinary user without a cgroup of their own is refused what was asked for, and is told the way out."""
    if result.status == 125 and not hood.who.is_root:
        message = result.json['error']['message']
        assert '--allow-unlimited' in message and all(word in message for word in words), result
        return False
    return True


@pytest.mark.parametrize('command', [
    'exec sleep 1000', 'while :; do :; done', "trap '' TERM; while :; do sleep 1000; done",
    'setsid sh -c "trap \\"\\" TERM HUP; sleep 1000" & sleep 1000', 'kill -STOP $$',
], ids=['sleeping', 'busy', 'ignoring SIGTERM', 'with a daemon', 'stopped'])
def test_wall_time(hood, command):
    with Pace() as pace:
        begun = time.monotonic()
        result = hood.run(command, '--wall', '500ms', '--grace', '300ms')
        took = time.monotonic() - begun
    assert result.status == 124 and result.json['verdict'] == 'timed_out', result
    assert took < 0.5 + 0.3 + 1 + pace.late(), (took, pace.slowest)


def test_an_analysis_that_ends_within_its_grace_was_still_timed_out(hood):
    result = hood.run("trap 'exit 0' TERM; while :; do sleep 0.05; done", '--wall', '300ms', '--grace', '10s')
    assert result.status == 124 and result.json['verdict'] == 'timed_out', result


MEMORY_BOMB = 'import sys\nb = []\nwhile True:\n    b.append(b"x" * (1 << 20))\n'


def test_memory(hood):
    result = hood.python(MEMORY_BOMB, '--memory', '64M')
    if held_or_refused(hood, result, 'memory'):
        assert result.status == 137 and result.json['verdict'] == 'out_of_memory', result
        assert result.json['usage']['memory_peak_bytes'] >= 48 << 20


def test_what_is_left_unheld_on_purpose_runs(hood):
    result = hood.run('true', '--memory', '64M', '--pids', '50', '--allow-unlimited')
    assert result.status == 0, result


def test_processes(hood):
    result = hood.run('i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; wait', '--pids', '32', '--wall', '10m')
    if held_or_refused(hood, result, 'pids'):
        assert result.json['verdict'] == 'out_of_processes' and result.status not in (0, 125), result


def test_a_fork_bomb_hurts_only_itself(hood):
    # The shell must not end before the bomb has come to the limit: its end is the end of all.
    result = hood.run('bomb() { bomb | bomb & }; bomb; while :; do :; done', '--pids', '64', '--wall', '3s', '--grace', '0s')
    if held_or_refused(hood, result, 'pids'):
        assert result.json['verdict'] in ('out_of_processes', 'timed_out'), result


@pytest.mark.parametrize('where', ['.', '/tmp'], ids=['workspace', 'private tmp'])
def test_disk(hood, where):
    result = hood.run(f'while head -c 4M /dev/zero >> {where}/big; do :; done; exit 9', '--disk', '8M', '--wall', '10m')
    assert result.json['verdict'] == 'out_of_disk' and result.status in (9, 137), result


def test_a_limit_that_is_reached_and_survived_is_no_verdict(hood):
    result = hood.run('head -c 64M /dev/zero > big 2>/dev/null; rm big; echo fine > out', '--disk', '8M')
    assert result.json['verdict'] in ('succeeded', 'out_of_disk'), result  # A watch may have had to kill it.


def test_output_max_rejects_what_does_not_fit(hood):
    result = hood.run('head -c 1M /dev/zero > a; head -c 1M /dev/zero > b', '--output-max', '1500K')
    assert result.status == 0, result
    assert [o['path'] for o in result.json['outputs']] == ['a']
    assert [r['path'] for r in result.json['rejected_outputs']] == ['b']


def test_threads_follow_the_cpu_limit(hood):
    result = hood.run('echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS', '--cpus', '1', '--allow-unlimited')
    assert hood.log(result.json['id']) == '1 1\n', result


def test_the_receipt_names_every_layer(hood):
    result = hood.run('true')
    layers = {layer['name']: layer['held'] for layer in result.json['receipt']['layers']}
    for wanted in ['mount', 'pid', 'network', 'seccomp', 'landlock', 'privileges', 'wall']:
        assert any(wanted in name for name in layers), (wanted, layers)


def test_usage_is_known_or_null_but_never_made_up(hood):
    usage = hood.run('i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done').json['usage']
    assert usage['wall_ms'] > 20
    for name in ['cpu_ms', 'memory_peak_bytes', 'pids_peak']:
        assert usage[name] is None or usage[name] > 0, usage
    if hood.who.is_root:
        assert usage['cpu_ms'] > 20, usage
