"""What an analysis used, from the kernel's counters: right, complete, and null where nobody counts."""
import json
import os
import time
from datetime import datetime

import pytest

EMULATED = 'FUMEHOOD_EMULATED' in os.environ
MIB = 1 << 20


@pytest.fixture
def box(caged, bomb):
    caged.write('bomb', bomb, 0o755)
    return caged


def use(box, *words, options=()):
    result = box.run(['./bomb', *map(str, words)], *options, '--wall', '10m')
    assert result.status == 0, result
    return result.json


def near(found, wanted, floor):
    """Within 2 %, or within the floor for small things; never less than what was used for certain."""
    return wanted - floor / 10 <= found and (EMULATED or found <= wanted + max(wanted * 0.02, floor))


def test_cpu_time_and_memory_of_a_program_of_known_use_are_right(box):
    found = use(box, 'use', 400, 100)
    charged = int(box.log(found['id'])) / 1000
    usage = found['usage']
    assert near(usage['cpu_ms'], charged, 5), (usage, charged)
    assert near(usage['memory_peak_bytes'], 100 * MIB, 2 * MIB), usage
    assert EMULATED or near(usage['memory_anon_peak_bytes'], 100 * MIB, 2 * MIB), usage  # a slow one is seldom sampled
    assert usage['wall_ms'] >= usage['cpu_ms'] and usage['pids_peak'] == 1 and usage['oom_kills'] == 0, usage


def test_descendants_that_nobody_waited_for_are_counted(box):
    usage = use(box, 'use-orphans', 60, 5)['usage']
    assert near(usage['cpu_ms'], 300, 15), usage
    assert usage['pids_peak'] >= 2


def test_five_milliseconds_are_counted_like_five_hours(box):
    usage = use(box, 'use', 3, 20)['usage']
    assert near(usage['cpu_ms'], 3, 20), usage
    assert near(usage['memory_peak_bytes'], 20 * MIB, 2 * MIB), usage
    assert usage['pids_peak'] == 1 and usage['wall_ms'] >= 3, usage
    too_short = {'memory_anon_peak_bytes', 'cpu_user_ms', 'cpu_system_ms'}  # these are sampled
    not_everywhere = {'swap_peak_bytes', 'read_bytes', 'written_bytes'}
    assert {name for name, value in usage.items() if value is None} <= too_short | not_everywhere, usage
    assert usage['memory_anon_peak_bytes'] != 0, 'not seen is null'


def test_a_cpu_limit_below_what_it_would_use_shows_as_throttled_time(box):
    usage = use(box, 'use', 60, 1, options=['--cpus', '0.1'])['usage']
    assert usage['throttled_ms'] > 50 and usage['wall_ms'] > 400, usage


@pytest.mark.parametrize('options', [[], ['--disk', '32M']], ids=['watched', 'a disk of its own'])
def test_bytes_and_files_that_it_made_are_counted_private_tmp_included(box, options):
    script = 'head -c 1M /dev/zero > a; mkdir b; head -c 1M /dev/zero > b/c; head -c 1M /dev/zero > /tmp/d'
    usage = box.run(script, *options).json['usage']
    assert 3 * MIB <= usage['disk_bytes'] <= 3.2 * MIB, usage
    assert 4 <= usage['disk_files'] <= 7, usage  # with data/ and docs/, which are mount points


def test_bytes_from_and_to_a_disk_are_counted_or_null_never_0(box):
    usage = box.run('dd if=/dev/zero of=a bs=1M count=8 conv=fsync; dd if=a of=/dev/null iflag=direct').json['usage']
    for name in ['read_bytes', 'written_bytes']:
        assert usage[name] is None or usage[name] >= 8 * MIB or EMULATED, usage


def test_copying_its_files_in_is_no_time_of_the_analysis(box):
    box.write('large', b'x' * (160 * MIB))
    begun = time.monotonic()
    result = box.run('true', '--disk', '400M', '--input', 'large')
    took = time.monotonic() - begun
    assert result.status == 0 and result.json['usage']['wall_ms'] < took * 1000 / 2, (took, result)


@pytest.mark.asan
def test_cpus_are_for_one_analysis_alone_and_programs_see_how_many(box):
    script = 'import os; print(*os.sched_getaffinity(0)); print(os.environ["OMP_NUM_THREADS"])'
    first, id = box.start("taskset -cp $$; exec sleep 1000", '--cpus', '1', '--wall', '5m')
    box.write('look.py', script)
    result = box.run(['python3', 'look.py'], '--cpus', '1')
    cpus, threads = box.log(result.json['id']).splitlines()
    first.terminate()
    taken = box.log(id).split() if first.communicate() else []
    assert threads == '1'
    if os.cpu_count() > 1:
        assert len(cpus.split()) == 1 and cpus != taken[-1], (cpus, taken)
        assert any(layer['name'] == 'cpu affinity' for layer in result.json['receipt']['layers'])


# The timeline, and how it is shown.

@pytest.mark.asan
def test_the_timeline_is_stored_and_drawn(box):
    result = box.run('./bomb use 300 40; ./bomb use 300 8', '--input', 'bomb', '--wall', '5m')
    id = result.json['id']
    samples = json.loads(box.succeed('show', id, '--json').out)['timeline']['samples']
    assert 4 <= len(samples) <= 256, samples
    assert all(a['at_ms'] < b['at_ms'] and a['cpu_ms'] <= b['cpu_ms'] for a, b in zip(samples, samples[1:])), samples
    assert max(s['memory_bytes'] for s in samples) > (8 if EMULATED else 40) * MIB and max(s['pids'] for s in samples) == 2, samples
    drawn = {line.split()[0]: line for line in box.succeed('show', id).out.splitlines() if '|' in line}
    assert sorted(drawn) == ['cpu', 'memory', 'processes']
    assert 'MiB' in drawn['memory'] and drawn['processes'].endswith('up to 2'), drawn
    assert len({len(line.split('|')[1]) for line in drawn.values()}) == 1, 'the same time from left to right'


COLUMNS = 'task_id hash native_id name status exit submit duration realtime %cpu peak_rss peak_vmem rchar wchar'.split()


def trace(hood, id):
    header, row = hood.succeed('show', id, '--trace').out.splitlines()
    assert header.split('\t') == COLUMNS
    return dict(zip(COLUMNS, row.split('\t'), strict=True))


def test_a_trace_has_nextflows_columns_and_a_dash_for_what_is_not_known(box):
    id = use(box, 'use', 200, 50)['id']
    row = trace(box, id)
    assert (row['task_id'], row['name'], row['status'], row['exit']) == ('1', id, 'COMPLETED', '0')
    assert abs(time.time() - datetime.fromisoformat(row['submit'] + '+00:00').timestamp()) < 60
    assert row['duration'].endswith('s') and row['realtime'].endswith('s') and 0 < float(row['%cpu'][:-1]) <= 101
    assert row['%cpu'].endswith('%') and row['peak_rss'].startswith('5') and row['peak_rss'].endswith(' MB'), row
    assert {row[name] for name in ['hash', 'native_id', 'peak_vmem', 'rchar', 'wchar']} == {'-'}


@pytest.mark.asan
def test_a_trace_tells_failed_aborted_and_running_apart(hood):
    assert trace(hood, hood.run('kill -9 $$').json['id'])['exit'] == '137'
    assert trace(hood, hood.run('exit 3').json['id'])['status'] == 'FAILED'
    process, id = hood.start('echo ready; exec sleep 1000')
    row = trace(hood, id)
    assert (row['status'], row['exit'], row['realtime'], row['peak_rss']) == ('RUNNING', '-', '-', '-')
    process.terminate()
    process.communicate(timeout=300)
    assert trace(hood, id)['status'] == 'ABORTED'
    refused = hood.cli('show', id, '--trace', '--json')
    assert refused.status == 125 and '--trace' in refused.json['error']['message'], refused
