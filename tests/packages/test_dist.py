"""The tarball's command is one file that works on another release than the one that it was built on."""
import os
import tarfile

import pytest

from conftest import TOP, USER, call

RELEASES = ['trixie', pytest.param('jammy', marks=pytest.mark.long), pytest.param('noble', marks=pytest.mark.long)]


@pytest.fixture(scope='module')
def tarball(packed):
    made, = [path for path in packed('dist') if path.suffix == '.gz']
    return made


@pytest.fixture(scope='module')
def unpacked(tarball, version):
    """unpacked(root): the directory there that the tarball is."""
    def unpack(root):
        there, = root.take(tarball, directory='/opt')
        root('tar', '-xzf', there, '-C', '/opt')
        return f'/opt/fumehood-{version}'
    return unpack


def test_its_checksum_lies_beside_it(tarball):
    assert f'{tarball.name}: OK' in call('sha256sum', '--check', 'SHA256SUMS', cwd=tarball.parent)


def test_it_has_the_command_its_manual_and_completions(tarball, version):
    with tarfile.open(tarball) as archive:
        members = {member.name: member for member in archive}
    top = f'fumehood-{version}'
    for name in ['README.md', 'LICENSE', 'bin/fumehood', 'share/man/man1/fumehood-run.1', 'share/man/man5/fumehood-config.5',
                 'share/bash-completion/completions/fumehood', 'share/zsh/site-functions/_fumehood',
                 'share/fish/vendor_completions.d/fumehood.fish', 'share/doc/fumehood/docs/PACKAGES.md']:
        assert members[f'{top}/{name}'].size, name
    assert members[f'{top}/bin/fumehood'].mode == 0o755
    assert tarball.name == f'fumehood-{version}-linux-{os.uname().machine}.tar.gz'
    epoch = int(call('git', 'log', '-1', '--format=%ct', cwd=TOP))
    assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, epoch)}
    assert [name for name in members if not name.startswith(f'{top}/')] == []


@pytest.mark.parametrize('suite', RELEASES)
def test_it_works_on_another_release(suite, make_root, unpacked, packed, version):
    """As root and as an ordinary user; and where there is another Python, so does the wheel."""
    root = make_root(suite, 'python3-venv')
    command = f'{unpacked(root)}/bin/fumehood'
    for user in [None, USER]:
        assert version in root(command, 'version', user=user)
        assert 'a command ran under it' in root.shell(f'{command} doctor || [ $? = 1 ]', user=user)
        said = root.shell(f'{command} run a1 -- sh -c "echo 42 >answer" && {command} get a1 answer -o -', user=user)
        assert 'a1 succeeded' in said and said.endswith('42\n'), said
    wheel, = root.take(*packed('wheel'), directory='/opt')
    said = root.shell(f'python3 -m venv env && env/bin/pip install --quiet --no-index {wheel} && env/bin/python -c "'
                      'import fumehood; print(fumehood.version(), fumehood.run([\'echo\', \'hello\'], id=\'a2\', capture_output=True).stdout)"',
                      user=USER)
    assert version in said and 'hello' in said, said


@pytest.mark.long
def test_debian_11_is_too_old_and_its_loader_says_so(make_root, unpacked):
    """What docs/PACKAGES.md gives as the reason."""
    root = make_root('bullseye')
    assert "version `GLIBC_2.34' not found" in root(f'{unpacked(root)}/bin/fumehood', 'version', status=1)
