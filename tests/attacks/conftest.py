"""The attack suite's results, once for each identity: as root and as an ordinary user, or as the caller. Root runs both a
second time on a host with file systems mounted below /usr, as drivers and containers have them; and as those whose uid is 0
and who are not root: a container's, without CAP_SYS_ADMIN, and an ordinary user's in a user namespace."""
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption('--build', default=str(TOP / 'build'))


def pytest_configure(config):
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored, in the background of a shell: what is ended would not hear it
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def pytest_generate_tests(metafunc):
    if 'result' in metafunc.fixturenames:
        situations = ['user'] if os.geteuid() else ['root', 'user', 'root-mounted', 'user-mounted', 'container', 'namespace',
                                                       'root-landlock', 'docker-landlock']
        metafunc.parametrize('result', situations, indirect=True, scope='session')


# In a mount namespace of its own: one among directories, one deep between files, one over a single file.
MOUNTED = '''
mount -t tmpfs driver /usr/local/games
mkdir -p /usr/local/games/lib
mount -t tmpfs deep /usr/local/games/lib
mount -t tmpfs doc /usr/share/doc
touch /usr/local/games/file /usr/local/games/lib/file
mount --bind /etc/hostname /usr/local/games/file
exec "$@"
'''


class Result:
    def __init__(self, who, status, text, bare):
        self.who, self.status = who, status
        self.bare = bare  # without namespaces
        self.json = json.loads(text)
        self.attacks = self.json['attacks']

    def that(self, outcome):
        return [attack for attack in self.attacks if attack['result'] == outcome]


@pytest.fixture(scope='session')
def place(request):
    """The build's programs where every user can reach them, and a home for an ordinary one."""
    with tempfile.TemporaryDirectory(prefix='fumehood-test-', dir='/var/tmp') as directory:
        place = Path(directory)
        place.chmod(0o755)
        build = Path(request.config.getoption('--build'))
        for program in (build / 'fumehood', build / 'tests/attacks/fumehood-attack', build / 'tests/support/forbid',
                        TOP / 'tests/attacks/bubblewrap'):
            shutil.copy(program, place)
        (place / 'home').mkdir()
        (place / 'home').chmod(0o777)
        yield place


@pytest.fixture(scope='session')
def result(request, place):
    """`fumehood doctor --attack --json`. As an ordinary user: nobody, whom PostgreSQL accepts as well."""
    who, words = request.param.split('-')[0], []
    if request.param.endswith('-mounted'):
        words += ['unshare', '-m', 'sh', '-ec', MOUNTED, 'sh']
    if who == 'container':
        words += [place / 'forbid', '--caps', 'docker', '--']
    if who in ('user', 'namespace') and os.geteuid() == 0:
        nobody = pwd.getpwnam('nobody')
        words += ['setpriv', f'--reuid={nobody.pw_uid}', f'--regid={nobody.pw_gid}', '--clear-groups']
    if who == 'namespace':
        words += [place / 'forbid', '--userns', '1', '--']
    if who == 'docker':  # an ordinary user under Docker's own profile, which forbids namespaces
        words += [place / 'forbid', '--seccomp-docker', TOP / 'packaging/containers/seccomp.json', '--uid',
                  pwd.getpwnam('nobody').pw_uid, '--']
    strength = ['--strength', 'landlock'] if request.param.endswith('-landlock') else []
    done = subprocess.run([*map(str, words), place / 'fumehood', 'doctor', '--attack', *strength, '--json'], stdout=subprocess.PIPE, cwd='/',
                          env={'PATH': os.environ['PATH'], 'HOME': str(place / 'home')}, timeout=1800)
    (place / f'{request.param}.json').write_bytes(done.stdout)
    return Result(who, done.returncode, done.stdout, bool(strength))
