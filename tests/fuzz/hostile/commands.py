"""Every command that reads a ledger, and what must hold for each: it ends in time and not by a signal, it says at most a
few lines, none of them with a character that a terminal obeys, and it stays small."""
import http.client
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

from built import BIN, OUT, PLATFORM, environment

SECONDS, MEMORY = 10, 256 << 20
BOUND = 1.5  # of what waits by its nature: then it is asked to end
STDERR_LINES = 12
# What a terminal obeys: C0 but for tab and newline, DEL, and C1, as bytes of UTF-8.
OBEYED = re.compile(rb'[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]')
CONTROLS = re.compile(rb'[\x00-\x08\x0b-\x1f]')  # all that JSON escapes itself
BROKEN = re.compile(rb'Traceback|AddressSanitizer|runtime error|Assertion|core dumped|stack smashing|free\(\)|malloc|corrupted')
IDS = ['good', 'good', 'good', 'child', 'bad', 'slow', 'missing', 'denied', 'child', 'steps', 'gone', 'heir', 'sweep', 'sweep.2', 'after', 'waits', 'waiter', 'feeds', 'no', 'runs']

PYTHON = '''import fumehood, sys
def look(f, *args, **options):
    try: return f(*args, **options)
    except (fumehood.FumehoodError, ValueError, TypeError, KeyError) as e: print(type(e).__name__, f.__name__, str(e)[:100].encode('ascii', 'backslashreplace'), file=sys.stderr)
look(fumehood.ls); look(fumehood.queue); look(fumehood.top); look(fumehood.workers); look(fumehood.db, "status")
for id in sys.argv[1:]:
    for f in (fumehood.load, fumehood.show, fumehood.lineage, fumehood.outputs, fumehood.logs): look(f, id)
    for o in list(look(fumehood.outputs, id) or [])[:3]: look(fumehood.get, id, o.path)
'''


@dataclass
class Command:
    words: list
    raw: bool = False      # stdout is somebody's bytes
    ends: tuple = ()       # signals that end it after BOUND seconds
    alarm: bool = False    # it ends itself, by SIGALRM, where the answer would come too late
    lines: int = STDERR_LINES
    program: list = field(default_factory=lambda: [f'{BIN}/fumehood'])

    def __str__(self):
        return ' '.join(self.words) if self.words[0] != '-c' else f'(the Python module: {" ".join(self.words[2:])})'


SOCKET = f'{OUT}/web.sock'
WEB = Command(['web', '--listen', f'unix:{SOCKET}'], ends=(signal.SIGTERM, signal.SIGTERM), raw=True)


def of(*words, **options):
    return Command(list(words), **options)


def all_commands(random):
    """In an order of the seed's. ids are drawn, so that each command sees each kind of analysis in the course of a run."""
    id, other, third = (random.choice(IDS) for _ in range(3))
    stream = random.choice(['--stdout', '--stderr', '--post-process'])
    return [
        of('ls'), of('ls', '--json'), of('ls', id[:2], '--limit', '3'), of('ls', '--state', random.choice(['queued', 'waiting', 'running', 'finished', 'failed'])),
        of('ls', '--sort', random.choice(['wall', 'cpu', 'memory', 'id'])), of('ls', 's*', '--verdict', 'succeeded,failed', '--since', '2h'),
        of('ls', '--submitter', random.choice(['root', 'lab', 'owner'])), of('ls', '--json', '--sort', 'memory'),
        of('show', 'good'), of('show', 'good', '--json'), of('show', id), of('show', other, '--json'), of('show', 'bad', '--attempt', '1'),
        of('show', third, '--lineage'), of('show', 'child', '--lineage', '--json'), of('show', id, '--trace'), of('show', other, '--explain=agent'),
        of('show', 'sweep'), of('show', 'sweep', '--json'), of('show', 'steps'), of('show', 'denied', '--json'), of('show', 'runs', '--json'), WEB,
        of('logs', id, raw=True), of('logs', 'good', stream, raw=True), of('logs', other, '--json'), of('logs', 'steps', '--step', '2', raw=True),
        of('logs', 'bad', '--tail', '5', raw=True), of('logs', '-f', third, raw=True, ends=(signal.SIGINT,)),
        of('outputs', 'good'), of('outputs', 'good', '--json'), of('outputs', id), of('outputs', other, '--json'),
        of('get', 'good', '-o', f'{OUT}/get', lines=30000), of('get', 'good', 'd/**', '--force', '-o', f'{OUT}/get', lines=30000), of('get', id, '--force', '-o', f'{OUT}/get', lines=30000),
        of('get', 'good', 'large.bin', '-o', '-', raw=True), of('get', 'good', 'd/e/t1.csv', '-o', f'{OUT}/one'), of('get', 'child', '--json', '-o', f'{OUT}/child'),
        of('top', '--once'), of('top', '--json'), of('workers'), of('workers', '--json'),
        of('wait', id, ends=(signal.SIGINT,)), of('wait', 'sweep', 'good', '--json', ends=(signal.SIGINT,)),
        of('db', 'status'), of('db', 'status', '--json'), of('db', 'check', lines=2000), of('db', 'check', '--json', lines=2000), of('db', 'upgrade'),
        of('db', 'backup', f'{OUT}/backup'), of('db', 'backup', f'{OUT}/backup2', '--json'),
        of('rm', id, '--dry-run'), of('rm', '*', '--dry-run', '--force'), of('rm', other, '--force', '--json'), of('prune', '--older', '0s', '--dry-run'),
        of('prune', '--older', '1s', '--keep-outputs'), of('gc', '--dry-run'), of('gc', lines=60), of('gc', '--json', lines=60),
        of('report', 'good', '-o', f'{OUT}/good.html', '--force'), of('report', id, other, 's', '-o', f'{OUT}/more.html', '--force'), of('report', third, '-o', '-', raw=True),
        WEB,
        of('post-process', 'good'), of('post-process', id, '--post-process', 'cat outputs/rows'), of('post-process', 'child', '--json'),
        of('run', 'fz1', '--no-stage', '--from', 'good', '--', 'true'), of('run', 'fz2', '--no-stage', '--from', f'{id}:**:in', '--', 'sh', '-c', 'ls -R', raw=True),
        of('run', 'fz3', '--no-stage', '--from', 'sweep.*', '--dry-run', '--', 'true'), of('run', 'fz4', '--no-stage', '--into', f'{OUT}/into', '--from', 'child', '--', 'sh', '-c', 'cp -r from x'),
        of('run', 'good', '--no-stage', '--', 'true'), of('submit', 'fz5', '--no-stage', '--after', id, '--from', 'good', '--', 'true'),
        of('submit', 'good', '--if-absent', '--', 'true'), of('retry', id), of('retry', 'sweep', 'bad', '--json'), of('retry', 'no', 'slow'),
        of('cancel', 'waits'), of('cancel', other, '--json', ends=(signal.SIGINT,)), of('cancel', 'runs', ends=(signal.SIGINT,)),
        of('worker', '--drain', '--jobs', '2', lines=200, ends=(signal.SIGTERM, signal.SIGTERM)),
        of('worker', '--drain', '--jobs', '1', '--quiet', lines=200, ends=(signal.SIGTERM, signal.SIGTERM)),
        of('complete', '--', 'show', '', alarm=True), of('complete', 'ids', 's', alarm=True), of('complete', '--', 'get', 'good', '', alarm=True), of('commit', id), of('shell', 'bad', '--', 'true'),
        of('doctor', '--json'), WEB, of('workspace', 'create', 'fz6', '--for', '1h'), of('workspace', 'cleanup', 'steps'),
        Command(['-c', PYTHON, id], program=['/usr/bin/python3'], lines=40), Command(['-c', PYTHON, 'good'], program=['/usr/bin/python3'], lines=40),
    ]


class Runner:
    def __init__(self, url):
        self.env = environment(url)
        self.peak, self.slowest = 0, 0.0

    def judge(self, command, status, seconds, usage, out, err):
        """Sentences, none if all is well."""
        found, memory = [], usage.ru_maxrss * 1024
        self.peak, self.slowest = max(self.peak, memory), max(self.slowest, seconds)
        if seconds > SECONDS:
            found.append(f'it took {seconds:.1f} s')
        if status < 0 and -status not in command.ends and not (command.alarm and status == -signal.SIGALRM):
            found.append(f'it was ended by signal {-status}')
        if memory > MEMORY:
            found.append(f'it took {memory >> 20} MiB of memory')
        if BROKEN.search(err):
            found.append(f'it said: {err[-600:].decode("utf-8", "replace")}')
        if err.count(b'\n') > command.lines:
            found.append(f'it said {err.count(bytes([10]))} lines: {err[:600].decode("utf-8", "replace")}')
        for name, text in (('stderr', err), ('stdout', b'' if command.raw else out)):
            obeyed = (OBEYED if '--json' not in command.words else CONTROLS).search(text)
            if obeyed:
                found.append(f'{name} has {obeyed[0]!r}: {text[max(0, obeyed.start() - 80):obeyed.end() + 40]!r}')
        return found

    def run(self, command):
        """(exit status, what is wrong, the beginning of stderr)"""
        out, err = tempfile.TemporaryFile(dir='/dev/shm'), tempfile.TemporaryFile(dir='/dev/shm')
        begun = time.monotonic()
        process = subprocess.Popen([*command.program, *command.words], env=self.env, cwd=PLATFORM, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        found = []
        if command is WEB:
            found = self.visit(process)
            begun = time.monotonic() - BOUND
        status, usage = self.wait(process, begun, command)
        seconds = time.monotonic() - begun
        texts = [(f.seek(0), f.read(64 << 20))[1] for f in (out, err)]
        found += self.judge(command, status, seconds, usage, *texts)
        return status, found, f'{seconds:.2f} s, {usage.ru_maxrss >> 10} MiB: ' + texts[1][:300].decode('utf-8', 'backslashreplace').strip()

    def wait(self, process, begun, command):
        """Its signals come at BOUND and a second later each; what is there after its time is killed."""
        due, done = [(BOUND + i, number) for i, number in enumerate(command.ends)], threading.Event()

        def urge():
            for after, number in [*due, (SECONDS + 0.2, signal.SIGKILL)]:
                if done.wait(max(0.0, begun + after - time.monotonic())):
                    return
                os.kill(process.pid, number)

        urging = threading.Thread(target=urge)
        urging.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        done.set()
        urging.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage

    # ---- the page ----

    def visit(self, process):
        found, deadline = [], time.monotonic() + SECONDS
        while not ended(process) and not answers() and time.monotonic() < deadline:
            time.sleep(0.01)
        for path in self.pages if not ended(process) else []:
            begun = time.monotonic()
            try:
                client = Client()
                client.request('GET', path, headers={'Host': 'localhost', 'Accept': 'application/json' if path.endswith('#') else 'text/html'})
                client.getresponse().read(64 << 20)
            except (OSError, http.client.HTTPException) as e:
                found.append(f'{path} was not answered: {e!r}' + (': the server has ended' if ended(process) else ''))
            if time.monotonic() - begun > SECONDS:
                found.append(f'{path} took {time.monotonic() - begun:.1f} s')
            if found:
                break
        return found

    pages = ['/', '/#', '/?limit=500', '/?verdict=failed&sort=memory', '/queue', '/workers', '/metrics', '/queue#', '/workers#',
             *(f'/a/{id}{end}' for id in ('good', 'bad', 'child', 'steps', 'sweep', 'denied') for end in ('', '#')),
             *(f'/a/good/{what}?path={path}' for what in ('preview', 'image', 'output') for path in ('p.png', 'd/e/t1.csv', 'j.json', 'large.bin')),
             '/a/good/lineage', '/compare?a=good&b=bad', '/timeline', '/numbers', '/a/../etc/passwd']


class Client(http.client.HTTPConnection):
    def __init__(self):
        super().__init__('localhost', timeout=SECONDS)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(SOCKET)


def ended(process):
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def answers():
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(SOCKET) == 0
