"""A scientist's day, from docs/PROJECTS.md alone: each part is pasted into a shell in an empty directory. What a remark says comes
out of a command (`fumehood logs boil   # 100.0`) must come out."""
import os
import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / 'docs/PROJECTS.md'
PARTS = dict(re.findall(r'^## ([^\n]+)\n(?:(?!^## )[^\n]*\n)*?```sh\n(.*?)^```', PAGE.read_text(), re.M | re.S))
SAID = {'A package': ['100.0'], 'A virtual environment': ['42', '42'], 'A notebook': ['42\\n'], 'R': ['3.9324'],
        'Make': ['55', "'sum.txt' is up to date"], 'Snakemake': ['4', '6']}


def test_the_page_has_all_parts():
    assert PARTS.keys() == SAID.keys()


HEAVY = ('A notebook', 'Snakemake')  # twenty seconds together: as both only in make test-all


@pytest.mark.parametrize('part', [part for part in SAID if part not in HEAVY])
def test_what_the_page_says_works(hood, part):
    paste(hood, part)


@pytest.mark.only('user')
@pytest.mark.parametrize('part', HEAVY)
def test_what_the_page_says_of_heavier_programs_works(hood, part):
    paste(hood, part)


@pytest.mark.long
@pytest.mark.only('root')
@pytest.mark.parametrize('part', HEAVY)
def test_it_works_as_root_too(hood, part):
    paste(hood, part)


def paste(hood, part):
    project = hood.directory('project')
    tag, text = hood.tag, PARTS[part]
    # Ids of this test alone: two of them may run side by side on one host.
    for id in set(re.findall(r'fumehood (?:run|submit) ([\w$@{}]+)', text)):
        name = {'$@': f'{tag}-$@', '{output}': f'{tag}-{{output}}'}.get(id, f'{tag}-{id}')
        text = re.sub(rf'(fumehood (?:run|submit|get|logs) ){re.escape(id)}(?=\s)', lambda found, name=name: found[1] + name, text)
    env = {**hood.env, 'PATH': f'{hood.binary.parent}:{hood.env["PATH"]}'}
    done = subprocess.run(['sh', '-eu', '-c', text], cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600, **hood.who.popen_arguments())
    assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
    place = 0
    for word in SAID[part]:
        assert word in done.stdout[place:], f'{word} is not in:\n{done.stdout}\n{done.stderr}'
        place = done.stdout.index(word, place) + len(word)
    assert os.listdir(project)
