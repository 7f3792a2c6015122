"""Where and as whom something is measured: a directory with inputs, a home, a ledger and state of its own, on a disk or on a tmpfs,
of root or of an ordinary user, to whom a cgroup has been delegated so that limits are held for him, too."""
import contextlib
import os
import secrets
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from . import machine
from .rows import DISK, JOURNAL, USER

here = Path(__file__).resolve().parents[1]
USER_UID = 64321  # without an entry in passwd
SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
BUBBLEWRAP = ['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv', '--hostname', 'hood',
              '--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib',
              '--symlink', 'usr/lib64', '/lib64', '--ro-bind', '/etc', '/etc', '--proc', '/proc', '--dev', '/dev',
              '--tmpfs', '/tmp', '--ro-bind', 'DATA', 'DATA', '--ro-bind', 'DOCS', 'DOCS', '--bind', 'WORK', 'WORK', '--chdir', 'WORK']
REFUSED = [101, 155, 161, 163, 165, 166, 167, 168, 169, 175, 246, 248, 249, 250, 272, 298, 304, 308, 313, 321, 323,
           425, 426, 427, 428, 429, 430, 432, 435, 442]  # ptrace, mount, bpf, io_uring and so on


def seccomp_filter():
    """A filter of bubblewrap's usual size: these calls get EPERM, all others pass."""
    program = [(0x20, 0, 0, 0)]
    for n, call in enumerate(REFUSED):
        program.append((0x15, len(REFUSED) - n, 0, call))
    program += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]
    return b''.join(struct.pack('HBBI', *row) for row in program)


def remove_tree(path, seconds=60):
    """Whoever else is still removing something in it."""
    deadline = time.monotonic() + seconds
    while os.path.lexists(path):
        shutil.rmtree(path, ignore_errors=time.monotonic() < deadline)


class Tools:
    """What is measured and what measures, where every user can reach it."""

    def __init__(self, build):
        self.directory = Path(tempfile.mkdtemp(prefix='fumehood-bench-', dir='/var/tmp'))
        self.directory.chmod(0o755)
        self.build = Path(build).resolve()
        self.hood = str(shutil.copy(self.build / 'fumehood', self.directory))
        shutil.copy(self.build / 'libfumehood.so.0', self.directory)
        (self.directory / 'filter').write_bytes(seccomp_filter())

    def compiled(self, name, *libraries):
        """The program of NAME.c."""
        program = self.directory / name
        if not program.exists():
            ours = ['-I', here.parent / 'include', '-L', self.build, '-lfumehood', '-pthread'] if 'fumehood' in libraries else []
            subprocess.run(['cc', '-O2', '-o', program, here / f'{name}.c', *ours,
                            *(f'-l{library}' for library in libraries if library != 'fumehood')], check=True)
        return str(program)

    def remove(self):
        shutil.rmtree(self.directory)


@contextlib.contextmanager
def ground(where):
    """The directory below which a place is made."""
    if where != JOURNAL:
        yield '/var/tmp' if where == DISK else '/dev/shm'
        return
    directory = Path(tempfile.mkdtemp(prefix='fumehood-bench-', dir='/var/tmp'))
    directory.chmod(0o755)
    mounted = directory / 'image.d'
    mounted.mkdir()
    try:
        with open(directory / 'image', 'wb') as image:
            image.truncate(2 << 30)
        subprocess.run(['mkfs.ext4', '-q', '-F', directory / 'image'], check=True, env={'PATH': SYSTEM_PATH})
        subprocess.run(['mount', '-o', 'loop', directory / 'image', mounted], check=True)
        try:
            yield mounted
        finally:
            subprocess.run(['umount', mounted], check=True)
    finally:
        shutil.rmtree(directory)


class Place:
    def __init__(self, tools, who, where, below):
        self.tools, self.who, self.where = tools, who, where
        self.settings = {}
        self.tag = 'bench' + secrets.token_hex(3)  # part of every id
        self.uid = USER_UID if who == USER and os.geteuid() == 0 else None
        self.base = Path(tempfile.mkdtemp(prefix='fumehood-bench-', dir=below))
        self.base.chmod(0o755)
        self.give(self.base)
        self.home, self.work = self.directory('home'), self.directory('work')
        self.inputs = Path(tempfile.mkdtemp(prefix='fumehood-bench-', dir='/var/tmp'))  # what is below /dev cannot be one
        self.inputs.chmod(0o755)
        self.data, self.docs = self.inputs / 'data', self.inputs / 'docs'
        self.data.mkdir(), self.docs.mkdir()
        for path in (self.data / 'input.csv', self.docs / 'method.md'):
            path.write_text('an input\n')
        self.env = {'PATH': SYSTEM_PATH, 'HOME': str(self.home), 'LANG': 'C.UTF-8', 'XDG_DATA_HOME': str(self.home / 'share'),
                    'XDG_STATE_HOME': str(self.home / 'state'), 'XDG_CONFIG_HOME': str(self.home / 'config'),
                    'LD_LIBRARY_PATH': str(tools.directory)}
        self.spaces = Path('/tmp')
        if where != DISK or machine.file_system('/tmp') == 'tmpfs':
            self.spaces = self.directory('spaces')
            self.configure(workspace=f'{{root: {self.spaces}, prefix: bench-}}')

    def directory(self, name):
        path = self.base / name
        path.mkdir()
        self.give(path)
        return path

    def give(self, path):
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)

    def configure(self, **settings):
        """Keys of the configuration, as YAML."""
        self.settings.update(settings)
        file = self.home / 'config/fumehood/config.yaml'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(f'{name}: {value}\n' for name, value in self.settings.items()))
        for path in (file.parent.parent, file.parent, file):
            self.give(path)

    # Running things, as whoever it is.

    def popen(self, *command, **others):
        became = {} if self.uid is None else {'user': self.uid, 'group': self.uid, 'extra_groups': []}
        options = dict(env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, text=True, **became)
        options.update(others)
        return subprocess.Popen([str(word) for word in command], **options)

    def run(self, *command, **others):
        """Its standard output; a failure is one of the bench."""
        process = self.popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **others)
        try:
            out, said = process.communicate()
        finally:  # interrupted
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            raise RuntimeError(f'{" ".join(map(str, command))[:120]} ended with {process.returncode}: {said.strip()[-300:]}')
        return out

    def hood(self, *words, **others):
        return self.run(self.tools.hood, *words, **others)

    def seconds(self, *command, **others):
        """By the clock, from its start to its end."""
        begun = time.monotonic()
        self.run(*command, **others)
        return time.monotonic() - begun

    def spawned(self, contestants, rounds, rest_ms=0, within=()):
        """{name: [milliseconds]}, and the same of processor's time, of commands started in turn (bench/spawn.c). within: words
        before it all."""
        words = [str(word) for command in contestants.values() for word in ['::', *command]]
        out = self.run(*within, 'sh', '-c', 'exec 9<"$0"; exec "$@"', self.tools.directory / 'filter', self.tools.compiled('spawn'),
                       str(rounds), str(rest_ms), *words)
        pairs = {name: [tuple(int(n) / 1e6 for n in word.split('/')) for word in line.split()]
                 for name, line in zip(contestants, out.splitlines())}
        return {name: [p[0] for p in seen] for name, seen in pairs.items()}, {name: [p[1] for p in seen] for name, seen in pairs.items()}

    # The contestants.

    def bubblewrap(self, *command, filtered=True):
        words = {'DATA': str(self.data), 'DOCS': str(self.docs), 'WORK': str(self.work)}
        return [shutil.which('bwrap', path=SYSTEM_PATH), *(words.get(word, word) for word in BUBBLEWRAP),
                *(['--seccomp', '9'] if filtered else []), '--', *command]

    def id(self, name):
        return f'{self.tag}-{name}'

    def hooded(self, name, *command, options=()):
        return [self.tools.hood, 'run', self.id(name), '--quiet', '--data', self.data, '--docs', self.docs, *options, '--', *command]

    def remove(self):
        for path in self.spaces.glob(f'*{self.tag}*'):  # of a row that failed half-way
            remove_tree(path)
        remove_tree(self.inputs)
        remove_tree(self.base)


@contextlib.contextmanager
def delegated(tools, place):
    """An ordinary user has a cgroup while it lasts."""
    if place.uid is None:
        yield
        return
    subprocess.run([tools.hood, 'doctor', '--quiet', '--delegate', str(place.uid)], check=True, env=place.env)
    try:
        yield
    finally:
        for top, names, _ in os.walk('/sys/fs/cgroup'):
            if f'fumehood.{place.uid}' in names:
                for path, below, _ in os.walk(os.path.join(top, f'fumehood.{place.uid}'), topdown=False):
                    os.rmdir(path)


@contextlib.contextmanager
def prepared(tools, who, where):
    with ground(where) as below:
        place = Place(tools, who, where, below)
        try:
            with delegated(tools, place):
                yield place
        finally:
            place.remove()


def whos(row):
    """As whom a row is measured: an ordinary user can be only himself."""
    return row.whos if os.geteuid() == 0 else () if row.only_root else (USER,)


def wheres(row):
    """Where it is: to mount something needs root."""
    return row.wheres if os.geteuid() == 0 else tuple(where for where in row.wheres if where != JOURNAL)
