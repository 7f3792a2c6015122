"""Results survive us: once a command has ended, whatever fails on our side leaves it pending, never gone."""
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import bygone
from disks import Disks
from until import until

MAKE = 'head -c 300000 /dev/zero | tr "\\0" x >large; echo small >small; '
READY = MAKE + 'echo ready; read word; echo $word'


@pytest.fixture
def disks(hood):
    made = []

    def make(**options):
        made.append(Disks(hood, **options))
        hood.env['FUMEHOOD_DB'] = f'sqlite:{made[0].places["ledger"]}/ledger.db?objects={made[0].places["objects"]}'
        hood.succeed('db', 'init')  # a store that has no room for its id is refused before anything runs
        return made[0]

    binary = hood.binary
    yield make
    for d in made:
        hood.binary = binary
        d.close()


def shown(hood, id):
    return json.loads(hood.succeed('show', id, '--json').out)


def pending(hood):
    return {row['id'] for row in json.loads(hood.succeed('ls', '--json', '--state', 'pending').out)}


def begin(hood, *options, script=READY):
    return hood.start(script, '-i', *options, stdin=subprocess.PIPE)


def finish(process):
    out, err = process.communicate('go\n', timeout=60)
    return process.returncode, err


def is_whole(hood, id, verdict='succeeded'):
    found = shown(hood, id)
    assert (found['state'], found['verdict'], found['pending']) == ('finished', verdict, False), found['reason']
    assert len(found['attempts']) == 1 and found['exit_code'] == 0
    assert {o['path']: o['size'] for o in found['outputs']} == {'large': 300000, 'small': 6}
    assert hood.succeed('get', id, 'small', '-o', '-').out == 'small\n'
    assert len(hood.succeed('get', id, 'large', '-o', '-').out) == 300000
    assert found['usage']['wall_ms'] is not None and found['denials'] == [] and found['denials_more'] == 0


FULL = [('ledger',), ('objects',), ('state',), ('tmp',), ('state', 'ledger'), ('state', 'objects'), ('tmp', 'objects'),
        ('tmp', 'objects', 'ledger', 'state')]


@pytest.mark.parametrize('disk', [False, True], ids=['directory', 'own-disk'])
@pytest.mark.parametrize('kind', ['tmpfs', 'ext4'])
@pytest.mark.parametrize('full', FULL, ids='+'.join)
def test_a_disk_that_is_full_when_it_ends(hood, disks, full, kind, disk):
    d = disks(kind=kind, ledger=8, objects=8, state=8, tmp=24 if disk else 8)
    hood.run('true')
    process, id = begin(hood, *(['--disk', '4M'] if disk else []))
    d.fill(*full)
    status, err = finish(process)
    d.free()
    if 'objects' in full or 'ledger' in full:
        assert status == 125 and 'pending' in err and 'fumehood gc' in err, (status, err)
        assert pending(hood) == {id}
        found = shown(hood, id)
        assert found['state'] == 'pending' and found['pending'] and found['pending_attempt']['message'], found
        assert 'pending' in hood.succeed('show', id).out
        assert hood.succeed('gc').err == ''
    else:
        assert status == 0, err
    is_whole(hood, id)
    assert hood.log(id) == ('ready\ngo\n')
    assert d.left() == []


def test_gc_on_a_disk_that_is_still_full_says_so_and_keeps_it(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood)
    d.fill('objects')
    assert finish(process)[0] == 125
    for _ in range(20):
        result = hood.cli('gc')
        assert result.status == 125 and 'No space left' in result.err, result
    assert pending(hood) == {id}
    assert hood.run('true', id=id).status == 125  # the next attempt is not begun over it
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)
    assert d.left() == []


def test_what_is_pending_is_known_to_who_asks_for_its_log_and_its_outputs(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood)
    d.fill('objects')
    assert finish(process)[0] == 125
    assert hood.succeed('logs', id).out == hood.succeed('logs', '-f', id).out == 'ready\ngo\n'
    for words in ['outputs', id], ['get', id, 'small', '-o', '-'], ['logs', id, '--json']:
        result = hood.cli(*words)
        assert result.status == 125 and f"'{id}' is pending here" in result.err + result.out, result
    assert 'there is no analysis' in hood.cli('outputs', id + 'x').err
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)


def test_json_says_that_it_is_pending(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    d.fill('objects')
    result = hood.run(MAKE)
    assert result.status == 125
    found = result.json
    assert found['pending'] and not found['committed'] and found['verdict'] == 'succeeded', found
    assert 'No space left' in found['error']['message'] and found['error']['stage'] == 'commit'
    d.free()
    hood.succeed('gc')
    is_whole(hood, found['id'])


@pytest.mark.parametrize('disk', [False, True], ids=['directory', 'own-disk'])
def test_what_was_to_be_kept_is_kept_by_gc(hood, disks, disk):
    d = disks(ledger=8, objects=8, state=8, tmp=24)
    process, id = begin(hood, '--keep', 'always', *(['--disk', '4M'] if disk else []))
    d.fill('objects', 'tmp')
    assert finish(process)[0] == 125
    d.free()
    hood.succeed('gc')
    found = shown(hood, id)
    assert found['verdict'] == 'succeeded' and len(found['outputs']) == 2
    assert (d.path('tmp') / f'scidex-analysis-{id}' / 'small').read_text() == 'small\n'
    hood.succeed('workspace', 'cleanup', id)
    assert d.left() == []


def test_into_is_done_by_gc(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood, '--into', hood.dir / 'results')
    d.fill('objects')
    assert finish(process)[0] == 125 and not (hood.dir / 'results').exists()
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)
    assert (hood.dir / 'results/small').read_text() == 'small\n'
    assert d.left() == []


def test_a_ledger_that_became_read_only(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood)
    d.fill('ledger')
    assert finish(process)[0] == 125
    d.free()
    d.inside('mount', '-o', 'remount,ro', d.places['ledger'])
    result = hood.cli('gc')
    assert result.status == 125 and 'ledger' in result.err, result
    d.inside('mount', '-o', 'remount,rw', d.places['ledger'])
    assert pending(hood) == {id}
    hood.succeed('gc')
    is_whole(hood, id)
    assert d.left() == []


def test_an_analysis_that_failed_is_pending_too(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood, script=READY + '; exit 7')
    d.fill('objects')
    assert finish(process)[0] == 125
    d.free()
    hood.succeed('gc')
    found = shown(hood, id)
    assert found['verdict'] == 'failed' and found['exit_code'] == 7 and len(found['outputs']) == 2


POST = '''post_process:
  command: cat rows.jsonl
  tables: {scores: {columns: [n], fill: {analysis_id: '{id}'}}}
'''


def site_with_rows(hood, disks):
    """A site whose post-process makes one row."""
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    hood.write(hood.home / 'config/fumehood/config.yaml', POST)
    hood.write(hood.home / 'config/fumehood/rows.jsonl', '{"table": "scores", "row": {"n": 1}}\n')
    hood.succeed('db', 'init')
    d.inside('sqlite3', d.places['ledger'] / 'ledger.db', 'CREATE TABLE scores(n integer, analysis_id text)')
    if hood.who.uid:
        d.inside('chown', '-R', f'{hood.who.uid}:{hood.who.uid}', d.places['ledger'])
    return d


@pytest.mark.parametrize('full', ['tmp', 'state'])
def test_a_post_process_that_has_no_room_runs_later(hood, disks, full):
    d = site_with_rows(hood, disks)
    process, id = begin(hood)
    d.fill(full)
    status, err = finish(process)
    assert status == 125 and 'pending' in err and 'post-process' in err, err
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)
    assert shown(hood, id)['rows'] == 1
    assert d.left() == []


def test_a_post_process_that_has_no_inode_runs_later(hood, disks):
    d = site_with_rows(hood, disks)

    def inodes(n):
        d.inside('mount', '-o', f'remount,nr_inodes={n}', '/tmp')

    seen = set()
    for more in range(10):  # one of them is missing in turn to everything that the post-process is given
        process, id = begin(hood)
        now = os.statvfs(d.path('tmp'))
        inodes(now.f_files - now.f_ffree + more)
        status, err = finish(process)
        inodes(10000)
        seen.add(status)
        if status:
            assert status == 125 and 'pending' in err, (more, err)
            hood.succeed('gc')
        is_whole(hood, id)
        assert shown(hood, id)['rows'] == 1
    assert seen == {0, 125} and d.left() == []


def test_what_was_printed_while_the_state_was_full_is_counted_and_no_failure(hood, disks):
    d = disks(ledger=8, objects=8, state=2, tmp=8)
    process, id = begin(hood, script=READY + '; seq 100000')
    d.fill('state')
    status, err = finish(process)
    assert status == 0 and 'log of stdout is not whole' in err, err
    d.free()
    assert hood.succeed('logs', id).out.startswith('ready\n')


# The queue.

def worker(hood, *options, jobs=2, **others):
    return hood.popen('worker', '--jobs', jobs, '--lease', '2s', *options, **others)


def submit(hood, script=MAKE, count=1):
    ids = [hood.id() for _ in range(count)]
    hood.write('many.jsonl', ''.join(json.dumps({'id': id, 'command': ['sh', '-c', script]}) + '\n' for id in ids))
    hood.succeed('submit', '-f', 'many.jsonl')
    return ids


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    return process.communicate(timeout=60)[1]


def test_a_worker_whose_objects_are_full_takes_no_more_than_its_seats_and_goes_on(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=16)
    d.fill('objects')
    ids = submit(hood, count=8)
    w = worker(hood)
    assert until(lambda: len(pending(hood)) == 2)
    # Longer than a lease, and time for several tries: nothing more is taken, nothing is lost.
    assert not until(lambda: len(pending(hood)) != 2, 5)
    d.free()
    assert hood.cli('wait', *ids).status == 0
    said = stop(w)
    assert said.count('cannot be finished now') == 1, said
    for id in ids:
        is_whole(hood, id)
    assert d.left() == []


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_missing_grant_on_postgresql(hood, ledger):
    role = f'w{hood.tag}'
    ledger.sql(f"CREATE ROLE {role} LOGIN PASSWORD 's3cret'; GRANT ALL ON SCHEMA fumehood TO {role}; "
                 f'GRANT ALL ON ALL TABLES IN SCHEMA fumehood TO {role}; '
                 f'GRANT ALL ON ALL SEQUENCES IN SCHEMA fumehood TO {role}; REVOKE INSERT ON fumehood.output FROM {role}')
    ids = submit(hood, count=10)
    other = {'FUMEHOOD_DB': re.sub('//owner:[^@]*@', f'//{role}:s3cret@', ledger.url)}
    assert other['FUMEHOOD_DB'] != ledger.url
    w = worker(hood, env=other)
    assert until(lambda: len(pending(hood)) == 2)
    assert not until(lambda: len(pending(hood)) != 2, 5)
    ledger.sql(f'GRANT INSERT ON fumehood.output TO {role}')
    assert hood.cli('wait', *ids).status == 0
    assert stop(w).count('permission denied') == 1
    for id in ids:
        is_whole(hood, id)
    ledger.sql(f'DROP OWNED BY {role}; DROP ROLE {role}')


# Given up, by somebody's word and by nothing else.

def is_given_up(hood, id, why='No space left'):
    found = shown(hood, id)
    assert (found['state'], found['verdict'], found['pending']) == ('finished', 'cancelled', False), found
    assert found['reason'].startswith('given up while it was pending, its outputs thrown away: ') and why in found['reason']
    assert len(found['attempts']) == 1 and found['outputs'] == [] and found['usage']['wall_ms'] is not None


@pytest.mark.parametrize('disk', [False, True], ids=['directory', 'own-disk'])
def test_cancel_gives_up_a_pending_run(hood, disks, disk):
    d = disks(ledger=8, objects=8, state=8, tmp=24)
    process, id = begin(hood, *(['--disk', '4M'] if disk else []))
    d.fill('objects', 'tmp')
    assert finish(process)[0] == 125 and pending(hood) == {id}
    said = hood.succeed('cancel', id, '--json').json
    assert said == {'analyses': [{'id': id, 'was': 'pending'}]}
    is_given_up(hood, id)
    assert hood.log(id) == 'ready\ngo\n'  # what is known of it stays
    assert hood.cli('cancel', id).status == 125  # twice: it was never submitted, and is not pending any more
    hood.succeed('gc')
    d.free()
    assert d.left() == [] and len(shown(hood, id)['attempts']) == 1


def test_cancel_says_that_it_throws_away_and_needs_the_ledger(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood)
    d.fill('objects', 'ledger')
    assert finish(process)[0] == 125
    said = hood.cli('cancel', id)
    assert said.status == 125 and 'no space is left' in said.err and pending(hood) == {id}, said
    d.free()
    assert 'its outputs are thrown away, and it is recorded as cancelled' in hood.succeed('cancel', id).out
    is_given_up(hood, id, '')
    assert d.left() == []


def test_cancel_in_another_ledger_leaves_it_alone(hood, disks):
    """Another ledger may know another analysis by the same id."""
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    process, id = begin(hood)
    d.fill('objects')
    assert finish(process)[0] == 125
    other = f'sqlite:{hood.directory("other")}/ledger.db'
    said = hood.cli('cancel', id, '--db', other)
    assert said.status == 125 and 'its result is for another ledger' in said.err, said
    hood.succeed('submit', id, '--db', other, '--', 'true')
    said = hood.succeed('cancel', id, '--json', '--db', other).json
    assert said == {'analyses': [{'id': id, 'was': 'queued'}]}
    assert pending(hood) == {id}
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)


def test_cancel_of_a_queued_one_that_is_pending_frees_its_workers_seat(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=16)
    d.fill('objects')
    stuck, = submit(hood)
    w = worker(hood, jobs=1)
    assert until(lambda: pending(hood) == {stuck})
    other, = submit(hood, 'true')
    assert not until(lambda: shown(hood, other)['state'] != 'queued', 3)  # there is no seat
    # As from another host: only the ledger is told, and the worker sees it there.
    away = {'XDG_STATE_HOME': str(hood.directory('away', 0o700))}
    assert hood.succeed('cancel', stuck, '--json', env=away).json == {'analyses': [{'id': stuck, 'was': 'running'}]}
    assert hood.cli('wait', stuck).status == 143
    is_given_up(hood, stuck)
    assert hood.cli('wait', other).status == 0
    stop(w)
    d.free()
    assert d.left() == []


def test_who_cancelled_the_command_has_not_given_up_its_result(hood, disks):
    """It was cancelled while it ran, and could not be committed then: what it left is committed when there is room."""
    d = disks(ledger=8, objects=8, state=8, tmp=16)
    id, = submit(hood, MAKE + 'echo started; sleep 600')
    w = worker(hood, jobs=1)
    assert until(lambda: 'started' in hood.cli('logs', id).out)
    d.fill('objects')
    hood.succeed('cancel', id, env={'XDG_STATE_HOME': str(hood.directory('away', 0o700))})
    assert until(lambda: pending(hood) == {id})
    d.free()
    assert hood.cli('wait', id).status == 143
    found = shown(hood, id)
    assert found['verdict'] == 'cancelled' and {o['path'] for o in found['outputs']} == {'large', 'small'}, found
    stop(w)
    assert d.left() == []


def test_a_pending_one_whose_worker_died_is_finished_by_the_next_one_here(hood, disks):
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    d.fill('objects')
    id, = submit(hood)
    w = worker(hood)
    assert until(lambda: pending(hood) == {id})
    stop(w, signal.SIGKILL)
    d.free()
    hood.succeed('worker', '--drain')
    is_whole(hood, id)
    hood.succeed('gc')  # an object that was on its way to the store
    assert d.left() == []


def test_a_pending_one_whose_worker_does_not_return_is_lost_and_its_late_commit_is_fenced_off(hood, disks):
    d = disks(objects=8, state=8, tmp=8)
    d.fill('objects')
    id, = submit(hood, 'echo $$ >small; ' + MAKE)
    w = worker(hood)
    assert until(lambda: pending(hood) == {id})
    stop(w, signal.SIGKILL)
    # Another host: it sees the same ledger, and nothing else of this one.
    inside, hood.binary = hood.binary, hood.base / 'outside'
    user = '' if hood.who.uid is None else f'setpriv --reuid={hood.who.uid} --regid={hood.who.uid} --clear-groups '
    hood.binary.write_text(f'#!/bin/sh\nexec {user}{d.binary} "$@"\n')
    hood.binary.chmod(0o755)
    store = hood.succeed('db', 'status', '--json').json['store']  # and a copy of its store
    hood.write(d.places['objects'] / 'id', f'{store["ledger_id"]} {store["id"]}\n', 0o600)
    hood.succeed('worker', '--drain', '--lease', '2s')
    found = shown(hood, id)
    assert found['verdict'] == 'succeeded', found
    hood.binary = inside
    d.free()
    hood.succeed('gc')
    assert [a['verdict'] for a in shown(hood, id)['attempts']] == [a['verdict'] for a in found['attempts']]
    assert d.left() == []


def test_objects_of_one_that_the_ledger_forgot_are_kept_for_nobody(hood, disks):
    """It had its verdict and its objects, only the commit was left to do; then the ledger was restored from a backup."""
    d = disks(objects=8, state=8, tmp=8)
    path, user = hood.home / 'share/fumehood/ledger.db', []
    if hood.who.uid is not None:
        user = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups']
    hood.env['FUMEHOOD_DB'] += '&busy=100ms'
    hood.succeed('db', 'init')
    id, = submit(hood, 'sleep 2; ' + MAKE)
    subprocess.run([*user, 'sqlite3', '-bail', path, f'.backup {path}.backup'], check=True)
    w = worker(hood)
    assert until(lambda: shown(hood, id)['state'] == 'running')
    other = subprocess.Popen([*user, 'sqlite3', '-bail', path], stdin=subprocess.PIPE, text=True)
    other.stdin.write('.timeout 20000\nBEGIN IMMEDIATE;\n')
    other.stdin.flush()
    assert until(lambda: list((d.path('objects') / 'pins').glob('*')))
    assert until(lambda: pending(hood) == {id})
    stop(w, signal.SIGKILL)
    other.communicate('ROLLBACK;\n')
    subprocess.run([*user, 'sqlite3', '-bail', path, f'.restore {path}.backup'], check=True)
    assert hood.succeed('gc').err == ''
    assert d.left() == [] and list(d.path('objects').glob('??/*')) == []
    hood.succeed('worker', '--drain')
    is_whole(hood, id)
    assert d.left() == [] and len(list(d.path('objects').glob('??/*'))) == 1


def test_a_worker_killed_in_a_post_process_of_the_submitters_own(hood, disks):
    """The next worker runs it again, with the files that lie in the ledger and the submitter's rights."""
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    hood.write(hood.home / 'config/fumehood/config.yaml', POST.replace('  command: cat rows.jsonl\n', ''))
    hood.write('post.sh', 'sleep 1; cat rows.jsonl\n')
    hood.write('rows.jsonl', '{"table": "scores", "row": {"n": 1}}\n')
    hood.succeed('db', 'init')
    d.inside('sqlite3', d.places['ledger'] / 'ledger.db', 'CREATE TABLE scores(n integer, analysis_id text)')
    if hood.who.uid:
        d.inside('chown', '-R', f'{hood.who.uid}:{hood.who.uid}', d.places['ledger'])
    id = hood.id()
    hood.succeed('submit', id, '--post-process', 'sh post.sh rows.jsonl', '--', 'sh', '-c', MAKE)
    w = worker(hood)
    assert until(lambda: (d.path('state') / 'runs' / id / 'post-stdout').exists())
    stop(w, signal.SIGKILL)
    assert pending(hood) == {id}
    (hood.dir / 'post.sh').unlink()
    hood.succeed('worker', '--drain')
    is_whole(hood, id)
    assert shown(hood, id)['rows'] == 1
    assert d.left() == []


def test_disks_that_fill_one_after_the_other_and_at_random(hood, disks):
    """Every analysis ends once; nothing is lost, nothing is left."""
    d = disks(ledger=12, objects=24, state=8, tmp=24)
    chance = random.Random(9)
    ids = submit(hood, 'set -e; ' + MAKE, count=36)
    w = worker(hood, jobs=3)
    names = ['ledger', 'objects', 'state', 'tmp']
    rounds = itertools.chain(names, (chance.choice(names) for _ in range(8)))
    for name in rounds:
        d.fill(name)
        until(lambda: False, chance.choice([0.2, 0.7, 1.5]))
        d.free(name)
        until(lambda: False, 0.2)
    assert hood.cli('wait', *ids).status in (0, 1)
    stop(w)
    hood.succeed('gc')
    for id in ids:
        found = shown(hood, id)
        assert found['state'] == 'finished', found
        verdicts = [a['verdict'] for a in found['attempts']]
        assert verdicts in (['succeeded'], ['failed']), verdicts
        if verdicts == ['succeeded']:
            assert {o['path']: o['size'] for o in found['outputs']} == {'large': 300000, 'small': 6}
    assert d.left() == []


# The ledger itself.

@pytest.mark.parametrize('version', bygone.VERSIONS)
def test_an_upgrade_that_has_no_room_changes_nothing(hood, disks, version):
    """With every page more that is free it comes further; until there is room enough it leaves what was there."""
    d = disks(ledger=4, objects=8, state=8, tmp=8)
    url = hood.env['FUMEHOOD_DB']
    old = bygone.Bygone(hood, version).sqlite()
    hood.env['FUMEHOOD_DB'] = url
    here = d.path('ledger')
    shutil.copytree(f'{old}.objects', d.path('objects'), dirs_exist_ok=True)
    if hood.who.uid:
        subprocess.run(['chown', '-R', f'{hood.who.uid}:{hood.who.uid}', d.path('objects')], check=True)

    def put_back():
        if not Path(f'{old}.objects/id').exists():
            (d.path('objects') / 'id').unlink(missing_ok=True)  # of the upgrade that is undone
        for path in here.glob('ledger.db*'):
            path.unlink()
        shutil.copy(old, here / 'ledger.db')
        if hood.who.uid:
            os.chown(here / 'ledger.db', hood.who.uid, hood.who.uid)

    refused = 0
    for pages in itertools.count():
        d.free('ledger')
        put_back()
        d.fill('ledger')
        os.truncate(here / 'filler', (here / 'filler').stat().st_size // 4096 * 4096 - 4096 * pages * pages)
        result = hood.cli('db', 'upgrade')
        d.free('ledger')
        status = hood.succeed('db', 'status', '--json').json if result.status == 0 else None
        if status:
            break
        refused += 1
        assert result.status == 125 and 'space' in result.err and len(result.err.splitlines()) == 1, result
        assert hood.cli('ls').status == 125
        hood.succeed('db', 'upgrade')
        assert hood.succeed('db', 'check', '--json').json['problems'] == []
    assert refused >= 3 and status['version'] == status['wanted']


@pytest.mark.parametrize('place', ['state', 'tmp', 'objects'])
def test_a_place_of_the_workers_that_became_read_only(hood, disks, place):
    """It is in the way on this host, now: waited for, said in `show`, and no refusal."""
    d = disks(ledger=8, objects=8, state=8, tmp=8)
    id, = submit(hood)
    if place == 'state':  # without which no worker begins
        w = worker(hood)
        assert hood.cli('wait', id).status == 0
    assert until(lambda: d.tries('mount', '-o', 'remount,ro', d.places[place]))  # its last file may just be closed
    if place == 'state':
        id, = submit(hood)
    else:
        w = worker(hood)
    assert until(lambda: pending(hood) == {id} or 'ead-only' in (shown(hood, id)['queue']['reason'] or ''))
    d.inside('mount', '-o', 'remount,rw', d.places[place])
    assert hood.cli('wait', id).status == 0
    stop(w)
    is_whole(hood, id)
    assert d.left() == []


def test_what_is_pending_here_is_not_submitted_beside_itself(hood, disks):
    """In the end it has succeeded, and its outputs would be hidden behind those of a second attempt."""
    d = disks(ledger=8, objects=8, state=8, tmp=16)
    d.fill('objects')
    id = hood.id()
    assert hood.cli('run', id, '--', 'sh', '-c', MAKE).status == 125
    result = hood.cli('submit', id, '--', 'true')
    assert result.status == 125 and 'is pending on this host' in result.err and 'gc' in result.err, result
    d.free()
    hood.succeed('gc')
    is_whole(hood, id)
    assert 'of this name already' in hood.cli('submit', id, '--', 'true').err


@pytest.mark.parametrize('size', [0, 4096, 64 << 10, 100 << 10, 128 << 10, 1 << 20])
def test_a_limit_on_the_size_of_files_is_said_and_loses_nothing(hood, size):
    """The caller's own, `ulimit -f`: the signal that goes with it would end us without a word."""
    hood.succeed('run', hood.id(), '--', 'true')  # a ledger, and all else that is made once
    id = hood.id()
    result = hood.cli('run', id, '--', 'sh', '-c', 'echo 1 >out', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    said = [line for line in result.err.splitlines() if 'warning: ' not in line]
    assert result.status in (0, 125) and len(said) == 1, result
    pending = 'is pending' in result.err
    assert result.status == 0 or 'File too large' in result.err or pending, result
    hood.succeed('gc')
    if result.status == 0 or pending:
        assert hood.verdict(id) == 'succeeded'


@pytest.mark.parametrize('how', ['removed', 'replaced'])
def test_a_ledger_that_is_gone_when_it_is_to_be_written_has_not_been_written(hood, how):
    """Its file is open all the while, and takes what nobody will ever read."""
    place, old, other = (hood.directory(name, 0o700) for name in ('place', 'old', 'other'))
    old.rmdir()
    hood.env['FUMEHOOD_DB'] = f'sqlite:{other}/ledger.db'
    hood.succeed('run', hood.id(), '--', 'true')
    hood.env['FUMEHOOD_DB'] = f'sqlite:{place}/ledger.db'
    hood.succeed('db', 'init')
    process, id = hood.start('echo 1 >out; echo ready; read word', '-i', stdin=subprocess.PIPE)
    place.rename(old)
    if how == 'replaced':
        other.rename(place)
    out, err = process.communicate('go\n', timeout=60)
    assert process.returncode == 125 and 'is pending' in err and 'replaced' in err, (process.returncode, out, err)
    if how == 'removed':
        old.rename(place)
    hood.succeed('gc')
    assert hood.verdict(id) == 'succeeded'
    assert hood.succeed('get', id, 'out', '-o', '-').out == '1\n'
