"""What somebody tried who wanted to break in, to mislead, or to make it stop: each of these worked once."""
import contextlib
import html
import http.client
import os
import re
import signal
import socket
import time

import pytest

from house import House, Viewer, until


# ---- the operator's files

def test_a_file_that_is_no_socket_is_not_replaced(house):
    precious = house.directory / 'thesis.txt'
    precious.write_text('years of work')
    link = house.directory / 'link.sock'
    link.symlink_to(precious)
    for path in [precious, link]:
        result = house.cli('web', '--listen', f'unix:{path}', check=False)
        assert result.returncode == 125 and 'cannot listen on' in result.stderr and result.stderr.count('\n') == 1, result
    assert precious.read_text() == 'years of work' and link.is_symlink()


def test_a_socket_that_nobody_listens_on_is_replaced(house):
    path = house.directory / 'left.sock'
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    served = house.serve('--listen', f'unix:{path}')
    assert served.stop()[0] == 0 and not path.exists()


# ---- what is shown is what was written

def test_a_nul_hides_nothing_in_a_table(house, page):
    id = house.run('nul', r'open("nul.csv", "wb").write(b"a\0head,b\n1\0hidden,2\n")')
    text = page.ask(f'/a/{id}/preview?path=nul.csv').text
    assert '<th>a\\x00head</th>' in text and '<td>1\\x00hidden</td><td>2</td>' in text, text


def test_a_line_break_in_a_name_is_no_space(house, page):
    write = 'open("final\\nresult\\t.txt", "w").write("%s"); open("final result .txt", "w").close()'
    a, b = house.run('break-a', write % 'a'), house.run('break-b', write % 'b')
    report = house.cli('report', a, '-o', '-').stdout
    for text in [page.ask(f'/a/{a}').text, page.ask(f'/a/{a}/preview?path=final%0Aresult%09.txt').text.split('<main', 1)[1], page.ask(f'/compare?a={a}&b={b}').text, report]:
        assert 'final\\x0aresult\\x09.txt<' in text and 'final\nresult\t.txt<' not in text, text


def shown_json(page, id, name):
    answer = page.ask(f'/a/{id}/preview?path={name}')
    return html.unescape(re.search('<pre[^>]*>(.*)</pre>', answer.text, re.S).group(1)), len(answer.body)


def test_json_is_set_out_as_it_was_written(house, page):
    id = house.run('json', r'''
open("n.json", "w").write('{"p":0.1,"e": 1e2, "p": 2,"none":[ ], "text":"a, \\"b\\": {\\u00e4}", "in":[true,{}, {"x":null}]}')
open("word.json", "w").write(' -1.50 ')
open("deep.json", "w").write("[" * 2000 + ",".join(["1"] * 30000) + "]" * 2000)''')
    assert shown_json(page, id, 'n.json')[0] == '''{
  "p": 0.1,
  "e": 1e2,
  "p": 2,
  "none": [],
  "text": "a, \\"b\\": {\\u00e4}",
  "in": [
    true,
    {},
    {
      "x": null
    }
  ]
}'''
    assert shown_json(page, id, 'word.json')[0] == '-1.50'
    text, size = shown_json(page, id, 'deep.json')
    assert size < 4_000_000 and ''.join(text.split()) == '[' * 2000 + ','.join(['1'] * 30000) + ']' * 2000


def test_a_letter_that_comes_in_two_pieces_is_one(house, page):
    id, process = house.start('pieces', r'printf "begun\n\303"; read go; printf "\244\n\342\202"; read go; printf "\254\n\377\n\303"; read go')
    assert until(lambda: page.runs(id))
    viewer = Viewer(page, f'/a/{id}/events')
    for seen in ['begun\n', 'ä\n', '€\n\\xff\n']:
        assert until(lambda: seen in viewer.text()), viewer.text()
        process.stdin.write(b'go\n')
        process.stdin.flush()
    process.stdin.close()
    assert until(lambda: viewer.events[-1][0] == 'end')
    viewer.close()
    assert viewer.text() in ('begun\nä\n€\n\\xff\n', 'begun\nä\n€\n\\xff\n\\xc3'), viewer.text()


# ---- the end

SLOW = '''
import struct, zlib
def chunk(name, data): return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
side, packer = 7900, zlib.compressobj(1)
data = b"".join(packer.compress(bytes(1 + side * 4)) for _ in range(side)) + packer.flush()
for i in range(12):
    open(f"{i}.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)) +
                                 chunk(b"tEXt", b"n\\0%d" % i) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
'''


def test_it_ends_though_many_wait_for_pictures(house):
    id, served = house.run('slow', SLOW), house.serve()
    waiting = []
    for number in range(12):
        waiting.append(http.client.HTTPConnection(served.host, timeout=60))
        waiting[-1].request('GET', f'/a/{id}/image?path={number}.png', headers={'Authorization': f'Bearer {served.token}'})
    assert waiting[0].getresponse().status == 200
    os.kill(served.process.pid, signal.SIGTERM)
    statuses = []
    for connection in waiting[1:]:
        with contextlib.suppress(OSError, http.client.HTTPException):
            statuses.append(connection.getresponse().status)
        connection.close()
    waiting[0].close()
    assert served.stop() == (0, '')
    assert statuses.count(200) < 6, statuses


# ---- requests that two servers read differently

def answers(page, request):
    """The status of everything that is answered on one connection, and whether it was closed then."""
    with socket.create_connection(page.host.split(':')) as s:
        s.settimeout(20)
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        got = b''
        with contextlib.suppress(ConnectionResetError):
            while part := s.recv(65536):
                got += part
    return re.findall(rb'HTTP/1\.1 (\d+)', got)


def test_what_has_two_ends_is_refused(page):
    host, token = f'Host: {page.host}\r\n', f'Authorization: Bearer {page.token}\r\n'
    inner = f'GET /workers HTTP/1.1\r\n{host}{token}\r\n'
    assert answers(page, (inner * 3).encode()) == [b'200'] * 3  # the way it is meant
    for first, headers, body in [
            ('POST /login', f'Content-Length: {5 + len(inner)}\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
            ('POST /login', f'Content-Length: 0\r\nContent-Length: {len(inner)}\r\n', ''),
            ('POST /login', f'Content-Length : {len(inner)}\r\n', ''),
            ('POST /login', f'Transfer-Encoding : chunked\r\nContent-Length: 0\r\n', ''),
            ('GET /workers', f'Content-Length : {len(inner)}\r\n', ''),
            ('GET /workers', f'Content-Length: 0\r\nContent-Length: {len(inner)}\r\n', ''),
            ('GET /workers', f'Content-Length: {5 + len(inner)}\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
            ('GET /workers', 'Host: other.example\r\n', '')]:
        request = f'{first} HTTP/1.1\r\n{host}{token}{headers}\r\n{body}{inner}'
        assert answers(page, request.encode()) == [b'400'], (first, headers)


# ---- another ledger in its place

def test_a_ledger_that_was_replaced_is_the_new_one(binary, tmp_path):
    house = House(binary, tmp_path)
    try:
        old, page = house.run('old', 'pass'), house.serve()
        assert [row['id'] for row in page.json('/')] == [old]
        viewer = Viewer(page, '/events')
        assert until(lambda: page.metric('fumehood_web_ledger_looks_total') > 0)
        (tmp_path / 'share/fumehood').rename(tmp_path / 'aside')
        answer = page.ask('/')
        assert answer.status == 404 and 'there is no ledger' in answer.text
        new = house.run('new', 'pass')
        for _ in range(6):  # whoever of them is asked
            assert [row['id'] for row in page.json('/')] == [new]
        looks, count = page.metric('fumehood_web_ledger_looks_total'), len(viewer.events)
        assert until(lambda: page.metric('fumehood_web_ledger_looks_total') > looks + 1)
        house.run('newer', 'pass')
        assert until(lambda: len(viewer.events) > count)
        viewer.close()
    finally:
        house.close()


# ---- who is slow

@pytest.mark.long
def test_a_download_may_take_its_time(house, page):
    size = 96 << 20
    id = house.run('large', f'open("large.bin", "wb").truncate({size})')
    with socket.create_connection(page.host.split(':')) as s:
        s.settimeout(60)
        s.sendall(f'GET /a/{id}/output?path=large.bin HTTP/1.1\r\nHost: {page.host}\r\nAuthorization: Bearer {page.token}\r\n\r\n'.encode())
        begun, got = time.monotonic(), 0
        while got < size and (part := s.recv(1 << 20)):
            got += len(part)
            if time.monotonic() - begun < 135:
                time.sleep(4 * len(part) / (1 << 20))  # that slow is the wire
    assert got >= size and time.monotonic() - begun > 135, got


def test_who_has_no_token_cannot_take_every_connection(house):
    served, silent = house.serve(), []
    viewer = Viewer(served, '/events')
    try:
        for _ in range(600):
            silent.append(socket.create_connection(served.host.split(':'), timeout=60))
            silent[-1].sendall(b'GET / HT')
        begun = time.monotonic()
        assert served.ask('/').status == 200
        assert time.monotonic() - begun < 10
        assert served.metric('fumehood_web_viewers') == 1  # who is known is not let go for them
    finally:
        for s in silent:
            s.close()
        viewer.close()


def test_a_file_is_sent_as_fast_as_it_is_read(house, page):
    size = 64 << 20
    id = house.run('fast', f'open("large.bin", "wb").truncate({size})')
    begun = time.monotonic()
    assert len(page.ask(f'/a/{id}/output?path=large.bin').body) == size
    assert time.monotonic() - begun < 8
