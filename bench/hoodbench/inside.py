"""Rows: the same program under the hood and outside of it, once it has started."""
import statistics

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
