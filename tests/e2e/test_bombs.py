"""Analyses that use too much: each gets the right verdict, in time, and nobody else notices.

The limits are small, and every bomb stops by itself far beyond them: see bomb.c.
"""
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import leaks
from pace import Pace
from until import until

EMULATED = 'FUMEHOOD_EMULATED' in os.environ
SLACK = 20 if EMULATED else 0
LONG = ['--wall', '10m']
HELD = ['--memory', '64M', '--pids', '30', '--disk', '16M', '--files', '500', *LONG]


@pytest.fixture
def box(caged, bomb):
    caged.write('bomb', bomb, 0o755)
    return caged


def explode(box, *words, limits=HELD, **others):
    return box.run(['./bomb', *map(str, words)], *limits, **others)


def check(result, verdict, status, *words):
    """Its verdict, the exit status of `run`, and what the line for people says."""
    found = result.json
    assert (found['verdict'], result.status) == (verdict, status), result
    assert all(word in (found['reason'] or '') for word in words), result
    assert found['committed'] is True, result
    return found


# Memory: the kernel kills, and everything that holds memory counts.

@pytest.mark.parametrize('way', ['malloc', 'shm', 'memfd'])
def test_memory_taken_in_any_way_ends_as_out_of_memory_with_the_peak_the_limit_and_the_victim(box, way):
    found = check(explode(box, way), 'out_of_memory', 137, 'it used 64M of 64M', "killed 'bomb'")
    assert found['signal'] == 9 and found['exit_code'] is None
    usage = found['usage']
    assert usage['oom_kills'] == 1 and 60 << 20 <= usage['memory_peak_bytes'] <= 64 << 20, usage


@pytest.mark.only('user')
def test_the_private_tmp_of_a_user_counts_as_memory_where_it_is_a_tmpfs(box):
    limits = ['--memory', '64M', '--disk', '200M', *LONG]
    found = check(explode(box, 'tmp', limits=limits), 'out_of_memory', 137, "killed 'bomb'")
    assert any('charged to memory' in layer['detail'] for layer in found['receipt']['layers'])


@pytest.mark.only('root')
def test_files_on_a_disk_image_are_no_memory(box):
    limits = ['--memory', '64M', '--disk', '100M', *LONG]
    found = explode(box, 'tmp', limits=limits).json
    assert found['verdict'] == 'out_of_disk' or EMULATED, found  # whose disks are memory


def test_many_small_children_together_are_out_of_memory_too(box):
    limits = ['--memory', '64M', '--pids', '400', *LONG]
    found = check(explode(box, 'children', limits=limits), 'out_of_memory', 137, 'it used 64M of 64M', 'child processes')
    assert found['usage']['oom_kills'] >= 1


def test_neither_pid_1_nor_the_supervisor_is_ever_the_victim(box):
    """Ten children run out of memory, after PID 1 was offered to the kernel as the better victim."""
    script = 'echo 1000 > /proc/1/oom_score_adj; ./bomb child-memory 10 || exit 1; exit 5'
    found = check(box.run(script, '--input', 'bomb', *HELD), 'out_of_memory', 137, 'it used 64M of 64M', '10 of its child processes')
    assert (found['exit_code'], found['usage']['oom_kills']) == (5, 10)


# Processes and threads.

@pytest.mark.parametrize('way', ['fork', 'threads'])
def test_too_many_processes_or_threads_are_out_of_processes(box, way):
    found = check(explode(box, way), 'out_of_processes', 11, 'the limit is 30', 'refused')
    assert found['usage']['pids_peak'] == 30


# Disk: full is full, whatever holds the space.

@pytest.mark.parametrize('way', ['disk', 'tmp', 'tmpfile', 'deleted'])
def test_a_full_disk_is_out_of_disk_with_or_without_names_for_the_files(box, way):
    found = check(explode(box, way), 'out_of_disk', 28, 'the limit is 16M')
    assert 15 << 20 < found['usage']['disk_bytes'] <= 16 << 20, found['usage']


@pytest.mark.asan
def test_too_many_files_are_out_of_disk_and_the_reason_says_that_it_was_files(box):
    found = check(explode(box, 'files'), 'out_of_disk', 28, 'the limit is 500 files')
    assert 490 < found['usage']['disk_files'] <= 500, found['usage']


@pytest.mark.parametrize('options, way, reason, bytes, files', [
    (['--disk', '128K'], 'disk', 'the limit is 128K', 128 << 10, 1024),
    (['--disk', '1M'], 'disk', 'the limit is 1M', 1 << 20, 1024),
    (['--disk', '1M'], 'files', 'the limit is 1024 files', 1 << 20, 1024),
    (['--files', '50'], 'files', 'the limit is 50 files', 10 << 30, 50)])
def test_small_limits_of_disk_and_files_hold_as_exactly_as_large_ones(box, options, way, reason, bytes, files):
    usage = check(explode(box, way, limits=[*options, *LONG]), 'out_of_disk', 28, reason)['usage']
    assert usage['disk_bytes'] <= bytes and usage['disk_files'] <= files, usage


# Without a disk of its own the directories are watched, and nothing can be hidden from that.

@pytest.mark.only('user')
@pytest.mark.parametrize('mode', ['0300', '0400', '0000'])
def test_a_directory_that_cannot_be_looked_into_counts_as_over_the_disk_limit(hood, mode):
    """A mode without reading hid 11.5 GB from a user's supervisor, which modes stop; root's they do not."""
    script = f'mkdir -p a/hidden && echo > a/hidden/file && chmod {mode} a/hidden && exec sleep 1000'
    check(hood.run(script, *LONG), 'out_of_disk', 137, 'cannot be looked into', '10G')


def test_a_private_tmp_or_workspace_that_is_locked_is_watched_all_the_same(hood):
    def files(lock):
        script = f'echo > /tmp/file && echo > result && {lock} /tmp . && sleep 1 && chmod 0700 .'
        return check(hood.run(script), 'succeeded', 0)['usage']['disk_files']

    assert files('chmod 0300') == files('ls')


# Output: never a reason to end it.

@pytest.mark.asan
def test_a_flood_of_output_keeps_head_and_tail_and_counts_the_middle(box):
    result = explode(box, 'log', 16, limits=['--log-max', '64K', *HELD])
    assert check(result, 'succeeded', 0)
    log = box.log(result.json['id'])
    assert len(log) < 300 << 10
    assert 'F\n' in log and 'L\n' in log, 'the first line and the last'
    omitted = (8 << 20) - (64 << 10)
    assert str(omitted) in log, log[32000:34000]


# Time.

@pytest.mark.parametrize('words', [
    ['stop'], ['deaf'], ['fork-forever'], ['log-forever'], ['busy', 8]], ids=lambda words: words[0])
def test_nothing_outlives_its_wall_time_and_grace_by_a_second(box, words):
    with Pace() as pace:
        begun = time.monotonic()
        result = explode(box, *words, limits=['--wall', '500ms', '--grace', '200ms', '--pids', '30', '--log-max', '64K'])
        took = time.monotonic() - begun
    check(result, 'timed_out', 124, 'the limit is 500ms')
    assert took < 0.5 + 0.2 + 1 + pace.late(), (took, pace.slowest)


@pytest.mark.parametrize('processes', [1, 4])
def test_a_busy_loop_ends_when_its_cpu_time_is_used_up(box, processes):
    result = explode(box, 'busy', processes, limits=['--cpu-time', '500ms', '--grace', '200ms', *LONG])
    found = check(result, 'timed_out', 124, 'cpu time', 'the limit is 500ms')
    assert 500 <= found['usage']['cpu_ms'] < 500 + 200 + 1000 * (1 + SLACK), found['usage']


def test_daemons_that_ignore_every_signal_end_with_their_analysis(box):
    check(explode(box, 'daemons', 5), 'succeeded', 0)  # The fixture looks for survivors.


# Everybody else. What they leave to others is counted, and not how long others took: that depends on the machine.

def test_the_host_goes_on_as_if_nothing_was(box):
    # A fork that fails has taken the kernel's memory, which comes back when the kernel has a moment: 40 MB of it on a quiet
    # host, 256 on a busy one. What a second of CPU can take so is less than 1G.
    limits = ['--memory', '1G', '--pids', '30', '--disk', '16M', '--wall', '2s', '--grace', '0s', '--cpus', '0.5']
    ways = ['fork-forever', 'log-forever', 'busy', 'deaf']
    with ThreadPoolExecutor(len(ways)) as pool:
        running = [pool.submit(explode, box, way, limits=limits) for way in ways]
        while not all(run.done() for run in running):
            assert os.waitstatus_to_exitcode(os.spawnlp(os.P_WAIT, 'true', 'true') << 8) == 0
    for run in running:
        usage = check(run.result(), 'timed_out', 124)['usage']
        assert usage['memory_peak_bytes'] <= 1 << 30 and usage['pids_peak'] <= 30, usage
        assert usage['disk_bytes'] <= 16 << 20, usage
        assert usage['cpu_ms'] <= 0.5 * usage['wall_ms'] + PERIOD_MS * CPUS, usage


PERIOD_MS, CPUS = 100, os.cpu_count()  # in each a quota may be used up at once, on every CPU


def allowed_cpus(id):
    """On which CPUs the bombs of this analysis may run."""
    found = set()
    for pid in leaks.processes(id):
        try:
            if os.readlink(f'/proc/{pid}/exe').endswith('/bomb'):
                found |= os.sched_getaffinity(pid)
        except OSError:
            continue  # it has ended
    return found


def test_a_cpu_bomb_takes_no_more_than_its_share_and_none_of_its_neighbours_cpu(box):
    """Both may use one CPU."""
    bomb, first = box.start('echo ready; exec ./bomb busy 8', '--input', 'bomb', '--cpus', '1', '--wall', '10m', '--grace', '0s')
    other, second = box.start('echo ready; exec ./bomb busy 1', '--input', 'bomb', '--cpus', '1', '--wall', '10m', '--grace', '0s')
    theirs = until(lambda: allowed_cpus(first)), until(lambda: allowed_cpus(second))
    result = explode(box, 'use', 400, 1, limits=LONG)  # for so long, at least, both went on
    assert result.status == 0, result
    for process, id in ((bomb, first), (other, second)):
        assert process.poll() is None
        process.terminate()
        process.communicate()
        usage = json.loads(box.succeed('show', id, '--json').out)['usage']
        assert usage['cpu_ms'] <= usage['wall_ms'] + PERIOD_MS * CPUS, usage
    if CPUS > 1:
        assert [len(cpus) for cpus in theirs] == [1, 1] and theirs[0] != theirs[1], theirs
