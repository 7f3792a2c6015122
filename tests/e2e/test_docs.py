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
    without = {'--strength', '--explain'}  # names that are taken, of no use yet
    assert '--open-files' in rows and '-i' in rows and len(rows) > 30
    assert [option for option in rows if not re.search(rf'(?<![\w-]){option}(?![\w-])', help)] == sorted(without, reverse=True)


def test_every_command_and_its_options_are_in_the_manual(hood):
    manual = (TOP / 'man/fumehood.1.scd').read_text()
    commands = [found.group(1) for found in re.finditer(r'^  ([a-z-]+)  ', hood.succeed('help').out, re.M)]
    assert 'run' in commands and 'gc' in commands
    for command in commands:
        assert f'*{command}' in manual, command
        page = hood.succeed('help', command).out.splitlines()
        offered = options_in('\n'.join(line for line in page if not line.startswith('  fumehood')))
        assert command == 'run' or offered - options_in(manual) == set(), command


def test_the_walk_names_what_exists():
    text = (TOP / 'docs/ARCHITECTURE.md').read_text()
    hops = re.findall(r'`((?:src|include|bindings|docs|man|tests)/[\w./-]*?)(?::(\w+))?`', text)
    assert len([hop for hop in hops if hop[1]]) > 20, hops
    for path, function in hops:
        assert (TOP / path).exists(), path
        assert not function or re.search(rf'^(?:[a-z_].*[ *])?{function}\(', (TOP / path).read_text(), re.M), (path, function)
