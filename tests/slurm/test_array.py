"""An array through three nodes while everything happens to it that can happen."""
import pytest

from cluster import until

SLOW, LARGE, OVER = 3, 5, 7  # longer than its limit, larger than its limit, and longer than Slurm's


def attempts(site):
    """id → its verdicts, in order, as the ledger has them."""
    found = {}
    for line in site.sql('SELECT analysis_id, verdict FROM fumehood.attempt WHERE verdict IS NOT NULL ORDER BY analysis_id, number'):
        id, verdict = line.split('|')
        found.setdefault(id, []).append(verdict)
    return found


def requests_of(count, doomed, holds_memory):
    requests = [{'id': f'{n:03}', 'command': ['sh', '-c', f'sleep 0.5; echo {n} >out.txt'], 'output': ['out.txt'], 'retries': 5}
                for n in range(count)]
    for n in (SLOW, OVER, *doomed):
        requests[n].update(command=['sleep', '600'], output=[])
    requests[SLOW].update(limits={'wall': '3s'})
    if holds_memory:
        requests[LARGE].update(command=['python3', '-c', 'x = bytearray(300 << 20)'], limits={'memory': '60M'})
    return requests


def happen(site, count):
    """A node goes, the controller is restarted, the dispatcher is killed twice; one is too slow for us and one for Slurm, one takes too
    much memory, ten are cancelled: some of them run, some wait."""
    doomed = [*range(10, 15), *range(count - 5, count)]
    holds_memory = site.kind != 'user'
    ids = site.submit_many(requests_of(count, doomed, holds_memory))
    wanted = dict.fromkeys(ids, 'succeeded')
    wanted.update({ids[n]: 'cancelled' for n in doomed}, **{ids[SLOW]: 'timed_out', ids[OVER]: 'timed_out'})
    if holds_memory:
        wanted[ids[LARGE]] = 'out_of_memory'

    def committed(share):
        assert until(lambda: len(attempts(site)) >= count * share, 200), (attempts(site), site.said())

    dispatcher = site.dispatch()
    over = site.until_running(ids[OVER])
    committed(0.1)
    dispatcher.kill()
    dispatcher.wait()
    site.cluster.end_soon(over['job'])
    dispatcher = site.dispatch()
    committed(0.25)
    node = next(node for node in site.cluster.nodes if node != over['node'])
    site.cluster.fail(node)
    site.cluster.restart_controller()
    site.succeed('cancel', *(ids[n] for n in doomed))
    committed(0.6)
    dispatcher.kill()
    dispatcher.wait()
    site.cluster.heal(node)
    site.drain()

    rows = site.rows()
    wrong = {id: (rows[id]['verdict'], verdict, rows[id].get('reason')) for id, verdict in wanted.items() if rows[id]['verdict'] != verdict}
    assert not wrong, (wrong, site.said())
    assert 'Slurm' in site.show(ids[OVER])['reason'], site.show(ids[OVER])
    # The node that failed has cost some of them a try, and nothing else has.
    for id, verdicts in attempts(site).items():
        assert set(verdicts[:-1]) <= {'lost'} and verdicts[-1] == wanted[id], (id, verdicts, site.said())
    for n in [n for n, id in enumerate(ids) if wanted[id] == 'succeeded'][::10]:
        assert site.succeed('get', ids[n], 'out.txt', '-o', '-').out == f'{n}\n'


@pytest.mark.kinds('cgroups', 'user', first=True)
def test_whatever_happens_every_verdict_is_right_and_committed_once(site):
    happen(site, 40)


@pytest.mark.long
def test_whatever_happens_to_two_hundred(site):
    happen(site, 200)
