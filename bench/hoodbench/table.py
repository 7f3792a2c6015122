"""The table for a terminal."""
FULL = 16  # of a bar: what must be
WIDTH = 24
WORDS = {'aim': 'aim met', 'must': 'met', 'missed': 'MISSED', None: 'no verdict'}


def figure(value, unit):
    if unit == 'x':
        return f'{value:.2f} x'
    if unit == '%':
        return f'{value:.0f} %'
    return f'{value:.3g} {unit}'.strip() if value < 100 else f'{value:.0f} {unit}'.strip()


def short(value):
    """Three digits, at least."""
    return f'{value:.0f}' if value >= 100 else f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def bar(row):
    """As long as the value is beside what must be (a tick); for what has to be large, too."""
    length = round(FULL * row['value'] / row['must']) if row['must'] else 0
    text = '█' * min(length, WIDTH) + ('▶' if length > WIDTH else '')
    return ''.join('│' if k == FULL and k >= length else c for k, c in enumerate(text.ljust(WIDTH + 1)))


def line(row):
    series, unit = row['series'], row['unit']

    def seen(name):
        return f'{short(series[name]["median"])} ({short(series[name]["p95"])})' if name in series else ''
    asked = f'{"≤" if row["better"] == "less" else "≥"} {figure(row["must"], row["value_unit"])}'
    verdict = WORDS[row['verdict']] + (', busy' if row['busy'] and row['verdict'] else '')
    least = '' if row['least'] is None else figure(row['least'], row['value_unit'])
    cpu = row['more'].get('cpu_ms')
    cpu = figure(cpu[row['ours']] / cpu[row['theirs']], 'x') if cpu else ''
    return (f'  {row["name"]:18}{row["who"]:5}{row["where"]:6}{seen(row["ours"]):>19}{seen(row["theirs"]):>19} {unit:4}'
            f'{figure(row["value"], row["value_unit"]):>10}{least:>10}{cpu:>9}{asked:>12}  {bar(row)} {row["others"]:>6.0%}  {verdict}')


HEAD = (f'  {"row":18}{"as":5}{"on":6}{"ours: median (p95)":>19}{"theirs":>19} {"":4}{"value":>10}{"of least":>10}{"of CPU":>9}{"must":>12}  '
        f'{"beside what must be":25} {"others":>6}  verdict')
