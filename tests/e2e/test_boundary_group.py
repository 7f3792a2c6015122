"""A member of the group that shares an object store, against another: what he moves under a name of the store is nobody's key to what
the other has, nor a way to where it leads, nor a reason to wait or to grow."""
import os
import stat
import subprocess
import sys
import time

import pytest

from test_group import ADA, BOB, GROUP, lab, make, users  # noqa: F401
from test_memory import MEASURE

pytestmark = pytest.mark.only('root')

HOLDS = """import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()
"""


def does(user, *words, **others):
    return subprocess.run(list(map(str, words)), user=user.uid, group=user.uid, extra_groups=user.groups, cwd='/', check=True, **others)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def secret(lab, users):
    """Ada's, in a directory that bob may write."""
    path = lab.store.parent / 'ada.key'
    path.write_text('mine\n')
    os.chown(path, ADA, ADA)
    path.chmod(0o600)
    return path


def test_a_file_that_was_put_in_place_of_the_lock_keeps_its_mode(hood, lab, users, secret):
    ada, bob, _ = users
    ada.succeed('run', hood.id(), *make('ada'), url=lab.group_url)
    does(bob, 'mv', '-f', secret, lab.store / 'lock')
    ada.cli('run', hood.id(), *make('again'), url=lab.group_url)
    ada.cli('gc', url=lab.group_url)
    assert (mode(lab.store / 'lock'), (lab.store / 'lock').stat().st_gid) == (0o600, ADA)


@pytest.mark.parametrize('name', ['objects', 'objects/tmp', 'objects/pins'])
def test_a_directory_that_was_put_in_place_of_the_stores_is_not_opened(hood, lab, users, secret, name):
    ada, bob, _ = users
    private = lab.store.parent / 'private'
    private.mkdir()
    private.chmod(0o700)
    os.rename(secret, private / 'key')
    os.chown(private, ADA, GROUP)  # in a directory of the group's all that is new is its
    if name != 'objects':
        lab.store.mkdir()
        os.chown(lab.store, BOB, GROUP)
        lab.store.chmod(0o2770)
    os.rename(private, lab.store.parent / name)  # root's rename: a directory of ada's gets another parent
    result = ada.cli('run', hood.id(), *make('ada'), url=lab.group_url)
    assert result.status == 125 and 'does not belong to its group' in result.err, result
    assert mode(lab.store.parent / name) == 0o700


def test_a_store_is_not_made_where_a_link_of_anothers_leads(hood, lab, users):
    ada, bob, _ = users
    for who, place in ((ada, ada.home), (None, hood.directory('etc', 0o755))):
        link = lab.store.parent / f'sub-{place.name}'
        does(bob, 'ln', '-s', place, link)
        before = sorted(place.iterdir())
        url = lab.group_url.replace(str(lab.store), f'{link}/objects')
        result = who.cli('run', hood.id(), *make('x'), url=url) if who else hood.cli('run', hood.id(), '--db', url, *make('x'))
        assert result.status == 125 and ('a link of another user' if who else 'root opens only what nobody else can change') in result.err, result
        assert [path for path in sorted(place.iterdir()) if path not in before and path.name not in ('share', 'state', 'config')] == []


def test_who_gives_an_empty_directory_to_the_group_says_so_himself(hood, lab, users):
    ada, bob, _ = users
    lab.store.mkdir()
    os.chown(lab.store, BOB, BOB)
    assert bob.cli('run', hood.id(), *make('bob'), url=lab.group_url).status == 125
    os.chown(lab.store, BOB, GROUP)
    lab.store.chmod(0o2770)
    ada.succeed('run', hood.id(), *make('ada'), url=lab.group_url)
    bob.succeed('run', hood.id(), *make('bob'), url=lab.group_url)


def test_a_pin_makes_no_gc_large_and_what_is_none_is_passed_by(hood, lab, users):
    ada, bob, _ = users
    ada.succeed('run', hood.id(), *make('ada'), url=lab.group_url)
    pin = lab.store / 'pins' / ('0' * 32)
    does(bob, 'mkfifo', pin.with_name('1' * 32))
    hood.succeed('gc', '--db', lab.group_url)
    does(bob, 'truncate', '-s', '3G', pin)
    peak = hood.write('peak', '')
    done = subprocess.run([sys.executable, '-S', '-c', MEASURE, peak, hood.binary, 'gc', '--db', lab.group_url], cwd=hood.dir, env=hood.env,
                          stderr=subprocess.PIPE, text=True)
    assert int(peak.read_text()) < 256 << 20, int(peak.read_text()) >> 20
    assert done.returncode != 0 and done.stderr.count('\n') == 1, done
    pin.unlink()
    hood.succeed('gc', '--db', lab.group_url)


def test_a_lease_on_the_lock_keeps_nobody_waiting(hood, lab, users):
    ada, bob, _ = users
    ada.succeed('run', hood.id(), *make('ada'), url=lab.group_url)
    holder = subprocess.Popen([sys.executable, '-c', HOLDS, str(lab.store / 'lock')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              user=ADA, group=ADA, extra_groups=[GROUP])
    try:
        assert holder.stdout.readline() == b'held\n'
        begun = time.monotonic()
        result = bob.cli('gc', url=lab.group_url)
        assert result.status != 0 and 'cannot lock the object store' in result.err, result
        assert time.monotonic() - begun < 20, 'the kernel breaks a lease after 45 s'
    finally:
        holder.stdin.close()
        holder.wait(30)
