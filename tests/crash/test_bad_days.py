"""Three workers on a bad day: whatever goes and comes back, every analysis ends once, nothing is lost, nothing is left."""
import os
import random
import secrets
from pathlib import Path

import leaks
import pytest
from badday import LEASE, Site, Work, plan
from conftest import ALL
from until import until

pytestmark = [] if os.geteuid() == 0 else [pytest.mark.only('nobody')]  # namespaces and mounts need root
somebody = pytest.mark.somebody
whole = pytest.mark.only(*(['root', 'user'] if ALL else []))  # not in the sample

COUNT = 200 if ALL else 40
LENGTHS = [1 / 6, 1.5, 4]
GOES = ['kill', 'immediate', 'fast', 'freeze', 'drop']
DISKS_SQLITE = ['full:ledger', 'full:objects', 'full:state', 'full:tmp']
DISKS = ['full:wal', *DISKS_SQLITE]
SEED = int(os.environ.get('FUMEHOOD_SEED', secrets.randbelow(1 << 32)))


@pytest.fixture(scope='module', autouse=True)
def ground():
    if os.geteuid() == 0 and Path('/sys/fs/cgroup/memory').is_dir():
        leaks.Ground.here = leaks.Ground()
    yield
    if leaks.Ground.here:
        leaks.Ground.here.leave()
        leaks.Ground.here = None


@pytest.fixture
def site(hood, tools):
    """site(kind): closed when the test is over."""
    sites = []

    def make(kind, **options):
        sites.append(Site(hood, kind, clock=tools / 'libclock_back.so' if kind == 'sqlite' else None, **options))
        return sites[-1]

    yield make
    for made in sites:
        made.close()


@pytest.fixture
def day(hood, site, capsys):
    """day(kind, misfortunes): the whole day on a ledger of that kind."""
    def live(kind, misfortunes, killed=False, note=''):
        place, work, struck = site(kind), Work(hood, COUNT), []
        work.submit(COUNT // 2 // 10 * 10)
        place.start()
        for what, seconds in misfortunes:
            if work.goes_on(place) == 0:
                break
            place.strike(what, seconds)
            struck.append(what)
        print('they were', *struck)
        work.ended(place, killed)
        with capsys.disabled():
            print(f'\n    {COUNT} analyses on {kind}, {len(struck)} misfortunes{note}', flush=True)
        assert len(struck) > len(misfortunes) // 2

    return live


def each(kinds):
    return [(kind, length * LEASE) for length in LENGTHS for kind in kinds]


@whole
def test_a_server_that_goes_and_comes_back(day):
    day('postgresql', each(GOES))


@whole
def test_a_server_that_answers_and_serves_nobody(day):
    day('postgresql', each(['standby', 'readonly', 'shut:connections', 'shut:password']))


@whole
def test_a_server_that_forgot_the_last_seconds(day):
    """As after a failover to one that was behind: what it does not know any more is done again, once."""
    day('postgresql', [('failover', seconds) for seconds in (0.5, 2, 1, 5, 3, 8, 1, 0.2)])


@whole
def test_disks_without_inodes(day):
    day('postgresql', each([f'inodes:{name}' for name in ('ledger', 'wal', 'objects', 'state', 'tmp')]))


@whole
def test_disks_without_inodes_on_sqlite(day):
    day('sqlite', each([f'inodes:{name}' for name in ('ledger', 'objects', 'state', 'tmp')]))


@whole
def test_disks_that_fill_one_after_the_other(day):
    day('postgresql', each(DISKS))


@whole
def test_disks_that_fill_one_after_the_other_on_sqlite(day):
    day('sqlite', each(DISKS_SQLITE))


@whole
def test_clocks_that_jump_on_sqlite(day):
    dice = random.Random(5)
    jumps = [f'clock:{k}={s}' for s in (3, -3, 5000, -5000, 0, 90000, -90000, 0) for k in range(3)]
    dice.shuffle(jumps)
    day('sqlite', [(jump, dice.choice([0.1, 1.5, 4])) for jump in jumps])


# At random: FUMEHOOD_SEED=N, which is printed, makes it again.

def any_day(day, kind, kinds, rounds):
    misfortunes = [*plan(SEED, kinds, rounds, [1 / 6, 0.7, 1.5, 4] if ALL else [1 / 6, 0.5])]
    print(f'FUMEHOOD_SEED={SEED}')
    day(kind, misfortunes, killed='worker' in kinds, note=f', FUMEHOOD_SEED={SEED}')


@whole
def test_anything_at_any_time(day):
    any_day(day, 'postgresql', GOES + DISKS, 24)


@somebody
def test_anything_at_any_time_and_workers_are_killed(day):
    any_day(day, 'postgresql', GOES + DISKS + ['worker'] * 5, 24 if ALL else 5)


@somebody
def test_anything_at_any_time_on_sqlite(day):
    any_day(day, 'sqlite', DISKS_SQLITE + ['clock'] * 3, 30 if ALL else 6)


@somebody
def test_anything_at_any_time_on_sqlite_and_workers_are_killed(day):
    """Whoever dies may have been ahead: nobody waits for what his clock has said."""
    any_day(day, 'sqlite', DISKS_SQLITE + ['clock'] * 4 + ['worker'] * 4, 30 if ALL else 8)


@somebody
def test_who_was_ahead_and_is_dead_is_not_waited_for(hood, site):
    place, ids = site('sqlite'), [hood.id() for _ in range(4)]
    for id in ids:
        hood.succeed('submit', id, '--retries', 9, '--', 'sh', '-c', 'echo done >out; test "$FUMEHOOD_ATTEMPT" != 1 || sleep 600')
    running = "SELECT count(*) FROM {T}queue WHERE state = 'running'"
    for k, ahead in enumerate((90, 5000)):
        place.start(k, behind=-ahead)
        assert until(lambda: place.sql(running) == [str(2 * k + 2)]), place.said()
    for k in range(2):
        place.kill_worker(k)
    place.start(2)
    done = "SELECT count(*) FROM {T}queue WHERE state = 'finished'"
    assert until(lambda: place.sql(done) == ['4'], 60), place.said()
    place.rest()
    rows = place.sql('SELECT verdict, count(*) FROM {T}attempt GROUP BY verdict ORDER BY verdict')
    assert rows == ['lost|4', 'succeeded|4'], rows


# A cable that is cut.

@somebody
def test_whoever_is_back_first_after_a_cut_takes_nothing_from_who_is_not(hood, site):
    """A connection that was cut for a while is silent for as long again: its worker does not wait for that."""
    place, id = site('postgresql', lease=3), hood.id()
    hood.succeed('submit', id, '--', 'sh', '-c', 'sleep 12; echo done >out')
    place.start(0)
    assert until(lambda: place.sql("SELECT id FROM {T}queue WHERE state = 'running'") == [id])
    place.strike('drop', 8)
    place.start(1)
    assert until(lambda: place.sql("SELECT id FROM {T}queue WHERE state = 'finished'") == [id], 60)
    place.rest()
    assert place.sql('SELECT verdict FROM {T}attempt') == ['succeeded'], place.said()


@somebody
def test_a_server_does_not_keep_the_sessions_of_a_host_that_is_gone(site):
    place = site('postgresql')
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fumehood'"
    if not ALL:
        place.hood.env['FUMEHOOD_DB'] += '&tcp_user_timeout=2000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2'
    place.start(0)
    assert until(lambda: place.sql(ours) != ['0'])
    place.cut()
    assert until(lambda: place.psql(ours, near=False) == ['0'], 60 if ALL else 20)
    place.cut(False)
    place.rest()
