"""Root opens no ledger, object store, state directory, backup or configuration that somebody else can change: in one sentence, with
the command that does it as that user, and before anything of it is read or written. Whoever is not root may open what he can."""
import os
import pwd
import shutil
import subprocess

import pytest

import ledgers
from hood import Result

USER = 'nobody'  # with a name: `runuser -u` needs one
EVE = pwd.getpwnam(USER).pw_uid
LARGE = ['sh', '-c', 'head -c 200000 /dev/zero >large']


class Eve:
    """Another user of this host, with a home, a ledger, a backup of it and a configuration."""

    def __init__(self, hood):
        self.hood, self.home = hood, hood.base / 'eve'
        self.home.mkdir()
        self.home.chmod(0o755)
        os.chown(self.home, EVE, EVE)
        self.env = {**hood.env, 'HOME': str(self.home),
                    **{f'XDG_{kind}_HOME': str(self.home / kind.lower()) for kind in ('DATA', 'STATE', 'CONFIG')}}
        self.db = self.home / 'own/ledger.db'
        self.succeed('db', 'init', '--db', self.db)
        self.succeed('submit', self.hood.id(), '--db', self.db, '--', 'true')

    def succeed(self, *words):
        done = self.hood.cli(*words, cwd='/', env=self.env, user=EVE, group=EVE, extra_groups=[])
        assert done.status == 0, done

    def sh(self, script):
        subprocess.run(['sh', '-ec', script], check=True, cwd=self.home, user=EVE, group=EVE, extra_groups=[])

    def tree(self):
        """All that is hers, as it is."""
        return {str(path): (path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_ino, path.lstat().st_size, path.lstat().st_mtime_ns)
                for path in [self.home, *self.home.rglob('*')]}


@pytest.fixture
def eve(hood):
    if os.geteuid():
        pytest.skip('nobody else can be played')
    return Eve(hood)


def ask(hood, *words, **others):
    """As hood.cli; a page that is shown, or a worker that waits, is not waited for."""
    process = hood.popen(*words, **others)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f'{words} was not refused') from None
    return Result(process.returncode, out, err)


def refused(eve, result, *words):
    assert result.status == 125, result
    told = result.err.strip().splitlines()
    assert len(told) == 1 and 'root opens only what nobody else can change' in told[0], result
    for word in words or [f"is {USER}'s", f'`runuser -u {USER} -- fumehood …`']:
        assert word in told[0], result


COMMANDS = {
    'ls': ['ls'], 'show': ['show', 'a'], 'logs': ['logs', 'a'], 'outputs': ['outputs', 'a'], 'get': ['get', 'a', 'x'],
    'worker': ['worker', '--drain'], 'workers': ['workers'], 'gc': ['gc', '--quiet'], 'web': ['web', '--listen', '127.0.0.1:0'],
    'post-process': ['post-process', 'a'], 'run': ['run', 'a', '--', 'true'], 'submit': ['submit', 'a', '--', 'true'],
    'wait': ['wait', 'a'], 'cancel': ['cancel', 'a'], 'retry': ['retry', 'a'], 'rm': ['rm', 'a'], 'prune': ['prune', '--older', '1d'],
    'report': ['report', 'a', '-o', 'report.html'], 'check': ['db', 'check'], 'status': ['db', 'status'], 'init': ['db', 'init'],
    'upgrade': ['db', 'upgrade'], 'backup': ['db', 'backup', 'copy'], 'restore': ['db', 'restore', 'copy', '--force']}


@pytest.mark.only('root')
@pytest.mark.parametrize('command', COMMANDS)
def test_root_does_nothing_with_anothers_ledger(hood, eve, command):
    before = eve.tree()
    words = COMMANDS[command]
    at = words.index('--') if '--' in words else len(words)
    refused(eve, ask(hood, *words[:at], '--db', eve.db, *words[at:], cwd=hood.home))
    assert eve.tree() == before


@pytest.mark.only('root')
def test_root_commits_nothing_to_anothers_ledger(hood, eve):
    id = hood.id()
    hood.succeed('workspace', 'create', id)
    before = eve.tree()
    refused(eve, hood.cli('commit', id, '--db', eve.db))
    assert eve.tree() == before
    hood.succeed('workspace', 'cleanup', id, '--discard')


@pytest.mark.only('root')
@pytest.mark.parametrize('way', ['FUMEHOOD_DB', 'configuration', 'XDG_DATA_HOME'])
def test_however_that_ledger_is_named(hood, eve, way):
    env = {'FUMEHOOD_DB': str(eve.db)} if way == 'FUMEHOOD_DB' else {'XDG_DATA_HOME': str(eve.home / 'data')}
    if way == 'configuration':
        hood.write(hood.home / 'config/fumehood/config.yaml', f'ledger: sqlite:{eve.db}\n')
        env = {}
    before = eve.tree()
    refused(eve, hood.cli('run', hood.id(), '--', 'true', env=env))
    assert eve.tree() == before


@pytest.mark.only('root')
def test_root_is_not_led_from_a_users_directory_to_its_own_ledger(hood, eve):
    """He exchanges the directory of his ledger for a link to root's: what he had submitted was root's then."""
    ledgers.Sqlite(hood)
    hood.home.chmod(0o755)
    eve.sh(f'mv own was; ln -s {hood.home}/share/fumehood own')
    refused(eve, hood.cli('worker', '--drain', '--db', eve.db))
    refused(eve, hood.cli('ls', '--db', eve.db))


@pytest.mark.only('root')
def test_with_sudo_E_nothing_of_the_users_is_opened(hood, eve):
    before = eve.tree()
    refused(eve, hood.cli('run', hood.id(), '--', 'true', env=eve.env))
    assert eve.tree() == before
    eve.sh('mkdir -p config/fumehood; echo "maximum: {wall: 1h}" >config/fumehood/config.yaml')
    before = eve.tree()
    refused(eve, hood.cli('ls', env=eve.env), 'cannot open the configuration', f'runuser -u {USER}')
    assert eve.tree() == before


@pytest.mark.only('root')
def test_root_has_no_state_in_anothers_directory(hood, eve):
    before = eve.tree()
    for place in ('state', 'new/state'):
        refused(eve, hood.cli('run', hood.id(), '--', 'true', env={'XDG_STATE_HOME': str(eve.home / place)}))
    assert eve.tree() == before


@pytest.mark.only('root')
def test_root_backs_up_to_no_directory_of_anothers_and_restores_from_none(hood, eve):
    ledgers.Sqlite(hood)
    eve.succeed('db', 'backup', eve.home / 'copy', '--db', eve.db)
    before = eve.tree()
    for words in (['backup', eve.home / 'new'], ['backup', eve.home / 'new/er'], ['restore', eve.home / 'copy']):
        refused(eve, hood.cli('db', *words))
    assert eve.tree() == before


@pytest.mark.only('root')
def test_root_reads_no_configuration_that_others_can_change(hood, eve):
    eve.sh('echo "maximum: {wall: 1h}" >hers.yaml')
    refused(eve, hood.cli('ls', '--config', eve.home / 'hers.yaml'), 'cannot open the configuration')
    refused(eve, hood.cli('ls', '--config', 'hers.yaml', cwd=eve.home), 'cannot open the configuration')
    own = hood.write(hood.home / 'own/config.yaml', 'maximum: {wall: 1h}\n')
    hood.succeed('db', 'init', '--config', own)
    own.chmod(0o664)
    refused(eve, hood.cli('ls', '--config', own), 'it can be written by others (mode 664)', 'chmod go-w')
    own.chmod(0o644)
    own.parent.chmod(0o777)
    refused(eve, hood.cli('ls', '--config', own), f"the directory '{own.parent}' can be written by others (mode 777)", 'chmod go-w')
    own.parent.chmod(0o1777)  # a post-process's files would lie beside it
    refused(eve, hood.cli('ls', '--config', own), '(mode 1777)')
    own.parent.chmod(0o755)
    hood.succeed('ls', '--config', own)


@pytest.mark.only('root')
def test_a_ledger_in_a_sticky_directory_is_refused_for_the_journal_that_others_put_beside_it(hood, eve):
    ledger = ledgers.Sqlite(hood)
    hood.succeed('run', hood.id(), '--', 'true')
    ledger.sql('PRAGMA wal_checkpoint(TRUNCATE)')
    sticky = hood.directory('sticky', 0o1777)
    path = sticky / 'ledger.db'
    shutil.copy(ledger.path, path)
    eve.sh(f'cp {eve.db} {path}-journal; touch {path}-wal')
    before = path.read_bytes()
    for words in (['ls'], ['run', hood.id(), '--', 'true'], ['gc']):
        refused(eve, hood.cli(*words, env={'FUMEHOOD_DB': str(path)}), '(mode 1777)', 'name a place in a directory of root')
    refused(eve, hood.cli('db', 'init', '--db', sticky / 'new.db'), '(mode 1777)')
    assert path.read_bytes() == before and not (sticky / 'new.db').exists()


@pytest.mark.only('root')
def test_in_a_sticky_directory_root_makes_directories_of_its_own(hood, eve):
    sticky = hood.directory('sticky', 0o1777)
    env = {'FUMEHOOD_DB': str(sticky / 'a/b/ledger.db'), 'XDG_STATE_HOME': str(sticky / 'state')}
    hood.succeed('run', hood.id(), '--', *LARGE, env=env)
    hood.succeed('db', 'backup', sticky / 'copy', env=env)
    assert {path.stat().st_mode & 0o7777 for path in (sticky / 'a', sticky / 'a/b', sticky / 'state', sticky / 'copy')} == {0o700}
    eve.sh(f'mkdir {sticky}/hers; ln -s {hood.home} {sticky}/link')
    refused(eve, hood.cli('db', 'init', '--db', sticky / 'hers/new/ledger.db'))
    refused(eve, hood.cli('db', 'init', '--db', sticky / 'link/ledger.db'), '(mode 1777)')
    assert not (hood.home / 'ledger.db').exists()


@pytest.mark.only('root')
def test_links_of_root_in_directories_of_root_are_followed(hood):
    (hood.base / 'way').symlink_to('home')
    (hood.base / 'link').symlink_to(hood.base / 'way/share')
    env = {'XDG_DATA_HOME': str(hood.base / 'link'), 'XDG_STATE_HOME': str(hood.base / 'way/state')}
    hood.succeed('run', hood.id(), '--', *LARGE, env=env)
    assert (hood.home / 'share/fumehood/ledger.db').exists()


@pytest.mark.only('root')
def test_an_object_store_of_anothers_beside_a_server_is_not_used(hood, eve, server):
    ledger = ledgers.Postgres(hood, server)
    try:
        eve.sh('mkdir objects')
        before = eve.tree()
        run = lambda name: hood.cli('run', hood.id(), '--', *LARGE, env={'FUMEHOOD_DB': f'{ledger.plain}?objects={eve.home}/{name}'})
        refused(eve, run('objects'))
        missing = run('new')
        assert missing.status == 125 and 'is not there' in missing.err, missing
        assert eve.tree() == before
    finally:
        ledger.close()


def hostile_store(hood, eve, crafted):
    """Eve's ledger, which everybody may write, with a link for an object store: it leads to a directory of the caller's."""
    target = hood.directory('cron.d', 0o755)
    hood.write(target / 'tmp/file', 'precious\n')
    eve.sh(f"""sqlite3 own/ledger.db "UPDATE fumehood_store SET {crafted}"; chmod 777 own; chmod 666 own/*
               ln -s {target} own/ledger.db.objects""")
    return target


def contents(target):
    return sorted(str(path.relative_to(target)) for path in target.rglob('*'))


def test_a_link_for_an_object_store_leads_nobody_to_a_directory_of_his_own(hood, eve):
    target = hostile_store(hood, eve, "ledger_id = '* * * * * root id >>x #'")
    done = hood.cli('run', hood.id(), '--db', eve.db, '--', *LARGE)
    assert done.status != 0 and contents(target) == ['tmp', 'tmp/file'], done
    hood.cli('gc', '--db', eve.db)


def test_gc_removes_nothing_where_a_link_for_an_object_store_leads(hood, eve):
    ids = '0' * 32, '1' * 32
    target = hostile_store(hood, eve, f"ledger_id = '{ids[0]}', store_id = '{ids[1]}', joined_at = 0, host = '', path = ''")
    hood.write(target / 'id', ' '.join(ids) + '\n')
    hood.cli('gc', '--db', eve.db)
    assert contents(target) == ['id', 'tmp', 'tmp/file']


@pytest.mark.parametrize('id', ['../../../../tmp/x', '* * * * * root touch /tmp/x #', 'A' * 32, '0' * 31])
def test_what_is_no_id_is_written_nowhere(hood, ledger, id):
    ledger.sql(f"UPDATE {ledger.table('store')} SET ledger_id = '{id}'")
    stores = hood.home / 'objects', hood.home / 'share/fumehood/ledger.db.objects'
    before = [contents(store) for store in stores]
    done = hood.cli('run', hood.id(), '--', *LARGE)
    assert done.status == 125 and 'is no id' in done.err, done
    assert [contents(store) for store in stores] == before


@pytest.mark.only('user')
def test_who_is_not_root_reads_anothers_ledger(hood, eve):
    eve.sh('chmod 755 own; chmod 644 own/*')
    done = hood.cli('ls', '--db', eve.db, '--json')
    assert 'root opens only' not in done.err, done
    eve.sh('chmod 777 own; chmod 666 own/*')
    assert len(hood.succeed('ls', '--db', eve.db, '--json').json) == 1


@pytest.mark.only('user')
def test_a_worker_that_is_not_root_gives_no_rights_to_what_is_in_anothers_ledger(hood, eve):
    hood.write('mine/file', 'mine\n', 0o600)
    id = hood.id()
    eve.succeed('submit', id, '--db', eve.db, '--ro', f'{hood.dir}/mine:/shown', '--', 'cat', '/shown/file')
    eve.sh('chmod 777 own; chmod 666 own/*')
    hood.succeed('worker', '--drain', '--db', eve.db)
    shown = hood.succeed('show', id, '--db', eve.db, '--json').json
    assert shown['verdict'] == 'refused' and "others than the worker's user own or can write the ledger" in shown['reason'], shown
    hood.succeed('gc', '--db', eve.db)


@pytest.mark.only('user')
def test_a_ledger_that_others_can_write_gives_no_rights_to_its_owner(hood):
    ledger, id = ledgers.Sqlite(hood), hood.id()
    hood.write('mine/file', 'mine\n', 0o600)
    hood.succeed('submit', id, '--ro', f'{hood.dir}/mine:/shown', '--', 'cat', '/shown/file')
    ledger.path.parent.chmod(0o777)
    hood.succeed('worker', '--drain')
    shown = hood.succeed('show', id, '--json').json
    assert shown['verdict'] == 'refused' and 'chmod go-w' in shown['reason'] and 'queue: {users' not in shown['reason'], shown
    ledger.path.parent.chmod(0o700)
    again = hood.id()
    hood.succeed('submit', again, '--ro', f'{hood.dir}/mine:/shown', '--', 'cat', '/shown/file')
    hood.succeed('worker', '--drain')
    assert hood.log(again) == 'mine\n'


def service(hood, *options):
    [item] = [item for item in hood.cli('doctor', '--json', *options).json['items'] if item['name'] == 'services']
    return item


def test_doctor_says_when_the_packaged_services_would_be_refused(hood, eve, forbid):
    etc = hood.base / 'etc'
    (etc / 'fumehood').mkdir(parents=True)
    config = etc / 'fumehood/config.yaml'
    config.write_text(f'state_dir: {hood.base}/state\n')
    forbid('--over', f'/etc:{etc}')
    assert service(hood)['ok'], service(hood)
    for line in (f'ledger: sqlite:{eve.db}', f'state_dir: {eve.home}/state', f'ledger: postgresql://x/y?objects={eve.home}/objects'):
        config.write_text(line + '\n')
        told = service(hood, '--db', hood.home / 'share/x.db')
        assert not told['ok'] and not told['required'] and 'would be refused' in told['detail'], told
        assert f'runuser -u {USER} -- fumehood' in told['remedy'], told
    if not hood.who.is_root:
        config.write_text('')
        os.chown(config, EVE, EVE)
        assert "cannot open the configuration '/etc/fumehood/config.yaml'" in service(hood)['remedy']
