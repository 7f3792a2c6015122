"""Rows: the same program under the hood and outside of it, once it has started."""
import statistics
import time

from .rows import Measured, row

# Of one call inside: how much more it may take.
CALLS = {
    'getpid': ('a call that does nothing', 40, 'ns'), 'pread': ('64 bytes of an open file', 40, 'ns'),
    'stat': ('of a file in the workspace', 1.2, 'x'), 'openat': ('and close of a file in the workspace', 1.6, 'x'),
    'openat-input': ('and close of an input', 3, 'x'), 'compute': ('2,000 multiplications', 1.01, 'x'),
}


def _turns(place, rounds, command, read):
    """{outside: [...], inside: [...]}: what the command printed there and here, in turn."""
    seen = {'outside': [], 'inside': []}
    for n in range(rounds):
        for where in seen:
            words = command if where == 'outside' else place.hooded(f'inside{n}', *command, options=['--ro', command[0]])
            seen[where] += read(place.run(*words))
    return seen


def _programs(place, pace, script, many, few):
    """Starts of Python with that script: so many in a process that is inside, and as many outside, in turn (bench/spawn.c)."""
    command = [place.tools.compiled('spawn'), str(pace.rounds(many, few)), '0', '::', '/usr/bin/python3', '-c', script]
    seen = _turns(place, pace.rounds(5, 2), command, lambda out: [[int(n) / 1e6 for n in word.split('/')] for word in out.split()])
    walls, cpus = ({where: [pair[k] for pair in pairs] for where, pairs in seen.items()} for k in (0, 1))
    return Measured('inside', 'outside', walls, more={'cpu_ms': {where: statistics.median(values) for where, values in cpus.items()}})


@row('python', 'Python starts, inside beside outside', 1.1, 1.05)
def python(place, pace):
    """Starts and ends of /usr/bin/python3 -c pass by a process that is under the hood, beside the same outside. In turn; warm caches."""
    return _programs(place, pace, 'pass', 20, 8)


@row('numpy', 'Python imports numpy, inside beside outside', 1.1, 1.05)
def numpy(place, pace):
    """As 'python', with import numpy."""
    return _programs(place, pace, 'import numpy', 8, 3)


LOOP = 'x = 0\nfor i in range({n}): x += i * i % 7\n'


@row('compute', 'a job of 5 s of CPU, the whole command beside the bare program', 1.01, 1.0)
def compute(place, pace):
    """fumehood run of a Python loop that takes some five seconds, from its start to its end, beside the loop without anything around it. In turn."""
    begun = time.monotonic()
    place.run('/usr/bin/python3', '-c', LOOP.format(n=2000000))
    script = LOOP.format(n=int((1 if pace.quick else 5) * 2000000 / (time.monotonic() - begun)))
    series = {'fumehood': [], 'nothing around it': []}
    for n in range(pace.rounds(3, 2)):
        command = ['/usr/bin/python3', '-c', script]
        series['nothing around it'].append(place.seconds(*command))
        series['fumehood'].append(place.seconds(*place.hooded(f'c{n}', *command)))
    return Measured('fumehood', 'nothing around it', series, unit='s')


def _call(name, unit):
    def measure(place, pace):
        program = place.tools.compiled('price')
        (place.work / 'file').unlink(missing_ok=True)
        command = [program, 'file', place.data / 'input.csv', name]
        seen = _turns(place, pace.rounds(5, 3), command, lambda out: [float(out)])
        difference = {} if unit == 'x' else {
            'value': statistics.median(seen['inside']) - statistics.median(seen['outside']),
            'least': min(seen['inside']) - min(seen['outside'])}
        return Measured('inside', 'outside', seen, unit='ns', **difference)
    return measure


for _name, (_what, _bound, _unit) in CALLS.items():
    row(f'call-{_name}', f'{_name}: {_what}, inside beside outside', _bound, _bound, unit=_unit, whos=('root',),
        about='Medians of blocks of 2,000 calls (bench/price.c), the program run inside and outside in turn.')(_call(_name, _unit))
