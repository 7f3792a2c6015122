"""Why it ended: every verdict, the exit status of `run`, and one line of evidence for people."""
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import records
from until import until

LONG = ['--wall', '10m']
LIMITS = ['--memory', '64M', '--pids', '30', '--disk', '16M', '--files', '500', '--grace', '200ms']


@pytest.fixture
def box(caged, bomb):
    caged.write('bomb', bomb, 0o755)
    caged.write('no-program', 'not a program\n', 0o755)
    caged.write('no-interpreter', '#!/nonexistent/python\n', 0o755)
    caged.write('not-executable', '#!/bin/sh\n', 0o644)
    return caged


def shell(script):
    return ['sh', '-c', script]


def bomb_with(*words):
    return ['./bomb', *words]


# command, options, verdict, exit status, exit_code, signal, words of the reason
ENDS = {
    'exit status 0': (shell('exit 0'), [], 'succeeded', 0, 0, None, []),
    'exit status 3': (shell('exit 3'), [], 'failed', 3, 3, None, ['exit status 3']),
    'exit status 125': (shell('exit 125'), [], 'failed', 125, 125, None, ['exit status 125']),
    'not found': (['no-such-program'], [], 'failed', 127, None, None, ['cannot execute', 'No such file']),
    'no interpreter': (['./no-interpreter'], [], 'failed', 127, None, None, ['interpreter']),
    'not executable': (['./not-executable'], [], 'failed', 126, None, None, ['Permission denied']),
    'no program': (['./no-program'], [], 'failed', 126, None, None, ['Exec format error']),
    'a signal': (shell('kill -SEGV $$'), [], 'failed', 139, None, 11, ['signal 11', 'Segmentation fault', 'memory that is not its own']),
    'a signal, behind a shell': (shell('sh -c "kill -SEGV \\$\\$"; exit $?'), [], 'failed', 139, 139, None,
                                 ['exit status 139, as of a shell in which a program was ended by signal 11 (Segmentation fault)']),
    'not found, behind a shell': (shell('no-such-program'), [], 'failed', 127, 127, None, ['exit status 127, as of a shell that did not find a program']),
    'killed by itself': (shell('kill -KILL $$'), [], 'failed', 137, None, 9, ['signal 9']),
    'killed by a child': (shell('(kill -KILL $$); exit 0'), [], 'failed', 137, None, 9, ['signal 9']),
    'wall time': (bomb_with('sleep'), ['--wall', '300ms', '--grace', '20s'], 'timed_out', 124, None, 15, ['the limit is 300ms; --wall raises it']),
    'cpu time': (bomb_with('busy'), ['--cpu-time', '100ms', '--grace', '20s'], 'timed_out', 124, None, 15, ['cpu time', '100ms; --cpu-time raises it']),
    'an output is missing': (shell('echo > other.txt'), ['--output', 'result.csv'], 'output_missing', 122, 0, None,
                             ["'result.csv'", "'other.txt': let it write what --output names, or correct that"]),
    'no output at all': (shell('true'), ['--output', 'result.csv'], 'output_missing', 122, 0, None,
                         ['there was no file at all: outputs are what it leaves in its working directory']),
    'an output is rejected': (shell('head -c 300000 /dev/zero >big; echo >ok'), ['--output', 'b*', '--output', 'ok', '--output-max', '100K'],
                              'output_missing', 122, 0, None, ["'big' was rejected: over the limit of collected bytes; --output-max raises it"]),
    'one is rejected, one missing': (shell('ln -s / big; echo >ok'), ['--output', 'big', '--output', 'other'], 'output_missing', 122, 0, None,
                                     ["'big' was rejected: symbolic link, and a link is no output: write the file itself; no output matches 'other'; there was ", "'ok'"]),
    'memory': (bomb_with('malloc'), [], 'out_of_memory', 137, None, 9, ['64M of 64M', "'bomb'; --memory raises it"]),
    'memory, of a child': (bomb_with('children'), ['--pids', '300'], 'out_of_memory', 137, 9, None, ['child']),
    'disk': (bomb_with('disk'), [], 'out_of_disk', 28, 28, None, ['the limit is 16M, and it was full; --disk raises it']),
    'files': (bomb_with('files'), [], 'out_of_disk', 28, 28, None, ['the limit is 500 files, and it was full; --files raises it']),
    'processes': (bomb_with('fork'), [], 'out_of_processes', 11, 11, None, ['the limit is 30', '--pids raises it']),
    'the size of a file': (shell('exec head -c 2000000 /dev/zero >big'), ['--file-size', '1M'], 'failed', 153, None, 25,
                           ['signal 25', 'the limit of one file is 1M; --file-size raises it']),
    # Limits that were reached, and survived.
    'memory, survived': (bomb_with('child-memory', '2'), [], 'succeeded', 0, 0, None, []),
    'disk, survived': (bomb_with('disk-handled'), [], 'succeeded', 0, 0, None, []),
    'processes, survived': (bomb_with('fork-patiently'), [], 'succeeded', 0, 0, None, []),
}


@pytest.mark.parametrize('end', ENDS)
def test_how_it_ended_decides_verdict_exit_status_and_reason(box, end):
    command, options, verdict, status, exit_code, number, words = ENDS[end]
    result = box.run(command, *LIMITS, *LONG, *options)
    found = result.json
    assert (found['verdict'], result.status) == (verdict, status), result
    assert (found['exit_code'], found['signal']) == (exit_code, number), result
    assert all(word in (found['reason'] or '') for word in words), result
    assert found['committed'] is True
    # What the ledger has, and the line for people, say the same.
    kept = json.loads(box.succeed('show', found['id'], '--json').out)
    assert (kept['verdict'], kept['reason'], kept['status']) == (verdict, found['reason'], status)
    line = box.succeed('show', found['id']).out.splitlines()[0]
    assert verdict in line and all(word in line for word in words), line


def test_what_the_site_allows_is_named_where_it_is_the_bound(box):
    short = box.write('short.yaml', 'maximum: {wall: 300ms}\n')
    reason = box.run(['sleep', '100'], '--config', short).json['reason']
    assert reason == 'the limit is 300ms; this site allows no more (maximum.wall in its configuration)', reason
    small = box.write('small.yaml', 'maximum: {memory: 64M, pids: 100}\n')
    reason = box.run(bomb_with('malloc'), '--config', small, '--memory', '32M').json['reason']
    assert reason.endswith('; --memory raises it, up to 64M on this site'), reason


@pytest.mark.parametrize('number, status, words', [
    (signal.SIGINT, 130, 'by Ctrl-C'), (signal.SIGTERM, 143, 'by Terminated'), (signal.SIGHUP, 129, 'by Hangup')])
def test_a_cancelled_analysis_says_by_what(hood, number, status, words):
    process, id = hood.start('echo ready; exec sleep 1000')
    process.send_signal(number)
    process.communicate(timeout=300)
    found = json.loads(hood.succeed('show', id, '--json').out)
    assert (process.returncode, found['verdict'], found['reason']) == (status, 'cancelled', words)


def test_an_analysis_whose_supervisor_died_is_lost_and_its_cgroup_is_gone(box):
    process, id = box.start('echo ready; exec sleep 1000', *LIMITS)
    record = records.read(box.home / 'state/fumehood/runs' / id / 'record.json')
    assert record['cgroups'], record
    process.kill()
    process.communicate()
    box.succeed('gc')
    found = json.loads(box.succeed('show', id, '--json').out)
    assert (found['verdict'], found['reason']) == ('lost', 'its supervisor ended without a verdict')
    assert (found['exit_code'], found['usage']['cpu_ms']) == (None, None)
    assert not any(Path(path).exists() for path in record['cgroups'])


@pytest.mark.parametrize('command', ['exec sleep 1000', 'exec ./bomb malloc', 'exec ./bomb fork-forever'])
def test_the_cgroup_is_gone_however_it_ended(box, command):
    process, id = box.start(f'echo ready; read line; {command}', '--input', 'bomb', '-i', *LIMITS, '--wall', '1s',
                            '--grace', '0s', stdin=subprocess.PIPE)
    record = records.read(box.home / 'state/fumehood/runs' / id / 'record.json')
    process.communicate('go\n', timeout=300)
    assert record['cgroups'] and not any(Path(path).exists() for path in record['cgroups']), record


# Limits that are asked for, and the site's.

def test_what_is_asked_for_may_be_tighter_than_the_sites_maximum_never_looser(box):
    config = box.write('site.yaml', 'maximum: {memory: 100M, wall: 10m, disk: 50M}\n')

    def run(*options):
        return box.run('true', '--config', config, *options)

    for option, value, most in [('--memory', '200M', '100M'), ('--memory', 'none', '100M'), ('--wall', '11m', '10m'),
                                ('--disk', '1G', '50M')]:
        result = run(option, value)
        assert result.status == 125 and result.json['verdict'] == 'refused', result
        assert f'at most {most}' in result.json['error']['message'], result
    result = run('--memory', '64M', '--wall', '1m')
    assert result.status == 0, result
    layers = {layer['name']: layer['detail'] for layer in result.json['receipt']['layers']}
    assert layers['limit memory'].endswith('64M') and layers['limit wall'].startswith('1m'), layers
    # What nobody asked for is lowered to it, and is held.
    result = run()
    layers = {layer['name']: layer['detail'] for layer in result.json['receipt']['layers']}
    assert layers['limit memory'].endswith('100M') and layers['limit disk'].startswith('50M, a'), layers


@pytest.mark.only('user')
@pytest.mark.parametrize('option, value', [('--memory', '64M'), ('--pids', '30'), ('--cpus', '0.5'),
                                           ('--cpu-time', '10s')])
def test_a_limit_that_was_asked_for_and_cannot_be_held_is_refused_with_the_way_out(bare, option, value):
    result = bare.run('true', option, value)
    assert result.status == 125 and result.json['verdict'] == 'refused', result
    message = result.json['error']['message']
    assert value in message and 'doctor --delegate' in message and '--allow-unlimited' in message, message
    assert bare.nothing_was_recorded()
    result = bare.run('true', option, value, '--allow-unlimited')
    assert result.status == 0, result
    name = 'limit ' + option[2:].replace('-', '_')
    assert [layer['held'] for layer in result.json['receipt']['layers'] if layer['name'] == name] == [False], result


@pytest.mark.only('user')
def test_quiet_hides_no_limit_that_cannot_be_held(bare):
    result = bare.cli('run', bare.id(), '--quiet', '--', 'true')
    assert result.status == 0 and len(result.err.splitlines()) == 1, result
    assert 'not limited' in result.err and 'memory' in result.err and 'doctor --delegate' in result.err, result
    for _ in range(2):
        bare.succeed('submit', bare.id(), '--quiet', '--', 'true')
    worker = bare.succeed('worker', '--drain', '--quiet', '--jobs', '1')
    assert worker.err.count('not limited') == 1, worker  # of two analyses
    doctor = bare.cli('doctor')
    assert doctor.status == 0 and 'not held here is' in doctor.out.splitlines()[-1] and 'limit memory' in doctor.out.splitlines()[-1]
    assert 'limit memory' in bare.cli('doctor', '--json').json['not_held']


@pytest.mark.only('user')
def test_defaults_that_cannot_be_held_are_dropped_with_one_warning_and_a_line_in_the_receipt(bare):
    result = bare.run('true')
    receipt = result.json['receipt']
    assert result.status == 0 and len(receipt['warnings']) == 1, result
    assert all(word in receipt['warnings'][0] for word in ['memory', 'pids', 'doctor --delegate']), receipt
    dropped = [layer['name'] for layer in receipt['layers'] if layer['name'].startswith('limit ') and not layer['held']]
    assert dropped == ['limit memory', 'limit pids'], receipt


# What nobody counted is null, and no cause is made up from it.

def nothing_is_made_up(result, *unknown):
    found = result.json
    assert (found['verdict'], result.status, found['reason']) == ('failed', 137, 'ended by signal 9 (Killed)'), result
    assert all(found['usage'][name] is None for name in unknown), found['usage']


@pytest.mark.only('user')
def test_without_a_cgroup_a_killed_analysis_has_failed_and_its_memory_is_not_known(bare, bomb):
    bare.write('bomb', bomb, 0o755)
    result = bare.run(['sh', '-c', './bomb use 50 80; kill -KILL $$'], '--input', 'bomb')
    nothing_is_made_up(result, 'memory_peak_bytes', 'memory_anon_peak_bytes', 'swap_peak_bytes', 'pids_peak',
                       'oom_kills', 'throttled_ms', 'read_bytes', 'written_bytes')
    assert result.json['usage']['cpu_ms'] >= 50, 'what the kernel told PID 1'
    shown = bare.succeed('show', result.json['id']).out
    assert 'memory, highest' not in shown and 'processes' not in shown, shown


if Path('/sys/fs/cgroup/memory').is_dir():
    @pytest.mark.only('root')
    @pytest.mark.parametrize('hidden, unknown', [
        ('memory', ['memory_peak_bytes', 'memory_anon_peak_bytes', 'oom_kills']), ('pids', ['pids_peak'])])
    def test_a_counter_that_is_hidden_is_null(hood, hidden, unknown):
        cover = f'mount -t tmpfs -o ro none /sys/fs/cgroup/{hidden} && exec "$@"'
        done = subprocess.run(['unshare', '-m', 'sh', '-c', cover, '-', hood.binary, 'run', hood.id(), '--json', '--',
                               'sh', '-c', 'kill -KILL $$'], cwd=hood.dir, env=hood.env, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        assert (found['verdict'], found['reason']) == ('failed', 'ended by signal 9 (Killed)'), found
        assert all(found['usage'][name] is None for name in unknown), found['usage']


# Many at once.

def test_of_64_analyses_at_once_every_one_gets_its_own_verdict(box):
    kinds = ['exit status 0', 'exit status 3', 'an output is missing', 'wall time', 'memory', 'disk', 'processes',
             'memory, survived']

    def run(n):
        command, options, verdict, status, *_ = ENDS[kinds[n % len(kinds)]]
        result = box.run(command, *LIMITS, '--wall', '5m', *options, id=f'{box.tag}-{n}')
        return n, (result.json['verdict'], result.status), (verdict, status), result

    with ThreadPoolExecutor(64) as pool:
        for n, found, wanted, result in pool.map(run, range(64)):
            assert found == wanted, (n, result)
    rows = json.loads(box.succeed('ls', '--json').out)
    assert len(rows) == 64 and all(row['state'] == 'finished' for row in rows)
    assert until(lambda: not list(Path('/tmp').glob(f'scidex-analysis-{box.tag}*')))
