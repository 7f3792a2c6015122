"""The pages of `fumehood web`, asked as a program asks: what they say, and that each is the JSON of its address, drawn."""
import base64
import contextlib
import hashlib
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request


class Web:
    def __init__(self, hood):
        self.process = hood.popen('web', '--listen', '127.0.0.1:0')
        self.address, self.token = self.process.stdout.readline().strip().split('#')

    def ask(self, path, accept='text/html', **words):
        query = '?' + urllib.parse.urlencode(words) if words else ''
        request = urllib.request.Request(self.address.rstrip('/') + path + query,
                                         headers={'Authorization': f'Bearer {self.token}', 'Accept': accept})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def page(self, path, **words):
        status, text = self.ask(path, **words)
        assert status == 200, text
        return text

    def json(self, path, **words):
        status, text = self.ask(path, accept='application/json', **words)
        assert status == 200, text
        return json.loads(text)


@contextlib.contextmanager
def served(hood):
    web = Web(hood)
    try:
        yield web
    finally:
        web.process.terminate()
        web.process.wait(60)
        web.process.stdout.close()


def made(hood, script, *options):
    id = hood.id()
    assert 'refused' not in hood.cli('run', id, *options, '--', 'sh', '-c', script).err
    return id


def test_two_are_compared_by_what_differs(hood, ledger):
    a = made(hood, 'printf "gene,n\\na,1\\nb,<i>2\\n" >t.csv; echo same >same.txt; echo 1 >a.txt', '--wall', '5m')
    b = made(hood, 'printf "gene,n\\na,1\\nb,3\\nc,4\\n" >t.csv; echo same >same.txt; echo 1 >b.txt', '--wall', '6m')
    with served(hood) as web:
        found = web.json('/compare', a=a, b=b)
        page = web.page('/compare', a=a, b=b)
        assert web.ask('/compare', accept='application/json', a=a)[0] == 400 and '<form' in web.page('/compare', a=a)
        assert web.ask('/compare', a=a, b='nobody')[0] == 404
        assert web.ask('/compare', a=a, b=b, attempt_b='0')[0] == 400 and web.ask('/compare', a=a, b=b, attempt_b='7')[0] == 404
        itself = web.json('/compare', a=a, b=a)
    assert found['a']['id'] == a and found['b']['id'] == b and found['a']['usage']['wall_ms'] is not None
    assert {row['name']: (row['a'], row['b']) for row in found['limits']} == {'wall': ('5m', '6m')}
    assert [row['name'] for row in found['options']] == ['command']
    assert {file['path']: file['state'] for file in found['outputs']} == {
        'a.txt': 'only_a', 'b.txt': 'only_b', 'same.txt': 'same', 't.csv': 'differs'}
    assert '<del>&lt;i&gt;2</del> <ins>3</ins>' in page and 'only in B' in page and '<i>' not in page
    assert '1 cells differ, 0 rows are only in A, 1 only in B.' in page
    assert itself['options'] == itself['limits'] == [] and {file['state'] for file in itself['outputs']} == {'same'}


def test_a_timeline_has_what_ran_and_what_waits(hood, ledger):
    ran, failed, queued, waits = made(hood, 'true'), made(hood, 'exit 3'), hood.id(), hood.id()
    hood.cli('submit', queued, '--', 'true')
    hood.succeed('worker', '--drain')
    hood.cli('submit', waits, '--', 'true')
    with served(hood) as web:
        found = web.json('/timeline')
        page = web.page('/timeline')
        before = web.json('/timeline', since='2020-01-01', until='2020-01-02')
        assert 'Nothing ran then.' in web.page('/timeline', since='2020-01-01', until='2020-01-02')
        assert web.ask('/timeline', since='yesterday')[0] == 400
    rows = {row['id']: row for row in found['analyses']}
    assert [rows[id]['verdict'] for id in (ran, failed, queued, waits)] == ['succeeded', 'failed', 'succeeded', None]
    assert rows[queued]['submitted'] <= rows[queued]['started'] <= rows[queued]['ended'] and rows[ran]['submitted'] is None
    assert rows[waits]['state'] == 'queued' and rows[waits]['started'] is None and rows[waits]['host'] is None and rows[queued]['host']
    assert before['analyses'] == [] and not found['more']
    assert all(page.count(f'href="/a/{id}') == 2 for id in rows), 'once in the picture and once in the table'


def test_numbers_are_those_of_the_ledger(hood, ledger):
    made(hood, 'true'), made(hood, 'exit 3'), made(hood, 'exit 3'), made(hood, 'exit 4')
    hood.cli('run', hood.id(), '--', '/bin/echo', '<b>')
    with served(hood) as web:
        found = web.json('/numbers')
        page = web.page('/numbers')
        early = web.json('/numbers', since='2020-01-01', until='2020-01-03')
        assert web.ask('/numbers', since='2000-01-01')[0] == 400 and web.ask('/numbers', since='2020-01-03', until='2020-01-01')[0] == 400
    counts = {}
    for day in found['days']:
        for verdict, n in day['verdicts'].items():
            counts[verdict] = counts.get(verdict, 0) + n
    assert counts == {'succeeded': 2, 'failed': 3} and len(found['days']) in (30, 31)
    commands = {row['command']: row for row in found['commands']}
    assert set(commands) == {'sh -c', '/bin/echo <b>'} and (commands['sh -c']['count'], commands['sh -c']['failed']) == (4, 3)
    assert 0 <= commands['sh -c']['wall_mean_ms'] <= commands['sh -c']['wall_most_ms']
    assert [(row['command'], row['verdict'], row['reason'], row['count']) for row in found['failures']] == [
        ('sh -c', 'failed', 'exit status 3', 2), ('sh -c', 'failed', 'exit status 4', 1)]
    assert '/bin/echo &lt;b&gt;' in page and '<b>' not in page
    assert [day['day'] for day in early['days']] == ['2020-01-01', '2020-01-02'] and early['commands'] == early['failures'] == []


def test_one_has_steps_inputs_denials_lineage_and_its_plan(hood, ledger):
    first = made(hood, 'echo 1 >a.txt; echo 2 >b.txt')
    second = made(hood, 'cat from/*/a.txt >c.txt', '--from', first)
    third = made(hood, 'ls; exit 3', '--from', second, '--output', '<i>*')
    again = made(hood, 'exit 3')
    hood.cli('run', again, '--', 'sh', '-c', 'true')
    with served(hood) as web:
        page, wrong, twice = web.page(f'/a/{second}'), web.page(f'/a/{third}'), web.page(f'/a/{again}')
        assert web.page('/compare', a=again, b=again, attempt_a=1, attempt_b=2).count('attempt 1') == 1
    for section in ('inputs', 'lineage', 'outputs'):
        assert f'<h2 id="{section}">' in page, section
    assert f'href="/a/{first}?attempt=1"' in page and f'href="/a/{third}?attempt=1"' in page and 'class="graph"' in page
    assert '<summary><h2>Plan</h2></summary>' in page and '&quot;limits&quot;: {' in page
    assert '&lt;i&gt;*' in wrong and '<i>' not in wrong
    assert f'/compare?a={again}&amp;attempt_a=1&amp;b={again}&amp;attempt_b=2' in twice


def test_a_report_stands_alone(hood, ledger):
    a = made(hood, 'echo "<script>alert(1)</script>"; printf "<b>" >"<img src=x>.csv"')
    b = made(hood, 'printf "\\0a\\nb"; head -c 300000 /dev/zero; cat from/*/*.csv >c.txt', '--from', a)
    file = hood.home / 'report.html'
    told = json.loads(hood.succeed('report', a, b, '-o', str(file), '--json').out)
    page = file.read_text()
    assert told == {'file': str(file), 'bytes': len(page.encode()), 'analyses': 2}
    style = re.search('<style>(.*)</style>', page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page and "default-src 'none'" in page
    assert '<script' not in page and '<img src=x' not in page and 'href=' not in page and ' style=' not in page
    assert '&lt;script&gt;alert(1)&lt;/script&gt;' in page and '&lt;img src=x&gt;.csv' in page
    assert hashlib.sha256(b'<b>').hexdigest() in page and '\\x00a\nb\\x00' in page and 'bytes are not shown' in page and 'class="graph"' in page
    assert hood.cli('report', a, '-o', str(file)).status == 125 and file.read_text() == page
    hood.succeed('report', a, '-o', str(file), '--force')
    assert b not in re.findall('<h1>([^ <]*)', file.read_text())
    common = os.path.commonprefix([a, b])
    assert len(re.findall('<article>', hood.succeed('report', common, '-o', '-').out)) == 2


def test_a_report_of_nothing_is_none(hood, ledger):
    made(hood, 'true')
    for words, said in ((('nobody',), "there is no analysis 'nobody'"), ((), 'is used as'), (('../x',), '../x')):
        result = hood.cli('report', *words, '-o', str(hood.home / 'none.html'))
        assert result.status != 0 and said in result.err, result
    assert "where to?" in hood.cli('report', 'x').err
    assert hood.cli('report', 'x', '-o', '-', '--json').status != 0
    assert not (hood.home / 'none.html').exists()
