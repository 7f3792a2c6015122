"""Nothing gets out: the suite that ships with the command, run as its users run it."""
import fnmatch
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
FAMILIES = ['collection', 'inputs', 'kernel', 'limits', 'processes', 'services', 'strangers']
IMITATED = ['CVE-2017-5226', 'CVE-2019-5736', 'CVE-2019-7303', 'CVE-2021-30465', 'CVE-2022-0492', 'CVE-2024-21626',
            'CVE-2024-27297', 'CVE-2024-28185', 'CVE-2024-28189', 'CVE-2024-29021', 'CVE-2024-42318', 'CVE-2025-31133',
            'CVE-2025-46416', 'CVE-2025-52565', 'CVE-2025-52881']


def lines(attacks):
    return '\n'.join(f'{a["family"]} {a["name"]}: {a["why"]}' for a in attacks)


def test_nothing_escapes(result):
    assert not result.that('escaped'), lines(result.that('escaped'))
    assert result.json['escaped'] == 0
    assert result.status == 0


def test_the_counts_are_those_of_the_rows(result):
    counts = Counter(attack['result'] for attack in result.attacks)
    not_held = {'not held': result.json['not_held']} if result.bare else {}
    assert counts == {'held': result.json['held'], 'not testable here': result.json['not_testable'], **not_held}


def test_what_is_not_held_names_its_line_of_the_receipt(result, place):
    """Full strength has nothing of the kind; without namespaces there is little, and an analysis's own receipt says it."""
    assert bool(result.that('not held')) == result.bare and len(result.that('not held')) < 20
    text = (TOP / 'src/sandbox/receipt_bare.c').read_text()
    for attack in result.that('not held'):
        name = re.match(r'receipt, ([a-z ]+):', attack['why'])[1]
        assert f'{{"{name}", false,' in text, attack


def test_every_attack_says_what_it_does(result):
    for attack in result.attacks:
        assert attack['mechanism'] and attack['why'] is not None and attack['milliseconds'] >= 0
    assert len({attack['name'] for attack in result.attacks}) == len(result.attacks)


def test_every_family_holds_at_least_ten_mechanisms(result):
    held = Counter(attack['family'] for attack in result.that('held'))
    assert sorted({attack['family'] for attack in result.attacks}) == FAMILIES
    assert all(held[family] >= 10 for family in FAMILIES), held


def test_known_mechanisms_are_among_them(result):
    named = ' '.join(attack['mechanism'] for attack in result.attacks)
    assert [cve for cve in IMITATED if cve not in named] == []


def reviewed(who):
    """`NAME anywhere|as-user REASON…`: what may be not testable, and where. A root that is none is a user, and more."""
    places = ['anywhere', f'as-{who}', *(['as-user', 'as-other-root'] if who in ('container', 'namespace') else []),
              *(['as-user', 'in-docker'] if who == 'docker' else [])]
    rows = [line.split(None, 2) for line in (HERE / 'expected-not-testable').read_text().splitlines()]
    return [row[0] for row in rows if row and row[0] != '#' and row[1] in places]


def test_what_cannot_be_tested_here_is_reviewed(result):
    allowed = reviewed(result.who)
    surprise = [a for a in result.that('not testable here')
                if not any(fnmatch.fnmatch(a['name'], pattern) for pattern in allowed)]
    assert not surprise, lines(surprise)


def traces():
    return {f'{top}/{name}' for top in ('/tmp', '/var/tmp', '/dev/shm') for name in os.listdir(top)
            if re.match(r'\.?(fumehood-attack-|scidex-analysis-attack-)', name)}


BEFORE = traces()  # of a run that somebody killed: not ours


def test_nothing_is_left_behind(result):
    assert traces() - BEFORE == set()


def test_it_finds_what_bubblewrap_lets_through(place):
    """A suite that everything passes would be no suite."""
    done = subprocess.run([place / 'fumehood-attack', 'suite', '-n', 'unix-data-*', place / 'bubblewrap'], stdout=subprocess.PIPE,
                          text=True, timeout=1800)
    escaped = re.findall(r'^escaped +\S+ +(\S+)', done.stdout, re.M)
    assert {'unix-data-stream', 'unix-data-dgram', 'unix-data-seqpacket'} <= set(escaped), done.stdout
    assert done.returncode == 1
