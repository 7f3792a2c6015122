"""Crashes and rivals that need no tracer: two owners, gc beside living runs, a clock that is set back."""
import json
import threading

import pytest


def attempts(hood, id):
    return [a['verdict'] for a in json.loads(hood.succeed('show', id, '--json').out)['attempts']]


def finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


# Two supervisors.

def test_a_second_run_of_a_running_id_is_refused_and_harms_nothing(hood):
    first, id = hood.start('echo started; read -r line; echo "$line" >out', '-i', stdin=-1)
    second = hood.run('echo other >out', id=id)
    assert second.status == 125 and second.json['error']['code'] == 'busy', second
    first.stdin.write('mine\n')
    status, _, err = finish(first)
    assert status == 0, err
    assert attempts(hood, id) == ['succeeded']
    assert hood.succeed('get', id, 'out', '-o', '-').out == 'mine\n'


def test_of_eight_runs_of_one_id_at_once_one_succeeds(hood):
    id = hood.id()
    rivals = [hood.popen('run', id, '--json', '--', 'sh', '-c', 'echo "$FUMEHOOD_ID" >out') for _ in range(8)]
    ends = [finish(rival) for rival in rivals]
    assert sorted(status for status, _, _ in ends) == [0] + 7 * [125], ends
    for status, out, _ in ends:
        if status:
            assert json.loads(out)['error']['code'] in ('busy', 'refused'), out
    assert attempts(hood, id) == ['succeeded']


def test_a_run_waits_for_no_lock_of_a_dead_one(hood):
    first, id = hood.start('echo started; exec sleep 1000')
    first.kill()
    first.wait()
    assert hood.run('echo again >out', id=id).json['verdict'] == 'succeeded'
    assert attempts(hood, id) == ['lost', 'succeeded']


# gc.

def test_gc_beside_living_runs_harms_none(hood):
    done, reports = threading.Event(), []

    def collect_garbage():
        while not done.is_set():
            reports.append(hood.cli('gc', '--json'))

    collector = threading.Thread(target=collect_garbage)
    collector.start()
    try:
        for _ in range(5):
            ids = [hood.id() for _ in range(6)]
            script = 'echo "$FUMEHOOD_ID" >small; head -c 100000 /dev/zero >large; echo "$FUMEHOOD_ID" >>large'
            runs = [hood.popen('run', id, '--json', '--', 'sh', '-c', script) for id in ids]
            for id, run in zip(ids, runs):
                status, out, err = finish(run)
                assert status == 0, (out, err)
                assert hood.succeed('get', id, 'large', '-o', '-').out.endswith(id + '\n')
    finally:
        done.set()
        collector.join()
    for report in reports:
        assert report.status == 0, report
        assert report.json['lost'] == report.json['committed'] == report.json['failed'] == 0, report
    assert hood.succeed('db', 'check', '--json').json['problems'] == []


def test_four_gcs_at_once_record_each_dead_run_once(hood):
    runs = [hood.start('echo started; exec sleep 1000') for _ in range(6)]
    for process, _ in runs:
        process.kill()
    for process, _ in runs:
        process.wait()
    collectors = [hood.popen('gc', '--json') for _ in range(4)]
    reports = [finish(collector) for collector in collectors]
    assert all(status == 0 for status, _, _ in reports), reports
    assert sum(json.loads(out)['lost'] for _, out, _ in reports) == len(runs), reports
    for _, id in runs:
        assert attempts(hood, id) == ['lost']


# The clock.

DAY = 86400


@pytest.fixture
def wrong_clock(tools):
    """The environment of a command whose wall clock is behind."""
    def environment(seconds, file=None):
        return {'LD_PRELOAD': str(tools / 'libclock_back.so'), 'CLOCK_BACK_S': str(seconds),
                **({'CLOCK_BACK_FILE': str(file)} if file else {})}
    return environment


def test_the_clock_is_really_set_back(hood, wrong_clock):
    id, later = hood.id(), hood.id()
    hood.run('true', id=id)
    hood.run('true', id=later, env=wrong_clock(DAY))
    created = [json.loads(hood.succeed('show', i, '--json').out)['created'][:10] for i in (id, later)]
    assert created[1] < created[0]


def test_attempts_keep_their_order_when_the_clock_is_set_back(hood, wrong_clock):
    id = hood.id()
    hood.run('echo first >out', id=id)
    second = hood.run('echo second >out', '--again', id=id, env=wrong_clock(DAY))
    assert second.json['attempt'] == 2 and second.json['committed'], second
    third = hood.run('echo third >out; exit 1', '--again', id=id)
    assert third.json['attempt'] == 3, third
    assert attempts(hood, id) == ['succeeded', 'succeeded', 'failed']
    assert hood.succeed('get', id, 'out', '-o', '-').out == 'third\n'
    assert hood.succeed('get', id, 'out', '-o', '-', '--attempt', '2').out == 'second\n'


def test_a_clock_set_back_during_a_run_changes_no_verdict_and_no_duration(hood, wrong_clock):
    file = hood.home / 'set-back'
    run, id = hood.start('echo started; read -r line; echo "$line" >out', '-i', '--wall', '60s', stdin=-1,
                         env=wrong_clock(DAY, file))
    file.touch()
    run.stdin.write('done\n')
    status, _, err = finish(run)
    assert status == 0, err
    shown = json.loads(hood.succeed('show', id, '--json').out)
    assert shown['verdict'] == 'succeeded' and 0 <= shown['usage']['wall_ms'] < 60000, shown['usage']
    assert shown['ended'] < shown['started']  # as the clock said


def test_gc_with_the_clock_set_back_settles_a_dead_run(hood, wrong_clock):
    run, id = hood.start('echo started; exec sleep 1000')
    run.kill()
    run.wait()
    report = hood.succeed('gc', '--json', env=wrong_clock(DAY)).json
    assert report['lost'] == 1 and report['failed'] == 0, report
    assert attempts(hood, id) == ['lost']
    assert hood.run('true', id=id).json['attempt'] == 2


def test_a_held_workspace_stays_when_the_clock_is_set_back_and_goes_when_its_time_is_over(hood, wrong_clock):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    hood.succeed('gc', env=wrong_clock(DAY))
    assert hood.workspace(id).exists()
    hood.succeed('gc', env=wrong_clock(-2 * 3600))
    assert not hood.workspace(id).exists()
