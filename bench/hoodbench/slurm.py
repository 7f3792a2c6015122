"""Rows: analyses handed to Slurm, beside bare sbatch of the same commands, on a Slurm of three nodes that is made for it on this machine."""
import os
import sys
import time
from pathlib import Path

from .rows import ROOT, Measured, row

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'tests/slurm'))


class Ground:
    """A Slurm, a PostgreSQL that syncs every commit, and a site on them, for one row."""

    def __init__(self, place):
        import cluster  # brings the tests' modules along, so only when it is needed
        os.environ['TEST_POSTGRES_FSYNC'] = 'on'
        self.until, self.server, self.slurm = cluster.until, cluster.server(), None
        self.slurm = cluster.Cluster()
        self.site = cluster.Site(self.slurm, Path(place.tools.hood), self.server, None)
        self.site.configure(queue={'lease': '30s'}, log=None, poll=None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.site.problems()
        self.site.remove()
        self.slurm.close()
        self.server.stop()

    def wait_for_slurm(self):
        if not self.until(lambda: not self.slurm.jobs(), 600):
            raise RuntimeError('Slurm did not end its jobs')

    def ours(self, name, count):
        """From the dispatcher's start until the last of them is committed, and it has ended."""
        self.site.submit_many([{'id': f'{name}-{n}', 'command': ['/bin/true']} for n in range(count)])
        begun = time.monotonic()
        self.site.drain('--quiet')
        seconds = time.monotonic() - begun
        self.wait_for_slurm()
        return seconds

    def theirs(self, count):
        """From the first sbatch until Slurm has nothing left."""
        begun = time.monotonic()
        for _ in range(count):
            self.slurm.ask('sbatch', '-Q', '--mem=2112M', '--time=65', '-o', '/dev/null', '--wrap', 'exec /bin/true')
        self.wait_for_slurm()
        return time.monotonic() - begun

    def array(self, count):
        begun = time.monotonic()
        self.slurm.ask('sbatch', '-Q', '--mem=2112M', '--time=65', '-o', '/dev/null', f'--array=0-{count - 1}', '--wrap', 'exec /bin/true')
        self.wait_for_slurm()
        return time.monotonic() - begun


@row('slurm-rate', 'analyses in a second through Slurm, beside bare sbatch of the same commands', 0.7, 0.9, better='more', whos=(ROOT,))
def rate(place, pace):
    """fumehood worker --engine slurm --drain on a queue of /bin/true, from its start to its end: claim, hand over, sbatch of arrays, on the
    nodes take, walls, limits, a durable commit to PostgreSQL and clean-up of each. Beside it one sbatch for each of the same commands, until Slurm
    has nothing left, and one sbatch of an array of them. In turn; all daemons and nodes are on this machine."""
    count, series = 24 if pace.quick else 100, {'dispatcher': [], 'sbatch': [], 'sbatch --array': []}
    with Ground(place) as ground:
        for n in range(pace.rounds(5, 2)):
            series['dispatcher'].append(count / ground.ours(f'r{n}', count))
            series['sbatch'].append(count / ground.theirs(count))
            series['sbatch --array'].append(count / ground.array(count))
    return Measured('dispatcher', 'sbatch', series, unit='/s')


@row('slurm-latency', 'from submit to the verdict of one analysis through an idle Slurm, beside sbatch', 2.0, 1.3, whos=(ROOT,))
def latency(place, pace):
    """A dispatcher waits with nothing to do; one analysis of /bin/true is submitted and waited for (fumehood submit, fumehood wait). Beside
    it sbatch of the same command, and squeue every 20 ms until Slurm has nothing left. In turn."""
    series = {'dispatcher': [], 'sbatch': []}
    with Ground(place) as ground:
        dispatcher = ground.site.dispatch('--quiet')
        try:
            for n in range(pace.rounds(20, 4)):
                begun = time.monotonic()
                id = ground.site.submit(f'l{n}', 'exec /bin/true')
                ground.site.succeed('wait', id)
                series['dispatcher'].append(1000 * (time.monotonic() - begun))
                ground.wait_for_slurm()
                series['sbatch'].append(1000 * ground.theirs(1))
        finally:
            ground.site.stop(dispatcher)
    return Measured('dispatcher', 'sbatch', series)
