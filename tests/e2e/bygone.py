"""Ledgers and state directories that earlier versions left, as tests/fixtures has them, put where a test wants them."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import records

FIXTURES = Path(__file__).resolve().parents[1] / 'fixtures'
VERSIONS = sorted((path.name for path in FIXTURES.glob('v*')), key=lambda name: int(name[1:]))


class Bygone:
    """One of them, for this hood's user. place is where everything lies; env is in the hood's environment from now on."""

    def __init__(self, hood, version):
        self.hood, self.source = hood, FIXTURES / version
        self.place = hood.directory('bygone', 0o700)
        hood.made_up_ids = set  # its ids are plain words, which other processes have in their command lines
        hood.env.update(XDG_STATE_HOME=str(self.place / 'state'), XDG_CONFIG_HOME=str(self.place / 'config'),
                        XDG_DATA_HOME=str(self.place / 'share'))
        self.write('config/fumehood/config.yaml', f'workspace: {{root: {self.place}/work}}\n')
        self.write('here/data/genes.csv', 'TP53\nBRCA1\n')
        self.write('work/empty', '')

    def text(self, name):
        place = str(self.place)
        text = (self.source / name).read_text().replace('@PLACE@', place).replace('@HEX@', place.encode().hex())
        return re.sub(r'@ZEROS (\d+)@', lambda zeros: '\\u0000' * int(zeros[1]), text)

    def write(self, name, text):
        return self.hood.write(self.place / name, text, 0o600)

    def objects(self, at):
        for path in (self.source / 'objects').rglob('*'):
            if path.is_file():
                self.write(f'{at}/{path.relative_to(self.source / "objects")}', path.read_bytes())
        for path in [self.place / at, *(self.place / at).rglob('*')]:
            if path.is_dir():
                path.chmod(0o700)

    def sqlite(self):
        path = self.place / 'share/fumehood/ledger.db'
        self.write('share/fumehood/empty', '')
        subprocess.run(['sqlite3', '-bail', path], input=self.text('ledger.sql'), text=True, check=True,
                       **self.hood.who.popen_arguments())
        self.objects('share/fumehood/ledger.db.objects')
        self.hood.env['FUMEHOOD_DB'] = f'sqlite:{path}?blob_max=1K'
        return path

    def postgres(self, ledger):
        """Into the database of this ledger, instead of what is there."""
        ledger.sql('DROP SCHEMA fumehood CASCADE; DO $$ BEGIN CREATE ROLE genes_reader NOLOGIN; '
                   'EXCEPTION WHEN duplicate_object THEN NULL; END $$')
        subprocess.run(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', ledger.plain], input=self.text('ledger.postgres.sql'),
                       text=True, check=True, stdout=subprocess.DEVNULL, env={'PATH': os.environ['PATH']})
        self.objects('objects')
        if (self.place / 'objects/id').exists():  # since version 5: the directory that was saved is the other ledger's
            self.write('objects/id', ledger.sql("SELECT ledger_id || ' ' || store_id FROM fumehood.store")[0] + '\n')
        self.hood.env['FUMEHOOD_DB'] = f'{ledger.plain}?blob_max=1K&objects={self.place}/objects'

    def state(self):
        """The state directory and the workspaces, as if this machine had been started again since."""
        found = json.loads(self.text('state.json'))
        for top, root in (('work', 'work'), ('state', 'state/fumehood')):
            for name, text in found[top].items():
                if name.endswith('/'):
                    self.write(f'{root}/{name}empty', '').unlink()
                else:
                    self.write(f'{root}/{name}', text)
        for path in self.place.glob('work/*'):
            if path.is_dir():
                path.chmod(0o700)
        for path in self.place.glob('state/fumehood/runs/*/record.json'):
            self.adopt(path)

    def adopt(self, path):
        record = records.read(path)
        seen = Path(record['path']).stat()
        record.update(boot='0' * 8 + '-0000-0000-0000-' + '0' * 12, machine=Path('/etc/machine-id').read_text().strip(), uid=seen.st_uid, device=seen.st_dev,
                      inode=seen.st_ino)
        if record.get('until'):
            record['until'] = 1
        path.write_text(json.dumps(record))

    def shown(self, kind):
        found = json.loads(self.text('show.json' if kind == 'sqlite' else 'show.postgres.json'))
        for shown in found.values() if kind == 'sqlite' else ():
            for owned in (shown, shown.get('queue') or {}):
                owned.update({'owner': self.hood.who.name()} if owned.get('owner') else {})  # whose file it is
        return found

    def remove(self):
        shutil.rmtree(self.place)


def differences(old, new, where=''):
    """What of the old is not in the new as it was. The new may have more keys."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [text for key in old for text in (differences(old[key], new[key], f'{where}.{key}') if key in new
                                                 else [f'{where}.{key} is gone'])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [text for i, pair in enumerate(zip(old, new)) for text in differences(*pair, f'{where}[{i}]')]
    return [] if old == new else [f'{where}: {old!r} -> {new!r}']
