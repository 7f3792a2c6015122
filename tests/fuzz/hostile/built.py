"""A real ledger with rows in every table: analyses that succeeded, failed, ran out of time, had steps, queries, denials,
rows, large outputs; a queue with every state; tombstones. Made once by the command itself, as root in a root of its own."""
import json
import os
import re
import signal
import subprocess
import time

HOME, BIN = '/srv/hostile', '/opt/fumehood-hostile'
OUT, PLATFORM = f'{HOME}/out', f'{HOME}/platform'
LEDGER = f'{HOME}/share/fumehood/ledger.db'
CONFIG = f'''
post_process:
  command: python3 post_process.py
  limits: {{wall: 5s, memory: 512M}}
  tables:
    scores: {{columns: [gene, value], fill: {{analysis_id: '{{id}}'}}}}
query: {{role: reader, passfile: {PLATFORM}/pgpass, timeout: 3s, max_bytes: 1M}}
queue: {{users: {{owner: 0}}}}
defaults: {{limits: {{wall: 5s, memory: 256M}}}}
'''
TABLES = 'CREATE TABLE scores(gene TEXT, value FLOAT, analysis_id TEXT); CREATE TABLE genes(gene TEXT, value FLOAT);' \
         "INSERT INTO genes VALUES ('TP53', 0.5), ('BRCA1', 0.1);"
ROLE = "DO $$ BEGIN CREATE ROLE reader LOGIN PASSWORD 'read'; EXCEPTION WHEN duplicate_object THEN NULL; END $$;" \
       'GRANT SELECT ON genes TO reader;'
POST = 'import os, sys\nif os.path.exists("outputs/rows"):\n    sys.stdout.write(open("outputs/rows").read())\n'
ROWS = ''.join(json.dumps({'table': 'scores', 'row': {'gene': g, 'value': v}}) + '\n' for g, v in [('TP53', 1), ('MYC', 2)])
DENIED = 'import ctypes, socket\nctypes.CDLL(None).unshare(0x10000000)\n' \
         'for f in (lambda: open("/etc/shadow"), lambda: socket.create_connection(("127.0.0.1", 9))):\n' \
         '    try: f()\n    except OSError as e: print(e)\nopen("out.txt", "w").write("x" * 100)\n'
PICTURE = bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154'
                        '789c63f8cfc000000301010018dd8db00000000049454e44ae426082')


def environment(url):
    return {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': HOME, 'LANG': 'C.UTF-8',
            'XDG_DATA_HOME': f'{HOME}/share', 'XDG_STATE_HOME': f'{HOME}/state', 'XDG_CONFIG_HOME': f'{HOME}/config',
            'PYTHONPATH': f'{BIN}/python', 'LD_LIBRARY_PATH': BIN, 'FUMEHOOD_LIBRARY': f'{BIN}/libfumehood.so.0',
            'PYTHONDONTWRITEBYTECODE': '1', 'FUMEHOOD_DB': url}


class Builder:
    def __init__(self, url):
        self.url, self.env = url, environment(url)
        for directory in (OUT, PLATFORM, f'{PLATFORM}/data', f'{HOME}/config/fumehood', f'{HOME}/state', f'{HOME}/canary', os.path.dirname(LEDGER)):
            os.makedirs(directory, exist_ok=True)
        for name, text in [(f'{HOME}/config/fumehood/config.yaml', CONFIG), (f'{HOME}/config/fumehood/post_process.py', POST),
                           (f'{PLATFORM}/denied.py', DENIED), (f'{PLATFORM}/in', ROWS), (f'{PLATFORM}/data/genes.csv', 'gene\nTP53\n'),
                           (f'{PLATFORM}/pgpass', '*:*:*:reader:read\n'), (f'{HOME}/canary/file', 'canary\n'),
                           (f'{HOME}/canary.txt', 'canary\n')]:
            with open(name, 'w') as file:
                file.write(text)
        os.chmod(f'{PLATFORM}/pgpass', 0o600)
        with open(f'{PLATFORM}/dot.png', 'wb') as file:
            file.write(PICTURE)

    def cli(self, *words, status=0):
        done = subprocess.run([f'{BIN}/fumehood', *words], env=self.env, cwd=PLATFORM, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors='replace')
        if status is not None and done.returncode != status:
            raise RuntimeError(f'a real ledger cannot be made: {" ".join(words)} ended with status {done.returncode}: '
                               f'{done.stdout}{done.stderr}')
        return done.stdout

    def sql(self, text):
        if self.url.startswith('postgresql'):
            subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', self.url.split('?')[0], '-c', text], check=True, stdout=subprocess.DEVNULL)
        else:
            subprocess.run(['sqlite3', '-bail', LEDGER, text], check=True)

    def build(self):
        sh, cli = ['--', 'sh', '-c'], self.cli
        cli('db', 'init')
        self.sql(TABLES + (ROLE if self.url.startswith('postgresql') else ''))
        many = 'mkdir -p d/e; for i in 1 2 3 4 5; do echo "$i,x" > d/e/t$i.csv; done; head -c 300000 /dev/urandom > large.bin; ' \
               'echo "{\\"a\\": [1, 2]}" > j.json; cp dot.png p.png; cp in rows; sleep 0.3; echo out; echo err >&2'
        cli('run', 'good', '--input', 'dot.png', '--input', 'in', '--data', 'data', '--query', 'q.csv=SELECT gene FROM genes', *sh, many)
        cli('run', 'bad', '--no-stage', *sh, 'echo oops >&2; ln -s /etc/passwd link; mkfifo f; exit 3', status=3)
        cli('run', 'bad', '--no-stage', '--again', *sh, 'exit 4', status=4)
        cli('run', 'slow', '--wall', '300ms', '--grace', '50ms', *sh, 'echo x > x; sleep 60', status=124)
        cli('run', 'missing', '--output', 'never.csv', *sh, 'true', status=122)
        cli('run', 'denied', '--explain', '--', 'python3', 'denied.py')
        cli('run', 'child', '--from', 'good:d/**', *sh, 'ls -R from > list')
        cli('workspace', 'create', 'steps', '--for', '1h')
        cli('run', 'steps', *sh, 'echo one > a; echo first')
        cli('run', 'steps', *sh, 'cat a; echo second >&2')
        cli('commit', 'steps')
        cli('workspace', 'cleanup', 'steps')
        cli('run', 'gone', *sh, 'echo gone > g')
        cli('run', 'heir', '--from', 'gone', *sh, 'cp from/gone/g h')
        cli('rm', 'gone', '--force')
        self.queue(sh)

    def queue(self, sh):
        cli = self.cli
        cli('submit', 'sweep', '--array', '1-4', *sh, 'test {task} -ne 2')
        cli('submit', 'after', '--after', 'sweep', *sh, 'true')
        cli('worker', '--drain', '--jobs', '2', status=None)
        self.lost()
        cli('submit', 'waits', '--input', 'in:rows', '--submitter', 'lab', '--priority', '5', *sh, 'cat rows >/dev/null')
        cli('submit', 'waiter', '--after', 'waits', *sh, 'true')
        cli('submit', 'feeds', '--from', 'waits', '--env', 'A=b', *sh, 'true')
        cli('submit', 'no', *sh, 'true')
        cli('cancel', 'no')

    def lost(self):
        """A worker that dies while it runs something leaves its row, and what it ran is running still."""
        self.cli('submit', 'runs', *sh_sleep())
        worker = subprocess.Popen([f'{BIN}/fumehood', 'worker', '--jobs', '1'], env=self.env, cwd=PLATFORM,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not re.search('"state": *"running"', self.cli('ls', 'runs', '--json')):
            if time.monotonic() > deadline:
                raise RuntimeError('a real ledger cannot be made: the worker claimed nothing within 20 s')
            time.sleep(0.02)
        worker.send_signal(signal.SIGKILL)
        worker.wait()


def sh_sleep():
    return ['--wall', '1h', '--', 'sleep', '3600']
