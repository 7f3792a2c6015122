"""What the analysis says: streamed as it comes, captured with head and tail, and harmless to whoever listens."""
import os
import pty
import signal
import subprocess

import pytest

from until import until

LINES = 'i=0; while [ $i -lt 20000 ]; do echo "line $i of a rather long log, so that it is cut"; i=$((i + 1)); done'


@pytest.mark.asan
def test_output_comes_while_it_runs(hood):
    process, id = hood.start('echo first; echo second >&2; exec sleep 1000')  # start() has read "first".
    assert process.stderr.readline() == 'second\n'
    assert process.poll() is None
    process.terminate()
    assert process.wait() == 143


@pytest.mark.asan
def test_a_long_log_keeps_its_head_and_its_tail(hood):
    result = hood.run(LINES, '--log-max', '64K')
    assert result.status == 0, result
    log = hood.log(result.json['id'])
    assert log.startswith('line 0 of') and log.rstrip().endswith('line 19999 of a rather long log, so that it is cut')
    assert 60_000 < len(log) < 70_000, 'the middle is only counted'
    assert 'line 10000 of' not in log


def test_what_is_passed_on_ends_where_the_record_does_and_says_so(hood):
    id = hood.id()
    result = hood.cli('run', id, '--log-max', '64K', '--quiet', '--', 'sh', '-c', f'({LINES}) >&2; {LINES}')
    assert result.status == 0
    for stream, text in (('stdout', result.out), ('stderr', result.err)):
        passed, note = text[:65536], text[65536:].split(']')[0]
        assert len(text) < 65536 + 400 and passed.startswith('line 0 of'), len(text)
        assert note.startswith(f'\n[fumehood: {stream} is longer than log_max, 64K') and id in note, note
        assert text.count('[fumehood') == 1
    assert hood.log(id).count('line 19999 of') == 2


def test_a_short_one_is_passed_on_whole(hood):
    result = hood.cli('run', hood.id(), '--log-max', '64K', '--quiet', '--', 'sh', '-c', 'head -c 65536 /dev/zero | tr "\\0" x')
    assert result.status == 0 and result.out == 'x' * 65536, len(result.out)
    result = hood.cli('run', hood.id(), '--log-max', '64K', '--quiet', '--', 'sh', '-c', 'head -c 65537 /dev/zero | tr "\\0" "\\n"')
    assert result.out.startswith('\n' * 65536 + '[fumehood: stdout'), len(result.out)


def test_who_follows_a_flood_gets_no_more_than_is_kept(hood):
    process, id = hood.start('echo ready; read go; head -c 30000000 /dev/zero | tr "\\0" x; echo; echo last', '--log-max', '64K', '-i',
                             stdin=subprocess.PIPE)
    follower = hood.popen('logs', '-f', '--stdout', id)
    assert follower.stdout.readline() == 'ready\n'
    out, _ = process.communicate('go\n')
    assert len(out) < 65536 + 400
    followed, _ = follower.communicate()
    assert len(followed) < 2 * 65536 and followed.endswith('last\n') and 'were not kept' in followed, len(followed)


@pytest.mark.parametrize('script, options, verdict, status', [
    (LINES, [], 'succeeded', 0),
    ('while :; do echo flood; done', ['--wall', '500ms', '--grace', '100ms'], 'timed_out', 124),
], ids=['the record', 'the time limit'])
def test_a_reader_that_never_reads_stops_neither(hood, script, options, verdict, status):
    id = hood.id()
    process = hood.popen('run', id, *options, '--', 'sh', '-c', script)
    seen = until(lambda: hood.cli('show', id, '--json').status == 0 and hood.verdict(id))
    assert seen == verdict, 'nobody has read a byte'
    assert until(lambda: not hood.workspace(id).exists())
    process.stdout.read()
    assert process.wait(timeout=300) == status


def test_ctrl_c_ends_one_that_waits_for_its_reader(hood):
    id = hood.id()
    process = hood.popen('run', id, '--', 'sh', '-c', LINES)
    assert until(lambda: hood.cli('show', id, '--json').status == 0 and hood.verdict(id))
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) is not None
    assert hood.verdict(id) == 'succeeded'
    process.communicate()


@pytest.mark.parametrize('which', ['stdout', 'stderr', 'both'])
def test_a_reader_that_goes_away_stops_neither_the_analysis_nor_the_record(hood, which):
    id = hood.id()
    process = hood.popen('run', id, '--', 'sh', '-c', f'echo go; {LINES}; {LINES} >&2; exit 3')
    assert process.stdout.readline() == 'go\n'
    for stream in [process.stdout, process.stderr] if which == 'both' else [getattr(process, which)]:
        stream.close()
    if which == 'stdout':
        assert 'line 19999' in process.stderr.read()
    if which == 'stderr':
        process.stdout.read()
    assert process.wait(timeout=300) == 3
    assert 'line 19999' in hood.log(id) and hood.verdict(id) == 'failed'


def test_a_closed_stdout_is_survived(hood):
    id = hood.id()
    shell = f'exec "$0" "$@" >&- 2>&-'
    process = subprocess.run(['sh', '-c', shell, str(hood.binary), 'run', id, '--', 'sh', '-c', 'echo x; echo y > out.txt'],
                             cwd=hood.dir, env=hood.env, stdin=subprocess.DEVNULL, timeout=300, **hood.who.popen_arguments())
    assert process.returncode == 0 and hood.verdict(id) == 'succeeded'
    assert hood.log(id) == 'x\n'


def on_a_terminal(hood, *arguments):
    """Runs the command with a terminal as its stdout and stderr; returns (status, what the terminal got)."""
    master, slave = pty.openpty()
    os.fchmod(slave, 0o666)
    process = hood.popen(*arguments, stdout=slave, stderr=slave, env={'PAGER': 'cat'})  # less would wait for a key
    os.close(slave)
    seen = b''
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return process.wait(), seen


def test_on_a_terminal_there_is_progress_and_a_verdict(hood):
    status, seen = on_a_terminal(hood, 'run', hood.id(), '--', 'sh', '-c', 'echo hello; sleep 1.5')
    assert status == 0
    assert b'hello' in seen and b'succeeded' in seen
    assert b'\r' in seen.replace(b'\r\n', b''), 'a line that is written again and again'


def test_names_cannot_write_to_the_terminal(hood):
    evil = r"""printf x > "$(printf 'a\033]0;owned\007b.txt')"; ln -s x "$(printf 'l\033[2Jk')"; exit 1"""
    id = hood.id()
    _, seen = on_a_terminal(hood, 'run', id, '--', 'sh', '-c', evil)
    for command in ['ls', 'show', 'outputs']:
        seen += on_a_terminal(hood, *([command] if command == 'ls' else [command, id]))[1]
    assert b'\033]0;owned' not in seen and b'\033[2J' not in seen
    assert b'owned' in seen, 'escaped, not dropped'


def test_logs_follows_a_run_until_its_end(hood):
    process, id = hood.start('echo ready; read line; echo got $line', '-i', stdin=subprocess.PIPE)
    follower = hood.popen('logs', id, '-f')
    assert follower.stdout.readline() == 'ready\n'
    process.stdin.write('it\n')
    process.stdin.close()
    assert follower.stdout.read() == 'got it\n'
    assert follower.wait(timeout=300) == 0
    process.stdin = None
    process.communicate()
    assert until(lambda: process.poll() == 0)
