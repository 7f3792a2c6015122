"""The ledger of a test: SQLite, or a PostgreSQL server that is started once for all of them."""
import os
import re
import secrets
import sqlite3
import subprocess
from pathlib import Path

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
        out = subprocess.run(['sqlite3', '-bail', str(self.path), text], check=True, stdout=subprocess.PIPE, text=True,
                             **self.who.popen_arguments())
        return out.stdout.splitlines()

    def table(self, name):
        return f'fumehood_{name}'

    def close(self):
        pass


class Postgres:
    """A database of its own on the server."""
    name = 'postgres'

    def __init__(self, hood, server):
        self.server = server
        self.database = 'd' + secrets.token_hex(4)
        self.psql(server.url, f'CREATE DATABASE {self.database}')
        self.url = re.sub(r'/postgres$', f'/{self.database}', server.url) + f'?objects={hood.home}/objects'
        self.plain = self.url.partition('?')[0]
        hood.env['FUMEHOOD_DB'] = self.url
        hood.succeed('db', 'init')

    def psql(self, url, text):
        out = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', text], check=True,
                             stdout=subprocess.PIPE, text=True, env={'PATH': os.environ['PATH']})
        return out.stdout.splitlines()

    def sql(self, text):
        return self.psql(self.plain, text)

    def table(self, name):
        return f'fumehood.{name}'

    def close(self):
        self.psql(self.server.url, f'DROP DATABASE {self.database} WITH (FORCE)')
