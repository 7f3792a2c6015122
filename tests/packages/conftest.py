"""What is packed, installed where nothing of ours ever was: bare Debians, made for it and thrown away (tests/support/bare-root).

    pytest tests/packages --binary build/fumehood -k deb      as root

A bare Debian 12 is made once, and copied for each purpose: `new_root()`. `root('fumehood', 'version')` runs a command there,
`root('id', user=USER)` as an ordinary user. What is packed is made once as well, by the script that `make` calls: `packed('deb')`.
"""
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BARE = TOP / 'tests/support/bare-root'
USER = 'analyst'
SECONDS, PACK_SECONDS = 600, 1800  # a hang fails


def pytest_addoption(parser):
    parser.addoption('--binary', default=str(TOP / 'build/fumehood'))
    parser.addoption('--reuse', action='store_true', help="what lies in the build's dist/ is not made anew")


def pytest_configure(config):
    config.addinivalue_line('markers', 'long: only in make test-all')
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # roots are removed then, too
    if os.geteuid():
        pytest.exit('tests/packages: a root with mounts of its own can be made only by root', 4)


def call(*command, status=0, seconds=SECONDS, **others):
    """Runs it; what it said, both streams in one."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace', timeout=seconds, **others)
    assert done.returncode == status, f'{command}: status {done.returncode}\n{done.stdout[-5000:]}'
    return done.stdout


class Root:
    """A Debian in a directory."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *command, user=None, status=0, directory=None):
        home = f'/home/{user}' if user else '/root'
        become = ['setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups',
                  'env', f'HOME={home}', f'USER={user}', f'LOGNAME={user}'] if user else []
        return call(BARE, 'enter', self.path, directory or home, *become, *command, status=status)

    def shell(self, text, **others):
        return self('bash', '-euc', text, **others)

    def apt(self, *words, status=0):
        return self('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '--quiet', '--yes', '--no-install-recommends',
                    '-o', 'Dpkg::Use-Pty=0', *words, status=status)

    def take(self, *files, directory='/root'):
        """Copies files of this machine into it; their paths there."""
        for file in files:
            shutil.copy(file, self.path / directory[1:])
        return [f'{directory}/{Path(file).name}' for file in files]

    def files(self):
        """Every path in it but those that no package owns anywhere: kernel's and temporary ones."""
        return set(call('find', '.', '-xdev', '(', '-path', './proc', '-o', '-path', './sys', '-o', '-path', './dev', '-o',
                        '-path', './run', ')', '-prune', '-o', '-print', cwd=self.path).splitlines())


@pytest.fixture(scope='session')
def scratch():
    """On a disk: a root is too much for memory."""
    path = Path(tempfile.mkdtemp(prefix='fumehood-packages-', dir='/var/tmp'))
    path.chmod(0o755)
    yield path
    call('rm', '-rf', '--one-file-system', path)


@pytest.fixture(scope='session')
def make_root(scratch):
    """make_root('trixie', 'python3'): a bare Debian of that release, with these packages and an ordinary user."""
    def make(suite, *packages):
        path = Path(tempfile.mkdtemp(prefix=f'{suite}-', dir=scratch)) / 'root'
        call(BARE, 'make', '--lists', path, suite, 'ca-certificates', *packages)
        root = Root(path)
        root('useradd', '--create-home', '--shell', '/bin/bash', USER)
        return root
    return make


@pytest.fixture(scope='session')
def base(make_root):
    return make_root('bookworm')


@pytest.fixture(scope='session')
def new_root(base, scratch):
    """new_root(): a bare Debian 12 of one's own."""
    def copy():
        path = Path(tempfile.mkdtemp(prefix='root-', dir=scratch)) / 'root'
        call('cp', '-a', '--reflink=auto', base.path, path)
        return Root(path)
    return copy


@pytest.fixture(scope='session')
def packed(request):
    """packed('deb'): the files that scripts/deb made, in the build's dist/, made anew once for all tests."""
    build, made = Path(request.config.getoption('binary')).resolve().parent, {}

    def pack(kind):
        if kind not in made:
            named = build / 'dist' / f'.made-{kind}'  # what was made, for --reuse
            if not (request.config.getoption('reuse') and named.exists()):
                said = call(TOP / 'scripts' / kind, build, seconds=PACK_SECONDS)
                named.write_text(said)
            said = named.read_text()
            made[kind] = [build / 'dist' / line for line in said.splitlines() if (build / 'dist' / line).is_file()]
            assert made[kind], f'scripts/{kind} named no file that it made:\n{said[-3000:]}'
        return made[kind]
    return pack


@pytest.fixture(scope='session')
def version():
    return call(TOP / 'scripts/version').strip()
