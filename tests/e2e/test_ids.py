"""An id becomes part of a path, so it is refused before anything is touched, and so is a path that is not ours."""
import json
import os
import stat

import pytest

pytestmark = pytest.mark.asan

HOSTILE = ['', '.', '..', '../x', 'a/b', '/etc', '/', '-x', '.hidden', 'a b', 'a\tb', 'a\nb', 'a\x1b[31m', 'café', 'a\x7f',
           'a;b', '$(id)', '`id`', 'a*', 'a?', 'a\\b', "a'b", 'a"b', 'a%n', 'a:b', 'a@b', 'a,b', 'x' * 129, 'x' * 5000,
           '\udcff\udcfe', 'a/../../etc/passwd', '~root', 'a=b', '{}', 'a&b', 'a|b', '\u2024\u2024', 'a\r']
COMMANDS = [['run', '--json', 'ID', '--', 'true'], ['workspace', 'create', 'ID'], ['workspace', 'cleanup', 'ID'],
            ['commit', 'ID'], ['show', 'ID'], ['logs', 'ID'], ['outputs', 'ID'], ['get', 'ID', 'x']]


def listing():
    return {name for name in os.listdir('/tmp') if 'scidex-analysis-' in name}


@pytest.mark.parametrize('command', COMMANDS, ids=lambda c: '-'.join(w for w in c[:2] if w != 'ID'))
def test_every_hostile_id_is_refused_and_nothing_is_touched(hood, command):
    for id in HOSTILE:
        result = hood.cli(*[id if word == 'ID' else word for word in command])
        assert result.status == 125, (id, result)
        said = json.loads(result.out)['error']['message'] if '--json' in command else result.err
        assert '\x1b' not in said and '\x7f' not in said and '\r' not in said, repr(said)
        assert len(said.strip().splitlines()) == 1, (id, said)
    assert not [name for name in listing() if hood.tag in name or name == 'scidex-analysis-']
    assert not list((hood.home / 'state').rglob('record.json'))
    assert hood.nothing_was_recorded()


@pytest.mark.parametrize('id', ['x', '0', 'A.b_c-d', 'x' * 128 + '', 'a..b', 'a-'])
def test_every_decent_id_is_taken(hood, id):
    name = (hood.tag + id)[:128]
    assert hood.run('true', id=name).status == 0


def put_directory(path, elsewhere):
    path.mkdir(mode=0o700)
    (path / 'mine').write_text('mine')


def put_empty_directory(path, elsewhere):
    path.mkdir(mode=0o700)


def put_file(path, elsewhere):
    path.write_text('mine')


def put_link(path, elsewhere):
    path.symlink_to(elsewhere)


def put_dangling_link(path, elsewhere):
    path.symlink_to('/no/such/place')


def put_fifo(path, elsewhere):
    os.mkfifo(path)


def state_of(path):
    s = path.lstat()
    below = sorted(os.listdir(path)) if stat.S_ISDIR(s.st_mode) else None
    return s.st_ino, s.st_mode, s.st_uid, s.st_ctime_ns, below


@pytest.mark.parametrize('command', [['run', 'ID', '--', 'true'], ['workspace', 'create', 'ID'], ['workspace', 'cleanup', 'ID']],
                         ids=lambda c: ' '.join(c[:2]))
@pytest.mark.parametrize('owner', ['the caller', 'another'])
@pytest.mark.parametrize('put', [put_directory, put_empty_directory, put_file, put_link, put_dangling_link, put_fifo],
                         ids=lambda put: put.__name__[4:])
def test_a_path_that_is_not_ours_is_refused_whatever_it_is(hood, put, owner, command):
    id = hood.id()
    path, elsewhere = hood.workspace(id), hood.directory('elsewhere')
    put(path, elsewhere)
    if owner == 'the caller':
        hood.who.give(path)
    elif os.geteuid() == 0:
        os.lchown(path, 12345, 12345)
    before = state_of(path), state_of(elsewhere)
    try:
        result = hood.cli(*[id if word == 'ID' else word for word in command])
        assert (state_of(path), state_of(elsewhere)) == before
    finally:
        if not path.is_symlink() and path.is_dir():
            for name in os.listdir(path):
                (path / name).unlink()
            path.rmdir()
        else:
            path.unlink()
    if command[1] != 'cleanup':
        assert result.status == 125 and str(path) in result.err, result
    assert hood.nothing_was_recorded()
