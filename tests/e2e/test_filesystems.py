"""An SQLite ledger on file systems that are programs, mounted for the test: what may be anything is refused, unless somebody insists."""
import os
import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.only('root'), pytest.mark.skipif(not os.path.exists('/dev/fuse'), reason='no FUSE here')]


@pytest.fixture
def mounted(hood):
    """mounted(program) → a directory that this program serves."""
    points = []

    def mount(program):
        at, below = hood.directory(f'{program}-at'), hood.base / f'{program}-below'
        if not below.exists():
            hood.directory(f'{program}-below')
        if program == 'bindfs':
            command = ['bindfs', below, at]
        else:
            work = hood.directory(f'{program}-work')
            command = ['fuse-overlayfs', '-o', f'lowerdir={hood.directory("lower")},upperdir={below},workdir={work}', at]
        assert shutil.which(program), 'it is in scripts/deps'
        subprocess.run(command, check=True, timeout=60)
        points.append(at)
        return at

    yield mount
    for at in points:
        subprocess.run(['umount', at], check=True)


def mount_type(at):
    with open('/proc/self/mountinfo') as table:
        return [line.split(' - ')[1].split()[0] for line in table if line.split()[4] == str(at)][-1]


def test_a_program_that_may_be_anything_is_refused_and_nothing_is_made(hood, mounted):
    at = mounted('bindfs')
    hood.env['FUMEHOOD_DB'] = f'sqlite:{at}/ledger.db'
    for command in (['db', 'init'], ['run', hood.id(), '--', 'true'], ['submit', hood.id(), '--', 'true']):
        said = hood.cli(*command)
        assert said.status == 125 and f'a file system that is a program ({mount_type(at)})' in said.err, said
        assert 'filesystem=any' in said.err and len(said.err.splitlines()) == 1
    assert os.listdir(at) == []


def test_one_that_is_there_is_refused_too(hood, mounted):
    below = hood.directory('bindfs-below')
    hood.succeed('db', 'init', env={'FUMEHOOD_DB': f'sqlite:{below}/ledger.db'})
    at = mounted('bindfs')
    said = hood.cli('ls', env={'FUMEHOOD_DB': f'{at}/ledger.db'})
    assert said.status == 125 and 'is a program' in said.err, said


def test_who_insists_has_it(hood, mounted):
    at = mounted('bindfs')
    hood.env['FUMEHOOD_DB'] = f'sqlite:{at}/ledger.db?filesystem=any'
    assert hood.run('echo yes >out').status == 0
    assert len(hood.succeed('ls', '--json').json) == 1
    assert hood.cli('ls', env={'FUMEHOOD_DB': f'sqlite:{at}/ledger.db?filesystem=all'}).status == 125


def test_the_root_of_a_container_is_local(hood, mounted):
    at = mounted('fuse-overlayfs')
    assert mount_type(at) == 'fuse.fuse-overlayfs'
    hood.env['FUMEHOOD_DB'] = f'sqlite:{at}/ledger.db'
    assert hood.run('true').status == 0
