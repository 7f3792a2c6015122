"""docs/WHY.md shows what a terminal shows: each failure is run, its words compared, and what is said to help is done.

`make why` (WHY_WRITE=1) writes the page anew.
"""
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from why import FAILURES, said

PAGE = Path(__file__).resolve().parents[2] / 'docs/WHY.md'
HEAD = '''# Why it failed

What the terminal shows when something goes wrong, for the failures that scripts meet most. Every output here was made by running it
(`tests/e2e/test_why.py`, which holds this page to the word; `make why` writes it anew), and where there is a *then*, it succeeds.
Times, memory and the inside of tracebacks are left out.

The verdict comes from what the kernel and the hood have counted, never from what the program printed. A program that failed by
itself may have missed a file: `--explain` listens to the paths and connections that it asks for, and tells of those that are not
there under the hood but outside, each with the option that would show it.
'''


def whole(hood, text):
    return text.replace('{base}', str(hood.base)) if isinstance(text, str) else text


def put(hood, failure, files):
    for name, content in files.items():
        mode = failure.modes.get(name, 0o755 if content[:2] in ('#!', b'#!') else 0o644)
        hood.write(name, whole(hood, content), mode)


def typed(hood, id, options, command):
    return ['run', id, *[whole(hood, word) for word in options], '--', *[whole(hood, word) for word in command]]


def show(hood, words):
    """As a terminal has it: both streams in one."""
    process = hood.popen(*words, stderr=subprocess.STDOUT)
    return process.communicate(timeout=300)[0], process.returncode


def line_of(hood, words, id, name):
    return said('$ fumehood ' + shlex.join(words) + '\n', hood, id, name)


def fence(text, language=''):
    return f'```{language}\n{text}' + ('' if text.endswith('\n') else '\n') + '```\n'


def files_of(hood, failure):
    for name, content in failure.files.items() if failure.shown else ():
        if content:
            language = {'py': 'python', 'sh': 'sh'}.get(name.rpartition('.')[2], '')
            yield f'`{name}`' + (', each line of which ends in `\\r\\n`' if '\r' in content else '') + ':\n'
            yield fence(content.replace('\r', '').replace('{base}', '/home/me'), language)


def section(number, hood, failure):
    """Runs it; what the page has to say of it."""
    id, name = hood.id(), f'a{number}'
    hood.write(hood.base / 'reference/genome.fa', '>chr1\n')
    put(hood, failure, failure.files)
    words = typed(hood, id, failure.options, failure.command)
    out, status = show(hood, words)
    assert status != 0, out
    parts = [f'## {number}. {failure.title}\n', *files_of(hood, failure)]
    parts.append(fence(line_of(hood, words, id, name) + said(out, hood, id, name) + f'$ echo $?\n{status}\n'))
    if failure.agent:
        words = ['show', id, '--explain=agent']
        out, status = show(hood, words)
        assert status == 0, out
        parts += ['For the prompt of a model (`run --explain=agent` prints the same, and nothing else):\n',
                  fence(line_of(hood, words, id, name) + said(out, hood, id, name))]
    then = then_of(hood, failure, id)
    parts.append(failure.helps + (' Then:\n' if then else '\n'))
    if then:
        parts.append(fence(then))
    return '\n'.join(parts)


def then_of(hood, failure, id):
    """Does what helps, and it works."""
    if not (failure.more or failure.instead or failure.repair):
        return ''
    put(hood, failure, failure.repair)
    kept = [word for word in failure.options if word != '--explain']
    options = failure.more if failure.more and failure.more[0] in kept else [*kept, *(failure.more or [])]
    words = typed(hood, hood.id(), options, failure.instead or failure.command)
    out, status = show(hood, words)
    assert status == 0, (words, out)
    name = 'then'
    if not failure.repair:
        return line_of(hood, [words[0], *words[2:]], name, name)
    files = ''.join(f'{line}\n' for content in failure.repair.values() for line in content.splitlines())
    return files if failure.title != 'Windows line ends' else f"$ sed -i 's/\\r$//' ./fit.sh\n"


def split_page():
    found = re.split(r'^(?=## \d+\. )', PAGE.read_text() if PAGE.exists() else '', flags=re.M)
    return found[0], dict((int(re.match(r'## (\d+)', part).group(1)), part.rstrip('\n') + '\n') for part in found[1:])


def hold(number, hood, failure):
    text = section(number, hood, failure).rstrip('\n') + '\n'
    if os.environ.get('WHY_WRITE'):
        sections = {**split_page()[1], number: text}
        PAGE.write_text('\n'.join([HEAD, *(sections[n] for n in sorted(sections) if n <= len(FAILURES))]))
    assert split_page()[1].get(number) == text, f'{PAGE.name} says something else than what was seen: make why\n{text}'


def cases(limits):
    return [pytest.param(n, failure, id=failure.title.lower().replace(' ', '-')) for n, failure in enumerate(FAILURES, 1)
            if failure.limits == limits]


@pytest.mark.parametrize('number, failure', cases(False))
def test_the_page_shows_what_the_terminal_showed_and_what_helps(hood, number, failure):
    hold(number, hood, failure)


@pytest.mark.parametrize('number, failure', cases(True))
def test_the_page_shows_which_limit_was_reached_and_what_raises_it(caged, number, failure):
    hold(number, caged, failure)


def test_the_page_has_these_failures_and_no_others():
    head, sections = split_page()
    assert head.rstrip('\n') == HEAD.rstrip('\n')
    assert len(FAILURES) >= 20 and sorted(sections) == list(range(1, len(FAILURES) + 1))
