"""Who may look, at what, and how it is answered."""
import contextlib
import hashlib
import os
import re
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from house import Viewer, quoted, until

ALWAYS = {'X-Content-Type-Options': 'nosniff', 'X-Frame-Options': 'DENY', 'Cross-Origin-Resource-Policy': 'same-origin',
          'Cross-Origin-Opener-Policy': 'same-origin'}


def pages_of(house):
    return ['/', '/queue', '/workers', '/timeline', '/numbers', f'/compare?a={house.hostile}&b={house.failed}', f'/a/{house.hostile}', f'/a/{house.hostile}/preview?path=evil.html', '/metrics']


# ---- who

def test_who_has_no_token_sees_nothing(house, page):
    for path in [*pages_of(house), '/events', f'/a/{house.hostile}/output?path=evil.html', '/no/such/page']:
        for wrong in ['', 'x', page.token[:-1], page.token + '0', page.token.upper() + 'Z', ' ' + page.token]:
            answer = page.ask(path, token=wrong)
            assert answer.status == 401, (path, wrong, answer.status)
            assert house.tag not in answer.text
        answer = page.ask(path, token='', headers={'Accept': 'application/json'})
        assert answer.status == 401 and 'Bearer' in answer.json['error']['message']


def test_the_token_becomes_a_cookie(page):
    answer = page.ask('/login', 'POST', body=f'token={page.token}', token='', headers={'Origin': f'http://{page.host}'})
    assert answer.status == 303 and answer.headers['Location'] == '/'
    cookie = answer.headers['Set-Cookie']
    assert 'HttpOnly' in cookie and 'SameSite=Strict' in cookie and page.token not in cookie
    name = cookie.split(';')[0]
    assert page.ask('/', headers={'Cookie': f'a=b; {name}; c=d'}).status == 200
    for wrong in [name[:-1], name + '0', name.split('=')[0] + '=', name.split('=')[1], f'x{name}', page.token]:
        assert page.ask('/', headers={'Cookie': wrong}).status == 401, wrong


@pytest.mark.skipif(os.geteuid() != 0, reason='needs another user')
def test_a_cookie_is_nothing_to_another_user(page):
    """A server on another port of this host gets it, too: browsers do not tell ports apart."""
    cookie = page.ask('/login', 'POST', body=f'token={page.token}', token='').headers['Set-Cookie'].split(';')[0]
    script = ('import http.client, sys; c = http.client.HTTPConnection(sys.argv[1]); c.request("GET", "/", headers={"Cookie": sys.argv[2]}); '
              'print(c.getresponse().status)')
    for host in [page.host, f'localhost:{page.host.split(":")[1]}']:
        ask = ['/usr/bin/python3', '-c', script, host, cookie]
        assert subprocess.run(ask, capture_output=True, text=True).stdout == '200\n'
        other = ['setpriv', '--reuid', '61999', '--regid', '61999', '--clear-groups', *ask]
        assert subprocess.run(other, capture_output=True, text=True).stdout == '401\n'


@contextlib.contextmanager
def many_connections(count):
    """Of the host, none of them the page's."""
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(socket.create_server(('127.0.0.1', 0), backlog=count))
        for _ in range(count):
            stack.enter_context(socket.create_connection(door.getsockname()))
            stack.enter_context(door.accept()[0])
        yield


def bytes_read(page, **request):
    """By the page's process, for one request on a connection of its own."""
    count = lambda: int(re.search(r'rchar: (\d+)', Path(f'/proc/{page.process.pid}/io').read_text())[1])
    before = count()
    status = page.ask('/', **request).status
    return status, count() - before


def test_a_stranger_does_not_make_it_look_through_the_hosts_connections(page):
    cookie = page.ask('/login', 'POST', body=f'token={page.token}', token='').headers['Set-Cookie'].split(';')[0]
    name, value = cookie.split('=')
    with many_connections(400):  # two lines each, of 150 bytes; it stops at its own
        for wrong in [None, 'a=b', f'{name}=', f'{name}=0.{"a" * 64}', f'{name}={value[:-1]}x']:
            seen = [bytes_read(page, token='', headers={'Cookie': wrong} if wrong else {}) for _ in range(20)]
            assert {status for status, _ in seen} == {401} and sum(size for _, size in seen) < 60000, (wrong, seen)
        assert page.ask('/', token='', headers={'Cookie': cookie}).status == 200


def test_another_sites_page_cannot_log_in(page):
    for headers in [{'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': f'http://{page.host}.evil.example'},
                    {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site', 'Origin': f'http://{page.host}'}]:
        answer = page.ask('/login', 'POST', body=f'token={page.token}', token='', headers=headers)
        assert answer.status == 403 and 'Set-Cookie' not in answer.headers, headers
    for body in ['', 'token=', 'token', f'x={page.token}', f'token={page.token}x', 'token=' + 'a' * 200]:
        answer = page.ask('/login', 'POST', body=body, token='')
        assert answer.status == 401 and 'Set-Cookie' not in answer.headers, body


def test_a_name_that_is_not_ours_is_refused_before_all_else(house, page):
    port = page.host.split(':')[1]
    for host in ['evil.example', f'evil.example:{port}', f'127.0.0.1:{int(port) + 1}', '127.0.0.1', f'127.0.0.1:{port}.evil.example', ' ']:
        for path in [*pages_of(house), '/assets/style.css', '/login', '/no/such/page']:
            assert page.ask(path, host=host).status == 421, (host, path)
        assert page.ask('/login', 'POST', body=f'token={page.token}', host=host).status == 421
    assert page.ask('/', host=f'LocalHost:{port}').status == 200
    named = house.serve('--listen', '127.0.0.1:0', '--host', 'hood.example:443')
    assert named.ask('/', host='hood.example:443').status == 200
    assert named.ask('/', host='hood.example').status == 421


def test_nothing_can_be_changed(house, page):
    def digest():
        return hashlib.sha256((house.directory / 'share/fumehood/ledger.db').read_bytes()).hexdigest()
    before = digest()
    for method in ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'FUME']:
        for path in pages_of(house):
            assert page.ask(path, method, body='' if method in ('POST', 'PUT', 'PATCH') else None).status == 405, (method, path)
    for path in pages_of(house):
        page.ask(path)
    assert digest() == before


@pytest.mark.skipif(os.geteuid() != 0, reason='needs another user')
def test_on_a_unix_socket_it_is_who_the_peer_is(house):
    path = house.directory / 'web.sock'
    served = house.serve('--listen', f'unix:{path}')
    assert served.url == f'unix:{path}' and path.stat().st_mode & 0o777 == 0o600

    def ask(*user):
        script = ('import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); '
                  's.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(100).split()[1].decode())')
        return subprocess.run([*user, '/usr/bin/python3', '-c', script, path], capture_output=True, text=True)
    assert ask().stdout == '200\n'
    house.directory.chmod(0o755)
    path.chmod(0o666)
    assert ask('setpriv', '--reuid', '61999', '--regid', '61999', '--clear-groups').stdout == '401\n'
    assert served.stop()[0] == 0 and not path.exists()


# ---- what

def test_every_answer_has_its_walls(house, page):
    for path in [*pages_of(house), '/assets/style.css', '/assets/page.js', '/no', '/a/no-such', '/?limit=x',
                 f'/a/{house.hostile}/output?path=evil.html']:
        for token in ['', page.token]:
            answer = page.ask(path, token=token)
            for name, value in ALWAYS.items():
                assert answer.headers.get(name) == value, (path, name)
            policy = answer.headers['Content-Security-Policy']
            assert "default-src 'none'" in policy and 'unsafe' not in policy and "frame-ancestors 'none'" in policy


def test_a_page_is_the_same_as_json(house, page):
    def said(*words):
        import json
        return json.loads(house.cli(*words, '--json').stdout)
    assert page.json('/') == said('ls')
    assert page.json(f'/a/{house.hostile}') == said('show', house.hostile)
    assert page.json('/workers') == said('workers')
    top = page.json('/queue')
    assert top['queue'] == said('top', '--once')['queue']


def test_what_strangers_wrote_is_text(house, page):
    for path in [*pages_of(house)[:-1], '/?id=%3Cscript%3E', '/?state=%3Cscript%3E', f'/a/%3Cscript%3E', '/%3Cscript%3E',
                 f'/a/{house.hostile}/preview?path=evil.json', f'/a/{house.hostile}/preview?path={quoted("<img src=x onerror=alert(1)>.csv")}',
                 f'/a/{house.hostile}/preview?path=not-utf8-%FF%FE.txt']:
        answer = page.ask(path)
        assert answer.headers['Content-Type'] == 'text/html; charset=utf-8', path
        markup = re.sub(r'<(/?[a-z][a-z0-9]*)((?: [a-zA-Z0-9-]+(?:="[^"<>]*")?)*)/?>|<!doctype html>', '', answer.text)
        assert '<' not in markup and '>' not in markup, (path, markup)
        tags = set(re.findall(r'<([a-z][a-z0-9]*)', answer.text))
        assert 'img' not in tags and 'b' not in tags, (path, tags)
        assert answer.text.count('<script') == 1 and ' style=' not in answer.text and not re.search(r' on[a-z]+="', answer.text)
        assert '\x1b' not in answer.text and '\u202e' not in answer.text


def test_outputs_are_for_saving(house, page):
    want = {'evil.html': b"<script>document.title='owned'</script>", 'not-utf8-%FF%FE.txt': b"\x00\x01\xff<script>document.title='owned'</script>\n"}
    for path, content in want.items():
        answer = page.ask(f'/a/{house.hostile}/output?path={path}')
        assert answer.status == 200 and answer.body == content
        assert answer.headers['Content-Type'] == 'application/octet-stream'
        assert answer.headers['Content-Disposition'].startswith("attachment; filename*=UTF-8''")
    for path, status in [('no', 404), ('../../etc/passwd', 404), ('/etc/passwd', 404), ('', 400)]:
        assert page.ask(f'/a/{house.hostile}/output?path={path}').status == status


def test_a_path_of_the_ledger_that_leads_elsewhere_is_no_download(house, page):
    id = house.run('astray', 'open("one", "w").write("1"); open("two", "w").write("2")')
    ledger = house.directory / 'share/fumehood/ledger.db'
    for path in [b'../one', b'/etc/x', b'a//b', b'a/../b', b'', b'a\0b', b'x/' * 2500 + b'x']:
        with contextlib.closing(sqlite3.connect(ledger, timeout=60)) as db, db:
            db.execute('UPDATE fumehood_output SET path = ? WHERE analysis_id = ? AND position = 0', (path, id))
        for where in ['', '/output?path=two', '/preview?path=two', '/output?path=..%2Fone']:
            answer = page.ask(f'/a/{id}{where}', headers={'Accept': 'application/json'})
            assert answer.status >= 400, (path, where, answer.status)
            assert id in answer.text and 'damaged' in answer.text, (path, where, answer.text)
    assert page.ask('/').status == 200
    house.cli('rm', id)


def test_every_page_of_a_list_is_reached_and_nothing_twice(house, page):
    house.run('p1', 'pass'), house.run('p2', 'pass'), house.run('p3', 'pass')
    wanted = [row['id'] for row in page.json('/') if row['state'] == 'finished']
    seen, path = [], '/?limit=2'
    while path:
        answer = page.ask(path, headers={'Accept': 'application/json'})
        seen += [row['id'] for row in answer.json if row['state'] == 'finished']
        html = page.ask(path).text
        path = re.match('<(.*)>; rel="next"', answer.headers.get('Link', ''))
        path = path and path.group(1)
        assert ('rel="next"' in html) == bool(path)
    assert seen == wanted


@pytest.mark.parametrize('path', ['/%', '/%0', '/%zz', '/%00', '/a/%00', '/?id=%00', '/?nonsense=1', '/?limit=0', '/?limit=100000', '/?before=1',
                                  '/?before=x-y', '/?before=1-%2e%2e', '/?state=x', '/?verdict=x', '/?since=x', '/a/..', '/a/x?attempt=0',
                                  '/a/x?attempt=1e9', '/a/%2e%2e%2f', '/?' + '&'.join(['a=b'] * 17), '/a/b/c/d/e', '/' + 'x' * 5000])
def test_an_address_that_makes_no_sense(page, path):
    answer = page.ask(path)
    assert answer.status in (400, 404, 414), (path, answer.status)
    assert '500' not in answer.text[:20] and page.ask('/').status == 200


# ---- who takes too much

def test_a_request_that_is_too_large_is_cut_off(page):
    with socket.create_connection(page.host.split(':')) as s:
        s.settimeout(60)
        s.sendall(f'GET / HTTP/1.1\r\nHost: {page.host}\r\nX: '.encode())
        try:
            for _ in range(100):
                s.sendall(b'x' * 10000)
            answer = s.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            answer = b''
    assert answer == b'' or answer.split()[1] in (b'400', b'413', b'431'), answer
    assert page.ask('/').status == 200


def test_who_sends_nothing_holds_nobody(page):
    silent = [socket.create_connection(page.host.split(':')) for _ in range(200)]
    for s in silent[:100]:
        s.sendall(b'GET / HT')
    try:
        for _ in range(20):
            assert page.ask('/').status == 200
    finally:
        for s in silent:
            s.close()


@pytest.mark.long
def test_who_is_silent_is_let_go(page):
    with socket.create_connection(page.host.split(':')) as s:
        s.settimeout(60)
        s.sendall(b'GET / HT')
        assert s.recv(100)[:12] in (b'', b'HTTP/1.1 408')


# ---- live

def test_two_hundred_viewers_of_a_log_are_one_reader(house, page):
    id, process = house.start('talks', 'echo begun; while read line; do echo "$line"; echo "! $line" >&2; done')
    assert until(lambda: page.runs(id))
    before = page.metric('fumehood_web_log_reads_total')
    viewers = [Viewer(page, f'/a/{id}/events') for _ in range(200)]
    deaf = [Viewer(page, f'/a/{id}/events', reads=False) for _ in range(10)]
    assert {viewer.status for viewer in viewers} == {200}
    assert until(lambda: all('begun' in viewer.text() for viewer in viewers))
    assert page.metric('fumehood_web_viewers') == 210
    lines = 10
    for number in range(lines):
        process.stdin.write(f'line {number} <b>\n'.encode())
        process.stdin.flush()
        assert until(lambda: all(f'! line {number} <b>\n' in viewer.text() for viewer in viewers)), number
    # A line may be heard in two pieces, one for each of its streams.
    assert page.metric('fumehood_web_log_reads_total') - before <= 2 * lines + 2
    assert page.ask('/').status == 200
    process.stdin.close()
    assert until(lambda: all(viewer.events[-1][0] == 'end' for viewer in viewers))
    for viewer in deaf:
        viewer.close()
    for viewer in viewers:
        viewer.join(30)
        assert not viewer.is_alive()
        viewer.close()
    assert until(lambda: page.metric('fumehood_web_viewers') == 0, 40)


def test_news_of_the_ledger(house, page):
    viewer = Viewer(page, '/events')
    assert until(viewer.begun.is_set)
    looks = page.metric('fumehood_web_ledger_looks_total')
    assert until(lambda: page.metric('fumehood_web_ledger_looks_total') > looks + 1)
    house.run('news', 'pass')
    assert until(lambda: ('change', True) in viewer.events)
    viewer.close()


def test_it_ends_while_people_look(house):
    served = house.serve()
    id, process = house.start('forever', 'echo begun; cat')
    assert until(lambda: served.runs(id))
    viewers = [Viewer(served, '/events'), Viewer(served, f'/a/{id}/events')]
    assert until(lambda: 'begun' in viewers[1].text())
    silent = socket.create_connection(served.host.split(':'))
    assert served.stop() == (0, '')
    silent.close()
    for viewer in viewers:
        viewer.join(30)
        assert not viewer.is_alive()
    process.stdin.close()


# ---- bad words

@pytest.mark.parametrize('words', [['--listen', 'x'], ['--listen', '127.0.0.1'], ['--listen', '127.0.0.1:99999'], ['--listen', 'example.org:80'],
                                   ['--listen', 'unix:'], ['--listen', 'unix:' + 'x' * 200], ['--listen', '192.0.2.1:0'], ['--nonsense'], ['word']])
def test_bad_words_are_refused_in_a_sentence(house, words):
    result = house.cli('web', *words, check=False)
    assert result.returncode == 125 and result.stdout == '' and result.stderr.startswith('fumehood: ') and result.stderr.count('\n') == 1, result


def test_where_there_is_no_ledger_it_says_so(binary, tmp_path):
    from house import House
    empty = House(binary, tmp_path)
    try:
        served = empty.serve()
        answer = served.ask('/')
        assert answer.status in (200, 404, 503) and 'ledger' in answer.text
        assert not (tmp_path / 'share').exists()
    finally:
        empty.close()


# ---- started by systemd

def test_a_socket_that_is_passed_to_it(house):
    path = house.directory / 'passed.sock'
    process = subprocess.Popen(['systemd-socket-activate', '-l', path, *(f'--setenv={name}={value}' for name, value in house.env.items()),
                                house.binary, 'web'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=house.env)
    try:
        assert until(path.exists)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(path))
            s.sendall(b'GET /workers HTTP/1.0\r\nAccept: application/json\r\n\r\n')
            assert s.recv(100).split()[1] == b'200'
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_the_units_are_as_systemd_wants_them(house):
    top = Path(__file__).resolve().parents[2] / 'packaging/systemd'
    for name in ['fumehood-web.socket', 'fumehood-web.service']:
        (house.directory / name).write_text((top / name).read_text().replace('@bindir@/fumehood', str(house.binary)))
    told = subprocess.run(['systemd-analyze', 'verify', '--man=no', *(house.directory / name for name in ['fumehood-web.socket', 'fumehood-web.service'])],
                          capture_output=True, text=True)
    own = [line for line in told.stderr.splitlines() if 'fumehood' in line]
    assert told.returncode == 0 and own == [], told


# ---- behind another server

def test_a_server_in_front_of_it_says_a_secret(house):
    secret = house.directory / 'secret'
    secret.write_text('open sesame, and more\n')
    result = house.cli('web', '--secret', str(secret), check=False)
    assert result.returncode == 125 and 'chmod 600' in result.stderr, result
    secret.chmod(0o600)
    served = house.serve('--listen', '127.0.0.1:0', '--secret', str(secret), '--host', 'hood.example')
    for said, status in [('open sesame, and more', 200), ('open sesame, and mor', 401), ('', 401)]:
        answer = served.ask('/', token='', host='hood.example', headers={'X-Fumehood-Secret': said})
        assert answer.status == status, (said, answer.status)
    assert served.ask('/', token='', headers={'X-Fumehood-Secret': 'open sesame, and more'}, host='evil.example').status == 421
    secret.write_text('short\n')
    result = house.cli('web', '--secret', str(secret), check=False)
    assert result.returncode == 125 and '5 characters' in result.stderr, result
    result = house.cli('web', '--secret', str(house.directory / 'none'), check=False)
    assert result.returncode == 125 and 'cannot read the secret' in result.stderr, result


@pytest.mark.long
def test_who_sends_a_byte_now_and_then_is_cut_off(page):
    begun = time.monotonic()
    with socket.create_connection(page.host.split(':')) as s:
        s.settimeout(10)
        try:
            for byte in 'GET / HTTP/1.1\r\nHost: x' + 'x' * 60:
                s.sendall(byte.encode())
                try:
                    if s.recv(1) == b'':
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass
    assert 110 < time.monotonic() - begun < 150
