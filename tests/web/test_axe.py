"""Can people who do not see well, or use no mouse, use the pages? Asked of axe-core (from npm), in light and dark, wide and narrow."""
import subprocess
import tarfile

import pytest

from browser import chromium
from house import quoted, until

pytestmark = pytest.mark.long  # it is fetched


@pytest.fixture(scope='module')
def axe(tmp_path_factory):
    directory = tmp_path_factory.mktemp('axe')
    subprocess.run(['npm', 'pack', 'axe-core@4', '--silent'], cwd=directory, check=True, timeout=300, stdout=subprocess.DEVNULL)
    with tarfile.open(next(directory.glob('*.tgz'))) as archive:
        return archive.extractfile('package/axe.min.js').read().decode()


@pytest.mark.parametrize('look', [{}, {'dark': True}, {'width': 390, 'height': 800}], ids=['light', 'dark', 'phone'])
def test_axe_finds_nothing(axe, house, page, look):
    problems = []
    compared = f'/compare?a={quoted(house.hostile)}&b={quoted(house.failed)}'
    with chromium(**look) as driver:
        driver.get(f'http://{page.host}/login')
        paths = ['/', '/queue', '/timeline', '/numbers', compared, f'/a/{house.hostile}', f'/a/{house.failed}', '/?verdict=lost', '/nothing',
                 f'/a/{house.hostile}/preview?path=evil.json', f'/a/{house.hostile}/preview?path={quoted("<img src=x onerror=alert(1)>.csv")}']
        for path in [None, *paths]:
            if path == '/':
                driver.get(page.url)
                assert until(lambda: driver.title.startswith('Analyses'))
            elif path:
                driver.get(f'http://{page.host}{path}')
            driver.execute_script(axe)
            found = driver.execute_async_script('const done = arguments[0]; axe.run().then((r) => done(r.violations), (e) => done([{id: String(e), nodes: []}]))')
            problems += [(path or 'login', rule['id'], [node['html'][:200] for node in rule['nodes']][:3]) for rule in found]
    assert problems == []
