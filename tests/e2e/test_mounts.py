"""Hosts that are not as simple as ours: file systems mounted below /usr, below an input, over single files, at odd names.

Each test has a mount namespace of its own, in which root mounts what it likes; the command is then started in it, by root
or by an ordinary user, to whom all these mounts are locked. Root is needed to make them.
"""
import fcntl
import json
import os
import shlex
import socket
import subprocess

import pytest


class Host:
    """A mount namespace, held by a process that waits for its stdin to end."""

    def __init__(self, hood):
        self.hood = hood
        self.holder = subprocess.Popen(['unshare', '-m', 'sh', '-c', 'echo; read end'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.enter = ['nsenter', f'--mount=/proc/{self.holder.pid}/ns/mnt', 'sh', '-c', 'cd "$0" && exec "$@"']
        # The command is started by root, and becomes who calls once it is inside.
        become = [] if hood.who.uid is None else ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups']
        words = ' '.join(shlex.quote(word) for word in [*self.enter[:-1], self.enter[-1]])
        text = f'#!/bin/sh\nexec {words} "$PWD" {" ".join(become)} {hood.binary} "$@"\n'
        hood.binary = hood.write(f'{hood.base}/inside', text, 0o755)
        hood.who.popen_arguments = dict

    def do(self, script):
        """As root, among the mounts, in the platform's directory."""
        done = subprocess.run([*self.enter, str(self.hood.dir), 'sh', '-ec', script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def close(self):
        self.holder.communicate()


@pytest.fixture
def host(hood, mounted):
    host = Host(hood)
    yield host
    host.close()


@pytest.fixture
def mounted():
    """Tests that mount something; only root can."""


def seen(hood, command, *options):
    result = hood.run(command, *options)
    assert result.status == 0, (result, result.json['id'] and hood.log(result.json['id']))
    return hood.log(result.json['id'])


def refused(result, *words):
    assert result.status == 125, result
    for word in words:
        assert word in result.json['error']['message'], result
    return result.json['error']['message']


# What is mounted is seen, and what it hides is not.

ODD = ['a b', 'tab\there', 'line\nbreak', 'back\\slash', 'hash#', 'ünïcode', '-dash', '"quoted\'', '\\040']


@pytest.mark.parametrize('name', ODD, ids=range(len(ODD)))
def test_a_mount_point_may_have_any_name(hood, host, name):
    path = hood.dir / 'data' / name
    path.mkdir()
    (path / 'hidden').touch()
    hood.platform_changed_on_purpose()
    host.do(f'mount -t tmpfs odd {shlex.quote(str(path))}; echo mounted >{shlex.quote(str(path / "file"))}')
    assert seen(hood, ['sh', '-c', 'cat "data/$0/file"; ls "data/$0"; cat "$1/file"', name, str(path)]) == 'mounted\nfile\nmounted\n'


def test_mounts_below_an_input_are_seen_where_they_are_and_so_is_what_lies_between(hood, host):
    for name in ('one', 'deep/two', 'deep/two/inner', 'deep/beside/three'):
        (hood.dir / 'data' / name).mkdir(parents=True)
    for name, text in (('deep/beside/file', 'a file\n'), ('deep/plain/er/file', 'plain\n'), ('executable', '#!/bin/sh\necho ran\n')):
        hood.write(f'data/{name}', text, 0o755)
    os.symlink('genes.csv', hood.dir / 'data/link')
    hood.platform_changed_on_purpose()
    host.do('''
    mount -t tmpfs one data/one; echo 1 >data/one/file
    mount -t tmpfs two data/deep/two; mkdir data/deep/two/inner; echo 2 >data/deep/two/file
    mount -t tmpfs inner data/deep/two/inner; echo inner >data/deep/two/inner/file
    mount -t tmpfs three data/deep/beside/three; echo 3 >data/deep/beside/three/file''')
    log = seen(hood, '''cd data; cat one/file deep/two/file deep/two/inner/file deep/beside/three/file deep/beside/file deep/plain/er/file
    head -1 genes.csv; readlink link; ./executable; cat deep/er/more.txt
    for d in . one deep deep/two deep/two/inner deep/beside; do (: >$d/new) 2>/dev/null && echo WRITTEN $d; done; true''')
    assert log.split('\n') == ['1', '2', 'inner', '3', 'a file', 'plain', 'gene,value', 'genes.csv', 'ran', 'more', '']


def test_what_a_mount_hides_stays_hidden(hood, host):
    for name in ('covered', 'twice/inner'):
        hood.write(f'data/{name}/secret', 'treasure\n')
    hood.write('data/masked', 'treasure\n')
    hood.platform_changed_on_purpose()
    host.do('''mount -t tmpfs inner data/twice/inner; echo treasure >data/twice/inner/secret
    mount -t tmpfs outer data/twice; mount -t tmpfs cover data/covered; mount --bind /dev/null data/masked''')
    assert 'treasure' not in seen(hood, 'cat data/masked data/covered/* data/twice/inner/secret; ls -R data/twice data/covered; true')


def test_a_single_file_that_is_mounted_is_seen_and_not_the_one_below(hood, host):
    below, over = hood.write('data/config', 'below\n'), hood.write(f'{hood.base}/over', 'over\n', 0o640)
    hood.platform_changed_on_purpose()
    host.do(f'mount --bind {over} data/config')
    assert seen(hood, f'cat data/config; cat {below}; (: >data/config) 2>/dev/null || echo read-only') == 'over\nover\nread-only\n'
    assert seen(hood, 'cat /one; head -1 data/genes.csv', '--ro', f'{below}:/one') == 'over\ngene,value\n'


def test_a_single_large_file_that_is_mounted_is_refused(hood, host):
    hood.write('data/large', '')
    hood.platform_changed_on_purpose()
    host.do(f'truncate -s 5M {hood.base}/over; mount --bind {hood.base}/over data/large')
    refused(hood.run('true'), 'data/large', 'too large to be copied')


@pytest.mark.only('root')
def test_a_file_that_is_mounted_is_not_shown_to_who_may_not_read_it(hood, host):
    hood.write('data/config', 'below\n')
    hood.platform_changed_on_purpose()
    os.chown(hood.dir / 'data', 1234, 1234)
    host.do(f'echo secret >{hood.base}/key; chmod 600 {hood.base}/key; mount --bind {hood.base}/key data/config')
    assert seen(hood, 'cat data/config 2>&1 || true') == 'cat: data/config: Permission denied\n'
    os.chown(hood.dir / 'data', 0, 0)
    hood.platform_changed_on_purpose()


@pytest.mark.only('user')
def test_a_large_file_beside_a_mount_is_refused_and_in_a_directory_of_its_own_it_is_not(hood, host):
    (hood.dir / 'data/sub').mkdir()
    hood.write('data/own/large', '')
    hood.platform_changed_on_purpose()
    host.do('mount -t tmpfs sub data/sub; truncate -s 5M data/own/large')
    assert seen(hood, 'stat -c %s data/own/large') == f'{5 << 20}\n'
    host.do('mv data/own/large data/large')
    message = refused(hood.run('true'), 'data/large', 'data/sub')
    assert 'a directory of its own' in message
    os.unlink(hood.dir / 'data/large')
    hood.platform_changed_on_purpose()


def test_what_others_may_not_enter_stays_closed_with_a_mount_in_it(hood, host):
    host.do('mkdir -p data/closed/sub; chmod 700 data/closed; mount -t tmpfs sub data/closed/sub; echo x >data/closed/sub/file')
    hood.platform_changed_on_purpose()
    result = hood.run('head -1 data/genes.csv; cat data/closed/sub/file 2>/dev/null || true')
    # Root's analysis has root's eyes where the file system can be idmapped, and a stranger's elsewhere, which the receipt says.
    owner = hood.who.is_root and not any('read as "other"' in text and '/data' in text for text in result.json['receipt']['warnings'])
    assert hood.log(result.json['id']) == ('gene,value\nx\n' if owner else 'gene,value\n')


# Behind it nobody is reached: not at the start, and not later.

def test_nobody_is_reached_through_a_mount_or_beside_one(hood, host):
    """Sockets and FIFOs that come when it runs already, and locks on everything that it can open."""
    (hood.dir / 'data/sub').mkdir()
    hood.platform_changed_on_purpose()
    shared = hood.directory('shared')
    hood.write(f'{shared}/file', 'x\n')
    host.do(f'mount --bind {shared} data/sub')
    process, id = hood.start('''echo ready; read go
    exec python3 -c 'import fcntl, os, socket
for name in ("data/sub/socket", "data/socket"):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("CONNECTED", name)
    except OSError:
        pass
try:
    os.write(os.open("data/sub/fifo", os.O_WRONLY | os.O_NONBLOCK), b"x")
    print("WRITTEN")
except OSError:
    pass
held = [open(name) for name in ("data/sub/file", "data/genes.csv", "data/deep/er/more.txt", "/usr/bin/env")]
for f in held:
    fcntl.flock(f, fcntl.LOCK_EX)
print("locked", flush=True)
import time; time.sleep(1000)' ''', '-i', stdin=subprocess.PIPE)
    servers = []
    for place in (shared / 'socket', hood.dir / 'data/socket'):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(place))
        place.chmod(0o777)
        server.listen()
        servers.append(server)
    os.mkfifo(shared / 'fifo', 0o666)
    reader = os.open(shared / 'fifo', os.O_RDONLY | os.O_NONBLOCK)
    process.stdin.write('go\n')
    process.stdin.flush()
    assert process.stdout.readline() == 'locked\n'
    for name in (shared / 'file', hood.dir / 'data/genes.csv', hood.dir / 'data/deep/er/more.txt', '/usr/bin/env'):
        with open(name) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert os.read(reader, 1) == b''
    process.terminate()
    process.communicate()
    for server in servers:
        server.close()
    os.close(reader)
    os.unlink(hood.dir / 'data/socket')
    hood.platform_changed_on_purpose()


def test_with_mounts_below_usr_programs_run_and_their_files_are_not_shared(hood, host):
    host.do('''mount -t tmpfs driver /usr/local/games; mkdir /usr/local/games/lib; echo driver >/usr/local/games/lib/file
    mount -t tmpfs modules /usr/share/doc; echo modules >/usr/share/doc/file''')
    process, id = hood.start('''cat /usr/local/games/lib/file /usr/share/doc/file; exec python3 -c 'import fcntl, sys, time
held = [open(name) for name in ("/usr/bin/env", "/usr/local/games/lib/file", "/usr/share/doc/file")]
for f in held:
    fcntl.flock(f, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(1000)' ''')
    assert [process.stdout.readline() for _ in range(2)] == ['modules\n', 'locked\n']
    host.do('for f in /usr/bin/env /usr/local/games/lib/file /usr/share/doc/file; do flock -n -x $f true; done')
    process.terminate()
    process.communicate()
    found = hood.cli('doctor', '--json').json
    assert not [item for item in found['items'] if item['name'] in ('inputs', 'the whole hood') and not item['ok']], found


@pytest.mark.only('user')
def test_a_mount_among_large_system_files_is_refused_in_a_sentence(hood, host):
    host.do('mkdir -p /tmp; mount -t tmpfs among /usr/lib/x86_64-linux-gnu/perl 2>/dev/null || mount -t tmpfs among "$(ls -d /usr/lib/*-linux-gnu | head -1)/perl"')
    refused(hood.run('true'), '/usr/lib/', 'run as root', 'unmount that')
    doctor = hood.cli('doctor')
    assert doctor.status == 1 and 'unmount that' in doctor.out and 'nothing is less safe' not in doctor.out, doctor


# Where no overlay can be.

def test_an_input_on_an_overlay_is_shown_and_on_an_overlay_of_an_overlay_refused(hood, host):
    place = hood.directory('stack')
    # On a file system of its own: the host's root may be an overlay already.
    host.do(f'''mount -t tmpfs -o mode=755 stack {place}; cd {place}; mkdir low upper work one upper2 work2 two; chmod 755 *; echo below >low/file
    mount -t overlay one -o lowerdir=low,upperdir=upper,workdir=work one 2>/dev/null || mount -t overlay one -o lowerdir=low:upper one
    mount -t overlay two -o lowerdir=one:upper2 two''')
    assert seen(hood, 'cat data/file', '--data', place / 'one') == 'below\n'
    refused(hood.run('true', '--data', place / 'two'), 'an overlay of an overlay', 'two, not three')


def test_a_file_system_that_cannot_be_a_layer_is_refused_with_its_name(hood, host):
    (hood.dir / 'data/sub').mkdir()
    hood.platform_changed_on_purpose()
    host.do('mount --bind /proc/sys/net data/sub')
    refused(hood.run('true'), 'data/sub', '(proc) cannot be a layer', 'copy it')


# Nothing of it costs anything where nothing is mounted.

def mounted_below(path):
    with open('/proc/self/mountinfo') as table:
        return any(line.split(' ')[4].startswith(path + '/') for line in table)


def test_without_mounts_below_there_is_one_overlay_for_each(hood):
    plan = hood.cli('run', '--dry-run', '--json', '--', 'true').json
    mounts = (plan.get('plan') or plan)['mounts']
    targets = [m['target'] for m in mounts if m['kind'] == 'overlay']
    for path in (str(hood.dir / 'data'), str(hood.dir / 'docs'), *([] if mounted_below('/usr') else ['/usr'])):
        assert [t for t in targets if t == path or t.startswith(path + '/')] == [path], json.dumps(mounts)[:2000]


def test_a_place_behind_a_link_of_an_input_is_refused_and_nothing_is_made_there(hood):
    outside = hood.directory('outside', 0o777)
    os.symlink(outside, hood.dir / 'data/link')
    hood.platform_changed_on_purpose()
    place = f'{hood.dir}/data/link'
    for option in (f'{hood.dir}/docs:{place}/new', f'{hood.dir}/docs/method.md:{place}/file', f'{hood.dir}/docs:{place}'):
        assert hood.run('true', '--ro', option).status == 125
    assert not list(outside.iterdir())


@pytest.mark.parametrize('mask', [0o077, 0o777, 0])
def test_the_callers_umask_is_not_the_roots(hood, mask):
    result = hood.run('cat /etc/hostname; ls / /etc >/dev/null && umask', preexec_fn=lambda: os.umask(mask))
    assert hood.log(result.json['id']) == 'hood\n0022\n', result


def test_what_is_not_held_is_said(hood):
    found = hood.cli('doctor', '--json').json
    devices = [item for item in found['items'] if item['name'] == 'devices']
    assert [item['ok'] for item in devices] == [hood.who.is_root], found


def test_settings_of_any_version_of_a_program_are_seen(hood, host):
    """Debian puts a version into some names of /etc: that of this host is not that of the next."""
    names = ['python3.99', 'ImageMagick-9', 'java-99-openjdk']
    host.do('mount -t tmpfs t docs && mkdir docs/up docs/work && mount -t overlay -o lowerdir=/etc,upperdir=docs/up,workdir=docs/work e /etc\n'
            + '\n'.join(f'mkdir /etc/{name}; echo {name} >/etc/{name}/settings' for name in [*names, 'python3-secret', 'javax-99-openjdk']))
    assert seen(hood, 'cat /etc/python3*/settings /etc/Image*/settings /etc/java*/settings').split() == names


def test_a_place_in_mnt_is_seen_in_no_other_input(hood):
    """What is below all inputs is an empty directory, and stays one."""
    listed = seen(hood, f'ls -A docs {hood.dir}/docs; ls -A /mnt', '--ro', f'{hood.dir}/data:/mnt/one', '--ro', f'{hood.dir}/data/genes.csv:/mnt/two')
    here = sorted(os.listdir(hood.dir / 'docs'))
    assert [line for line in listed.split('\n') if line and not line.endswith(':')] == [*here, *here, 'one', 'two'], listed


ETC = 'mount -t tmpfs t docs && mkdir docs/up docs/work && mount -t overlay -o lowerdir=/etc,upperdir=docs/up,workdir=docs/work e /etc\n'


def test_of_etc_nothing_is_seen_but_what_is_shown(hood, host):
    """Its parts are shown through one overlay over all of it: no way leads from them to the rest."""
    host.do(ETC + 'mkdir -p /etc/fonts /etc/perl /etc/gss /etc/mine; echo secret >/etc/mine/secret; echo secret >/etc/secret; chmod 750 /etc/gss\n'
            'head -c 9999 /dev/zero >/etc/magic; chmod 640 /etc/magic; head -c 9999 /dev/zero >/etc/services; ln -sf /etc/secret /etc/papersize; chmod 600 /etc/secret')
    assert seen(hood, 'wc -c </etc/services; ls -d /etc/fonts /etc/perl').split() == ['9999', '/etc/fonts', '/etc/perl']
    for path in ('/etc/secret', '/etc/mine', '/etc/shadow', '/etc/gss', '/etc/magic', '/etc/papersize'):
        assert seen(hood, f'ls -d {path} 2>&1 || true').endswith('No such file or directory\n'), path
    for way in ('/etc/fonts/..', '/proc/self/root/etc', '/proc/1/root/etc', '/proc/self/cwd/../../etc', '/.lower', '/proc/fs'):
        assert 'secret' not in seen(hood, f'ls -a {way} {way}/mine 2>&1 || true').replace(way, ''), way
    assert seen(hood, 'cd /etc/fonts && cd .. && ls -a mine secret 2>/dev/null || true') == ''


def test_mounts_below_etc_are_seen_where_they_are(hood, host):
    host.do(ETC + '''mkdir -p /etc/ssl/certs /etc/fonts/deep /etc/perl; echo below >/etc/ssl/certs/hidden; echo own >/etc/perl/own
    mount -t tmpfs s /etc/ssl; mkdir /etc/ssl/certs; echo certs >/etc/ssl/certs/here; mount -t tmpfs f /etc/fonts/deep; echo deep >/etc/fonts/deep/here
    head -c 9999 /dev/zero | tr '\\0' n >/etc/new; head -c 9999 /dev/zero | tr '\\0' o >/etc/services; mount --bind /etc/new /etc/services''')
    assert seen(hood, 'cat /etc/ssl/certs/* /etc/fonts/deep/here /etc/perl/own; head -c 3 /etc/services').split() == ['certs', 'deep', 'own', 'nnn']


def test_a_lock_on_a_part_of_etc_is_not_felt_outside_nor_by_another(hood):
    lock = '''exec python3 -c 'import fcntl, time
for name in ("/etc/services", "/etc/ld.so.cache", "/etc/ld.so.conf.d/libc.conf"):
    globals()[name] = open(name)
    fcntl.flock(globals()[name], fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
time.sleep(1000)' '''
    first, second = hood.start(lock)[0], hood.start(lock)[0]  # each has said it
    for name in ('/etc/services', '/etc/ld.so.cache', '/etc/ld.so.conf.d/libc.conf'):
        with open(name) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for process in (first, second):
        process.terminate()
        process.communicate()
