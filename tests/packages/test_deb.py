"""The Debian packages on a bare Debian 12: installed, used as root and as a user, upgraded, removed, purged.

The tests of one root come in the order in which they stand here: a package is installed, then purged.
"""
import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import PACK_SECONDS, TOP, USER, call

NAMES = {'fumehood', 'libfumehood0', 'libfumehood-dev', 'python3-fumehood'}
LEDGER = './root/.local/share/fumehood'


@pytest.fixture(scope='module')
def debs(packed):
    """Name of the package: its file."""
    found = {file.name.split('_')[0]: file for file in packed('deb') if file.suffix == '.deb'}
    return {name: file for name, file in found.items() if not name.endswith('-dbgsym')}


def older(file, directory, version):
    """The same package as of a version before, with one configuration line that the next one changed."""
    tree = directory / file.stem
    call('dpkg-deb', '--raw-extract', file, tree)
    control = tree / 'DEBIAN/control'
    # Its own, and that of the library which others depend on.
    control.write_text(re.sub(rf'((?:Version:|fumehood0 \(>?=) ){re.escape(version)}', r'\g<1>0.0.9', control.read_text()))
    sample = tree / 'etc/fumehood/config.yaml'
    if sample.exists():
        sample.write_text('# of the version before\n' + sample.read_text())
    call('dpkg-deb', '--root-owner-group', '-Znone', '--build', tree, directory)
    [made] = directory.glob(f'{file.name.split("_")[0]}_0.0.9-1_*.deb')
    return made


@pytest.fixture(scope='module')
def root(new_root, debs, scratch, version):
    """With the version before, as apt installs it, and what the manual and the tab key need."""
    root = new_root()
    root.apt('install', 'man-db', 'bash-completion', 'python3-minimal')
    root.before = root.files()
    directory = scratch / 'older'
    directory.mkdir()
    install(root, *(older(file, directory, version) for file in debs.values()))
    return root


def install(root, *files):
    there = root.take(*files, directory='/tmp')
    root.apt('-o', 'Dpkg::Options::=--force-confdef', '-o', 'Dpkg::Options::=--force-confold', 'install', *there)
    root('rm', *there)


def version_of(root, name='fumehood'):
    return root('dpkg-query', '-W', '-f', '${Version}', name)


def ids(root, **others):
    return {row['id'] for row in json.loads(root('fumehood', 'ls', '--json', **others))}


def test_there_are_the_four_packages_and_lintian_finds_nothing(debs, packed, version):
    assert set(debs) == NAMES
    for name, file in debs.items():
        assert call('dpkg-deb', '-f', file, 'Version').strip() == f'{version}-1', name
    [changes] = [file for file in packed('deb') if file.suffix == '.changes']
    said = call('lintian', '--allow-root', '--fail-on', 'error,warning', '--no-tag-display-limit', changes)
    assert not re.search(r'^[EW]:', said, re.M), said


@pytest.mark.long
def test_under_systemd_an_upgrade_restarts_the_worker_and_remove_stops_it(request, debs, scratch, version):
    directory = scratch / 'life'
    directory.mkdir()
    said = call(TOP / 'tests/vm/run', '-s', '-t', '1200', '--', TOP / 'tests/packages/guest-deb', older(debs['fumehood'], directory, version),
                debs['fumehood'], Path(request.config.getoption('binary')).resolve(), seconds=PACK_SECONDS)
    assert said.splitlines()[-1] == 'ok', said


@pytest.mark.long
def test_the_next_release_of_debian_takes_them(make_root, debs, version):
    root = make_root('trixie')
    install(root, *debs.values())
    for who in (None, USER):
        assert 'hello' in root('fumehood', 'run', 'a1', '--', 'echo', 'hello', user=who)
    assert root('/usr/bin/python3', '-c', 'import fumehood; print(fumehood.__version__)').strip() == version


def test_every_override_says_why():
    for file in (TOP / 'packaging/debian').glob('*.lintian-overrides'):
        lines = file.read_text().splitlines()
        for before, line in zip(['', *lines], lines):
            assert line.startswith('#') or before.startswith('# '), f'{file.name}: {line}'


def test_a_lost_symbol_of_the_library_is_an_error(debs, tmp_path, version):
    """What dpkg-gensymbols is told when it is built (-c4), with a symbol that an earlier version would have had."""
    (tmp_path / 'debian').mkdir()
    call('dpkg-deb', '-x', debs['libfumehood0'], tmp_path / 'debian/libfumehood0')
    (tmp_path / 'debian/control').write_text((TOP / 'packaging/debian/control').read_text())
    symbols = (TOP / 'packaging/debian/libfumehood0.symbols').read_text()
    for more, status in (('', 0), (f' fh_gone@FUMEHOOD_0 {version}\n', 1)):
        (tmp_path / 'symbols').write_text(symbols + more)
        call('dpkg-gensymbols', '-c4', '-plibfumehood0', f'-v{version}-1', '-Pdebian/libfumehood0', '-Isymbols', '-Oout',
             cwd=tmp_path, status=status)
    assert '-c4' in (TOP / 'packaging/debian/rules').read_text()


def test_an_analysis_runs_as_root_and_as_a_user(root):
    assert version_of(root) == '0.0.9-1'
    for who in (None, USER):
        said = root('fumehood', 'run', 'before', '--', 'sh', '-c', 'echo hello; echo 42 >out.txt', user=who)
        assert 'hello\n' in said and 'before succeeded' in said, said
        assert root('fumehood', 'get', 'before', 'out.txt', '-o', '-', user=who) == '42\n'
        root('fumehood', 'doctor', user=who)


def test_the_next_version_goes_over_it_and_the_ledgers_stay(root, debs, version):
    # A configuration that somebody has changed is kept, and nobody is asked.
    root.shell('echo "queue: {jobs: 3}" >>/etc/fumehood/config.yaml')
    install(root, *debs.values())
    assert {version_of(root, name) for name in NAMES} == {f'{version}-1'}
    assert (root.path / 'etc/fumehood/config.yaml').read_text().endswith('queue: {jobs: 3}\n')
    for who in (None, USER):
        assert root('fumehood', 'get', 'before', 'out.txt', '-o', '-', user=who) == '42\n'
        root('fumehood', 'run', 'after', '--', 'true', user=who)
        assert ids(root, user=who) == {'before', 'after'}


def test_a_ledger_of_an_earlier_schema_is_refused_until_it_is_upgraded(root):
    fixture, target = TOP / 'tests/fixtures/v8', root.path / 'root/v8'
    call('install', '-d', '-m', '700', target)
    call('cp', '-r', fixture / 'objects', target / 'ledger.db.objects')
    call('chmod', '-R', 'go=', target)
    subprocess.run(['sqlite3', '-bail', target / 'ledger.db'], text=True, check=True,
                   input=(fixture / 'ledger.sql').read_text().replace('@PLACE@', '/root/v8').replace('@HEX@', b'/root/v8'.hex()))
    url = 'sqlite:/root/v8/ledger.db'
    said = root('fumehood', 'ls', '--db', url, status=125)
    assert 'fumehood db upgrade' in said, said
    root('fumehood', 'db', 'upgrade', '--db', url)
    assert root('fumehood', 'ls', '--db', url) and 'upgrade' not in root('fumehood', 'db', 'status', '--db', url)
    call('rm', '-r', target)


def test_the_library_and_the_module_work(root, version):
    said = root('/usr/bin/python3', '-c', 'import fumehood, importlib.metadata as m; print(fumehood.__version__, m.version("fumehood"), '
                'fumehood.run(["echo", "hello"], id="py", capture_output=True, text=True).stdout)', user=USER)
    assert said.split() == [version, version, 'hello'], said
    assert (root.path / 'usr/include/fumehood.h').exists() and root.shell('cat /usr/lib/*/pkgconfig/libfumehood.pc').count(version) == 1


def test_the_manual_opens_and_the_tab_key_answers(root):
    for page in ('fumehood', 'fumehood-run', 'fumehood-worker', 'fumehood-config'):
        assert page in root('man', '-P', 'cat', page).lower(), page
    said = root('bash', '-c', '''. /usr/share/bash-completion/bash_completion
_completion_loader fumehood
COMP_WORDS=(fumehood show be) COMP_CWORD=2 COMP_LINE="fumehood show be" COMP_POINT=16
_fumehood; echo "${COMPREPLY[@]}"''', user=USER)
    assert said.split() == ['before'], said
    for script in ('zsh/vendor-completions/_fumehood', 'fish/vendor_completions.d/fumehood.fish'):
        assert (root.path / 'usr/share' / script).exists(), script


def test_units_group_and_places_are_there_and_nothing_is_enabled(root):
    for unit in ('fumehood-worker.service', 'fumehood-gc.service', 'fumehood-gc.timer'):
        root('systemd-analyze', 'verify', '--man=yes', unit)
        assert root('systemctl', 'is-enabled', unit, status=0 if unit == 'fumehood-gc.service' else 1).strip() in ('disabled', 'static')
    assert root('getent', 'group', 'fumehood').startswith('fumehood:')
    assert root('stat', '-c', '%a %U %G', '/var/lib/fumehood/objects').split() == ['2770', 'root', 'fumehood']
    # Debian's own parser accepts what it got.
    root.apt('install', 'apparmor')
    root('apparmor_parser', '--skip-kernel-load', '--skip-cache', '/etc/apparmor.d/fumehood')
    assert 'userns,' not in (root.path / 'etc/apparmor.d/fumehood').read_text()
    # Both switches are one: who enables the worker has what cleans up after it.
    root('systemctl', 'enable', 'fumehood-worker')
    assert root('systemctl', 'is-enabled', 'fumehood-gc.timer').strip() == 'enabled'


def test_remove_keeps_the_configuration_and_the_ledgers_and_cleans_up(root):
    root.shell('''fumehood run crashed -- sleep 100000 & until [ -d /tmp/scidex-analysis-crashed ]; do sleep 0.1; done
kill -KILL $!; wait $! || true''')
    assert (root.path / 'tmp/scidex-analysis-crashed').exists()
    root.apt('remove', *NAMES)
    assert not (root.path / 'tmp/scidex-analysis-crashed').exists()
    assert (root.path / 'etc/fumehood/config.yaml').exists() and not (root.path / 'usr/bin/fumehood').exists()
    assert (root.path / LEDGER / 'ledger.db').exists()


def test_purge_leaves_nothing_but_the_ledgers_and_says_where(root):
    said = root('dpkg', '--purge', *NAMES)
    assert 'left behind: /root/.local/share/fumehood, the ledger of root; to remove it: rm -r /root/.local/share/fumehood' in said, said
    assert '~/.local/share/fumehood' in said
    left = {path for path in root.files() - root.before if 'fumehood' in path and not path.startswith('./var/cache/man/')}
    assert left and all(path.startswith((LEDGER, f'./home/{USER}/.local/')) for path in left), left
    assert not any(f'./home/{USER}' not in path and 'state' in path for path in left), left
    assert root('getent', 'group', 'fumehood'), 'groups stay, since files of theirs may'
