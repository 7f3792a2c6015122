"""The command as a test sees it: `hood.run(...)` for one analysis, `hood.cli(...)` for any command."""
import contextlib
import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import leaks
from until import until

SECONDS = 600  # longer than anything here takes; a hang fails
SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin'


class Who:
    """Who calls: us as we are, or an ordinary user with this uid."""

    def __init__(self, uid):
        self.uid = uid
        self.is_root = uid is None and os.geteuid() == 0

    def name(self):
        uid = os.geteuid() if self.uid is None else self.uid
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)

    def popen_arguments(self):
        return {} if self.uid is None else {'user': self.uid, 'group': self.uid, 'extra_groups': []}

    def give(self, path):
        if self.uid is not None:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f'status {self.status}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}'


class Hood:
    def __init__(self, binary, who):
        self.binary, self.who = binary, who
        self.tag = 't' + secrets.token_hex(4)  # part of every id of this test
        self.ids = 0
        self.processes = []
        self.prefix = []  # words before the command; whoever sets them says in them who calls (conftest: forbid)
        self.base = Path(tempfile.mkdtemp(prefix=f'fumehood-{self.tag}-', dir='/var/tmp'))
        self.base.chmod(0o755)
        self.home, self.dir = self.directory('home', 0o700), self.directory('platform', 0o755)
        self.env = {'PATH': SYSTEM_PATH, 'HOME': str(self.home), 'LANG': 'C.UTF-8',
                    'XDG_DATA_HOME': str(self.home / 'share'), 'XDG_STATE_HOME': str(self.home / 'state'),
                    'XDG_CONFIG_HOME': str(self.home / 'config')}
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS'):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.furnish()
        self.before = self.snapshot()

    # The platform.

    def directory(self, name, mode=0o755):
        path = self.base / name
        path.mkdir(parents=True)
        path.chmod(mode)
        self.who.give(path)
        return path

    def furnish(self):
        self.write('data/genes.csv', 'gene,value\nTP53,0.9\nBRCA1,0.7\n')
        self.write('data/deep/er/more.txt', 'more\n')
        self.write('docs/method.md', '# How it was measured\n')
        self.write('site/index.html', '<p>the site</p>\n')
        self.write('api.py', 'print("the API")\n')

    def write(self, name, text, mode=0o644):
        """Makes a file below the platform's directory (or anywhere, by an absolute name), owned by the caller."""
        path = self.dir / name
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir()
                self.who.give(parent)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        self.who.give(path)
        return path

    def snapshot(self):
        """Everything about every file that no analysis may change."""
        seen = {}
        for name in ['data', 'docs', 'site', 'api.py']:
            for path in [self.dir / name, *sorted((self.dir / name).rglob('*'))]:
                s = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(s.st_mode) else None
                seen[str(path)] = (s.st_mode, s.st_uid, s.st_gid, s.st_ino, s.st_mtime_ns, s.st_ctime_ns, content)
        return seen

    def platform_changed_on_purpose(self):
        """A test that itself puts something below data/ says so, before it runs anything."""
        self.before = self.snapshot()

    # The command.

    def id(self):
        self.ids += 1
        return f'{self.tag}-{self.ids}'

    def popen(self, *arguments, env=None, cwd=None, **others):
        options = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors='surrogateescape', cwd=cwd or self.dir, env={**self.env, **(env or {})},
                       start_new_session=True, **({} if self.prefix else self.who.popen_arguments()))
        options.update(others)
        self.processes.append(subprocess.Popen([*map(str, self.prefix), str(self.binary), *map(str, arguments)], **options))
        return self.processes[-1]

    def cli(self, *arguments, stdin=None, **others):
        if stdin is not None:
            others['stdin'] = subprocess.PIPE
        process = self.popen(*arguments, **others)
        try:
            out, err = process.communicate(stdin, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f'{arguments} did not end:\n{Result("none", out, err)}') from None
        return Result(process.returncode, out, err)

    def run(self, command, *options, id=None, **others):
        """`run --json`: one analysis, whole. Its object is .json."""
        words = command if isinstance(command, list) else ['sh', '-c', command]
        return self.cli('run', id or self.id(), '--json', *options, '--', *words, **others)

    def python(self, text, *options, **others):
        """Runs text as analysis.py."""
        self.write('analysis.py', text)
        return self.run(['python3', 'analysis.py'], *options, **others)

    def succeed(self, *arguments, **others):
        result = self.cli(*arguments, **others)
        assert result.status == 0, result
        return result

    def start(self, script, *options, id=None, **others):
        """Starts `sh -c script` and returns (process, id) once the script has printed a line, so it is running."""
        id = id or self.id()
        process = self.popen('run', id, *options, '--', 'sh', '-c', script, id, **others)
        line = process.stdout.readline()
        if not line:
            raise AssertionError(f'it did not start:\n{Result(process.wait(), "", process.stderr.read())}')
        return process, id

    def log(self, id):
        return self.succeed('logs', id).out

    def verdict(self, id):
        return json.loads(self.succeed('show', id, '--json').out)['verdict']

    def workspace(self, id):
        return Path(f'/tmp/scidex-analysis-{id}')

    def nothing_was_recorded(self):
        return json.loads(self.succeed('ls', '--json').out) == []

    # The end.

    def made_up_ids(self):
        """Ids that the command made up are in the ledger."""
        if not (self.home / 'share').exists():
            return set()
        result = self.cli('ls', '--json')
        return {row['id'] for row in result.json} if result.status == 0 else set()

    def problems(self):
        for process in self.processes:  # of a test that failed half-way
            if process.poll() is None:
                process.kill()
                process.wait()
        words = {id for id in self.made_up_ids() if self.tag not in id}
        until(lambda: not leaks.find({self.tag}, words), 30)
        found = leaks.find({self.tag}, words)
        after = self.snapshot()
        for path in sorted(self.before.keys() | after.keys()):
            if self.before.get(path) != after.get(path):
                found.append(f'{path} was changed: {self.before.get(path)} -> {after.get(path)}')
        if found:  # for instance of a supervisor that had to be killed: it is told once, whether or not it can be swept
            with contextlib.suppress(AssertionError):
                self.cli('gc')
            if leaks.Ground.here:
                leaks.Ground.here.tell()
        return found

    def remove(self):
        shutil.rmtree(self.base)


@contextlib.contextmanager
def delegated(hood):
    """While it lasts, an ordinary user has a cgroup in which limits can be held; root, or whoever runs the tests as an
    ordinary user, has one anyway. That nothing is left in it is part of its end."""
    uid = hood.who.uid
    if uid is None:
        yield
        return
    subprocess.run([hood.binary, 'doctor', '--quiet', '--delegate', str(uid)], check=True, env=hood.env)
    try:
        yield
    finally:
        name, left = f'fumehood.{uid}', []
        for top in [top for top, names, _ in os.walk('/sys/fs/cgroup') if name in names]:
            left += [path for path in Path(top, name).iterdir() if path.is_dir()]
            if not left:
                os.rmdir(os.path.join(top, name))
        assert not left, f'cgroups left behind: {left}'
