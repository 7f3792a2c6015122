"""Many at once: every one recorded, nothing left."""
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.mark.parametrize('count', [200, pytest.param(1000, marks=pytest.mark.long)])
def test_many_runs_eight_at_a_time(hood, count):
    ids = [f'{hood.tag}-{n}' for n in range(count)]

    def run(id):
        return hood.cli('run', id, '--quiet', '--', 'sh', '-c', 'echo $FUMEHOOD_ID > me.txt').status

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(run, ids))
    assert set(statuses) == {0}
    rows = json.loads(hood.succeed('ls', '--json').out)
    assert {row['id'] for row in rows} == set(ids) and len(rows) == count
    assert {row['verdict'] for row in rows} == {'succeeded'}
    status = json.loads(hood.succeed('db', 'status', '--json').out)
    assert (status['analyses'], status['attempts'], status['outputs']) == (count, count, count)
    # The fixture looks for workspaces, processes, mounts and cgroups.


def test_the_same_id_by_many_at_once_succeeds_exactly_once(hood):
    id = hood.id()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: hood.run('echo x > x', id=id), range(16)))
    assert sorted(result.status for result in results) == [0] + [125] * 15
    assert len(json.loads(hood.succeed('show', id, '--json').out)['attempts']) == 1


def test_ten_times_as_many_files_to_stage_take_about_ten_times_the_cpu_time(hood):
    """Of each new file all others were looked through: a hundred times."""
    def seconds(count):
        for i in range(count):
            (hood.dir / f'many{count}').mkdir(exist_ok=True)
            (hood.dir / f'many{count}/{i * 7919 % count}').touch()
        process = hood.popen('run', '--dry-run', '--input', f'many{count}', '--', 'true', stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert status == 0
        return used.ru_utime

    seconds(10)
    assert seconds(40000) < 30 * max(seconds(4000), 0.004)
