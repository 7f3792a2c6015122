"""A Slurm of the tests' own (tests/support/with-slurm), and a site on it: a PostgreSQL ledger, a user, his dispatcher."""
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'tests/e2e'))
import ledgers  # noqa: E402
from hood import Result  # noqa: E402
from until import until  # noqa: E402

SECONDS = 300  # longer than anything here takes; a hang fails
USER = 'games'  # an ordinary user that every Debian has: Slurm does not know who is not in passwd
PATH = '/usr/local/bin:/usr/bin:/bin'


class Cluster:
    """with-slurm, which ends what it has started when we close its input."""

    def __init__(self, *options):
        words = [TOP / 'tests/support/with-slurm', *options, '--serve']
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, _, said = self.process.stdout.readline().partition(' ')
        assert word == 'ready', f'Slurm did not start: {word} {said}'
        found = json.loads(said)
        self.dir, self.nodes = Path(found['TEST_SLURM_DIR']), found['TEST_SLURM_NODES'].split()
        self.conf = found['SLURM_CONF']
        # Who owns it may do everything with it.
        owner = self.dir.stat()
        self.who = {} if owner.st_uid == os.geteuid() else {'user': owner.st_uid, 'group': owner.st_gid, 'extra_groups': []}

    def tell(self, verb, name):
        """start, kill or stop: slurmctld, or the slurmd of a node."""
        self.process.stdin.write(f'{verb} {name}\n')
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said == 'ok', (verb, name, said)

    def restart_controller(self):
        self.tell('stop', 'slurmctld')
        self.tell('start', 'slurmctld')

    def ask(self, *words, check=True):
        """A command of Slurm's, as who owns it; what it said."""
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd='/',
                              env={'PATH': PATH, 'SLURM_CONF': self.conf}, **self.who)
        assert not check or done.returncode == 0, (words, done.stdout)
        return done.stdout.strip()

    def jobs(self, *options):
        """Jobs of Slurm that have not ended: (id, comment, state, reason, node) of each."""
        said = self.ask('squeue', '-h', '-r', '-o', '%i|%k|%T|%r|%N', *options)
        return [line.split('|') for line in said.splitlines()]

    def end_soon(self, job):
        """Its time is over, for Slurm, which looks twice a minute. By the controller's second: `now` may be over there, and is refused then."""
        self.ask('scontrol', 'update', f'jobid={job}', 'endtime=now+5')

    def fail(self, node):
        """The node is down for Slurm, and nobody reaches what runs there."""
        self.tell('kill', node)
        self.ask('scontrol', 'update', f'nodename={node}', 'state=down', 'reason=test')

    def heal(self, node):
        self.tell('start', node)

    def left(self):
        """What analyses have left on the nodes."""
        return [str(path) for node in self.nodes for path in (self.dir / 'nodes' / node / 'tmp').iterdir()
                if 'scidex-analysis' in path.name]

    def close(self):
        self.process.stdin.close()
        self.process.wait(SECONDS)


class Site:
    """One user with a home that all nodes share, as on a cluster, and a ledger of this test alone."""

    def __init__(self, cluster, binary, server, user):
        self.cluster, self.server, self.user = cluster, server, user
        self.entry = pwd.getpwnam(user) if user else pwd.getpwuid(os.geteuid())
        self.base = Path(tempfile.mkdtemp(prefix='fumehood-site-', dir='/var/tmp'))
        self.base.chmod(0o755)
        self.binary, self.tag, self.processes = binary, 's' + secrets.token_hex(3), []
        self.home, self.logs, self.bin = self.directory('home', 0o700), self.directory('logs'), self.base / 'bin'
        self.who = {} if self.entry.pw_uid == os.geteuid() else \
            {'user': self.entry.pw_uid, 'group': self.entry.pw_gid, 'extra_groups': []}
        owner, password, host, port = re.match(r'postgresql://(.*):(.*)@(.*):(\d+)/', server.url).groups()
        self.database = 'd' + secrets.token_hex(4)
        self.psql(server.url, f'CREATE DATABASE {self.database}')
        self.direct = re.sub(r'/postgres$', f'/{self.database}', server.url)
        self.url = f'postgresql://{owner}@{host}:{port}/{self.database}'
        self.password = password
        self.write('home/.pgpass', f'{host}:{port}:*:{owner}:{password}\n', 0o600)
        self.env = {'PATH': PATH, 'HOME': str(self.home), 'LANG': 'C.UTF-8', 'FUMEHOOD_DB': self.url,
                    'SLURM_CONF': cluster.conf}
        self.configure()
        self.succeed('db', 'init')

    def give(self, path):
        if self.entry.pw_uid != os.geteuid():
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)
        return path

    def directory(self, name, mode=0o755):
        path = self.base / name
        path.mkdir(parents=True)
        path.chmod(mode)
        return self.give(path)

    def write(self, name, text, mode=0o644):
        path = self.base / name
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir()
                self.give(parent)
        path.write_text(text)
        path.chmod(mode)
        return self.give(path)

    def configure(self, queue='', options=(), **slurm):
        """The user's configuration; slurm's keys beside those that every test has. A short lease, so that what a node tells comes often."""
        slurm = {'poll': '500ms', 'log': str(self.logs), 'command': str(self.binary),
                 'options': [f'--comment={self.tag}', *options], **slurm}
        self.write('home/.config/fumehood/config.yaml', json.dumps({
            'queue': {'users': {'owner': self.entry.pw_uid}, 'lease': '9s', **(queue or {})},
            'slurm': {key: value for key, value in slurm.items() if value is not None}}))

    def let_submit_as_users(self):
        """What jobs of USER's need is readable for him, and what makes a configuration of a dispatcher that submits as an owner's user."""
        his, passwords = pwd.getpwnam(USER), self.base / 'passwords'
        shutil.copy(self.home / '.pgpass', passwords)
        passwords.chmod(0o600)
        os.chown(passwords, his.pw_uid, his.pw_gid)
        self.env['PGPASSFILE'] = str(passwords)
        self.logs.chmod(0o1777)

        def configure(owner, **slurm):
            self.configure(queue={'users': {owner: USER}}, submit_as_user=True, **slurm)
            config = json.loads((self.home / '.config/fumehood/config.yaml').read_text())
            return self.write('config.yaml', json.dumps({**config, 'state_dir': str(self.cluster.dir / 'local' / self.tag)}))
        return configure

    def wrap(self, command, before='', after=''):
        """From now on the dispatcher finds, beside Slurm's own commands, this one with lines of a shell around it."""
        if not self.bin.exists():
            self.directory('bin')
            for name in ('sbatch', 'squeue', 'scancel', 'scontrol'):
                os.symlink(f'/usr/bin/{name}', self.bin / name)
        (self.bin / command).unlink()
        self.write(f'bin/{command}', f'#!/bin/sh\n{before}\n/usr/bin/{command} "$@"\nstatus=$?\n{after}\nexit $status\n', 0o755)
        return str(self.bin)

    def jobs(self):
        return [job for job in self.cluster.jobs() if job[1] == self.tag]

    # The command.

    def popen(self, *arguments, env=None, **others):
        options = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.base,
                       env={**self.env, **(env or {})}, start_new_session=True, **self.who)
        options.update(others)
        self.processes.append(subprocess.Popen([str(self.binary), *map(str, arguments)], **options))
        return self.processes[-1]

    def cli(self, *arguments, **others):
        process = self.popen(*arguments, **others)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f'{arguments} did not end: {process.communicate()}') from None
        return Result(process.returncode, out, err)

    def succeed(self, *arguments, **others):
        result = self.cli(*arguments, **others)
        assert result.status == 0, (arguments, result)
        return result

    def submit(self, name, *words):
        """`submit ID … -- sh -c SCRIPT`: the last word is the script."""
        id = f'{self.tag}-{name}'
        self.succeed('submit', id, *words[:-1], '--', 'sh', '-c', words[-1])
        return id

    def submit_many(self, requests):
        """One `submit -f` of many: dictionaries of requests. Their ids."""
        for request in requests:
            request['id'] = f'{self.tag}-{request["id"]}'
        self.write('many.jsonl', ''.join(json.dumps(request) + '\n' for request in requests))
        self.succeed('submit', '--quiet', '-f', 'many.jsonl')
        return [request['id'] for request in requests]

    def dispatch(self, *options):
        """Starts a dispatcher; what it says is in a file."""
        log = open(self.base / f'dispatcher.{len(self.processes)}', 'w+')
        return self.popen('worker', '--engine', 'slurm', *options, stdout=log, stderr=log)

    def drain(self, *options):
        """A dispatcher until all has ended."""
        process = self.dispatch('--drain', *options)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f'the dispatcher did not end\n{self.said()}') from None
        assert status == 0, (status, self.said())

    def drain_under(self, words):
        """The same below another command; its status."""
        with open(self.base / f'dispatcher.{len(self.processes)}', 'w+') as log:
            command = [*words, str(self.binary), 'worker', '--engine', 'slurm', '--drain']
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.base, env=self.env,
                                                   start_new_session=True, **self.who))
        return self.processes[-1].wait(SECONDS)

    def said(self):
        """What dispatchers and jobs have said, for who reads why a test failed."""
        files = [*sorted(self.base.glob('dispatcher.*')), *sorted(self.logs.rglob('*'))[:40]]
        return '\n'.join(f'--- {path.name}\n{path.read_text(errors="replace")[-2000:]}' for path in files if path.is_file()) + \
            f'\n--- squeue\n{self.cluster.ask("squeue", "-t", "all", "-r", check=False)[-6000:]}'

    def show(self, id):
        return json.loads(self.succeed('show', id, '--json').out)

    def rows(self):
        return {row['id']: row for row in json.loads(self.succeed('ls', '--json').out)}

    def until_running(self, id):
        """A node has taken it, and its command runs: where."""
        def running():
            found = self.show(id)
            return (found.get('live') or {}).get('stage') == 'running' and found['engine']
        return until(running, 60) or self.give_up(id)

    def until_known(self, id, **wanted):
        """Slurm has said these words of it."""
        def known():
            found = self.show(id)['engine'] or {}
            return found if all(word in found.get(key, '') for key, word in wanted.items()) and 'job' in found else None
        return until(known, 60) or self.give_up(id)

    def give_up(self, id):
        raise AssertionError(f'{id}: {self.show(id)}\n{self.said()}')

    def until_verdict(self, id, seconds=90):
        until(lambda: self.rows()[id]['verdict'], seconds) or self.give_up(id)
        return self.show(id)

    def psql(self, url, text):
        out = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', text], check=True,
                             stdout=subprocess.PIPE, text=True, env={'PATH': os.environ['PATH']})
        return out.stdout.splitlines()

    def sql(self, text):
        return self.psql(self.direct, text)

    def stop(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        return process.wait(60)

    # The end.

    def problems(self):
        """What is left anywhere, once all has ended."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        until(lambda: not self.left(), 30)
        return self.left()

    def left(self):
        found = [f'left on a node: {path}' for path in self.cluster.left() if self.tag in path]
        found += [f'a record is left: {path}' for path in self.home.glob('.local/state/**/runs/*') if self.tag in path.name]
        found += [f'a job is left: {job}' for job in self.jobs()]
        found += [f'a row is left in the queue: {row}' for row in self.sql(
            "SELECT id, state, batch FROM fumehood.queue WHERE batch IS NOT NULL")]
        return found

    def remove(self):
        self.psql(self.server.url, f'DROP DATABASE {self.database} WITH (FORCE)')
        shutil.rmtree(self.base)


def server():
    """A PostgreSQL server with room for a connection of everybody on all nodes."""
    os.environ.setdefault('TEST_POSTGRES_CONNECTIONS', '200')
    return ledgers.Server()
