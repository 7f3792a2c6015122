"""One number in one place (meson.build), and everything that says it says that one."""
import re
import subprocess
from pathlib import Path

import pytest

from conftest import TOP, call


@pytest.fixture(scope='module')
def build(request):
    return Path(request.config.getoption('binary')).resolve().parent


def test_the_command_the_library_and_the_module_say_the_same(build, version):
    assert call(build / 'fumehood', 'version').split()[1].rstrip(',') == version
    assert (build / f'libfumehood.so.{version}').is_file()
    said = call('/usr/bin/python3', '-c', 'import fumehood; print(fumehood.__version__, fumehood.version())',
                env={'PYTHONPATH': TOP / 'bindings/python', 'LD_LIBRARY_PATH': build, 'PYTHONDONTWRITEBYTECODE': '1'})
    assert said.split() == [version, version]


def test_pythons_packages_have_it_from_the_source_and_from_a_source_distribution(version, tmp_path):
    build = 'import sys; sys.path.insert(0, "."); import build_backend as b; print(b.build_sdist(sys.argv[1]), b.build_wheel(sys.argv[1]))'
    made = call('/usr/bin/python3', '-B', '-c', build, tmp_path, cwd=TOP / 'bindings/python').split()
    assert made == [f'fumehood-{version}.tar.gz', f'fumehood-{version}-py3-none-any.whl']
    call('tar', '-xf', tmp_path / made[0], '-C', tmp_path)
    again = call('/usr/bin/python3', '-B', '-c', build, tmp_path, cwd=tmp_path / f'fumehood-{version}').split()
    assert again == made


def test_what_is_written_about_it_begins_with_this_version(version):
    changes = re.findall(r'^## (\S+?),', (TOP / 'CHANGELOG.md').read_text(), re.M)
    assert changes[0] == version and len(set(changes)) == len(changes)
    debian = call('dpkg-parsechangelog', '-l', TOP / 'packaging/debian/changelog', '-S', 'Version').strip()
    assert re.fullmatch(rf'{re.escape(version)}-\d+', debian), debian


def test_no_other_file_has_a_number_of_its_own(version):
    """But those that are of a version, once and for all (fixtures, what was measured, what has changed, symbols), and what scripts/api writes."""
    allowed = {'meson.build', 'CHANGELOG.md', 'packaging/debian/changelog', 'packaging/debian/libfumehood0.symbols', 'include/fumehood.h',
               'docs/API.md'}
    found = subprocess.run(['git', 'grep', '-lF', version, '--', '.', ':!tests/fixtures', ':!docs/performance'], cwd=TOP,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    assert set(found) <= allowed, set(found) - allowed
