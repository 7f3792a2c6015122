"""A ledger, and pages of it: what is started here is stopped here."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

HOSTILE = '''
import json, sys
print("<script>document.title='owned'</script> \\x1b[31mred \\u202eabc & \\"quoted\\"")
print("</pre><img src=http://192.0.2.1/x onerror=alert(1)>", file=sys.stderr)
open("<img src=x onerror=alert(1)>.csv", "w").write('=cmd|\\'calc\\'!A1,<b>bold</b>,"a ""q"", and\\nb"\\r\\n1,2,3\\r\\n')
open("evil.html", "w").write("<script>document.title='owned'</script>")
open("evil.svg", "w").write('<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\\'owned\\'"><script>document.title="owned"</script></svg>')
open("evil.json", "w").write(json.dumps({"</script><script>document.title='owned'</script>": "<b>"}))
open(b"not-utf8-\\xff\\xfe.txt", "wb").write(b"\\x00\\x01\\xff<script>document.title='owned'</script>\\n")
'''


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, dict(response.getheaders()), response.read()
        self.text = self.body.decode('utf-8', 'replace')

    @property
    def json(self):
        return json.loads(self.body)


class Page:
    """A `fumehood web` that runs."""

    def __init__(self, house, *options, **others):
        # In a session of its own: what the test is told does not reach it.
        self.process = subprocess.Popen([str(house.binary), 'web', *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=house.env, start_new_session=True, **others)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        address, _, self.token = self.url.partition('/#')
        self.host = address.removeprefix('http://')

    def ask(self, path, method='GET', headers=None, body=None, token=None, host=None):
        """token '' is none; without one it is the right one."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        sent = {'Host': host or self.host, **(headers or {})}
        if token != '' and 'Cookie' not in sent:
            sent['Authorization'] = f'Bearer {token or self.token}'
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader('Content-Length', str(len(body)))
            connection.endheaders(body.encode() if body is not None else None)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def json(self, path):
        answer = self.ask(path, headers={'Accept': 'application/json'})
        assert answer.status == 200, (path, answer.status, answer.text)
        return answer.json

    def runs(self, id):
        answer = self.ask(f'/a/{id}', headers={'Accept': 'application/json'})
        return answer.status == 200 and answer.json['state'] == 'running'

    def metric(self, name):
        for line in self.ask('/metrics').text.splitlines():
            if line.split(' ')[0] == name:
                return int(line.split(' ')[1])
        raise AssertionError(f'there is no {name}')

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError('it does not end') from None
        finally:
            self.process.stdout.close()
        said = self.process.stderr.read()
        self.process.stderr.close()
        return status, said


class House:
    def __init__(self, binary, directory):
        self.binary, self.directory = binary, directory
        self.env = {'PATH': os.environ['PATH'], 'HOME': str(directory), 'XDG_DATA_HOME': str(directory / 'share'), 'LANG': 'C.UTF-8',
                    'XDG_STATE_HOME': str(directory / 'state'), 'XDG_CONFIG_HOME': str(directory / 'config'), 'XDG_RUNTIME_DIR': str(directory)}
        self.tag = f'w{os.getpid():x}{time.monotonic_ns() & 0xffff:04x}'
        self.pages, self.running = [], []

    def cli(self, *words, check=True, **others):
        result = subprocess.run([str(self.binary), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env, cwd=self.directory,
                                timeout=120, **others)
        assert not check or result.returncode == 0, (words, result)
        return result

    def run(self, name, script, check=True):
        id = f'{self.tag}-{name}'
        self.cli('run', id, '--', '/usr/bin/python3', '-c', script, check=check)
        return id

    def start(self, name, script):
        """One that runs until it is told to end, by a line on its stdin."""
        id = f'{self.tag}-{name}'
        process = subprocess.Popen([str(self.binary), 'run', id, '-i', '--', 'sh', '-c', script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=self.env, cwd=self.directory, start_new_session=True)
        self.running.append(process)
        return id, process

    def fill(self):
        self.hostile = self.run('hostile', HOSTILE)
        self.failed = self.run('failed', 'import sys; open("r.json", "w").write("{}"); sys.exit(3)', check=False)
        self.queued = f'{self.tag}-queued'
        self.cli('submit', self.queued, '--', 'true')

    def serve(self, *options, **others):
        self.pages.append(Page(self, *(options or ('--listen', '127.0.0.1:0')), **others))
        return self.pages[-1]

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.terminate()
            process.wait(60)
            if process.stdin:
                process.stdin.close()
        for page in self.pages:
            if page.process.stdout and not page.process.stdout.closed:
                page.stop()


class Viewer(threading.Thread):
    """Reads server-sent events until the stream ends; or reads nothing at all."""

    def __init__(self, page, path, reads=True):
        super().__init__(daemon=True)
        self.events, self.reads, self.begun = [], reads, threading.Event()
        self.connection = http.client.HTTPConnection(page.host, timeout=120)
        self.connection.request('GET', path, headers={'Authorization': f'Bearer {page.token}'})
        self.socket = self.connection.sock
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.start()

    def run(self):
        event = None
        try:
            while self.reads and (line := self.response.readline()):
                line = line.decode().rstrip('\n')
                if line.startswith('event: '):
                    event = line[7:]
                elif line.startswith('data: '):
                    self.events.append((event, json.loads(line[6:])))
                self.begun.set()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def text(self):
        return ''.join(data['text'] for event, data in list(self.events) if event == 'log')

    def close(self):
        """Who is reading holds what close() wants: he is told first."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.join(30)
        self.connection.close()


def until(what, seconds=60):
    """Waits for it, and gives it."""
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def quoted(text):
    return urllib.parse.quote(text, safe='')
