"""The queue through a real Slurm: three nodes on this machine, a real PostgreSQL.

    pytest tests/slurm                    on every kind of cluster (as root), or on one of one's own (otherwise)
    pytest tests/slurm --kind user        only on this one
"""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import cluster

TOP = Path(__file__).resolve().parents[2]
# How Slurm was started, and as whom the dispatcher runs on it. Slurm's cgroups are for who has a slurmd that is root.
KINDS = {
    'cgroups': (['--cgroups'], cluster.USER),
    'root': ([], None),
    'user': (['--user', cluster.USER], cluster.USER),
}
if os.geteuid():
    KINDS = {'user': ([], None)}
# A partition that takes nodes from another, for who is preempted.
CONF = ['--conf', 'PreemptType=preempt/partition_prio', '--conf', 'PreemptMode=REQUEUE',
        '--conf', 'PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=requeue State=UP',
        '--conf', 'PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=off State=UP']


def pytest_addoption(parser):
    parser.addoption('--binary', default=str(TOP / 'build/fumehood'))
    parser.addoption('--kind', choices=list(KINDS), action='append')


def pytest_configure(config):
    config.addinivalue_line('markers', 'long: only in make test-all')
    config.addinivalue_line('markers', 'kinds(kind, …): on these kinds of clusters; on the first of them that there is, with first')


def pytest_generate_tests(metafunc):
    if 'site' not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker('kinds')
    kinds = [kind for kind in (mark.args if mark else KINDS) if kind in KINDS]
    if mark and mark.kwargs.get('first'):
        kinds = kinds[:1]
    wanted = metafunc.config.getoption('kind')
    metafunc.parametrize('kind', [kind for kind in kinds if not wanted or kind in wanted], scope='session')


def pytest_collection_modifyitems(items):
    # A test for which there is no kind is not there, rather than skipped; and each cluster is started once.
    items[:] = [item for item in items if 'site' not in item.fixturenames or item.callspec.params.get('kind') in KINDS]
    items.sort(key=lambda item: list(KINDS).index(item.callspec.params['kind']) if hasattr(item, 'callspec') else -1)


@pytest.fixture(scope='session')
def binary(request):
    """The command, copied to where every user on every node can reach it."""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-test-', dir='/var/tmp'))
    directory.chmod(0o755)
    copy = Path(shutil.copy(request.config.getoption('binary'), directory / 'fumehood'))
    copy.chmod(0o755)
    yield copy
    shutil.rmtree(directory)


@pytest.fixture(scope='session')
def server():
    server = cluster.server()
    yield server
    server.stop()


@pytest.fixture(scope='session')
def slurm(kind):
    slurm = cluster.Cluster(*CONF, *KINDS[kind][0])
    slurm.kind = kind
    yield slurm
    slurm.close()


@pytest.fixture
def site(slurm, kind, binary, server):
    site = cluster.Site(slurm, binary, server, KINDS[kind][1])
    site.kind = kind
    yield site
    try:
        problems = site.problems()
        said = site.said() if problems else ''
    finally:  # of a test that failed half-way
        for job in site.jobs():
            slurm.ask('scancel', job[0], check=False)
        site.remove()
    assert not problems, '\n'.join(problems) + said
