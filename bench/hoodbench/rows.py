"""A row of the table: what is measured, beside whom, and what it must and should be.

A module of rows decorates functions with @row(...). Such a function gets a Place (who measures, and where) and a Pace (how long it
may take) and gives a Measured; everything else about it is said in the decorator.
"""
import statistics
from dataclasses import dataclass, field

ROWS = []
DISK, JOURNAL, TMPFS = 'disk', 'image', 'tmpfs'  # image: a new ext4 with a journal, in a file on the disk; needs root
ROOT, USER = 'root', 'user'


@dataclass
class Row:
    name: str
    title: str
    must: float
    aim: float
    measure: object = None
    better: str = 'less'  # or 'more'
    unit: str = 'x'  # of the value that must and aim are about
    whos: tuple = (ROOT, USER)
    wheres: tuple = (DISK,)
    only_root: bool = False
    timed: bool = True  # not: what is counted is the same on a busy machine
    about: str = ''  # how it is measured, what differs between the two

    def judge(self, value):
        """'aim', 'must' or 'missed'."""
        def holds(bound):
            return value <= bound if self.better == 'less' else value >= bound
        return 'aim' if holds(self.aim) else 'must' if holds(self.must) else 'missed'


@dataclass
class Measured:
    """series: what was seen of each contestant, ours and theirs among them by name. value: what is judged, by default the ratio
    of their medians; least: the same of the best that each could do, which a busy machine spoils less."""
    ours: str
    theirs: str
    series: dict
    unit: str = 'ms'
    value: float = None
    least: float = None
    note: str = ''
    more: dict = field(default_factory=dict)

    def __post_init__(self):
        best = max if self.unit == '/s' else min
        if self.value is None:
            self.value = statistics.median(self.series[self.ours]) / statistics.median(self.series[self.theirs])
            self.least = best(self.series[self.ours]) / best(self.series[self.theirs])


@dataclass
class Pace:
    """How many rounds: fewer when it has to be quick. One number given on the command line replaces all."""
    quick: bool = False
    fixed: int = None

    def rounds(self, many, few):
        return self.fixed or (few if self.quick else many)


def row(name, title, must, aim, **others):
    def add(function):
        about = others.pop('about', None) or ' '.join((function.__doc__ or '').split())
        ROWS.append(Row(name, title, must, aim, measure=function, about=about, **others))
        return function
    return add


def summary(values):
    ordered = sorted(values)

    def quantile(share):
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
    return {'median': statistics.median(ordered), 'p95': quantile(0.95), 'least': ordered[0], 'most': ordered[-1], 'n': len(ordered),
            'deciles': [quantile(k / 10) for k in range(1, 10)]}
