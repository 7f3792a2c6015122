"""Hosts that do not allow something: what can be done decides, never the uid; what cannot is named, with the remedy, by `doctor` and
by `run` in the same words. Each host is made by its own means: capabilities, seccomp profiles, mounts, user namespaces."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[2]
PROFILE = TOP / 'packaging/containers/seccomp.json'
RANGE_FIRST, RANGE = 1000000, 65536  # tests/support/forbid.c

# What a container's root, or the root of a user namespace, may be.
ROOTS = {
    'no CAP_SYS_ADMIN': ['--caps', 'docker'],
    'a container with our profile': ['--caps', 'docker', '--seccomp', PROFILE],
    'CAP_SYS_ADMIN without CAP_NET_ADMIN': ['--caps', 'CHOWN,DAC_OVERRIDE,FOWNER,SETFCAP,SETGID,SETUID,SYS_ADMIN'],
    'only CAP_SETFCAP': ['--caps', 'SETFCAP'],
    'a user namespace of one id': ['--userns', 1],
    'a user namespace of many ids': ['--userns', RANGE],
}

LOOK = '''
import os
assert (os.getuid(), os.getgid()) == (1000, 1000)
assert open("data/genes.csv").read().startswith("gene") and open("secret.txt").read() == "mine"
for path in ("data/genes.csv", "data/new", "/etc/passwd", "/usr/bin/new", "/proc/sys/kernel/hostname", "/dev/null/x"):
    try:
        open(path, "w")
    except OSError:
        continue
    raise SystemExit(f"{path} could be written")
assert not os.path.exists("/var/tmp/" + os.environ["FUMEHOOD_ID"])
open("result.txt", "w").write("done")
os.mkdir("deep", 0o700)
open("deep/er.txt", "w").write("deeper")
'''


def give_to(hood, uid):
    """All of this test's files, to the root of a range of ids."""
    for top, names, files in os.walk(hood.base):
        for name in ['.', *names, *files]:
            os.chown(os.path.join(top, name), uid, uid, follow_symlinks=False)
    hood.before = hood.snapshot()


def become(hood, forbid, options):
    forbid(*options)
    hood.write('secret.txt', 'mine', 0o600)
    if RANGE in options:
        give_to(hood, RANGE_FIRST)


def check_one_run(hood, *options):
    id = hood.id()
    hood.write('analysis.py', LOOK)
    result = hood.run(['python3', 'analysis.py'], '--input', 'secret.txt', *options, id=id)
    assert result.status == 0, result
    assert [output['path'] for output in result.json['outputs']] == ['deep/er.txt', 'result.txt']
    layers = {layer['name']: layer for layer in result.json['receipt']['layers']}
    assert layers['user namespace'] == {'name': 'user namespace', 'held': True, 'detail': 'owns all the others'}
    assert not hood.workspace(id).exists()


def check_the_rest(hood):
    """A disk of its own, steps, a post-process, the queue: each gives files from one hand to another."""
    check_one_run(hood, '--disk', '16M')
    held = hood.id()
    hood.succeed('workspace', 'create', held, '--for', '1h')
    for step in ('echo one >one', 'cat one >two; rm one'):
        assert hood.run(step, id=held).status == 0
    hood.succeed('commit', held)
    hood.succeed('workspace', 'cleanup', held)
    assert [output['path'] for output in hood.succeed('show', held, '--json').json['outputs']] == ['two']
    hood.write('post.py', 'open("made", "w").write(open("outputs/x").read())', 0o600)
    if RANGE in hood.prefix:
        give_to(hood, RANGE_FIRST)
    hood.write('tables.yaml', 'post_process: {tables: {found: [a]}}')
    posted = hood.run('echo 1 >x', '--post-process', 'python3 post.py', '--config', 'tables.yaml')
    assert posted.json['verdict'] == 'succeeded', posted
    queued = hood.id()
    hood.succeed('submit', queued, '--', 'sh', '-c', 'cat data/genes.csv >copy')
    hood.succeed('worker', '--drain')
    assert hood.verdict(queued) == 'succeeded'
    kept = hood.id()
    assert hood.run('echo 1 >kept', '--keep', 'always', id=kept).status == 0
    assert (hood.workspace(kept) / 'kept').exists()
    hood.succeed('workspace', 'cleanup', kept)
    hood.succeed('gc')
    assert hood.succeed('db', 'check', '--json').json['problems'] == []


@pytest.mark.only('root')
@pytest.mark.parametrize('options', ROOTS.values(), ids=ROOTS.keys())
def test_every_kind_of_root_runs_at_full_strength(hood, forbid, options):
    become(hood, forbid, options)
    check_one_run(hood)


@pytest.mark.only('root')
@pytest.mark.parametrize('options', [ROOTS['no CAP_SYS_ADMIN'], ROOTS['a user namespace of many ids']], ids=['container', 'namespace'])
def test_every_kind_of_root_has_all_of_the_story(hood, forbid, options):
    become(hood, forbid, options)
    check_the_rest(hood)


@pytest.mark.only('user')
def test_a_user_who_is_root_of_a_namespace_has_all_of_the_story(hood, forbid):
    become(hood, forbid, ROOTS['a user namespace of one id'])
    check_one_run(hood)
    check_the_rest(hood)


@pytest.mark.only('user')
def test_what_is_delegated_to_a_user_holds_in_his_namespace(caged, forbid):
    forbid(*ROOTS['a user namespace of one id'])
    result = caged.run('true', '--memory', '64M')
    assert result.status == 0 and result.json['usage']['memory_peak_bytes'] > 0, result


@pytest.mark.only('user')
def test_a_user_in_a_namespace_is_told_to_whom_root_has_to_delegate(bare, forbid):
    forbid(*ROOTS['a user namespace of one id'])
    assert f'--delegate {bare.who.uid}\'' in doctor(bare)[1]['limit memory']['remedy']


@pytest.mark.only('root')
@pytest.mark.parametrize('options, may', [([], True), (ROOTS['no CAP_SYS_ADMIN'], False), (ROOTS['a user namespace of one id'], False)],
                         ids=['root', 'container', 'namespace'])
def test_only_who_is_root_widens_what_the_site_allows(hood, forbid, options, may):
    hood.write(hood.base / 'etc/fumehood/config.yaml', 'maximum: {wall: 1m}')
    hood.write('wider.yaml', 'maximum: {wall: 1h}')
    forbid('--over', f'/etc:{hood.base}/etc', *options)
    assert 'at most 1m' in hood.run('true', '--wall', '2m').json['error']['message']
    wider = hood.run('true', '--wall', '2m', '--config', 'wider.yaml')
    assert wider.json['verdict'] == ('succeeded' if may else 'refused'), wider


# ---- the means: a call that is refused fails, and none is ever told that it was done ----

@pytest.mark.parametrize('word', ['', '0', '-1', '1x', ' 1', '4096', 'EPERN', 'eperm', '4294967296'])
def test_what_is_no_errno_is_refused(hood, forbid, word):
    forbid('--refuse', f'sethostname={word}')
    done = subprocess.run([str(part) for part in [*hood.prefix, 'true']], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125 and f"there is no errno '{word}'" in done.stderr, done


@pytest.mark.parametrize('word', ['1', 'EPERM', '38', 'ENOSYS'])
def test_an_errno_has_a_name_and_a_number(hood, forbid, word):
    forbid('--refuse', f'getcwd={word}')
    done = subprocess.run([str(part) for part in [*hood.prefix, '/usr/bin/python3', '-c', 'import os; os.getcwd()']],
                          stderr=subprocess.PIPE, text=True)
    assert ('Operation not permitted' if word in ('1', 'EPERM') else 'Function not implemented') in done.stderr, done


# ---- what cannot be done is named, with the remedy ----

def doctor(hood):
    found = hood.cli('doctor', '--json')
    return found.status, {item['name']: item for item in found.json['items']}


def check_refused(hood, layer, *words, strengths=('full',)):
    """By doctor and by run, in the same words; and nothing is recorded or left."""
    status, items = doctor(hood)
    item = items[layer]
    assert status == 1 and item['required'] and not item['ok'], items
    assert all(word in item['detail'] + ' ' + item['remedy'] for word in words), item
    for strength in strengths:
        id = hood.id()
        result = hood.run('true', '--strength', strength, id=id)
        assert result.status == 125 and result.json['verdict'] == 'refused', result
        assert result.json['error']['message'] == f"no {layer}: {item['detail']}; {item['remedy']}", (result, item)
        assert result.json['error']['code'] == 'refused' and not hood.workspace(id).exists()
    return items


def in_container(hood):
    """Docker's, or Kubernetes' as a user: no capabilities to speak of."""
    return ['--caps', 'docker'] if hood.who.is_root else []


def test_dockers_profile_is_named_and_ours_helps(hood, forbid):
    forbid(*in_container(hood), '--seccomp-docker', PROFILE)
    items = check_refused(hood, 'user namespace', 'seccomp profile', '--security-opt seccomp=', 'packaging/containers')
    assert 'identity' not in items and 'overlays' not in items  # which could not be tried
    forbid(*in_container(hood), '--seccomp', PROFILE)
    assert doctor(hood)[0] == 0
    assert hood.run('true').status == 0


def test_a_worker_that_could_run_nothing_does_not_start(hood, forbid):
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    forbid(*in_container(hood), '--seccomp-docker', PROFILE)
    result = hood.cli('worker', '--drain')
    assert result.status == 125 and 'this worker could run nothing here: no user namespace: ' in result.err, result
    assert '--security-opt seccomp=' in result.err and len(result.err.splitlines()) == 1
    assert hood.succeed('show', id, '--json').json['queue']['state'] == 'queued'
    hood.write(hood.home / 'config/fumehood/config.yaml', 'defaults: {strength: landlock}')
    forbid('--refuse', 'seccomp=EPERM')
    assert 'this worker could run nothing here: no seccomp: ' in hood.cli('worker', '--drain').err
    forbid(*in_container(hood), '--seccomp-docker', PROFILE)
    hood.succeed('worker', '--drain')
    assert hood.verdict(id) == 'succeeded'


def test_a_masked_proc_is_named(hood, forbid):
    forbid(*in_container(hood), '--seccomp', PROFILE, '--mask-proc')
    check_refused(hood, 'fresh /proc', 'masked', 'systempaths=unconfined', 'unmask=ALL', 'procMount: Unmasked')


@pytest.mark.only('root')
def test_a_masked_proc_is_no_matter_for_root(hood, forbid):
    forbid('--mask-proc')
    assert doctor(hood)[1]['fresh /proc']['ok'] and hood.run('ls /proc/self').status == 0


@pytest.mark.only('root')
def test_root_under_dockers_profile_cannot_have_another_root_directory(hood, forbid):
    forbid('--seccomp-docker', PROFILE)
    check_refused(hood, 'root directory', 'seccomp profile', 'packaging/containers')


@pytest.mark.only('root')
def test_a_root_that_cannot_map_itself_is_told_what_it_needs(hood, forbid):
    forbid('--caps', 'none')
    check_refused(hood, 'identity', 'CAP_SETFCAP', '--cap-add SETFCAP', '--user 1000:1000')


@pytest.mark.only('user')
def test_a_user_without_a_uid_of_his_own_is_told_so(hood):
    """`unshare -U`: nobody has mapped him, and then the kernel gives him no user namespace."""
    hood.prefix = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups', 'unshare', '-U']
    check_refused(hood, 'user namespace', 'not mapped', 'unshare -Ur', '--map-current-user')
    hood.prefix = [*hood.prefix[:-1], '-Ur']
    assert hood.run('true').status == 0
    hood.prefix = []


def test_switched_off_user_namespaces_are_named(hood, forbid):
    forbid('--userns', 1, '--max-userns', 0)
    check_refused(hood, 'user namespace', 'user.max_user_namespaces is 0', 'sysctl -w user.max_user_namespaces=15000')


# What the filter answers, and what is said then.
@pytest.mark.parametrize('call, errnum, layer, word', [
    ('memfd_create', 1, 'programs in memory', 'seccomp'), ('fsopen', 38, 'mount namespace', 'old container runtime'),
    ('pivot_root', 1, 'root directory', 'seccomp'), ('mount_setattr', 38, 'root directory', 'old container runtime')])
def test_a_call_that_is_refused_is_found(hood, forbid, call, errnum, layer, word):
    forbid('--refuse', f'{call}={errnum}')
    check_refused(hood, layer, word)


# Without which no strength holds anything.
@pytest.mark.parametrize('errno, word', [('EPERM', 'a seccomp profile forbids'), ('ENOSYS', 'a seccomp profile hides')])
@pytest.mark.parametrize('call', ['openat2', 'pidfd_open', 'close_range', 'prlimit64', 'execveat', 'signalfd4', 'capset', 'seccomp', 'memfd_create'])
def test_a_call_that_every_strength_needs_is_named(hood, forbid, call, errno, word):
    forbid('--refuse', f'{call}={errno}')
    layer = {'seccomp': 'seccomp', 'memfd_create': 'programs in memory'}.get(call, f'system call {call}')
    check_refused(hood, layer, word, '--security-opt seccomp=seccomp.json', 'packaging/containers', strengths=('full', 'landlock'))
    hood.write(hood.home / 'config/fumehood/config.yaml', 'defaults: {strength: landlock}')
    assert doctor(hood)[1][layer]['required']


@pytest.mark.only('root')
@pytest.mark.parametrize('errno', ['EPERM', 'ENOSYS'])
@pytest.mark.parametrize('call, strengths', [('setgroups', ('full', 'landlock')), ('unshare', ('full',))])
def test_a_call_that_root_needs_is_named(hood, forbid, call, strengths, errno):
    forbid('--refuse', f'{call}={errno}')
    check_refused(hood, f'system call {call}', 'a seccomp profile', 'packaging/containers', strengths=strengths)


def test_a_first_run_without_openat2_leaves_no_riddle(hood, forbid):
    """No state directory is there yet, nor can it be opened."""
    forbid('--refuse', 'openat2=ENOSYS')
    for command in (['run', '--', 'true'], ['workspace', 'create', hood.id(), '--for', '1h']):
        result = hood.cli(*command)
        assert result.status == 125 and 'no system call openat2: a seccomp profile hides it' in result.err, result


@pytest.mark.parametrize('strength', ['full', 'landlock'])
def test_a_command_whose_end_nobody_would_hear_of_does_not_start(hood, forbid, strength):
    """A table of files that is full, when init wants to watch it: it went on until its time was over."""
    forbid('--refuse', 'signalfd4=ENFILE')
    result = hood.run('true', '--strength', strength, '--wall', '3s')
    assert result.status == 125 and result.json['verdict'] == 'refused', result
    assert "cannot watch for the command's end: Too many open files in system" in result.json['error']['message']


def test_what_was_kept_is_not_entered_without_it_either(hood, forbid):
    kept = hood.id()
    assert hood.run('true', '--keep', 'always', id=kept).status == 0
    forbid('--refuse', 'openat2=EPERM')
    result = hood.cli('shell', kept, '--', 'true')
    assert result.status == 125 and 'no system call openat2: a seccomp profile forbids it' in result.err, result
    hood.prefix = []
    hood.succeed('workspace', 'cleanup', kept)


@pytest.mark.parametrize('call, since', [('pidfd_open', '5.3'), ('openat2', '5.6'), ('close_range', '5.9')])
def test_a_kernel_that_is_older_than_a_call_is_named(hood, forbid, call, since):
    forbid('--refuse', f'{call}=ENOSYS')
    hood.prefix = ['setarch', '--uname-2.6', *hood.prefix]
    check_refused(hood, f'system call {call}', 'this kernel (2.6.', f'it came with Linux {since}', 'boot Linux 5.12 or newer',
                  strengths=('full', 'landlock'))


@pytest.mark.parametrize('errnum, word', [(38, 'hides it, or this kernel has none'), (95, 'add landlock to lsm=')])
def test_without_landlock_it_is_said_and_the_rest_holds(hood, forbid, errnum, word):
    forbid('--refuse', f'landlock_create_ruleset={errnum}')
    status, items = doctor(hood)
    assert status == 0 and not items['landlock']['ok'] and not items['landlock']['required']
    assert word in items['landlock']['detail'] + items['landlock']['remedy']
    result = hood.run('true')
    assert result.status == 0
    assert [layer['held'] for layer in result.json['receipt']['layers'] if layer['name'] == 'landlock'] == [False]


@pytest.mark.parametrize('options, word', [('size=64k,nr_inodes=3', 'is full'), ('ro', 'is read-only')])
def test_a_tmp_without_room_is_named(hood, forbid, options, word):
    forbid('--tmpfs', f'/tmp:mode=1777,{options}')
    check_refused(hood, 'workspaces', f"'/tmp' {word}", 'workspace: {root: DIR}')


def test_a_tmp_that_executes_nothing_is_told(hood, forbid):
    forbid('--tmpfs', '/tmp:mode=1777,noexec')
    status, items = doctor(hood)
    assert status == 0 and not items['workspaces']['ok'] and not items['workspaces']['required']
    assert 'noexec' in items['workspaces']['detail'] and 'remount,exec' in items['workspaces']['remedy']
    made = 'cp /bin/true made; ./made'
    assert hood.run(made).json['verdict'] == 'failed'
    assert hood.run(made, '--disk', '16M').json['verdict'] == 'succeeded'


def test_a_home_that_is_read_only_is_named(hood, forbid):
    assert hood.run('true').status == 0
    forbid('--remount', f'{hood.home}:ro')
    check_refused(hood, 'state directory', 'is read-only', 'XDG_STATE_HOME')


def test_a_new_home_that_is_read_only_is_named(hood, forbid):
    forbid('--remount', f'{hood.home}:ro')
    _, items = doctor(hood)
    assert not items['state directory']['ok'] and 'XDG_STATE_HOME' in items['state directory']['remedy']
    assert not items['ledger']['ok'] and 'Read-only file system' in items['ledger']['remedy']
    assert 'Read-only file system' in hood.cli('run', '--', 'true').err


def test_what_is_mounted_below_usr_is_no_matter(hood, forbid):
    forbid('--tmpfs', '/usr/local/games', '--tmpfs', '/usr/share/doc:ro')
    assert doctor(hood)[0] == 0
    assert hood.run('ls /usr/share/doc').json['verdict'] == 'succeeded'


def test_cgroups_that_are_read_only_are_named(hood, forbid):
    """As a container has them."""
    mounts = [line.split() for line in Path('/proc/self/mounts').read_text().splitlines()]
    forbid(*(word for _, at, kind, *_ in mounts if kind.startswith('cgroup') for word in ('--remount', f'{at}:ro')))
    status, items = doctor(hood)
    assert status == 0 and not items['limit memory']['ok']
    assert 'read-only' in items['limit memory']['remedy'] and 'container' in items['limit memory']['remedy']
    refused = hood.run('true', '--memory', '64M')
    assert refused.status == 125 and 'read-only' in refused.json['error']['message']


# ---- containers, as packaging/containers starts them ----

def options_of_compose():
    service = yaml.safe_load((PROFILE.parent / 'compose.yaml').read_text())['services']['analyses']
    secure = dict(word.split('=', 1) for word in service['security_opt'])
    assert secure['apparmor'] == 'unconfined' and service['cap_drop'] == ['ALL']
    proc = [] if secure['systempaths'] == 'unconfined' else ['--mask-proc']
    [tmp] = service['tmpfs']
    return [*proc, '--tmpfs', tmp.replace(',exec', ''), '--seccomp', PROFILE.parent / secure['seccomp'], '--caps', 'none',
            '--uid', service['user'].split(':')[0]]


def options_of_pod():
    pod = yaml.safe_load((PROFILE.parent / 'pod.yaml').read_text())['spec']
    [container] = pod['containers']
    secure = container['securityContext']
    assert secure['capabilities'] == {'drop': ['ALL']} and secure['appArmorProfile'] == {'type': 'Unconfined'}
    proc = [] if secure['procMount'] == 'Unmasked' else ['--mask-proc']
    assert pod['hostUsers'] is False and secure['seccompProfile']['type'] == 'Localhost'
    return [*proc, '--tmpfs', '/tmp:mode=1777', '--userns', RANGE, '--seccomp',
            PROFILE.parent / secure['seccompProfile']['localhostProfile'], '--caps', 'none', '--uid', pod['securityContext']['runAsUser']]


@pytest.mark.only('root')
@pytest.mark.parametrize('options, uid', [(options_of_compose(), 1000), (options_of_pod(), RANGE_FIRST + 1000)], ids=['compose', 'pod'])
def test_it_runs_at_full_strength_in_a_container(hood, forbid, options, uid):
    forbid(*options)
    hood.write('secret.txt', 'mine', 0o600)
    hood.write('analysis.py', '')
    give_to(hood, uid)
    check_one_run(hood)
    assert doctor(hood)[0] == 0
    assert 'pts' in hood.succeed('run', hood.id(), '--quiet', '-t', '--', 'tty').out
    explained = hood.run('cat /etc/shadow', '--explain')
    assert explained.json['denials'][0]['target'] == '/etc/shadow', explained
    forbid('--mask-proc', *options)
    check_refused(hood, 'fresh /proc', 'masked')


def test_the_profile_adds_to_dockers_what_the_page_says():
    groups = json.loads(PROFILE.read_text())['syscalls']
    added = [name for group in groups if group.get('comment', '').startswith('fumehood') for name in group['names']]
    [row] = [line for line in (TOP / 'docs/HOSTS.md').read_text().splitlines() if line.startswith('| `seccomp.json` |')]
    assert sorted(added) == sorted(set(re.findall(r'`(\w+)`', row)))


def test_the_page_has_every_remedy_that_is_a_command():
    """Of the table of causes; so that who reads a refusal finds more about it there."""
    source = (TOP / 'src/sandbox/cause.c').read_text()
    text = re.sub(r'"\s*"', '', source[source.index('} table[] = {'):source.index('static bool fits(')])
    commands = set(re.findall(r'`([^`]+)`', text))
    page = (TOP / 'docs/HOSTS.md').read_text()
    assert len(commands) > 10 and [command for command in sorted(commands) if command not in page] == []


# ---- AppArmor, which this kernel may not have ----

def profile_of(hood, *words):
    return hood.succeed('doctor', '--apparmor', *words).out


def test_the_profile_is_for_where_the_program_lies(hood):
    profile = profile_of(hood)
    assert f'profile fumehood "{hood.binary}" flags=(unconfined) {{' in profile and '  userns,\n' in profile
    assert hood.succeed('doctor', '--apparmor', '--json').json == {'profile': profile}
    packaged = (TOP / 'packaging/apparmor/fumehood').read_text()
    assert packaged == profile.replace(str(hood.binary), '/usr/bin/fumehood')


def parse(text):
    """Before version 4 the parser knows neither user namespaces nor the ABI that has them."""
    version = subprocess.run(['apparmor_parser', '--version'], stdout=subprocess.PIPE, text=True).stdout
    if int(re.search(r'version (\d+)', version)[1]) < 4:
        text = text.replace('abi <abi/4.0>,\n', '').replace('  userns,\n', '')
    return subprocess.run(['apparmor_parser', '-Q', '-T', '-N'], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_profile_is_one(hood):
    done = parse(profile_of(hood))
    assert done.returncode == 0 and done.stdout.split() == ['fumehood'], done
    assert parse('profile fumehood {').returncode != 0


def test_a_path_that_looks_like_a_pattern_is_named_as_it_is(hood):
    """A program in a directory with a blank, braces, a quote."""
    odd = hood.directory('a b{c}"[d]*')
    copy = shutil.copy(hood.binary, odd)
    profile = subprocess.run([copy, 'doctor', '--apparmor'], stdout=subprocess.PIPE, text=True, check=True, env=hood.env).stdout
    assert r'/a b\{c\}\"\[d\]\*/fumehood" flags' in profile
    assert parse(profile).returncode == 0, parse(profile)
