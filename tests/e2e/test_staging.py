"""--input DIR: what of a tree is copied into the workspace, and what nobody means by it."""
import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from test_shows import stop_while_it_reads
from until import until

LIST = 'find . -type f -printf "%P\\n" | sort'


def listed(hood, *options, **others):
    """What lies in the workspace: files, by their paths."""
    result = hood.run(LIST, *options, **others)
    assert result.status == 0, result
    return hood.log(result.json['id']).splitlines()


def told(result):
    """Its warnings, but what a user without a cgroup hears every time."""
    return [text for text in result.json['receipt']['warnings'] if not text.startswith('not limited')]


def refused(hood, *options, **others):
    result = hood.run('true', *options, **others)
    assert result.status == 125 and result.json['verdict'] == 'refused', result
    return result.json['error']['message']


@pytest.fixture
def project(hood):
    """A package with what lies around one: its repository, its environment, its data, old results."""
    where = hood.directory('project')
    for name in ('pkg/__init__.py', 'pkg/deep/er.py', 'main.py', '.hidden', 'results/old.csv'):
        hood.write(where / name, f'# {name}\n')
    hood.write(where / 'pkg/__init__.py', 'answer = 42\n')
    hood.write(where / 'main.py', 'import pkg; print(pkg.answer)\n')
    for name in ('.git/config', '.hg/store', '.svn/entries', 'pkg/.git', 'venv/pyvenv.cfg', 'venv/lib/x.py', '.conda/conda-meta/history',
                 '.conda/bin/tool', 'data/genes.csv', 'docs/method.md'):
        hood.write(where / name, 'not to be copied\n')
    return where


WANTED = ['.hidden', 'main.py', 'pkg/__init__.py', 'pkg/deep/er.py', 'results/old.csv']
SHOWN = ['data/genes.csv', 'docs/method.md']


def test_a_package_is_copied_and_nothing_that_only_lies_around_it(hood, project):
    assert listed(hood, '--input', '.', cwd=project) == sorted(WANTED + SHOWN)
    result = hood.run(['python3', 'main.py'], '--input', '.', cwd=project)
    assert result.status == 0 and hood.log(result.json['id']) == '42\n', result
    shown = hood.succeed('show', result.json['id'], '--json').json['inputs']
    assert sorted(i['path'] for i in shown) == WANTED  # data and docs are shown, not copied
    assert next(i for i in shown if i['path'] == 'main.py')['sha256'] == hashlib.sha256((project / 'main.py').read_bytes()).hexdigest()
    assert result.json['outputs'] == [] and told(result) == [], result


@pytest.mark.parametrize('given, prefix', [('./', ''), ('.:proj', 'proj/'), ('pkg', 'pkg/'), ('pkg/', 'pkg/'), ('pkg:.', ''), ('./pkg/deep:a/b', 'a/b/')])
def test_it_lies_where_it_was_asked_for(hood, project, given, prefix):
    assert f'{prefix}{"er.py" if "deep" in given else "__init__.py" if "pkg" in given else "main.py"}' in listed(hood, '--input', given, cwd=project)


def test_by_an_absolute_path_it_has_its_last_name(hood, project):
    assert listed(hood, '--input', f'{project}/pkg/', '--no-stage') == sorted([*SHOWN, 'data/deep/er/more.txt', 'pkg/__init__.py', 'pkg/deep/er.py'])


def test_it_is_the_same_in_the_queue_where_its_owner_may_be_gone(hood, project):
    id = hood.id()
    answer = hood.succeed('submit', id, '--json', '--input', '.', '--', 'sh', '-c', f'{LIST}; python3 main.py', cwd=project).json
    assert answer['warnings'] == []
    for name in ('main.py', 'pkg/__init__.py'):
        (project / name).unlink()
    hood.succeed('worker', '--drain')
    assert hood.log(id).splitlines() == sorted(WANTED + SHOWN) + ['42']
    assert sorted(i['path'] for i in hood.succeed('show', id, '--json').json['inputs']) == WANTED


def test_it_is_the_same_in_a_request_file(hood, project):
    hood.write(project / 'request.yaml', f'command: [sh, -c, {json.dumps(LIST)}]\ninput: [.]\n')
    id = hood.id()
    hood.succeed('run', id, '-f', 'request.yaml', cwd=project)
    assert hood.log(id).splitlines() == sorted([*WANTED, *SHOWN, 'request.yaml'])


def test_a_dry_run_says_how_many_how_much_and_what_is_left_out(hood, project):
    for i in range(40):
        hood.write(project / f'many/{i}', 'x' * 1024)
    result = hood.succeed('run', '--dry-run', '--input', '.', '--', 'true', cwd=project)
    assert re.search(r'^staged +45 files, 40(\.\d)? KiB$', result.out, re.M) and 'and 25 more' in result.out, result
    assert f'{project}/.git (version control)' in result.out and f'{project}/venv (a virtual environment)' in result.out, result
    plan = hood.succeed('run', '--dry-run', '--json', '--input', '.', '--', 'true', cwd=project).json
    assert len(plan['stage']) == 45 and sum(s['size'] for s in plan['stage']) > 40960


# Bounds.

def test_more_than_input_max_is_refused_and_what_to_do_is_said(hood, project):
    hood.write(project / 'big.bin', 'x' * 100000)
    message = refused(hood, '--input', '.', '--input-max', '64K', cwd=project)
    assert "--input '.'" in message and '64K' in message and '--ro' in message and '--input-max' in message, message
    assert listed(hood, '--input', '.', '--input-max', '200K', cwd=project)
    hood.write(project / 'sparse', '')
    os.truncate(project / 'sparse', 1 << 40)
    assert '1G' in hood.run('true', '--input', '.', cwd=project).json['error']['message']
    result = hood.cli('submit', '--input', '.', '--', 'true', cwd=project)
    assert result.status == 125 and '--input-max' in result.err, result


def test_a_site_bounds_it_and_nobody_goes_beyond(hood, project):
    config = hood.write('config.yaml', 'defaults: {limits: {input_max: 10}}\nmaximum: {input_max: 1M}\n')
    assert '10' in refused(hood, '--input', '.', '--config', config, cwd=project)
    assert listed(hood, '--input', '.', '--input-max', '1M', '--config', config, cwd=project)
    assert 'input_max' in hood.run('true', '--input', '.', '--input-max', '2M', '--config', config, cwd=project).json['error']['message']


def test_ten_thousand_files_are_copied_and_recorded(hood):
    tree = hood.directory('tree')
    for i in range(100):
        (tree / str(i)).mkdir()
        hood.who.give(tree / str(i))
        for k in range(100):
            (tree / str(i) / str(k)).write_bytes(b'%d %d' % (i, k))
            hood.who.give(tree / str(i) / str(k))
    result = hood.run('find tree -type f | wc -l', '--input', tree)
    assert result.status == 0 and hood.log(result.json['id']) == '10000\n', result


# Trees that are not kind.

def test_links_that_stay_inside_are_files_and_others_are_named(hood, project):
    for name, target in [('same.py', 'main.py'), ('pkg/up.py', '../main.py'), ('twice', 'same.py'), ('out', '/etc/passwd'), ('climb', '../../../etc/passwd'),
                         ('loop', 'loop'), ('self', '.'), ('dangling', 'nowhere'), ('sly', '.git/config'), ('absolute', f'{project}/main.py')]:
        (project / name).symlink_to(target)
        hood.who.give(project / name)
    result = hood.run(LIST, '--input', '.', cwd=project)
    assert hood.log(result.json['id']).splitlines() == sorted([*WANTED, *SHOWN, 'same.py', 'pkg/up.py', 'twice']), result
    [note] = told(result)
    assert note.count("'") // 2 == 5 and 'and 3 more are not copied' in note, note
    plan = hood.succeed('run', '--dry-run', '--json', '--input', '.', '--', 'true', cwd=project).json
    assert {os.path.basename(line.split(' (')[0]) for line in plan['left_out'] if 'link' in line} == {
        'out', 'climb', 'loop', 'self', 'dangling', 'sly', 'absolute'}


def test_what_is_no_file_is_named_before_the_start_and_left_out(hood, project):
    os.mkfifo(project / 'pipe')
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(project / 'socket'))
        hood.write(project / 'new\nline', 'odd\n')
        result = hood.cli('run', hood.id(), '--input', '.', '--', 'sh', '-c', 'echo started >&2; cat "new\nline"', cwd=project)
    assert result.status == 0 and result.out == 'odd\n', result
    assert re.search(r"warning: of --input '\.' .*'pipe' \(a FIFO\).*\n.*started", result.err, re.S) and "'socket' (a socket)" in result.err, result
    assert result.err.count('not copied') == 1, result  # not a second time at the end


@pytest.mark.only('user')
def test_a_directory_that_cannot_be_read_is_refused_by_its_name(hood, project):
    hood.write(project / 'locked/file', '')
    (project / 'locked').chmod(0)
    message = refused(hood, '--input', '.', cwd=project)
    (project / 'locked').chmod(0o755)
    assert f'{project}/locked' in message and 'Permission denied' in message, message


def test_an_environment_a_repository_and_the_machine_are_not_copied_even_when_named(hood, project):
    for given, word in [('venv', 'virtual environment'), ('.conda', 'conda'), ('.git', 'repository'), ('/proc/sys', "machine's"), ('..', 'NAME'),
                        ('/', 'NAME'), ('pkg:../x', 'below the workspace'), ('pkg:/x', 'below the workspace'), ('nowhere', 'No such file'), ('/dev/null:x', 'neither')]:
        message = refused(hood, '--input', given, cwd=project)
        assert word in message, (given, message)


def test_the_ledger_and_the_state_in_a_tree_are_never_copied(hood, project):
    env = {'XDG_DATA_HOME': str(project / 'share'), 'XDG_STATE_HOME': str(project / 'state')}
    hood.run('true', cwd=project, env=env)
    found = hood.run(LIST, '--input', '.', cwd=project, env=env)
    log = hood.succeed('logs', found.json['id'], cwd=project, env=env).out
    assert found.status == 0 and log.splitlines() == sorted(WANTED + SHOWN), (found, log)


def test_a_very_deep_tree_is_refused_and_not_a_crash(hood):
    tree = hood.directory('deep')
    subprocess.run(['sh', '-c', 'for i in $(seq 300); do mkdir d && cd d || exit 1; done'], cwd=tree, check=True)
    assert 'deep' in refused(hood, '--input', tree)


def test_two_trees_that_want_the_same_name_are_refused(hood, project):
    hood.write('main.py', 'another\n')
    assert 'another input has that name' in refused(hood, '--input', f'{project}:.', '--input', f'{hood.dir}/main.py:main.py')


@pytest.mark.parametrize('command', ['run', 'submit'])
def test_a_directory_that_becomes_a_link_during_the_walk_leads_nowhere(hood, stranger, command):
    """A stranger who may write in the tree swaps a directory for a link to the caller's own, as fast as he can."""
    safe, tree = hood.directory('safe', 0o700), hood.directory('tree')
    hood.write(safe / 'key', 'the secret key\n', 0o600)
    for i in range(200):
        hood.write(tree / f'{i:03}', 'harmless\n')
    hood.write(tree / 'sub/key', 'harmless\n')
    for path in (tree, tree / 'sub', tree / 'sub/key'):
        os.chown(path, stranger.who.uid, stranger.who.uid)
    script = f'cd {tree} && while [ ! -e stop ]; do mv sub gone; ln -s {safe} sub; rm sub; mv gone sub; done'
    swapper = threading.Thread(target=stranger, args=('sh', '-c', script))
    swapper.start()
    results = []
    try:
        for _ in range(20):
            results.append(hood.cli(command, hood.id(), '--input', f'{tree}:t', '--', 'sh', '-c', 'cat t/*/key'))
    finally:
        (tree / 'stop').touch()
        swapper.join()
    hood.cli('worker', '--drain')
    assert all('secret' not in r.out for r in results) and {r.status for r in results} <= {0, 1, 125}, results
    for row in hood.succeed('ls', '--json').json:
        assert 'secret' not in hood.cli('logs', row['id']).out


# How far it is.

@pytest.mark.parametrize('command', ['run', 'submit'])
def test_on_a_terminal_it_is_told_how_far_a_long_copy_is(hood, command):
    tree = hood.directory('tree')
    os.truncate(hood.write(tree / 'big', ''), 512 << 20)
    ours, theirs = pty.openpty()
    process = hood.popen(command, hood.id(), '--input', tree, '--', 'true', stderr=theirs)
    os.close(theirs)
    stop_while_it_reads(process, tree / 'big')
    stopped = time.monotonic()
    assert until(lambda: time.monotonic() > stopped + 1.2)
    os.kill(process.pid, signal.SIGCONT)
    said = b''
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            said += chunk
    os.close(ours)
    assert process.wait() == 0, said
    assert re.search(rb'(staging|reading) .*MiB of 512 MiB', said), said
