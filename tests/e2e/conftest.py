"""What every end-to-end test gets: a platform of its own, a ledger of its own, and a check that nothing is left.

    pytest tests/e2e                      as root and as an ordinary user (as root), or as the caller (otherwise)
    pytest tests/e2e --as user            only that half
    pytest tests/e2e --binary PATH        another build, for instance with sanitizers
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import leaks
import ledgers
from hood import Hood, Who, delegated

TOP = Path(__file__).resolve().parents[2]
CGROUP_V1 = Path('/sys/fs/cgroup/memory').is_dir()
TEST_UID_FIRST = 61000  # a throw-away uid, without an entry in passwd, for each run of the tests


def pytest_addoption(parser):
    parser.addoption('--as', choices=['root', 'user', 'both'], default='both', dest='who')
    parser.addoption('--binary', default=str(TOP / 'build/fumehood'))


def pytest_configure(config):
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored, in the background of a shell: what is cancelled would not hear it
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    config.addinivalue_line('markers', 'long: only in make test-all')
    config.addinivalue_line('markers', 'asan: runs against the build with sanitizers too')
    config.addinivalue_line('markers', 'only(who): makes sense only as root or only as user')


def pytest_sessionstart(session):
    if os.geteuid() == 0 and CGROUP_V1 and not session.config.option.collectonly:
        leaks.Ground.here = leaks.Ground()


def pytest_sessionfinish(session):
    if leaks.Ground.here:
        leaks.Ground.here.leave()
        leaks.Ground.here = None


def pytest_generate_tests(metafunc):
    if 'hood' not in metafunc.fixturenames:
        return
    wanted = metafunc.config.getoption('who')
    halves = ['root', 'user'] if wanted == 'both' else [wanted]
    if os.geteuid():
        halves = ['user']
    # On cgroup v2 a user must be started inside what root has delegated: tests/vm does that.
    if 'caged' in metafunc.fixturenames and os.geteuid() == 0 and not CGROUP_V1:
        halves = [half for half in halves if half == 'root']
    if {'mounted', 'forbid'}.intersection(metafunc.fixturenames) and os.geteuid():
        halves = []
    mark = metafunc.definition.get_closest_marker('only')
    if mark:
        halves = [half for half in halves if half in mark.args]
    metafunc.parametrize('hood', halves, indirect=True)


def limits_can_be_held(binary):
    """Root can see to it; an ordinary user has been given a cgroup, or not."""
    if os.geteuid() == 0:
        return True
    with tempfile.TemporaryDirectory() as home:
        env = {'HOME': home, 'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': os.environ.get('XDG_RUNTIME_DIR', '')}
        found = json.loads(subprocess.run([binary, 'doctor', '--json'], stdout=subprocess.PIPE, env=env).stdout)
    return any(item['name'] == 'limit memory' and item['ok'] for item in found['items'])


def pytest_collection_modifyitems(config, items):
    # A test for which no half is left (only root, and we are not) is not there, rather than skipped.
    def has_a_half(item):
        if 'hood' in item.fixturenames:
            return item.callspec.params['hood'] in ('root', 'user')
        mark = item.get_closest_marker('only')  # of a site of its own, with several users
        return not mark or 'root' not in mark.args or (os.geteuid() == 0 and config.getoption('who') != 'user')

    items[:] = [item for item in items if has_a_half(item)]
    if any({'caged', 'bare'}.intersection(item.fixturenames) for item in items):
        wrong = 'caged' if not limits_can_be_held(config.getoption('binary')) else 'bare' if os.geteuid() else None
        items[:] = [item for item in items if wrong not in item.fixturenames]
    if os.geteuid():  # nobody else can be played
        items[:] = [item for item in items if 'stranger' not in item.fixturenames]


@pytest.fixture(scope='session')
def binary(request):
    """The command, copied to where every user can reach it: it is one file that works anywhere."""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-test-', dir='/var/tmp'))
    directory.chmod(0o755)
    copy = directory / 'fumehood'
    shutil.copy(request.config.getoption('binary'), copy)
    copy.chmod(0o755)
    yield copy
    shutil.rmtree(directory)


@pytest.fixture
def hood(request, binary):
    """The command with a platform (data/, docs/, site/, api.py), a HOME and a ledger of this test alone."""
    who = Who(None) if request.param == 'root' or os.geteuid() else Who(TEST_UID_FIRST + os.getpid() % 3000)
    hood = Hood(binary, who)
    yield hood
    try:
        problems = hood.problems()
    finally:
        hood.remove()
    assert not problems, '\n'.join(problems)


@pytest.fixture
def caged(hood):
    """A hood whose limits are held: root's, or a user's to whom root has delegated a cgroup."""
    with delegated(hood):
        yield hood


@pytest.fixture
def bare(hood):
    """The hood of an ordinary user to whom nothing is delegated. For tests that are only('user')."""
    return hood


@pytest.fixture
def forbid(hood, request):
    """`forbid('--caps', 'docker')`: from now on the command runs on a host that is so (tests/support/forbid.c)."""
    program = shutil.copy(Path(request.config.getoption('binary')).parent / 'tests/support/forbid', hood.base)

    def reachable(option):
        """A profile of the sources, where whoever it becomes can read it."""
        return shutil.copy(option, hood.base) if isinstance(option, Path) and option.is_file() else option

    def hold(*options):
        options = [reachable(option) for option in options]
        hood.prefix = [program, *options]
        if hood.who.uid is not None and '--userns' in options:  # which is made by that user
            hood.prefix[:0] = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups']
        elif hood.who.uid is not None:
            hood.prefix += ['--uid', hood.who.uid]
        hood.prefix.append('--')
    yield hold
    hood.prefix = []


@pytest.fixture
def stranger(hood):
    """Another user of this host, beside the one who calls: `stranger('sh', '-c', …)` runs as him, and gives what it said."""
    who = Who(TEST_UID_FIRST + 3000 + os.getpid() % 1000)

    def run(*command, **others):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd='/',
                              env={'PATH': os.environ['PATH']}, **who.popen_arguments(), **others)
        return done.returncode, done.stdout

    run.who = who
    return run


@pytest.fixture(scope='session')
def bomb(tmp_path_factory):
    """The program of bomb.c."""
    program = tmp_path_factory.mktemp('bomb') / 'bomb'
    subprocess.run(['cc', '-O1', '-pthread', '-o', program, Path(__file__).parent / 'bomb.c'], check=True)
    return program.read_bytes()


@pytest.fixture(scope='session')
def server():
    server = ledgers.Server()
    yield server
    server.stop()


@pytest.fixture(params=['sqlite', 'postgres'])
def ledger(request, hood):
    """The hood's own ledger, of each kind, with the platform's tables still to be made."""
    if request.param == 'sqlite':
        ledger = ledgers.Sqlite(hood)
    else:
        ledger = ledgers.Postgres(hood, request.getfixturevalue('server'))
    yield ledger
    ledger.close()
