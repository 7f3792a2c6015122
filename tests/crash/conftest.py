"""The proofs about crashes. A fair sample, or with FUMEHOOD_CRASH=all every call, every fault, a hundred storms.

    pytest tests/crash --build BUILD            as root and as an ordinary user (as root), or as the caller (otherwise)
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'e2e'))
from hood import Hood, Who  # noqa: E402

TEST_UID_FIRST = 58000  # a throw-away uid, without an entry in passwd, for each run of the tests
HALVES = ['user'] if os.geteuid() else ['root', 'user']
ALL = os.environ.get('FUMEHOOD_CRASH') == 'all'


def pytest_addoption(parser):
    parser.addoption('--build', default=str(HERE.parents[1] / 'build'))


def pytest_configure(config):
    config.addinivalue_line('markers', 'sample(sqlite=…, postgresql=…, full=1): on which ledgers, and what is a fair sample '
                            'there: (every, offset) of the calls, or None: on this ledger only the full sweep, which takes '
                            'every full-th call')
    config.addinivalue_line('markers', 'only(who): makes sense only as root or only as user')
    config.addinivalue_line('markers', 'somebody: in a sample one half is enough')


def halves_of(test):
    only = test.get_closest_marker('only')
    halves = [half for half in HALVES if not only or half in only.args]
    return halves[:1] if test.get_closest_marker('somebody') and not ALL else halves


def pytest_collection_modifyitems(items):
    # A test for which no half is left (only root, and we are not) is not there, rather than skipped.
    items[:] = [item for item in items if 'who' not in item.fixturenames or item.callspec.params['who'] in HALVES]


def pytest_generate_tests(metafunc):
    """Everybody on every ledger. In a sample one half is enough for PostgreSQL."""
    if 'sweep' not in metafunc.fixturenames:
        if 'who' in metafunc.fixturenames:
            metafunc.parametrize('who', halves_of(metafunc.definition), indirect=True)
        return
    samples = dict(metafunc.definition.get_closest_marker('sample').kwargs)
    full = samples.pop('full', 1)
    # Who hurts the server must own it.
    halves = HALVES[:1] if 'server_command' in metafunc.fixturenames else HALVES
    metafunc.parametrize('who, ledger, sample', indirect=['who', 'ledger'], argvalues=[
        pytest.param(half, ledger, (full, 0) if ALL else sample, id=f'{half}-{ledger}')
        for ledger, sample in samples.items() for half in halves
        if ALL or (sample and (ledger == 'sqlite' or half == HALVES[0]))])


@pytest.fixture(scope='session')
def tools(request):
    """The command, and what the tests bring along, copied to where every user can reach them."""
    build, directory = Path(request.config.getoption('build')), Path(tempfile.mkdtemp(prefix='fumehood-test-', dir='/var/tmp'))
    directory.chmod(0o755)
    for name in ['fumehood', 'tests/crash/sweep', 'tests/crash/libclock_back.so']:
        shutil.copy(build / name, directory)
        (directory / Path(name).name).chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def who(request):
    return Who(None) if request.param == 'root' or os.geteuid() else Who(TEST_UID_FIRST + os.getpid() % 3000)


@pytest.fixture
def hood(who, tools):
    """As in tests/e2e: the command with a platform, a HOME and a ledger of this test alone."""
    hood = Hood(tools / 'fumehood', who)
    yield hood
    try:
        problems = hood.problems()
    finally:
        hood.remove()
    assert not problems, '\n'.join(problems)


@pytest.fixture(scope='session')
def server():
    """A PostgreSQL server for the whole session: its URL over a socket that only root reaches, and over TCP."""
    script = 'echo "$TEST_LEDGER"; echo "$TEST_POSTGRES_TCP"; cat'
    process = subprocess.Popen([HERE.parent / 'support/with-postgres', 'sh', '-c', script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    urls = [process.stdout.readline().strip() for _ in range(2)]
    assert all(urls), 'PostgreSQL did not start'
    yield urls
    process.communicate('')


@pytest.fixture
def server_command(server):
    """A command of a shell that does something to the server."""
    socket = parse_qs(urlparse(server[0]).query)['host'][0]
    return lambda word: f'{HERE}/server {word} {Path(socket).parent}'


@pytest.fixture
def ledger(request, who):
    """What a sweep is told about its ledger."""
    return [] if request.param == 'sqlite' else ['--db', request.getfixturevalue('server')[who.uid is not None]]


@pytest.fixture
def sweep(tools, who, ledger, sample, capsys):
    """Runs a sweep, shows what it did, and fails with what it found."""
    def run(mode, *options):
        words = [tools / 'sweep', mode, *options, *ledger, *(['--user', who.uid] if who.uid else []),
                 '--every', sample[0], '--offset', sample[1], tools / 'fumehood']
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='replace')
        lines = done.stdout.splitlines()
        with capsys.disabled():
            print('', *lines[-2:], sep='\n    ', flush=True)
        assert done.returncode == 0, '\n'.join([f'{mode} {options}:', *lines[:60], '…', *lines[-3:]])
    return run
