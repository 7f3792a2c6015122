"""Two submitters, each a role of PostgreSQL and a user of the host, and a worker that is root: what one of them tries to reach
of the other's or of root's. Every attempt is made three times: by a submitter who is root's user on the worker's host, where
it must succeed (or it would show nothing), by one who is an ordinary user there, and by one who is nobody there."""
import ctypes
import hashlib
import json
import os
import secrets
import struct
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import ledgers
from hood import Hood, Who
from until import until

pytestmark = pytest.mark.only('root')

ALICE, BOB = 61901, 61902  # throw-away uids
SECRET, PASSWORD = 'secret-' + secrets.token_hex(8), 's3cret'
ROLES = {'alice': 'IN ROLE fumehood_submitter', 'bob': 'IN ROLE fumehood_submitter', 'willy': 'IN ROLE fumehood_worker', 'asker': ''}


class Person:
    """A submitter: a user of the host with a home, and a role of the database."""

    def __init__(self, site, name, uid):
        self.site, self.name, self.uid = site, name, uid
        self.home = site.hood.base / name
        self.home.mkdir()
        self.give(self.home, 0o755)
        self.url = site.url(name)
        self.env = {**site.hood.env, 'HOME': str(self.home), 'FUMEHOOD_DB': self.url,
                    **{f'XDG_{kind}_HOME': str(self.home / kind.lower()) for kind in ('DATA', 'STATE', 'CONFIG')}}

    def give(self, path, mode):
        os.chown(path, self.uid, self.uid, follow_symlinks=False)
        path.chmod(mode)

    def write(self, name, text, mode=0o600):
        path = self.home / name
        for parent in reversed(path.relative_to(self.home).parents):
            if not (self.home / parent).exists():
                (self.home / parent).mkdir()
                self.give(self.home / parent, 0o755)
        path.write_text(text)
        self.give(path, mode)
        return path

    def link(self, id, target):
        """His own; of the control root's, who does not follow a link of somebody else's."""
        path = self.home / f'{id}-link'
        path.symlink_to(target)
        if not id.endswith('control'):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)
        return path

    def cli(self, *arguments, **others):
        return self.site.hood.cli(*arguments, cwd=self.home, env=self.env, user=self.uid, group=self.uid,
                                  extra_groups=[], **others)

    def submit(self, id, *options, command=('true',)):
        done = self.cli('submit', id, *options, '--', *command)
        assert done.status == 0, done

    def sql(self, text):
        """As a client of his own: not everybody uses our `submit`."""
        return self.site.ledger.psql(self.url, text)

    def rewrite(self, id, request):
        """The row in the queue as no `submit` of ours would have made it, but this role can."""
        row = json.loads(self.sql(f"SELECT row_to_json(q) FROM fumehood.queue q WHERE id = '{id}'")[0])
        row['request'].update(request)
        self.put(id, row)

    def put(self, id, row):
        text = json.dumps([row]).replace("'", "''")
        self.sql(f"""SELECT fumehood.queue_cancel('["{id}"]', ''), fumehood.queue_forget('["{id}"]'); SELECT fumehood.put_queue('{text}')""")


class Site:
    """A host with root's and bob's files, a database, and what alice has submitted."""

    def __init__(self, binary, server):
        self.hood = Hood(binary, Who(None))
        self.ledger = ledgers.Postgres(self.hood, server)
        self.server = server
        self.hood.succeed('db', 'init', '--roles')
        for role, kind in ROLES.items():
            self.ledger.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' {kind}")
        self.ledger.sql(f"CREATE TABLE scores(text text); GRANT SELECT, INSERT ON scores TO fumehood_worker; "
                        f"CREATE TABLE answers(text text); INSERT INTO answers VALUES ('{SECRET}'); GRANT SELECT ON answers TO asker")
        self.passfile = self.hood.write(self.hood.home / 'pgpass', f'*:*:*:asker:{PASSWORD}\n', 0o600)
        self.alice, self.bob = Person(self, 'alice', ALICE), Person(self, 'bob', BOB)
        self.root = self.hood.directory('root', 0o700)
        self.open = self.hood.directory('open', 0o755)
        self.results = self.hood.directory('results', 0o755)
        self.listed = self.hood.directory('listed', 0o755)
        self.hood.write(self.root / 'key', SECRET, 0o600)
        self.hood.write(self.root / 'data/key', SECRET, 0o644)
        self.hood.write(self.root / 'docs/key', SECRET, 0o644)
        self.hood.write(self.open / 'key', SECRET, 0o600)
        self.hood.write(self.open / 'public', 'everybody may read this\n', 0o644)
        self.hood.write(self.listed / 'public', 'everybody may read this\n', 0o644)
        self.hood.write(self.listed / 'closed/inner/key', SECRET, 0o644)
        (self.listed / 'closed').chmod(0o700)
        (self.listed / 'out').symlink_to(self.root)
        self.bob.write('private/key', SECRET, 0o600)
        (self.bob.home / 'private').chmod(0o700)
        for place in (self.root, self.bob.home / 'private'):
            self.make_prefix(place / 'venv')
        os.chown(self.bob.home / 'private/venv', BOB, BOB)
        self.made = {}

    def url(self, role):
        return self.ledger.plain.replace('owner:s3cret', f'{role}:{PASSWORD}')

    def make_prefix(self, at):
        """An interpreter with a prefix of its own, in which a secret lies."""
        self.hood.write(at / 'pyvenv.cfg', 'home = /usr/bin\n')
        self.hood.write(at / 'key', SECRET, 0o644)
        self.hood.write(at / 'bin/python', '#!/bin/sh\nexec /bin/sh "$@"\n', 0o755)

    def configuration(self, name, users):
        """What the worker is told; the same but for who is whom."""
        self.hood.write(self.hood.home / f'{name}/config.yaml', json.dumps({
            'query': {'role': 'asker', 'passfile': str(self.passfile)},
            'post_process': {'tables': {'scores': ['text']}},
            'queue': {'users': users,
                      'allow': {'ro': [str(self.listed)], 'into': [str(self.results)], 'env': ['LISTED'],
                                'post_process': ['sh site.sh']}}}))
        self.hood.write(self.hood.home / f'{name}/site.sh', 'echo \'{"table": "scores", "row": {"text": "the site"}}\'\n')
        return self.hood.home / f'{name}/config.yaml'

    def environment(self):
        return {'LISTED': 'listed-value', 'SECRET': SECRET, 'PGPASSWORD': SECRET,
                'FUMEHOOD_DB': f'{self.url("willy")}?objects={self.hood.home}/objects'}

    def drain(self, name, users):
        return self.hood.cli('worker', '--drain', '--jobs', 4, '--config', self.configuration(name, users), env=self.environment())

    def worker(self, name, users):
        return self.hood.popen('worker', '--jobs', 4, '--config', self.configuration(name, users), env=self.environment())

    def shown(self, id):
        return json.loads(self.hood.succeed('show', id, '--json').out)

    def outputs(self, id):
        """All that came of it, as text."""
        return self.hood.cli('logs', id).out + json.dumps(self.shown(id))

    def close(self):
        problems = self.hood.problems()
        self.ledger.close()
        for role in ROLES:
            self.ledger.psql(self.server.url, f'DROP ROLE {role}')
        self.hood.remove()
        assert not problems, '\n'.join(problems)


# What is attempted. Each submits id as alice, and says how one sees that it was reached: by default, that the secret came out.

ATTEMPTS = {}


def attempt(function):
    ATTEMPTS[function.__name__] = SimpleNamespace(submit=function, reached=secret_came_out)
    return function


def reached(check):
    def note(function):
        ATTEMPTS[function.__name__].reached = check
        return function
    return note


def secret_came_out(site, id):
    return SECRET in site.hood.cli('logs', id).out


def written_to(*parts):
    """A directory of the site, by attribute and names, has what the analysis left."""
    def check(site, id):
        base = getattr(site, parts[0])
        base = base.home if isinstance(base, Person) else base
        return base.joinpath(*[part.format(id=id) for part in parts[1:]]).exists()
    return check


def read(*paths):
    return ['sh', '-c', ' '.join(['cat', *map(str, paths)])]


@attempt
def a_file_of_roots(site, id):
    site.alice.submit(id, '--ro', site.root / 'key', command=read(site.root / 'key'))


@attempt
def a_directory_of_roots(site, id):
    site.alice.submit(id, '--ro', site.root, command=read(site.root / 'key'))


@attempt
def a_directory_below_one_of_roots(site, id):
    site.alice.submit(id, '--ro', site.root / 'data', command=read(site.root / 'data/key'))


@attempt
def a_file_of_roots_in_an_open_directory(site, id):
    site.alice.submit(id, '--ro', site.open, command=read(site.open / 'key'))


@attempt
def that_file_by_its_own_name(site, id):
    site.alice.submit(id, '--ro', site.open / 'key', command=read(site.open / 'key'))


@attempt
def a_file_of_bobs(site, id):
    site.alice.submit(id, '--ro', site.bob.home / 'private/key', command=read(site.bob.home / 'private/key'))


@attempt
def a_file_of_bobs_in_his_open_home(site, id):
    site.alice.submit(id, '--ro', site.bob.home, command=['sh', '-c', f'cat {site.bob.home}/private/key'])


@attempt
def a_link_to_a_file_of_roots(site, id):
    site.alice.submit(id, '--ro', site.alice.link(id, site.root / 'key'), command=read(f'{site.alice.home}/{id}-link'))


@attempt
def a_link_to_a_directory_of_roots(site, id):
    link = site.alice.link(id, site.root)
    site.alice.submit(id, '--ro', f'{link}/data:/shown', command=read('/shown/key'))


@attempt
def a_hard_link_to_a_file_of_roots(site, id):
    # As on a host without fs.protected_hardlinks: the name is alice's, the file is not.
    site.alice.write(f'{id}-dir/mine', 'mine')
    os.link(site.open / 'key', site.alice.home / f'{id}-dir/key')
    site.alice.submit(id, '--ro', site.alice.home / f'{id}-dir/key', command=read(site.alice.home / f'{id}-dir/key'))


@attempt
def data_of_roots(site, id):
    site.alice.submit(id, command=read('data/key'))
    site.alice.rewrite(id, dict(data=str(site.root / 'data')))


@attempt
def docs_of_bobs(site, id):
    site.alice.submit(id, command=read('docs/key'))
    site.alice.rewrite(id, dict(docs=str(site.bob.home / 'private')))


@attempt
def a_relative_path_in_a_directory_of_roots(site, id):
    site.alice.submit(id, command=read('/shown'))
    site.alice.rewrite(id, dict(directory=str(site.root), ro=['key:/shown']))


@attempt
def staged_from_the_workers_host(site, id):
    """Nobody may: a row that names files to stage is refused, whoever is root. Its control is the file as --ro."""
    site.alice.submit(id, command=read('key'))
    if id.endswith('control'):
        site.alice.rewrite(id, dict(ro=[f'{site.root}/key:/shown'], command=read('/shown')))
    else:
        site.alice.rewrite(id, dict(input=[str(site.root / 'key')]))


@attempt
def an_argument_that_names_a_file_of_roots(site, id):
    """Arguments are staged by submit, never by a worker. The control shows the file."""
    site.alice.submit(id, command=['cat', 'key'])
    site.alice.rewrite(id, dict(directory=str(site.root), no_stage=False))
    if id.endswith('control'):
        site.alice.rewrite(id, dict(ro=[f'{site.root}/key:/shown'], command=['cat', '/shown']))


@attempt
def the_data_directory_of_another_current_directory(site, id):
    """./data is looked for by submit, never by a worker. The control names it."""
    site.alice.submit(id, command=read('data/key'))
    site.alice.rewrite(id, dict(directory=str(site.root)))
    if id.endswith('control'):
        site.alice.rewrite(id, dict(data=str(site.root / 'data')))


@attempt
def the_prefix_of_a_program_of_roots(site, id):
    site.alice.submit(id, command=[f'{site.root}/venv/bin/python', '-c', f'cat {site.root}/venv/key'])


@attempt
def the_prefix_of_a_program_of_bobs(site, id):
    site.alice.submit(id, command=['venv/bin/python', '-c', f'cat {site.bob.home}/private/venv/key'])
    site.alice.rewrite(id, dict(directory=str(site.bob.home / 'private')))


@attempt
def an_environment_of_roots(site, id):
    site.alice.submit(id, command=read(site.root / 'venv/key'))
    site.alice.rewrite(id, dict(shown=[f'{site.root}/venv'], shown_env=[f'VIRTUAL_ENV={site.root}/venv']))


@attempt
def packages_of_bobs(site, id):
    place = f'{site.bob.home}/private/venv'
    site.alice.submit(id, command=read(f'{place}/key'))
    site.alice.rewrite(id, dict(shown=[place], shown_env=[f'PYTHONPATH={place}']))


@attempt
def a_prefix_with_dots_in_its_path(site, id):
    site.alice.submit(id, command=[f'/usr/bin/../..{site.root}/venv/bin/python', '-c', f'cat {site.root}/venv/key'])


@reached(written_to('root', '{id}', 'out'))
@attempt
def outputs_into_a_directory_of_roots(site, id):
    site.alice.submit(id, '--into', site.root / id, command=['sh', '-c', 'echo x >out'])


@reached(written_to('open', '{id}', 'out'))
@attempt
def outputs_into_an_open_directory_of_roots(site, id):
    site.alice.submit(id, '--into', site.open / id, command=['sh', '-c', 'echo x >out'])


@reached(written_to('bob', '{id}', 'out'))
@attempt
def outputs_into_bobs_home(site, id):
    site.alice.submit(id, '--into', site.bob.home / id, command=['sh', '-c', 'echo x >out'])


@reached(written_to('root', '{id}', 'out'))
@attempt
def outputs_through_a_link(site, id):
    site.alice.link(id, site.root)
    site.alice.submit(id, '--into', f'{site.alice.home}/{id}-link/{id}', command=['sh', '-c', 'echo x >out'])


@reached(written_to('root', '{id}', 'out'))
@attempt
def outputs_out_of_a_listed_directory(site, id):
    site.alice.submit(id, '--into', f'{site.results}/../root/{id}', command=['sh', '-c', 'echo x >out'])


@reached(lambda site, id: (site.results / 'bobs/out').read_text() == 'overwritten')
@attempt
def what_bob_has_in_a_listed_directory(site, id):
    site.hood.write(site.results / 'bobs/out', 'of bob')
    site.alice.submit(id, '--force', '--into', site.results / 'bobs', command=['sh', '-c', 'printf overwritten >out'])


@attempt
def what_is_above_a_listed_directory(site, id):
    site.alice.submit(id, '--ro', f'{site.listed}/../root:/shown', command=read('/shown/key'))


@attempt
def a_link_out_of_a_listed_directory(site, id):
    site.alice.submit(id, '--ro', f'{site.listed}/out:/shown', command=read('/shown/key'))


@attempt
def behind_a_closed_door_of_a_listed_directory(site, id):
    site.alice.submit(id, '--ro', f'{site.listed}/closed/inner:/shown', command=read('/shown/key'))


@attempt
def a_variable_of_the_worker(site, id):
    site.alice.submit(id, command=['sh', '-c', 'echo "$SECRET"'])
    site.alice.rewrite(id, dict(env=['SECRET']))


@attempt
def the_workers_password(site, id):
    site.alice.submit(id, command=['sh', '-c', 'env'])
    site.alice.rewrite(id, dict(env=['A=1', 'PGPASSWORD']))


@reached(lambda site, id: SECRET in '\n'.join(site.ledger.sql('SELECT text FROM scores')))
@attempt
def a_file_of_roots_by_a_post_process(site, id):
    """Its files are stored by submit, and never read by a worker. The control stores the secret."""
    if id.endswith('control'):
        site.alice.write('post.sh', f'echo \'{{"table": "scores", "row": {{"text": "{SECRET}"}}}}\'\n')
        site.alice.submit(id, '--post-process', 'sh post.sh')
        return
    site.ledger.sql('DELETE FROM scores')
    site.hood.write(site.root / 'post.sh', f'echo \'{{"table": "scores", "row": {{"text": "{SECRET}"}}}}\'\n')
    site.alice.submit(id)
    site.alice.rewrite(id, dict(post_process='sh post.sh', directory=str(site.root)))


@attempt
def what_a_query_may_ask(site, id):
    site.alice.submit(id, '--query', 'answers.csv=SELECT text FROM answers', command=['cat', 'answers.csv'])


@reached(lambda site, id: site.shown(id)['verdict'] == 'succeeded')
@attempt
def limits_that_are_not_held(site, id):
    site.alice.submit(id, '--allow-unlimited')


@reached(lambda site, id: site.shown(id)['verdict'] == 'succeeded')
@attempt
def a_weaker_hood(site, id):
    """The site's own strength is full."""
    site.alice.submit(id, '--strength', 'landlock')


@reached(lambda site, id: site.hood.workspace(id).exists())
@attempt
def room_on_the_workers_disk(site, id):
    site.alice.submit(id, '--keep', 'always')


@attempt
def a_workspace_that_root_holds(site, id):
    path = site.hood.succeed('workspace', 'create', id, '--for', '1h').out.strip()
    site.hood.write(Path(path) / 'key', SECRET)
    if id.endswith('control'):  # root's own, but not by the queue: what runs there is a step
        site.hood.succeed('run', id, '--', *read('key'))
        site.hood.succeed('commit', id)
        return
    site.alice.submit(id, command=read('key'))


@reached(lambda site, id: site.shown(id)['verdict'] == 'succeeded')
@attempt
def an_attempt_at_bobs_analysis(site, id):
    """The request of a row must be its own. The control is the row itself."""
    site.bob.submit(f'{id}-bobs')
    site.alice.submit(id)
    if not id.endswith('control'):
        site.alice.rewrite(id, dict(id=f'{id}-bobs'))


WHO = {'control': {'alice': 'root', 'bob': BOB}, 'user': {'alice': ALICE, 'bob': BOB}, 'nobody': {'bob': BOB}}


@pytest.fixture(scope='module')
def site(binary, server):
    """All attempts, made as each of the three, and ended."""
    site = Site(binary, server)
    try:
        for who, users in WHO.items():
            for name, made in ATTEMPTS.items():
                site.made[who, name] = f'{site.hood.tag}-{name}-{who}'
                made.submit(site, site.made[who, name])
            site.said = site.drain(who, users)
            assert site.said.status == 0, site.said
            site.reached = getattr(site, 'reached', {})
            for name, made in ATTEMPTS.items():
                site.reached[who, name] = made.reached(site, site.made[who, name])
        yield site
    finally:
        for id in site.made.values():
            site.hood.cli('workspace', 'cleanup', id)
        site.close()


@pytest.mark.parametrize('name', ATTEMPTS)
def test_a_stranger_does_not_reach(site, name):
    assert site.reached['control', name], site.outputs(site.made['control', name])
    for who in ('user', 'nobody'):
        said = site.outputs(site.made[who, name])
        assert not site.reached[who, name], said
        assert SECRET not in said


# Rows and contents: bob's are bob's, whatever SQL alice writes (tests/e2e/test_roles.py tries some two hundred more).

@pytest.fixture(scope='module')
def bobs(site):
    """An analysis of bob's that has run, and one that is queued; a secret in everything of it."""
    ids = SimpleNamespace(done=site.hood.id(), queued=site.hood.id())
    site.bob.write('input.txt', SECRET)
    site.bob.submit(ids.done, '--input', 'input.txt', '--env', f'WORD={SECRET}', command=['sh', '-c', 'cat input.txt; cp input.txt $WORD'])
    site.drain('user', WHO['user'])
    site.bob.submit(ids.queued, '--env', f'WORD={SECRET}')
    return ids


READS = {
    'a_request_in_the_queue': "SELECT request FROM fumehood.queue WHERE id = '{queued}'",
    'a_request_that_has_run': "SELECT request FROM fumehood.attempt WHERE analysis_id = '{done}'",
    'a_log': "SELECT encode(head, 'escape') FROM fumehood.log WHERE analysis_id = '{done}'",
    'the_names_of_outputs': "SELECT encode(path, 'escape') FROM fumehood.output WHERE analysis_id = '{done}'",
    'a_content_by_its_digest': "SELECT encode(content, 'escape') FROM fumehood.blob WHERE sha256 = sha256('%s')" % SECRET,
    'a_content_by_any_digest': "SELECT encode(content, 'escape') FROM fumehood.blob",
}


def rows_for(person, text):
    try:
        return '\n'.join(person.sql(text))
    except subprocess.CalledProcessError:
        return ''


@pytest.mark.parametrize('name', READS)
def test_a_stranger_does_not_read(site, bobs, name):
    text = READS[name].format(**vars(bobs))
    assert SECRET in rows_for(site.bob, text)
    assert SECRET not in rows_for(site.alice, text)


@pytest.mark.parametrize('command', [['show', '--json'], ['logs'], ['outputs', '--json']], ids=lambda words: words[0])
def test_a_stranger_is_not_shown(site, bobs, command):
    def see(person):
        return person.cli(command[0], bobs.done, *command[1:])

    assert see(site.bob).status == 0 and SECRET in see(site.bob).out
    assert see(site.alice).status != 0 and SECRET not in see(site.alice).out


def test_a_stranger_changes_no_row(site, bobs):
    def bobs_row():
        return site.ledger.sql(f"SELECT row_to_json(q) FROM fumehood.queue q WHERE id = '{bobs.queued}'")

    before = bobs_row()
    cancel = f"""SELECT fumehood.queue_cancel('["{bobs.queued}"]', 'mine now')"""
    for text in (cancel, f"UPDATE fumehood.queue SET owner = 'alice' WHERE id = '{bobs.queued}'",
                 f"UPDATE fumehood.queue SET reason = 'x' WHERE id = '{bobs.queued}'",
                 f"DELETE FROM fumehood.queue WHERE id = '{bobs.queued}'",
                 f"UPDATE fumehood.queue SET state = 'running', worker = 'me' WHERE id = '{bobs.queued}'"):
        rows_for(site.alice, text)
        assert bobs_row() == before, text
    assert site.alice.cli('cancel', bobs.queued).status != 0 and bobs_row() == before
    rows_for(site.bob, cancel)
    assert json.loads(bobs_row()[0])['state'] == 'cancelled'  # bob's own word counts


def test_a_stranger_is_nobody_else_and_has_no_content_by_its_digest(site, bobs):
    id = site.hood.id()
    site.alice.write('mine.txt', 'hers')
    site.alice.submit(id, '--input', 'mine.txt', command=['cat', 'mine.txt'])
    row = json.loads(site.alice.sql(f"SELECT row_to_json(q) FROM fumehood.queue q WHERE id = '{id}'")[0])
    site.alice.put(id, {**row, 'owner': 'bob'})
    assert site.ledger.sql(f"SELECT owner FROM fumehood.queue WHERE id = '{id}'") == ['alice']
    stolen = {**row, 'id': f'{id}-stolen', 'inputs': [{**row['inputs'][0], 'size': len(SECRET),
                                                       'sha256': hashlib.sha256(SECRET.encode()).hexdigest()}]}
    stolen['request']['id'] = stolen['id']
    with pytest.raises(subprocess.CalledProcessError):
        site.alice.put(stolen['id'], stolen)
    site.drain('user', WHO['user'])
    assert site.hood.cli('logs', id).out == 'hers' and site.hood.cli('show', stolen['id']).status != 0


# What is allowed works, and what is not says so.

@pytest.fixture
def ask(site):
    """Submits as alice, has it run where she is who, and tells what came of it."""
    def ask(who, *options, command=('true',), row=None):
        id = site.hood.id()
        site.alice.submit(id, *options, command=command)
        if row:
            site.alice.rewrite(id, row)
        said = site.drain(who, WHO[who])
        assert said.status == 0, said
        return SimpleNamespace(log=site.hood.cli('logs', id).out, said=said.err, **site.shown(id))
    return ask


def test_what_its_user_may_read_and_write_a_submission_may(site, ask):
    site.alice.write('mine/deep/file', 'mine\n', 0o600)
    (site.alice.home / 'mine').chmod(0o700)
    place = site.alice.home / 'results'
    done = ask('user', '--ro', site.alice.home / 'mine', '--data', site.alice.home / 'mine/deep', '--into', place, command=[
        'sh', '-c', f'cat data/file {site.alice.home}/mine/deep/file; head -c 20000000 /dev/zero >large; mkdir d; echo x >d/small'])
    assert done.verdict == 'succeeded' and done.log == 'mine\nmine\n', done
    assert (place / 'd/small').read_text() == 'x\n' and (place / 'large').stat().st_size == 20000000
    for path in (place, place / 'd', place / 'd/small', place / 'large'):
        assert path.stat().st_uid == ALICE


def test_the_environment_of_a_submitter_is_shown_as_far_as_he_may_read_it(site, ask):
    hers, listed = site.alice.home / 'env', site.listed / 'packages'
    site.alice.write('env/pyvenv.cfg', 'home = /usr/bin\n', 0o644)
    site.alice.write('env/bin/tool', '#!/bin/sh\necho hers\n', 0o755)
    site.hood.write(listed / 'm.py', 'x = 1\n')
    for path in (site.alice.home / 'env', site.alice.home / 'env/bin'):
        path.chmod(0o700)  # hers alone
    site.alice.env.update(VIRTUAL_ENV=str(hers), PYTHONPATH=str(listed))
    try:
        command = ['sh', '-c', 'tool 2>/dev/null; echo "$VIRTUAL_ENV"; python3 -c "import m; print(m.x)"; true']
        done = ask('user', command=command)
        assert done.verdict == 'succeeded' and done.log.splitlines()[-3:] == ['hers', str(hers), '1'], done
        assert ask('user', command=['tool']).log == 'hers\n'
        done = ask('nobody', command=command)  # what is listed is for everybody
        assert done.verdict == 'succeeded' and done.log.splitlines()[-2:] == ['', '1'], done
        assert any(str(hers) in text and 'no user of this host' in text for text in done.receipt['warnings']), done
        assert f"'{hers}' of the submitter's environment is not shown" in done.said, done
    finally:
        del site.alice.env['VIRTUAL_ENV'], site.alice.env['PYTHONPATH']


def test_what_is_listed_is_for_everybody(site, ask):
    done = ask('nobody', '--ro', site.listed, '--into', site.results / 'hers', row={'env': ['LISTED']},
               command=['sh', '-c', f'cat {site.listed}/public; echo $LISTED; echo x >out'])
    assert done.verdict == 'succeeded' and done.log == 'everybody may read this\nlisted-value\n', done
    assert (site.results / 'hers/out').read_text() == 'x\n'
    assert (site.results / 'hers/out').stat().st_uid == 0


def test_a_post_process_of_the_workers_own_user_is_stored_with_the_submission(site):
    script = site.alice.write('own.sh', 'cat words.txt; echo \'{"table": "scores", "row": {"text": "hers"}}\'\n')
    words = site.alice.write('words.txt', '{"table": "scores", "row": {"text": "her words"}}\n')
    id = site.hood.id()
    site.alice.submit(id, '--post-process', 'sh own.sh words.txt')
    site.alice.write('own.sh', 'echo \'{"table": "scores", "row": {"text": "written later"}}\'\n')
    words.unlink()
    site.ledger.sql('DELETE FROM scores')
    site.drain('control', WHO['control'])
    assert site.shown(id)['verdict'] == 'succeeded', site.outputs(id)
    assert site.ledger.sql('SELECT text FROM scores ORDER BY text') == ['her words', 'hers']
    assert site.shown(id)['inputs'] == []  # they are none of the analysis's own
    script.unlink()
    site.hood.succeed('post-process', id, '--config', site.hood.home / 'control/config.yaml')  # by root, from what is stored


def test_a_listed_post_process_is_the_sites_own(site, ask):
    site.alice.write('site.sh', 'echo \'{"table": "scores", "row": {"text": "hers"}}\'\n')
    for who in ('nobody', 'user'):
        site.ledger.sql('DELETE FROM scores')
        assert ask(who, '--post-process', 'sh site.sh').verdict == 'succeeded'
        assert site.ledger.sql('SELECT text FROM scores') == ['the site']
    site.alice.write('other.sh', '')
    for who in ('nobody', 'user'):
        done = ask(who, '--post-process', 'sh other.sh')
        assert done.verdict == 'refused' and "--post-process 'sh other.sh' is not allowed for 'alice'" in done.reason


def test_a_refusal_is_final_and_says_what_is_not_allowed_for_whom_and_what_to_configure(site, ask):
    done = ask('nobody', '--ro', site.root / 'key', '--retries', '3')
    assert [a['verdict'] for a in done.attempts] == ['refused'] and done.state == 'finished'
    for part in (f"--ro '{site.root}/key' is not allowed for 'alice'", 'no user of this host', 'queue: {allow: {ro: ',
                 'queue: {users: '):
        assert part in done.reason and part in done.said
    done = ask('user', '--into', site.root / 'x')
    assert [a['verdict'] for a in done.attempts] == ['refused']
    assert str(ALICE) in done.reason and 'queue: {allow: {into: ' in done.reason and 'may not write there' in done.reason
    done = ask('nobody', row={'env': ['HOME']})
    assert "--env 'HOME' is not allowed for 'alice'" in done.reason
    assert ask('nobody', command=['echo', 'nothing is asked for']).verdict == 'succeeded'


def test_whether_a_file_is_there_is_not_told(site, ask):
    for name in (site.root / 'key', site.root / 'no such'):
        done = ask('nobody', command=[str(name)])
        assert done.verdict == 'refused' and 'is not visible' in done.reason


def test_a_user_whom_the_host_does_not_know_is_nobody(site):
    id = site.hood.id()
    site.alice.submit(id, '--ro', site.open)
    site.drain('unknown', {'alice': 'no-such-user'})
    assert "maps 'alice' to 'no-such-user', whom this host does not know" in site.shown(id)['reason']


# Where others may rename, a name means one directory now and another a moment later.

SWAP = """import ctypes, os, sys
swap = ctypes.CDLL(None).renameat2
while os.getppid() == int(sys.argv[3]):
    swap(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)  # RENAME_EXCHANGE
"""


@pytest.mark.long
def test_a_file_whose_directory_is_swapped_meanwhile_is_that_file_or_none(site):
    shared = site.hood.directory('swapped')
    shared.chmod(0o777)
    for name, uid, mode, text in (('hers', ALICE, 0o755, 'hers\n'), ('his', BOB, 0o700, SECRET)):
        site.hood.write(shared / name / 'file', text, 0o644)
        for path in (shared / name / 'file', shared / name):
            os.chown(path, uid, uid)
        (shared / name).chmod(mode)
    ids = [site.hood.id() for _ in range(150)]
    row = None
    for id in ids:
        if row is None:
            site.alice.submit(id, command=['cat', '/shown'])
            row = json.loads(site.alice.sql(f"SELECT row_to_json(q) FROM fumehood.queue q WHERE id = '{id}'")[0])
        row['request'].update(id=id, ro=[f'{shared}/hers/file:/shown'])
        row.update(id=id, retries=0)
        site.alice.put(id, row)
    swapper = subprocess.Popen(['/usr/bin/python3', '-c', SWAP, shared / 'hers', shared / 'his', str(os.getpid())],
                               user=ALICE, group=65534, extra_groups=[])
    try:
        assert site.drain('user', WHO['user']).status == 0
    finally:
        swapper.kill()
        swapper.wait()
    logs = [site.hood.cli('logs', id).out for id in ids]
    assert SECRET not in ''.join(logs)
    assert 'hers\n' in logs


# A file system of the user's own, which need not answer.

class Silent:
    """A FUSE file system of this user that has a root, and never says what lies in it."""
    INIT, GETATTR = 26, 3

    def __init__(self, at, uid, gid):
        self.at, self.uid, self.fd = at, uid, os.open('/dev/fuse', os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f'fd={self.fd},rootmode=40000,user_id={uid},group_id={gid}'
        if libc.mount(b'fuse', str(at).encode(), b'fuse', 6, options.encode()) != 0:  # MS_NOSUID | MS_NODEV
            os.close(self.fd)
            pytest.skip('no FUSE file system can be mounted here')
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:
                return
            _, what, number = struct.unpack('<IIQ', request[:16])
            if what == self.INIT:
                answer = struct.pack('<IIIIHHI', 7, 31, 65536, 0, 12, 9, 65536) + bytes(40)
            elif what == self.GETATTR:
                answer = bytes(16) + struct.pack('<6Q10I', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, self.uid, self.uid, 0, 4096, 0)
            else:
                continue
            os.write(self.fd, struct.pack('<IiQ', 16 + len(answer), 0, number) + answer)

    def close(self):
        subprocess.run(['umount', '-f', str(self.at)], stderr=subprocess.DEVNULL)
        subprocess.run(['umount', '-l', str(self.at)], stderr=subprocess.DEVNULL)
        self.thread.join(10)
        os.close(self.fd)


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists('/dev/fuse'), reason='no FUSE here')
def test_a_file_system_that_does_not_answer_keeps_no_worker(site):
    """Who waits for it in the kernel cannot be killed; the worker does not wait with him. It is this host's trouble, and not the
    end of the analysis, which says what it waits for and is run once that is gone."""
    place = site.alice.home / 'silent'
    (place / 'x').mkdir(parents=True)
    site.alice.give(place, 0o755)
    silent = Silent(place, ALICE, 65534)  # a user without an entry has no group
    worker = None
    try:
        stuck = site.hood.id()
        site.alice.submit(stuck)
        site.alice.rewrite(stuck, {'ro': [f'{place}/x']})
        site.bob.submit(other := site.hood.id())
        worker = site.worker('user', WHO['user'])
        assert until(lambda: site.shown(other)['verdict'] == 'succeeded')
        assert until(lambda: site.shown(stuck)['state'] == 'waiting'), site.shown(stuck)
        found = site.shown(stuck)
        assert 'gave no answer in time' in found['queue']['reason'] and found['attempts'] == [], found
        silent.close()
        silent = None
        assert until(lambda: site.shown(stuck)['state'] == 'finished'), site.shown(stuck)
        assert site.shown(stuck)['verdict'] == 'succeeded'
    finally:
        if silent:
            silent.close()
        if worker:
            worker.terminate()
            worker.communicate(timeout=60)


@pytest.mark.only('user')
def test_a_worker_that_is_not_root_acts_for_its_own_user_alone(hood, server):
    ledger = ledgers.Postgres(hood, server)
    hood.write('mine/file', 'mine\n', 0o600)
    place = hood.dir / 'mine'

    def ask(users, allow):
        hood.write(hood.home / 'config/fumehood/config.yaml', json.dumps({'queue': {'users': users, 'allow': allow}}))
        id = hood.id()
        hood.succeed('submit', id, '--ro', place, '--', 'cat', place / 'file', cwd=hood.home)
        hood.succeed('worker', '--drain')
        return json.loads(hood.succeed('show', id, '--json').out)

    try:
        own = hood.who.uid if hood.who.uid is not None else os.geteuid()
        assert ask({'owner': own}, {})['verdict'] == 'succeeded'
        assert 'maps \'owner\' to no user of this host' in ask({}, {})['reason']
        assert 'only a worker that is root can act for other users' in ask({'owner': 'root'}, {})['reason']
        assert ask({'owner': 'root'}, {'ro': [str(place)]})['verdict'] == 'succeeded'
    finally:
        ledger.close()
