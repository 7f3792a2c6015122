"""A ledger of a hundred thousand analyses: how fast a page is there, how large it is, and what the server takes for it."""
import os
import re
import sqlite3
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from browser import chromium
from house import House, until

COUNT = 100000
PAGES = {'/': 100, '/?verdict=failed': 300, '/?verdict=timed_out': 300, '/?verdict=failed,timed_out': 300, '/?id=a000012': 300, '/?id=a0000*7': 300, '/?since=1h': 300,
         '/?until=2020-01-01': 300, '/?submitter=nobody': 300, '/?submitter=root&verdict=timed_out': 300, '/?state=queued': 300, '/queue': 300, '/a/a0050000': 100, '/timeline': 300, '/numbers': 300, '/compare?a=a0050000&b=a0050100': 300, '/metrics': 300}
COLUMNS = {'analysis_id': "'a' || lpad(n::text, 7, '0')", 'token': "md5(n::text)", 'plan': 'NULL', 'receipt': 'NULL',
           'verdict': "CASE WHEN n % 10000 = 0 THEN 'timed_out' WHEN n % 100 = 0 THEN 'failed' ELSE 'succeeded' END"}


def fill_sqlite(path):
    db = sqlite3.connect(path)
    db.execute('PRAGMA synchronous = OFF')
    db.create_function('lpad', 3, lambda text, n, fill: str(text).rjust(n, fill), deterministic=True)
    db.create_function('md5', 1, lambda text: os.urandom(16).hex())
    db.execute(f'CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {COUNT}) SELECT n FROM n')
    names = [row[1] for row in db.execute('PRAGMA table_info(fumehood_attempt)')]
    insert(db.execute, names, 'n', lambda name: f'{name} - n * 3600000000', lambda text: text.replace('::text', ''))
    db.commit()
    db.close()


def insert(execute, names, numbers, earlier, dialect):
    own = {**{name: dialect(text) for name, text in COLUMNS.items()}, 'created_at': earlier('created_at'), 'started_at': earlier('started_at')}
    execute(f"INSERT INTO fumehood_analysis (id, created_at, owner) SELECT {own['analysis_id']}, {earlier('a.created_at')}, a.owner "
            f"FROM {numbers}, fumehood_analysis a WHERE a.id = 'first'")
    execute(f"INSERT INTO fumehood_attempt ({', '.join(names)}) SELECT {', '.join(own.get(name, 't.' + name) for name in names)} "
            f"FROM {numbers}, fumehood_attempt t WHERE t.analysis_id = 'first'")


def fill_postgres(url):
    def sql(text):
        done = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', text], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()
    names = sql("SELECT column_name FROM information_schema.columns WHERE table_name = 'attempt' AND table_schema = 'fumehood' ORDER BY ordinal_position")
    insert(lambda text: sql('SET search_path = fumehood; ' + re.sub(r'fumehood_(analysis|attempt)', r'\1', text)), names,
           f'generate_series(1, {COUNT}) AS n', lambda name: f"{name} - n * interval '1 hour'", lambda text: text)
    sql('ANALYZE')


@pytest.fixture(scope='module', params=['sqlite', 'postgresql'])
def large(request, binary, tmp_path_factory):
    directory = tmp_path_factory.mktemp('large')
    house = House(binary, directory)
    server = None
    try:
        if request.param == 'postgresql':
            # It goes when its stdin does.
            server = subprocess.Popen([Path(__file__).resolve().parents[1] / 'support/with-postgres', 'sh', '-c', 'echo "$TEST_LEDGER"; cat'],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
            url = server.stdout.readline().strip()
            house.env['FUMEHOOD_DB'] = f'{url}{"&" if "?" in url else "?"}objects={directory}/objects'
        house.cli('run', 'first', '--', 'true')
        fill_postgres(url) if server else fill_sqlite(directory / 'share/fumehood/ledger.db')
        yield house
    finally:
        house.close()
        if server:
            server.stdin.close()
            server.wait(60)
            server.stdout.close()


def memory(pid):
    text = Path(f'/proc/{pid}/smaps_rollup').read_text()
    return sum(int(re.search(rf'^{name}:\s+(\d+) kB', text, re.M).group(1)) for name in ('Pss_Anon', 'Pss_Shmem'))


def cpu_ms(pid):
    words = Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf('SC_CLK_TCK')


def test_every_page_is_near(large):
    page = large.serve()
    pid, slow = page.process.pid, {}
    for path, most in PAGES.items():
        times, before = [], cpu_ms(pid)
        # Others may be at work here: the best of some is what it takes, and of some more if it was not good yet.
        while len(times) < 5 or (min(times) > most and len(times) < 30):
            begun = time.monotonic()
            answer = page.ask(path)
            times.append(1000 * (time.monotonic() - begun))
            assert answer.status == 200, (path, answer.status, answer.text)
            assert len(answer.body) < 200000, (path, len(answer.body))
        clock, processor = min(times), (cpu_ms(pid) - before) / len(times)
        print(f'{path:40} {statistics.median(times):7.1f} ms, at best {clock:7.1f}, {processor:7.1f} of the processor, {len(answer.body)} bytes')
        if clock > most:
            slow[path] = (times, processor)
    print(f'{memory(pid)} KiB')
    assert memory(pid) < 32 * 1024
    assert slow == {}


def test_a_browser_can_be_used_within_a_second(large):
    page, times = large.serve(), []
    with chromium() as driver:
        driver.get(page.url)
        assert until(lambda: driver.title.startswith('Analyses'))
        while len(times) < 3 or (min(times) > 1000 and len(times) < 10):
            driver.get(f'http://{page.host}/?limit=50')
            times.append(driver.execute_script('return performance.getEntriesByType("navigation")[0].domInteractive'))
    print(f'interactive after {min(times):.0f} to {max(times):.0f} ms')
    assert min(times) < 1000, times


def test_every_row_is_reached(large):
    """From the first page to the last of a filter, each at once."""
    page, seen, path = large.serve(), [], '/?limit=500&verdict=failed'
    while path:
        answer = page.ask(path, headers={'Accept': 'application/json'})
        seen += [row['id'] for row in answer.json]
        link = re.match('<(.*)>; rel="next"', answer.headers.get('Link', ''))
        path = link and link.group(1)
    assert len(seen) == len(set(seen)) == COUNT // 100 - COUNT // 10000
