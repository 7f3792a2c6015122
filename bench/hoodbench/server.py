"""A PostgreSQL server of our own, which writes every commit to the disk before it says so."""
import os
import subprocess
from pathlib import Path

top = Path(__file__).resolve().parents[2]


class Server:
    def __init__(self, connections=100):
        env = dict(os.environ, TEST_POSTGRES_FSYNC='on', TEST_POSTGRES_CONNECTIONS=str(connections))
        self.process = subprocess.Popen([top / 'tests/support/with-postgres', 'sh', '-c', 'echo "$TEST_LEDGER"; cat >/dev/null'],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError('PostgreSQL did not start')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def adopt(self, place):
        """From now on it is the ledger of this place."""
        place.env['FUMEHOOD_DB'] = f'{self.url}&objects={place.base}/objects'
        place.configure(queue=f'{{users: {{owner: {place.uid if place.uid is not None else os.geteuid()}}}}}')
        place.hood('db', 'init')

    def ask(self, text):
        out = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', self.url, '-c', text], check=True, stdout=subprocess.PIPE,
                             text=True)
        return out.stdout.strip()

    def fresh(self, name):
        """The URL of a database that is made for it."""
        self.ask(f'CREATE DATABASE {name}')
        return self.url.replace('/postgres?', f'/{name}?')
