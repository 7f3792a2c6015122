"""An analysis through Slurm: what becomes of its limits, its secrets, its place; what is refused, held and cancelled."""
import json
import os
import pwd
import re
import shutil
import signal
from pathlib import Path

import pytest

from cluster import USER, until

HELD = ['cgroups', 'root']  # where a memory limit can be held


def test_an_analysis_goes_to_a_node_and_comes_back_with_its_results(site):
    site.write('numbers.txt', '1\n2\n3\n')
    id = site.submit('one', '--input', 'numbers.txt', '--output', 'sum.txt', 'echo on $HOSTNAME; paste -sd+ numbers.txt | tee sum.txt')
    site.drain()
    found = site.show(id)
    assert found['verdict'] == 'succeeded' and found['attempt'] == 1, (found, site.said())
    engine = found['engine']
    assert engine['engine'] == 'slurm' and engine['node'] in site.cluster.nodes and re.match(r'\d+(_\d+)?$', engine['job']), engine
    assert engine['cluster'] == 'fumehood', engine
    assert site.succeed('get', id, 'sum.txt', '-o', '-').out == '1+2+3\n'
    assert f'job {engine["job"]} on {engine["node"]}' in site.succeed('show', id).out
    assert not site.show(id).get('handle'), 'what is over has no handle any more'


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_limits_and_options_become_slurms(site):
    """What scontrol tells of the job; the request's own word over the site's."""
    site.configure(options=['--nice=5'], partition='low')
    limits = ['--memory', '100M'] if site.kind in HELD else []
    id = site.submit('limits', *limits, '--wall', '5m', '--slurm', 'partition=main', '--slurm', 'nice=7', 'sleep 600')
    dispatcher = site.dispatch()
    engine = site.until_running(id)
    job = dict(word.partition('=')[::2] for word in site.cluster.ask('scontrol', '-o', 'show', 'job', engine['job']).split())
    assert job['Partition'] == 'main' and job['Nice'] == '7' and job['Comment'] == site.tag, job
    hours, minutes, _ = map(int, job['TimeLimit'].split(':'))
    assert 6 <= 60 * hours + minutes <= 10 and job['Requeue'] == '0', job
    if site.kind in HELD:
        assert 100 < int(job['MinMemoryNode'].rstrip('M')) <= 300, job
    site.succeed('cancel', id)
    assert site.until_verdict(id)['verdict'] == 'cancelled'
    assert site.stop(dispatcher) == 0, site.said()


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_no_secret_is_in_a_script_an_environment_or_a_job(site):
    """Neither the password nor where it came from but by the name of its file."""
    passfile = site.home / '.pgpass'
    passfile.rename(site.home / 'passwords')
    site.env['PGPASSFILE'] = str(site.home / 'passwords')
    id = site.submit('secret', 'env; sleep 600')
    dispatcher = site.dispatch()
    engine = site.until_running(id)
    said = site.cluster.ask('scontrol', '-dd', 'show', 'job', engine['job'])
    said += site.cluster.ask('scontrol', 'write', 'batch_script', engine['job'], '-')
    assert site.password not in said and str(site.home / 'passwords') in said, said
    # What the job's processes have in their arguments and environment.
    seen = 0
    for entry in Path('/proc').glob('[0-9]*'):
        try:
            words, environment = (entry / 'cmdline').read_bytes(), (entry / 'environ').read_bytes()
        except OSError:
            continue
        if b'--take' in words or b'SLURM_JOB_ID=' in environment:
            seen += 1
            assert site.password.encode() not in words + environment, (words, environment)
    assert seen, 'the node was not to be seen'
    site.succeed('cancel', id)
    site.until_verdict(id)
    assert 'PG' not in site.succeed('logs', id).out, 'the analysis was told of the ledger'
    assert site.stop(dispatcher) == 0


@pytest.mark.kinds('user')
def test_what_cannot_be_is_refused_in_one_sentence(site):
    file = site.home / 'ledger.db'
    for options, env, said in [
            (['--db', f'sqlite:{file}'], {}, 'one host'),
            (['--db', site.direct], {}, 'PGPASSFILE'),
            ([], {'PATH': '/nonexistent'}, 'sbatch')]:
        result = site.cli('worker', '--engine', 'slurm', '--drain', *options, env=env)
        assert result.status == 125 and said in result.err and len(result.err.strip().splitlines()) == 1, (options, env, result)
    assert site.password not in result.err
    for text, said in [('{polll: 2s}', 'polll'), ('{poll: soon}', 'poll'), ('{jobs: 0}', 'jobs'), ('{options: [-w node1]}', 'options'),
                       ('{bin: here}', 'bin'), ('{submit_as_user: 3}', 'submit_as_user')]:
        config = site.write('bad.yaml', f'slurm: {text}\n')
        result = site.cli('worker', '--engine', 'slurm', '--drain', '--config', config)
        assert result.status == 125 and said in result.err and 'bad.yaml:1:' in result.err, (text, result)
    for word in ['output=/tmp/x', 'wrap=true', 'partition', 'partition=', 'uid=0', 'export=ALL', 'partition=a b', 'nice=1\n2']:
        result = site.cli('submit', f'{site.tag}-bad', '--slurm', word, '--', 'true')
        assert result.status == 125 and 'slurm' in result.err, (word, result)
    assert site.rows() == {}


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_what_slurm_refuses_is_refused_with_its_words(site):
    bad = site.submit('bad', '--slurm', 'partition=nowhere', 'true')
    good = site.submit('good', 'true')
    site.drain()
    assert site.show(good)['verdict'] == 'succeeded', site.said()
    found = site.show(bad)
    assert found['verdict'] == 'refused' and 'nvalid partition' in json.dumps(found['error'] or found.get('reason')), (found, site.said())


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_what_is_held_stays_and_is_shown(site):
    site.configure(options=['--hold'])
    id = site.submit('held', 'echo out of prison')
    dispatcher = site.dispatch()
    engine = site.until_known(id, state='PENDING', reason='Held')
    assert 'Held' in site.succeed('show', id).out
    row = site.rows()[id]
    assert row['verdict'] is None and row['state'] in ('queued', 'running'), row
    site.cluster.ask('scontrol', 'release', engine['job'])
    assert site.until_verdict(id)['verdict'] == 'succeeded', site.said()
    assert site.stop(dispatcher) == 0


def test_cancel_reaches_what_waits_and_what_runs(site):
    running = site.submit('running', 'echo begun; sleep 600')
    site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=down')
    stuck = site.submit('stuck', '--slurm', 'partition=high', 'sleep 600')
    dispatcher = site.dispatch()
    try:
        site.until_running(running)
        site.until_known(stuck, state='PENDING')
        site.succeed('cancel', running, stuck)
        for id in (running, stuck):
            assert site.until_verdict(id, 40)['verdict'] == 'cancelled', (site.show(id), site.said())
        assert until(lambda: not site.jobs(), 20), site.jobs()
    finally:
        site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=up')
    assert site.stop(dispatcher) == 0


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_who_is_ended_by_scancel_is_cancelled_and_it_is_said_by_whom(site):
    running = site.submit('running', 'echo begun; sleep 600')
    site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=down')
    stuck = site.submit('stuck', '--slurm', 'partition=high', 'sleep 600')
    dispatcher = site.dispatch()
    try:
        engine = site.until_running(running)
        site.cluster.ask('scancel', engine['job'], site.until_known(stuck, state='PENDING')['job'])
        for id in (running, stuck):
            found = site.until_verdict(id, 60)
            assert found['verdict'] == 'cancelled' and 'scancel' in json.dumps([found.get('reason'), found['error']]), (found, site.said())
        assert site.succeed('logs', running).out == 'begun\n'
    finally:
        site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=up')
    assert site.stop(dispatcher) == 0


@pytest.mark.kinds('cgroups', 'root', first=True)
def test_our_own_limits_come_first(site):
    """Time and memory, told as on one host."""
    slow, large = site.submit('slow', '--wall', '2s', 'sleep 600'), site.submit(
        'large', '--memory', '60M', 'python3 -c "x = bytearray(300 << 20)"')
    site.drain()
    assert site.show(slow)['verdict'] == 'timed_out', (site.show(slow), site.said())
    found = site.show(large)
    assert found['verdict'] == 'out_of_memory' and '60M' in found['reason'] and 'Slurm' not in found['reason'], (found, site.said())


@pytest.mark.kinds('cgroups')
def test_slurms_own_memory_limit_is_told_as_slurms(site):
    site.configure(options=['--mem=100M'])
    id = site.submit('large', 'python3 -c "x = bytearray(300 << 20)"')
    site.drain()
    found = site.show(id)
    assert found['verdict'] == 'out_of_memory', (found, site.said())
    assert 'Slurm' in found['reason'] and '100M' in found['reason'].replace(' Mi', 'M').replace('MB', 'M'), found['reason']
    assert '--memory raises it' not in found['reason'], found['reason']


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_slurm_is_asked_once_for_many(site):
    """A hundred analyses are a few arrays; what is asked does not grow with them."""
    calls = site.base / 'calls'
    calls.touch()
    site.give(calls)
    bin = None
    for name in ('sbatch', 'squeue', 'scancel', 'scontrol'):
        bin = site.wrap(name, f'echo {name} "$@" >>{calls}')
    site.configure(bin=bin, poll='1s')
    count = 30
    ids = site.submit_many([{'id': str(n), 'command': ['true']} for n in range(count)])
    site.drain()
    assert {site.rows()[id]['verdict'] for id in ids} == {'succeeded'}, site.said()
    said = calls.read_text().splitlines()
    assert len([line for line in said if line.startswith('sbatch')]) <= 3, said
    assert len(said) < count, said
    assert len({site.show(id)['engine']['job'].split('_')[0] for id in ids}) <= 3


@pytest.mark.kinds('root')
def test_a_dispatcher_that_is_root_submits_as_who_owns_it(site):
    """What his jobs need is readable for him: a configuration with a state directory of the nodes, a password file."""
    his = pwd.getpwnam(USER)
    configure = site.let_submit_as_users()
    id = site.submit('whose', 'sleep 600')
    dispatcher = site.dispatch('--config', configure('owner'))
    job = site.cluster.ask('scontrol', '-o', 'show', 'job', site.until_running(id)['job'])
    assert f'UserId={USER}({his.pw_uid}) GroupId={USER}({his.pw_gid})' in job, job
    site.succeed('cancel', id)
    assert site.until_verdict(id)['verdict'] == 'cancelled'
    assert site.stop(dispatcher) == 0
    id = site.submit('nobody', 'true')
    site.drain('--config', configure('somebody'))
    found = site.show(id)
    assert found['verdict'] == 'refused' and 'queue.users' in json.dumps([found['error'], found['reason']]), (found, site.said())


@pytest.mark.kinds('user')
def test_there_is_one_dispatcher_on_a_state_directory(site):
    dispatcher = site.dispatch()
    assert until(lambda: site.cli('workers', '--json').json, 30), site.said()
    second = site.cli('worker', '--engine', 'slurm', '--drain')
    assert second.status == 125 and 'dispatcher' in second.err and len(second.err.strip().splitlines()) == 1, second
    assert site.stop(dispatcher) == 0


@pytest.mark.kinds('user')
def test_a_dispatcher_that_is_told_to_stop_leaves_in_slurm_what_is_there(site):
    id = site.submit('on', 'sleep 4; echo done')
    dispatcher = site.dispatch()
    site.until_running(id)
    assert site.stop(dispatcher, signal.SIGTERM) == 0, site.said()
    assert 'in Slurm' in site.said()
    assert site.until_verdict(id)['verdict'] == 'succeeded', 'nobody was there, and the node committed all the same'
