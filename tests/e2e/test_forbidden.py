"""Hosts that do not allow something: what can be done decides, never the uid; what cannot is named, with the remedy, by `doctor` and
by `run` in the same words. Each host is made by its own means: capabilities, seccomp profiles, mounts, user namespaces."""
import os
from pathlib import Path

import pytest

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
    result = hood.python(LOOK, '--input', 'secret.txt', *options, id=id)
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
