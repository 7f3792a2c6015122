"""Recovery: whose an attempt is was written down when it began. Whoever goes on with it acts as that, whatever ledger and
configuration he has himself, or leaves it alone and says so."""
import contextlib
import json
import os
import subprocess

import pytest

from test_strangers import ALICE, BOB, PASSWORD, Site
from until import until

WAITS, PRINTS = 'sleep 600\n', 'echo \'{"table": "scores", "row": {"text": "%s"}}\'\n'
LEAVES = ['sh', '-c', 'echo x >out']


def run_folder(hood, id):
    return hood.home / 'state/fumehood/runs' / id


def is_post_processed(hood, id):
    return (run_folder(hood, id) / 'post-stdout').exists()


def is_pending(hood, id, **others):
    return json.loads(hood.succeed('show', id, '--json', **others).out)['pending']


def kill(process):
    process.kill()
    process.wait()


# One's own, of either kind of ledger, local and queued.

@pytest.fixture
def leave(hood, ledger):
    """An attempt whose supervisor is killed when its command has ended, before its post-process has, and which a gc could not finish
    for want of a table; the next one has all it takes."""
    ledger.sql('CREATE TABLE scores(text text)')

    def configure(tables):
        hood.write(hood.home / 'config/fumehood/config.yaml', json.dumps({
            'post_process': {'command': 'sh post.sh', 'tables': tables},
            'queue': {'users': {'owner': str(hood.who.uid or os.geteuid())}}}))

    def leave(*options, queued=False):
        id = hood.id()
        configure({'scores': ['text']})
        hood.write(hood.home / 'config/fumehood/post.sh', WAITS)
        if queued:
            hood.succeed('submit', id, *options, '--', *LEAVES)
        process = hood.popen('worker') if queued else hood.popen('run', id, *options, '--', *LEAVES)
        assert until(lambda: is_post_processed(hood, id)), process.poll()
        kill(process)
        hood.write(hood.home / 'config/fumehood/post.sh', PRINTS % 'rows')
        configure({})
        assert 'no table that it may fill' in hood.cli('gc').err and is_pending(hood, id)
        configure({'scores': ['text']})
        return id
    return leave


def edit(hood, id, change, names=('record.json', 'ended')):
    """What is written down of whose it is, changed by somebody who can. Of a record the last line that is whole counts, of the end the
    first."""
    for name in names:
        path = run_folder(hood, id) / name
        lines = path.read_bytes().split(b'\n')
        at = max(len(lines) - 2, 0) if name == 'record.json' else 0
        found = json.loads(lines[at])
        change(found['extra'] if name == 'record.json' else found)
        lines[at] = json.dumps(found).encode()
        path.write_bytes(b'\n'.join(lines))


def is_untouched(hood, id, into):
    return is_pending(hood, id) and hood.workspace(id).exists() and not into.exists()


@pytest.mark.parametrize('queued', [False, True], ids=['local', 'queued'])
def test_ones_own_is_finished_as_ever(hood, ledger, leave, queued):
    into = hood.home / 'results'
    id = leave('--into', into, queued=queued)
    hood.succeed('gc')
    shown = json.loads(hood.succeed('show', id, '--json').out)
    assert (shown['verdict'], shown['rows'], shown['pending']) == ('succeeded', 1, False), shown
    assert (into / 'out').read_text() == 'x\n' and ledger.sql('SELECT text FROM scores') == ['rows']
    assert (into / 'out').stat().st_uid == (hood.who.uid or os.geteuid())


@pytest.mark.parametrize('queued', [False, True], ids=['local', 'queued'])
@pytest.mark.parametrize('names', [('record.json', 'ended'), ('record.json',), ('ended',)], ids='+'.join)
def test_what_another_user_has_begun_is_left_alone(hood, leave, names, queued):
    into = hood.home / 'results'
    id = leave('--into', into, queued=queued)
    edit(hood, id, lambda extra: extra['whose'].update(uid=BOB), names)
    for _ in range(2):
        done = hood.cli('gc')
        assert done.status != 0 and f"'{id}' is left alone" in done.err, done
        assert len(names) == 1 or f'was begun as the user {BOB}' in done.err, done
        assert is_untouched(hood, id, into)
    hood.succeed('cancel', id)


@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
@pytest.mark.parametrize('whose', ['', [], {}, {'owner': None, 'uid': None, 'bound': True}, {'owner': '', 'uid': None, 'bound': False},
                                   {'owner': None, 'uid': -1, 'bound': False}, {'owner': None, 'uid': 1 << 32, 'bound': False}], ids=str)
def test_a_record_that_does_not_tell_whose_it_is_is_left_alone(hood, leave, whose):
    into = hood.home / 'results'
    id = leave('--into', into)
    edit(hood, id, lambda extra: extra.update(whose=whose))
    done = hood.cli('gc')
    assert done.status != 0 and f"'{id}' is left alone: its record does not tell whose it is" in done.err, done
    assert is_untouched(hood, id, into)
    hood.succeed('cancel', id)


def test_what_an_older_version_has_begun_is_left_alone_and_named(hood, leave):
    into = hood.home / 'results'
    id = leave('--into', into, queued=True)
    edit(hood, id, lambda extra: extra.pop('whose', None))
    done = hood.cli('gc')
    assert done.status != 0 and f"'{id}' is left alone: an older version has begun it" in done.err, done
    assert '`fumehood cancel`' in done.err and is_untouched(hood, id, into)
    found = [item for item in json.loads(hood.cli('doctor', '--json').out)['items'] if item['name'] == 'pending']
    assert len(found) == 1 and not found[0]['ok'] and id in found[0]['detail'] and 'cancel' in found[0]['remedy'], found
    hood.succeed('cancel', id)
    assert hood.verdict(id) == 'cancelled' and not into.exists()


def test_who_has_the_pid_of_a_holder_after_a_reboot_is_not_taken_for_it(hood, leave):
    """A process that holds an attempt's disk is known by its pid and its start, which only one boot knows."""
    id = leave()
    place = hood.directory('foreign')
    hood.write(place / 'out', 'foreign')
    directory = os.open(place, os.O_RDONLY)
    victim = subprocess.Popen(['sh', '-c', f'exec 3</proc/self/fd/{directory}; echo; read x'], pass_fds=[directory], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, **hood.who.popen_arguments())
    os.close(directory)
    try:
        victim.stdout.readline()
        with open(f'/proc/{victim.pid}/stat') as stat:
            start = int(stat.read().rpartition(')')[2].split()[19])
        ended = run_folder(hood, id) / 'ended'
        lines = ended.read_bytes().split(b'\n')
        lines[1] = json.dumps({**json.loads(lines[1]), 'holder': victim.pid, 'holder_start': start}).encode()
        ended.write_bytes(b'\n'.join(lines))
        record = run_folder(hood, id) / 'record.json'
        with open('/proc/sys/kernel/random/boot_id') as boot:
            record.write_text(record.read_text().replace(boot.read().strip(), '00000000-0000-4000-8000-000000000000'))
        hood.succeed('gc')
        assert victim.poll() is None and hood.verdict(id) == 'lost'
    finally:
        victim.kill()
        victim.communicate()


# A link of /proc is root's as soon as its process says so, and leads where that process goes.

GOES = """import ctypes, os, sys
print(flush=True)
for word in sys.stdin:
    os.chdir(word.strip())
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: what /proc tells of it is root's from now on
    print(flush=True)
"""


@contextlib.contextmanager
def traveller(where, **who):
    """A process that stands there, and goes elsewhere when it is told."""
    process = subprocess.Popen(['/usr/bin/python3', '-c', GOES], cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **who)

    def go(there):
        process.stdin.write(f'{there}\n')
        process.stdin.flush()
        process.stdout.readline()

    process.stdout.readline()
    try:
        yield f'/proc/{process.pid}/cwd', go
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def test_no_output_goes_through_a_link_of_proc(hood, ledger):
    with traveller(hood.home, **hood.who.popen_arguments()) as (link, _):
        done = hood.run('echo x >out', '--into', f'{link}/results')
        assert done.status != 0 and 'of /proc, lies on the way' in done.err + done.out, done
        assert not (hood.home / 'results').exists()


# Those of others, which a worker that is root runs for them.

@pytest.fixture(scope='module')
def site(binary, server):
    site = Site(binary, server)
    try:
        site.ledger.sql('CREATE TABLE facts(who text PRIMARY KEY, text text); GRANT SELECT, INSERT, UPDATE ON facts TO fumehood_worker')
        site.own = f'sqlite:{site.hood.home}/own.db'  # root's, which has nothing to do with what alice submits
        site.hood.succeed('db', 'init', '--db', site.own)
        host, port = site.server.url.split('@')[1].split('/')[0].split(':')
        site.hood.env['PGPASSFILE'] = str(site.hood.write(site.hood.home / 'willy', f'{host}:{port}:*:willy:{PASSWORD}\n', 0o600))
        yield site
    finally:
        site.close()


def configure(site, users, post=PRINTS % 'the site', tables=True):
    tables = {'scores': ['text'], 'facts': {'columns': ['who', 'text'], 'key': ['who'], 'on_conflict': 'update'}} if tables else {}
    path = site.hood.home / 'site/config.yaml'
    site.hood.write(path, json.dumps({
        'post_process': {'tables': tables}, 'queue': {'users': users, 'allow': {'post_process': ['sh site.sh']}}}))
    site.hood.write(path.parent / 'site.sh', post)
    return path


def begin(site, id):
    """By a worker that is killed, as above; or refused."""
    worker = site.hood.popen('worker', '--config', configure(site, {'alice': ALICE}, WAITS), env=site.environment())
    assert until(lambda: is_post_processed(site.hood, id) or site.shown(id)['verdict'] == 'refused')
    kill(worker)
    site.hood.cli('gc', '--config', configure(site, {'alice': ALICE}, tables=False), env=site.environment())


RECOVERERS = {
    'as_it_was': dict(users={'alice': ALICE}),
    'with_a_ledger_of_his_own': dict(users={'alice': ALICE}, own=True),
    'who_says_that_she_is_root': dict(users={'alice': 'root'}),
    'who_does_not_know_her': dict(users={}),
}


@pytest.mark.only('root')
@pytest.mark.parametrize('name', RECOVERERS)
def test_what_a_user_has_submitted_is_finished_as_that_user_by_root(site, name):
    id, into = site.hood.id(), site.alice.home / f'results-{name}'
    site.alice.write('site.sh', PRINTS % 'hers')
    site.alice.submit(id, '--into', into, '--post-process', 'sh site.sh', command=LEAVES)
    site.ledger.sql('DELETE FROM scores')
    begin(site, id)
    recoverer = RECOVERERS[name]
    env = {**site.environment(), **({'FUMEHOOD_DB': site.own} if recoverer.get('own') else {})}
    env.pop('PGPASSWORD')
    site.hood.succeed('gc', '--config', configure(site, recoverer['users']), env=env)
    shown = site.shown(id)
    assert shown['verdict'] == 'succeeded' and shown['rows'] == 1, shown
    assert site.ledger.sql('SELECT text FROM scores') == ['the site']
    assert [path.stat().st_uid for path in (into, into / 'out')] == [ALICE, ALICE]


@pytest.mark.only('root')
def test_what_a_user_has_submitted_does_not_lead_root_anywhere_by_proc(site):
    """She may write where her process stands; when root goes on with it, that stands elsewhere."""
    id = site.hood.id()
    site.alice.write('site.sh', PRINTS % 'hers')
    with traveller(site.alice.home, user=ALICE, group=ALICE, extra_groups=[]) as (link, go):
        site.alice.submit(id, '--into', link, '--post-process', 'sh site.sh', command=LEAVES)
        begin(site, id)
        go(site.open)
        env = {**site.environment(), 'FUMEHOOD_DB': site.own}
        env.pop('PGPASSWORD')
        site.hood.cli('gc', '--config', configure(site, {'alice': ALICE}), env=env)
        assert not (site.open / 'out').exists()
        shown = site.shown(id)
        assert shown['verdict'] == 'refused' and f"--into '{link}' is not allowed for 'alice'" in shown['reason'], shown


# Rows: by the worker's role, and so only what the site's own post-process makes of a stranger's files.

OVERWRITES = 'echo \'{"table": "facts", "row": {"who": "bob", "text": "alice was here"}}\'\n'


def facts(site):
    return site.ledger.sql('SELECT who, text FROM facts')


@pytest.fixture
def ask(site):
    def ask(*options, users=None):
        id = site.hood.id()
        said = site.alice.cli('submit', id, *options, '--', *LEAVES)
        assert said.status == 0, said
        site.hood.succeed('worker', '--drain', '--config', configure(site, {'alice': ALICE} if users is None else users), env=site.environment())
        return site.shown(id), said.err
    return ask


@pytest.mark.only('root')
@pytest.mark.parametrize('users', [{'alice': ALICE}, {}], ids=['user', 'nobody'])
def test_a_post_process_of_a_strangers_own_changes_no_rows(site, ask, users):
    site.ledger.sql("DELETE FROM facts; INSERT INTO facts VALUES ('bob', 'true')")
    site.alice.write('own.sh', OVERWRITES)
    shown, _ = ask('--post-process', 'sh own.sh', users=users)
    assert facts(site) == ['bob|true']
    assert shown['verdict'] == 'refused' and "--post-process 'sh own.sh' is not allowed for 'alice'" in shown['reason'], shown
    assert 'queue: {allow: {post_process: ' in shown['reason']
    shown, _ = ask('--post-process', 'sh own.sh', users={'alice': 'root'})  # the worker's own user: it could have
    assert shown['verdict'] == 'succeeded' and facts(site) == ['bob|alice was here']


@pytest.mark.only('root')
def test_a_listed_post_process_is_the_sites_own_when_it_is_repeated(site, ask):
    says = OVERWRITES.replace('alice was here', '%s')
    site.alice.write('site.sh', says % 'hers')
    shown, _ = ask('--post-process', 'sh site.sh')
    site.ledger.sql('DELETE FROM facts')
    site.hood.succeed('post-process', shown['id'], '--config', configure(site, {'alice': ALICE}, says % 'the site'), env=site.environment())
    assert facts(site) == ['bob|the site']


@pytest.mark.only('root')
def test_submit_tells_what_would_be_refused_as_far_as_the_configuration_tells(site):
    def said(**configuration):
        site.alice.write('config/fumehood/config.yaml', json.dumps(configuration), 0o644)
        id = site.hood.id()
        done = site.alice.cli('submit', id, '--post-process', 'sh own.sh', '--', 'true')
        site.alice.cli('cancel', id)
        assert done.status == 0, done
        return done.err

    site.alice.write('own.sh', OVERWRITES)
    try:
        told = "refuses --post-process 'sh own.sh', unless its configuration lists it"
        assert told in said() and told in said(queue={'allow': {'post_process': ['sh site.sh']}, 'users': {'bob': BOB}})
        assert told not in said(queue={'allow': {'post_process': ['sh own.sh']}})
        assert told not in said(queue={'users': {'alice': ALICE}})
    finally:
        (site.alice.home / 'config/fumehood/config.yaml').unlink()


# Words of another's attempt: nobody tries them again, or makes rows with them, as his own.

def forget(person, id):
    person.sql(f"""SELECT fumehood.queue_forget('["{id}"]')""")


@pytest.mark.only('root')
def test_who_tries_anothers_again_does_not_run_it_with_his_own_rights(site):
    id = site.hood.id()
    site.alice.submit(id, '--ro', f'{site.open}:/x', command=['sh', '-c', 'cat /x/key >out'])
    config = configure(site, {'alice': ALICE, 'owner': 'root'})
    site.hood.succeed('worker', '--drain', '--config', config, env=site.environment())
    assert site.shown(id)['verdict'] == 'failed'
    forget(site.alice, id)
    result = site.hood.cli('retry', id)
    assert result.status == 125 and "it is another's" in result.err, result
    assert site.ledger.sql(f"SELECT count(*) FROM fumehood.queue WHERE id = '{id}'") == ['0']
    assert site.alice.cli('retry', id).status == 0
    assert site.alice.cli('cancel', id).status == 0


@pytest.mark.only('root')
def test_who_repeats_anothers_post_process_has_none_of_his_files(site, ask):
    """Even where the attempt says that it was run: that is what its owner says."""
    site.ledger.sql("DELETE FROM facts; INSERT INTO facts VALUES ('bob', 'true')")
    site.alice.write('site.sh', OVERWRITES, 0o644)
    shown, _ = ask('--post-process', 'sh site.sh')
    forget(site.alice, shown['id'])
    site.ledger.sql("DELETE FROM facts; INSERT INTO facts VALUES ('bob', 'true')")
    local, place = site.hood.id(), site.hood.directory('willys', 0o755)
    site.hood.write(place / 'own.sh', OVERWRITES)
    config = configure(site, {'alice': ALICE})
    willy = site.environment()
    site.hood.succeed('run', local, '--config', config, '--post-process', 'sh own.sh', '--', *LEAVES, env=willy, cwd=place)
    site.ledger.sql("DELETE FROM facts; INSERT INTO facts VALUES ('bob', 'true')")
    for id, where in ((shown['id'], site.alice.home), (local, place)):
        result = site.hood.cli('post-process', id, '--config', config, cwd=where)
        assert result.status == 125 and 'name one with --post-process CMD' in result.err, result
        assert facts(site) == ['bob|true']
    site.hood.succeed('post-process', local, '--config', config, env=willy, cwd=place)  # whose it is
    assert facts(site) == ['bob|alice was here']


@pytest.mark.only('root')
def test_nobody_joins_anothers_array(site):
    array = site.hood.id()
    try:
        site.bob.submit(array, '--array', '1-2')
        result = site.alice.cli('submit', f'{array}.3', '--', 'false')
        assert result.status == 125 and 'the name is taken' in result.err, result
        site.bob.submit(f'{array}.3')
    finally:
        site.bob.cli('cancel', array)
