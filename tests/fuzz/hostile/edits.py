"""Random edits of a ledger: hostile values in random columns of random rows, and of SQLite also what else lies in such a file.

A value is made once, as Python's str, bytes, int or None, or as Big, which only the database makes: whoever measures
commands must stay small itself. Constraints are gone before: who owns a ledger needs none."""
import json
import re
import sqlite3
import subprocess
from dataclasses import dataclass

from built import LEDGER

TARGETS = ['/etc/cron.d/hostile', '/srv/hostile/canary/file', '/root/.profile', '/etc/passwd', '/tmp/hostile', '/dev/shm/hostile']
PATHS = ['..', '.', '', '/', '../canary.txt', '../../canary/file', 'd/../../../canary.txt', './x', 'a//b', 'a/', 'x/../..', '../' * 40 + 'etc/cron.d/hostile',
         '/proc/self/cwd/hostile', '/proc/self/root/etc/hostile', 'proc/self/fd/3', '/proc/1/cwd', '/dev/stdin', '-rf', '--', '~root/x',
         'x' * 300, 'y/' * 3000, 'a\0b', 'a\nb', '\x1b]0;title\x07', '\x1b[2J', '\u202egpj.exe', '\u009b31m', *TARGETS]
WORDS = ['', ' ', '0', '-1', 'NaN', 'null', 'true', 'succeeded', 'failed', 'finished', 'queued', 'running', 'waiting', 'cancelled', 'restored',
         'lost', 'stdout.2', "'; DROP TABLE fumehood_queue; --", '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', '%s%s%n%n',
         '$(touch /tmp/hostile)', '`id`', '{task}', '*', '**', '[', '{id}', '\x1b]52;c;aGk=\x07', '\r\nSet-Cookie: a=b', '\x00', '\x7f\x08\x08',
         'good', 'sweep.2', 'sweep.1000000000', 'sweep', '.', 'x' * 129, '\ud7ff\uffff', 'é' * 500, '\t\v\f', '\u2028', '\U000e0041' * 50]
INTEGERS = [0, 1, -1, 2, 7, 127, 255, 256, 4095, 65536, 2**31 - 1, 2**31, -2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, -2**63, 10**18, 0o4777, 0o170777]
SHAPES = ['null', '[]', '{}', '""', '0', '1e999', '-0', '1e-400', '[[]]', '{"a":null}', '"x"', 'true', '[1,2', '{"":""}', '{"command":{}}',
          '{"command":["sh","-c","touch /tmp/hostile"]}', '{"command":[]}', '{"command":[1,null,{}]}', '{"command":["/bin/sh"],"into":"/etc"}',
          '[{"path":"../x"}]', '[{"path":"/etc/passwd","sha256":"00"}]', '[{"path_hex":"zz"}]', '[null]', '[{"path":null}]', '{"wall_ms":-1}',
          '{"wall_ms":1e300}', '{"memory_peak_bytes":9223372036854775807}', '{"cpu_ms":"x"}', '"\\u0000"', '{"a\\u0000b":1}', '"\\ud800"', '{"a":1,"a":2}']
KEYS = ['command', 'id', 'inputs', 'outputs', 'env', 'limits', 'from', 'after', 'into', 'post_process', 'data', 'ro', 'keep', 'path', 'source', 'sha256',
        'size', 'mode', 'layers', 'mounts', 'name', 'status', 'wall_ms', 'cpu_ms', 'memory_peak_bytes', 'queries', 'files', 'kind', 'job', 'handle']


@dataclass
class Big:
    """So many times a piece; bytes, text or JSON of that size."""
    piece: str
    count: int
    before: str = ''
    after: str = ''

    def __str__(self):
        return f'{self.before}{self.piece!r} x {self.count}{self.after}'


def bend(random, value, deep=0):
    """JSON with one thing in it replaced, removed, doubled or added."""
    if isinstance(value, dict) and value and deep < 6:
        key = random.choice(sorted(value))
        kind = random.randrange(10)
        if kind == 0:
            return {k: v for k, v in value.items() if k != key}
        if kind == 1:
            return {**value, random.choice(KEYS): leaf(random)}
        return {**value, key: bend(random, value[key], deep + 1)}
    if isinstance(value, list) and value and deep < 6:
        i = random.randrange(len(value))
        kind = random.randrange(6)
        if kind == 0:
            return value * random.choice([2, 50])
        return [*value[:i], bend(random, value[i], deep + 1), *value[i + 1:]]
    return leaf(random)


def leaf(random):
    return random.choice([None, True, 1.5, [], {}, [[]], random.choice(INTEGERS), random.choice(PATHS), random.choice(WORDS), 'a' * 64,
                          {random.choice(KEYS): random.choice(PATHS)}, [random.choice(PATHS)] * 3])


def big(random, kind, huge):
    """Rarely as much as a database takes: huge says how much."""
    size = random.choice([70_000, 1_000_000, 9_000_000]) if not huge else random.choice([huge // 8, huge // 3, huge])
    if kind == 'json':
        return random.choice([Big('[', 200_000 if not huge else size // 100, after=''), Big('[', 1500, '', ']' * 1500), Big('1,', size // 2, '[', '1]'),
                              Big('x', size, '"', '"'), Big('{"a":', 1500, '', '1' + '}' * 1500), Big('"k",', size // 4, '{"command":[', '"k"]}'),
                              Big('"/x",', size // 5, '[', '""]')])
    piece = random.choice(['x', '../', '\x1b[1m', 'é', 'a\n', '/', '<b>', '\x01'])
    return Big(piece, size // len(piece.encode()))


def value_for(random, kind, old, others, huge, named=False):
    """kind: text, json, bytes, integer or time."""
    if named and kind != 'json':
        return random.choice(PATHS) if kind == 'text' else random.choice(PATHS).encode('utf-8', 'surrogateescape')
    if kind in ('integer', 'time', 'boolean'):
        return random.choice([random.choice(INTEGERS), random.choice(INTEGERS), (old or 0) + random.choice([-1, 1, 1000]) if isinstance(old, int) else 0, None])
    if huge or random.random() < 0.06:
        return big(random, kind, huge)
    pick = random.random()
    if pick < 0.08:
        return None
    if pick < 0.2 and others:
        return random.choice(others)
    if kind == 'json':
        try:
            if pick < 0.75:
                return json.dumps(bend(random, json.loads(old)))
        except (TypeError, ValueError, RecursionError):
            pass
        return random.choice(SHAPES) if pick < 0.9 else random.choice(WORDS + PATHS)
    raw = old if isinstance(old, bytes) else (old or '').encode() if isinstance(old, str) or old is None else b''
    if pick < 0.35 and raw:  # bits
        flipped = bytearray(raw[:100_000])
        for _ in range(random.randint(1, 4)):
            flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        return bytes(flipped) if kind == 'bytes' else flipped.decode('utf-8', 'surrogateescape')
    if pick < 0.45:
        noise = random.randbytes(random.choice([1, 31, 32, 33, 64, 5000]))
        return noise if kind == 'bytes' else noise.decode('utf-8', 'surrogateescape')
    text = random.choice(PATHS if pick < 0.75 else WORDS)
    return text.encode('utf-8', 'surrogateescape') if kind == 'bytes' else text


# ---- SQLite ----

PLANTED = [
    'CREATE TRIGGER planted AFTER INSERT ON {t} BEGIN DELETE FROM fumehood_attempt; END',
    'CREATE TRIGGER planted AFTER UPDATE ON {t} BEGIN INSERT INTO scores SELECT hex(zeroblob(100000000)), 1, 1 FROM {t}; END',
    'CREATE TRIGGER planted BEFORE INSERT ON {t} BEGIN WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) INSERT INTO scores SELECT n, n, n FROM r; END',
    'CREATE TRIGGER planted BEFORE UPDATE ON {t} BEGIN SELECT load_extension("/tmp/x.so"); END',
    'ALTER TABLE {t} RENAME TO planted; CREATE VIEW {t} AS SELECT * FROM planted',
    'ALTER TABLE {t} RENAME TO planted; CREATE VIEW {t} AS SELECT p.* FROM planted p, (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r)',
    'DROP TABLE {t}', 'ALTER TABLE {t} RENAME TO planted; CREATE TABLE {t}(x)', 'CREATE INDEX planted ON {t}(hex(zeroblob(10000000)))',
    'ALTER TABLE {t} ADD COLUMN planted TEXT GENERATED ALWAYS AS (hex(zeroblob(10000000)))',
    'DELETE FROM {t}', 'UPDATE fumehood_schema_version SET version = version + 1', 'UPDATE fumehood_schema_version SET version = 1',
    'INSERT INTO fumehood_schema_version VALUES (2147483648, 0, 0)', 'CREATE VIRTUAL TABLE planted USING fts5(x)',
]


# Where most is read.
OFTEN = {'attempt': 8, 'queue': 8, 'output': 8, 'input': 4, 'blob': 3, 'log': 3, 'step': 3, 'denial': 2, 'event': 2, 'worker': 2, 'schema_version': 0.3}


MANY = ['event', 'output', 'denial', 'rejected_output', 'input', 'sample', 'step']


# Where names of files stand: a round now and then has hostile ones in these alone, for the commands that make files.
NAMED = ['output.path', 'output.path', 'output.path', 'input.path', 'input.source', 'query.name', 'queue.inputs', 'queue.request', 'attempt.request', 'attempt.plan',
         'attempt.workspace', 'step.request', 'log.stream', 'store.store_id', 'store.path']


def is_named(number):
    return number % 4 == 1


def place_of(random, columns, named):
    """A table and a column of it, with its kind; columns: of each table, (name, kind) and perhaps more."""
    if named:
        table, name = random.choice(NAMED).split('.')
        return table, *next(c for c in columns[table] if c[0] == name)[:2]
    table = random.choices(sorted(columns), [OFTEN.get(t, 1) for t in sorted(columns)])[0]
    return table, *random.choice(columns[table])[:2]


def kind_of_column(table, column, declared):
    if (table, column) in JSON_COLUMNS:
        return 'json'
    declared = declared.lower()
    return 'bytes' if 'blob' in declared or 'bytea' in declared else 'json' if 'json' in declared else \
        'time' if 'timestamp' in declared else 'boolean' if 'bool' in declared else 'integer' if 'int' in declared else 'text'


JSON_COLUMNS = {('attempt', c) for c in ('usage', 'request', 'plan', 'receipt', 'result', 'missing', 'present', 'engine')} | \
    {('step', c) for c in ('usage', 'request', 'plan', 'receipt')} | {('queue', c) for c in ('request', 'inputs', 'live', 'handle')} | \
    {('posted_chunk', 'fields')}


class Sqlite:
    """One round of edits; in a process of its own, which may become large."""
    HUGE = 300_000_000

    def __init__(self, random):
        self.random, self.said, self.named = random, [], False
        self.db = sqlite3.connect(LEDGER, isolation_level=None)
        self.db.text_factory = lambda b: b.decode('utf-8', 'surrogateescape')
        for setting in ('ignore_check_constraints = 1', 'foreign_keys = 0', 'writable_schema = 1', 'synchronous = 0'):
            self.db.execute(f'PRAGMA {setting}')
        self.db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name LIKE 'fumehood_%' "
                        "AND type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'") if random.random() < 0.5 else None
        self.db.close()
        self.db = sqlite3.connect(LEDGER, isolation_level=None)
        self.db.text_factory = lambda b: b.decode('utf-8', 'surrogateescape')
        for setting in ('ignore_check_constraints = 1', 'foreign_keys = 0', 'synchronous = 0'):
            self.db.execute(f'PRAGMA {setting}')

    def tables(self):
        return [n[9:] for n, in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'fumehood_%' ORDER BY name")]

    def columns(self, table):
        return [(name, kind_of_column(table, name, declared), key) for _, name, declared, _, _, key
                in self.db.execute(f'PRAGMA table_info(fumehood_{table})')]

    def row(self, table):
        """Which row, as a condition: by its key where it has one."""
        keys = [c for c, _, key in self.columns(table) if key] or ['rowid']
        rows = self.db.execute(f'SELECT {", ".join(keys)} FROM fumehood_{table} ORDER BY {", ".join(keys)}').fetchall()
        return (' AND '.join(f'{k} IS ?' for k in keys), list(self.random.choice(rows))) if rows else None

    def edit(self, huge=0):
        table, column, kind = place_of(self.random, {t: self.columns(t) for t in self.tables()}, self.named)
        row = self.row(table)
        if not row:
            return
        where, keys = row
        old, = self.db.execute(f'SELECT {column} FROM fumehood_{table} WHERE {where}', bound(keys)).fetchone() or (None,)
        others = [v for v, in self.db.execute(f'SELECT {column} FROM fumehood_{table} LIMIT 50')]
        value = value_for(self.random, kind, old, others, 0 if kind in ('integer', 'time', 'boolean') else huge, self.named)
        self.said.append(f'{table}.{column} of {keys} = {value!r:.200}')
        if isinstance(value, Big):
            text = f"replace(hex(zeroblob({value.count})), '00', ?)"
            text = text if not (value.before or value.after) else f'? || {text} || ?'
            values = [value.piece] if not (value.before or value.after) else [value.before, value.piece, value.after]
            text = f'CAST({text} AS BLOB)' if kind == 'bytes' else text
        else:
            text, values = 'CAST(? AS TEXT)' if isinstance(value, str) else '?', [value.encode('utf-8', 'surrogateescape') if isinstance(value, str) else value]
        try:
            self.db.execute(f'UPDATE OR REPLACE fumehood_{table} SET {column} = {text} WHERE {where}', [*values, *bound(keys)])
        except (sqlite3.Error, OverflowError) as e:
            self.said[-1] += f' (not taken: {e})'

    def multiply(self):
        """Many rows instead of one."""
        what = self.random.choice(MANY)
        names = [c for c, _, _ in self.columns(what)]
        self.said.append(f'{what}: one row made 20,000')
        listed = ', '.join('n + 1000' if n == 'position' else n for n in names)
        self.db.execute(f'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) INSERT OR IGNORE INTO fumehood_{what}({", ".join(names)}) '
                        f'SELECT {listed} FROM r, (SELECT * FROM fumehood_{what} LIMIT 1)')

    def plant(self):
        script = self.random.choice(PLANTED).format(t='fumehood_' + self.random.choice(self.tables()))
        self.said.append(script)
        try:
            self.db.executescript('PRAGMA legacy_alter_table = 1;' + script)
        except sqlite3.Error as e:
            self.said[-1] += f' (not taken: {e})'

    def corrupt(self):
        """Bytes of the file itself, after everything is in it."""
        self.db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        self.db.close()
        with open(LEDGER, 'r+b') as file:
            size = file.seek(0, 2)
            for _ in range(self.random.choice([1, 3, 20, 200])):
                at = self.random.choice([self.random.randrange(100), self.random.randrange(size), self.random.randrange(size // 4096) * 4096 + self.random.randrange(16)])
                noise = self.random.randbytes(self.random.choice([1, 2, 8, 100]))
                file.seek(at)
                file.write(noise)
                self.said.append(f'{len(noise)} bytes at {at}: {noise[:8].hex()}')
            if self.random.random() < 0.2:
                file.truncate(self.random.randrange(size))
                self.said.append(f'cut to {file.tell()} bytes or fewer')

    def close(self):
        try:
            self.db.close()
        except sqlite3.Error:
            pass


def bound(keys):
    return [k.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace') if isinstance(k, str) else k for k in keys]


# ---- PostgreSQL ----

# The tables' own constraints go, in the copy that every round is made from.
LOOSEN = '''DO $$ DECLARE r record; BEGIN
  FOR r IN SELECT conrelid::regclass AS t, conname FROM pg_constraint WHERE connamespace = 'fumehood'::regnamespace AND contype IN ('c', 'f')
  LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', r.t, r.conname); END LOOP;
  FOR r IN SELECT attrelid::regclass AS t, attname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'fumehood'::regnamespace
    AND relkind = 'r' AND attnum > 0 AND attnotnull AND attidentity = '' AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))
  LOOP EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', r.t, r.attname); END LOOP;
  FOR r IN SELECT tgrelid::regclass AS t, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'fumehood'::regnamespace AND NOT tgisinternal
  LOOP EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.t); END LOOP;
END $$;'''


class Postgres:
    HUGE = 120_000_000  # a server takes ten seconds for more

    def __init__(self, random, url):
        self.random, self.url, self.said, self.named = random, url, [], False
        self.columns, self.wanted = {}, []
        for line in self.psql("SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns JOIN information_schema.tables "
                              "USING (table_schema, table_name) WHERE table_schema = 'fumehood' AND table_type = 'BASE TABLE' ORDER BY 1").splitlines():
            table, column, declared = line.split(' ', 2)
            self.columns.setdefault(table, []).append((column, kind_of_column('', column, declared)))

    def psql(self, text, stops=True):
        done = subprocess.run(['psql', '-XqAt', '-v', f'ON_ERROR_STOP={int(stops)}', '-d', self.url, '-f', '-'], input=text.encode('utf-8', 'replace'), capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.decode('utf-8', 'replace'))
        self.refused = done.stderr.decode('utf-8', 'replace').splitlines()
        return done.stdout.decode('utf-8', 'replace')

    def edit(self, huge=0):
        """Which, where, how large: all of a round are done at once, by close()."""
        table, column, kind = place_of(self.random, self.columns, self.named)
        where = f'ctid = (SELECT ctid FROM fumehood.{table} ORDER BY ctid OFFSET (SELECT floor({self.random.random():.3f} * count(*))::bigint ' \
                f'FROM fumehood.{table}) LIMIT 1)'
        self.wanted.append((table, column, kind, where, 0 if kind in ('integer', 'time', 'boolean') else huge))

    def close(self):
        shown = {'bytes': "encode({}, 'hex')", 'json': '{}::text', 'text': '{}'}
        asked = '\n'.join(f"SELECT coalesce((SELECT left({shown.get(kind, '{}::text').format(column)}, 100000) FROM fumehood.{table} WHERE {where}), '') || chr(1);"
                          for table, column, kind, where, _ in self.wanted)
        olds = self.psql(asked).split('\x01\n')
        script = ['SET session_replication_role = replica;']
        for (table, column, kind, where, huge), old in zip(self.wanted, olds):
            if kind == 'bytes':
                old = bytes.fromhex(old)
            elif kind == 'integer':
                old = int(old or 0)
            value = value_for(self.random, kind, old, [], huge, self.named)
            self.said.append(f'{table}.{column} where {where} = {value!r:.200}')
            script.append(f'UPDATE fumehood.{table} SET {column} = {literal(value, kind)} WHERE {where};')
        self.psql('\n'.join(script), stops=False)
        self.said += [line for line in self.refused if 'ERROR' in line]

    def multiply(self):
        what = self.random.choice(MANY)
        names = [c for c, _ in self.columns[what]]
        self.said.append(f'{what}: one row made 20,000')
        self.psql(f'INSERT INTO fumehood.{what}({", ".join(names)}) SELECT {", ".join("n + 1000" if c == "position" else c for c in names)} '
                  f'FROM generate_series(1, 20000) n, (SELECT * FROM fumehood.{what} LIMIT 1) x')

    def plant(self):
        """There is no file, and what stands in the schema beside its tables is the owner's."""

    corrupt = plant


def literal(value, kind):
    if value is None:
        return 'NULL'
    if isinstance(value, Big):
        made = f'{literal(value.before, "text")} || repeat({literal(value.piece, "text")}, {value.count}) || {literal(value.after, "text")}'
        return f"convert_to({made}, 'UTF8')" if kind == 'bytes' else f'({made})::{"jsonb" if kind == "json" else "text"}'
    if kind == 'time':
        return f"to_timestamp({max(-2 * 10**11, min(value / 10**6, 9 * 10**12))})" if abs(value) != 7 else "'infinity'"
    if kind == 'boolean':
        return str(bool(value)).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    text = re.sub('[\ud800-\udfff\0]', '?', value)
    return "'" + text.replace("'", "''") + "'"


def edit_round(ledger, random, round_number):
    """What one round does to it: mostly a few values, now and then one as large as it gets, many rows, or the file itself."""
    special = round_number % 12
    ledger.named = is_named(round_number)
    if special == 3:
        ledger.edit(ledger.HUGE)
    elif special == 7:
        ledger.multiply()
    elif special == 10:
        ledger.plant()
    for _ in range(random.randint(1, 20)):
        ledger.edit()
    if special in (5, 11):
        ledger.corrupt()
    ledger.close()
    return ledger.said
