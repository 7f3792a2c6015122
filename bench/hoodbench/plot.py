"""Plots as SVG, drawn by hand: bars beside what must be, boxes of times, curves of growth."""
import math
from xml.sax.saxutils import escape

INK, FAINT, GRID, PAPER = '#1d2733', '#5b6876', '#dfe4ea', '#ffffff'
COLOURS = {'aim': '#1b7f5c', 'must': '#2f6fb3', 'missed': '#c0392b', None: '#8a94a0'}
LINES = ['#2f6fb3', '#c8641a', '#1b7f5c', '#7a4fa3']
WIDTH = 900


class Svg:
    def __init__(self, height, title):
        self.height, self.parts = height, []
        self.title = title
        self.rect(0, 0, WIDTH, height, PAPER)

    def rect(self, x, y, w, h, fill, **others):
        self.add('rect', x=x, y=y, width=max(0, w), height=h, fill=fill, **others)

    def line(self, x1, y1, x2, y2, stroke=GRID, width=1, **others):
        self.add('line', x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, **others)

    def circle(self, x, y, r, fill, **others):
        self.add('circle', cx=x, cy=y, r=r, fill=fill, **others)

    def path(self, points, stroke, **others):
        text = ' '.join(f'{"M" if i == 0 else "L"}{x:.1f} {y:.1f}' for i, (x, y) in enumerate(points))
        self.add('path', d=text, fill='none', stroke=stroke, stroke_width=2, **others)

    def text(self, x, y, words, size=13, fill=INK, anchor='start', **others):
        attributes = self.attributes(dict(x=x, y=y, font_size=size, fill=fill, text_anchor=anchor, **others))
        self.parts.append(f'<text {attributes}>{escape(words)}</text>')

    def add(self, kind, **attributes):
        self.parts.append(f'<{kind} {self.attributes(attributes)}/>')

    @staticmethod
    def attributes(values):
        return ' '.join(f'{name.replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else escape(str(value))}"'
                        for name, value in values.items())

    def __str__(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}" '
                f'font-family="system-ui, DejaVu Sans, sans-serif" role="img"><title>{escape(self.title)}</title>\n'
                + '\n'.join(self.parts) + '\n</svg>\n')


def _share(row):
    """How much of what must be: up to one is met, whichever way is better."""
    if row['better'] == 'less':
        return row['value'] / row['must'], row['aim'] / row['must']
    return row['must'] / max(row['value'], 1e-9), row['must'] / row['aim']


def table(rows, figure):
    """A bar for each row: as long as its value is beside what must be, the line; the aim is a dot."""
    left, right, step, top, most = 330, 130, 24, 64, 2.0
    svg = Svg(top + step * len(rows) + 34, 'Every row beside what must be')
    wide = WIDTH - left - right
    svg.text(20, 26, 'Every row beside what must be', 17, font_weight='600')
    svg.text(20, 46, 'Left of the line it is met; the dot is the aim; an arrow: more than twice what must be.', 12, FAINT)
    for k, (verdict, words) in enumerate([('aim', 'aim met'), ('must', 'met'), ('missed', 'missed'), (None, 'no verdict')]):
        svg.rect(560 + 82 * k, 36, 11, 11, COLOURS[verdict], rx=2)
        svg.text(576 + 82 * k, 46, words, 12, FAINT)
    for share in (0.5, 1, 1.5, 2):
        x = left + wide * share / most
        svg.line(x, top - 4, x, svg.height - 28, INK if share == 1 else GRID, 1.5 if share == 1 else 1)
        svg.text(x, svg.height - 12, 'must' if share == 1 else f'{share:g} × must', 11, FAINT, 'middle')
    for k, row in enumerate(rows):
        y, (share, aim) = top + step * k, _share(row)
        colour = COLOURS[row['verdict']]
        svg.text(left - 12, y + 15, f'{row["name"]}, {row["who"]}' + ('' if row['where'] == 'disk' else f', {row["where"]}'), 12.5, INK, 'end')
        length = wide * min(share, most) / most
        svg.rect(left, y + 4, length, 14, colour, rx=2, opacity='0.55' if row['busy'] else '1')
        if share > most:
            svg.add('path', d=f'M{left + wide} {y + 2} L{left + wide + 9} {y + 11} L{left + wide} {y + 20} Z', fill=colour,
                    opacity='0.55' if row['busy'] else '1')
        svg.circle(left + wide * min(aim, most) / most, y + 11, 3.5, PAPER, stroke=INK, stroke_width=1.5)
        svg.text(WIDTH - right + 18, y + 15, figure(row['value'], row['value_unit']), 12.5)
    return svg


def boxes(title, groups, unit):
    """For each group a box for each contestant: its 10th to 90th percentile, the median, and up to the 95th a whisker."""
    count = sum(len(series) for _, series in groups)
    left, top, step, gap = 230, 58, 22, 26
    svg = Svg(top + step * count + gap * len(groups) + 40, title)
    svg.text(20, 26, title, 17, font_weight='600')
    svg.text(20, 45, 'Box: 10th to 90th percentile; line: median; whisker: 95th percentile.', 12, FAINT)
    most = 1.05 * max(s['p95'] for _, series in groups for s in series.values())
    wide = WIDTH - left - 90

    def at(value):
        return left + wide * min(value, most) / most
    for value in _ticks(most):
        svg.line(at(value), top, at(value), svg.height - 30)
        svg.text(at(value), svg.height - 14, f'{value:g} {unit}', 11, FAINT, 'middle')
    y = top
    for name, series in groups:
        svg.text(20, y + 17, name, 13, font_weight='600')
        y += gap
        for k, (who, seen) in enumerate(series.items()):
            colour = LINES[k % len(LINES)]
            svg.text(left - 12, y + 13, who, 12.5, INK, 'end')
            svg.line(at(seen['least']), y + 9, at(seen['p95']), y + 9, colour, 1.5)
            svg.rect(at(seen['deciles'][0]), y + 2, max(2.0, at(seen['deciles'][-1]) - at(seen['deciles'][0])), 14, colour, opacity='0.35', rx=2)
            svg.line(at(seen['median']), y, at(seen['median']), y + 18, colour, 3)
            svg.text(at(seen['p95']) + 8, y + 13, f'{seen["median"]:.2f}', 11.5, FAINT)
            y += step
    return svg


def _ticks(most):
    step = 10 ** math.floor(math.log10(most / 4))
    step = next(s for s in (step, 2 * step, 5 * step, 10 * step) if most / s <= 7)
    return [k * step for k in range(int(most / step) + 1)]


def growth(one):
    """Both axes by powers of ten; dashed: what linear growth to the last point would look like."""
    left, top, bottom, right, height = 90, 64, 56, 190, 380
    svg = Svg(height, one['title'])
    points = [p for line in one['lines'].values() for p in line]
    x0, x1 = (math.log10(f(p[0] for p in points)) for f in (min, max))
    y0, y1 = math.floor(math.log10(min(p[1] for p in points))), math.ceil(math.log10(max(p[1] for p in points)))
    y1 = max(y1, y0 + 1)
    wide, high = WIDTH - left - right, height - top - bottom

    def at(x, y):
        return left + wide * (math.log10(x) - x0) / max(x1 - x0, 1e-9), top + high * (y1 - math.log10(y)) / (y1 - y0)
    svg.text(20, 26, one['title'][0].upper() + one['title'][1:], 17, font_weight='600')
    svg.text(20, 46, f'{one["y"]}; both axes by powers of ten; dashed: linear growth to the last point', 12, FAINT)
    for k in range(y0, y1 + 1):
        y = at(10 ** x0, 10 ** k)[1]
        svg.line(left, y, left + wide, y)
        svg.text(left - 8, y + 4, f'{10 ** k:,g}', 11, FAINT, 'end')
    for x in sorted({p[0] for p in points}):
        svg.line(at(x, 10 ** y0)[0], top, at(x, 10 ** y0)[0], top + high)
        svg.text(at(x, 10 ** y0)[0], top + high + 18, f'{x:,}', 11, FAINT, 'middle')
    svg.text(left + wide / 2, height - 12, one['x'], 12, FAINT, 'middle')
    ends = []
    for k, (name, line) in enumerate(one['lines'].items()):
        colour, last = LINES[k % len(LINES)], line[-1]
        begin = max(line[0][0], last[0] * 10 ** y0 / last[1])  # where the guide enters the picture
        svg.path([at(begin, last[1] * begin / last[0]), at(*last)], colour, stroke_dasharray='4 5', opacity='0.45')
        svg.path([at(*p) for p in line], colour)
        for p in line:
            svg.circle(*at(*p), 3.5, colour)
        ends.append([at(*line[-1])[1], name, colour])
    for k, (y, name, colour) in enumerate(sorted(ends)):
        y = y if k == 0 else max(y, below + 16)
        below = y
        svg.text(left + wide + 12, y + 4, name, 12.5, colour, font_weight='600')
    return svg
