"""The module as tools see it: types, signatures, pickles, documentation."""
import ast
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / 'bindings/python'
sys.path.insert(0, str(PACKAGE))
import fumehood  # noqa: E402

ERRORS = [value for value in vars(fumehood).values()
          if isinstance(value, type) and issubclass(value, fumehood.FumehoodError)]
PROGRAM = '''
from typing import List, Optional
import fumehood

def rows(outputs: fumehood.Outputs) -> fumehood.Rows:
    return {"t": [{"path": path, "size": file.size} for path, file in outputs.items()]}

async def main() -> Optional[str]:
    with fumehood.Analysis("a", limits=fumehood.Limits(memory="2G", cpus=0.5), outputs=["x"]) as a:
        result = a.run(["true"], check=True)
        peak: Optional[int] = result.usage.memory_peak_bytes
        a.commit(rows={"t": [{"peak": peak}]}, result=[1])
    names: List[str] = [o.path for o in (await fumehood.run_async("true", id="b")).outputs]
    fumehood.post_process("c", rows)
    return names[0] if names else None
'''


def mypy(*arguments, cwd):
    return subprocess.run(['/usr/bin/mypy', '--strict', f'--cache-dir={cwd}/cache', *map(str, arguments)], cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={'PATH': '/usr/bin:/bin', 'MYPYPATH': str(PACKAGE)})


def test_mypy_strict_is_content(tmp_path):
    (tmp_path / 'program.py').write_text(PROGRAM)
    (tmp_path / 'wrong.py').write_text('import fumehood\nfumehood.Limits(memroy="2G")\n')
    done = mypy(PACKAGE / 'fumehood', tmp_path / 'program.py', '--python-version', '3.9', cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert 'memroy' in mypy(tmp_path / 'wrong.py', '--python-version', '3.9', cwd=tmp_path).stdout


def test_every_exception_can_be_pickled():
    result = fumehood.Result('a', 1, 'failed', 3, exit_code=3, stderr='one\ntwo\n')
    assert len(ERRORS) >= 18
    for kind in ERRORS:
        error = kind('what, to what, and why', stage='plan', errnum=2, result=result)
        error.more = 'mine'
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and again.log == ('one', 'two')
        assert (again.stage, again.errnum, again.result, again.more) == ('plan', 2, result, 'mine')


def test_results_are_frozen():
    result = fumehood.Result('a', 1, 'failed', 3)
    with pytest.raises(Exception):
        result.verdict = 'succeeded'
    assert result == pickle.loads(pickle.dumps(result)) and hash(result.usage) == hash(fumehood.Usage())


def test_what_it_ran_in_is_told_as_far_as_it_is_known():
    listed = {'id': 'a', 'state': 'running', 'verdict': None, 'attempt': 1, 'created': None, 'started': None, 'usage': None, 'owner': None}
    engine = {'engine': 'slurm', 'job': '13_0', 'state': 'PENDING', 'of_a_newer_version': True}
    assert fumehood.Listed.of({**listed, 'engine': engine}).engine == fumehood.Engine('slurm', job='13_0', state='PENDING')
    assert fumehood.Listed.of(listed).engine is None
    job = fumehood.Job.of({'id': 'a', 'state': 'running', 'engine': engine})
    assert job.engine is not None and job.engine.node is None


def test_every_way_to_run_has_the_same_options():
    """What Request knows, each of them takes; the queue's own only submit()."""
    queue = {'priority', 'retries', 'retry_on', 'after', 'submitter', 'slurm'}
    options = set(inspect.signature(fumehood.Request).parameters) - {'id', 'command'}
    for function, aside in ((fumehood.Analysis, queue), (fumehood.start, queue), (fumehood.run_async, queue),
                            (fumehood.run, queue | {'directory'}), (fumehood.Popen, queue | {'directory'}),
                            (fumehood.submit, set())):
        assert options - aside - set(inspect.signature(function).parameters) == set(), function


def test_a_request_has_every_key_of_the_format():
    import json
    schema = json.loads((TOP / 'docs/schema/request.schema.json').read_text())
    names = {'output': 'outputs', 'optional_output': 'optional_outputs', 'input': 'inputs', 'no_stage': 'stage', 'from': 'from_'}
    known = set(inspect.signature(fumehood.Request).parameters)
    assert {names.get(key, key) for key in schema['properties']} - known - {'stdin'} == set()
    limits = set(inspect.signature(fumehood.Limits).parameters)
    assert limits == set(schema['$defs']['limits']['properties'])


def test_what_the_library_says_of_options_is_said_in_python():
    import json
    from fumehood._errors import in_python
    schema = json.loads((TOP / 'docs/schema/request.schema.json').read_text())
    for key in [*schema['properties'], *schema['$defs']['limits']['properties'], 'db', 'config']:
        option = '--' + key.replace('_', '-')
        if key not in ('id', 'command', 'limits', 'stdin', 'submitter', 'directory'):
            assert option not in in_python(f'or pass {option}'), option
    assert in_python("'a' has already succeeded: --again makes another attempt, `fumehood show a` shows the last one") == \
        "'a' has already succeeded: again=True makes another attempt, fumehood.show('a') shows the last one"
    assert in_python("cannot use --input 'x--again': --input FILE:NAME") == "cannot use inputs='x--again': inputs=[(FILE, NAME)]"
    assert in_python('the memory limit cannot be held: or pass --allow-unlimited') == \
        'the memory limit cannot be held: or pass allow_unlimited=True'
    assert in_python("run 'fumehood doctor --delegate me' as root once") == "run 'fumehood doctor --delegate me' as root once"


def test_words_that_are_chosen_from_are_typed(tmp_path):
    """A verdict, a stream, a state that is none is the type checker's to find."""
    wrong = ['fumehood.Request(keep="sometimes")', 'fumehood.run("true", strength="some")', 'fumehood.ls("runing")',
             'fumehood.logs("a", "stdot")', 'fumehood.db("inti")', 'fumehood.submit("true", retry_on="lots")',
             'fumehood.run("true", shel=True)', 'fumehood.load("a").verdict == "succeded"']
    (tmp_path / 'wrong.py').write_text('import fumehood\n' + '\n'.join(wrong) + '\n')
    said = mypy(tmp_path / 'wrong.py', '--python-version', '3.9', cwd=tmp_path).stdout
    for line, text in enumerate(wrong, 2):
        assert f'wrong.py:{line}:' in said, f'{text} is not found\n{said}'


def test_limits_are_written_as_the_library_reads_them():
    from datetime import timedelta
    given = dict(fumehood.Limits(wall=timedelta(minutes=10), cpus=0.5, memory=2**31, pids='none', grace=0.0001).items())
    assert given == {'wall': '600', 'cpus': '0.5', 'memory': '2147483648', 'pids': 'none', 'grace': '0.0001'}


def test_all_that_is_public_is_documented():
    guide = (TOP / 'docs/PYTHON.md').read_text()
    for name in fumehood.__all__:
        assert name in ("subprocess", "Rows") or inspect.getdoc(getattr(fumehood, name)), name
        assert re.search(rf'\b{name}\b', guide), f'{name} is not in docs/PYTHON.md'
    for block in re.findall(r'^```python\n(.*?)^```', guide, re.M | re.S):
        compile(block, 'docs/PYTHON.md', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_installed_files_are_all_of_them():
    listed = set(re.findall(r"'fumehood/([^']+)'", (PACKAGE / 'meson.build').read_text()))
    assert listed == {path.name for path in (PACKAGE / 'fumehood').iterdir() if path.is_file()}


def test_no_third_party_is_imported():
    ours = {'fumehood'}
    for path in (PACKAGE / 'fumehood').glob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {name.split('.')[0] for name in names} <= set(sys.stdlib_module_names) | ours, path


def test_without_the_library_one_sentence_says_so():
    done = subprocess.run(['/usr/bin/python3', '-c', 'import fumehood; fumehood.ls()'], stderr=subprocess.PIPE, text=True,
                          env={'PYTHONPATH': str(PACKAGE), 'FUMEHOOD_LIBRARY': '/none.so'})
    assert 'LibraryNotFound: libfumehood.so was not found: install it' in done.stderr
