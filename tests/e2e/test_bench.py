"""The bench itself: that a row can be run alone, that what it says follows from what was measured, and that the page is what it wrote."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'bench'))
from hoodbench import growth, machine, page, rows, table  # noqa: E402


def run(*words, status=0):
    done = subprocess.run(['/usr/bin/python3', TOP / 'bench/run', *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == status, done.stdout
    return done.stdout


def test_a_row_can_be_measured_alone(request):
    before = (TOP / 'bench/results.json').read_bytes()
    out = run('call-getpid', '--rounds', '1', '--anyway', '--build', str(Path(request.config.getoption('binary')).resolve().parent))
    assert 'call-getpid' in out and 'call-stat' not in out
    assert (TOP / 'bench/results.json').read_bytes() == before


def test_a_row_that_is_not_there_is_named():
    out = run('strat', status=1)
    assert out.startswith('bench: there is no row strat; there are: start, ') and out.count('\n') == 1


def test_the_page_is_what_was_measured(tmp_path, monkeypatch):
    for name in ('PAGE', 'PLOTS'):
        monkeypatch.setattr(page, name, tmp_path / getattr(page, name).name)
    page.render(json.loads((TOP / 'bench/results.json').read_text()))
    assert (tmp_path / 'PERFORMANCE.md').read_text() == (TOP / 'docs/PERFORMANCE.md').read_text(), 'bench/render writes it again'
    plots = {path.name: path.read_text() for path in (TOP / 'docs/performance').iterdir()}
    assert {path.name: path.read_text() for path in (tmp_path / 'performance').iterdir()} == plots


@pytest.mark.parametrize('better, value, verdict', [('less', 0.8, 'aim'), ('less', 1.2, 'must'), ('less', 1.21, 'missed'), ('more', 0.8, 'missed')])
def test_a_value_is_judged_by_what_must_be(better, value, verdict):
    must, aim = (1.2, 0.8) if better == 'less' else (1.0, 1.5)
    assert rows.Row('r', 'a row', must, aim, better=better).judge(value) == verdict


def test_a_value_is_the_ratio_of_medians_and_of_the_best():
    found = rows.Measured('ours', 'theirs', {'ours': [2, 3, 9], 'theirs': [1, 2, 3]})
    assert (found.value, found.least) == (1.5, 2)
    rates = rows.Measured('ours', 'theirs', {'ours': [2, 3, 9], 'theirs': [1, 2, 3]}, unit='/s')
    assert rates.least == 3


def test_growth_is_the_exponent_of_the_last_decade():
    assert growth.steepness([[1, 5], [10, 5], [100, 50]]) == pytest.approx(1)
    assert growth.steepness([[1, 5], [10, 50], [100, 50]]) == pytest.approx(0)


def test_how_busy_the_machine_is_is_a_share():
    assert 0 <= machine.busy(0.2) <= 1


def test_a_bar_is_as_long_as_the_value_is_beside_what_must_be():
    assert table.bar({'value': 1.2, 'must': 1.2}).rstrip() == '█' * table.FULL + '│'
    assert table.bar({'value': 9, 'must': 1.2}).endswith('▶')
