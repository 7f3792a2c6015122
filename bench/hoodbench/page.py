"""docs/PERFORMANCE.md and its plots, out of bench/results.json and bench/notes.md."""
import re
from pathlib import Path

from . import plot
from .growth import LINEAR
from .machine import BUSY
from .table import WORDS, figure, short

top = Path(__file__).resolve().parents[2]
PAGE, PLOTS, NOTES = top / 'docs/PERFORMANCE.md', top / 'docs/performance', top / 'bench/notes.md'

HEAD = '''# What it costs

Written by `make bench` (`bench/run`) out of `bench/results.json`; `bench/render` writes it again without measuring, with what
`bench/notes.md` says of the rows. A row alone: `bench/run start`; all of them in minutes: `bench/run --quick`.

Each row is one interleaved run: ours and theirs in turn, so that what else the machine does hits both. Trust ratios rather than times. Ledger,
state and workspaces lie on the machine's disk ({disk}); "image" is an ext4 with a journal, new, in a file on that disk, "tmpfs" is memory: other
lines of the same row. Everything is warm (programs and inputs in
memory) unless it says otherwise. Before and after each row the use of the processors by others is looked at: above {busy:.0%}
there is no verdict.
'''


def notes():
    """{row: text} of bench/notes.md: what stands in the way of a row that is missed."""
    if not NOTES.exists():
        return {}
    parts = re.split(r'^## +(\S+)\s*$', NOTES.read_text(), flags=re.M)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def _machine(results):
    m = results['machine']
    peers = ', '.join(f'{name} ({version})' for name, version in m['peers'].items())
    rows = results['rows']
    others = max((row['others'] for row in rows), default=0)
    loads = [row['load'] for row in rows] or [0]
    text = (f'Measured {results["when"]} at commit {results["commit"]}: {m["system"]}, {m["kernel"]}, {m["processors"]} processors ({m["processor"]}), '
            f'{m["memory_mib"] / 1024:.0f} GiB, cgroups {m["cgroups"]}, {m["disk"]}. Load average {min(loads):.1f} to {max(loads):.1f}, our own included; '
            f'others used at most {others:.0%} of the processors between rows. Peers: {peers}.')
    if any(row['busy'] for row in rows):
        text += (f'\n\n**The machine was busy: {sum(row["busy"] for row in rows)} of {len(rows)} lines have no verdict, or one that is marked so.** '
                 'Run `make bench` on an idle one.')
    if results.get('quick'):
        text += '\n\nThis was a quick run: few rounds, and smaller sizes than the rows say.'
    return text


def _table(rows):
    lines = ['| row | | as | on | ours: median (p95) | theirs: median (p95) | value | must | aim | |', '|---|---|---|---|---|---|---|---|---|---|']
    named = None
    for row in rows:
        def seen(name):
            s = row['series'].get(name)
            return f'{short(s["median"])} ({short(s["p95"])}) {row["unit"]}' if s else ''
        sign = '≤' if row['better'] == 'less' else '≥'
        verdict = WORDS[row['verdict']] + (', busy' if row['busy'] and row['verdict'] else '')
        name, title = (f'`{row["name"]}`', row['title']) if row['name'] != named else ('', '')
        named = row['name']
        unit = row['value_unit']
        lines.append(f'| {name} | {title} | {row["who"]} | {row["where"]} | {seen(row["ours"])} | {seen(row["theirs"])} | **{figure(row["value"], unit)}** '
                     f'| {sign} {figure(row["must"], unit)} | {sign} {figure(row["aim"], unit)} | {verdict} |')
    return '\n'.join(lines)


def _growth(curves):
    lines = ['| | steepness over the last decade | |', '|---|---|---|']
    for one in curves:
        for name, exponent in one['steepness'].items():
            lines.append(f'| {one["title"]}: {name} | {exponent:.2f} | {"linear or better" if exponent <= LINEAR else "WORSE THAN LINEAR"} |')
    pictures = '\n\n'.join(f'![{one["title"]}](performance/growth-{one["name"]}.svg)\n\n{one["about"]}' for one in curves)
    return ('The exponent of a curve over its last decade: 1 is linear, 0 is flat; up to ' f'{LINEAR} counts as linear.\n\n' + '\n'.join(lines)
            + '\n\n' + pictures)


def _missed(rows, curves):
    told, text = notes(), []
    names = [row['name'] for row in rows if row['verdict'] == 'missed' or (row['verdict'] is None and row['name'] in told)]
    names += [one['name'] for one in curves if max(one['steepness'].values()) > LINEAR]
    for name in dict.fromkeys(names):
        text.append(f'### `{name}`\n\n' + told.get(name, 'Nothing is written of it in `bench/notes.md` yet.'))
    return '\n\n'.join(text) or 'Every row is met.'


def _how(rows):
    return '\n'.join(f'- `{name}`: {about}' for name, about in {row['name']: row['about'] for row in rows}.items())


def _plots(results):
    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.glob('*.svg'):
        old.unlink()
    (PLOTS / 'table.svg').write_text(str(plot.table(results['rows'], figure)))
    groups = [(f'{row["name"]}, {row["who"]}, {row["where"]}', row['series']) for row in results['rows'] if row['name'].startswith('start')]
    if groups:
        (PLOTS / 'start.svg').write_text(str(plot.boxes('From the start to the end of /bin/true', groups, 'ms')))
    for one in results['growth']:
        (PLOTS / f'growth-{one["name"]}.svg').write_text(str(plot.growth(one)))
    return bool(groups)


def render(results):
    has_start = _plots(results)
    rows = results['rows']
    parts = [HEAD.format(disk=results['machine']['disk'], busy=BUSY), _machine(results),
             '## The table', '![Every row beside what must be](performance/table.svg)', _table(rows),
             *(['![From the start to the end of /bin/true](performance/start.svg)'] if has_start else []),
             *(['## Growth', _growth(results['growth'])] if results['growth'] else []),
             '## What is missed, and why', _missed(rows, results['growth']), '## How each row is measured', _how(rows)]
    PAGE.write_text('\n\n'.join(part.strip() for part in parts) + '\n')
    return PAGE
