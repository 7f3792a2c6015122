"""What a user of the module is told: one calling shape, wrong values in a sentence, messages in Python's words."""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def test_what_a_request_is_not_is_said(program):
    said = program('''
for what in ("fumehood.plan(5)", "fumehood.plan(None)", "asyncio.run(fumehood.run_async(['true'], limits={}, timeout=1))",
             "asyncio.run(fumehood.run_async(None))"):
    try:
        eval(what)
    except (TypeError, ValueError) as e:
        say(str(e))
''')
    assert said == ['the request is fumehood.Request(…), not int: 5', 'the request is fumehood.Request(…), not NoneType: None',
                    'limits is fumehood.Limits(…), not dict: {}', 'there is no command: give a list of words, or a text'], said


def test_run_start_and_run_async_are_called_alike(program):
    """The command first, then options by their names, the same ones; what only one of them has, has a reason."""
    said = program('''
import inspect
from fumehood import Request
shapes = {f.__name__: inspect.signature(f).parameters for f in (fumehood.run, fumehood.start, fumehood.run_async, fumehood.submit)}
first = {name: list(shape)[0] for name, shape in shapes.items()}
options = {f.name for f in __import__("dataclasses").fields(Request)} - {"command"}
say([first, {name: sorted(options - set(shape) - {"directory", "priority", "after", "retries", "retry_on", "submitter"}) for name, shape in shapes.items()}])
''')
    first, missing = said
    assert set(first.values()) <= {'command', 'args'}, first
    assert missing == {'run': [], 'start': [], 'run_async': [], 'submit': []}, missing


def test_what_the_library_says_of_options_is_said_in_pythons_words():
    """Of every message in the source that names an option of the command; commands to type in a shell aside."""
    sys.path.insert(0, str(TOP / 'bindings/python'))
    from fumehood._errors import in_python
    sys.path.pop(0)
    left, seen = [], 0
    for source in sorted(TOP.glob('src/*/*.c')):
        if source.parent.name in ('cli', 'init'):
            continue
        for literal in re.finditer(r'(?:"(?:[^"\\]|\\.)*"\s*)+', source.read_text()):
            text = ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal.group(0))).replace('--%s', '--data').replace('%s', 'x')
            if re.search(r'(?<![\w-])--[a-z]', text) and ' ' in text:
                seen += 1
                if '--' in in_python(text):
                    left.append(f'{source.name}: {in_python(text)}')
    for_shells = ('--delegate', '--mem', '--array')  # root's, Slurm's, and what only the command has
    assert seen > 20 and [text for text in left if not any(word in text for word in for_shells)] == []
