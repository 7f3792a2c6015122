"""Built for arm64 with Debian's cross compiler, and its unit tests run by qemu-user: on a bare Debian 12, with the other machine's
libraries beside its own. qemu-user is of Debian 13, because Debian 12's knows no openat2().
"""
import re
import shutil
import subprocess

import pytest

from conftest import BARE, TOP

pytestmark = pytest.mark.long

HERE = ['gcc', 'libc6-dev', 'meson', 'ninja-build', 'pkg-config', 'python3', 'libseccomp-dev', 'gcc-aarch64-linux-gnu']
THERE = ['libc6-dev', 'libssl-dev', 'libsqlite3-dev', 'libjansson-dev', 'libyaml-dev', 'zlib1g-dev', 'libmicrohttpd-dev', 'libpng-dev', 'libjpeg62-turbo-dev', 'libseccomp-dev', 'libpq-dev',
         'libsystemd-dev', 'libcmocka-dev']
# There is no server; and what is in a cgroup of this machine is qemu, whose threads are not those that the test counts and freezes.
LEFT_OUT = ['test_queue_postgres', 'test_store_postgres', 'test_cgroup']
CASE = re.compile(r'^\[ +(OK|FAILED|SKIPPED) +\] (\w+)$', re.M)


def expected():
    """What cannot pass there, with the reason: `PROGRAM::TEST REASON` on each line."""
    lines = (TOP / 'tests/packages/not-under-qemu').read_text().splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith('#')}


@pytest.fixture(scope='module')
def root(new_root, make_root):
    root = new_root()
    root('dpkg', '--add-architecture', 'arm64')
    root.apt('update')
    root.apt('install', *HERE, *(f'{name}:arm64' for name in THERE))
    shutil.copy(make_root('trixie', 'qemu-user').path / 'usr/bin/qemu-aarch64', root.path / 'usr/local/bin')  # it is static
    listed = subprocess.run(['git', 'ls-files', '-coz', '--exclude-standard'], cwd=TOP, stdout=subprocess.PIPE, check=True).stdout
    for name in filter(None, listed.decode().split('\0')):
        (root.path / 'src' / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, root.path / 'src' / name)
    root('meson', 'setup', 'build', '--cross-file', 'packaging/aarch64.cross', directory='/src')
    root('ninja', '-C', 'build', directory='/src')
    return root


def test_the_command_and_the_library_are_arm64s(root, version):
    for name in ['fumehood', 'libfumehood.so.0', 'src/sandbox/init']:
        assert 'AArch64' in root('readelf', '-h', f'build/{name}', directory='/src'), name
    assert version in root('qemu-aarch64', 'build/fumehood', 'version', directory='/src')


def run_all(root, programs):
    """Two at a time; what each said and its status lie in /said afterwards."""
    one = 'timeout 300 qemu-aarch64 tests/unit/$1 >/said/$1 2>&1; echo $? >/said/$1.status'
    (root.path / 'said').mkdir()
    subprocess.run([BARE, 'enter', root.path, '/src/build', 'xargs', '-P', '2', '-n', '1', 'sh', '-c', one, 'sh'],
                   input='\n'.join(programs), text=True, check=True, timeout=3000)


def outcomes(root, program):
    """(failed cases, number of cases that passed); of a program that ends badly without naming one, the program."""
    cases = set(CASE.findall((root.path / 'said' / program).read_text(errors='replace')))
    failed = {f'{program}::{test}' for outcome, test in cases if outcome == 'FAILED'}
    if int((root.path / 'said' / f'{program}.status').read_text()) and not failed:
        failed = {f'{program}::'}
    return failed, sum(outcome == 'OK' for outcome, _ in cases)


def test_the_unit_tests_pass_under_qemu_but_for_those_that_cannot(root):
    programs = sorted(path.name for path in (root.path / 'src/build/tests/unit').glob('test_*') if path.is_file() and path.name not in LEFT_OUT)
    run_all(root, programs)
    results = [outcomes(root, program) for program in programs]
    failed = set().union(*(failed for failed, _ in results))
    print(f'{len(programs)} programs, {sum(passed for _, passed in results)} tests passed, {len(failed)} failed: {sorted(failed)}')
    assert failed <= expected(), sorted(failed - expected())
    assert sum(passed for _, passed in results) > 400
