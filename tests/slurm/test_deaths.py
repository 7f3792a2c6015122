"""Whatever dies, nothing is lost and nothing is done twice: dispatcher, controller, node, and the job itself."""
import json
import signal

import pytest

from cluster import until

ONE = pytest.mark.kinds('cgroups', 'user', first=True)


def attempts(site, id):
    return [(a['attempt'], a['verdict']) for a in site.show(id)['attempts']]


@ONE
@pytest.mark.parametrize('when', ['before', 'after'])
def test_a_dispatcher_that_dies_around_sbatch_loses_and_doubles_nothing(site, when):
    """Before: the batch is in the ledger, and not in Slurm. After: it is in Slurm, and nobody has been told its id."""
    once = site.write('flags/once', '')
    kill = f'if rm {once} 2>/dev/null; then kill -9 $PPID; {"exit 1" if when == "before" else ":"}; fi'
    bin = site.wrap('sbatch', **{when: kill})
    site.configure(bin=bin)
    ids = site.submit_many([{'id': str(n), 'command': ['sh', '-c', 'echo ran']} for n in range(5)])
    dispatcher = site.dispatch()
    assert dispatcher.wait(60) == -signal.SIGKILL, site.said()
    site.drain()
    rows = site.rows()
    assert {rows[id]['verdict'] for id in ids} == {'succeeded'}, (rows, site.said())
    assert all(attempts(site, id) == [(1, 'succeeded')] for id in ids), [attempts(site, id) for id in ids]


@ONE
def test_a_dispatcher_that_dies_while_all_runs_finds_it_again(site):
    ids = site.submit_many([{'id': str(n), 'command': ['sh', '-c', 'sleep 3; echo ran']} for n in range(8)])
    for _ in range(2):
        dispatcher = site.dispatch()
        assert until(lambda: [job for job in site.jobs() if job[2] == 'RUNNING'], 30), site.said()
        dispatcher.kill()
        dispatcher.wait()
    site.drain()
    rows = site.rows()
    assert {rows[id]['verdict'] for id in ids} == {'succeeded'}, (rows, site.said())
    assert all(attempts(site, id) == [(1, 'succeeded')] for id in ids), ([attempts(site, id) for id in ids], site.said())


def killed_at(site, call, n):
    """A dispatcher that is killed when it begins its n-th call of this name, if it comes to that. Whether it did."""
    trace = ['strace', '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', f'inject={call}:signal=SIGKILL:when={n}', '-f']
    status = site.drain_under(trace)
    assert status in (0, -signal.SIGKILL, 128 + signal.SIGKILL), (status, site.said())
    return status != 0


@ONE
@pytest.mark.parametrize('call, step', [
    ('sendto', 9), ('clone,clone3,vfork', 3),
    pytest.param('sendto', 1, marks=pytest.mark.long), pytest.param('clone,clone3,vfork', 1, marks=pytest.mark.long)],
    ids=['ledger', 'commands', 'ledger-all', 'commands-all'])
def test_a_dispatcher_that_is_killed_anywhere_loses_and_doubles_nothing(site, call, step):
    """Before each message to the ledger, before each command of Slurm's; the next one has more to do, and is killed a little later."""
    ids, n, alive = [], 1, 0
    while alive < 2 and n < 100:
        ids += site.submit_many([{'id': f'{n}-{m}', 'command': ['true']} for m in range(2)])
        alive = 0 if killed_at(site, call, n) else alive + 1
        n += step
    assert n > 4 * step, 'nobody was killed'
    site.drain()
    rows = site.rows()
    assert {rows[id]['verdict'] for id in ids} == {'succeeded'}, (rows, site.said())
    wrong = {id: found for id in ids if (found := attempts(site, id)) != [(1, 'succeeded')]}
    assert not wrong, (wrong, site.said())


@ONE
def test_a_first_incarnation_that_survives_its_node_commits_nothing_and_says_so(site):
    """Slurm believes that the node is dead; what runs there does not know it."""
    site.configure(options=['--open-mode=append'])
    id = site.submit('twice', '--output', 'who', 'echo $$ >who; sleep 12; echo ran')
    dispatcher = site.dispatch()
    first = site.until_running(id)['node']
    site.cluster.fail(first)
    try:
        second = until(lambda: (node := (site.show(id)['engine'] or {}).get('node')) != first and node, 60) or site.give_up(id)
        found = site.until_verdict(id, 90)
        assert found['verdict'] == 'succeeded' and found['engine']['node'] == second, (found, site.said())
        # The first one has ended by itself, and was refused.
        assert until(lambda: not [path for path in site.cluster.left() if first in path], 60), site.cluster.left()
        assert until(lambda: 'nothing of it was committed' in site.said(), 30), site.said()
    finally:
        site.cluster.heal(first)
    assert attempts(site, id) == [(1, 'lost'), (2, 'succeeded')], (attempts(site, id), site.said())
    lost = site.succeed('show', id, '--attempt', '1', '--json').json
    assert lost['engine']['node'] == first and first in lost['reason'], lost
    assert site.sql("SELECT count(*) FROM fumehood.attempt WHERE verdict = 'succeeded'") == ['1']
    assert site.stop(dispatcher) == 0


@ONE
def test_a_controller_that_is_restarted_is_waited_for(site):
    ids = site.submit_many([{'id': str(n), 'command': ['sh', '-c', 'sleep 2; echo ran']} for n in range(6)])
    dispatcher = site.dispatch()
    assert until(lambda: [job for job in site.jobs() if job[2] == 'RUNNING'], 30), site.said()
    site.cluster.restart_controller()
    more = site.submit('more', 'true')
    for id in [*ids, more]:
        assert site.until_verdict(id)['verdict'] == 'succeeded', (site.show(id), site.said())
    assert all(attempts(site, id) == [(1, 'succeeded')] for id in ids), [attempts(site, id) for id in ids]
    assert site.stop(dispatcher) == 0


@ONE
def test_a_job_that_slurm_has_forgotten_is_submitted_again(site):
    """slurmctld writes down late what it was told: killed, it does not know its latest jobs any more, and gives their ids to others."""
    site.cluster.restart_controller()  # which writes down what there was before
    site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=down')
    try:
        ids = site.submit_many([{'id': str(n), 'slurm': ['partition=high'], 'command': ['true']} for n in range(3)])
        dispatcher = site.dispatch()
        for id in ids:
            site.until_known(id, state='PENDING')
        site.cluster.tell('kill', 'slurmctld')
        site.cluster.tell('start', 'slurmctld')
    finally:
        site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=up')
    for id in ids:
        assert site.until_verdict(id)['verdict'] == 'succeeded', (site.show(id), site.said())
    assert all(attempts(site, id) == [(1, 'succeeded')] for id in ids), [attempts(site, id) for id in ids]
    assert site.stop(dispatcher) == 0


@ONE
def test_who_is_preempted_is_tried_again(site):
    node = site.cluster.nodes[0]
    id = site.submit('low', '--slurm', 'partition=low', '--slurm', 'exclusive', '--slurm', f'nodelist={node}', 'sleep 3; echo ran')
    dispatcher = site.dispatch()
    site.until_running(id)
    high = site.cluster.ask('sbatch', '--parsable', '-p', 'high', '--exclusive', '-w', node, '-o', '/dev/null', '--wrap', 'sleep 2')
    assert site.until_verdict(id)['verdict'] == 'succeeded', (site.show(id), site.said())
    found = attempts(site, id)
    assert found[-1][1] == 'succeeded' and {verdict for _, verdict in found[:-1]} <= {'lost'}, (found, high, site.said())
    assert site.stop(dispatcher) == 0


@ONE
def test_a_job_that_slurm_starts_again_takes_what_is_its_own_and_nothing_else(site):
    """A site that insists on --requeue. The first incarnation has handed its analysis back, so that by then it may be another job's."""
    site.configure(options=['--requeue', '--open-mode=append'])
    id = site.submit('again', 'sleep 3; echo ran')
    dispatcher = site.dispatch()
    job = site.until_running(id)['job']
    site.cluster.ask('scontrol', 'requeue', job)

    def ended():
        site.cluster.ask('scontrol', 'update', f'jobid={job}', 'starttime=now', check=False)  # or it waits for two minutes
        return not site.jobs()
    assert site.until_verdict(id)['verdict'] == 'succeeded', (site.show(id), site.said())
    assert until(ended, 60), site.said()
    assert [verdict for _, verdict in attempts(site, id)].count('succeeded') == 1, site.said()
    assert site.stop(dispatcher) == 0


@ONE
def test_a_node_that_cannot_start_us_is_said(site):
    site.configure(command='/nonexistent/fumehood')
    id = site.submit('nowhere', '--retries', '1', 'true')
    dispatcher = site.dispatch()
    found = site.until_verdict(id, 120)
    assert found['verdict'] == 'refused' and '127' in json.dumps(found['error']), (found, site.said())
    assert site.stop(dispatcher) == 0


@ONE
@pytest.mark.long  # the array has one, too
def test_slurms_own_time_limit_is_timed_out(site):
    id = site.submit('slow', '--wall', '1h', 'echo begun; sleep 600')
    dispatcher = site.dispatch()
    site.cluster.end_soon(site.until_running(id)['job'])
    found = site.until_verdict(id, 90)
    assert found['verdict'] == 'timed_out' and 'Slurm' in found['reason'], (found, site.said())
    assert site.succeed('logs', id).out == 'begun\n'
    assert site.stop(dispatcher) == 0
