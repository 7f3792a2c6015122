"""What the hood shows, copies and writes on an analysis's behalf, and what it does not: links, homes, secrets, dot-files,
and what another user of this host does meanwhile."""
import contextlib
import glob
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import leaks
import ledgers
from until import until


# Inputs that nobody named.

@pytest.fixture
def elsewhere(hood):
    """A platform whose data/ and docs/ are links to another's; inside/ is its own."""
    place = hood.directory('elsewhere')
    for name in ('data', 'docs'):
        hood.write(place / name / 'file', 'not yours\n')
        (hood.dir / name).rename(hood.dir / f'own-{name}')
        (hood.dir / name).symlink_to(place / name)
    hood.platform_changed_on_purpose()
    return place


@pytest.mark.parametrize('name', ['data', 'docs'])
@pytest.mark.parametrize('command', [['run'], ['run', '--dry-run'], ['submit']], ids=['run', 'dry run', 'submit'])
def test_a_link_out_of_the_directory_is_shown_only_if_somebody_says_so(hood, elsewhere, command, name):
    other = {'data': 'docs', 'docs': 'data'}[name]
    result = hood.cli(*command, hood.id(), f'--{other}', elsewhere / other, '--', 'cat', f'{name}/file')
    assert result.status == 125 and 'not yours' not in result.out, result
    assert f'--{name} {elsewhere / name}' in result.err, result.err
    shown = hood.cli(*command, hood.id(), '--data', elsewhere / 'data', '--docs', 'docs', '--', 'cat', f'{name}/file')
    assert shown.status == 0, shown


def test_a_link_that_stays_in_the_directory_is_shown(hood):
    hood.write('versions/3/genes', 'TP53\n')
    (hood.dir / 'docs').rename(hood.dir / 'old')
    (hood.dir / 'docs').symlink_to('versions/3')
    hood.platform_changed_on_purpose()
    result = hood.run('cat docs/genes')
    assert result.status == 0 and hood.log(result.json['id']) == 'TP53\n', result


# Staging.

BIG = 256 << 20


def stop_while_it_reads(process, path):
    """Stops it in the middle of a file; says where."""
    def position():
        fd = leaks.opened(process.pid, path)
        with contextlib.suppress(OSError):
            return int(Path(f'/proc/{process.pid}/fdinfo/{fd}').read_text().split()[1])
        return 0

    assert until(position), 'it never read the file'
    os.kill(process.pid, signal.SIGSTOP)
    assert 0 < position() < BIG
    return position()


@pytest.fixture
def trap(hood, stranger):
    """A directory of a stranger's with a large file and a small one, and the caller's own key, which only he may read."""
    place, safe = hood.directory('trap'), hood.directory('safe', 0o700)
    hood.write(safe / 'key', 'the secret key\n', 0o600)
    for path in (hood.write(place / 'big', ''), hood.write(place / 'sub/key', 'harmless\n')):
        os.chown(path, stranger.who.uid, stranger.who.uid)
    os.truncate(place / 'big', BIG)
    for path in (place, place / 'sub'):
        os.chown(path, stranger.who.uid, stranger.who.uid)
    return place


def spring(stranger, trap, how):
    """sub/ becomes the directory of the key: by a link, or sub/key itself does."""
    safe = trap.parent / 'safe'
    script = {'directory': f'mv {trap}/sub {trap}/gone && ln -s {safe} {trap}/sub',
              'file': f'rm {trap}/sub/key && ln -s {safe}/key {trap}/sub/key',
              'another file': f'echo harmless >{trap}/new && mv {trap}/new {trap}/sub/key'}[how]
    assert stranger('sh', '-c', script)[0] == 0


@pytest.mark.parametrize('source, how', [('sub/key', 'directory'), ('sub', 'directory'), ('sub/key', 'file'), ('sub/key', 'another file')])
@pytest.mark.parametrize('command', ['run', 'submit'])
def test_what_is_swapped_while_another_file_is_read_is_not_staged(hood, stranger, trap, command, source, how):
    words = ['--input', trap / 'big', '--input', f'{trap}/{source}:{source}']
    process = hood.popen(command, hood.id(), *words, '--', 'cat', 'sub/key')
    stop_while_it_reads(process, trap / 'big')
    spring(stranger, trap, how)
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 125 and 'secret' not in out, (out, err)
    assert re.search('link|replaced|not the file', err), err
    assert hood.nothing_was_recorded()


def test_a_link_of_another_users_on_the_way_is_not_followed(hood, stranger, trap):
    spring(stranger, trap, 'directory')
    for command in ('run', 'submit'):
        result = hood.cli(command, hood.id(), '--input', f'{trap}/sub/key:key', '--', 'cat', 'key')
        assert result.status == 125 and 'secret' not in result.out and 'link' in result.err, result
        for option in ('--ro', '--data', '--docs'):
            result = hood.cli(command, hood.id(), option, trap / 'sub', '--', 'cat', trap / 'sub/key')
            # Whoever submits does not look: the worker does.
            assert 'secret' not in result.out and (result.status == 125 and 'link' in result.err or command == 'submit'), result
        # As a word of the command it is only a word.
        result = hood.cli(command, hood.id(), '--', 'cat', 'sub/key', cwd=trap)
        assert 'secret' not in result.out, result
    hood.cli('worker', '--drain')
    assert all('secret' not in hood.cli('logs', row['id']).out for row in hood.succeed('ls', '--json').json)
    result = hood.run('echo new > file', '--into', trap / 'sub/deeper')
    assert result.status == 125 and 'link' in result.json['error']['message'], result
    assert not (trap.parent / 'safe/deeper').exists()


def test_ones_own_links_on_the_way_are_followed(hood):
    hood.write('versions/3/sub/x', 'worked\n')
    (hood.dir / 'latest').symlink_to(hood.dir / 'versions/3')
    (hood.dir / 'short').symlink_to('latest/sub')
    for link in ('latest', 'short'):
        hood.who.give(hood.dir / link)
    result = hood.run('cat x y/x', '--input', f'{hood.dir}/short/x:x', '--input', f'{hood.dir}/latest/sub:y')
    assert result.status == 0 and hood.log(result.json['id']) == 'worked\nworked\n', result
    result = hood.run(['cat', 'short/x'])
    assert result.status == 0 and hood.log(result.json['id']) == 'worked\n', result


# Interpreters' prefixes.

MINOR = subprocess.run(['/usr/bin/python3', '-c', 'import sys; print(sys.version_info[1])'], stdout=subprocess.PIPE, text=True).stdout.strip()
LOOK = 'import sys\nfor path in sys.argv[1:]:\n    print(open(path).read(), end="")\n'


def make_venv(hood, where):
    subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', where], check=True)
    for path in [where, *where.rglob('*')]:
        hood.who.give(path)
    return where


def prefixes(hood, *command, **others):
    result = hood.cli('run', '--dry-run', '--json', '--', *command, **others)
    return (result.json['prefixes'] or []) if result.status == 0 else result.json['error']['message']


def test_what_a_staged_file_says_shows_nothing(hood):
    venv = make_venv(hood, hood.home / 'venv')
    secret = hood.write(venv / 'secret', 'not yours\n')
    hood.write('own.py', f'#!{venv}/bin/python3\n{LOOK}', 0o755)
    hood.write('looked-up.py', f'#!/usr/bin/env python3\n{LOOK}', 0o755)
    path = {'PATH': f'{venv}/bin:{hood.env["PATH"]}'}
    for command, env in (('./own.py', {}), ('./looked-up.py', {})):
        assert prefixes(hood, command, env=env) == []
        result = hood.run([command, str(secret)], env=env)
        assert result.status != 0 and 'not yours' not in hood.log(result.json['id']), result
    assert any('own.py' in text and str(venv) in text for text in hood.run(['./own.py']).json['receipt']['warnings'])
    # On the caller's own word: his command, or the environment that he works in.
    assert prefixes(hood, 'python3', 'own.py', env=path) == [str(venv)]
    assert prefixes(hood, './looked-up.py', env=path) == [str(venv)]


@pytest.mark.parametrize('place, mark', [('.venvs/x', 'pyvenv.cfg'), ('.conda/envs/x', 'conda-meta/history'),
                                         ('.pyenv/versions/3.99.1', f'lib/python3.{MINOR}/os.py'), ('project', 'lib/R/R')])
def test_an_environment_in_ones_own_home_is_shown(hood, place, mark):
    hood.write(hood.home / place / mark, '')
    tool = hood.write(hood.home / place / 'bin/tool', '#!/bin/sh\necho worked\n', 0o755)
    assert prefixes(hood, tool) == [str(hood.home / place)]
    result = hood.run([str(tool)])
    assert result.status == 0 and hood.log(result.json['id']) == 'worked\n', result


@pytest.mark.parametrize('place', ['.ssh', '.config/tool', '.'])
def test_a_home_and_its_dot_directories_are_no_prefix(hood, place):
    hood.write(hood.home / place / 'lib/R/R', '')
    secret = hood.write(hood.home / place / 'secret', 'not yours\n')
    tool = hood.write(hood.home / place / 'bin/tool', f'#!/bin/sh\ncat {secret}\n', 0o755)
    assert 'home' in prefixes(hood, tool)
    result = hood.run([str(tool)])
    assert result.status == 125 and '--ro' in result.json['error']['message'], result


def test_an_environment_of_somebody_elses_home_is_no_prefix(hood, stranger):
    """Homes are those of /etc/passwd: in a mount namespace of its own there is one more."""
    other = hood.directory('other')
    hood.write(other / '.venvs/x/pyvenv.cfg', '')
    tool = hood.write(other / '.venvs/x/bin/tool', '#!/bin/sh\necho worked\n', 0o755)
    lines = hood.write('passwd', Path('/etc/passwd').read_text() + f'other:x:64999:64999::{other}:/bin/sh\n')
    assert prefixes(hood, tool) == [str(other / '.venvs/x')]
    result = run_with_etc_file(hood, '/etc/passwd', lines, tool)
    assert result.returncode == 125 and f"home '{other}'" in result.stderr, result


@pytest.mark.parametrize('what', ['ledger', 'state'])
def test_a_prefix_with_the_ledger_or_the_state_in_it_is_not_shown(hood, what):
    venv = make_venv(hood, hood.base / 'opt')
    env = {'XDG_DATA_HOME' if what == 'ledger' else 'XDG_STATE_HOME': str(venv / 'share')}
    hood.succeed('db', 'init', env=env)
    hood.succeed('gc', env=env)
    assert what in prefixes(hood, venv / 'bin/python3', 'x.py', env=env)


@pytest.mark.only('root')
def test_roots_own_files_in_a_prefix_stay_roots(hood):
    venv = make_venv(hood, hood.home / 'venv')
    readable, secret = hood.write(venv / 'readable', 'yours\n'), hood.write(venv / 'secret', 'not yours\n', 0o600)
    hood.write('look.py', LOOK)
    result = hood.run([f'{venv}/bin/python3', 'look.py', str(readable), str(secret)])
    assert result.status != 0 and hood.log(result.json['id']).startswith('yours\n'), result
    assert 'not yours' not in hood.log(result.json['id'])
    result = hood.run([f'{venv}/bin/python3', 'look.py', str(secret)], '--ro', venv)  # on purpose
    assert result.status == 0, result


def test_of_a_users_packages_only_these_are_shown(hood):
    local = hood.home / '.local'
    hood.write(local / f'lib/python3.{MINOR}/site-packages/only_here.py', 'answer = 42\n')
    secret = hood.write(local / 'share/secret', 'not yours\n')
    text = f'#!/usr/bin/python3\nimport os, only_here\nprint(only_here.answer, os.path.exists("{secret}"))\n'
    tool = hood.write(local / 'bin/tool', text, 0o755)
    hood.write(local / 'bin/other', 'not yours\n')
    result = hood.run([str(tool)])
    assert result.status == 0 and hood.log(result.json['id']) == '42 False\n', (result, hood.log(result.json['id']))
    assert prefixes(hood, tool) == [str(local / f'lib/python3.{MINOR}/site-packages'), str(tool)]
    result = hood.run(['tool'], env={'PATH': f'{local}/bin:{hood.env["PATH"]}'})
    assert result.status == 0, result


# Files of /etc.

def run_with_etc_file(hood, path, file, *command):
    """The command (`cat path`) under a hood, in a mount namespace in which file lies there, as the caller."""
    who = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups'] if hood.who.uid else []
    return subprocess.run(['unshare', '-m', 'sh', '-c', f'mount --bind {file} {path} && exec "$@"', 'sh', *who, hood.binary,
                           'run', hood.id(), '--', *(command or ('cat', path))], cwd=hood.dir, env=hood.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize('mode, shown', [(0o644, True), (0o640, False), (0o600, False)])
def test_a_file_of_etc_is_shown_only_if_everybody_may_read_it(hood, stranger, mode, shown):
    file = hood.write('version', 'mine and yours\n', mode)
    result = run_with_etc_file(hood, '/etc/debian_version', file)
    assert (result.returncode == 0) == shown, result
    assert ('mine' in result.stdout) == shown, result


# The private /tmp.

def test_nobody_else_reaches_the_private_tmp_whatever_its_mode(hood, stranger):
    process, id = hood.start('umask 0; mkdir /tmp/open; echo secret > /tmp/open/file; chmod 777 /tmp; echo ready; read end',
                             '-i', stdin=subprocess.PIPE)
    place = glob.glob(f'/tmp/.scidex-analysis-{id}.*')[0]
    tries = [stranger('sh', '-c', f'cd {place} && find . -type f; touch {place}/planted {place}/tmp/planted'),
             stranger('sh', '-c', f'cat {place}/open/file {place}/tmp/open/file')]
    process.communicate('end\n')
    assert process.returncode == 0
    for status, said in tries:
        assert status != 0 and 'secret' not in said and './' not in said, said


def test_a_post_process_reads_what_the_analysis_left_and_not_what_another_user_slipped_in(hood, stranger):
    """The analysis opens its /tmp to everybody; somebody else waits there for the post-process, to be its outputs."""
    hood.succeed('db', 'init')
    ledger = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', ledger, 'CREATE TABLE scores(gene TEXT)'], check=True, **hood.who.popen_arguments())
    hood.write('post.py', 'print(open("outputs/rows").read(), end="")\n')
    site = hood.write('site.yaml', 'post_process: {command: python3 post.py, tables: {scores: [gene]}}\n')
    forged = hood.write('forged/rows', '{"table": "scores", "row": {"gene": "FORGED"}}').parent
    racer = hood.write('racer.sh', """
echo racing
while test -d $1; do
    for at in $1 $1/tmp; do mv $at/outputs $at/gone && cp -r $2 $at/outputs; done
done 2>/dev/null
""")
    process, id = hood.start('chmod 777 /tmp; echo \'{"table": "scores", "row": {"gene": "TRUE"}}\' > rows; echo ready; read go',
                             '--config', str(site), '--output', 'rows', '-i', stdin=subprocess.PIPE)
    place = glob.glob(f'/tmp/.scidex-analysis-{id}.*')[0]
    other = subprocess.Popen(['sh', racer, place, forged], stdout=subprocess.PIPE, text=True,
                             **stranger.who.popen_arguments())
    assert other.stdout.readline() == 'racing\n'
    process.communicate('go\n')
    other.kill()
    other.communicate()
    rows = subprocess.run(['sqlite3', ledger, 'SELECT gene FROM scores'], stdout=subprocess.PIPE, text=True).stdout.split()
    assert rows == ['TRUE'], rows


# The ledger's password.

SECRET = 'S3cretOfTheLedger'


@pytest.fixture(params=['userinfo', 'parameter'])
def guarded(request, hood, server):
    """A PostgreSQL ledger whose URL has a password in it, one way or the other."""
    ledger = ledgers.Postgres(hood, server)
    role = f'role_{hood.tag}'
    ledger.psql(server.url, f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{SECRET}'")
    who = f'{role}:{SECRET}' if request.param == 'userinfo' else role
    hood.env['FUMEHOOD_DB'] = re.sub('//[^@/]*@', f'//{who}@', ledger.url)
    if request.param == 'parameter':
        hood.env['FUMEHOOD_DB'] += f'&password={SECRET}'
    assert SECRET in hood.env['FUMEHOOD_DB']
    yield ledger
    ledger.close()
    ledger.psql(server.url, f'DROP ROLE {role}')


def files_with(secret, *places):
    found = subprocess.run(['grep', '-rlaF', '--devices=skip', secret, *map(str, places)], stdout=subprocess.PIPE, text=True)
    return found.stdout.splitlines()


def look_for_the_password(hood, id, *said):
    """In every file of ours, in the names of files, in what was said."""
    places = [hood.home, *glob.glob(f'/tmp/*scidex-analysis-{id}*'), *glob.glob(f'/tmp/.scidex-analysis-{id}*')]
    assert files_with(SECRET, *places) == []
    assert SECRET not in '\n'.join(str(path) for path in hood.base.rglob('*'))
    for text in said:
        assert SECRET not in text, text


def children(pid):
    for stat in glob.glob('/proc/[0-9]*/stat'):
        with contextlib.suppress(OSError):
            words = Path(stat).read_text().rpartition(')')[2].split()
            if int(words[1]) == pid:
                child = int(stat.split('/')[2])
                yield child
                yield from children(child)


def test_the_ledgers_password_is_in_no_file_of_ours(hood, guarded):
    process, id = hood.start('echo ready; read go; echo done > out', '-i', '--keep', 'always', stdin=subprocess.PIPE)
    look_for_the_password(hood, id)
    below = list(children(process.pid))
    assert below
    for child in below:
        for name in ('cmdline', 'environ'):
            assert SECRET not in (Path('/proc') / str(child) / name).read_text(errors='replace')
    out, err = process.communicate('go\n')
    assert process.returncode == 0, err
    look_for_the_password(hood, id, out, err, hood.succeed('show', id, '--json').out, hood.succeed('doctor', '--json').out)
    assert SECRET not in '\n'.join(guarded.sql(f'SELECT a::text FROM {guarded.table("attempt")} a'))
    hood.succeed('workspace', 'cleanup', id)


def test_a_worker_says_and_writes_no_password(hood, guarded):
    """Not what it says while the ledger is out of reach either, nor in the row that names it."""
    id = hood.id()
    hood.succeed('submit', id, '--', 'sh', '-c', 'echo done > out', cwd=hood.home)  # where it names nothing of the host
    worker = hood.succeed('worker', '--drain')
    status = hood.succeed('db', 'status')
    look_for_the_password(hood, id, worker.out, worker.err, status.out, status.err)
    assert hood.verdict(id) == 'succeeded'
    for table in ('attempt', 'queue', 'event'):
        assert SECRET not in '\n'.join(guarded.sql(f'SELECT t::text FROM {guarded.table(table)} t'))
    guarded.psql(guarded.server.url, f'ALTER DATABASE {guarded.database} ALLOW_CONNECTIONS false')
    away = hood.cli('worker', '--drain')
    guarded.psql(guarded.server.url, f'ALTER DATABASE {guarded.database} ALLOW_CONNECTIONS true')
    assert away.status != 0 and guarded.database in away.err, away
    look_for_the_password(hood, id, away.out, away.err)


def test_a_killed_supervisor_leaves_no_password_and_gc_uses_todays(hood, guarded):
    process, id = hood.start('echo ready; exec sleep 1000')
    process.kill()
    process.communicate()
    look_for_the_password(hood, id)
    gc = hood.succeed('gc')
    look_for_the_password(hood, id, gc.out, gc.err)
    assert hood.verdict(id) == 'lost'


def test_what_waits_for_its_commit_has_no_password_and_is_committed_with_todays(hood, guarded):
    process, id = hood.start('echo ready; read go; echo done > out', '-i', stdin=subprocess.PIPE)
    guarded.psql(guarded.server.url, f'ALTER DATABASE {guarded.database} ALLOW_CONNECTIONS false')
    guarded.psql(guarded.server.url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{guarded.database}'")
    out, err = process.communicate('go\n')
    assert process.returncode == 125, err
    look_for_the_password(hood, id, out, err)
    later = hood.cli('gc')
    assert later.status != 0
    look_for_the_password(hood, id, later.out, later.err)
    # Another ledger is today's: the record's own is tried without what is not written down.
    elsewhere = hood.cli('gc', '--db', f'sqlite:{hood.home}/other.db')
    assert elsewhere.status != 0 and guarded.database in elsewhere.err, elsewhere
    look_for_the_password(hood, id, elsewhere.out, elsewhere.err)
    guarded.psql(guarded.server.url, f'ALTER DATABASE {guarded.database} ALLOW_CONNECTIONS true')
    hood.succeed('gc')
    assert hood.verdict(id) == 'succeeded'


@pytest.mark.parametrize('form', ['--db {}', '--db={}'])
def test_a_password_does_not_stay_on_the_command_line(hood, guarded, form):
    words = form.format(hood.env.pop('FUMEHOOD_DB')).split()
    process, id = hood.start('echo ready; read go', '-i', *words, stdin=subprocess.PIPE)
    for pid in [process.pid, *children(process.pid)]:
        assert SECRET not in (Path('/proc') / str(pid) / 'cmdline').read_text(errors='replace')
    assert id in (Path('/proc') / str(process.pid) / 'cmdline').read_text()
    assert guarded.database in (Path('/proc') / str(process.pid) / 'cmdline').read_text()
    _, err = process.communicate('go\n')
    assert process.returncode == 0, err


@pytest.mark.parametrize('url', [f'host=127.0.0.1 dbname=x password={SECRET}', f'mysql://u:{SECRET}@h/db'], ids=['words', 'scheme'])
def test_a_ledger_that_is_not_ours_is_no_name_of_a_file(hood, url):
    result = hood.cli('run', hood.id(), '--db', url, '--', 'true')
    assert result.status == 125 and 'postgresql://' in result.err, result
    look_for_the_password(hood, hood.tag, result.out, result.err)


# --into.

def into(hood, script, *options):
    return hood.run(script, '--into', hood.dir / 'results', *options)


def tree(place):
    return {str(path.relative_to(place)): path.read_text() for path in sorted(Path(place).rglob('*')) if path.is_file()}


def test_into_overwrites_nothing_unless_forced(hood):
    hood.write('results/sub/b', 'mine\n')
    script = 'mkdir sub; echo new > a; echo new > sub/b'
    result = into(hood, script)
    assert result.status == 125 and result.json['committed'] and result.json['verdict'] == 'succeeded', result
    assert result.json['error']['stage'] == 'into' and "'sub/b'" in result.json['error']['message'], result.json['error']
    assert '--force' in result.json['error']['message']
    assert tree(hood.dir / 'results') == {'sub/b': 'mine\n'}  # not one
    said = hood.cli('run', hood.id(), '--into', hood.dir / 'results', '--quiet', '--', 'sh', '-c', script)
    [line] = [line for line in said.err.splitlines() if 'not limited' not in line]  # which is said in any case
    assert said.status == 125 and '--force' in line, said
    result = into(hood, script, '--force')
    assert result.status == 0, result
    assert tree(hood.dir / 'results') == {'a': 'new\n', 'sub/b': 'new\n'}


def test_into_does_not_overwrite_a_directory_even_if_forced(hood):
    hood.write('results/a/keep', 'mine\n')
    result = into(hood, 'echo new > a', '--force')
    assert result.status == 125 and result.json['committed'], result
    assert tree(hood.dir / 'results') == {'a/keep': 'mine\n'}


DOTS = 'mkdir -p .git deep/.ssh; echo x | tee .bashrc .git/config deep/.ssh/authorized_keys plain > /dev/null'


@pytest.mark.parametrize('options', [[], ['--output', '**'], ['--output', '.git', '--output', '.b*', '--output', 'deep/', '--output', 'plain']],
                         ids=['everything', 'a pattern', 'directories'])
def test_into_makes_no_dot_file_that_nobody_named(hood, options):
    result = into(hood, DOTS, *options)
    assert result.status == 0, result
    assert tree(hood.dir / 'results') == {'plain': 'x\n'}
    assert not (hood.dir / 'results/.git').exists()
    left = {o['path'] for o in result.json['outputs']} - {'plain'}
    assert left == {'.bashrc', '.git/config', 'deep/.ssh/authorized_keys'}
    assert any('3 dot-files are not copied' in text for text in result.json['receipt']['warnings']), result.json['receipt']


def test_into_makes_a_dot_file_that_was_named(hood):
    result = into(hood, DOTS, '--output', './.git//config', '--optional-output', 'deep/.ssh/authorized_keys')
    assert result.status == 0, result
    assert tree(hood.dir / 'results') == {'.git/config': 'x\n', 'deep/.ssh/authorized_keys': 'x\n'}


def test_into_copies_only_what_was_declared(hood):
    result = into(hood, 'echo x | tee a b', '--output', 'a')
    assert result.status == 0, result
    assert tree(hood.dir / 'results') == {'a': 'x\n'}


@pytest.mark.parametrize('force', [[], ['--force']], ids=['', 'forced'])
def test_into_follows_no_link(hood, force):
    victim = hood.write('victim/file', 'mine\n')
    (hood.dir / 'results').mkdir()
    hood.who.give(hood.dir / 'results')
    (hood.dir / 'results/dir').symlink_to(victim.parent)
    (hood.dir / 'results/link').symlink_to(victim)
    below = into(hood, 'mkdir dir; echo new > dir/file; echo new > dir/other', *force)
    assert below.status == 125 and below.json['error']['stage'] == 'into', below
    itself = into(hood, 'echo new > link', *force)
    assert (itself.status == 0) == bool(force), itself
    assert tree(victim.parent) == {'file': 'mine\n'}


def test_into_a_link_of_another_users_is_refused(hood, stranger):
    victim = hood.write('victim/file', 'mine\n')
    os.symlink(victim.parent, hood.dir / 'results')
    os.chown(hood.dir / 'results', stranger.who.uid, stranger.who.uid, follow_symlinks=False)
    result = into(hood, 'echo new > file2', '--force')
    assert result.status == 125 and result.json['committed'] and 'link' in result.json['error']['message'], result
    assert tree(victim.parent) == {'file': 'mine\n'}


def test_into_makes_parents(hood):
    result = hood.cli('run', hood.id(), '--into', 'new/deep//er/', '--json', '--', 'sh', '-c', 'mkdir d; echo new > d/a')
    assert result.status == 0 and tree(hood.dir / 'new') == {'deep/er/d/a': 'new\n'}, result
    hood.write('new/file', 'a file\n')
    result = hood.cli('run', hood.id(), '--into', 'new/file/x', '--json', '--', 'sh', '-c', 'echo new > a')
    assert result.status == 125 and result.json['committed'] and 'new/file/x' in result.json['error']['message'], result


def test_into_what_cannot_be_made_is_said(hood):
    hood.write('results', 'a file\n')
    result = into(hood, 'echo new > a')
    assert result.status == 125 and result.json['committed'] and 'results' in result.json['error']['message'], result


def test_force_is_of_one_request_and_a_truth_value(hood):
    site = hood.write('site.yaml', 'defaults: {force: true}\n')
    result = hood.cli('run', '--config', site, '--', 'true')
    assert result.status == 125 and "'force'" in result.err, result
    request = hood.write('request.yaml', 'command: sh -c "echo new > a"\ninto: results\nforce: maybe\n')
    result = hood.cli('run', '-f', request)
    assert result.status == 125 and 'request.yaml:3' in result.err, result
    hood.write('results/a', 'old\n')
    hood.write('request.yaml', 'command: sh -c "echo new > a"\ninto: results\nforce: true\n')
    assert hood.cli('run', hood.id(), '-f', request).status == 0
    assert tree(hood.dir / 'results') == {'a': 'new\n'}


def test_a_worker_copies_into_as_a_run_does_and_says_what_it_cannot(hood):
    hood.write('results/a', 'mine\n')
    ids = [hood.id(), hood.id()]
    hood.succeed('submit', ids[0], '--into', 'results', '--', 'sh', '-c', 'echo new > a')
    hood.succeed('submit', ids[1], '--into', 'results', '--force', '--', 'sh', '-c', 'echo new > b')
    worker = hood.succeed('worker', '--drain')
    assert tree(hood.dir / 'results') == {'a': 'mine\n', 'b': 'new\n'}
    assert [hood.verdict(id) for id in ids] == ['succeeded', 'succeeded']
    assert ids[0] in worker.err and '--force' in worker.err, worker
