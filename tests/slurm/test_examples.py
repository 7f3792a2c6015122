"""The examples that we ship, through Slurm and on this host: the same results."""
import json
import shutil
import subprocess

import pytest
import yaml

from cluster import TOP

EXAMPLES = TOP / 'examples'


def copy_of(site):
    copy = site.base / 'examples'
    shutil.copytree(EXAMPLES, copy)
    for path in [copy, *copy.rglob('*')]:
        site.give(path)
    return copy


def results(shown):
    """R writes the time into its PDF."""
    return shown['verdict'], shown['exit_code'], [(o['path'], None if o['path'].endswith('.pdf') else o['sha256']) for o in shown['outputs']]


def test_examples_have_the_same_results_as_on_this_host(site):
    place, here, there = copy_of(site), {}, {}
    for name in ['iris', 'iris-r', 'pipeline', 'compiled', 'hostile']:
        here[name] = site.cli('run', f'{site.tag}-{name}-here', '-f', 'request.yaml', '--json', cwd=place / name).json
        there[name] = f'{site.tag}-{name}-there'
        site.succeed('submit', there[name], '-f', 'request.yaml', cwd=place / name)
    site.drain()
    for name, id in there.items():
        found = site.show(id)
        assert results(found) == results(here[name]), (name, found, site.said())
        assert found['engine']['engine'] == 'slurm', found
        assert site.succeed('logs', id).out == site.succeed('logs', here[name]['id']).out, name


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_the_platform_has_the_same_rows_as_on_this_host(site):
    """A query's answer comes in, rows of a post-process go out, in the transaction of the commit."""
    place = copy_of(site) / 'platform'
    script = f"(cat tables.sql reader.sql; /usr/bin/python3 load.py) | psql -q -v password=PASSWORD -v ON_ERROR_STOP=1 '{site.direct}'"
    subprocess.run(['sh', '-ec', script], cwd=place, check=True, stdout=subprocess.DEVNULL)
    with open(site.home / '.pgpass', 'a') as passwords:
        passwords.write('*:*:*:platform_reader:PASSWORD\n')
    config = yaml.safe_load((place / 'config.yaml').read_text())
    mine = json.loads((site.home / '.config/fumehood/config.yaml').read_text())
    mine['queue']['allow'] = {'query': True}
    (place / 'config.yaml').write_text(yaml.safe_dump({**config, **mine}))
    ids = [f'{site.tag}-here', f'{site.tag}-there']
    site.succeed('run', ids[0], '-f', 'request.yaml', '--config', 'config.yaml', cwd=place)
    site.succeed('submit', ids[1], '-f', 'request.yaml', '--config', 'config.yaml', cwd=place)
    site.drain('--config', place / 'config.yaml')
    assert site.show(ids[1])['verdict'] == 'succeeded', (site.show(ids[1]), site.said())
    rows = [site.sql(f"SELECT title, species, score FROM hypotheses WHERE analysis_id = '{id}' ORDER BY species") for id in ids]
    assert len(rows[0]) == 3 and rows[0] == rows[1], rows
