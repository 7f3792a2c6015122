"""The examples that we ship, run as examples/README.md says."""
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / 'examples'


def copy_of(hood, name):
    copy = hood.base / 'examples'
    shutil.copytree(EXAMPLES, copy)
    for path in [copy, *copy.rglob('*')]:
        hood.who.give(path)
    return copy / name


@pytest.mark.parametrize('name, outputs', [
    ('iris', ['petals.png', 'summary.json']),
    ('iris-r', ['petals.pdf', 'summary.csv']),
    ('pipeline', ['counts.tsv']),
    ('compiled', ['correlation.txt']),
])
def test_example(hood, name, outputs):
    result = hood.cli('run', hood.id(), '-f', 'request.yaml', '--json', cwd=copy_of(hood, name))
    assert result.status == 0, (result, hood.log(result.json['id']))
    assert [o['path'] for o in result.json['outputs']] == outputs


def test_the_hostile_one_gets_nowhere(hood):
    result = hood.cli('run', hood.id(), '-f', 'request.yaml', '--json', cwd=copy_of(hood, 'hostile'))
    assert result.status == 0, result
    log = hood.log(result.json['id'])
    assert 'done' not in log and len(log.splitlines()) == 5, log


def test_the_platform(hood, ledger):
    """As examples/platform/README.md says, line by line, on each ledger."""
    place = copy_of(hood, 'platform')
    script = '(cat tables.sql {more}; /usr/bin/python3 load.py) | {client}'
    if ledger.name == 'sqlite':
        command = script.format(more='', client=f"sqlite3 '{ledger.path}'")
    else:
        command = script.format(more='reader.sql', client=f"psql -q -v password=PASSWORD -v ON_ERROR_STOP=1 '{ledger.plain}'")
    subprocess.run(['sh', '-ec', command], cwd=place, check=True, stdout=subprocess.DEVNULL, **hood.who.popen_arguments())
    hood.write(hood.home / '.pgpass', '*:*:*:platform_reader:PASSWORD\n', 0o600)
    arguments = ['--config', 'config.yaml', '--json']
    result = hood.cli('run', hood.id(), '-f', 'request.yaml', *arguments, cwd=place)
    assert result.status == 0 and result.json['rows'] == 3, (result, hood.log(result.json['id']))
    id = result.json['id']
    rows = ledger.sql('SELECT species, analysis_id FROM hypotheses ORDER BY species')
    assert [row.split('|')[1] for row in rows] == [id] * 3, rows
    assert hood.cli('post-process', id, *arguments, cwd=place).status == 0
    assert ledger.sql('SELECT count(*) FROM hypotheses') == ['3']
