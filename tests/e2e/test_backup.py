"""db backup and db restore, on both ledgers: all of it comes back, what is not whole is refused, and who is killed tears nothing."""
import json
import time

import pytest

from test_queue import submit
from test_rm import names, rows, whole


def furnish(hood):
    a, b, c = names(hood, 'abc')
    hood.succeed('run', a, '--quiet', '--', 'sh', '-c', 'echo small > small; head -c 300000 /dev/urandom > large; echo said')
    hood.cli('run', b, '--quiet', '--', 'sh', '-c', 'exit 3')
    hood.succeed('run', b, '--quiet', '--', 'true')
    submit(hood, 'true', id=c)
    return a, b, c


@pytest.fixture
def other(hood, ledger):
    """Another ledger of the same kind, still to be made: what names it."""
    if ledger.name == 'sqlite':
        yield f'sqlite:{hood.home}/other.db'
        return
    database = ledger.database + 'x'
    ledger.psql(ledger.server.url, f'CREATE DATABASE {database}')
    yield ledger.plain.replace(ledger.database, database) + f'?objects={hood.home}/other'
    ledger.psql(ledger.server.url, f'DROP DATABASE {database} WITH (FORCE)')


def test_what_is_restored_is_what_was_backed_up(hood, ledger, other):
    a, b, c = furnish(hood)
    told = hood.succeed('db', 'backup', hood.dir / 'copy', '--json').json
    assert (told['analyses'], told['attempts'], told['objects']) == (2, 3, 1)
    env = {'FUMEHOOD_DB': other}
    assert hood.cli('db', 'restore', hood.dir / 'copy', '--json', env=env).json['attempts'] == 3
    for command in [['show', a], ['show', b], ['outputs', a], ['logs', a], ['ls']]:
        here, there = (json.loads(hood.succeed(*command, '--json', env=e).out) for e in ({}, env))
        if command == ['ls']:
            here = [{**row, 'state': 'restored'} if row['state'] == 'queued' else row for row in here]
        assert here == there, command
    hood.succeed('get', a, 'large', '-o', hood.dir / 'one')
    hood.succeed('get', a, 'large', '-o', hood.dir / 'two', env=env)
    assert (hood.dir / 'one').read_bytes() == (hood.dir / 'two').read_bytes()
    # It is a ledger of its own, with a store of its own, and goes on.
    here, there = (hood.succeed('db', 'status', '--json', env=e).json['store'] for e in ({}, env))
    assert here['state'] == there['state'] == 'ready' and here['id'] != there['id'] and here['ledger_id'] != there['ledger_id']
    hood.succeed('retry', '--restored', env=env)
    hood.succeed('worker', '--drain', '--jobs', '1', env=env)
    assert hood.succeed('show', c, '--json', env=env).json['verdict'] == 'succeeded'
    assert hood.succeed('run', b, '--again', '--json', '--', 'true', env=env).json['attempt'] == 3
    assert hood.succeed('db', 'check', '--json', env=env).json['problems'] == []


def test_nothing_is_restored_over_what_is_there(hood, ledger):
    a, b, c = furnish(hood)
    copy = hood.dir / 'copy'
    hood.succeed('db', 'backup', copy)
    refused = hood.cli('db', 'restore', copy)
    assert refused.status == 125 and 'is not empty' in refused.err and '--force' in refused.err
    hood.succeed('rm', a)
    assert hood.cli('db', 'restore', copy).status == 125
    hood.succeed('db', 'restore', copy, '--force')
    hood.succeed('get', a, 'large', '-o', hood.dir / 'large')
    whole(hood)
    assert rows(ledger, 'tombstone') == 0


def test_what_is_no_whole_backup_is_refused(hood, ledger, other):
    furnish(hood)
    copy, env = hood.dir / 'copy', {'FUMEHOOD_DB': other}
    hood.succeed('db', 'init', env=env)
    hood.succeed('db', 'backup', copy)
    again = hood.cli('db', 'backup', copy)
    assert again.status == 125 and 'complete' in again.err
    hood.write(hood.dir / 'full/mine.txt', 'mine')
    assert 'not empty' in hood.cli('db', 'backup', hood.dir / 'full').err and (hood.dir / 'full/mine.txt').exists()
    manifest = (copy / 'manifest.json').read_text()

    def refused(what, reason):
        result = hood.cli('db', 'restore', what, env=env)
        assert result.status == 125 and reason in result.err and result.err.count('\n') == 1, result
        assert hood.succeed('ls', '--json', env=env).json == []

    refused(hood.dir / 'nowhere', 'nowhere')
    refused(hood.dir / 'full', 'no manifest.json')
    for text, reason in (manifest.replace('fumehood backup 1', 'another'), 'none that this fumehood knows'), ('{', 'none that'), (
            manifest.replace('"schema": ', '"schema": 9'), 'schema'), (
            manifest.replace('"sha256": "', '"sha256": "../', 1), 'makes no sense'), (
            manifest.replace(f'"kind": "{json.loads(manifest)["kind"]}"', '"kind": "another"'), 'name one with --db'):
        hood.write(copy / 'manifest.json', text)
        refused(copy, reason)
    hood.write(copy / 'manifest.json', manifest)
    name = copy / json.loads(manifest)['files'][0]['name']
    content = name.read_bytes()
    name.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(copy, 'not what it was')
    name.write_bytes(content)
    [large] = [path for path in (copy / 'objects').rglob('*') if len(path.name) == 64]
    content = large.read_bytes()
    large.write_bytes(content[::-1])
    refused(copy, 'not what its name says')
    large.unlink()
    refused(copy, 'missing')
    large.write_bytes(content)
    hood.succeed('db', 'restore', copy, env=env)
    for words in ['backup'], ['restore'], ['backup', 'a', 'b'], ['backup', 'x', '--force'], ['status', 'x']:
        assert hood.cli('db', *words).status == 125


def test_a_backup_that_was_killed_is_begun_anew(hood, ledger, other):
    furnish(hood)
    copy = hood.dir / 'copy'
    for wait in 0, .01, .03, .06, .1, .2:
        process = hood.popen('db', 'backup', copy)
        time.sleep(wait)
        process.kill()
        process.wait(60)
        if (copy / 'manifest.json').exists():
            break
        if copy.exists():
            assert hood.cli('db', 'restore', copy, env={'FUMEHOOD_DB': other}).status == 125
    if not (copy / 'manifest.json').exists():
        hood.succeed('db', 'backup', copy)
    for wait in 0, .02, .05, .1:
        process = hood.popen('db', 'restore', copy, '--force', env={'FUMEHOOD_DB': other})
        time.sleep(wait)
        process.kill()
        process.wait(60)
    hood.succeed('db', 'restore', copy, '--force', env={'FUMEHOOD_DB': other})
    assert hood.succeed('db', 'check', '--json', env={'FUMEHOOD_DB': other}).json['problems'] == []
    whole(hood)


def test_a_backup_is_one_moment_while_others_write(hood, ledger, other):
    for n in range(30):
        submit(hood, f'echo {n} > out; head -c 100000 /dev/urandom > large', id=f'{hood.tag}-{n}')
    worker = hood.popen('worker', '--drain', '--jobs', '2')
    hood.succeed('db', 'backup', hood.dir / 'copy')
    worker.communicate(timeout=120)
    env = {'FUMEHOOD_DB': other}
    hood.succeed('db', 'restore', hood.dir / 'copy', env=env)
    assert hood.succeed('db', 'check', '--json', env=env).json['problems'] == []
    listed = hood.succeed('ls', '--json', env=env).json
    assert len(listed) == 30 and {row['state'] for row in listed} <= {'finished', 'restored'}
    whole(hood)
