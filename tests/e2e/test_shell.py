"""Kept and reopened: `--keep`, its budget, and `fumehood shell` in what was kept."""
import json
import os
import signal

import pytest

from desk import Desk
from until import until

FIT = "import os\nopen('half.txt', 'w').write('half')\nprint(os.environ['COLOUR'])\nprint(open('wanted.csv').read())\n"


@pytest.fixture
def kept(hood):
    """An analysis that has failed, and whose workspace is kept."""
    hood.write('fit.py', FIT)
    id = hood.id()
    result = hood.cli('run', id, '--keep', 'on-failure', '--env', 'COLOUR=red', '--ro', str(hood.dir / 'site'), '--', 'python3', 'fit.py')
    assert result.status == 1 and f'fumehood shell {id}' in result.err, result
    yield id
    hood.succeed('workspace', 'cleanup', id)
    assert not list_of(hood, id)


def list_of(hood, id):
    """Everything of it in the workspace root and the state directory."""
    runs = hood.home / 'state/fumehood/runs'
    return sorted(name for top in ('/tmp', runs) if os.path.isdir(top) for name in os.listdir(top) if id in name)


def attempts(hood, id):
    shown = hood.cli('show', id, '--json')
    return [a['verdict'] for a in json.loads(shown.out).get('attempts', [])] if shown.status == 0 else []


def test_look_rerun_leave(hood, kept):
    before = list_of(hood, kept)
    with Desk(hood, 'shell', kept) as desk:
        desk.until('$ ')
        desk.type('pwd; ls; echo $FUMEHOOD_ID $COLOUR; tty\n')
        desk.until(f'/tmp/scidex-analysis-{kept}')
        desk.until('half.txt')
        desk.until(f'{kept} red')
        desk.until('/dev/pts/0')
        desk.type(f'cat {hood.dir}/site/index.html data/genes.csv docs/method.md; cat {hood.dir}/api.py || echo not "there"\n')
        desk.until('<p>the site</p>')
        desk.until('TP53')
        desk.until('How it was measured')
        desk.until('not there')
        desk.type('python3 fit.py; echo a,b > wanted.csv; python3 fit.py && echo it "works"\n')
        desk.until('FileNotFoundError')
        desk.until('it works')
        desk.type('exit 4\n')
        assert desk.ends() == 4
        assert desk.is_as_before()
    assert list_of(hood, kept) == before
    assert (hood.workspace(kept) / 'wanted.csv').read_text() == 'a,b\n'
    assert (hood.workspace(kept) / 'wanted.csv').stat().st_uid == (hood.who.uid or 0)
    assert attempts(hood, kept) == ['failed']
    assert hood.cli('shell', kept, '--', 'python3', 'fit.py').out == 'red\na,b\n\n'


def test_one_command_has_its_own_exit_status_and_streams(hood, kept):
    result = hood.cli('shell', kept, '--', 'sh', '-c', 'cat; echo out; echo err >&2; exit 7', stdin='typed\n')
    assert (result.status, result.out, result.err) == (7, 'typed\nout\n', 'err\n'), result
    result = hood.cli('shell', kept, '--json', '--', 'sh', '-c', 'echo out; exit 3')
    assert result.status == 3 and result.json['exit_code'] == 3 and result.json['committed'] is False, result
    assert result.json['stdout']['head'] == 'out\n' and result.json['attempt'] == 1, result
    assert hood.cli('shell', kept, stdin='echo a script; exit 5\n').out == 'a script\n'
    assert hood.cli('shell', kept, '--', 'no-such-program').status == 127
    assert attempts(hood, kept) == ['failed']


def test_the_same_walls(hood, kept):
    result = hood.cli('shell', kept, '--', 'sh', '-c', 'touch /usr/x; echo > data/genes.csv; ls /home /root 2>/dev/null; '
                      'python3 -c "import socket; socket.create_connection((\'127.0.0.1\', 22), 1)"; id -u; echo end')
    assert 'Read-only' in result.err and 'refused' in result.err and result.out == '1000\nend\n', result


def test_the_limits_hold_and_a_shell_is_as_long_as_one_likes(caged):
    hood, id = caged, caged.id()
    assert hood.run('sleep 60', '--wall', '1s', '--pids', '20', '--keep', 'on-failure', id=id).status == 124
    assert hood.cli('shell', id, '--', 'sleep', '60').status == 124
    with Desk(hood, 'shell', id) as desk:
        desk.until('$ ')
        desk.type('sleep 1.5; for i in $(seq 40); do sleep 9 & done; echo still "here"\n')
        desk.until('Resource temporarily unavailable')
        desk.signal(signal.SIGTERM)
        desk.ends()
        assert desk.is_as_before()
    hood.succeed('workspace', 'cleanup', id)


def test_a_kept_workspace_moves_aside_when_the_next_attempt_begins(hood, kept):
    hood.write('fit.py', FIT + "# second\n")
    assert hood.cli('run', kept, '--keep', 'on-failure', '--env', 'COLOUR=blue', '--', 'python3', 'fit.py').status == 1
    assert hood.workspace(f'{kept}@1').exists() and hood.workspace(kept).exists()
    assert hood.cli('shell', kept, '--', 'sh', '-c', 'echo $COLOUR; pwd').out == f'blue\n/tmp/scidex-analysis-{kept}\n'
    assert hood.cli('shell', kept, '--attempt', '1', '--', 'sh', '-c', 'echo $COLOUR; pwd; echo 1 >more').out == \
        f'red\n/tmp/scidex-analysis-{kept}\n'
    assert (hood.workspace(f'{kept}@1') / 'more').exists()
    assert hood.cli('run', kept, '--env', 'COLOUR=green', '--', 'true').status == 0
    assert hood.cli('shell', kept, '--', 'sh', '-c', 'echo $COLOUR').out == 'blue\n'
    hood.succeed('gc')
    assert len(list_of(hood, kept)) == 4


def test_what_is_not_there_or_in_use_is_refused(hood, kept):
    for words, said in ((('shell', hood.id()), '--keep on-failure'), (('shell', kept, '--attempt', '7'), 'attempt 7'),
                        (('shell', '../x'), 'id'), (('shell', kept, '--'), "'--'"), (('shell', kept, '--json'), '--json'),
                        (('shell',), 'used as'), (('shell', kept, '--attempt', '0'), '--attempt')):
        result = hood.cli(*words)
        assert result.status == 125 and said in result.err + result.out, result
    with Desk(hood, 'shell', kept) as desk:
        desk.until('$ ')
        for words in (('shell', kept, '--', 'true'), ('run', kept, '--', 'true'), ('workspace', 'cleanup', kept)):
            result = hood.cli(*words)
            assert result.status == 125 and 'in use' in result.err, result
        hood.succeed('gc')
        assert json.loads(hood.succeed('ls', '--json').out)[0]['state'] != 'running'
        desk.type('exit 0\n')
        assert desk.ends() == 0
    held = hood.id()
    hood.succeed('workspace', 'create', held, '--for', '1h')
    result = hood.cli('shell', held)
    assert result.status == 125 and 'no workspace' in result.err, result
    hood.succeed('workspace', 'cleanup', held)


TRAPS = ('.bashrc', '.bash_profile', '.profile', '.bash_login', '.shrc')


def test_what_the_analysis_has_left_does_not_say_how_the_shell_is(hood):
    id = hood.id()
    hood.run(f'for f in {" ".join(TRAPS)}; do echo "echo trap""ped; PROMPT_COMMAND=\'echo trap""ped\'" > $f; done; '
             'echo \'"q": "echo trap""ped"\' > .inputrc; exit 1', '--keep', 'always', '--env', 'ENV=.profile', '--env', 'BASH_ENV=.bashrc',
             '--env', 'PROMPT_COMMAND=. ./.bashrc', id=id)
    with Desk(hood, 'shell', id) as desk:
        seen = desk.until('$ ')
        desk.type('echo q-is-"q"; ls -A\n')
        seen += desk.until('q-is-q') + desk.until('.inputrc')
        desk.type('exit 0\n')
        assert desk.ends() == 0
    assert 'trapped' not in seen + desk.shown
    assert hood.cli('shell', id, stdin='echo a script\n').out == 'a script\n'
    hood.succeed('workspace', 'cleanup', id)


DEAF = """import os, signal, sys, time, tty
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
if 'raw' in sys.argv:
    tty.setraw(0)
print('deaf', 'now', flush=True)
if 'closed' in sys.argv:
    os.setsid() if os.fork() == 0 else time.sleep(1000)
    os.closerange(0, 100)
while True:
    time.sleep(1000)
"""


@pytest.mark.parametrize('how', ['plain', 'raw', 'closed', 'full'])
def test_a_way_out_that_nothing_inside_can_ignore(hood, how):
    id = hood.id()
    hood.write('deaf.py', DEAF)
    with Desk(hood, 'run', id, '-t', '--keep', 'always', '--', 'python3', 'deaf.py', 'raw' if how == 'full' else how) as desk:
        desk.until('deaf now')
        desk.type('\x03\x1c\x1a')
        for _ in range(40 if how == 'full' else 1):  # more than a terminal takes that is not read
            desk.type('x' * 2000)
            desk.look(0.02)
        assert desk.process.poll() is None
        desk.type('\r~.')
        assert desk.ends() == 129
        assert desk.is_as_before()
    assert attempts(hood, id) == ['cancelled']
    with Desk(hood, 'shell', id) as desk:
        desk.until('$ ')
        desk.type('trap "" INT TERM HUP QUIT; sleep 1000; echo never\r')
        desk.look(0.5)
        desk.type('\r~.')
        assert desk.ends() == 129
        assert desk.is_as_before()
    hood.succeed('workspace', 'cleanup', id)


def test_a_tilde_is_a_tilde_elsewhere(hood):
    with Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', 'while read x; do echo "got:$x:"; done') as desk:
        for typed, got in (('~~.a', '~.a'), ('~b', '~b'), ('c~.', 'c~.'), ('~~', '~'), ('~', '~')):
            desk.type(typed[:1])
            desk.type(typed[1:] + '\r')
            desk.until(f'got:{got}:')
        desk.type('\x04')
        assert desk.ends() == 0


def test_it_is_said_to_be_kept(hood, kept):
    shown = hood.succeed('show', kept).out
    assert f'{kept} has a workspace that is kept' in shown and 'held since' not in shown, shown


def test_the_tab_key_knows_what_is_kept(hood, kept):
    other = hood.id()
    hood.run('exit 1', id=other)
    assert [line.split('\t')[0] for line in hood.succeed('complete', '--', 'shell', '').out.splitlines()] == [kept]
    assert {kept, other} <= {line.split('\t')[0] for line in hood.succeed('complete', '--', 'show', '').out.splitlines()}


def test_a_shell_that_is_killed_leaves_what_was_kept(hood, kept):
    before = list_of(hood, kept)
    with Desk(hood, 'shell', kept) as desk:
        desk.until('$ ')
        desk.type('sleep 1000 & echo 1 > more; echo run""ning\n')
        desk.until('running')
        desk.signal(signal.SIGKILL)
        assert desk.ends() == -9
        assert until(desk.is_as_before)
    hood.succeed('gc')
    assert list_of(hood, kept) == before
    assert hood.cli('shell', kept, '--', 'cat', 'more').out == '1\n'
    with Desk(hood, 'shell', kept) as desk:
        desk.until('$ ')
        desk.signal(signal.SIGKILL)
        desk.ends()
    assert hood.cli('shell', kept, '--', 'cat', 'more').out == '1\n'  # without gc


@pytest.mark.only('user')  # root opens no ledger that others can write
def test_whose_it_was_is_said_by_its_record_and_not_by_the_ledger_that_is_named(hood):
    shared = hood.directory('shared')
    shared.chmod(0o777)
    config = hood.write('site.yaml', f'queue: {{allow: {{keep: true, ro: [{hood.dir}], data: [{hood.dir}], docs: [{hood.dir}]}}}}\n')
    theirs, own = hood.id(), hood.id()
    for id, ledger in ((theirs, ['--db', f'sqlite:{shared}/ledger.db']), (own, [])):
        hood.succeed('submit', id, *ledger, '--keep', 'always', '--retries', 0, '--ro', str(hood.dir / 'site'), '--', 'sh', '-c', 'exit 1')
        said = hood.succeed('worker', '--drain', '--config', config, *ledger).err
        assert 'its workspace is kept' in said and (f'fumehood shell {id}' in said) == (id == own), said
    for ledger in ([], ['--db', f'sqlite:{shared}/ledger.db'], ['--db', f'sqlite:{hood.base}/other.db']):
        result = hood.cli('shell', theirs, *ledger, '--', 'true')
        assert result.status == 125 and 'which are not yours' in result.err and str(hood.workspace(theirs)) in result.err, result
        result = hood.cli('shell', own, *ledger, '--', 'sh', '-c', f'cat {hood.dir}/site/index.html')
        assert result.out == '<p>the site</p>\n', result
    hood.succeed('workspace', 'cleanup', theirs)
    hood.succeed('workspace', 'cleanup', own)


def test_a_budget_is_kept_the_oldest_go_first(hood):
    hood.write('site.yaml', 'keep: {max_bytes: 3M, for: 1h}\n')
    ids = [hood.id() for _ in range(4)]
    fill = 'head -c 1000000 /dev/zero | tr "\\0" x > big; exit 1'
    for id in ids:
        hood.run(fill, '--keep', 'on-failure', '--config', 'site.yaml', id=id)
    assert [hood.workspace(id).exists() for id in ids] == [False, False, True, True] or \
        [hood.workspace(id).exists() for id in ids] == [False, True, True, True]
    hood.write('less.yaml', 'keep: {max_bytes: 1100k}\n')
    hood.succeed('gc', '--config', 'less.yaml')
    assert [hood.workspace(id).exists() for id in ids] == [False, False, False, True]
    large = hood.id()
    result = hood.run('head -c 9000000 /dev/zero | tr "\\0" x > big; exit 1', '--keep', 'on-failure', '--config', 'site.yaml', id=large)
    assert not hood.workspace(large).exists() and 'not kept' in str(result.json['receipt']), result
    assert hood.workspace(ids[3]).exists()
    hood.succeed('workspace', 'cleanup', ids[3])


def test_what_is_kept_expires(hood):
    hood.write('site.yaml', 'keep: {for: 1s}\n')
    id = hood.id()
    hood.run('exit 1', '--keep', 'always', '--config', 'site.yaml', id=id)
    assert until(lambda: hood.cli('gc').status == 0 and not hood.workspace(id).exists())
    assert not list_of(hood, id)


def test_what_steps_have_left_has_no_hood_of_its_own(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1s')
    hood.run('echo y >g; exit 1', '--keep', 'always', id=id)
    assert until(lambda: hood.cli('gc').status == 0 and attempts(hood, id) == ['failed'])
    result = hood.cli('shell', id, '--', 'cat', 'g')
    assert result.status == 125 and 'held' in result.err and str(hood.workspace(id)) in result.err, result
    assert (hood.workspace(id) / 'g').exists()
    hood.succeed('workspace', 'cleanup', id)


def test_a_name_that_somebody_has_planted_is_not_touched(hood, kept):
    planted = hood.workspace(f'{kept}@1')
    planted.mkdir()
    (planted / 'x').write_text('x')
    try:
        assert hood.run('true', id=kept).status == 0
        assert hood.workspace(f'{kept}@1.2').exists() and (planted / 'x').read_text() == 'x'
        assert hood.cli('shell', kept, '--', 'ls', 'half.txt').status == 0
        hood.succeed('workspace', 'cleanup', kept)
        assert (planted / 'x').read_text() == 'x' and not hood.workspace(f'{kept}@1.2').exists()
    finally:
        (planted / 'x').unlink()
        planted.rmdir()
