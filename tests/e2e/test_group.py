"""group=NAME: several users of one host, one ledger and one object store; whoever is not in the group stays out."""
import os
import stat
import subprocess

import pytest

import ledgers
from hood import Result

ADA, BOB, EVE, GROUP = 61901, 61902, 61903, 61950

pytestmark = pytest.mark.only('root')


class User:
    """An ordinary user with a home and a umask of his own."""

    def __init__(self, hood, uid, groups, umask):
        self.hood, self.uid, self.groups, self.umask = hood, uid, groups, umask
        self.home = hood.base / f'home-{uid}'
        self.home.mkdir()
        self.home.chmod(0o700)
        os.chown(self.home, uid, uid)

    def cli(self, *words, url):
        env = {**self.hood.env, 'HOME': str(self.home), 'FUMEHOOD_DB': url, 'XDG_DATA_HOME': str(self.home / 'share'),
               'XDG_STATE_HOME': str(self.home / 'state'), 'XDG_CONFIG_HOME': str(self.home / 'config')}
        done = subprocess.run([str(self.hood.binary), *map(str, words)], env=env, cwd=self.home, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=self.uid, group=self.uid,
                              extra_groups=self.groups, umask=self.umask, timeout=300)
        return Result(done.returncode, done.stdout, done.stderr)

    def succeed(self, *words, url):
        result = self.cli(*words, url=url)
        assert result.status == 0, result
        return result


@pytest.fixture
def users(hood):
    return [User(hood, ADA, [GROUP], 0o077), User(hood, BOB, [GROUP], 0o022), User(hood, EVE, [], 0)]


@pytest.fixture
def lab(hood, server):
    """An empty database, and a directory that the group may make its store in."""
    ledger = ledgers.Postgres(hood, server)
    ledger.sql('DROP SCHEMA fumehood CASCADE')
    place = hood.base / 'lab'
    place.mkdir()
    os.chown(place, 0, GROUP)
    place.chmod(0o2770)
    ledger.store = place / 'objects'
    ledger.group_url = f'{ledger.plain}?objects={ledger.store}&group={GROUP}'
    yield ledger
    ledger.close()


def make(word):
    return ['--', 'sh', '-c', f'head -c 200000 /dev/zero >large.bin; echo {word} >>large.bin']


def modes(store):
    """What each kind of thing in it has: mode and group."""
    return {('directory' if path.is_dir() else path.name if path.name in ('lock', 'id') else 'file'):
            (oct(stat.S_IMODE(path.stat().st_mode)), path.stat().st_gid) for path in [store, *store.rglob('*')]}


def test_two_of_a_group_share_a_store_and_a_third_does_not(hood, lab, users):
    ada, bob, eve = users
    url, ids = lab.group_url, [hood.id() for _ in range(3)]
    ada.succeed('run', ids[0], *make('ada'), url=url)
    bob.succeed('run', ids[1], *make('bob'), url=url)
    assert ada.succeed('get', ids[1], 'large.bin', '-o', '-', url=url).out.endswith('bob\n')
    assert bob.succeed('get', ids[0], 'large.bin', '-o', '-', url=url).out.endswith('ada\n')
    assert modes(lab.store) == {'directory': ('0o2770', GROUP), 'file': ('0o640', GROUP), 'id': ('0o640', GROUP),
                                'lock': ('0o660', GROUP)}
    owners = {path.stat().st_uid for path in lab.store.rglob('*') if path.is_file()}
    assert owners == {ADA, BOB}
    result = eve.cli('run', ids[2], *make('eve'), url=url)
    assert result.status == 125 and f"belongs to the group '{GROUP}'" in result.err and f'uid {EVE}' in result.err, result
    assert len(result.err.splitlines()) == 1
    # Without the word the directory itself keeps him out.
    for command in (['run', ids[2], *make('eve')], ['get', ids[0], 'large.bin', '-o', '-'], ['gc'], ['worker', '--drain']):
        result = eve.cli(*command, url=url.partition('&group')[0])
        assert result.status == 125 and str(lab.store) in result.err and 'Permission denied' in result.err, result
    assert bob.succeed('db', 'check', '--json', url=url).json['problems'] == []


def test_one_of_a_group_removes_what_another_has_left(hood, lab, users):
    """Contents that nobody refers to any more, temporary files, pins."""
    ada, bob, _ = users
    id = hood.id()
    ada.succeed('run', id, *make('ada'), url=lab.group_url)
    lab.sql('DELETE FROM fumehood.output; DELETE FROM fumehood.blob WHERE content IS NULL')
    for name in ('tmp/left', 'pins/' + '0' * 32):
        (lab.store / name).write_text('')
        os.chown(lab.store / name, ADA, GROUP)
        (lab.store / name).chmod(0o640)
    lab.sql(f"UPDATE fumehood.attempt SET token = '{'0' * 32}'")
    bob.succeed('gc', url=lab.group_url)
    files = sorted(str(path.relative_to(lab.store)) for path in lab.store.rglob('*') if path.is_file())
    assert files == ['id', 'lock']


def test_many_of_a_group_begin_at_once(hood, lab, users):
    """Whoever makes it, with whatever umask, nobody comes upon a half-made store."""
    ada, bob, _ = users
    running = []
    for i in range(6):
        user = users[i % 2]
        env = {**hood.env, 'HOME': str(user.home), 'FUMEHOOD_DB': lab.group_url, 'XDG_DATA_HOME': str(user.home / 'share'),
               'XDG_STATE_HOME': str(user.home / 'state'), 'XDG_CONFIG_HOME': str(user.home / 'config')}
        running.append(subprocess.Popen([str(hood.binary), 'run', hood.id(), *make(i)], env=env, cwd=user.home, text=True,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, user=user.uid, group=user.uid,
                                        extra_groups=[GROUP], umask=user.umask))
    for process in running:
        err = process.communicate(timeout=300)[1]
        assert process.returncode == 0, err
    assert set(modes(lab.store).values()) == {('0o2770', GROUP), ('0o640', GROUP), ('0o660', GROUP)}
    assert bob.succeed('db', 'check', '--json', url=lab.group_url).json['problems'] == []


def test_a_directory_that_is_not_the_groups_is_refused_with_what_gives_it(hood, lab, users):
    ada, bob, _ = users
    lab.store.mkdir()
    os.chown(lab.store, BOB, BOB)
    lab.store.chmod(0o777)
    result = ada.cli('run', hood.id(), *make('ada'), url=lab.group_url)
    assert result.status == 125 and 'does not belong to its group' in result.err and f'chgrp -R {GROUP}' in result.err, result
    assert list(lab.store.iterdir()) == []


def test_bad_words_for_a_group(hood, lab, users):
    ada = users[0]
    plain = lab.group_url.partition('&group')[0]
    for word, text in (('', "after 'group=' must be the name of a group"), ('no-such-group', "there is no group 'no-such-group'"),
                       ('-1', "there is no group '-1'"), ('4294967295', "there is no group"), ('99999999999', 'there is no group'),
                       ('0', "belongs to the group '0'"), ('root', "belongs to the group 'root'"), ('%0a', "there is no group '\\x0a'"),
                       ('a%00b', "after 'group=' must be")):
        result = ada.cli('run', hood.id(), '--', 'true', url=f'{plain}&group={word}')
        assert result.status == 125 and text in result.err and len(result.err.splitlines()) == 1, (word, result)
    assert not lab.store.exists()


def test_an_sqlite_ledger_has_no_group(hood):
    result = hood.cli('run', hood.id(), '--', 'true', env={'FUMEHOOD_DB': f'sqlite:{hood.home}/l.db?group=root'})
    assert result.status == 125 and 'an SQLite ledger has no group' in result.err, result
    assert not (hood.home / 'l.db').exists()
