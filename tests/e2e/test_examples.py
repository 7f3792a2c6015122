"""The examples that we ship, run as examples/README.md says."""
import shutil
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
