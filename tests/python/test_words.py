"""What a user of the module is told: one calling shape, wrong values in a sentence, messages in Python's words."""
import re
import sys
from pathlib import Path

import pytest

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
say([first, {name: sorted(options - set(shape) - {"directory", "priority", "after", "retries", "retry_on", "submitter", "slurm"}) for name, shape in shapes.items()}])
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
        if source.parent.name in ('cli', 'init', 'web'):
            continue
        for literal in re.finditer(r'(?:"(?:[^"\\]|\\.)*"\s*)+', source.read_text()):
            text = ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal.group(0))).replace('--%s', '--data').replace('%s', 'x')
            if re.search(r'(?<![\w-])--[a-z]', text) and ' ' in text:
                seen += 1
                if '--' in in_python(text):
                    left.append(f'{source.name}: {in_python(text)}')
    for_shells = ('--delegate', '--apparmor', '--mem', '--time', '--array', '--take', '--lease %llums', '--cap-add', '--security-opt', '--map-current-user')  # root's, Slurm's, the command's, containers'
    assert seen > 20 and [text for text in left if not any(word in text for word in for_shells)] == []


# Every parameter of every public function with values that make no sense there, one at a time.
FUZZ = '''
import inspect
BAD = [5, 2**70, None, "a\\0b", "\\udcff", [5], {5: "a"}, object()]
GOOD = {"command": ["no-such-program-at-all"], "what": "status", "path": "x", "requests": [], "id": ID(1)}
FOREIGN = ("ctypes", "c_char", "c_int", "c_void", "argument 1", "ArgumentError", "--", "object has no attribute")
def call(function, arguments, options):
    answer = function(*arguments, **options)
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    if hasattr(answer, "close"):
        answer.close()
def arguments_of(function, wrong, value):
    arguments, options = [], {}
    for p in inspect.signature(function).parameters.values():
        given = value if p.name == wrong else GOOD.get(p.name, p.default)
        if p.kind == p.VAR_POSITIONAL:
            arguments.append(value if p.name == wrong else ID(1))
        elif p.kind == p.VAR_KEYWORD:
            continue
        elif p.kind == p.KEYWORD_ONLY:
            if p.name in GOOD or p.name == wrong:
                options[p.name] = given
        else:
            arguments.append(ID(1) if given is p.empty else given)
    if "timeout" in inspect.signature(function).parameters and wrong != "timeout":
        options["timeout"] = 0.5
    return arguments, options
calls, problems = 0, []
for name in sys.argv[1:] or sorted(fumehood.__all__):
    function = getattr(fumehood, name)
    if not inspect.isfunction(function) or name in ("version", "configure", "follow", "wait", "wait_async"):
        continue  # the last ones wait for what nobody runs
    for wrong in inspect.signature(function).parameters:
        for value in BAD:
            if wrong in ("stdin", "stdout", "stderr") and isinstance(value, int):
                continue  # a descriptor, and it may be one
            if wrong == "timeout" and (value is None or value == 5 or value == 2**70):
                continue  # these are times
            calls += 1
            try:
                call(function, *arguments_of(function, wrong, value))
            except (fumehood.FumehoodError, TypeError, ValueError) as e:
                if any(word in str(e) for word in FOREIGN) or len(str(e)) < 8:
                    problems.append([name, wrong, repr(value)[:40], repr(e)[:200]])
            except FileNotFoundError as e:  # as subprocess has it
                pass
            except Exception as e:
                if "has no attribute 'fileno'" in str(e):  # so has it this
                    continue
                problems.append([name, wrong, repr(value)[:40], repr(e)[:200]])
fumehood.cleanup_analysis_temp_dir(ID(1), discard=True)
say([calls, problems])
'''


@pytest.mark.only('user')
def test_no_value_of_a_wrong_type_is_told_in_the_librarys_words(program, hood):
    calls, problems = program(FUZZ)
    assert problems == [] and calls > 500, problems


def test_why_it_failed_is_said_in_pythons_words(program):
    said = program('''
for n, (command, options) in enumerate([
        ("sleep 100", {"limits": fumehood.Limits(wall="200ms")}),
        ("true", {"outputs": ["result.csv"]})]):
    try:
        fumehood.run(command, id=ID(n), check=True, **options)
    except fumehood.AnalysisFailed as e:
        say([str(e), e.result.reason])
''')
    assert [text for pair in said for text in pair if '--' in text] == [], said
    assert said[0][0].endswith('timed_out: the limit is 200ms; limits.wall raises it') and said[0][1] in said[0][0], said
    assert 'outputs are what it leaves in its working directory' in said[1][0], said


def test_a_result_explains_itself_in_ten_lines_and_in_pythons_words(program):
    program.hood.write('table.csv', 'a\n')
    said = program('''
done = fumehood.run(["sh", "-c", "cat table.csv; echo '--wall is what I say' >&2; exit 3"], id=ID(1), explain=True).result
say(done.explain().splitlines())
say(fumehood.load(ID(1)).explain() == done.explain())
say(fumehood.run("sleep 100", id=ID(2), limits=fumehood.Limits(wall="200ms")).result.explain().splitlines())
''')
    assert said[0][:2] == ['verdict: failed', 'evidence: exit status 3'] and said[1] is True, said
    assert "denied: read table.csv (ENOENT): ./table.csv exists outside; add inputs=['table.csv']" in said[0], said
    assert said[0][-1] == 'stderr: --wall is what I say', said
    assert said[2] == ['verdict: timed_out', 'evidence: the limit is 200ms; limits.wall raises it'], said


def test_a_program_that_cannot_be_executed_has_the_reason_below_its_traceback(program):
    program.hood.write('fit.sh', '#!/bin/sh\r\n', 0o755)
    said = program('''
try:
    fumehood.run("./fit.sh", id=ID(1))
except FileNotFoundError as e:
    say([e.filename, getattr(e, "__notes__", None), fumehood.load(ID(1)).reason])
''')
    assert said[0] == './fit.sh' and 'Windows line ends' in said[2] and said[1] in (None, [said[2]]), said
