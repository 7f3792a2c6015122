"""Several commands in a held workspace: steps of one attempt, committed together, once."""
import json
import os
import signal
import sqlite3
import subprocess

import pytest

import records
from until import until

pytestmark = pytest.mark.asan


@pytest.fixture
def held(hood):
    """An id with a workspace that is held for an hour."""
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    yield id
    hood.cli('workspace', 'cleanup', id, '--discard')


def step(hood, id, script, *options, status=0):
    result = hood.run(script, *options, id=id)
    assert result.status == status, result
    assert result.json['committed'] is False and not result.json['pending'], result
    return result.json


def show(hood, id):
    return json.loads(hood.succeed('show', id, '--json').out)


def outputs(hood, id):
    return sorted(o['path'] for o in json.loads(hood.succeed('outputs', id, '--json').out)['outputs'])


def test_steps_are_one_attempt(hood, held):
    first = step(hood, held, 'echo one > a; echo first; echo oops >&2')
    second = step(hood, held, 'cat a; echo two > b; echo second')
    assert (first['step'], second['step']) == (1, 2)
    assert first['verdict'] == second['verdict'] == 'succeeded' and first['attempt'] == second['attempt'] == 1
    assert [o['path'] for o in second['outputs']] == ['a', 'b'], 'files of every step are outputs'
    assert json.loads(hood.succeed('ls', '--json').out)[0]['state'] == 'held', 'nothing is in the ledger yet'

    done = json.loads(hood.succeed('commit', held, '--json').out)
    assert done['committed'] and done['verdict'] == 'succeeded' and done['attempt'] == 1
    found = show(hood, held)
    assert outputs(hood, held) == ['a', 'b']
    assert [(s['verdict'], s['exit_code'], s['command'][-1]) for s in found['steps']] == [
        ('succeeded', 0, 'echo one > a; echo first; echo oops >&2'), ('succeeded', 0, 'cat a; echo two > b; echo second')]
    for name, total in (('wall_ms', sum), ('cpu_ms', sum), ('memory_peak_bytes', max), ('pids_peak', max)):
        each = [s['usage'][name] for s in found['steps']]
        assert found['usage'][name] == (None if None in each else total(each)), name
    assert hood.succeed('logs', held, '--stdout').out == 'first\none\nsecond\n'
    assert hood.succeed('logs', held, '--stderr').out == 'oops\n'
    assert hood.succeed('logs', held, '--step', '2', '--stdout').out == 'one\nsecond\n'
    assert hood.succeed('workspace', 'cleanup', held).status == 0
    assert len(found['attempts']) == 1 and len(show(hood, held)['attempts']) == 1, 'clean-up has nothing left to commit'


def test_the_first_failure_is_the_verdict(hood, held):
    step(hood, held, 'echo kept > a')
    assert step(hood, held, 'echo half > b; exit 3', status=3)['verdict'] == 'failed'
    step(hood, held, 'cat a b > c')
    done = hood.cli('commit', held, '--json')
    assert done.status == 3 and done.json['verdict'] == 'failed' and done.json['exit_code'] == 3, done
    assert [s['verdict'] for s in show(hood, held)['steps']] == ['succeeded', 'failed', 'succeeded']
    assert outputs(hood, held) == ['a', 'b', 'c']


def test_the_caller_may_know_better(hood, held):
    step(hood, held, 'exit 1', status=1)
    step(hood, held, 'echo mended > a')
    done = json.loads(hood.succeed('commit', held, '--verdict', 'succeeded', '--json').out)
    assert done['verdict'] == 'succeeded' and [s['verdict'] for s in done['steps']] == ['failed', 'succeeded']


@pytest.mark.parametrize('verdict', ['lost', 'refused', 'none', 'great', ''])
def test_a_verdict_that_nobody_may_say(hood, held, verdict):
    step(hood, held, 'true')
    result = hood.cli('commit', held, '--verdict', verdict, '--json')
    assert result.status == 125 and 'succeeded' in result.json['error']['message'], result
    hood.succeed('commit', held)


def test_a_verdict_needs_steps(hood, held):
    result = hood.cli('commit', held, '--verdict', 'failed', '--json')
    assert result.status == 125 and 'step' in result.json['error']['message'], result


def test_what_lay_there_is_an_input_and_what_a_step_made_is_not(hood, held):
    hood.write(hood.workspace(held) / 'given.txt', 'given\n')
    step(hood, held, 'cat given.txt > made.txt; echo x > temporary')
    hood.write(hood.workspace(held) / 'later.txt', 'later\n')
    step(hood, held, 'cat made.txt later.txt > more.txt; rm temporary')
    hood.succeed('commit', held)
    found = show(hood, held)
    assert [o['path'] for o in found['outputs']] == ['made.txt', 'more.txt']
    assert sorted(i['path'] for i in found['inputs']) == ['given.txt', 'later.txt']


def test_declared_outputs_of_each_step(hood, held):
    step(hood, held, 'echo 1 > a.csv; echo 1 > junk', '--output', '*.csv')
    assert step(hood, held, 'echo 2 > b.txt', '--output', 'c.txt', status=122)['verdict'] == 'output_missing'
    step(hood, held, 'echo 3 > c.txt; echo 3 > junk2', '--output', 'c.txt')
    assert hood.cli('commit', held).status == 122
    assert outputs(hood, held) == ['a.csv', 'c.txt']


def test_a_step_that_was_killed_leaves_the_workspace_to_the_next(hood, held):
    step(hood, held, 'echo 1 > a')
    result = hood.run('echo 2 > b; sleep 600', '--wall', '1s', id=held)
    assert result.status == 124 and result.json['verdict'] == 'timed_out', result
    step(hood, held, 'cat a b > c')
    assert hood.cli('commit', held).status == 124
    assert outputs(hood, held) == ['a', 'b', 'c']


def test_a_supervisor_that_is_killed_leaves_a_lost_step(hood, held):
    step(hood, held, 'echo 1 > a')
    process, _ = hood.start('echo 2 > b; echo here; sleep 600', id=held)
    process.kill()
    process.wait()
    step(hood, held, 'cat a b > c')
    assert hood.cli('commit', held, '--json').json['verdict'] == 'lost'
    found = show(hood, held)
    assert [s['verdict'] for s in found['steps']] == ['succeeded', 'lost', 'succeeded']
    assert hood.succeed('logs', held, '--step', '2').out == 'here\n'
    assert outputs(hood, held) == ['a', 'b', 'c']


def test_gc_gives_a_dead_steps_workspace_back(hood, held):
    process, _ = hood.start('echo here; sleep 600', id=held)
    process.kill()
    process.wait()
    hood.succeed('gc')
    assert hood.workspace(held).is_dir() and json.loads(hood.succeed('ls', '--json').out)[0]['state'] == 'held'
    assert hood.cli('commit', held, '--json').json['verdict'] == 'lost'


def test_clean_up_commits_what_ran(hood, held):
    step(hood, held, 'echo 1 > a')
    hood.succeed('workspace', 'cleanup', held)
    assert not hood.workspace(held).exists()
    assert outputs(hood, held) == ['a'] and hood.verdict(held) == 'succeeded'


def test_clean_up_can_discard(hood, held):
    step(hood, held, 'echo 1 > a')
    hood.succeed('workspace', 'cleanup', held, '--discard')
    assert not hood.workspace(held).exists() and hood.nothing_was_recorded()


def test_expiry_commits_what_ran(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '2s')
    step(hood, id, 'echo 1 > a')
    assert until(lambda: hood.succeed('gc') and not hood.workspace(id).exists())
    assert outputs(hood, id) == ['a'] and hood.verdict(id) == 'succeeded'


def test_a_holder_that_died_is_committed(hood):
    """A shell made the workspace, ran a step, and was killed."""
    id = hood.id()
    shell = subprocess.Popen(['sh', '-c', '"$0" workspace create "$1" && "$0" run "$1" -- sh -c "echo 1 > a"; echo ran; read x',
                              str(hood.binary), id], cwd=hood.dir, env=hood.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **hood.who.popen_arguments())
    hood.processes.append(shell)
    while shell.stdout.readline() != 'ran\n':
        pass
    shell.kill()
    shell.wait()
    hood.succeed('gc')
    assert outputs(hood, id) == ['a'] and not hood.workspace(id).exists()


def test_a_second_workspace_commits_what_the_first_holder_left(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1s')
    step(hood, id, 'echo 1 > a')
    path = hood.home / f'state/fumehood/runs/{id}/record.json'
    path.write_text(json.dumps({**records.read(path), 'until': 1}))
    hood.succeed('workspace', 'create', id, '--for', '1h')
    assert os.listdir(hood.workspace(id)) == [] and outputs(hood, id) == ['a']
    hood.succeed('workspace', 'cleanup', id)


def test_commit_twice_and_the_next_attempt(hood, held):
    step(hood, held, 'echo 1 > a')
    hood.succeed('commit', held)
    again = hood.cli('commit', held, '--json')
    assert again.status == 125 and 'already succeeded' in again.json['error']['message'], again
    assert hood.run('true', id=held).status == 125
    assert step(hood, held, 'echo 2 > b', '--again')['step'] == 1
    hood.succeed('commit', held)
    found = show(hood, held)
    assert found['attempt'] == 2 and [o['path'] for o in found['outputs']] == ['b'], 'what is committed was an input to it'


def test_a_script_is_staged_anew_for_each_step(hood, held):
    """The same words twice; and once more after the script was changed."""
    for text in ('one', 'one', 'two'):
        hood.write('script.sh', f'echo {text} >> out\n')
        result = hood.cli('run', held, '--', 'sh', 'script.sh')
        assert result.status == 0, result
    hood.succeed('commit', held)
    assert hood.succeed('get', held, 'out', '-o', '-').out == 'one\none\ntwo\n'
    assert outputs(hood, held) == ['out'], 'the script is an input'


def test_what_a_step_made_is_not_staged_over(hood, held):
    hood.write('out.csv', 'old\n')
    step(hood, held, 'echo new > out.csv')
    result = hood.cli('run', held, '--', 'cat', 'out.csv')
    assert result.status == 125 and "cannot stage 'out.csv'" in result.err and '--no-stage' in result.err, result
    assert hood.succeed('run', held, '--no-stage', '--', 'cat', 'out.csv').out == 'new\n'


def test_again_is_said_once(hood, held):
    """Of an id that has succeeded: the first step asks for another attempt, the others are of it."""
    step(hood, held, 'true')
    hood.succeed('commit', held)
    assert 'has already succeeded' in hood.cli('run', held, '--', 'true').err
    assert step(hood, held, 'true', '--again')['step'] == 1
    assert step(hood, held, 'echo 1 > a')['step'] == 2
    assert json.loads(hood.succeed('commit', held, '--json').out)['attempt'] == 2
    assert 'has already succeeded' in hood.cli('run', held, '--', 'true').err


def test_a_crash_between_commit_and_its_traces(hood, held):
    """The ledger has it, the step's files are still there: nothing is committed twice."""
    step(hood, held, 'echo 1 > a')
    folder = hood.home / f'state/fumehood/runs/{held}'
    kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.name.startswith(('step-', 'made'))}
    hood.succeed('commit', held)
    for name, content in kept.items():
        hood.write(folder / name, content, mode=0o600)
    done = json.loads(hood.succeed('commit', held, '--json').out)
    assert done['committed'] and done['attempt'] == 1
    for name, content in kept.items():
        hood.write(folder / name, content, mode=0o600)
    assert step(hood, held, 'echo 2 > b', '--again')['step'] == 1
    hood.succeed('workspace', 'cleanup', held)
    assert len(show(hood, held)['attempts']) == 2


def test_rows_of_steps(hood, held):
    database = sqlite3.connect(hood.home / 'share/fumehood/ledger.db') if (hood.home / 'share/fumehood').exists() else None
    if database is None:
        hood.succeed('db', 'init')
        database = sqlite3.connect(hood.home / 'share/fumehood/ledger.db')
    database.execute('CREATE TABLE scores(gene TEXT, value FLOAT, analysis_id TEXT)')
    database.commit()
    database.close()
    hood.write('post.py', 'import json\nfor line in open("outputs/rows"): '
               'print(json.dumps({"table": "scores", "row": {"gene": line.strip(), "value": 1}}))\n')
    config = hood.write('config.yaml', "post_process:\n  tables:\n    scores: {columns: [gene, value], fill: "
                                       "{analysis_id: '{id}'}}\n")
    for gene in ('TP53', 'BRCA1'):
        step(hood, held, f'echo {gene} >> rows', '--post-process', 'python3 post.py', '--config', config)
    done = json.loads(hood.succeed('commit', held, '--config', config, '--json').out)
    assert done['verdict'] == 'succeeded' and done['rows'] == 2, done
    database = sqlite3.connect(hood.home / 'share/fumehood/ledger.db')
    assert database.execute('SELECT gene, analysis_id FROM scores').fetchall() == [('TP53', held), ('BRCA1', held)]
    database.close()


def test_into_and_keep_are_the_last_steps(hood, held):
    step(hood, held, 'echo 1 > a')
    step(hood, held, 'echo 2 > b', '--into', 'results', '--keep', 'always')
    assert not (hood.dir / 'results').exists()
    done = json.loads(hood.succeed('commit', held, '--json').out)
    assert sorted(os.listdir(hood.dir / 'results')) == ['a', 'b'] and done['kept']
    assert hood.workspace(held).is_dir()


def test_a_held_workspace_shows_its_steps(hood, held):
    step(hood, held, 'echo said')
    step(hood, held, 'exit 4', status=4)
    text = hood.succeed('show', held).out
    assert 'step 1' in text and 'step 2' in text and 'exit status 4' in text and f'fumehood commit {held}' in text
    assert [s['verdict'] for s in show(hood, held)['held_steps']] == ['succeeded', 'failed']
    assert hood.succeed('logs', held).out == 'said\n'


def test_ctrl_c_ends_a_step_and_the_next_goes_on(hood, held):
    process, _ = hood.start('echo here; sleep 600', id=held)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    step(hood, held, 'echo 1 > a')
    assert hood.cli('commit', held).status == 130


def rows_table(hood):
    hood.succeed('db', 'init')
    database = sqlite3.connect(hood.home / 'share/fumehood/ledger.db')
    database.execute('CREATE TABLE scores(gene TEXT)')
    database.commit()
    database.close()
    hood.write('post.py', 'import json\nprint(json.dumps({"table": "scores", "row": {"gene": open("outputs/b").read().strip()}}))\n')
    return hood.write('config.yaml', 'post_process:\n  tables:\n    scores: [gene]\n')


@pytest.mark.parametrize('what', ['objects', 'ledger'])
def test_a_commit_that_fails_is_pending(hood, held, what):
    """With the result, the verdict and the rows that came with it; and it is committed once."""
    config = rows_table(hood)
    ledger = hood.home / 'share/fumehood/ledger.db'
    step(hood, held, 'head -c 300000 /dev/zero > large; echo first')
    step(hood, held, 'echo TP53 > b; echo second', '--post-process', 'python3 post.py', '--config', config)
    store = ledger.with_name('ledger.db.objects')
    if what == 'objects':
        store.mkdir(mode=0o700)
        os.chown(store, ledger.stat().st_uid, ledger.stat().st_gid)
        hood.write(store / 'tmp', '', mode=0o600)
    else:
        for path in list(ledger.parent.glob('ledger.db*')):
            path.rename(path.with_name('aside-' + path.name))
        ledger.mkdir(mode=0o700)
    hood.write('result.json', '{"n": 1}')
    failed = hood.cli('commit', held, '--result', 'result.json', '--config', config)
    assert failed.status == 125 and 'it is pending' in failed.err, failed
    assert hood.cli('gc', '--config', config).status != 0
    if what == 'objects':
        (store / 'tmp').unlink()
    else:
        ledger.rmdir()
        for path in list(ledger.parent.glob('aside-*')):
            path.rename(path.with_name(path.name[len('aside-'):]))
    assert json.loads(hood.succeed('ls', '--json').out)[0]['state'] == 'pending'
    hood.succeed('gc', '--config', config)
    found = show(hood, held)
    assert (found['verdict'], found['attempt'], found['rows'], found['result']) == ('succeeded', 1, 1, {'n': 1}), found
    assert len(found['steps']) == 2 and outputs(hood, held) == ['b', 'large']
    assert hood.succeed('logs', held, '--stdout').out == 'first\nsecond\n'
    assert not hood.workspace(held).exists()
    database = sqlite3.connect(ledger)
    assert database.execute('SELECT gene FROM scores').fetchall() == [('TP53',)]
    database.close()


def test_a_disk_for_all_steps(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h', '--disk', '4M', '--files', '64')
    try:
        step(hood, id, 'head -c 2000000 /dev/zero > a; mkdir d; echo x > d/x; ln -s d l')
        assert (hood.workspace(id) / 'd/x').read_text() == 'x\n' and os.readlink(hood.workspace(id) / 'l') == 'd'
        full = step(hood, id, 'set -e; test -s a; rm -r d; head -c 3000000 /dev/zero > b', status=1)
        assert full['verdict'] == 'out_of_disk', full
        assert not (hood.workspace(id) / 'd').exists(), 'what a step removes is gone'
        step(hood, id, 'rm b; for i in $(seq 200); do : > f$i || exit 7; done', status=2)
        step(hood, id, 'rm f*; echo 1 > c')
        done = json.loads(hood.cli('commit', id, '--verdict', 'succeeded', '--json').out)
        assert sorted(o['path'] for o in done['outputs']) == ['a', 'c'], done
        assert all(s['verdict'] for s in show(hood, id)['steps']) and len(show(hood, id)['steps']) == 4
    finally:
        hood.succeed('workspace', 'cleanup', id)


def test_a_step_may_ask_for_a_disk(hood, held):
    hood.write(hood.workspace(held) / 'mine', 'x' * 1000000)
    result = hood.run('true', '--disk', '64K', id=held)
    assert result.status == 125 and 'does not fit its disk' in result.json['error']['message'], result
    step(hood, held, 'cat mine > b', '--disk', '4M')
    assert (hood.workspace(held) / 'b').stat().st_size == 1000000


@pytest.mark.parametrize('words', [['--disk', 'lots'], ['--files', '-1'], ['--disk', ''], ['--files', '0']])
def test_limits_of_a_workspace_that_make_no_sense(hood, words):
    result = hood.cli('workspace', 'create', hood.id(), *words)
    assert result.status == 125 and words[0][2:] in result.err, result
    assert 'workspace create' in hood.cli('workspace', 'cleanup', hood.id(), '--disk', '1G').err


def test_a_supervisor_killed_in_a_step_with_a_disk_leaves_what_was_there_before(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h', '--disk', '4M')
    step(hood, id, 'echo 1 > a')
    process, _ = hood.start('rm a; echo 2 > b; echo here; sleep 600', id=id)
    process.kill()
    process.wait(60)
    assert hood.run('cat a', id=id).status == 0
    done = hood.cli('commit', id, '--json')
    assert json.loads(done.out)['verdict'] == 'lost' and [o['path'] for o in json.loads(done.out)['outputs']] == ['a'], done
    hood.succeed('workspace', 'cleanup', id)


def test_what_the_holder_puts_there_while_a_step_runs_gives_way(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h', '--disk', '4M')
    process, _ = hood.start('echo 1 > a; echo here; sleep 1', id=id)
    hood.write(hood.workspace(id) / 'a/b', 'in the way')
    assert process.wait(60) == 0
    assert (hood.workspace(id) / 'a').read_text() == '1\n'
    hood.succeed('workspace', 'cleanup', id)
