"""Pictures of strangers: what a browser gets is made by us, and what cannot be made is not shown."""
import hashlib
import os
import signal
import struct
import threading
import zlib

import pytest
from selenium.webdriver.common.by import By

from browser import chromium
from house import quoted, until

SCRIPT = '''
import struct, zlib

def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))

def png(width, height, rows, more=b''):
    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) + more
            + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))

def write(name, data):
    open(name, 'wb').write(data)

rows = b''.join(b'\\0' + b'\\xff\\0\\0' * 500 + b'\\0\\0\\xff' * 500 for _ in range(400))
good = png(1000, 400, rows, chunk(b'tEXt', b'Comment\\0<script>secret</script>'))
write('good.png', good)
write('good again.png', good)
write('"><img src=x onerror=alert(1)>.png', good)
write('bomb.png', png(60000, 60000, b'\\0' * 1000000))
write('deep.png', png(8192, 8192, b'\\0' * 8192 * (3 * 8192 + 1)))
write('deep2.png', png(8192, 8190, b'\\0' * 8190 * (3 * 8192 + 1)))
write('cut.png', good[:-200])
write('script.png', b'<script>document.title="owned"</script>')
write('script.jpg', good + b'<script>document.title="owned"</script>')
write('vector.svg', b'<svg xmlns="http://www.w3.org/2000/svg"/>')
'''


@pytest.fixture(scope='module')
def drawn(house):
    return house.run('drawn', SCRIPT)


def address(id, name, width=320):
    return f'/a/{id}/image?path={quoted(name)}&width={width}'


def chunks(png):
    assert png[:8] == b'\x89PNG\r\n\x1a\n'
    at, found = 8, []
    while at < len(png):
        size, name = struct.unpack('>I4s', png[at:at + 8])
        data = png[at + 8:at + 8 + size]
        assert struct.unpack('>I', png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(name + data)
        found.append((name, data))
        at += 12 + size
    return found


def test_it_is_decoded_and_encoded_anew(page, drawn):
    for name in ['good.png', 'good again.png', '"><img src=x onerror=alert(1)>.png', 'script.jpg']:
        for width, height in [(320, 128), (1280, 400)]:
            answer = page.ask(address(drawn, name, width))
            assert answer.status == 200, answer.text
            assert answer.headers['Content-Type'] == 'image/png' and answer.headers['X-Content-Type-Options'] == 'nosniff'
            parts = chunks(answer.body)
            assert {part for part, _ in parts} == {b'IHDR', b'IDAT', b'IEND'}
            assert struct.unpack('>II', parts[0][1][:8]) == (min(width, 1000), height)
            assert b'script' not in answer.body


def test_what_cannot_be_made_a_picture_says_why_and_can_be_saved(page, drawn):
    for name, why in [('bomb.png', 'too large'), ('cut.png', 'damaged'), ('script.png', 'neither'), ('vector.svg', 'neither')]:
        for _ in range(2):
            answer = page.ask(address(drawn, name))
            assert answer.status == 403 and why in answer.text and 'can be saved' in answer.text, (name, answer.text)
            assert answer.headers['Content-Type'].startswith('text/html')
        saved = page.ask(f'/a/{drawn}/output?path={quoted(name)}')
        assert saved.status == 200 and saved.headers['Content-Disposition'].startswith('attachment')


def test_a_large_one_is_within_the_bounds(page, drawn):
    """64 million pixels out of 200 KB: decoded, or too late on a busy machine, and the page goes on."""
    answer = page.ask(address(drawn, 'deep.png'))
    assert answer.status == 200 and len(answer.body) < 10000 or answer.status == 403 and '5 seconds' in answer.text
    assert page.ask('/').status == 200


def test_who_may_not_look_gets_none(page, drawn):
    assert page.ask(address(drawn, 'good.png'), token='').status == 401
    assert page.ask(address(drawn, 'good.png'), host='evil.example').status == 421


def test_addresses_that_are_none(page, drawn):
    for path, status in [(f'/a/{drawn}/image', 400), (f'/a/{drawn}/image?path=good.png&width=7', 400), (f'/a/{drawn}/image?path=good.png&width=x', 400),
                         (f'/a/{drawn}/image?path=none.png', 404), ('/a/none/image?path=good.png', 404), (f'/a/{drawn}/image?path=../good.png', 404)]:
        assert page.ask(path).status == status, path


def test_only_who_names_the_digest_may_keep_it(page, drawn):
    digest = hashlib.sha256(page.ask(f'/a/{drawn}/output?path=good.png').body).hexdigest()
    assert page.ask(address(drawn, 'good.png')).headers['Cache-Control'] == 'no-store'
    assert page.ask(address(drawn, 'good.png') + '&sha256=' + digest).headers['Cache-Control'] == 'private, max-age=86400'
    assert page.ask(address(drawn, 'good.png') + '&sha256=' + digest[::-1]).headers['Cache-Control'] == 'no-store'


def test_the_pages_show_them(page, drawn):
    text = page.ask(f'/a/{drawn}').text
    assert text.count('<img class="thumbnail"') == 9 and 'alt="Thumbnail of good.png"' in text and '<img src=x' not in text
    text = page.ask(f'/a/{drawn}/preview?path=good.png').text
    assert '<img class="picture" src="/a/' in text and 'width=1280' in text and 'Save it' in text


def children(page):
    """Those that have become the decoder: until then it is the server's thread that would be stopped with it."""
    tasks = f'/proc/{page.process.pid}/task'
    pids = [int(pid) for task in os.listdir(tasks) for pid in open(f'{tasks}/{task}/children').read().split()]
    return [pid for pid in pids if b'\0picture\0' in open(f'/proc/{pid}/cmdline', 'rb').read()]


def test_a_decoder_that_hangs_is_killed_and_delays_no_page(page, drawn):
    """The child is stopped by the test as soon as it is there."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(page.ask(address(drawn, 'deep2.png', 1280))))
    asking.start()
    found = until(lambda: children(page))
    os.kill(found[0], signal.SIGSTOP)
    assert page.ask('/').status == 200 and page.ask(f'/a/{drawn}').status == 200
    assert children(page) == found and not answers
    asking.join(60)
    assert answers[0].status == 403 and '5 seconds' in answers[0].text
    assert not children(page)
    assert page.ask(address(drawn, 'good.png', 1280)).status == 200


def test_a_browser_shows_what_was_made_and_nothing_runs(page, drawn):
    with chromium() as driver:
        driver.get(page.url)
        assert until(lambda: driver.title == 'Analyses · Fumehood')
        driver.get(f'http://{page.host}/a/{drawn}')
        seen = {}
        for image in driver.find_elements(By.CSS_SELECTOR, 'img.thumbnail'):
            driver.execute_script('arguments[0].scrollIntoView()', image)
            assert until(lambda: driver.execute_script('return arguments[0].complete', image))
            seen[image.get_attribute('alt').removeprefix('Thumbnail of ')] = driver.execute_script('return arguments[0].naturalWidth', image)
        assert seen['good.png'] == seen['script.jpg'] == seen['"><img src=x onerror=alert(1)>.png'] == 320, seen
        assert seen['bomb.png'] == seen['cut.png'] == seen['script.png'] == 0, seen
        assert driver.title == f'{drawn} · Fumehood'
        for name in ['script.png', 'vector.svg']:
            driver.get(f'http://{page.host}{address(drawn, name)}')
            assert driver.title == 'Not shown · Fumehood'
