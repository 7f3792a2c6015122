"""The pages of `fumehood web`, asked as a program asks: what they say, and that each is the JSON of its address, drawn."""
import contextlib
import json
import urllib.error
import urllib.parse
import urllib.request

import pytest


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
    hood.cli('run', id, *options, '--', 'sh', '-c', script)
    return id


def test_two_are_compared_by_what_differs(hood, ledger):
    a = made(hood, 'printf "gene,n\\na,1\\nb,<i>2\\n" >t.csv; echo same >same.txt; echo 1 >a.txt', '--memory', '300M')
    b = made(hood, 'printf "gene,n\\na,1\\nb,3\\nc,4\\n" >t.csv; echo same >same.txt; echo 1 >b.txt', '--memory', '400M')
    with served(hood) as web:
        found = web.json('/compare', a=a, b=b)
        page = web.page('/compare', a=a, b=b)
        assert web.ask('/compare', accept='application/json', a=a)[0] == 400 and '<form' in web.page('/compare', a=a)
        assert web.ask('/compare', a=a, b='nobody')[0] == 404
        assert web.ask('/compare', a=a, b=b, attempt_b='0')[0] == 400 and web.ask('/compare', a=a, b=b, attempt_b='7')[0] == 404
        itself = web.json('/compare', a=a, b=a)
    assert found['a']['id'] == a and found['b']['id'] == b and found['a']['usage']['wall_ms'] is not None
    assert {row['name']: (row['a'], row['b']) for row in found['limits']} == {'memory': ('300M', '400M')}
    assert [row['name'] for row in found['options']] == ['command']
    assert {file['path']: file['state'] for file in found['outputs']} == {
        'a.txt': 'only_a', 'b.txt': 'only_b', 'same.txt': 'same', 't.csv': 'differs'}
    assert '<del>&lt;i&gt;2</del> <ins>3</ins>' in page and 'only in B' in page and '<i>' not in page
    assert '1 cells differ, 0 rows are only in A, 1 only in B.' in page
    assert itself['options'] == itself['limits'] == [] and {file['state'] for file in itself['outputs']} == {'same'}
