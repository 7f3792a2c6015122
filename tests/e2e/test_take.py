"""The worker on a node of a cluster: it takes the one analysis that was handed over to it, runs it as any worker does, and ends."""
import json
import secrets
import signal

import pytest

from until import until

BATCH = 'ab' * 16


def hand_over(ledger, *ids, batch=BATCH):
    """As a dispatcher does that has claimed them."""
    now = "(strftime('%s', 'now') + 300) * 1000000000" if ledger.name == 'sqlite' else "now() + interval '5 minutes'"
    for index, id in enumerate(ids):
        ledger.sql(f"UPDATE {ledger.table('queue')} SET state = 'running', worker = 'disp', dispatcher = 'disp', attempt = 1, "
                   f"token = '{secrets.token_hex(16)}', lease_ms = 30000, lease_until = {now}, batch = '{batch}', batch_index = {index} "
                   f"WHERE id = '{id}'")


def take(hood, index=0, *options, batch=BATCH, **more):
    return hood.cli('worker', '--take', batch, '--index', str(index), *options, **more)


def another_node(hood):
    """Its disk is its own, and so is what is known of what runs there."""
    return hood.write('another-node.yaml', f'workspace: {{root: {hood.directory("another-node")}}}\nstate_dir: {hood.home}/another-node\n')


def started(hood, id):
    return until(lambda: 'ready' in hood.cli('logs', id).out)


def test_it_runs_what_was_handed_over_and_ends(hood, ledger):
    one, two = hood.id(), hood.id()
    hood.succeed('submit', one, '--', 'sh', '-c', 'echo 1 >out.txt')
    hood.succeed('submit', two, '--', 'sh', '-c', 'exit 3')
    hand_over(ledger, one, two)
    result = take(hood, 1)
    assert result.status == 0 and f'{two} failed' in result.err, result
    hood.env['SLURM_ARRAY_TASK_ID'] = '0'
    hood.succeed('worker', '--take', BATCH)
    assert hood.verdict(one) == 'succeeded' and hood.verdict(two) == 'failed'
    assert hood.succeed('get', one, 'out.txt', '-o', '-').out == '1\n'
    assert hood.succeed('workers', '--json').json == []
    again = take(hood, 1)
    assert again.status == 0 and 'nothing to take as number 1 of the batch' in again.err and 'has ended' in again.err, again


def test_what_it_runs_in_is_in_the_record(hood, ledger):
    task = hood.id()
    hood.succeed('submit', task, '--', 'true')
    hand_over(ledger, task)
    hood.env |= {'SLURM_JOB_ID': '14', 'SLURM_ARRAY_JOB_ID': '13', 'SLURM_ARRAY_TASK_ID': '0', 'SLURMD_NODENAME': 'node1',
                 'SLURM_CLUSTER_NAME': 'big'}
    hood.succeed('worker', '--take', BATCH)
    shown = hood.succeed('show', task, '--json').json
    assert shown['engine'] == {'engine': 'slurm', 'job': '13_0', 'node': 'node1', 'cluster': 'big'}
    assert shown['verdict'] == 'succeeded'


def test_what_is_known_of_it_where_it_waits_is_shown(hood, ledger):
    waits = hood.id()
    hood.succeed('submit', waits, '--', 'true')
    hand_over(ledger, waits)
    assert hood.succeed('show', waits, '--json').json['queue']['engine'] is None
    engine = {'engine': 'slurm', 'job': '13_0', 'state': 'PENDING', 'reason': 'Priority'}
    ledger.sql(f"UPDATE {ledger.table('queue')} SET handle = '{json.dumps(engine)}'")
    shown = hood.succeed('show', waits, '--json').json
    assert shown['engine'] == shown['queue']['engine'] == engine
    assert [row['engine'] for row in hood.succeed('ls', '--json').json] == [engine]
    assert [row['engine'] for row in hood.succeed('top', '--json').json['analyses']] == [engine]
    line = 'job 13_0: PENDING, Priority'
    assert f'slurm       {line}\n' in hood.succeed('show', waits).out
    assert f'slurm {line}' in hood.succeed('top', '--once').out
    hood.env |= {'SLURM_JOB_ID': '14', 'SLURM_ARRAY_JOB_ID': '13', 'SLURMD_NODENAME': 'node1'}
    assert take(hood).status == 0
    shown = hood.succeed('show', waits, '--json').json
    assert shown['queue']['engine'] is None and shown['engine'] == {'engine': 'slurm', 'job': '13_0', 'node': 'node1'}
    assert 'slurm       job 13_0 on node1\n' in hood.succeed('show', waits).out
    assert [row['engine'] for row in hood.succeed('ls', '--json').json] == [shown['engine']]


def test_a_first_incarnation_that_lives_commits_nothing(hood, ledger):
    twice = hood.id()
    hood.succeed('submit', twice, '--', 'sh', '-c', 'echo ready; cat /proc/sys/kernel/random/uuid >out.txt; sleep 5')
    hand_over(ledger, twice)
    first = hood.popen('worker', '--take', BATCH, '--lease', '1h')
    assert started(hood, twice)
    second = take(hood, 0, '--config', another_node(hood))
    assert second.status == 0 and f'{twice} (attempt 2) succeeded' in second.err, second
    out, err = first.communicate(timeout=120)
    assert first.returncode == 1 and 'became another worker\'s: nothing of it was committed here' in err, (out, err)
    attempts = hood.succeed('show', twice, '--json').json['attempts']
    assert [(a['attempt'], a['verdict']) for a in attempts] == [(1, 'lost'), (2, 'succeeded')]


def test_it_hears_of_a_cancel(hood, ledger):
    unwanted, never = hood.id(), hood.id()
    hood.succeed('submit', unwanted, '--', 'sh', '-c', 'echo ready; sleep 100')
    hood.succeed('submit', never, '--', 'true')
    hand_over(ledger, unwanted, never)
    node = hood.popen('worker', '--take', BATCH, '--lease', '3s')
    assert started(hood, unwanted)
    hood.succeed('cancel', unwanted, never)
    node.communicate(timeout=120)
    assert node.returncode == 0 and hood.verdict(unwanted) == 'cancelled'
    result = take(hood, 1)
    assert result.status == 0 and 'it was cancelled' in result.err, result
    assert hood.succeed('show', never, '--json').json['state'] == 'cancelled'


def test_what_it_has_used_is_seen_from_elsewhere(hood, ledger):
    busy = hood.id()
    hood.succeed('submit', busy, '--', 'sh', '-c', 'echo ready; sleep 100')
    hand_over(ledger, busy)
    node = hood.popen('worker', '--take', BATCH, '--lease', '3s')
    elsewhere = '--config', another_node(hood)
    assert until(lambda: hood.succeed('show', busy, '--json', *elsewhere).json['live'])
    live = hood.succeed('show', busy, '--json', *elsewhere).json['live']
    assert live['stage'] == 'running' and live['at'] > '2026', live
    node.send_signal(signal.SIGTERM)
    node.communicate(timeout=120)


def test_sigterm_hands_it_back(hood, ledger):
    moved = hood.id()
    hood.succeed('submit', moved, '--', 'sh', '-c', 'echo ready; sleep 100')
    hand_over(ledger, moved)
    node = hood.popen('worker', '--take', BATCH)
    assert started(hood, moved)
    node.send_signal(signal.SIGTERM)
    out, err = node.communicate(timeout=120)
    assert node.returncode == 1 and f'{moved} is handed back' in err, (out, err)
    queue = hood.succeed('show', moved, '--json').json['queue']
    assert queue['state'] == 'queued' and queue['tries'] == 0
    assert take(hood).status == 0


def test_what_a_killed_one_left_is_finished_by_the_next_on_its_node(hood, ledger):
    killed, other = hood.id(), hood.id()
    hood.succeed('submit', killed, '--', 'sh', '-c', 'echo ready; sleep 100')
    hood.succeed('submit', other, '--', 'true')
    hand_over(ledger, killed, other)
    hood.env |= {'SLURM_JOB_ID': '14', 'SLURMD_NODENAME': 'node1'}
    node = hood.popen('worker', '--take', BATCH)
    assert started(hood, killed)
    node.kill()
    node.communicate()
    result = take(hood, 1)
    assert result.status == 0 and 'recovered: 0 committed, 1 lost, 1 workspaces removed' in result.err, result
    shown = hood.succeed('show', killed, '--json').json
    assert shown['verdict'] == 'lost' and shown['engine'] == {'engine': 'slurm', 'job': '14', 'node': 'node1'}
    assert shown['queue']['state'] == 'waiting' and shown['queue']['tries'] == 1
    assert take(hood).status == 0


@pytest.mark.parametrize('words, said', [
    (['--take', 'nope'], '32 hexadecimal digits'),
    (['--take', 'AB' * 16], '32 hexadecimal digits'),
    (['--take', BATCH, '--index', '-1'], '--index wants a number from 0 on'),
    (['--take', BATCH, '--index', '1x'], '--index wants a number from 0 on'),
    (['--take', BATCH, '--jobs', '2'], 'without --jobs'),
    (['--take', BATCH, '--drain'], 'without --drain'),
    (['--take', BATCH, '--engine', 'slurm'], 'without --engine slurm'),
    (['--index', '1'], '--index is for --take'),
])
def test_what_makes_no_sense_is_refused(hood, words, said):
    result = hood.cli('worker', *words)
    assert result.status == 125 and said in result.err and len(result.err.splitlines()) == 1, result
