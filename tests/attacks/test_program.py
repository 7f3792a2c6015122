"""How the suite is carried: in the one file, or not at all (-Dattack=false)."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


def doctor(fumehood, *options, **more):
    return subprocess.Popen([fumehood, 'doctor', '--attack', *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            cwd='/', text=True, env={'PATH': os.environ['PATH'], 'HOME': str(fumehood.parent)}, **more)


def heeds(suite, number):
    """Before that a signal is its end, and there is nothing yet to be put away."""
    status = Path(f'/proc/{suite.pid}/status').read_text()
    return int(re.search(r'^SigCgt:\s*(\w+)$', status, re.M)[1], 16) >> (number - 1) & 1


def end(suite, number=signal.SIGTERM):
    while not heeds(suite, number):
        assert suite.poll() is None
    suite.send_signal(number)
    errors = suite.communicate(timeout=60)[1]
    assert suite.returncode == 125
    return errors


@pytest.fixture
def alone(request, tmp_path):
    """The command, copied, and nothing of its build beside it."""
    return Path(shutil.copy(Path(request.config.getoption('--build')) / 'fumehood', tmp_path))


def test_the_one_file_has_it_and_asks_for_no_other(alone):
    suite = doctor(alone)
    first = suite.stdout.readline().split()
    program, words = os.readlink(f'/proc/{suite.pid}/exe'), Path(f'/proc/{suite.pid}/cmdline').read_text().split('\0')
    end(suite)
    assert first[:2] == ['held', 'inputs']
    assert program.startswith('/memfd:fumehood-attack') and words[:2] == ['fumehood-attack', 'suite']


def test_it_tries_the_very_file_that_was_started(alone, tmp_path):
    """Replaced or gone in the meantime, as by an upgrade: what runs is what was asked for."""
    suite = doctor(alone, '--quiet')
    while not os.readlink(f'/proc/{suite.pid}/exe').startswith('/memfd:'):
        assert suite.poll() is None
    alone.unlink()
    program = [link for link in map(os.readlink, Path(f'/proc/{suite.pid}/fd').iterdir()) if link.startswith(str(alone))]
    end(suite)
    assert program


def tag_of(suite):
    """What its platform is called by: the victim is one of its programs."""
    children = Path(f'/proc/{suite.pid}/task/{suite.pid}/children').read_text().split()
    places = [re.search(r'fumehood-attack-(\w+)/', os.readlink(f'/proc/{child}/exe')) for child in children]
    return next(place for place in places if place).group(1)


def workspaces(tag):
    return [path for path in Path('/tmp').glob('.scidex-analysis-*') if tag in path.name]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_it_puts_everything_away(alone, number):
    suite = doctor(alone)
    suite.stdout.readline()
    tag = tag_of(suite)
    while not workspaces(tag):  # an attack is under the hood now
        assert suite.poll() is None
    assert 'the attack suite was ended by signal' in end(suite, number)
    assert not [path for path in Path('/tmp').iterdir() if tag in path.name]


def test_what_it_cannot_make_is_one_sentence(request, tmp_path):
    program = Path(request.config.getoption('--build')) / 'tests/attacks/fumehood-attack'
    for options in [], ['-j']:
        done = subprocess.run([program, 'suite', *options, '-s', tmp_path / 'none', '/bin/true'], capture_output=True, text=True)
        said = json.loads(done.stdout)['error']['message'] if options else done.stderr.removeprefix('fumehood: ')
        assert done.returncode == 125
        assert said.startswith('cannot make the throw-away platform') and said.strip().count('\n') == 0


@pytest.fixture(scope='session')
def without(request):
    """A build without the suite, kept beside the other for the next time."""
    build = Path(request.config.getoption('--build')).resolve() / 'without-attacks'
    subprocess.run([TOP / 'scripts/build', build, '-Dattack=false', '-Dtests=false'], check=True)
    return build


def test_a_build_without_it_says_so_and_how_to_get_one(without):
    for options in [], ['--json']:
        said, errors = doctor(without / 'fumehood', *options).communicate()
        message = json.loads(said)['error']['message'] if options else errors
        assert 'this build has no attack suite' in message and '-Dattack=true' in message
        assert message.strip().count('\n') == 0


def test_a_build_without_it_has_none_of_its_bytes(without, request):
    names = [b'data-open-write', b'unix-data-seqpacket']
    assert not [name for name in names if name in (without / 'fumehood').read_bytes()]
    assert all(name in (Path(request.config.getoption('--build')) / 'fumehood').read_bytes() for name in names)
    assert not (without / 'tests/attacks').exists()
