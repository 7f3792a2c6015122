"""Large contents in PostgreSQL itself, for hosts that share no file system: the default of such a ledger."""
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import ledgers
from test_memory import MEASURE
from until import until

CHUNK = 256 << 10
MB = 1 << 20
LARGE = 'head -c {} /dev/urandom > large.bin'
SAME = 'yes 0123456789abcde | head -c {} > large.bin'


def same(size):
    return (b'0123456789abcde\n' * (size // 16 + 1))[:size]


@pytest.fixture
def inside(hood, server):
    """A ledger that nobody has told where its objects are to be."""
    ledger = ledgers.Postgres(hood, server, objects_inside=True)
    yield ledger
    ledger.close()


def elsewhere(hood, name='elsewhere'):
    """The environment of another host: nothing but the ledger is the same."""
    home = hood.directory(name, 0o700)
    return {'HOME': str(home), **{f'XDG_{kind}_HOME': str(home / kind) for kind in ('DATA', 'STATE', 'CONFIG')}}


def digest_of(hood, id, path='large.bin', **others):
    process = hood.popen('get', id, path, '-o', '-', text=False, **{'errors': None, **others})
    found = hashlib.sha256()
    for block in iter(lambda: process.stdout.read(MB), b''):
        found.update(block)
    said = process.stderr.read()
    assert process.wait() == 0, said
    return found.hexdigest()


def assert_sound(hood):
    checked = json.loads(hood.succeed('db', 'check', '--json').out)
    assert checked['problems'] == [], checked


class Session:
    """A transaction of somebody else's, who stands where we want to pass."""

    def __init__(self, ledger, text):
        self.process = subprocess.Popen(['psql', '-XqAt', '-d', ledger.plain], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.say(f'BEGIN; {text};')

    def say(self, text):
        self.process.stdin.write(f"{text}\nSELECT 'said';\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == 'said\n'

    def end(self, how='ROLLBACK'):
        self.say(f'{how};')
        self.process.communicate()


def waits(ledger):
    """Somebody of ours waits for a lock: his process in the server."""
    found = ledger.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fumehood' "
                       "AND wait_event_type = 'Lock'")
    return found[0] if found else None


def counts(ledger):
    return ledger.sql('SELECT (SELECT count(*) FROM fumehood.object), (SELECT count(*) FROM fumehood.object_chunk), '
                      '(SELECT count(*) FROM fumehood.blob WHERE content IS NULL)')


def test_who_names_no_place_has_his_outputs_where_every_host_finds_them(hood, inside):
    id = hood.id()
    result = hood.run(LARGE.format(10 * MB) + '; echo 1 > small.txt; head -c 65537 /dev/urandom > little.bin', id=id)
    assert result.status == 0 and result.json['committed'], result
    outputs = {o['path']: o['sha256'] for o in result.json['outputs']}
    there = elsewhere(hood)
    for path in outputs:
        assert digest_of(hood, id, path, env=there) == outputs[path]
    assert counts(inside) == ['2|41|2']
    assert not (hood.home / 'share/fumehood/objects').exists()
    status = json.loads(hood.succeed('db', 'status', '--json').out)
    assert status['object_store'] == 'postgresql' and status['objects_max'] == 1 << 30 and status['objects'] == 2
    assert_sound(hood)


@pytest.mark.only('user')
@pytest.mark.parametrize('size', [CHUNK - 1, CHUNK, CHUNK + 1, 16 * CHUNK, 16 * CHUNK + 1])
def test_every_size_comes_back(hood, inside, size):
    id = hood.id()
    assert hood.run(SAME.format(size), id=id).status == 0
    assert digest_of(hood, id) == hashlib.sha256(same(size)).hexdigest()
    assert_sound(hood)


def test_into_post_process_and_inputs_read_them_as_before(hood, inside):
    inside.sql('CREATE TABLE sizes(size bigint)')
    hood.write('post_process.py', 'import os, json\nprint(json.dumps({"table": "sizes", "row": {"size": '
                                  'os.path.getsize("outputs/large.bin")}}))\n')
    site = hood.write('site.yaml', 'post_process:\n  command: python3 post_process.py\n  tables: {sizes: [size]}\n')
    id, into = hood.id(), hood.directory('into')
    result = hood.cli('run', id, '--json', '--config', site, '--into', into, '--output', 'large.bin', '--', 'sh', '-c',
                      SAME.format(3 * MB))
    assert result.status == 0, result
    assert (into / 'large.bin').read_bytes() == same(3 * MB)
    assert inside.sql('SELECT size FROM sizes') == [str(3 * MB)]
    inside.sql('DELETE FROM fumehood.posted_chunk')
    hood.succeed('post-process', id, '--config', site)
    assert inside.sql('SELECT size FROM sizes') == [str(3 * MB)] * 2
    # What is submitted on one host is staged on another.
    hood.write('input.bin', same(3 * MB))
    id = hood.id()
    hood.succeed('submit', id, '--input', 'input.bin', '--output', 'sum', '--', 'sh', '-c', 'sha256sum < input.bin > sum')
    there = elsewhere(hood)
    config = hood.write(f'{there["XDG_CONFIG_HOME"]}/fumehood/config.yaml',
                        (hood.home / 'config/fumehood/config.yaml').read_text())
    hood.succeed('worker', '--drain', env=there)
    assert hood.succeed('get', id, 'sum', '-o', '-').out.split()[0] == hashlib.sha256(same(3 * MB)).hexdigest(), config
    assert counts(inside) == ['1|12|1']


def test_the_same_content_is_written_once_even_by_two_at_the_same_time(hood, inside):
    with ThreadPoolExecutor() as pool:
        ids = [hood.id(), hood.id()]
        results = list(pool.map(lambda id: hood.run(SAME.format(40 * MB), id=id), ids))
    assert [r.status for r in results] == [0, 0], results
    assert counts(inside) == ['1|160|1']
    assert {digest_of(hood, id) for id in ids} == {hashlib.sha256(same(40 * MB)).hexdigest()}


def test_who_finds_somebody_else_at_it_waits_and_writes_nothing(hood, inside):
    content = same(2 * CHUNK)
    digest = hashlib.sha256(content).hexdigest()
    other = Session(inside, f"INSERT INTO fumehood.object VALUES ('\\x{digest}')")
    id = hood.id()
    process = hood.popen('run', id, '--json', '--', 'sh', '-c', SAME.format(len(content)))
    assert until(lambda: waits(inside))
    for i in range(2):
        other.say(f"INSERT INTO fumehood.object_chunk VALUES ('\\x{digest}', {i}, '\\x{content[:CHUNK].hex()}');")
    mine = inside.sql('SELECT max(txid_current()) FROM generate_series(1, 1)')[0]
    other.end('COMMIT')
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert counts(inside) == ['1|2|1']
    assert inside.sql(f'SELECT count(*) FROM fumehood.object_chunk WHERE xmin::text::bigint > {mine}') == ['0']
    assert digest_of(hood, id) == digest


def test_who_was_to_be_first_and_did_not_come_to_it_is_no_obstacle(hood, inside):
    digest = hashlib.sha256(same(2 * CHUNK)).hexdigest()
    other = Session(inside, f"INSERT INTO fumehood.object VALUES ('\\x{digest}')")
    id = hood.id()
    process = hood.popen('run', id, '--json', '--', 'sh', '-c', SAME.format(2 * CHUNK))
    assert until(lambda: waits(inside))
    other.end('ROLLBACK')
    assert process.communicate() and process.returncode == 0
    assert digest_of(hood, id) == digest


# Where a commit can be stopped: its contents are being put; they are there, and nothing refers to them yet; it refers to
# them, and is not committed.
STAGES = {'putting': 'object_chunk', 'put': 'attempt', 'referring': 'output'}


def stopped(hood, inside, table, id, script=SAME.format(4 * MB)):
    other = Session(inside, f'LOCK TABLE fumehood.{table} IN EXCLUSIVE MODE')
    process = hood.popen('run', id, '--json', '--', 'sh', '-c', script)
    assert until(lambda: waits(inside)), process.communicate()
    return other, process


@pytest.mark.only('user')
@pytest.mark.parametrize('stage', STAGES)
def test_killed_at_any_stage_it_is_committed_once_by_gc_and_nothing_is_left(hood, inside, stage):
    id = hood.id()
    other, process = stopped(hood, inside, STAGES[stage], id)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    other.end()
    assert until(lambda: inside.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                                    "AND application_name = 'fumehood'") == ['0'])
    # By the kill alone nothing has come into being that says that there is an output.
    assert counts(inside)[0].split('|')[2] == '0'
    hood.succeed('gc')
    assert hood.verdict(id) == 'succeeded'
    assert counts(inside) == ['1|16|1']
    assert inside.sql('SELECT count(*) FROM fumehood.attempt') == ['1']
    assert digest_of(hood, id) == hashlib.sha256(same(4 * MB)).hexdigest()
    assert_sound(hood)


@pytest.mark.only('user')
@pytest.mark.parametrize('stage', STAGES)
def test_a_connection_that_is_cut_at_any_stage_is_made_again(hood, inside, stage):
    id = hood.id()
    other, process = stopped(hood, inside, STAGES[stage], id)
    inside.sql(f'SELECT pg_terminate_backend({waits(inside)})')
    other.end()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert counts(inside) == ['1|16|1']
    assert digest_of(hood, id) == hashlib.sha256(same(4 * MB)).hexdigest()


@pytest.mark.only('root')
def test_what_lay_on_a_disk_of_its_own_and_could_not_be_committed_is_later(hood, inside):
    """No object store takes it before the commit: it goes to the host's directory."""
    other, id = Session(inside, 'LOCK TABLE fumehood.attempt IN EXCLUSIVE MODE'), hood.id()
    result = hood.run(SAME.format(4 * MB), '--disk', '64M', '--db', f'{inside.plain}?busy=300ms', id=id)
    assert result.status == 125 and not result.json['committed'], result
    other.end()
    hood.succeed('gc')
    assert hood.verdict(id) == 'succeeded'
    assert digest_of(hood, id) == hashlib.sha256(same(4 * MB)).hexdigest()
    assert_sound(hood)


def age(ledger):
    ledger.sql("UPDATE fumehood.object SET put_at = put_at - interval '1 day'")


def test_what_a_sweep_takes_from_a_slow_commit_is_put_again(hood, inside):
    id = hood.id()
    other, process = stopped(hood, inside, 'attempt', id)
    assert counts(inside) == ['1|16|0']
    hood.succeed('gc', env=elsewhere(hood))
    assert counts(inside) == ['1|16|0']  # it is young
    age(inside)
    swept = json.loads(hood.succeed('gc', '--json', env=elsewhere(hood, 'third')).out)
    assert counts(inside) == ['0|0|0'] and swept['objects'] == 1, swept
    other.end()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert digest_of(hood, id) == hashlib.sha256(same(4 * MB)).hexdigest()
    assert_sound(hood)


def test_no_sweep_takes_what_a_commit_is_about_to_refer_to(hood, inside):
    id = hood.id()
    other, process = stopped(hood, inside, 'output', id)
    age(inside)
    swept = json.loads(hood.succeed('gc', '--json', env=elsewhere(hood)).out)
    assert swept['objects'] == 0 and counts(inside) == ['1|16|0'], swept
    other.end()
    assert process.communicate(timeout=120) and process.returncode == 0
    hood.succeed('gc')
    assert digest_of(hood, id) == hashlib.sha256(same(4 * MB)).hexdigest()


def test_leases_are_not_held_up_by_a_commit_that_puts_its_contents(hood, inside):
    """While it does, the heartbeat can move the lease: nothing of the queue is locked."""
    id = hood.id()
    hood.succeed('submit', id, '--', 'sh', '-c', SAME.format(4 * MB))
    other = Session(inside, 'LOCK TABLE fumehood.object_chunk IN EXCLUSIVE MODE')
    worker = hood.popen('worker', '--drain', '--lease', '3s')
    assert until(lambda: waits(inside))
    lease = 'SELECT lease_until FROM fumehood.queue'
    seen = inside.sql(lease)
    assert until(lambda: inside.sql(lease) not in (seen, ['']))
    assert inside.sql('SELECT count(*) FROM (SELECT 1 FROM fumehood.queue FOR UPDATE SKIP LOCKED) q') == ['1']
    other.end()
    worker.communicate(timeout=120)
    assert hood.verdict(id) == 'succeeded'


def test_what_a_crash_left_is_told_by_check_and_removed_by_gc(hood, inside):
    id = hood.id()
    assert hood.run(SAME.format(4 * MB), id=id).status == 0
    digest = hashlib.sha256(b'orphan').hexdigest()
    inside.sql(f"INSERT INTO fumehood.object VALUES ('\\x{digest}', now() - interval '1 hour'); "
               f"INSERT INTO fumehood.object_chunk VALUES ('\\x{digest}', 0, 'orphan')")
    age(inside)
    checked = hood.cli('db', 'check', '--json')
    assert checked.status != 0
    assert [(p['kind'], p['object']) for p in checked.json['problems']] == [('orphan', digest)]
    assert json.loads(hood.succeed('gc', '--json').out)['objects'] == 1
    assert counts(inside) == ['1|16|1']
    assert_sound(hood)


@pytest.mark.only('user')
@pytest.mark.parametrize('damage, word', [
    ("UPDATE fumehood.object_chunk SET bytes = set_byte(bytes, 0, 0) WHERE position = 3", 'damaged'),
    ("DELETE FROM fumehood.object_chunk WHERE position = 3", 'damaged'),
    ("DELETE FROM fumehood.object_chunk WHERE position = 15", 'damaged'),
    ("INSERT INTO fumehood.object_chunk SELECT sha256, 16, bytes FROM fumehood.object_chunk WHERE position = 15", 'damaged'),
    ("UPDATE fumehood.object_chunk SET bytes = bytes || bytes WHERE position = 0", 'damaged'),
    ("DELETE FROM fumehood.object", 'missing'),
])
def test_what_is_damaged_is_never_handed_out_as_good(hood, inside, damage, word):
    id = hood.id()
    assert hood.run(SAME.format(4 * MB), id=id).status == 0
    inside.sql(damage)
    target = hood.directory('target') / 'large.bin'
    result = hood.cli('get', id, 'large.bin', '-o', target)
    assert result.status != 0 and word in result.err, result
    assert not target.exists()
    problems = hood.cli('db', 'check', '--json').json['problems']
    assert [p['kind'] for p in problems] == [word]


def test_what_is_larger_than_the_ledger_takes_is_rejected_and_said(hood, inside):
    hood.env['FUMEHOOD_DB'] = f'{inside.plain}?objects_max=1M'
    result = hood.run(LARGE.format(MB + 1) + '; ' + LARGE.format(MB).replace('large', 'fits'))
    assert result.status == 0 and [o['path'] for o in result.json['outputs']] == ['fits.bin'], result
    assert result.json['rejected_outputs'] == [{'path': 'large.bin', 'reason': 'larger than the ledger takes'}]
    result = hood.run(LARGE.format(MB + 1), '--output', 'large.bin')
    assert result.status == 122 and result.json['outputs'] == [], result
    assert result.json['reason'] == "'large.bin' was rejected: larger than the ledger takes"
    hood.write('input.bin', b'x' * (MB + 1))
    result = hood.cli('submit', hood.id(), '--input', 'input.bin', '--', 'true')
    assert result.status == 125 and 'objects_max' in result.err and '--ro' in result.err, result
    hood.env['FUMEHOOD_DB'] = f'{inside.plain}?objects_max=100001'
    hood.write('input.bin', b'x' * 300000)
    result = hood.cli('submit', hood.id(), '--input', 'input.bin', '--', 'true')
    assert "input.bin' of 300000 bytes: " in result.err and 'up to 100001 bytes (' in result.err, result
    assert inside.sql('SELECT count(*) FROM fumehood.queue') == ['0']
    for url, word in [('?objects_max=2T', 'objects_max='), ('?objects_max=', 'objects_max=')]:
        result = hood.cli('ls', '--db', inside.plain + url)
        assert result.status == 125 and word in result.err, result


def measured(hood, *arguments, to=subprocess.DEVNULL):
    """The highest resident memory of the command."""
    peak = hood.write('peak', '')
    done = subprocess.run([sys.executable, '-S', '-c', MEASURE, peak, hood.binary, *arguments], stdout=to, cwd=hood.dir,
                          env=hood.env, stderr=subprocess.PIPE, **hood.who.popen_arguments())
    assert done.returncode == 0, done.stderr
    return int(peak.read_text())


@pytest.mark.parametrize('size', [64 * MB, pytest.param(1 << 30, marks=pytest.mark.long)])
def test_memory_does_not_grow_with_an_output(hood, inside, size):
    small, large, bound = hood.id(), hood.id(), 24 * MB
    floor = measured(hood, 'run', small, '--', 'sh', '-c', SAME.format(MB))
    assert measured(hood, 'run', large, '--', 'sh', '-c', SAME.format(size)) < floor + bound
    floor = measured(hood, 'get', small, 'large.bin', '-o', '-')
    assert measured(hood, 'get', large, 'large.bin', '-o', '-') < floor + bound
    assert measured(hood, 'db', 'check') < floor + bound
    assert re.match(rf'2\|{size // CHUNK + 4}\|2$', counts(inside)[0])
