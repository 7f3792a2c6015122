"""The object store is the ledger's, or it is refused: an id lies in both."""
import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from until import until

LARGE = 'head -c 200000 /dev/zero >large.bin'


def at(ledger, directory, more=''):
    """The URL of this ledger with another directory for its objects."""
    return f'{ledger.url.partition("?")[0]}?objects={directory}{more}'


def known(ledger):
    """What the row says: the ledger's id, the store's or ''."""
    rows = ledger.sql(f'SELECT ledger_id, store_id FROM {ledger.table("store")}')
    assert len(rows) == 1
    return rows[0].split('|')


def store_of(hood, ledger):
    return hood.home / 'objects' if ledger.name == 'postgres' else hood.home / 'share/fumehood/ledger.db.objects'


def names(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob('*')) if directory.exists() else None


@pytest.fixture
def used(hood, ledger):
    """A ledger with one large content in its store."""
    hood.succeed('run', f'{hood.tag}-used', '--', 'sh', '-c', LARGE)
    return store_of(hood, ledger)


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_worker_that_was_told_of_no_store_hands_back_what_needs_it(hood, ledger, used):
    """That an input is not to be found on one host is not the end of an analysis."""
    id = hood.id()
    hood.succeed('submit', id, '--input', hood.write('large.csv', b'\1' * 200000), '--', 'cp', 'large.csv', 'copy.csv')
    untold = {'FUMEHOOD_DB': ledger.plain}
    for command in (['worker', '--drain'], ['run', hood.id(), '--', 'true']):
        result = hood.cli(*command, env=untold)
        assert result.status == 125 and f"(at first '{used}' on " in result.err and 'objects=postgresql' in result.err, result
    assert f"(at first '{used}' on " in hood.succeed('db', 'status', '--json', env=untold).json['store']['problem']
    untold['FUMEHOOD_DB'] += '?objects=postgresql'
    w = hood.popen('worker', env=untold)
    assert until(lambda: hood.succeed('show', id, '--json').json['queue']['reason'])
    w.terminate()
    assert w.wait(30) == 0
    found = hood.succeed('show', id, '--json').json
    assert found['attempts'] == [] and found['queue']['tries'] == 0, found
    assert f"(at first '{used}' on " in found['queue']['reason'] and 'objects=DIR' in found['queue']['reason'], found
    assert "(at first '" in hood.cli('get', f'{hood.tag}-used', 'large.bin', '-o', '-', env=untold).err
    hood.succeed('worker', '--drain')
    assert hood.verdict(id) == 'succeeded'


@pytest.mark.asan
def test_a_ledger_and_its_store_have_the_same_id(hood, ledger, used):
    id = (used / 'id').read_text()
    assert re.fullmatch('[0-9a-f]{32} [0-9a-f]{32}\n', id) and id.split() == known(ledger)
    assert (used / 'id').stat().st_mode & 0o777 == 0o600
    store = hood.succeed('db', 'status', '--json').json['store']
    assert store == {'state': 'ready', 'id': known(ledger)[1], 'ledger_id': known(ledger)[0], 'problem': None}
    hood.succeed('run', hood.id(), '--', 'sh', '-c', LARGE)
    hood.succeed('gc')
    assert (used / 'id').read_text() == id
    [item] = [item for item in hood.cli('doctor', '--json').json['items'] if item['name'] == 'object store']
    assert item['ok'] and known(ledger)[1] in item['detail'], item


def others(hood, ledger):
    """Directories that are not the ledger's, each with what is to be said of it."""
    empty = hood.directory('empty', 0o700)
    foreign = hood.directory('foreign', 0o700)
    hood.write(foreign / 'id', f'{known(ledger)[0]} {"0" * 32}\n', 0o600)
    hood.write(foreign / 'ab' / ('ab' * 32), b'another ledger has this')
    damaged = hood.directory('damaged', 0o700)
    hood.write(damaged / 'id', 'what is this\n', 0o600)
    return [(empty, 'has no id'), (hood.base / 'nowhere', 'is not there'), (foreign, 'has the id 000'), (damaged, 'is damaged')]


def test_a_store_that_is_not_the_ledgers_is_refused(hood, ledger, used):
    """By whatever would write there, remove there, or miss something there; in one sentence, and nothing is touched."""
    first, large = f'{hood.tag}-used', hood.write('large.csv', b'\1' * 200000)
    held = hood.id()
    hood.succeed('workspace', 'create', held, '--for', '1h')
    refused = [['run', hood.id(), '--', 'true'], ['worker', '--drain'], ['submit', hood.id(), '--input', large, '--', 'true'],
               ['get', first, 'large.bin', '-o', '-'], ['commit', held], ['gc'],
               ['run', hood.id(), '--json', '--', 'true']]
    for directory, what in others(hood, ledger):
        env, before = {'FUMEHOOD_DB': at(ledger, directory)}, names(directory)
        for command in refused:
            result = hood.cli(*command, env=env)
            text = result.json['error']['message'] if '--json' in command else result.err
            assert result.status not in (0, None) and what in text and str(directory) in text, (command, result)
            assert what == 'is damaged' or (known(ledger)[1] in text and 'objects=DIR' in text), (command, result)
            assert len(text.splitlines()) == 1, (command, result)
        found = hood.cli('doctor', '--json', env=env)
        [item] = [item for item in found.json['items'] if item['name'] == 'object store']
        assert found.status == 1 and not item['ok'] and what in item['remedy'], item
        check = hood.cli('db', 'check', '--json', env=env)
        problems = check.json['problems']
        assert check.status == 1 and problems[0]['kind'] == 'store' and what in problems[0]['message'], check
        assert {problem['kind'] for problem in problems} == {'store'}
        assert hood.succeed('db', 'status', '--json', env=env).json['store']['state'] == 'wrong'
        assert names(directory) == before
    hood.succeed('workspace', 'cleanup', held)
    assert hood.succeed('get', first, 'large.bin', '-o', '-').out == '\0' * 200000
    states = {row['id'] for row in hood.succeed('ls', '--json').json}
    assert states == {first}, 'what was refused has left nothing'


def test_a_post_process_of_contents_that_are_elsewhere_is_refused(hood, ledger, used):
    hood.write('post.py', 'import json\n')
    config = hood.home / 'config/fumehood/config.yaml'
    hood.write(config, (config.read_text() if config.exists() else '') + 'post_process: {tables: {scores: [gene]}}\n')
    result = hood.cli('post-process', f'{hood.tag}-used', '--post-process', 'python3 post.py',
                      env={'FUMEHOOD_DB': at(ledger, hood.base / 'nowhere')})
    assert result.status == 125 and 'is not there' in result.err and known(ledger)[1] in result.err, result


def test_who_has_no_store_reads_and_submits_what_is_small(hood, ledger, used):
    env = {'FUMEHOOD_DB': at(ledger, hood.base / 'nowhere')}
    small, queued = hood.id(), hood.id()
    hood.succeed('run', small, '--', 'sh', '-c', 'echo small >small.txt')
    assert hood.succeed('get', small, 'small.txt', '-o', '-', env=env).out == 'small\n'
    hood.succeed('show', small, env=env)
    hood.succeed('submit', queued, '--input', hood.write('small.csv', 'x\n'), '--', 'true', env=env)
    assert not (hood.base / 'nowhere').exists()
    hood.succeed('worker', '--drain')
    assert hood.verdict(queued) == 'succeeded'


def test_a_store_that_can_only_be_read_is_enough_for_reading(hood, ledger, used):
    for path in [used, *used.rglob('*')]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    (used / 'lock').unlink() if hood.who.is_root else None
    assert hood.succeed('get', f'{hood.tag}-used', 'large.bin', '-o', '-').out == '\0' * 200000
    assert not (used / 'lock').exists() or not hood.who.is_root
    for path in [used, *used.rglob('*')]:
        path.chmod(0o700 if path.is_dir() else 0o600)


def test_two_ledgers_do_not_share_a_store(hood, ledger, used):
    """What the second does not know would be garbage to its gc."""
    if ledger.name == 'postgres':
        ledger.psql(ledger.server.url, f'CREATE DATABASE {ledger.database}x')
        plain = ledger.plain + 'x'
    else:
        plain = f'sqlite:{hood.home}/second.db'
    try:
        before = names(used)
        env = {'FUMEHOOD_DB': f'{plain}?objects={used}'}
        assert hood.succeed('db', 'init', '--json', env=env).json['store']['state'] == 'wrong'
        for command in (['run', hood.id(), '--', 'sh', '-c', LARGE], ['worker', '--drain'], ['gc']):
            result = hood.cli(*command, env=env)
            assert result.status != 0 and 'is that of another ledger' in result.err and "remove the file 'id'" in result.err and str(used) in result.err, result
        assert names(used) == before
        env = {'FUMEHOOD_DB': f'{plain}?objects={hood.home}/its-own'}
        hood.succeed('run', hood.id(), '--', 'sh', '-c', LARGE, env=env)
        hood.succeed('gc', env=env)
    finally:
        if ledger.name == 'postgres':
            ledger.psql(ledger.server.url, f'DROP DATABASE {ledger.database}x WITH (FORCE)')
    hood.succeed('get', f'{hood.tag}-used', 'large.bin', '-o', '-')


def test_a_result_that_waits_is_committed_to_a_store_that_was_moved(hood):
    """The record of the run has the URL of that day."""
    first, second = hood.directory('first', 0o700), hood.base / 'second'
    url = f'sqlite:{hood.home}/ledger.db?busy=200ms&objects='
    hood.succeed('run', hood.id(), '--', 'sh', '-c', LARGE, env={'FUMEHOOD_DB': f'{url}{first}'})
    id = hood.id()
    process = hood.popen('run', id, '-i', '--', 'sh', '-c', f'echo ready; read x; {LARGE}; echo {id} >>large.bin',
                         env={'FUMEHOOD_DB': f'{url}{first}'}, stdin=subprocess.PIPE)
    assert process.stdout.readline() == 'ready\n'
    other = sqlite3.connect(hood.home / 'ledger.db', isolation_level=None)
    other.execute('BEGIN EXCLUSIVE')
    err = process.communicate('go\n', timeout=300)[1]
    assert process.returncode == 125, err
    other.execute('ROLLBACK')
    other.close()
    first.rename(second)
    env = {'FUMEHOOD_DB': f'{url}{second}'}
    hood.succeed('gc', env=env)
    assert hood.succeed('get', id, 'large.bin', '-o', '-', env=env).out.endswith(f'{id}\n')
    assert not first.exists()


def forget(hood, ledger):
    """As before the first use, with the directory gone."""
    ledger.sql(f'UPDATE {ledger.table("store")} SET store_id = NULL')
    shutil.rmtree(store_of(hood, ledger), ignore_errors=True)


def test_of_many_that_begin_at_once_one_store_is_left(hood, ledger):
    """Half of them have one directory, half another: one of the two is the ledger's, and nobody has put anything in the other."""
    forget(hood, ledger)
    places = [hood.directory('one', 0o700), hood.directory('two', 0o700)]
    runs = [(places[i % 2], hood.popen('run', hood.id(), '--', 'sh', '-c', f'{LARGE}; echo {i} >>large.bin',
                                       env={'FUMEHOOD_DB': at(ledger, places[i % 2])})) for i in range(8)]
    ended = [(place, process.communicate(timeout=300)[1], process.returncode) for place, process in runs]
    ids = {place: (place / 'id').read_text().split() if (place / 'id').exists() else None for place in places}
    [right] = [place for place in places if ids[place] == known(ledger)]
    [wrong] = [place for place in places if place != right]
    for place, err, status in ended:
        assert (status == 0) == (place == right), (place, right, err)
        assert place == right or ('has one with the id ' + known(ledger)[1]) in err, err
    assert [name for name in names(wrong) if '/' in name] == []


def test_a_first_use_that_is_killed_is_taken_up_by_the_next(hood, ledger):
    """SIGKILL at the first, second, third … call that could matter, until one completes; each time the next one joins the same directory."""
    forget(hood, ledger)
    calls = 'mkdir,mkdirat,openat,rename,renameat2,linkat,fsync,fchmod,' + ('pwrite64,fdatasync' if ledger.name == 'sqlite' else 'sendto')
    large, directory = hood.write('large.csv', b'\1' * 200000), hood.directory('place', 0o700) / 'objects'
    env = {'FUMEHOOD_DB': at(ledger, directory)}
    killed, step = 0, 1
    while True:
        id = hood.id()
        done = subprocess.run(['strace', '-f', '-qq', '-o', '/dev/null', '-P', str(directory), '-e', f'trace={calls}', '-e',
                               f'inject={calls}:signal=KILL:when={step}', hood.binary, 'submit', id, '--input', str(large), '--', 'true'],
                              env={**hood.env, **env}, cwd=hood.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              **hood.who.popen_arguments())
        row, file = known(ledger), (directory / 'id').read_text().split() if (directory / 'id').exists() else None
        assert row[1] == '' or row == file, (step, row, file)
        assert file is None or file[0] == row[0], (step, row, file)
        hood.succeed('submit', hood.id(), '--input', large, '--', 'true', env=env)
        assert known(ledger) == (directory / 'id').read_text().split()
        hood.succeed('gc', env=env)
        assert names(directory / 'tmp') == []
        if done.returncode >= 0:
            break
        killed, step = killed + 1, step + 1
        ledger.sql(f'UPDATE {ledger.table("store")} SET store_id = NULL; DELETE FROM {ledger.table("blob")} WHERE content IS NULL')
        shutil.rmtree(directory)
    assert killed > 3
    for row in hood.succeed('ls', '--json').json:
        hood.succeed('cancel', row['id'])


def test_what_a_killed_first_use_left_is_adopted_by_its_own_ledger_only(hood, ledger):
    forget(hood, ledger)
    mine = hood.directory('mine', 0o700)
    hood.write(mine / 'id', f'{known(ledger)[0]} {"5" * 32}\n', 0o600)
    hood.succeed('run', hood.id(), '--', 'sh', '-c', LARGE, env={'FUMEHOOD_DB': at(ledger, mine)})
    assert known(ledger)[1] == '5' * 32


def test_a_file_that_is_moved_or_copied_with_its_objects_is_the_same_ledger(hood):
    place = hood.directory('lab', 0o700)
    first = hood.id()
    hood.succeed('run', first, '--', 'sh', '-c', LARGE, env={'FUMEHOOD_DB': f'sqlite:{place}/ledger.db'})
    subprocess.run(['cp', '-a', place, hood.base / 'copy'], check=True)
    os.rename(place, hood.base / 'moved')
    for name in ('copy', 'moved'):
        env = {'FUMEHOOD_DB': f'sqlite:{hood.base}/{name}/ledger.db'}
        hood.succeed('run', hood.id(), '--', 'sh', '-c', f'{LARGE}; echo {name} >>large.bin', env=env)
        hood.succeed('gc', env=env)
        assert hood.succeed('get', first, 'large.bin', '-o', '-', env=env).out == '\0' * 200000
        assert json.loads(hood.succeed('db', 'check', '--json', env=env).out)['problems'] == []
