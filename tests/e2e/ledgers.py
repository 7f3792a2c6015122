"""The ledger of a test: SQLite, or a PostgreSQL server that is started once for all of them."""
import os
import re
import secrets
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from until import until

TOP = Path(__file__).resolve().parents[2]


class Server:
    """A PostgreSQL server of our own; with-postgres removes it when its command ends."""

    def __init__(self):
        script = 'echo "$TEST_POSTGRES_TCP"; cat >/dev/null'
        self.process = subprocess.Popen([TOP / 'tests/support/with-postgres', 'sh', '-c', script],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url, 'PostgreSQL did not start'

    def stop(self):
        self.process.stdin.close()
        self.process.wait(300)


class Sqlite:
    name = 'sqlite'

    def __init__(self, hood):
        hood.succeed('db', 'init')
        self.path = hood.home / 'share/fumehood/ledger.db'
        self.url = f'sqlite:{self.path}'
        self.who = hood.who

    def sql(self, text):
        """Rows of the last statement, as text separated by '|'; as the caller, who owns the file."""
        out = subprocess.run(['sqlite3', '-bail', '-cmd', '.timeout 20000', str(self.path), text], check=True, stdout=subprocess.PIPE, text=True,
                             **self.who.popen_arguments())
        return out.stdout.splitlines()

    def is_locked(self):
        done = subprocess.run(['sqlite3', '-bail', str(self.path), 'BEGIN IMMEDIATE; ROLLBACK'], stderr=subprocess.DEVNULL,
                              **self.who.popen_arguments())
        return done.returncode != 0

    def table(self, name):
        return f'fumehood_{name}'

    def close(self):
        pass


class Postgres:
    """A database of its own on the server."""
    name = 'postgres'

    def __init__(self, hood, server, objects_inside=False):
        self.server = server
        self.database = 'd' + secrets.token_hex(4)
        self.psql(server.url, f'CREATE DATABASE {self.database}')
        self.url = re.sub(r'/postgres$', f'/{self.database}', server.url) 
        self.plain = self.url
        if not objects_inside:
            self.url += f'?objects={hood.home}/objects'
        hood.env['FUMEHOOD_DB'] = self.url
        # One user, one role: what he submits his own worker runs with his own rights, because he says so.
        uid = hood.who.uid if hood.who.uid is not None else os.geteuid()
        hood.write(hood.home / 'config/fumehood/config.yaml', f'queue: {{users: {{owner: {uid}}}}}\n')
        hood.succeed('db', 'init')

    def psql(self, url, text):
        out = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', text], check=True,
                             stdout=subprocess.PIPE, text=True, env={'PATH': os.environ['PATH']})
        return out.stdout.splitlines()

    def sql(self, text):
        return self.psql(self.plain, text)

    def is_locked(self):
        return self.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND application_name = 'fumehood' AND state <> 'idle'") != ['0']

    def table(self, name):
        return f'fumehood.{name}'

    def close(self):
        self.psql(self.server.url, f'DROP DATABASE {self.database} WITH (FORCE)')


class Bouncer:
    """PgBouncer before a server, a session for each transaction, and few of them: everybody gets everybody's."""

    SIZE = 2

    def __init__(self, server, settings='', users=()):
        owner, password, host, port = re.match(r'postgresql://(.*):(.*)@(.*):(\d+)/', server.url).groups()
        self.dir = Path(tempfile.mkdtemp(prefix='fumehood-bouncer-', dir='/var/tmp'))
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        known = {owner: password, 'reader': 'read', **dict(users)}
        (self.dir / 'users').write_text(''.join(f'"{name}" "{secret}"\n' for name, secret in known.items()))
        (self.dir / 'ini').write_text(f"""[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = plain
auth_file = {self.dir}/users
pool_mode = transaction
default_pool_size = {self.SIZE}
logfile = {self.dir}/log
{settings}
""")
        who = {}
        if os.geteuid() == 0:
            for path in [self.dir, *self.dir.iterdir()]:
                os.chown(path, 65534, 65534)
            who = {'user': 65534, 'group': 65534, 'extra_groups': []}
        self.process = subprocess.Popen(['/usr/sbin/pgbouncer', '-q', self.dir / 'ini'], **who)
        assert until(self.answers)

    def url(self, direct):
        return re.sub(r'@127\.0\.0\.1:\d+/', f'@127.0.0.1:{self.port}/', direct)

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(('127.0.0.1', self.port)) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.dir)
