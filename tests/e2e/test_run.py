"""`fumehood run`: one analysis, the whole story."""
import hashlib
import json
import re
import subprocess

import pytest

pytestmark = pytest.mark.asan

ANALYSIS = '''
import csv, json
rows = list(csv.DictReader(open("data/genes.csv")))
print("read", len(rows), "genes")
json.dump({"mean": sum(float(r["value"]) for r in rows) / len(rows)}, open("result.json", "w"))
'''


def names(result):
    return [output['path'] for output in result.json['outputs']]


def test_python3_analysis_py_just_works(hood):
    result = hood.python(ANALYSIS)
    assert result.status == 0, result
    seen = result.json
    assert (seen['verdict'], seen['exit_code'], seen['signal']) == ('succeeded', 0, None)
    assert seen['committed'] is True and seen['attempt'] == 1 and seen['error'] is None
    content = b'{"mean": 0.8}'
    assert seen['outputs'] == [{'path': 'result.json', 'sha256': hashlib.sha256(content).hexdigest(),
                                'size': len(content), 'media_type': 'application/json'}]
    assert seen['rejected_outputs'] == []
    assert seen['usage']['wall_ms'] >= 0
    assert not hood.workspace(seen['id']).exists()


def test_its_output_streams_and_one_line_says_how_it_ended(hood):
    id = hood.id()
    result = hood.cli('run', id, '--', 'sh', '-c', 'echo to stdout; echo to stderr >&2')
    assert result.status == 0 and result.out == 'to stdout\n', result
    assert 'to stderr\n' in result.err
    last = result.err.splitlines()[-1]
    assert id in last and 'succeeded' in last


def test_quiet_says_nothing_of_its_own(caged):
    result = caged.cli('run', caged.id(), '--quiet', '--', 'echo', 'only this')
    assert (result.status, result.out, result.err) == (0, 'only this\n', '')


def test_an_id_is_made_up_when_it_is_left_out(hood):
    result = hood.cli('run', '--json', '--', 'true')
    assert result.status == 0, result
    assert re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9._-]{0,127}', result.json['id'])
    assert hood.verdict(result.json['id']) == 'succeeded'


def test_the_inputs_lie_at_their_own_path_and_in_the_working_directory(hood):
    result = hood.run(f'cat data/genes.csv {hood.dir}/data/genes.csv docs/method.md {hood.dir}/docs/method.md')
    assert result.status == 0, result
    assert hood.log(result.json['id']).count('TP53') == 2


def test_other_directories_can_be_the_inputs(hood):
    hood.write('elsewhere/numbers', '17\n')
    hood.write('papers/paper', 'Fisher\n')
    result = hood.run('cat data/numbers docs/paper', '--data', 'elsewhere', '--docs', 'papers')
    assert result.status == 0, result
    assert hood.log(result.json['id']) == '17\nFisher\n'


def test_inputs_below_tmp_are_visible_too(hood, tmp_path_factory):
    import os
    import shutil
    import tempfile
    directory = tempfile.mkdtemp(prefix=f'fumehood-{hood.tag}-', dir='/tmp')
    os.chmod(directory, 0o755)
    hood.write(f'{directory}/in/x', 'seen\n')
    result = hood.run(f'cat data/x {directory}/in/x; ls -a /tmp', '--data', f'{directory}/in')
    shutil.rmtree(directory)
    assert result.status == 0, result
    assert hood.log(result.json['id']).count('seen') == 2


def test_its_directory_is_its_home_and_has_a_place_for_temporary_files(hood):
    result = hood.run('test "$HOME" = "$PWD" && test "$PWD" = /tmp/scidex-analysis-"$FUMEHOOD_ID" && '
                      'touch "$TMPDIR"/x /tmp/y && test "$MPLBACKEND" = Agg')
    assert result.status == 0, result
    assert names(result) == []


# Staging.

def test_relative_arguments_that_name_files_are_staged(hood):
    hood.write('sub/dir/more.txt', 'two\n')
    hood.write('params.txt', 'one\n')
    hood.write('other.txt', 'never\n')
    result = hood.run(['sh', '-c', 'cat "$@"; test ! -e other.txt', 'sh', 'params.txt', 'sub/dir/more.txt', './params.txt'])
    assert result.status == 0, result
    assert hood.log(result.json['id']) == 'one\ntwo\none\n'
    assert names(result) == []


def test_staged_files_are_recorded_with_their_digest(hood):
    hood.write('params.txt', 'one\n')
    id = hood.run(['cat', 'params.txt']).json['id']
    shown = json.dumps(json.loads(hood.succeed('show', id, '--json').out))
    assert hashlib.sha256(b'one\n').hexdigest() in shown


def test_a_script_by_its_own_name_is_staged_and_executable(hood):
    hood.write('go.sh', '#!/bin/sh\necho went\n', 0o755)
    result = hood.run(['./go.sh'])
    assert result.status == 0, result
    assert hood.log(result.json['id']) == 'went\n'


def test_what_was_staged_can_be_changed_and_is_then_an_output(hood):
    hood.write('model.txt', 'old\n')
    hood.write('same.txt', 'same\n')
    result = hood.run(['sh', '-c', 'echo new > "$0"; cat "$1"', 'model.txt', 'same.txt'])
    assert result.status == 0 and names(result) == ['model.txt'], result
    assert (hood.dir / 'model.txt').read_text() == 'old\n'


def test_files_below_the_inputs_are_not_staged(hood):
    result = hood.run(['sh', '-c', 'cat "$0" && ! { echo x >> "$0"; } 2>/dev/null', 'data/genes.csv'])
    assert result.status == 0 and names(result) == [], result


def test_a_link_is_not_staged_and_the_reason_is_said(hood):
    (hood.dir / 'link.txt').symlink_to('/etc/hostname')
    result = hood.run(['cat', 'link.txt'])
    assert result.status == 125 and result.json['verdict'] == 'refused', result
    assert 'link.txt' in result.json['error']['message'] and 'link' in result.json['error']['message']
    assert hood.nothing_was_recorded()


def test_a_file_that_is_too_large_is_not_staged_and_the_reason_is_said(hood):
    with open(hood.write('huge.bin', ''), 'r+b') as file:
        file.truncate(1 << 42)
    result = hood.run(['wc', '-c', 'huge.bin'])
    assert result.status == 125 and 'huge.bin' in result.json['error']['message'], result


def test_no_stage_stages_nothing(hood):
    hood.write('params.txt', 'one\n')
    assert hood.run(['cat', 'params.txt'], '--no-stage').status == 1


def test_input_stages_a_file_under_another_name(hood):
    source = hood.write(f'{hood.home}/far/away.txt', 'far\n')
    result = hood.run('cat near/by.txt away.txt', '--input', f'{source}:near/by.txt', '--input', source)
    assert result.status == 0, result
    assert hood.log(result.json['id']) == 'far\nfar\n'


# Interpreters.

def make_venv(hood, where):
    subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', where], check=True)
    packages = next(where.glob('lib/python3*/site-packages'))
    (packages / 'only_here.py').write_text('answer = 42\n')
    for path in [where, *where.rglob('*')]:
        hood.who.give(path)


VENV_ANALYSIS = 'import sys, only_here; print(only_here.answer, sys.prefix)\n'


@pytest.mark.parametrize('how', ['by its path', 'activated', 'relative'])
def test_a_virtual_environment_is_shown_by_itself(hood, how):
    venv = hood.home / 'venv' if how != 'relative' else hood.dir / 'venv'
    make_venv(hood, venv)
    hood.write('analysis.py', VENV_ANALYSIS)
    python = {'by its path': f'{venv}/bin/python3', 'activated': 'python3', 'relative': 'venv/bin/python3'}[how]
    env = {'PATH': f'{venv}/bin:{hood.env["PATH"]}', 'VIRTUAL_ENV': str(venv)} if how == 'activated' else {}
    result = hood.run([python, 'analysis.py'], env=env)
    assert result.status == 0, (result, hood.log(result.json['id']))
    assert hood.log(result.json['id']) == f'42 {venv}\n'
    assert str(venv) in json.dumps(result.json['receipt'])


SHIM = '''#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x
program="${0##*/}"
export PYENV_ROOT="%(root)s"
exec "%(root)s/libexec/pyenv" exec "$program" "$@"
'''
PYENV = '''#!/usr/bin/env bash
version=$(cat "%(root)s/version")
case $1 in
which) echo "%(root)s/versions/$version/bin/$2" ;;
exec) shift; program=$1; shift; exec "%(root)s/versions/$version/bin/$program" "$@" ;;
esac
'''


def test_what_a_pyenv_shim_stands_for_is_shown_by_itself(hood):
    root = hood.home / '.pyenv'
    make_venv(hood, root / 'versions/3.11.99')
    hood.write(f'{root}/version', '3.11.99\n')
    hood.write(f'{root}/shims/python3', SHIM % {'root': root}, 0o755)
    hood.write(f'{root}/libexec/pyenv', PYENV % {'root': root}, 0o755)
    hood.write(f'{root}/bin/pyenv', PYENV % {'root': root}, 0o755)
    hood.write('analysis.py', VENV_ANALYSIS)
    result = hood.run(['python3', 'analysis.py'],
                      env={'PATH': f'{root}/shims:{root}/bin:{hood.env["PATH"]}', 'PYENV_ROOT': str(root)})
    assert result.status == 0, result
    assert hood.log(result.json['id']) == f'42 {root}/versions/3.11.99\n'


def test_a_program_that_is_not_there_inside_gets_an_error_that_names_the_ro_to_add(hood):
    tool = hood.write(f'{hood.home}/tools/bin/tool', '#!/bin/sh\ncat "${0%/*}"/../share/it\n', 0o755)
    hood.write(f'{hood.home}/tools/share/it', 'worked\n')
    result = hood.run([str(tool)])
    assert result.status in (125, 126, 127), result
    added = re.search(r'--ro (\S+)', result.json['error']['message'])
    assert added, result
    result = hood.run([str(tool)], '--ro', f'{hood.home}/tools')
    assert result.status == 0 and hood.log(result.json['id']) == 'worked\n', result


def test_ro_shows_a_path_where_it_is_wanted(hood):
    hood.write(f'{hood.home}/reference/x', 'at its own path and at another\n')
    where = f'{hood.home}/reference'
    result = hood.run(f'cat {where}/x', '--ro', where)
    assert result.status == 0, result
    result = hood.run('cat /opt/reference/x && ! touch /opt/reference/y', '--ro', f'{where}:/opt/reference')
    assert result.status == 0, result


# Outputs.

MAKE_OUTPUTS = 'mkdir -p a/b __pycache__ .cache/x; echo 1 > a/one.csv; echo 2 > a/b/two.csv; echo 3 > three.txt; ' \
               'echo c > __pycache__/x.pyc; echo c > .cache/x/y; echo t > /tmp/t; echo t > "$TMPDIR"/u'


@pytest.mark.parametrize('options, expected', [
    ([], ['a/b/two.csv', 'a/one.csv', 'three.txt']),
    (['--output', '*.txt'], ['three.txt']),
    (['--output', 'a/*.csv'], ['a/one.csv']),
    (['--output', '**/*.csv'], ['a/b/two.csv', 'a/one.csv']),
    (['--output', 'a'], ['a/b/two.csv', 'a/one.csv']),
    (['--output', 'a/b/', '--optional-output', 'nothing*'], ['a/b/two.csv']),
    (['--optional-output', 'three.txt'], ['three.txt']),
])
def test_outputs_are_what_was_declared_or_else_everything_that_it_made(hood, options, expected):
    result = hood.run(MAKE_OUTPUTS, *options)
    assert result.status == 0 and names(result) == expected, result


def test_a_missing_output_is_a_verdict_that_says_what_was_there_instead(hood):
    result = hood.run('echo x > results.csv', '--output', 'result.csv')
    assert result.status == 122 and result.json['verdict'] == 'output_missing', result
    plain = hood.cli('run', hood.id(), '--output', 'result.csv', '--', 'sh', '-c', 'echo x > results.csv')
    assert plain.status == 122 and "result.csv" in plain.err and 'results.csv' in plain.err, plain


def test_what_is_no_regular_file_is_rejected_with_the_reason(hood):
    result = hood.run('echo x > good; ln -s good link; ln good hard; mkfifo fifo')
    assert result.status == 0, result
    reasons = {r['path']: r['reason'] for r in result.json['rejected_outputs']}
    assert 'link' in reasons['link'] and 'fifo' in reasons
    assert {'good', 'hard'} <= reasons.keys(), 'a file with two names is not one file'


def test_a_name_that_is_not_utf8_survives(hood):
    result = hood.run(r"printf x > \"$(printf 'caf\351.txt')\"".replace('\\"', '"'), id=(id := hood.id()))
    assert result.status == 0, result
    [output] = result.json['outputs']
    import base64
    assert base64.b64decode(output['path_b64']) == b'caf\xe9.txt'
    target = hood.directory('got')
    hood.succeed('get', id, b'caf\xe9.txt'.decode(errors='surrogateescape'), '-o', target / 'x')
    assert (target / 'x').read_bytes() == b'x'


def test_into_copies_the_outputs_after_the_commit(hood):
    result = hood.run(MAKE_OUTPUTS, '--into', hood.dir / 'results')
    assert result.status == 0, result
    assert (hood.dir / 'results/a/b/two.csv').read_text() == '2\n'
    assert (hood.dir / 'results/three.txt').stat().st_uid == (hood.who.uid or 0 if hood.who.is_root else hood.dir.stat().st_uid)


# Environment and stdin.

def test_the_environment_is_an_allow_list(hood):
    result = hood.run('env', env={'PGPASSWORD': 'hunter2', 'AWS_SECRET_ACCESS_KEY': 'hunter3'})
    assert result.status == 0, result
    assert 'hunter' not in hood.log(result.json['id'])


def test_env_adds_to_it(hood):
    result = hood.run('echo $GIVEN $TAKEN', '--env', 'GIVEN=this one', '--env', 'TAKEN', env={'TAKEN': 'from me'})
    assert hood.log(result.json['id']) == 'this one from me\n', result


def test_stdin_is_empty_unless_asked_for(hood):
    result = hood.run('wc -c', stdin='hello\n')
    assert hood.log(result.json['id']).strip() == '0', result
    result = hood.run('wc -c', '-i', stdin='hello\n')
    assert hood.log(result.json['id']).strip() == '6', result


# Verdicts.

@pytest.mark.parametrize('command, options, status, verdict, exit_code, signal', [
    ('exit 0', [], 0, 'succeeded', 0, None),
    ('exit 3', [], 3, 'failed', 3, None),
    ('exit 125', [], 125, 'failed', 125, None),
    ('kill -9 $$', [], 137, 'failed', None, 9),
    ('kill -SEGV $$', [], 139, 'failed', None, 11),
    ('kill -ABRT $$', [], 134, 'failed', None, 6),
    (['no-such-command'], [], 127, 'failed', None, None),
    (['./plain.txt'], [], 126, 'failed', None, None),
    ('sleep 1000', ['--wall', '200ms', '--grace', '100ms'], 124, 'timed_out', None, None),
    ('true', ['--output', 'nothing'], 122, 'output_missing', 0, None),
])
def test_the_exit_status_says_how_it_ended(hood, command, options, status, verdict, exit_code, signal):
    hood.write('plain.txt', 'no program\n')
    result = hood.run(command, *options)
    assert result.status == status and result.json['verdict'] == verdict, result
    if status not in (124, 126, 127):
        assert (result.json['exit_code'], result.json['signal']) == (exit_code, signal)
    assert result.json['committed'] is True


def test_a_failing_analysis_keeps_its_outputs_and_its_log(hood):
    result = hood.run('echo half > half.txt; echo because >&2; exit 7')
    assert result.status == 7 and names(result) == ['half.txt'], result
    assert 'because' in hood.log(result.json['id'])


def test_nothing_survives_the_end(hood):
    result = hood.run(f'for i in 1 2 3; do setsid nohup sh -c "exec sleep 4711" {hood.tag} >/dev/null 2>&1 & done; echo x')
    assert result.status == 0, result  # The fixture looks for the processes.


# Attempts.

def test_after_a_failure_the_same_id_is_the_next_attempt(hood):
    id = hood.id()
    assert hood.run('exit 1', id=id).json['attempt'] == 1
    result = hood.run('true', id=id)
    assert result.status == 0 and result.json['attempt'] == 2, result
    assert [a['verdict'] for a in json.loads(hood.succeed('show', id, '--json').out)['attempts']] == ['failed', 'succeeded']


def test_after_success_another_attempt_must_be_asked_for(hood):
    id = hood.id()
    assert hood.run('true', id=id).status == 0
    result = hood.run('true', id=id)
    assert result.status == 125 and '--again' in result.json['error']['message'], result
    assert hood.run('true', '--again', id=id).json['attempt'] == 2


def test_an_id_that_is_running_is_refused(hood):
    process, id = hood.start('echo ready; exec sleep 1000')
    result = hood.run('true', id=id)
    process.terminate()
    process.communicate()
    assert result.status == 125 and result.json['error']['code'] == 'busy', result
    assert hood.verdict(id) == 'cancelled'


# --dry-run and --keep.

def test_dry_run_shows_the_plan_and_touches_nothing(hood):
    id = hood.id()
    hood.write('analysis.py', 'print(1)\n')
    result = hood.cli('run', id, '--dry-run', '--memory', '300M', '--', 'python3', 'analysis.py')
    assert result.status == 0, result
    for word in ['analysis.py', str(hood.dir / 'data'), f'/tmp/scidex-analysis-{id}', '300M', 'wall', 'pids', 'disk']:
        assert word in result.out, word
    assert not hood.workspace(id).exists()
    assert not (hood.home / 'share').exists() or hood.nothing_was_recorded()


def test_dry_run_as_json_is_one_object(hood):
    result = hood.run('true', '--dry-run', '--wall', '90s')
    assert result.status == 0 and isinstance(result.json, dict), result


@pytest.mark.parametrize('keep, command, stays', [
    ('never', 'exit 1', False), ('on-failure', 'exit 1', True), ('on-failure', 'exit 0', False), ('always', 'exit 0', True)])
def test_a_workspace_stays_only_when_asked_for(hood, keep, command, stays):
    id = hood.id()
    hood.run(f'echo x > kept.txt; {command}', '--keep', keep, id=id)
    assert hood.workspace(id).exists() is stays
    if stays:
        assert (hood.workspace(id) / 'kept.txt').read_text() == 'x\n'
        assert hood.workspace(id).stat().st_mode & 0o777 == 0o700
        hood.succeed('gc')
        assert hood.workspace(id).exists(), 'gc leaves alone what is to be kept'
        hood.succeed('workspace', 'cleanup', id)
    assert not hood.workspace(id).exists()


def test_an_id_that_is_in_the_queue_is_not_run_beside_it(hood):
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    result = hood.run('true', id=id)
    assert result.status == 125 and f"'{id}' was submitted and is queued" in result.json['error']['message'], result
    hood.succeed('cancel', id)
    assert hood.run('true', id=id).status == 0
