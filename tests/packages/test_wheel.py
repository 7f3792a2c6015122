"""pip alone gives the module and the command: one wheel for every Python, without a compiler, and nothing stays when it goes."""
import base64
import hashlib
import os
import shutil
import subprocess
import zipfile

import pytest

from conftest import TOP, USER, call

# Runs an analysis, and says which library did it.
PROGRAM = '''
import fumehood, sys
with fumehood.Analysis(sys.argv[1], outputs=["answer"]) as a:
    r = a.run(["sh", "-c", "echo hello; echo 42 >answer"], check=True)
assert r.stdout == "hello\\n" and fumehood.get(sys.argv[1], "answer") == b"42\\n", r
print(fumehood.version(), *{line.split()[-1] for line in open("/proc/self/maps") if "libfumehood" in line})
'''


@pytest.fixture(scope='module')
def wheel(packed):
    made, = packed('wheel')
    return made


@pytest.fixture(scope='module')
def root(new_root, wheel):
    """A bare Debian 12 with Python, and without anything that compiles."""
    root = new_root()
    root.apt('install', 'python3-venv')
    root.shell('! command -v cc gcc clang meson')
    root.take(wheel, directory='/opt')
    (root.path / 'opt/program.py').write_text(PROGRAM)
    (root.path / 'opt/other').mkdir()
    (root.path / 'opt/other/libfumehood.so.0').write_text('junk')
    return root


def test_its_name_says_what_it_needs(wheel, version):
    assert wheel.name == f'fumehood-{version}-py3-none-manylinux_2_34_{os.uname().machine}.whl'
    with zipfile.ZipFile(wheel) as archive:
        said = archive.read(f'fumehood-{version}.dist-info/WHEEL').decode()
    assert f'Tag: {wheel.name.split("-", 2)[2][:-4]}\n' in said and 'Root-Is-Purelib: false\n' in said


def test_its_record_names_every_file_with_its_digest(wheel, version):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = dict(line.split(',', 1) for line in archive.read(f'fumehood-{version}.dist-info/RECORD').decode().splitlines())
        assert sorted(record) == sorted(names) and len(set(names)) == len(names)
        for name in set(names) - {f'fumehood-{version}.dist-info/RECORD'}:
            digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b'=').decode()
            assert record[name] == f'sha256={digest},{archive.getinfo(name).file_size}', name


@pytest.mark.parametrize('user', [None, USER])
def test_pip_gives_the_module_and_the_command(root, wheel, version, user):
    """And the module loads its own library, though the loader would find another first: one that cannot even be loaded."""
    root.shell(f'python3 -m venv env && find env ! -type d | sort >before && env/bin/pip install --quiet --no-index /opt/{wheel.name}', user=user)
    home = f'/home/{user}' if user else '/root'
    own = f'{home}/env/lib/python3.11/site-packages/fumehood/_lib/libfumehood.so.0'
    assert root.shell('LD_LIBRARY_PATH=/opt/other env/bin/python /opt/program.py module', user=user).split() == [version, own]
    said = root.shell('. env/bin/activate; fumehood run command -- sh -c "echo 42 >answer" && fumehood get command answer -o -', user=user)
    assert 'command succeeded' in said and said.endswith('42\n'), said
    assert 'a command ran under it' in root.shell('env/bin/fumehood doctor || [ $? = 1 ]', user=user)
    for name in ['man/man1/fumehood-run.1', 'bash-completion/completions/fumehood', 'fish/vendor_completions.d/fumehood.fish']:
        assert (root.path / home[1:] / 'env/share' / name).stat().st_size
    assert 'No broken requirements' in root.shell('env/bin/pip check', user=user)
    root.shell('env/bin/pip uninstall --quiet --yes fumehood; find env ! -type d | sort >after; diff before after; rm -r env', user=user)


def test_packed_again_elsewhen_it_is_the_same(packed, wheel):
    """In another time zone, with another mask, at another time."""
    made = [wheel, *(path for path in packed('dist') if path.suffix == '.gz')]
    before = [path.read_bytes() for path in made]
    build = wheel.parent.parent
    for kind in ['wheel', 'dist']:
        call('sh', '-euc', f'umask 077; TZ=Asia/Tokyo LC_ALL=C exec {TOP}/scripts/{kind} {build}')
    assert [path.name for path, bytes_ in zip(made, before) if path.read_bytes() != bytes_] == []


def test_nothing_in_it_names_the_directory_that_it_was_built_in(wheel, version):
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if str(TOP).encode() in archive.read(name)] == []


@pytest.mark.long
def test_an_ordinary_user_makes_the_same_bytes_twice_on_a_bare_debian(new_root):
    """With what scripts/deps has for it and no more; compiled twice, in different directories; and nothing is left in the source but
    what is ignored."""
    root, places = new_root(), ['one', 'another/two']
    listed = subprocess.run(['git', 'ls-files', '-coz', '--exclude-standard'], cwd=TOP, stdout=subprocess.PIPE, check=True).stdout
    for place in places:
        source = root.path / 'home' / USER / place
        for name in filter(None, listed.decode().split('\0')):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, source / name)
    root.shell(f'chown -R {USER}: /home/{USER}; apt-get -qq -y install make; cd /home/{USER}/one; scripts/deps build')
    epoch = call('git', 'log', '-1', '--format=%ct', cwd=TOP).strip()
    for place, mask in zip(places, ['022', '077']):
        root.shell(f'cd {place}; find . | sort >../before; umask {mask}; SOURCE_DATE_EPOCH={epoch} make wheel dist; '
                   'find . -path ./build -prune -o -print | sort | diff ../before -', user=USER)
    root.shell('diff -r one/build/dist another/two/build/dist; cd one/build/dist; sha256sum --check SHA256SUMS', user=USER)


def test_a_binary_that_needs_more_than_promised_is_refused(tmp_path):
    check = f'import sys; sys.path.insert(0, "{TOP}/scripts"); import release; release.check_needs(sys.argv[1])'
    (tmp_path / 'newer.c').write_text('#include <stdlib.h>\nint main(void) { return (int)arc4random() * 0; }\n')  # of glibc 2.36
    (tmp_path / 'other.c').write_text('int main(void) { return 0; }\n')
    call('cc', tmp_path / 'newer.c', '-o', tmp_path / 'newer')
    said = call('/usr/bin/python3', '-B', '-c', check, tmp_path / 'newer', status=1)
    assert "needs glibc 2.36, newer than the 2.34 that is promised" in said, said
    call('cc', '-shared', '-Wl,-soname,libother.so.1', '-x', 'c', '/dev/null', '-o', tmp_path / 'libother.so')
    call('cc', tmp_path / 'other.c', '-Wl,--no-as-needed', tmp_path / 'libother.so', '-o', tmp_path / 'other')
    said = call('/usr/bin/python3', '-B', '-c', check, tmp_path / 'other', status=1)
    assert 'needs libother.so.1, which a host may not have' in said, said
