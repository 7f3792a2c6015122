"""--strength landlock: no namespaces. What it holds, each with the attack that succeeds outside; what its receipt says that it does
not; that all of it ends; and that it needs none of what a host may forbid."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import ledgers
import records
from until import until

TOP = Path(__file__).resolve().parents[2]
PROFILE = TOP / 'packaging/containers/seccomp.json'
BARE = ('--strength', 'landlock')


def layers_of(found):
    return {layer['name']: layer for layer in found['receipt']['layers']}


def succeed(hood, script, *options, **others):
    result = hood.run(script, *BARE, *options, **others)
    assert result.status == 0, (result, hood.cli('logs', result.json['id'], '--stderr').out if result.out else '')
    return result.json


def refusal(result):
    assert result.status == 125, result
    return result.json['error']['message']


def strength_of(hood, id):
    return hood.succeed('show', id, '--json').json['plan']['strength']


def processes_of(marker):
    """Who has this word among his arguments, and lives."""
    found = []
    for path in Path('/proc').glob('[0-9]*'):
        try:
            words, state = (path / 'cmdline').read_bytes().split(b'\0'), (path / 'stat').read_text().rsplit(') ', 1)[1][0]
        except (OSError, IndexError):
            continue
        if marker.encode() in words and state != 'Z':
            found.append(int(path.name))
    return found


# The story.

def test_it_runs_to_the_commit_and_says_what_was_in_force(hood):
    found = succeed(hood, 'cat data/genes.csv docs/method.md >out; echo private >$TMPDIR/private; echo hidden >$HOME/seen')
    assert (found['verdict'], strength_of(hood, found['id'])) == ('succeeded', 'landlock')
    assert [(output['path'], output['size']) for output in found['outputs']] == [('out', 52), ('seen', 7)]
    layers = layers_of(found)
    held = {name for name, layer in layers.items() if layer['held']}
    assert {'landlock', 'seccomp', 'signals', 'sockets', 'leases', 'no privileges'} <= held
    assert {'user namespace', 'mount namespace', 'pid, ipc and uts namespaces', 'network namespace', 'visible processes',
            'visible names', 'locks', 'fifos', 'devices', 'end of all processes'} <= layers.keys() - held


def test_an_environment_and_a_staged_script_are_there(hood):
    hood.write('helper.txt', 'help')
    result = hood.python('''
import csv, os, sqlite3, subprocess, sys, tempfile, threading
assert open("helper.txt").read() == "help" and len(list(csv.reader(open("data/genes.csv")))) == 3
with tempfile.NamedTemporaryFile() as f:
    f.write(b"x")
subprocess.run([sys.executable, "-c", "print(1)"], check=True)
t = threading.Thread(target=print); t.start(); t.join()
db = sqlite3.connect("own.db"); db.execute("create table t (a)"); db.execute("insert into t values (1)"); db.commit(); db.close()
os.rename("own.db", "result.db"); os.makedirs("a/b"); os.link("result.db", "a/second"); os.unlink("a/second")
''', *BARE, '--input', 'helper.txt')
    assert result.status == 0, (result, hood.cli('logs', result.json['id'], '--stderr').out)
    assert [output['path'] for output in result.json['outputs']] == ['result.db']


def test_steps_a_post_process_and_the_queue_too(hood):
    held = hood.id()
    hood.succeed('workspace', 'create', held, '--for', '1h')
    for step in ('cat data/genes.csv >one', 'cat one data/genes.csv >two; rm one'):
        succeed(hood, step, id=held)
    hood.succeed('commit', held)
    hood.succeed('workspace', 'cleanup', held)
    assert [output['path'] for output in hood.succeed('show', held, '--json').json['outputs']] == ['two']
    hood.write('post.py', '''
import json, os
assert json.load(open("manifest.json")) and os.listdir("outputs") == ["x"]
for path in ("outputs/x", "outputs/y", "manifest.json", "../new", "../outputs/new", "/tmp/new"):
    try:
        open(path, "w")
    except OSError:
        continue
    raise SystemExit(f"{path} could be written")
open("own", "w").write("x")
assert open("outputs/x").read() == "1\\n"
''')
    hood.write('tables.yaml', 'post_process: {tables: {found: [a]}}')
    posted = hood.run('echo 1 >x', *BARE, '--post-process', 'python3 post.py', '--config', 'tables.yaml')
    assert posted.json['verdict'] == 'succeeded', posted.json['reason']
    again = hood.cli('post-process', posted.json['id'], '--config', 'tables.yaml')
    assert again.status == 0, again
    queued = hood.id()
    hood.succeed('submit', queued, *BARE, '--', 'sh', '-c', 'cat data/genes.csv >copy')
    hood.succeed('worker', '--drain')
    assert (hood.verdict(queued), strength_of(hood, queued)) == ('succeeded', 'landlock')


def test_outputs_of_another_are_copies(hood):
    made = succeed(hood, 'echo first >result')
    found = succeed(hood, f'cat from/{made["id"]}/result >second', '--from', made['id'])
    assert [output['path'] for output in found['outputs']] == ['second']


def test_the_site_may_ask_for_it_and_the_caller_for_more(hood):
    hood.write('site.yaml', 'defaults: {strength: landlock}')
    found = hood.run('true', '--config', 'site.yaml').json
    assert strength_of(hood, found['id']) == 'landlock' and not layers_of(found)['mount namespace']['held']
    found = hood.run('true', '--config', 'site.yaml', '--strength', 'full').json
    assert strength_of(hood, found['id']) == 'full' and layers_of(found)['mount namespace']['held']


# What it holds: each of these succeeds outside, for the same user, and not under the hood.

WORDS = 'import fcntl, os, signal, socket, struct, subprocess, sys\n'
ATTACKS = {
    'read a file of the home': 'open(HOME + "/secret").read()',
    'list the home': 'os.listdir(HOME)',
    'read what lies beside data': 'open(PLATFORM + "/site/index.html").read()',
    'write to the site': 'open(PLATFORM + "/site/index.html", "a").write("x")',
    'write to data': 'open(PLATFORM + "/data/genes.csv", "a").write("x")',
    'truncate data': 'os.truncate(PLATFORM + "/data/genes.csv", 0)',
    'make a file in data': 'open(PLATFORM + "/data/new", "w")',
    'remove from data': 'os.unlink(PLATFORM + "/data/genes.csv")',
    'rename in data': 'os.rename(PLATFORM + "/data/genes.csv", PLATFORM + "/data/other")',
    'move data away': 'os.rename(PLATFORM + "/data/genes.csv", "mine")',
    'link to data': 'os.link(PLATFORM + "/data/genes.csv", "mine")',
    'write to /tmp': 'open("/tmp/" + TAG, "w"); os.unlink("/tmp/" + TAG)',
    'write to /dev/shm': 'open("/dev/shm/" + TAG, "w"); os.unlink("/dev/shm/" + TAG)',
    'change a mode': 'os.chmod(PLATFORM + "/data/genes.csv", 0o600)',
    'change a mode by descriptor': 'os.fchmod(os.open(PLATFORM + "/data/genes.csv", os.O_RDONLY), 0o600)',
    'change an owner': 'os.chown(PLATFORM + "/data/genes.csv", os.getuid(), os.getgid())',
    'change times': 'os.utime(PLATFORM + "/data/genes.csv", (1, 1))',
    'change an attribute': 'os.setxattr(PLATFORM + "/data/genes.csv", "user.x", b"x")',
    'lock a whole file': 'fcntl.flock(open(PLATFORM + "/data/genes.csv"), fcntl.LOCK_EX)',
    'lease a file': 'fcntl.fcntl(open(PLATFORM + "/data/genes.csv"), fcntl.F_SETLEASE, fcntl.F_RDLCK)',
    'hint how long data live': 'fcntl.fcntl(open(PLATFORM + "/data/genes.csv"), 1036, struct.pack("Q", 5))',
    'have changes told': 'fcntl.fcntl(os.open(PLATFORM + "/data", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)',
    'send signals by a descriptor': 'fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, VICTIM)',
    'send signals by a socket': 'fcntl.ioctl(socket.socketpair()[0], 0x8901, struct.pack("i", VICTIM))',
    'signal a process': 'os.kill(VICTIM, signal.SIGCONT)',
    'slow a process down': 'os.setpriority(os.PRIO_PROCESS, VICTIM, 19)',
    'move a process': 'os.sched_setaffinity(VICTIM, os.sched_getaffinity(0))',
    'schedule a process': 'os.sched_setscheduler(VICTIM, os.SCHED_BATCH, os.sched_param(0))',
    'limit a process': 'import resource; resource.prlimit(VICTIM, resource.RLIMIT_NICE, (0, 0))',
    'read a process': 'open(f"/proc/{VICTIM}/environ").read()',
    'write to a process': 'open(f"/proc/{VICTIM}/oom_score_adj", "w").write("900")',
    'connect to a path': 'socket.socket(socket.AF_UNIX).connect(SERVER)',
    'send to a path from a pair': 'socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", SERVER + ".dgram")',
    'bind an abstract name': 'socket.socketpair()[0].bind("\\0" + TAG)',
    'make a socket of the network': 'socket.socket(socket.AF_INET)',
    'make a socket of the kernel': 'socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)',
    'make a segment': 'subprocess.run(["ipcmk", "-M", "1"], check=True)',
    'make a semaphore': 'import ctypes; assert ctypes.CDLL(None, use_errno=True).semget(0, 1, 0o1600) >= 0',
    'make a message queue': 'import ctypes; assert ctypes.CDLL(None).mq_open(f"/{TAG}".encode(), 0o102, 0o600, None) >= 0',
}
RUN = '''
for name, text in ATTACKS.items():
    try:
        exec(text)
    except (OSError, AssertionError, subprocess.CalledProcessError) as why:
        print(name, "refused", type(why).__name__, getattr(why, "errno", ""), flush=True)
    else:
        print(name, "succeeded", flush=True)
'''


@pytest.fixture
def victim(hood):
    """A process of the same user, which listens at two paths of the platform."""
    text = f'''
import socket, sys, time
a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
a.bind("{hood.dir}/server"); a.listen(100); b.bind("{hood.dir}/server.dgram")
print("ready", flush=True); time.sleep(600)
'''
    process = subprocess.Popen(['/usr/bin/python3', '-c', text, hood.tag], stdout=subprocess.PIPE, **hood.who.popen_arguments())
    assert process.stdout.readline() == b'ready\n'
    yield process
    process.kill()
    process.wait()


def attack_text(hood, platform, victim):
    names = {'HOME': str(hood.home), 'PLATFORM': str(platform), 'TAG': hood.tag, 'VICTIM': victim.pid,
             'SERVER': str(hood.dir / 'server'), 'ATTACKS': ATTACKS}
    return WORDS + ''.join(f'{name} = {value!r}\n' for name, value in names.items())


def remove_ipc(hood):
    """What the attacks that succeed have left of System V's, and POSIX's queue."""
    text = ('import ctypes, os, subprocess; ctypes.CDLL(None).mq_unlink(f"/%s".encode()); me = str(os.getuid())\n' % hood.tag +
            'for kind in ("shm", "sem"):\n'
            '    for line in open(f"/proc/sysvipc/{kind}").readlines()[1:]:\n'
            '        words = line.split()\n'
            '        if me in words[3:10]:\n'
            '            subprocess.run(["ipcrm", "-" + ("m" if kind == "shm" else "s"), words[1]])')
    subprocess.run(['/usr/bin/python3', '-c', text], **hood.who.popen_arguments())


@pytest.mark.only('user')  # of the same uid as its victims
def test_what_succeeds_outside_is_refused_inside(hood, victim):
    hood.write(hood.home / 'secret', 'secret')
    text = attack_text(hood, hood.dir, victim)
    inside = hood.python(text + RUN, *BARE)
    lines = hood.succeed('logs', inside.json['id'], '--stdout').out.splitlines()
    assert inside.status == 0 and len(lines) == len(ATTACKS), (inside, lines)
    assert [line for line in lines if ' refused ' not in line] == []
    assert victim.poll() is None and hood.snapshot() == hood.before
    # Outside, one by one, each on a platform that is as new.
    failed = {}
    for name, attack in ATTACKS.items():
        copy = hood.base / 'copy'
        shutil.copytree(hood.dir, copy, ignore=lambda _, names: [n for n in names if n.startswith('server')])
        if hood.who.uid:
            subprocess.run(['chown', '-R', f'{hood.who.uid}:{hood.who.uid}', copy], check=True)
        done = subprocess.run(['/usr/bin/python3', '-c', attack_text(hood, copy, victim) + attack], stderr=subprocess.PIPE, text=True,
                              cwd=copy, env=hood.env, **hood.who.popen_arguments())
        if done.returncode:
            failed[name] = done.stderr.splitlines()[-1]
        shutil.rmtree(copy)
    remove_ipc(hood)
    assert not failed, failed


@pytest.mark.only('root')
def test_as_root_it_is_a_user_of_its_own_without_rights(hood, victim):
    inside = hood.python(attack_text(hood, hood.dir, victim) + RUN + '''
print(os.getuid() >= 1 << 28, os.getgroups() == [])
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")])
''', *BARE)
    lines = hood.succeed('logs', inside.json['id'], '--stdout').out.splitlines()
    assert [line for line in lines[:-2] if ' refused ' not in line] == [], lines
    assert lines[-2:] == ['True True', str(['0' * 16] * 5)]


def test_a_hint_for_a_file_is_asked_for_but_not_given(hood):
    text = '''
import fcntl, os, struct
fd = os.open("data/genes.csv", os.O_RDONLY)
assert fcntl.fcntl(fd, 1035, bytes(8)) == bytes(8)  # F_GET_RW_HINT
for command in (1036, 1038):  # F_SET_RW_HINT, F_SET_FILE_RW_HINT
    try:
        fcntl.fcntl(fd, command, struct.pack("Q", 5))
    except PermissionError:
        continue
    raise SystemExit(f"{command} was not refused")
'''
    succeed(hood, ['python3', '-c', text])


def test_a_lock_on_a_device_is_felt_outside_and_the_receipt_says_so(hood):
    process, id = hood.start('''exec python3 -c '
import fcntl, time
f = open("/dev/null", "w"); fcntl.lockf(f, fcntl.LOCK_EX, 1, 1 << 60)  # where nobody else locks it
print("up", flush=True); time.sleep(1000)' ''', *BARE)
    with open('/dev/null', 'w') as f, pytest.raises(BlockingIOError):
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1 << 60)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    layer = layers_of(hood.succeed('show', id, '--json').json)['devices']
    assert not layer['held'] and 'a lock on one is felt outside' in layer['detail']


@pytest.mark.only('root')
def test_the_receipt_says_what_root_without_its_rights_sees_in_proc(hood):
    """uid 0 that cannot be another user for the analysis: what is root's alone in /proc is the analysis's to read."""
    names = ('/proc/sys/net/ipv4/tcp_fastopen_key', '/proc/slabinfo', '/proc/timer_list')
    secret = next(name for name in names if os.path.exists(name) and not os.stat(name).st_mode & 0o004)
    line = layers_of(succeed(hood, f'! cat {secret}'))['visible processes']
    assert not line['held'] and line['detail'].endswith('as any user sees them')
    hood.prefix = ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin']
    found = succeed(hood, f'cat {secret}')
    hood.prefix = []
    line = layers_of(found)['visible processes']
    assert not line['held'] and 'as root sees them' in line['detail'] and '/proc/sys' in line['detail']


def test_a_pair_still_works(hood):
    succeed(hood, ['python3', '-c', '''
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.send(b"x")
    assert b.recv(1) == b"x"
    try:
        a.sendto(b"y", "/tmp/x")
    except OSError:
        continue
    assert kind == socket.SOCK_SEQPACKET and b.recv(1) == b"y"  # the address is not looked at
'''])


def test_what_is_denied_is_told_with_what_would_help(hood):
    hood.write('beside.txt', 'x')
    hood.write('model/weights', 'x')
    result = hood.python(f'''
import fcntl, os, socket
for text in ("open('beside.txt')", "open('{hood.dir}/model/weights')", "open('data/new', 'w')", "open('/tmp/x', 'w')", "os.chmod('.', 0o700)",
             "socket.socket()", "fcntl.flock(0, fcntl.LOCK_EX)", "open('data/genes.csv')", "open('own', 'w')", "open('/etc/localtime')"):
    try:
        exec(text)
    except OSError:
        pass
''', *BARE, '--explain')
    told = {(one['layer'], one['operation'], one['target']): one for one in result.json['denials']}
    workspace = f'/tmp/scidex-analysis-{result.json["id"]}'
    expected = {
        ('mounts', 'read', 'beside.txt'): ('ENOENT', '--input beside.txt'),
        ('landlock', 'read', f'{hood.dir}/model/weights'): ('EACCES', f'add --ro {hood.dir}/model/weights'),
        ('landlock', 'write', f'{workspace}/data/new'): ('EACCES', 'only the workspace is writable, and $TMPDIR'),
        ('landlock', 'write', '/tmp/x'): ('EACCES', 'only the workspace is writable, and $TMPDIR'),
        ('seccomp', 'chmod', workspace): ('EPERM', 'nobody changes modes'),
        ('seccomp', 'socket', 'AF_INET'): ('EAFNOSUPPORT', 'no sockets but unix stream pairs'),
        ('seccomp', 'flock', None): ('ENOLCK', 'no file is locked as a whole'),
    }
    for which, (error, hint) in expected.items():
        assert which in told and told[which]['errno'] == error and hint in told[which]['hint'], (which, told)
    assert not [one for one in told if one[2] and one[2].endswith(('genes.csv', 'own', 'localtime'))], told


def test_a_directory_on_the_way_that_is_there_is_not_told_as_refused(hood):
    result = hood.run('mkdir -p $TMPDIR/x/y $HOME/a/b /usr/bin; mkdir /tmp/new-$FUMEHOOD_ID; mkdir data; true', *BARE, '--explain')
    assert [one['target'] for one in result.json['denials']] == [f'/tmp/new-{result.json["id"]}'], result.json['denials']


@pytest.mark.only('root')
def test_a_worker_does_not_tell_others_what_is_in_roots_directories(hood, server):
    """A role that is nobody here has submitted it. What is there and what is not must be told alike."""
    ledger = ledgers.Postgres(hood, server)
    closed = hood.directory('root-only', 0o700)
    (closed / 'here').mkdir()
    paths = [f'{closed}/{name}/new' for name in ('here', 'nothere')]
    hood.write('site.yaml', f'queue: {{allow: {{landlock: true, data: [{hood.dir}], docs: [{hood.dir}]}}}}')

    def told():
        id = hood.id()
        script = '; '.join(f'(echo x >{path}); mkdir {path}; ln -s {path} link; (echo x >link); rm link' for path in paths)
        hood.succeed('submit', id, *BARE, '--explain', '--', 'sh', '-c', script)
        hood.succeed('worker', '--drain', '--config', 'site.yaml')
        found = hood.succeed('show', id, '--json').json
        assert found['denials'] is not None, found['reason']
        return {one['target']: one for one in found['denials']}

    try:
        assert paths[0] in told() and paths[1] not in told()  # root's own role, so it is root who asks
        hood.write(hood.home / 'config/fumehood/config.yaml', '')
        found = told()
    finally:
        ledger.close()
    assert [(path in found and found[path]['count']) for path in paths] == [2, 2], found
    assert {found[path]['errno'] for path in paths} == {'EACCES'} and not [name for name in found if 'link' in name], found


# All of it ends.

STRAYS = '''
trap "" TERM
(setsid sleep 1000 {tag} &)
setsid sh -c "trap '' TERM; setsid sleep 1001 {tag} & sleep 1002 {tag}" {tag} &
sh -c 'while :; do (setsid sh -c "sleep 0.01" {tag} &); done' {tag} &
'''


def strays(hood):
    # `sleep 1000 tag` would be refused: the word is argv[0] of a shell
    return STRAYS.format(tag=hood.tag).replace('sleep 1000 ' + hood.tag, 'sh -c "sleep 1000" ' + hood.tag).replace(
        'sleep 1001 ' + hood.tag, 'sh -c :\\;sleep\\ 1001 ' + hood.tag).replace('sleep 1002 ' + hood.tag, 'sleep 1002')


@pytest.mark.parametrize('end', ['exit 0', 'kill -9 $$', 'sleep 1000'])
def test_nothing_outlives_it(hood, end):
    begun = time.monotonic()
    result = hood.run(strays(hood) + 'sleep 0.3; ' + end, *BARE, '--wall', '2s', '--grace', '100ms')
    assert result.json['verdict'] == {'exit 0': 'succeeded', 'sleep 1000': 'timed_out'}.get(end, 'failed'), result
    assert processes_of(hood.tag) == []
    assert time.monotonic() - begun < 60


def test_a_bomb_that_never_stands_still_ends(hood):
    """Whether it dies of its own limit before is all the same."""
    result = hood.run(['python3', '-c', '''
import os
for i in range(100):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
''', hood.tag], *BARE, '--wall', '20s')
    assert result.json['verdict'] and processes_of(hood.tag) == []


def test_who_is_cancelled_twice_is_gone(hood):
    process, id = hood.start('echo up;' + strays(hood) + 'sleep 1000', *BARE, '--grace', '1h')

    def insist():
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    until(insist, 60)
    assert hood.verdict(id) == 'cancelled'
    assert processes_of(hood.tag) == []


def test_when_the_supervisor_is_killed_all_of_it_ends_and_gc_finds_the_rest(hood):
    process, id = hood.start('echo up;' + strays(hood) + 'sleep 1000', *BARE)
    process.kill()
    process.wait()
    until(lambda: processes_of(hood.tag) == [], 30)
    hood.succeed('gc')
    assert hood.verdict(id) == 'lost' and not hood.workspace(id).exists()


def test_the_clock_runs_while_the_supervisor_is_stopped(hood):
    process, id = hood.start('echo up;' + strays(hood) + 'sleep 1000', *BARE, '--wall', '1s', '--grace', '100ms')
    process.send_signal(signal.SIGSTOP)
    until(lambda: processes_of(hood.tag) == [], 30)
    process.send_signal(signal.SIGCONT)
    process.wait(60)
    assert hood.verdict(id) == 'timed_out'


@pytest.mark.only('root')  # who has cgroups
def test_if_init_is_killed_the_cgroup_finds_the_rest(caged):
    process, id = caged.start('echo up;' + strays(caged) + 'sleep 1000', *BARE)
    record = records.read(caged.home / f'state/fumehood/runs/{id}/record.json')
    os.kill(record['init']['pid'], signal.SIGKILL)
    process.wait(60)
    assert processes_of(caged.tag) == []


# Limits.

def test_a_disk_of_its_own_cannot_be_had(hood):
    limit = ('--disk', '10M')
    result = hood.run('true', *BARE, *limit)
    assert 'cannot be held with --strength landlock' in refusal(result)
    found = succeed(hood, 'true', *limit, '--allow-unlimited')
    assert layers_of(found)['limit disk']['held'] is False
    result = hood.run('dd if=/dev/zero of=big bs=1M count=100; sleep 1000', *BARE, *limit, '--allow-unlimited')
    assert result.json['verdict'] == 'out_of_disk'


def test_a_sites_disk_is_watched_with_a_warning(hood):
    hood.write('site.yaml', 'defaults: {strength: landlock, limits: {disk: 20M, files: 1000}}')
    result = hood.run('true', '--config', 'site.yaml')
    warnings = [text for text in result.json['receipt']['warnings'] if 'only watched' in text]
    assert len(warnings) == 1 and warnings[0].startswith('not held, only watched: disk 20M, files 1000: '), result.json['receipt']
    layers = layers_of(result.json)
    assert [(layers[name]['held'], 'watched' in layers[name]['detail']) for name in ('limit disk', 'limit files')] == [(False, True)] * 2
    said = hood.cli('run', '--config', 'site.yaml', '--', 'true')
    assert said.status == 0 and said.err.count('not held, only watched: disk 20M') == 1, said
    ended = hood.run('dd if=/dev/zero of=big bs=1M count=100; sleep 1000', '--config', 'site.yaml')
    assert ended.json['verdict'] == 'out_of_disk', ended
    # What nobody has set is watched at every strength, and no more is said of it.
    for strength in ('landlock', 'full'):
        found = hood.run('true', '--strength', strength).json
        layer = layers_of(found)['limit disk']
        assert layer['held'] and 'watched' in layer['detail'] and 'limit files' not in layers_of(found)
        assert not [text for text in found['receipt']['warnings'] if 'watched' in text]


@pytest.mark.only('user')
def test_a_limit_that_only_a_cgroup_holds_is_refused(bare):
    for limit in (['--memory', '100M'], ['--pids', '20'], ['--cpu-time', '10s']):
        result = bare.run('true', *BARE, *limit)
        assert 'cannot be held' in refusal(result)
    assert layers_of(succeed(bare, 'true'))['limit memory']['held'] is False


def test_limits_of_a_cgroup_hold(caged):
    result = caged.run(['python3', '-c', 'x = bytearray(1 << 30)'], *BARE, '--memory', '100M')
    assert result.json['verdict'] == 'out_of_memory', result
    result = caged.run('for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait', *BARE, '--pids', '5')
    assert result.json['verdict'] == 'out_of_processes', result


# Hosts.

def older(hood, request, abi):
    program = shutil.copy(Path(request.config.getoption('binary')).parent / 'tests/support/older_landlock', hood.base)
    become = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups'] if hood.who.uid else []
    hood.prefix = [*become, program, abi, '--']


@pytest.mark.only('user')
@pytest.mark.parametrize('abi', [3, 5])
def test_an_older_landlock_ends_all_of_it_as_well_and_says_what_it_cannot(hood, request, victim, abi):
    older(hood, request, abi)
    result = hood.run(strays(hood) + f'sleep 0.3; kill -CONT {victim.pid}', *BARE)
    hood.prefix = []
    assert result.status == 0, result  # it could signal the process of its user
    layers = layers_of(result.json)
    assert layers['landlock']['detail'] == f'ABI {abi}' and not layers['signals']['held']
    assert processes_of(hood.tag) == [victim.pid]


@pytest.mark.only('user')
def test_landlock_that_cannot_hold_truncation_is_refused(hood, request):
    older(hood, request, 2)
    result = hood.run('true', *BARE)
    hood.prefix = []
    assert 'needs Landlock of ABI 3' in refusal(result) and 'this kernel has ABI 2' in refusal(result)
    assert hood.nothing_was_recorded()


def test_it_needs_none_of_what_a_container_forbids(hood, forbid):
    """Docker's own profile, its /proc, and none of its capabilities: full strength is refused, this is not."""
    forbid('--seccomp-docker', PROFILE, '--mask-proc', *([] if hood.who.uid else ['--caps', 'none']))
    full = hood.run('true', '--strength', 'full')
    assert full.status == 125, full
    found = succeed(hood, 'cat data/genes.csv >out')
    assert [output['path'] for output in found['outputs']] == ['out']
    assert layers_of(found)['signals']['held']


def test_doctor_says_whether_it_can_be_had_and_examines_it_where_it_is_the_sites(hood, forbid):
    def items(*options):
        return {item['name']: item for item in hood.cli('doctor', '--json', *options).json['items']}

    assert items()['strength landlock']['ok']
    forbid('--seccomp-docker', PROFILE)
    found = items()
    assert found['strength landlock']['ok'] and not found['the whole hood']['ok']
    hood.write('site.yaml', 'defaults: {strength: landlock}')
    assert hood.cli('doctor', '--config', 'site.yaml').status == 0
    found = items('--config', 'site.yaml')
    assert found['the whole hood']['ok'] and not found['visible processes']['ok'] and not found['visible processes']['required']
    forbid('--refuse', 'landlock_create_ruleset=38')  # ENOSYS
    assert items()['strength landlock']['detail'] == 'cannot be had here, and is not needed'
    assert hood.cli('doctor', '--config', 'site.yaml').status == 1
    forbid('--refuse', 'landlock_create_ruleset=38', '--seccomp-docker', PROFILE)
    assert not items()['strength landlock']['ok']


def test_the_attack_suites_strength_is_one_of_two(hood):
    for words in (['--attack', '--strength', 'paper'], ['--strength', 'landlock']):
        result = hood.cli('doctor', *words)
        assert result.status == 125 and 'is full or landlock' in result.err, result


# Words.

def test_nothing_can_appear_elsewhere(hood):
    hood.write('model/weights', 'w')
    result = hood.run('cat /model/weights', *BARE, '--ro', 'model:/model')
    assert "cannot appear as '/model' with --strength landlock" in refusal(result)
    succeed(hood, f'cat {hood.dir}/model/weights', '--ro', 'model')


def test_what_is_kept_is_reopened_under_the_same_walls_but_without_a_terminal(hood):
    kept = hood.run('echo half >part; exit 3', *BARE, '--keep', 'on-failure').json['id']
    again = hood.cli('shell', kept, '--', 'sh', '-c', 'cat part; readlink data; echo x >/tmp/x')
    assert again.status != 0 and again.out == f'half\n{hood.dir}/data\n' and 'Permission denied' in again.err, again
    refused = hood.cli('shell', kept, '-t', '--', 'true')
    assert refused.status == 125 and 'cannot be had with --strength landlock' in refused.err, refused
    hood.succeed('workspace', 'cleanup', kept)


def test_a_dry_run_says_so(hood):
    plan = hood.succeed('run', *BARE, '--dry-run', '--json', '--', 'true').json
    assert plan['strength'] == 'landlock' and plan['user_namespace_first'] is False and plan['own_disk'] is False
