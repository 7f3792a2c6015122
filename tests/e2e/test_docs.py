"""What is written is what is there: options in the manual, words in the contract."""
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def options_in(text):
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]+', text))


def test_every_option_of_run_is_in_the_manual_and_the_other_way_round(hood):
    manual = options_in((TOP / 'man/fumehood-run.1.scd').read_text())
    page = hood.succeed('help', 'run').out.splitlines()
    offered = options_in('\n'.join(line for line in page if not line.startswith('  fumehood')))  # examples aside
    assert offered - manual == set()
    for option in manual - offered:
        assert 'unknown option' not in hood.cli('run', hood.id(), option).err, option


def test_help_lists_every_option_that_the_formats_have(hood):
    rows = re.findall(r'^\| `\w+` \| `(--?[a-z-]+)` \|', (TOP / 'docs/FORMATS.md').read_text(), re.M)
    help = hood.succeed('help', 'run').out + hood.succeed('help', 'submit').out
    assert '--open-files' in rows and '-i' in rows and len(rows) > 30
    assert [option for option in rows if not re.search(rf'(?<![\w-]){option}(?![\w-])', help)] == []


def test_every_command_has_a_page_with_all_its_options(hood):
    overview = (TOP / 'man/fumehood.1.scd').read_text()
    listed = [found.group(1) for found in re.finditer(r'^  ([a-z-]+)  ', hood.succeed('help').out, re.M)]
    commands = hood.succeed('complete', 'table').json
    assert [command['name'] for command in commands] == listed and 'run' in listed and 'gc' in listed
    for command in commands:
        name = command['name']
        assert f'*fumehood-{name}*(1)' in overview, name
        page = (TOP / f'man/fumehood-{name}.1.scd').read_text()
        page += (TOP / 'man/fumehood-run.1.scd').read_text() if name == 'submit' else ''
        for option in command['options']:
            assert re.search(rf'^\*-.*\*{option["name"]}\*|^\*{option["name"]}\*', page, re.M), (name, option)


def test_help_has_a_commands_own_options_and_no_others(hood):
    for command in hood.succeed('complete', 'table').json:
        page = hood.succeed('help', command['name']).out
        offered = options_in('\n'.join(line for line in page.splitlines() if line.startswith('-')))  # not what it speaks of
        known = {option['name'] for option in command['options']}
        assert offered - known == set(), command['name']
        own = {option['name'] for option in command['options'] if not option['shared'] and not option['request']} - {'--follow'}
        assert [name for name in own if not re.search(rf'(?<![\w-]){name}(?![\w-])', page)] == [], command['name']


def test_the_walk_names_what_exists():
    text = (TOP / 'docs/ARCHITECTURE.md').read_text()
    hops = re.findall(r'`((?:src|include|bindings|docs|man|tests)/[\w./-]*?)(?::(\w+))?`', text)
    assert len([hop for hop in hops if hop[1]]) > 20, hops
    for path, function in hops:
        assert (TOP / path).exists(), path
        assert not function or re.search(rf'^(?:[a-z_].*[ *])?{function}\(', (TOP / path).read_text(), re.M), (path, function)
