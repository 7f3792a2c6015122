"""Reading the ledger, and the commands around it."""
import hashlib
import json
import os
import pty
import sqlite3
import subprocess

import pytest

import leaks
from until import until

pytestmark = pytest.mark.asan


def test_ls_show_logs_outputs_get_tell_the_same_story(hood):
    id = hood.id()
    hood.run('echo said; echo 1 > a.csv; mkdir d; echo 2 > d/b.csv', id=id)
    [row] = json.loads(hood.succeed('ls', '--json').out)
    assert (row['id'], row['verdict']) == (id, 'succeeded') and row['state']
    shown = json.loads(hood.succeed('show', id, '--json').out)
    for key in ['request', 'plan', 'events', 'attempts', 'receipt', 'usage']:
        assert shown[key], key
    outputs = json.loads(hood.succeed('outputs', id, '--json').out)['outputs']
    assert outputs == shown['outputs'] and [o['path'] for o in outputs] == ['a.csv', 'd/b.csv']
    assert outputs[0]['sha256'] == hashlib.sha256(b'1\n').hexdigest()
    assert hood.succeed('logs', id).out == 'said\n'
    for command in [['ls'], ['show', id], ['outputs', id]]:
        assert id in hood.succeed(*command).out or 'a.csv' in hood.succeed(*command).out


def test_get_writes_a_file_or_into_a_directory(hood):
    id = hood.id()
    hood.run('echo 1 > a.csv; mkdir d; echo 2 > d/b.csv', id=id)
    target = hood.directory('target')
    hood.succeed('get', id, 'a.csv', '-o', target / 'x.csv')
    assert (target / 'x.csv').read_text() == '1\n'
    hood.succeed('get', id, 'a.csv', 'd/b.csv', '-o', target)
    assert (target / 'a.csv').read_text() == '1\n'
    assert {p.name for p in target.rglob('*') if p.is_file()} == {'x.csv', 'a.csv', 'b.csv'}


def test_get_of_what_is_not_there_names_it(hood):
    id = hood.id()
    hood.run('echo 1 > a.csv', id=id)
    result = hood.cli('get', id, 'b.csv', '-o', hood.dir / 'x')
    assert result.status == 125 and 'b.csv' in result.err and not (hood.dir / 'x').exists(), result


@pytest.mark.parametrize('command', ['show', 'logs', 'outputs'])
def test_an_unknown_id_is_said_to_be_unknown(hood, command):
    hood.run('true')
    result = hood.cli(command, 'never-heard-of')
    assert result.status == 125 and 'never-heard-of' in result.err, result


def test_an_earlier_attempt_can_be_read(hood):
    id = hood.id()
    hood.run('echo one; echo 1 > n; exit 1', id=id)
    hood.run('echo two; echo 2 > n', id=id)
    assert hood.succeed('logs', id).out == 'two\n'
    assert hood.succeed('logs', id, '--attempt', '1').out == 'one\n'
    assert json.loads(hood.succeed('show', id, '--attempt', '1', '--json').out)['verdict'] == 'failed'
    hood.succeed('get', id, 'n', '--attempt', '1', '-o', hood.directory('t') / 'n')
    assert (hood.base / 't/n').read_text() == '1\n'


def test_ls_shows_what_is_running(hood):
    process, id = hood.start('echo ready; exec sleep 1000')
    rows = {row['id']: row for row in json.loads(hood.succeed('ls', '--json').out)}
    process.terminate()
    process.communicate()
    assert rows[id]['state'] == 'running' and rows[id]['verdict'] is None


def test_ls_says_which_states_there_are(hood):
    refused = hood.cli('ls', '--state', 'no\x1bne')
    assert refused.status == 125 and "there is no state 'no\\x1bne': it is waiting," in refused.err, refused


def test_a_large_output_goes_through_the_object_store(hood):
    id = hood.id()
    result = hood.run('head -c 40M /dev/urandom > big.bin; sha256sum big.bin', id=id)
    assert result.status == 0, result
    target = hood.directory('target') / 'big.bin'
    hood.succeed('get', id, 'big.bin', '-o', target)
    assert hashlib.sha256(target.read_bytes()).hexdigest() == hood.log(id).split()[0]
    assert json.loads(hood.succeed('db', 'check', '--json').out)['problems'] == []


# Held workspaces.

def test_a_held_workspace_is_the_same_for_the_same_owner_and_cleaning_twice_is_fine(hood):
    id = hood.id()
    first = hood.succeed('workspace', 'create', id, '--for', '1h').out.strip()
    assert first == str(hood.workspace(id))
    assert os.stat(first).st_mode & 0o777 == 0o700
    assert hood.succeed('workspace', 'create', id, '--for', '1h').out.strip() == first
    assert hood.succeed('show', id).out == f'{id} has a workspace that is held: {first}\n'
    hood.succeed('gc')
    assert os.path.isdir(first), 'it is held'
    hood.succeed('workspace', 'cleanup', id)
    assert not os.path.exists(first)
    hood.succeed('workspace', 'cleanup', id)


def test_gc_removes_what_a_dead_owner_held(hood):
    id = hood.id()
    shell = subprocess.run(['sh', '-c', '"$0" workspace create "$1"; :', str(hood.binary), id], cwd=hood.dir, env=hood.env,
                           capture_output=True, text=True, **hood.who.popen_arguments())
    assert shell.returncode == 0 and hood.workspace(id).exists(), shell
    hood.succeed('gc')
    assert not hood.workspace(id).exists()


def test_run_adopts_a_held_workspace(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    hood.write(hood.workspace(id) / 'before.txt', 'before\n')
    result = hood.run('cat before.txt; echo x > after.txt', id=id)
    assert result.status == 0, result
    assert [o['path'] for o in result.json['outputs']] == ['after.txt'], 'what lay there counts as staged'
    assert hood.log(id) == 'before\n'
    hood.succeed('workspace', 'cleanup', id)


def test_commit_puts_a_held_workspace_and_a_result_into_the_ledger(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    hood.write(hood.workspace(id) / 'table.csv', 'a\n')
    hood.write(hood.workspace(id) / 'scratch.tmp', 'b\n')
    hood.write('result.json', '{"p": 0.05}')
    result = hood.succeed('commit', id, '--result', 'result.json', '--output', '*.csv', '--json')
    assert result.json['committed'] is True and result.json['verdict'] == 'succeeded'
    assert [o['path'] for o in result.json['outputs']] == ['table.csv']
    assert '0.05' in hood.succeed('show', id, '--json').out
    hood.succeed('workspace', 'cleanup', id)


# The ledger itself.

def test_db_init_status_check(hood):
    hood.succeed('db', 'init')
    hood.succeed('db', 'upgrade')
    hood.run('echo 1 > a')
    status = json.loads(hood.succeed('db', 'status', '--json').out)
    assert (status['analyses'], status['attempts'], status['outputs']) == (1, 1, 1)
    assert json.loads(hood.succeed('db', 'check', '--json').out)['problems'] == []


def test_the_tables_have_their_promised_names(hood):
    hood.run('echo 1 > a')
    ledger = hood.home / 'share/fumehood/ledger.db'
    tables = subprocess.run(['sqlite3', f'file:{ledger}?mode=ro', ".tables"], capture_output=True, text=True, check=True).stdout.split()
    for name in ['analysis', 'attempt', 'blob', 'output', 'rejected_output', 'input', 'log', 'event', 'schema_version']:
        assert f'fumehood_{name}' in tables


def test_a_ledger_that_cannot_be_written_keeps_the_finished_analysis_for_gc(hood):
    """Somebody else holds the ledger when the analysis ends: finished, not committed, 125; gc commits it later."""
    ledger = f'sqlite:{hood.home}/busy.db?busy=200ms'
    hood.succeed('db', 'init', '--db', ledger)
    process, id = hood.start('echo ready; cat > out.txt', '-i', '--db', ledger, stdin=subprocess.PIPE)
    other = sqlite3.connect(hood.home / 'busy.db', isolation_level=None)
    other.execute('BEGIN EXCLUSIVE')
    _, err = process.communicate('kept\n', timeout=300)
    assert process.returncode == 125 and 'gc' in err, err
    assert hood.workspace(id).exists()
    other.execute('ROLLBACK')
    other.close()
    hood.succeed('gc')
    shown = json.loads(hood.succeed('show', id, '--json', '--db', ledger).out)
    assert shown['committed'] is True and shown['verdict'] == 'succeeded' and len(shown['attempts']) == 1
    assert hood.succeed('get', id, 'out.txt', '-o', '-', '--db', ledger).out == 'kept\n'
    assert until(lambda: not leaks.find([id]))


@pytest.mark.parametrize('damage', ['cut', 'empty', 'nonsense', 'a line too long'])
def test_a_finished_record_that_cannot_be_read_is_set_aside_and_blocks_nobody(hood, damage):
    """It is recorded as lost, once, with the reason; its workspace stays to look at; its id and everybody else's go on."""
    ledger = f'sqlite:{hood.home}/busy.db?busy=200ms'
    hood.succeed('db', 'init', '--db', ledger)
    running = [hood.start('echo ready; cat > out.txt', '-i', '--db', ledger, stdin=subprocess.PIPE) for _ in range(2)]
    other = sqlite3.connect(hood.home / 'busy.db', isolation_level=None)
    other.execute('BEGIN EXCLUSIVE')
    for process, _ in running:
        process.communicate('kept\n', timeout=300)
        assert process.returncode == 125
    other.execute('ROLLBACK')
    other.close()
    (_, bad), (_, good) = running
    path = hood.home / f'state/fumehood/runs/{bad}/finished.json'
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    path.write_text({'cut': ''.join(lines[:-1]), 'empty': '', 'nonsense': text[:len(text) // 2],
                     'a line too long': lines[0] + 'x' * 100000 + text}[damage])
    path.with_name('ended').write_text('')  # else it is finished once more, from there
    assert hood.succeed('gc', '--json').json['lost'] == 1
    shown = hood.succeed('show', bad, '--json', '--db', ledger).json
    assert shown['verdict'] == 'lost' and 'damaged' in shown['reason'], shown['reason']
    assert hood.succeed('show', good, '--json', '--db', ledger).json['verdict'] == 'succeeded'
    assert (hood.workspace(bad) / 'out.txt').read_text() == 'kept\n'
    assert path.with_name('finished.json.damaged').exists()
    assert hood.succeed('gc', '--json').json['failed'] == 0
    assert hood.succeed('workspace', 'cleanup', bad).status == 0
    assert hood.run('echo 1 > a', '--db', ledger, id=bad).status == 0


def test_doctor_says_what_this_host_can_hold(hood):
    result = hood.cli('doctor')
    assert result.status == 0, result
    for word in ['namespace', 'seccomp', 'andlock', 'cgroup']:
        assert word in result.out, word
    missing = hood.cli('doctor', '--json').json['not_held']
    assert result.out.splitlines()[-1] == (f'Analyses run, but not held here is: {", ".join(missing)}.' if missing else 'All of it is held.')


def test_a_ledger_of_a_newer_version_is_refused(hood):
    hood.run('true')
    with sqlite3.connect(hood.home / 'share/fumehood/ledger.db') as ledger:
        ledger.execute('UPDATE fumehood_schema_version SET version = version + 9998')
    result = hood.run('true')
    assert result.status == 125 and 'newer' in result.json['error']['message'], result
    with sqlite3.connect(hood.home / 'share/fumehood/ledger.db') as ledger:
        ledger.execute('UPDATE fumehood_schema_version SET version = version - 9998')
    assert hood.run('true').status == 0


@pytest.mark.parametrize('name', ['postgresql+psycopg2://u:s3cret@h/lab', 'mysql://u:s3cret@h/lab', 'mysql:s3cret', 'u:s3cret@h/lab',
                                  'host=h dbname=lab password=s3cret', 'Server=h;Pwd=s3cret', 'sqlite://u:s3cret@h/lab'])
def test_another_programs_name_of_a_database_becomes_no_file(hood, name):
    here = hood.directory('here')
    config = hood.write('elsewhere/c.yaml', f'ledger: {json.dumps(name)}\n')
    for words, env in [(['--db', name], {}), ([], {'FUMEHOOD_DB': name}), (['--config', config], {'FUMEHOOD_DB': ''})]:
        result = hood.cli('ls', *words, env=env, cwd=here)
        assert result.status == 125 and 'postgresql://USER@HOST:PORT/DATABASE' in result.err, result
        assert len(result.err.splitlines()) == 1 and 's3cret' not in result.err + result.out
        answer = json.loads(hood.cli('run', 'a', *words, '--json', '--', 'true', env=env, cwd=here).out)
        assert answer['verdict'] == 'refused' and 's3cret' not in json.dumps(answer)
    assert not list(here.iterdir())


def test_a_server_may_be_written_postgres(hood):
    result = hood.cli('ls', '--db', 'postgres://nobody:s3cret@localhost:1/lab')
    assert result.status == 125 and 'nobody@localhost:1/lab' in result.err and 's3cret' not in result.err


def files(place):
    return {str(path.relative_to(place)): path.read_text() for path in sorted(place.rglob('*')) if path.is_file()}


MANY = 'mkdir -p d/e .git; echo 1 | tee a.csv d/b.csv d/e/c.txt .git/config .bashrc "odd[1]" >/dev/null'


def test_get_takes_all_outputs_or_what_a_pattern_matches(hood):
    id, here = hood.id(), hood.directory('here')
    hood.run(MANY, id=id)
    result = hood.succeed('get', id, cwd=here)
    assert set(files(here)) == {'a.csv', 'd/b.csv', 'd/e/c.txt', 'odd[1]'}, files(here)
    assert '2 dot-files are not taken' in result.err
    deep = here / 'new/deep'
    assert len(hood.succeed('get', id, '**/*.csv', 'a.csv', 'd', '-o', deep, '--json').json['files']) == 3
    assert set(files(deep)) == {'a.csv', 'd/b.csv', 'd/e/c.txt'}
    hood.succeed('get', id, 'odd[1]', '.git/config', '-o', f'{here}/more/')  # each by its name
    assert set(files(here / 'more')) == {'odd[1]', '.git/config'}
    assert hood.succeed('get', id, 'd/*.csv', '-o', '-').out == '1\n'


def test_get_of_many_writes_none_if_one_is_there(hood):
    id, here = hood.id(), hood.directory('here')
    hood.run(MANY, id=id)
    (here / 'd').mkdir()
    (here / 'd/b.csv').write_text('mine\n')
    hood.who.give(here / 'd')
    result = hood.cli('get', id, cwd=here)
    assert result.status == 125 and "'d/b.csv' exists: --force" in result.err, result
    assert files(here) == {'d/b.csv': 'mine\n'}
    hood.succeed('get', id, '--force', cwd=here)
    assert files(here)['d/b.csv'] == '1\n' and len(files(here)) == 4


def test_get_of_nothing_is_said(hood):
    id, none, here = hood.id(), hood.id(), hood.directory('here')
    hood.run('echo 1 > a.csv', id=id)
    hood.run('true', id=none)
    for word in ['*.txt', 'b.csv', 'a.csv/x', '']:
        result = hood.cli('get', id, word, cwd=here)
        assert result.status == 125 and 'fumehood outputs' in result.err, (word, result)
    result = hood.succeed('get', none, '--json', cwd=here)
    assert result.json['files'] == [] and 'has no outputs' in result.err
    (here / 'file').write_text('mine\n')
    result = hood.cli('get', id, '-o', 'file', cwd=here)
    assert result.status == 125 and 'file' in result.err and files(here) == {'file': 'mine\n'}


def test_run_as_json_has_what_was_written(hood):
    answer = hood.succeed('run', hood.id(), '--json', '--', 'sh', '-c', 'echo one; echo two; echo wrong >&2').json
    assert answer['stdout'] == {'head': 'one\ntwo\n', 'tail': '', 'omitted_bytes': 0}
    assert answer['stderr'] == {'head': 'wrong\n', 'tail': '', 'omitted_bytes': 0}
    answer = hood.succeed('run', hood.id(), '--json', '--', 'sh', '-c', 'seq 100000; printf "\\377" >&2').json
    out, whole = answer['stdout'], ''.join(f'{n}\n' for n in range(1, 100001))
    assert len(out['head']) == len(out['tail']) == 65536 and whole.startswith(out['head']) and whole.endswith(out['tail'])
    assert out['omitted_bytes'] == len(whole) - 2 * 65536
    assert answer['stderr'] == {'head': '\\xff', 'head_b64': '/w==', 'tail': '', 'omitted_bytes': 0}
    for refused in [hood.cli('run', hood.id(), '--json', '--data', hood.home / 'no/such', '--', 'true'), hood.cli('run', '--json')]:
        assert refused.json['verdict'] == 'refused' and refused.json['stdout'] is None and refused.json['stderr'] is None


def test_logs_tail_is_the_last_lines_of_each(hood):
    id = hood.id()
    hood.run('seq 5; printf "a\\nb\\nc" >&2', id=id)
    assert hood.succeed('logs', id, '--tail', '2').out == '4\n5\nb\nc'
    assert hood.succeed('logs', id, '--tail', '9', '--stdout').out == '1\n2\n3\n4\n5\n'
    shown = hood.succeed('logs', id, '--tail', '1', '--json').json
    assert shown['stdout']['head'] + shown['stdout']['tail'] == '5\n' and shown['stderr']['head'] + shown['stderr']['tail'] == 'c'
    for wrong in ['0', '-1', 'x', '']:
        assert hood.cli('logs', id, '--tail', wrong).status == 125
    large = hood.id()
    hood.run('seq 100000', '--log-max', '64K', id=large)
    assert hood.succeed('logs', large, '--tail', '3').out == '99998\n99999\n100000\n'
    assert 'were not kept' in hood.succeed('logs', large, '--tail', '50000').out


def test_logs_tail_of_a_running_one(hood):
    process, id = hood.start('seq 5000; read x; echo last', '-i', stdin=subprocess.PIPE)
    until(lambda: hood.succeed('logs', id, '--tail', '1').out == '5000\n')
    follower = hood.popen('logs', '-f', id, '--tail', '2')
    assert follower.stdout.readline() == '4999\n'
    process.communicate('go\n', timeout=60)
    assert follower.stdout.read() == '5000\nlast\n'  # read to its end
    follower.communicate(timeout=60)


def test_what_is_queued_is_said_to_be_queued(hood):
    id, after = hood.id(), hood.id()
    hood.succeed('submit', id, '--', 'true')
    hood.succeed('submit', after, '--after', id, '--', 'true')
    for command in ['logs', 'outputs', 'get']:
        result = hood.cli(command, id)
        assert result.status == 125 and 'in the queue it is queued' in result.err, result
    assert 'in the queue it is waiting' in hood.cli('logs', after).err
    assert hood.cli('logs', id, '--json').json['error']['code'] == 'not_found'
    hood.succeed('cancel', id)
    assert 'in the queue it is cancelled' in hood.cli('logs', id).err


def ids(hood, *words):
    return [row['id'] for row in json.loads(hood.succeed('ls', '--json', *words).out)]


def test_ls_chooses_by_verdict_time_pattern_and_submitter(hood):
    name = hood.id()
    hood.run('true', id=f'{name}-a1')
    hood.run('exit 3', id=f'{name}-b1')
    hood.run('kill -9 $$', id=f'{name}-b2')
    hood.succeed('submit', f'{name}-q1', '--submitter', 'someone', '--', 'true')
    assert ids(hood, '--verdict', 'failed') == [f'{name}-b2', f'{name}-b1']
    assert ids(hood, '--verdict', 'failed,succeeded', '--limit', '2') == [f'{name}-b2', f'{name}-b1']
    assert ids(hood, '--verdict', 'succeeded', '--state', 'failed') == []
    assert set(ids(hood, '*1')) == {f'{name}-a1', f'{name}-b1', f'{name}-q1'} and ids(hood, f'{name}-[b-c]?') == [f'{name}-b2', f'{name}-b1']
    assert ids(hood, f'{name}-a') == [f'{name}-a1'] and ids(hood, 'nobody*') == []
    assert len(ids(hood, '--since', '1h')) == 4 and ids(hood, '--until', '1h') == [] and ids(hood, '--since', '2200-01-01') == []
    assert len(ids(hood, '--since', '2020-01-01', '--until', '2200-12-31T23:59')) == 4
    assert ids(hood, '--submitter', 'someone') == [f'{name}-q1'] and ids(hood, '--submitter', 'nobody at all') == []
    hood.succeed('worker', '--drain')
    assert ids(hood, '--submitter', 'someone') == [f'{name}-q1'] and ids(hood, '--state', 'queued') == []
    assert len(ids(hood, '--submitter', json.loads(hood.succeed('ls', '--json').out)[0]['owner'])) == 4
    assert ids(hood, '--sort', 'id') == [f'{name}-{x}' for x in ('a1', 'b1', 'b2', 'q1')]
    assert ids(hood, '--sort', 'id', '--limit', '1') == [f'{name}-a1']
    rows = json.loads(hood.succeed('ls', '--json', '--sort', 'wall').out)
    walls = [row['usage']['wall_ms'] for row in rows]
    assert walls == sorted(walls, reverse=True) and len(walls) == 4


def test_ls_tells_command_and_exit_status(hood):
    id, killed = hood.id(), hood.id()
    hood.run('exit 3', id=id)
    hood.run('kill -9 $$', id=killed)
    rows = {row['id']: row for row in json.loads(hood.succeed('ls', '--json').out)}
    assert rows[id]['command'][:2] == ['sh', '-c'] and (rows[id]['exit_code'], rows[id]['signal']) == (3, None)
    assert rows[killed]['signal'] == 9
    header, *lines = hood.succeed('ls').out.splitlines()
    assert header.split() == ['ID', 'ATTEMPT', 'VERDICT', 'EXIT', 'STARTED', 'WALL', 'CPU', 'MEMORY', 'OWNER', 'COMMAND']
    assert any('signal 9' in line and 'sh -c kill -9 $$' in line for line in lines), lines


@pytest.mark.parametrize('words', [['--verdict', 'fine'], ['--verdict', ''], ['--verdict', 'failed,'], ['--since', 'yesterday'],
                                   ['--since', '12'], ['--until', '2026-11-31'], ['--until', ''], ['--sort', 'size'], ['--limit', '0'],
                                   ['x' * 200 + '*'], ['--state', 'odd']])
def test_ls_refuses_nonsense_in_one_sentence(hood, words):
    result = hood.cli('ls', *words)
    assert result.status == 125 and len(result.err.splitlines()) == 1 and result.out == '', result


def test_ls_is_read_by_pages_and_none_is_lost_or_twice(hood):
    hood.run('true', id='first')
    db = sqlite3.connect(hood.home / 'share/fumehood/ledger.db')
    columns = [row[1] for row in db.execute('PRAGMA table_info(fumehood_attempt)')]
    own = {'analysis_id': "printf('a%05d', n)", 'token': 'lower(hex(randomblob(16)))', 'created_at': 'created_at - n / 700'}
    numbers = 'WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2600) '
    with db:  # hundreds of them at the same instant
        db.execute(f"INSERT INTO fumehood_analysis(id, created_at, owner) {numbers} SELECT printf('a%05d', n), 1, 'x' FROM n")
        db.execute(f'INSERT INTO fumehood_attempt {numbers} SELECT {", ".join(own.get(c, c) for c in columns)} FROM n, fumehood_attempt')
    db.close()
    found = ids(hood)
    assert len(found) == len(set(found)) == 2601 and set(found) == {'first'} | {f'a{n:05}' for n in range(1, 2601)}
    assert ids(hood, '*7', '--limit', '200') == [id for id in found if id.endswith('7')][:200]
    assert ids(hood, '--limit', '1234') == found[:1234]


def on_terminal(hood, *words, **env):
    """What a terminal shows of it."""
    main, other = pty.openpty()
    process = hood.popen(*words, stdout=other, stderr=other, env=env)
    os.close(other)
    shown = b''
    try:
        while piece := os.read(main, 65536):
            shown += piece
    except OSError:  # its last user is gone
        pass
    os.close(main)
    assert process.wait(60) == 0, shown
    return shown.decode()


def test_ls_on_a_terminal_goes_through_the_pager(hood):
    id = hood.id()
    hood.run('true', id=id)
    shown = on_terminal(hood, 'ls', PAGER='sed s/^/paged:/')
    assert f'paged:{id}' in shown and 'paged:ID' in shown
    assert 'paged' not in on_terminal(hood, 'ls', '--no-pager', PAGER='sed s/^/paged:/')
    assert id in on_terminal(hood, 'ls', PAGER='') and id in on_terminal(hood, 'ls', PAGER='cat')
    assert 'ID' in on_terminal(hood, 'ls', PAGER='head -c 2')  # who has seen enough
    assert 'paged' not in hood.succeed('ls', env={'PAGER': 'sed s/^/paged:/'}).out
