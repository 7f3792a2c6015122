"""Three hosts, one PostgreSQL: each with a network, a name, a machine id, a /tmp, a state and a home of its own."""
import os
import subprocess
from pathlib import Path

import pytest

from hood import Result

TOP = Path(__file__).resolve().parents[2]
SIZE = 10 << 20
# Where large contents lie, as the URL says it: each of these must do for all hosts alike.
STORES = {'a shared directory': 'objects={shared}', 'postgresql': 'objects=postgresql'}

pytestmark = pytest.mark.only('root')

BOOT = '''
set -e
mount --make-rprivate /
hostname {name}
ip link set lo up
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p /run/fumehood /tmp/home
mount -t tmpfs -o mode=0700 tmpfs /run/fumehood
echo {machine} >/tmp/machine-id
cat /proc/sys/kernel/random/uuid >/tmp/boot-id
mount --bind /tmp/machine-id /etc/machine-id
mount --bind /tmp/boot-id /proc/sys/kernel/random/boot_id
echo up
cat
'''


def run(*words):
    subprocess.run(list(map(str, words)), check=True)


class Server:
    """PostgreSQL on a network of its own; a cable leads to each host."""

    def __init__(self):
        script = 'echo "$TEST_POSTGRES_TCP"; cat'
        self.process = subprocess.Popen(
            ['unshare', '--net', 'sh', '-c', f'ip link set lo up; exec {TOP}/tests/support/with-postgres sh -c \'{script}\''],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, 'TEST_POSTGRES_LISTEN': '*'})
        self.url = self.process.stdout.readline().strip()
        assert self.url, 'PostgreSQL did not start'

    def stop(self):
        self.process.communicate('')


class Host:
    def __init__(self, hood, server, name, number):
        self.hood, self.name = hood, name
        self.process = subprocess.Popen(['unshare', '--mount', '--uts', '--net', 'sh', '-c',
                                         BOOT.format(name=name, machine=f'{number:032x}')],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'up\n'
        pid, far = self.process.pid, server.process.pid
        net = f'10.214.{os.getpid() % 256}.{number * 4}'.rsplit('.', 1)
        here, there = (f'{net[0]}.{int(net[1]) + i}' for i in (2, 1))
        run('nsenter', '--net', '--target', pid, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', name, 'netns', far)
        for target, address, link in ((pid, here, 'eth0'), (far, there, name)):
            run('nsenter', '--net', '--target', target, 'ip', 'addr', 'add', f'{address}/30', 'dev', link)
            run('nsenter', '--net', '--target', target, 'ip', 'link', 'set', link, 'up')
        self.url = server.url.replace('127.0.0.1', there)
        self.env = {'PATH': hood.env['PATH'], 'HOME': '/tmp/home', 'LANG': 'C.UTF-8'}
        self.workers = []

    def popen(self, *words, store, **others):
        env = {**self.env, 'FUMEHOOD_DB': f'{self.url}?{store}'}
        return subprocess.Popen(['nsenter', '--mount', '--uts', '--net', '--target', str(self.process.pid), '--wdns=/tmp/home',
                                 str(self.hood.binary), *map(str, words)], env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='surrogateescape', **others)

    def cli(self, *words, store):
        process = self.popen(*words, store=store)
        out, err = process.communicate(timeout=300)
        return Result(process.returncode, out, err)

    def succeed(self, *words, store):
        result = self.cli(*words, store=store)
        assert result.status == 0, (self.name, words, result)
        return result

    def worker(self, store):
        self.workers.append(self.popen('worker', '--jobs', '1', store=store))

    def stop(self):
        for worker in self.workers:
            worker.terminate()
            worker.communicate(timeout=120)
        self.process.communicate('')


@pytest.fixture
def lan(hood):
    class Lan:
        shared = hood.directory('shared', 0o700)
        server = Server()
        hosts = []
    try:
        for number, name in enumerate(('one', 'two', 'three'), 1):
            Lan.hosts.append(Host(hood, Lan.server, name, number))
        yield Lan
    finally:
        for host in Lan.hosts:
            host.stop()
        Lan.server.stop()


def make(word):
    return ['--', 'sh', '-c', f'head -c {SIZE} /dev/urandom >large.bin; echo {word} >>large.bin']


def digest(host, id, store):
    """As the ledger says it, and as the bytes that this host gets have it."""
    [output] = host.succeed('show', id, '--json', store=store).json['outputs']
    host.succeed('get', id, 'large.bin', '-o', f'/tmp/got-{id}', store=store)
    found = subprocess.run(['nsenter', '--mount', '--target', str(host.process.pid), 'sha256sum', f'/tmp/got-{id}'], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()[0]
    assert found == output['sha256'] and output['size'] > SIZE
    return found


@pytest.mark.parametrize('store', STORES.values(), ids=STORES.keys())
def test_what_one_host_makes_the_others_read(hood, lan, store):
    """A worker on two of them, what is submitted comes from the third, which runs nothing."""
    one, two, three = lan.hosts
    store = store.format(shared=lan.shared)
    three.succeed('db', 'init', '--quiet', store=store)
    ids = [hood.id() for _ in range(6)]
    one.succeed('run', ids[0], *make('one'), store=store)
    two.succeed('run', ids[1], *make('two'), store=store)
    for host in (one, two):
        host.worker(store)
    for id in ids[2:]:
        three.succeed('submit', id, *make(id), store=store)
    three.succeed('wait', *ids[2:], store=store)
    assert {row['verdict'] for row in three.succeed('ls', '--json', store=store).json} == {'succeeded'}
    shown = {id: three.succeed('show', id, '--json', store=store).json for id in ids}
    assert [shown[id]['host'] for id in ids[:2]] == ['one', 'two']
    assert {shown[id]['host'] for id in ids[2:]} <= {'one', 'two'}
    for id in ids:
        assert len({digest(host, id, store) for host in lan.hosts}) == 1
    for host in lan.hosts:
        host.succeed('gc', store=store)
        assert host.succeed('db', 'check', '--json', store=store).json['problems'] == []


def test_a_host_with_a_store_of_its_own_is_refused(hood, lan):
    """Its results would be committed, and be nowhere else."""
    one, two, _ = lan.hosts
    right, wrong, id = f'objects={lan.shared}', 'objects=/tmp/home/objects', hood.id()
    one.succeed('run', id, *make('one'), store=right)
    known = two.succeed('db', 'status', '--json', store=right).json['store']['id']
    queued = hood.id()
    two.succeed('submit', queued, '--', 'true', store=wrong)
    for words in (['worker', '--drain'], ['run', hood.id(), *make('two')], ['get', id, 'large.bin', '-o', '-'], ['gc']):
        result = two.cli(*words, store=wrong)
        assert result.status not in (0, None) and "'/tmp/home/objects' is not there" in result.err, (words, result)
        assert known in result.err and f"'{lan.shared}' on one" in result.err, (words, result)
    found = two.cli('doctor', '--json', store=wrong)
    assert found.status == 1 and [item['name'] for item in found.json['items'] if item['required'] and not item['ok']] == ['object store']
    one.succeed('worker', '--drain', store=right)
    assert two.succeed('show', queued, '--json', store=right).json['verdict'] == 'succeeded'
    assert [row['id'] for row in two.succeed('ls', '--json', store=right).json if row['verdict'] != 'succeeded'] == []


def test_of_hosts_that_begin_at_once_with_their_own_directories_one_is_left(hood, lan):
    begun = [host.popen('run', hood.id(), *make(host.name), store='objects=/tmp/home/objects') for host in lan.hosts]
    ended = [(process.communicate(timeout=300)[1], process.returncode) for process in begun]
    assert sorted(status for _, status in ended) == [0, 125, 125], ended
    assert sum('has one with the id' in err for err, _ in ended) == 2, ended
