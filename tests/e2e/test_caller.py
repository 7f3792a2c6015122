"""What the caller works in: an activated environment and his own packages are there for `sh -c 'python …'` too; and words of the
command that name files which are not there are told before the start."""
import os
import subprocess
from pathlib import Path

import pytest

from test_staging import told

MINOR = subprocess.run(['/usr/bin/python3', '-c', 'import sys; print(sys.version_info[1])'], stdout=subprocess.PIPE, text=True).stdout.strip()
IMPORT = 'import only_here, sys; print(only_here.answer, sys.prefix)'


def make_venv(hood, where, base='/usr/bin/python3'):
    subprocess.run([base, '-m', 'venv', '--without-pip', where], check=True)
    hood.write(next(where.glob('lib/python3*/site-packages')) / 'only_here.py', 'answer = 42\n')
    for path in [where, *where.rglob('*')]:
        hood.who.give(path)
    return where


def active(hood, venv):
    """As its bin/activate does it."""
    return {'VIRTUAL_ENV': str(venv), 'PATH': f'{venv}/bin:{hood.env["PATH"]}'}


def log(hood, command, *options, **others):
    result = hood.run(command, *options, **others)
    assert result.status == 0, (result, hood.cli('logs', result.json['id']).err)
    return hood.log(result.json['id'])


def test_an_activated_environment_is_there_behind_a_shell_and_for_scripts(hood):
    venv = make_venv(hood, hood.dir / 'venv')
    hood.write('script.py', f'#!/usr/bin/env python3\n{IMPORT}\n', 0o755)
    hood.write('wrapper.sh', '#!/bin/sh\npython "$@"\n', 0o755)
    for command in (['sh', '-c', f'python -c "{IMPORT}"'], ['./script.py'], ['./wrapper.sh', 'script.py'], ['python', 'script.py']):
        assert log(hood, command, env=active(hood, venv)) == f'42 {venv}\n', command
    assert log(hood, 'echo $VIRTUAL_ENV; command -v python', env=active(hood, venv)) == f'{venv}\n{venv}/bin/python\n'
    # By either of the two alone.
    for env in ({'VIRTUAL_ENV': str(venv)}, {'PATH': active(hood, venv)['PATH']}):
        assert log(hood, f'python -c "{IMPORT}"', env=env) == f'42 {venv}\n', env
    # With a package beside it that is copied in, the environment is not.
    hood.write('pkg/__init__.py', 'from only_here import answer\n')
    result = hood.run('python -c "import pkg; print(pkg.answer)"', '--input', '.', env=active(hood, venv))
    assert result.status == 0 and hood.log(result.json['id']) == '42\n', result
    assert not [i for i in hood.succeed('show', result.json['id'], '--json').json['inputs'] if 'venv' in i['path']]


def test_it_can_only_be_read(hood):
    venv = make_venv(hood, hood.dir / 'venv')
    result = hood.run(f'! touch {venv}/lib/new && ! rm {venv}/pyvenv.cfg', env=active(hood, venv))
    assert result.status == 0 and not (venv / 'lib/new').exists(), result


def test_the_base_of_an_environment_comes_along(hood):
    """An environment made from a Python of its own, as pyenv and uv do."""
    base = hood.base / 'python'
    for name in ('bin', f'lib/python3.{MINOR}'):
        (base / name).mkdir(parents=True)
    (base / 'bin/python3').symlink_to('/usr/bin/python3')
    hood.write(base / f'lib/python3.{MINOR}/os.py', '')
    venv = hood.base / 'venv'
    hood.write(venv / 'pyvenv.cfg', f'home = {base}/bin\n')
    hood.write(venv / 'bin/tool', f'#!/bin/sh\nls {base}/lib\n', 0o755)
    for path in [base, *base.rglob('*')]:
        hood.who.give(path)
    assert log(hood, 'tool', env=active(hood, venv)) == f'python3.{MINOR}\n'


def test_a_conda_prefix_is_shown(hood):
    prefix = hood.home / 'miniconda/envs/x'
    hood.write(prefix / 'conda-meta/history', '')
    hood.write(prefix / 'bin/tool', '#!/bin/sh\necho conda $CONDA_PREFIX\n', 0o755)
    assert log(hood, 'tool', env={'CONDA_PREFIX': str(prefix)}) == f'conda {prefix}\n'


def test_an_environment_that_may_not_be_shown_is_named_and_the_analysis_runs(hood):
    hood.write(hood.home / 'pyvenv.cfg', '')
    secret = hood.write(hood.home / 'secret', 'not yours\n')
    result = hood.run(f'cat {secret} || echo hidden', env={'VIRTUAL_ENV': str(hood.home)})
    assert result.status == 0 and 'not yours' not in hood.log(result.json['id']), result
    [note] = told(result)
    assert str(hood.home) in note and 'VIRTUAL_ENV' in note and 'home' in note and '--ro' in note, note
    for value in ('relative', '/nowhere/such', '/etc', ''):
        assert told(hood.run('true', env={'VIRTUAL_ENV': value, 'CONDA_PREFIX': value})) == []


def test_a_users_own_packages_are_shown(hood):
    hood.write(hood.home / f'.local/lib/python3.{MINOR}/site-packages/mine.py', 'x = "user site"\n')
    hood.write(hood.home / '.local/secret', 'not yours\n')
    result = hood.run(f'python3 -c "import mine; print(mine.x)"; cat {hood.home}/.local/secret')
    assert hood.log(result.json['id']).startswith('user site\n') and 'not yours' not in hood.log(result.json['id']), result
    assert log(hood, 'python3 -c "import mine" 2>/dev/null || echo none', env={'PYTHONNOUSERSITE': '1'}) == 'none\n'


def test_pythonpath_is_shown_where_ro_would_be_and_the_rest_is_named(hood):
    lib, closed = hood.directory('lib'), hood.home / '.ssh'
    hood.write(lib / 'mine.py', 'x = "by path"\n')
    hood.write('src/near.py', 'x = "copied"\n')
    hood.write(closed / 'key.py', 'x = "not yours"\n')
    env = {'PYTHONPATH': f'{lib}:src:{hood.home}:{closed}:/nowhere/such:/usr/lib/python3:{hood.home / "state"}:/proc'}
    hood.run('true')  # there is a state directory
    result = hood.run('echo $PYTHONPATH; python3 -c "import mine, near; print(mine.x, near.x)"; python3 -c "import key" 2>/dev/null || echo hidden', '--input', 'src', env=env)
    assert hood.log(result.json['id']).splitlines() == [f'{lib}:src:/usr/lib/python3', 'by path copied', 'hidden'], result
    notes = told(result)
    assert len(notes) == 4 and all('PYTHONPATH' in note and '\n' not in note for note in notes), notes
    # On purpose is on purpose.
    assert log(hood, 'echo $PYTHONPATH', '--env', 'PYTHONPATH=/x', env=env) == '/x\n'


def test_rs_libraries_are_shown(hood):
    lib, user, own = hood.directory('rlib'), hood.directory('ruser'), hood.home / 'R/x86_64-pc-linux-gnu-library/4.2'
    hood.write(own / 'pkg/DESCRIPTION', 'Package: pkg\n')
    for place in (lib, user):
        hood.write(place / 'pkg/DESCRIPTION', 'Package: pkg\n')
    assert log(hood, f'echo $R_LIBS $R_LIBS_USER; cat {lib}/pkg/DESCRIPTION {user}/pkg/DESCRIPTION',
               env={'R_LIBS': str(lib), 'R_LIBS_USER': str(user)}) == f'{lib} {user}\nPackage: pkg\nPackage: pkg\n'
    assert log(hood, f'echo $R_LIBS_USER; ls {own}') == f'{hood.home}/R/%p-library/%v\npkg\n'  # R's own default


def test_what_was_active_when_it_was_submitted_is_there_when_it_runs(hood):
    venv, lib = make_venv(hood, hood.base / 'venv'), hood.directory('lib')
    hood.write(lib / 'mine.py', 'x = "by path"\n')
    gone = hood.directory('gone')
    env = {**active(hood, venv), 'PYTHONPATH': f'{lib}:{gone}'}
    ids = [hood.id(), hood.id()]
    hood.succeed('submit', ids[0], '--', 'sh', '-c', f'python -c "{IMPORT}; import mine; print(mine.x)"', env=env)
    hood.succeed('submit', ids[1], '--', 'python', '-c', IMPORT, env=env)
    gone.rmdir()
    said = hood.succeed('worker', '--drain').err
    assert hood.log(ids[0]) == f'42 {venv}\nby path\n' and hood.log(ids[1]) == f'42 {venv}\n'
    assert f"'{gone}' of the submitter's environment is not shown on this host: No such file" in said, said
    request = hood.succeed('show', ids[0], '--json').json['request']
    assert str(venv) in request['shown'] and f'VIRTUAL_ENV={venv}' in request['shown_env'], request


# Words that name files which are not there.

def hints(hood, *command, options=(), **others):
    return [text for text in told(hood.run(list(command), *options, **others)) if 'exists here' in text]


def test_a_file_that_exists_and_is_not_shown_is_told_before_the_start(hood):
    hood.write('fit.R', '')
    hood.write('pkg/x.py', '')
    assert hints(hood, 'echo', 'fit.R', options=['--no-stage']) == ['fit.R exists here but is not shown to the analysis; add --input fit.R']
    assert hints(hood, 'ls', './pkg') == ['./pkg exists here but is not shown to the analysis; add --input pkg']
    far = hood.write(hood.base / 'far.R', '')
    assert hints(hood, 'echo', str(far)) == [f'{far} exists here but is not shown to the analysis; add --ro {far}']
    assert hints(hood, 'echo', '../far.R') == ['../far.R exists here but is not shown to the analysis; add --input ../far.R, and name it far.R']
    result = hood.cli('run', hood.id(), '--', 'sh', '-c', 'echo started >&2', 'pkg')
    assert result.err.index('pkg exists here') < result.err.index('started') and result.err.count('pkg exists') == 1, result
    result = hood.cli('submit', hood.id(), '--', 'ls', 'pkg')
    assert result.status == 0 and 'warning: pkg exists here but is not shown to the analysis; add --input pkg' in result.err, result
    plan = hood.succeed('run', '--dry-run', '--', 'ls', 'pkg').out
    assert 'warning     pkg exists here' in plan, plan
    hood.succeed('cancel', *[row['id'] for row in hood.succeed('ls', '--json').json if row['state'] == 'queued'])


def test_what_is_shown_or_is_no_name_is_not_told(hood):
    hood.write('fit.R', '')
    hood.write('pkg/x.py', '')
    hood.write('-c', '')
    hood.write('true', '')
    far = hood.write(hood.base / 'far/x', '')
    for command, options in [(['cat', 'fit.R'], []), (['ls', 'pkg', 'pkg/'], ['--input', 'pkg']), (['ls', 'pkg'], ['--input', '.']), (['ls', 'data', 'docs/method.md'], []),
                             (['ls', str(hood.dir / 'data/genes.csv')], []), (['ls', '/usr', '/etc/passwd', '/dev/null', '/proc', '/'], []),
                             (['cat', str(far)], ['--ro', far.parent]), (['echo', '-c', 'nothing', '--', '.', '..', '', 'a b', 'x\ny'], []),
                             (['sh', '-c', 'true'], []), (['echo', f'{hood.dir}/nowhere', 'x' * 5000], [])]:
        assert hints(hood, *command, options=options) == [], command


@pytest.mark.only('user')
def test_nothing_is_said_of_what_the_caller_could_not_read(hood):
    secret = hood.write(hood.base / 'closed/secret', '')
    os.chmod(secret.parent, 0)
    os.chown(secret.parent, os.geteuid(), os.getegid())
    hood.write('unreadable', '', 0)
    assert hints(hood, 'echo', str(secret), str(secret.parent), str(Path('/root')), 'unreadable', options=['--no-stage']) == []


# What a Python program imports, and lies beside it.

SAID = '{} imports {}, which lies beside it but is not shown to the analysis; add --input {}'


@pytest.mark.parametrize('text, beside, said', [
    ('import helper\n', ['helper.py'], [('analysis.py', 'helper', 'helper.py')]),
    ('if True:\n    from helper import a, b\n', ['helper.py'], [('analysis.py', 'helper', 'helper.py')]),
    ('import pkg.deep as p, os\r\n', ['pkg/__init__.py', 'os.txt'], [('analysis.py', 'pkg.deep', 'pkg')]),
    ('import pkg.deep\n', ['pkg/deep.py'], [('analysis.py', 'pkg.deep', 'pkg')]),
    ('import pkg\n', ['pkg/readme.txt'], []),
    ('import data\nimport api_, nothing\n', ['data.txt'], []),
    ('print("import helper")\n', ['helper.py'], []),
])
def test_what_a_script_imports_from_beside_it_is_told_before_the_start(hood, text, beside, said):
    for name in beside:
        hood.write(name, 'a = b = 1\n')
    result = hood.python(text)
    assert told(result) == [SAID.format(*words) for words in said], result


def test_what_is_told_to_add_makes_it_work(hood):
    hood.write('src/analysis.py', 'import helper\nprint(helper.answer)\n')
    hood.write('src/helper.py', 'from more import answer\n')
    hood.write('src/more.py', 'answer = 42\n')
    added = []
    for _ in range(3):
        result = hood.run(['python3', 'src/analysis.py'], *added)
        for text in told(result):
            added += ['--input', text.split(' add --input ')[1]]
    assert added == ['--input', 'src/helper.py', '--input', 'src/more.py']
    assert result.status == 0 and hood.log(result.json['id']) == '42\n', result


def test_a_package_that_imports_its_own_is_looked_at_where_it_lies(hood):
    hood.write('pkg/__init__.py', '')
    hood.write('pkg/main.py', 'from . import part\nfrom .other import x\nimport top\n')
    for name in ('pkg/part.py', 'pkg/other.py', 'top.py', 'pkg/top.py'):
        hood.write(name, 'x = 1\n')
    result = hood.run(['python3', '-m', 'pkg.main'], '--input', 'pkg/__init__.py', '--input', 'pkg/main.py')
    assert [text.split(' add --input ')[1] for text in told(result)][:2] == ['pkg/part.py', 'pkg/other.py'], result


def test_a_program_on_the_command_line_is_looked_at_too(hood):
    hood.write('helper.py', 'x = 1\n')
    hood.write('pkg/part.py', 'x = 1\n')
    assert told(hood.run(['python3', '-c', 'import helper'])) == [SAID.format('the program after -c', 'helper', 'helper.py')]
    assert told(hood.run(['python3', '-u', '-m', 'pkg.part'])) == [SAID.format('the command', 'pkg.part', 'pkg')]
    assert told(hood.run(['sh', '-c', 'import helper'])) == []


def test_a_script_from_elsewhere_names_what_lies_there_in_full(hood):
    script = hood.write(hood.base / 'elsewhere/fit.py', 'import helper\n')
    hood.write(hood.base / 'elsewhere/helper.py', '')
    result = hood.run(['python3', 'run.py'], '--input', f'{script}:run.py')
    assert told(result) == [SAID.format('run.py', 'helper', f'{script.parent}/helper.py:helper.py')], result
    assert hood.run(['python3', 'run.py'], '--input', f'{script}:run.py', '--input', f'{script.parent}/helper.py:helper.py').status == 0


@pytest.mark.only('user')
def test_of_what_the_caller_cannot_read_nothing_is_told(hood):
    hood.write('helper.py', '', 0)
    assert told(hood.python('import helper\n')) == []


def test_a_submission_is_told_when_it_is_made(hood):
    hood.write('helper.py', '')
    hood.write('analysis.py', 'import helper\n')
    submitted = hood.succeed('submit', hood.id(), '--', 'python3', 'analysis.py')
    assert SAID.format('analysis.py', 'helper', 'helper.py') in submitted.err, submitted
