"""A bad day: a site of its own, three workers and all that they need, in which disks fill, the server goes and comes back,
packets vanish, clocks jump and workers are killed, while some hundred analyses of every kind go on.

    site = Site(hood, 'postgresql')     or 'sqlite'
    work = Work(hood, 200)
    work.submit(site)
    site.start()
    site.strike('drop', 3.0)            one misfortune, for so many seconds
    …
    work.ended(site)                    all have ended, as they should, once; and nothing is left anywhere

What is mounted and whom it talks to is seen by nobody else: the site is a mount namespace and two network namespaces, the
workers' and the server's, with a cable in between. All of it goes with the processes that hold them.
"""
import errno
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import leaks
from until import until

HERE, THERE = '10.0.0.1', '10.0.0.2'  # in namespaces of their own: nobody else's
LEASE = 2  # seconds
WORKERS = 3
SIZES = {'ledger': 96, 'wal': 48, 'objects': 64, 'state': 24, 'tmp': 48}  # MiB
INODES = 6000
NOBODY = 65534
FILLER = 'filler'


def for_seconds(seconds):
    """A misfortune lasts as long as it lasts."""
    until(lambda: False, seconds)


class Server:
    """PostgreSQL with its data on one small disk and its log on another, at the other end of the cable."""

    def __init__(self, site):
        self.site, self.process = site, None
        self.data, self.wal = site.places['ledger'] / 'data', site.places['wal'] / 'log'
        found = sorted(Path('/usr/lib/postgresql').glob('*/bin'), key=lambda p: int(p.parent.name))
        self.bin = found[-1]
        self.url = f'postgresql://owner:s3cret@{THERE}:5432/postgres'

    def make(self):
        site = self.site
        (site.path('wal') / 'log').mkdir()
        for path in (site.path('ledger'), site.path('wal'), site.path('wal') / 'log'):
            os.chown(path, NOBODY, NOBODY)
        password = site.hood.base / 'password'
        password.write_text('s3cret\n')
        self.as_user(self.bin / 'initdb', '-D', self.data, '-X', self.wal, '-U', 'owner', f'--pwfile={password}',
                     '--auth=scram-sha-256', '--no-sync', '--no-instructions', '-E', 'UTF8', '--locale=C', '--wal-segsize=1')
        self.configure(f"listen_addresses = '{THERE}'", 'port = 5432', "unix_socket_directories = ''", 'fsync = off',
                       'full_page_writes = off', 'shared_buffers = 16MB', 'max_connections = 60', 'autovacuum = off',
                       'min_wal_size = 2MB', 'max_wal_size = 8MB')
        with open(site.path('ledger') / 'data/pg_hba.conf', 'a') as f:
            f.write('host all all samenet scram-sha-256\n')
        self.start()

    def configure(self, *lines):
        with open(self.site.path('ledger') / 'data/postgresql.conf', 'a') as f:
            f.write('\n'.join([*lines, '']))

    def words(self, *words):
        """The server refuses to run as root."""
        return ['nsenter', f'--mount=/proc/{self.site.pid}/ns/mnt', f'--net=/proc/{self.site.far.pid}/ns/net', '--wd=/',
                'setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', '--pdeathsig', 'QUIT', *map(str, words)]

    def as_user(self, *words):
        subprocess.run(self.words(*words), check=True, stdout=subprocess.DEVNULL, env={'PATH': os.environ['PATH'], 'LC_ALL': 'C'})

    def start(self):
        """Once it is up it answers; who was killed lets go of its memory only when its last process is gone."""
        end = time.monotonic() + 60
        while not (self.process and self.process.poll() is None and self.answers()):
            assert time.monotonic() < end, self.log()[-2000:]
            if not self.process or self.process.poll() is not None:
                with open(self.site.hood.base / 'server.log', 'a') as log:
                    self.process = subprocess.Popen(self.words(self.bin / 'postgres', '-D', self.data), stdin=subprocess.DEVNULL,
                                                    stdout=log, stderr=log, env={'PATH': os.environ['PATH'], 'LC_ALL': 'C'})
            until(lambda: self.process.poll() is not None or self.answers(), 10)

    def answers(self):
        return self.site.psql('SELECT 1', check=False, timeout=2) == ['1']

    def log(self):
        return (self.site.hood.base / 'server.log').read_text(errors='replace')

    def everybody(self):
        """The main process stands still first: then it starts no other."""
        main = self.process.pid
        os.kill(main, signal.SIGSTOP)
        until(lambda: Path(f'/proc/{main}/stat').read_text().rpartition(')')[2].split()[0] in 'TtZ')
        children = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(main)], stdout=subprocess.PIPE, text=True).stdout.split()
        return [*map(int, children), main]

    def stand_by(self):
        """Back from a backup, it follows a primary that is not there: whoever only reads is served."""
        self.stop(signal.SIGINT)
        (self.site.path('ledger') / 'data/standby.signal').touch()
        self.start()

    def promote(self):
        self.stop(signal.SIGINT)
        (self.site.path('ledger') / 'data/standby.signal').unlink()
        self.start()

    def remember(self):
        """As it is now, on another machine."""
        self.stop(signal.SIGINT)
        for name in ('ledger', 'wal'):
            self.site.inside('cp', '-a', self.site.places[name], self.site.hood.base / f'{name}.other')
        self.start()

    def fail_over(self):
        """The other machine takes its place, and never heard of what has happened since."""
        self.kill()
        for name in ('ledger', 'wal'):
            self.site.inside('sh', '-c', 'rm -rf "$1"/* && cp -a "$0"/. "$1" && rm -rf "$0"', self.site.hood.base / f'{name}.other',
                             self.site.places[name])
        (self.site.path('ledger') / 'data/postmaster.pid').unlink(missing_ok=True)
        self.start()

    def refuse_writes(self, refuse=True):
        self.admin('SET default_transaction_read_only = off',
                   f"ALTER SYSTEM SET default_transaction_read_only = {'on' if refuse else 'off'}", 'SELECT pg_reload_conf()')

    def shut_the_door(self, to):
        """Nobody new comes in, and nobody stays: no more connections, or another password."""
        self.admin({'connections': 'ALTER DATABASE postgres ALLOW_CONNECTIONS false', 'password': "ALTER ROLE owner PASSWORD 'new'"}[to],
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fumehood'")

    def open_the_door(self, to):
        self.admin({'connections': 'ALTER DATABASE postgres ALLOW_CONNECTIONS true', 'password': "ALTER ROLE owner PASSWORD 's3cret'"}[to],
                   password='new' if to == 'password' else 's3cret')

    def admin(self, *commands, password='s3cret'):
        words = [word for command in commands for word in ('-c', command)]
        self.site.inside('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', f'postgresql://owner:{password}@{THERE}:5432/template1', *words,
                         stdout=subprocess.DEVNULL)

    def send(self, number):
        for pid in self.everybody():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def freeze(self):
        self.send(signal.SIGSTOP)

    def thaw(self):
        self.send(signal.SIGCONT)

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    def stop(self, number=signal.SIGQUIT):
        """SIGQUIT: immediately, SIGINT: fast."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)


class Site:
    def __init__(self, hood, kind, clock=None, lease=LEASE):
        self.hood, self.kind, self.binary, self.clock, self.lease = hood, kind, hood.binary, clock, lease
        self.server, self.workers = None, [None] * WORKERS
        self.places = {'ledger': hood.base / 'ledger', 'wal': hood.base / 'wal', 'objects': hood.base / 'objects',
                       'state': hood.base / 'state', 'tmp': hood.base / 'tmp'}
        self.holder, self.far = None, None
        self.popen_arguments = hood.who.popen_arguments
        try:
            self.mount()
            self.furnish()
        except BaseException:
            self.close()
            raise

    # The ground.

    def hold(self, *words):
        process = subprocess.Popen([*words, 'sh', '-c', 'echo ready; exec cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == 'ready\n'
        return process

    def mount(self):
        self.holder = self.hold('unshare', '--mount', '--net', '--propagation', 'private')
        self.pid = self.holder.pid
        for name, place in self.places.items():
            place.mkdir()
            self.inside('mount', '-t', 'tmpfs', '-o', f'size={SIZES[name]}M,nr_inodes={INODES},mode=0700', 'none', place)
        if self.kind == 'postgresql':
            self.far = self.hold('unshare', '--net')
            self.inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far', 'netns', self.far.pid)
            for pid, name, address in ((self.pid, 'near', HERE), (self.far.pid, 'far', THERE)):
                for words in ('link set lo up', f'addr add {address}/30 dev {name}', f'link set {name} up'):
                    subprocess.run(['nsenter', f'--net=/proc/{pid}/ns/net', 'ip', *words.split()], check=True)

    def inside(self, *words, **others):
        return subprocess.run(['nsenter', f'--mount=/proc/{self.pid}/ns/mnt', f'--net=/proc/{self.pid}/ns/net', *map(str, words)],
                              check=True, **others)

    def path(self, name):
        """One of the places, as it is seen from here."""
        return Path(f'/proc/{self.pid}/root{self.places[name]}')

    def furnish(self):
        uid = self.hood.who.uid if self.hood.who.uid is not None else os.geteuid()
        # Even if these tests are killed nobody stays.
        user = ['setpriv', '--pdeathsig', 'KILL', *([] if self.hood.who.uid is None else [f'--reuid={uid}', f'--regid={uid}', '--clear-groups'])]
        words = ['nsenter', f'--mount=/proc/{self.pid}/ns/mnt', f'--net=/proc/{self.pid}/ns/net', 'sh', '-c', 'cd "$0" && exec "$@"']
        wrapper = self.hood.base / 'inside'
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$PWD" {shlex.join([*user, str(self.binary)])} "$@"\n')
        wrapper.chmod(0o755)
        self.hood.binary, self.hood.who.popen_arguments = wrapper, dict
        for name in ('objects', 'state', 'tmp', *(['ledger'] if self.kind == 'sqlite' else [])):
            os.chown(self.path(name), uid, uid)
        if self.kind == 'postgresql':
            self.server = Server(self)
            self.server.make()
            self.url = f'{self.server.url}?objects={self.places["objects"]}/store'
        else:
            self.url = f'sqlite:{self.places["ledger"]}/ledger.db?objects={self.places["objects"]}/store'
        self.hood.env['FUMEHOOD_DB'] = self.url
        for k in range(WORKERS):
            for name in ('state', 'tmp'):
                (self.path(name) / str(k)).mkdir(mode=0o700)
                os.chown(self.path(name) / str(k), uid, uid)
            self.hood.write(self.hood.base / f'worker-{k}.yaml', f'''workspace: {{root: {self.places["tmp"]}/{k}}}
state_dir: {self.places["state"]}/{k}
post_process: {{tables: {{scores: {{columns: [n], fill: {{analysis_id: '{{id}}'}}}}}}}}
queue: {{users: {{owner: {uid}}}}}
''')
        self.hood.write(self.hood.home / 'config/fumehood/config.yaml', (self.hood.base / 'worker-0.yaml').read_text())
        self.hood.succeed('db', 'init')
        self.sql('CREATE TABLE scores(n integer, analysis_id text)')

    # The ledger, asked from outside.

    def psql(self, text, check=True, timeout=60, near=True):
        """near: over the cable; else from where the server is."""
        env = {'PATH': os.environ['PATH'], 'PGCONNECT_TIMEOUT': '2'}
        try:
            done = subprocess.run(['nsenter', f'--net=/proc/{self.pid if near else self.far.pid}/ns/net', 'psql', '-XqAt', '-v',
                                   'ON_ERROR_STOP=1', '-d', self.server.url, '-c', text], check=True, stdout=subprocess.PIPE,
                                  stderr=None if check else subprocess.DEVNULL, text=True, env=env, timeout=timeout)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            if check:
                raise
            return None
        return done.stdout.splitlines()

    def sql(self, text, check=True):
        """{T} stands for the tables' prefix."""
        if self.server:
            return self.psql(text.replace('{T}', 'fumehood.'), check)
        uid = self.hood.who.uid
        user = ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups'] if uid else []
        try:
            return self.inside(*user, 'sqlite3', '-bail', '-cmd', '.timeout 20000', self.places['ledger'] / 'ledger.db',
                               text.replace('{T}', 'fumehood_'), stdout=subprocess.PIPE, stderr=None if check else subprocess.DEVNULL,
                               text=True).stdout.splitlines()
        except subprocess.CalledProcessError:
            if check:
                raise
            return None

    # Workers.

    def start(self, *numbers, behind=0):
        for k in numbers or range(WORKERS):
            env = {}
            if self.clock:
                self.set_clock(k, behind)
                env = {'LD_PRELOAD': str(self.clock), 'CLOCK_BACK_FILE': str(self.hood.base / f'clock-{k}')}
            with open(self.hood.base / f'worker-{k}.log', 'a') as log:
                self.workers[k] = self.hood.popen('worker', '--jobs', 2, '--lease', f'{self.lease}s', '--config',
                                                  self.hood.base / f'worker-{k}.yaml', stdout=log, stderr=log, env=env)

    def said(self):
        return '\n'.join(f'--- worker {k}\n' + (self.hood.base / f'worker-{k}.log').read_text(errors='replace')[-2500:]
                         for k in range(WORKERS) if self.workers[k])

    def set_clock(self, k, behind):
        new = self.hood.base / 'clock.new'
        new.write_text(str(int(behind)))
        new.chmod(0o644)
        new.rename(self.hood.base / f'clock-{k}')

    # Misfortunes.

    def fill(self, name):
        with open(self.path(name) / FILLER, 'ab', buffering=0) as f:
            for size in (1 << 20, 1 << 16, 1 << 12, 1):
                try:
                    while True:
                        f.write(bytes(size))
                except OSError as e:
                    assert e.errno == errno.ENOSPC

    def free(self, name):
        (self.path(name) / FILLER).unlink(missing_ok=True)
        if self.server and name in ('ledger', 'wal'):
            self.server.start()  # a log without room ends it

    def fill_inodes(self, name):
        place = self.path(name) / FILLER
        place.mkdir()
        try:
            for n in range(INODES):
                (place / str(n)).touch()
        except OSError as e:
            assert e.errno == errno.ENOSPC
        else:
            raise AssertionError('there are more inodes than there should be')

    def free_inodes(self, name):
        shutil.rmtree(self.path(name) / FILLER)
        if self.server and name in ('ledger', 'wal'):
            self.server.start()

    def cut(self, cut=True):
        """Packets go to nobody, either way, and nobody says so."""
        for pid, name, address in ((self.pid, 'near', THERE), (self.far.pid, 'far', HERE)):
            words = f'replace {address} lladdr 02:00:00:00:00:99 dev {name} nud permanent' if cut else f'del {address} dev {name}'
            subprocess.run(['nsenter', f'--net=/proc/{pid}/ns/net', 'ip', 'neigh', *words.split()], check=True)

    def strike(self, what, seconds):
        name, _, which = what.partition(':')
        begin, end = {
            'kill': lambda: (self.server.kill, self.server.start),
            'immediate': lambda: (self.server.stop, self.server.start),
            'fast': lambda: (lambda: self.server.stop(signal.SIGINT), self.server.start),
            'freeze': lambda: (self.server.freeze, self.server.thaw),
            'drop': lambda: (self.cut, lambda: self.cut(False)),
            'standby': lambda: (self.server.stand_by, self.server.promote),
            'readonly': lambda: (self.server.refuse_writes, lambda: self.server.refuse_writes(False)),
            'shut': lambda: (lambda: self.server.shut_the_door(which), lambda: self.server.open_the_door(which)),
            'failover': lambda: (self.server.remember, self.server.fail_over),
            'inodes': lambda: (lambda: self.fill_inodes(which), lambda: self.free_inodes(which)),
            'full': lambda: (lambda: self.fill(which), lambda: self.free(which)),
            'worker': lambda: (lambda: self.kill_worker(int(which)), lambda: self.start(int(which))),
            'clock': lambda: (lambda: self.jump(which), lambda: None),
        }[name]()
        begin()
        for_seconds(seconds)
        end()

    def kill_worker(self, k):
        self.workers[k].kill()
        self.workers[k].wait()
        self.workers[k] = None

    def jump(self, which):
        """K=SECONDS: worker K's clock is behind by so much."""
        k, seconds = which.split('=')
        self.set_clock(k, float(seconds))

    # The end.

    def rest(self):
        """Workers go home; what they could not finish gc does."""
        for worker in self.workers:
            if worker:
                worker.send_signal(signal.SIGTERM)
        status = [worker.wait(120) for worker in self.workers if worker]
        assert not any(status), (status, self.said())
        for k in range(WORKERS):
            result = self.hood.cli('gc', '--config', self.hood.base / f'worker-{k}.yaml')
            assert result.status == 0 and not result.err, result

    def left(self):
        """What must not be there when all is done."""
        found = []
        for k in range(WORKERS):
            found += [f'record: {p}' for p in (self.path('state') / f'{k}/runs').glob('*')]
            found += [f'workspace: {p}' for p in (self.path('tmp') / f'{k}').iterdir()]
        store = self.path('objects') / 'store'
        found += [f'object on its way: {p}' for name in ('tmp', 'pins') for p in (store / name).glob('*')]
        digest = "encode(sha256, 'hex')" if self.server else 'lower(hex(sha256))'
        known = set(self.sql(f'SELECT {digest} FROM {{T}}blob WHERE content IS NULL'))
        there = {p.name for p in store.glob('??/*')}
        found += [f'object of nobody: {name}' for name in there - known] + [f'object that is gone: {name}' for name in known - there]
        if self.server:
            found += self.sql("SELECT 'connection: ' || pid || ' ' || state FROM pg_stat_activity WHERE application_name = 'fumehood'")
        found += [line for line in leaks.find({self.hood.tag + '-'}) if '/postgres ' not in line]
        return found

    def close(self):
        for worker in self.workers:
            if worker and worker.poll() is None:
                worker.kill()
                worker.wait()
        if self.server and self.server.process and self.server.process.poll() is None:
            self.server.kill()
        for holder in (self.far, self.holder):
            if holder:
                holder.stdin.close()
                holder.wait(30)
        self.hood.binary, self.hood.who.popen_arguments = self.binary, self.popen_arguments


POST = 'sh post.sh'
NAP = 'sleep $((${FUMEHOOD_ID##*-} % 4)); '  # some end during an outage, some outlast it
SMALL = 'until echo $FUMEHOOD_ID >small; do sleep 0.05; done; '  # a full disk is waited for
LARGE = 'until echo $FUMEHOOD_ID >large && head -c 100000 /dev/zero >>large; do sleep 0.05; done; '


class Work:
    """Analyses of every kind, and how each is to end."""

    def __init__(self, hood, count):
        self.hood, self.count, self.requests, self.expected, self.rows = hood, count, [], {}, {}
        hood.write('post.sh', 'for n in 1 2 3; do echo "{\\"table\\": \\"scores\\", \\"row\\": {\\"n\\": $n}}"; done\n')
        for i in range(count):
            self.add(i)

    def name(self, i):
        return f'{self.hood.tag}-{i}'

    def add(self, i):
        id, kind = self.name(i), i % 10
        script, verdict, outputs, more = NAP + SMALL, 'succeeded', ['small'], {}
        if kind in (2, 3, 8):
            script, outputs = NAP + LARGE + SMALL, ['large', 'small']
        if kind in (4, 8):
            more['post_process'] = POST
            self.rows[id] = ['1', '2', '3']
        if kind == 5:
            script, verdict = script + 'exit 3', 'failed'
        if kind == 6:
            more['after'] = [self.name(i - 6), self.name(i - 3)]
        if kind == 7:  # of one that fails
            more['after'] = [self.name(i - 2)]
            verdict = None
        content = {'small': f'{id}\n'.encode(), 'large': f'{id}\n'.encode() + bytes(100000)}
        self.requests.append({'id': id, 'command': ['sh', '-c', script], 'retries': 100, **more})
        self.expected[id] = (verdict, {o: hashlib.sha256(content[o]).hexdigest() for o in outputs} if verdict else {})

    def submit(self, count):
        """The next so many, in whole tens: whoever comes after others does so within ten."""
        some, self.requests = self.requests[:count], self.requests[count:]
        self.hood.write('many.jsonl', ''.join(json.dumps(r) + '\n' for r in some))
        self.hood.succeed('submit', '-f', 'many.jsonl')

    def left(self, site):
        """How many have not ended; None: it cannot be asked now."""
        answer = site.sql("SELECT count(*) FROM {T}queue WHERE state IN ('waiting', 'queued', 'running')", check=False)
        return int(answer[0]) if answer else None

    def goes_on(self, site, n=2):
        """Some more end: they are at it again; and there is more to do, while there is any."""
        before = self.left(site)
        assert before is not None, 'the ledger does not answer'
        if before < 10 and self.requests:
            self.submit(10)
            before += 9  # one of which was cancelled, perhaps, before it was queued
        wanted = max(before - n, 0)
        assert until(lambda: (self.left(site) or 0) <= wanted, 120), f'nothing goes on:\n{site.said()}'
        return wanted

    def ended(self, site, killed=False):
        if self.requests:
            self.submit(len(self.requests))
        done = until(lambda: self.left(site) == 0, 120 + self.count)
        if not done:
            rows = site.sql("SELECT id, state, tries, worker, reason FROM {T}queue WHERE state IN ('waiting', 'queued', 'running')")
            raise AssertionError('\n'.join(['they have not ended:', *rows[:10], site.said()]))
        site.rest()
        self.check_attempts(site, killed)
        self.check_outputs(site)
        self.check_rows(site)
        found = until(lambda: site.left() == [], 20) or site.left()
        assert found is True, '\n'.join(found[:20])
        problems = self.hood.succeed('db', 'check', '--json').json['problems']
        assert problems == [], problems

    def check_attempts(self, site, killed):
        attempts = {}
        for row in site.sql('SELECT analysis_id, verdict FROM {T}attempt ORDER BY analysis_id, number'):
            id, verdict = row.split('|')
            attempts.setdefault(id, []).append(verdict)
        wrong = []
        for id, (verdict, _) in self.expected.items():
            found = attempts.pop(id, [])
            lost = found.count('lost')
            kept = [v for v in found if v != 'lost']
            if kept != ([verdict] if verdict else []) or (lost and not killed):
                wrong.append(f'{id}: {found}, and not {verdict}')
        wrong += [f'{id}: nobody asked for it' for id in attempts]
        if wrong:
            why = site.sql("SELECT analysis_id, number, verdict, reason FROM {T}attempt WHERE verdict NOT IN ('succeeded') LIMIT 20")
            raise AssertionError('\n'.join([*wrong[:20], *why, site.said()]))
        states = dict(row.split('|') for row in site.sql('SELECT id, state FROM {T}queue'))
        assert states == {id: 'finished' if verdict else 'cancelled' for id, (verdict, _) in self.expected.items()}

    def check_outputs(self, site):
        digest = "encode(sha256, 'hex'), convert_from(path, 'UTF8')" if site.server else 'lower(hex(sha256)), CAST(path AS TEXT)'
        found = {}
        for row in site.sql(f"SELECT analysis_id, {digest} FROM {{T}}output o WHERE EXISTS (SELECT 1 FROM {{T}}attempt a WHERE "
                            "a.analysis_id = o.analysis_id AND a.number = o.attempt AND a.verdict <> 'lost')"):
            id, sha256, path = row.split('|')
            assert path not in found.setdefault(id, {}), f'{id}: {path} twice'
            found[id][path] = sha256
        assert found == {id: outputs for id, (_, outputs) in self.expected.items() if outputs}

    def check_rows(self, site):
        found = {}
        for row in site.sql('SELECT analysis_id, n FROM scores ORDER BY analysis_id, n'):
            id, n = row.split('|')
            found.setdefault(id, []).append(n)
        assert found == self.rows


def plan(seed, kinds, rounds, lengths):
    """What befalls them, when it is left to chance. Clocks are wrong by seconds, by minutes, by an hour or by a day."""
    dice = random.Random(seed)
    for _ in range(rounds):
        kind = dice.choice(kinds)
        if kind == 'clock':
            kind = f'clock:{dice.randrange(WORKERS)}={dice.choice([-1, 1]) * dice.choice([3, 7, 20, 90, 5000, 90000])}'
        elif kind == 'worker':
            kind = f'worker:{dice.randrange(WORKERS)}'
        yield kind, dice.choice(lengths) * LEASE
