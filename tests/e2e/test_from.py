"""Outputs of one analysis as inputs of another: --from, and what came from what. On both ledgers."""
import hashlib
import json
import os
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from ledgers import TOP
from test_queue import drain, shown, state, submit
from test_roles import site  # noqa: F401: a fixture

SCHEMA = json.loads((TOP / 'docs/schema/lineage.schema.json').read_text())


def make(hood, script='mkdir -p d; echo one > a.csv; echo two > d/b.csv; echo three > c.txt', *options, id=None):
    result = hood.run(script, *options, id=id)
    assert result.status == 0 and result.json['committed'], result
    return result.json['id']


def outputs(hood, id):
    return sorted(o['path'] for o in json.loads(hood.succeed('outputs', id, '--json').out)['outputs'])


def origins(hood, id):
    return {i['path']: (i.get('from_analysis'), i.get('from_attempt')) for i in shown(hood, id)['inputs']}


def lineage(hood, id, *options):
    found = hood.succeed('show', id, '--lineage', '--json', *options).json
    assert sorted(found) == sorted(SCHEMA['required'])
    for node in found['nodes']:
        assert sorted(node) == sorted(SCHEMA['properties']['nodes']['items']['required'])
    return found


def edges(found):
    return sorted((e['from']['id'], e['from']['attempt'], e['to']['id'], e['to']['attempt']) for e in found['edges'])


def refused(result, *words):
    """One sentence, and nothing was recorded of it."""
    said = result.json['error']['message'] if result.out.startswith('{') else result.err
    assert result.status == 125 and said.strip().count('\n') == 0, result
    for word in words:
        assert word in said, said
    return said


# What it gets.

@pytest.mark.asan
def test_outputs_of_another_are_read_only_inputs(hood, ledger):
    source = make(hood)
    done = hood.run(f'''
        cd from/{source}; cat a.csv d/b.csv c.txt; stat -c %a a.csv
        for name in a.csv d/b.csv; do
            echo x > $name; rm -f $name; mv $name y; chmod 666 $name; ln $name ../../l; touch $name; truncate -s 0 $name
        done
        echo x > new; mkdir n; cd ../..; rm -rf from; mv from elsewhere; rmdir from
        cat from/{source}/a.csv; echo made > out''', '--from', source, '--output', '**')
    assert done.status == 0, done
    assert hood.succeed('logs', done.json['id'], '--stdout').out == 'one\ntwo\nthree\n444\none\n'
    assert [o['path'] for o in done.json['outputs']] == ['out'], 'what was another\'s is nobody else\'s output'
    found = shown(hood, done.json['id'])
    assert origins(hood, done.json['id']) == {
        f'from/{source}/{name}': (source, 1) for name in ('a.csv', 'd/b.csv', 'c.txt')}
    assert {i['path']: i['sha256'] for i in found['inputs']}[f'from/{source}/a.csv'] == hashlib.sha256(b'one\n').hexdigest()
    assert found['plan']['from'] == [{'analysis': source, 'attempt': 1, 'as': f'from/{source}', 'files': 3, 'bytes': 14}]
    assert found['request']['from'] == [source]
    assert f'(of {source}, attempt 1)' in hood.succeed('show', done.json['id']).out
    assert not hood.workspace(done.json['id']).exists()


def test_a_pattern_chooses_and_as_says_where(hood):
    source = make(hood)
    for option, listed in ((f'{source}:*.csv', [f'from/{source}/a.csv']),
                           (f'{source}:**/*.csv', [f'from/{source}/a.csv', f'from/{source}/d/b.csv']),
                           (f'{source}:d', [f'from/{source}/d/b.csv']),
                           (f'{source}:*.txt:in/here', ['in/here/c.txt']),
                           (f'{source}::./in//x/', ['in/x/a.csv', 'in/x/c.txt', 'in/x/d/b.csv']),
                           (f'{source}:*.txt:', [f'from/{source}/c.txt'])):
        done = hood.run('find . -type f -not -path "./data/*" -not -path "./docs/*" | sed "s,^./,," | sort', '--from', option)
        assert done.status == 0, done
        assert hood.log(done.json['id']).split() == listed, option


def test_nothing_is_taken_that_is_not_there(hood):
    source, failed = make(hood), hood.id()
    assert hood.run('echo half > a; exit 3', id=failed).status == 3
    refused(hood.run('true', '--from', failed), f"--from '{failed}' has nothing to give", 'succeeded')
    refused(hood.run('true', '--from', 'nobody'), "--from 'nobody' has nothing to give")
    refused(hood.run('true', '--from', 'nobody.*'), "--from 'nobody' has nothing to give")
    refused(hood.run('true', '--from', f'{source}:*.png'), 'matches nothing', f'fumehood outputs {source}', '*.png')
    empty = make(hood, 'true')
    refused(hood.run('true', '--from', empty), 'matches nothing')
    refused(hood.run('true', '--from', f'{source}:*.csv', '--from', source), 'twice')
    refused(hood.run('true', '--from', f'{source}::in', '--from', f'{source}::in'), 'twice')
    assert len(json.loads(hood.succeed('ls', '--json').out)) == 3, 'what is refused is not recorded'


@pytest.mark.parametrize('option', ['', ':', '::in', 'a*', '*', '[ab]', '../x', '.a', 'a/b', 'a\nb', 'x' * 129, 'a:/etc', 'a:../x',
                                    'a:b/../../c', 'a::/in', 'a::..', 'a::in/../..', 'a::.', 'a::./', '.*', 'a?.*', '-a'])
def test_what_makes_no_sense_is_refused(hood, option):
    said = refused(hood.run('true', f'--from={option}'), 'from')
    assert not re.search(r'[\x00-\x08\x0b-\x1f]', said.strip())
    hood.write('request.yaml', json.dumps({'command': ['true'], 'from': [option]}))
    assert refused(hood.cli('submit', '-f', 'request.yaml')).count('from') >= 1


def test_what_else_lies_there_is_refused(hood):
    source = make(hood)
    for options in (['--from', source, '--input', 'api.py:from/api.py'], ['--from', f'{source}::in', '--input', 'api.py:in'],
                    ['--from', f'{source}::in/a', '--input', 'api.py:in'], ['--from', f'{source}::data'],
                    ['--from', f'{source}::docs/x'], ['--from', f'{source}::api.py', '--input', 'api.py']):
        said = refused(hood.run('true', *options), 'give another AS')
        assert refused(hood.cli('submit', hood.id(), *options, '--', 'true')).endswith(said + '\n'), 'and so does submit'
    other = make(hood, 'mkdir a.csv; echo x > a.csv/y')
    refused(hood.run('true', '--from', f'{source}::in', '--from', f'{other}::in'), 'in/a.csv')
    both = hood.run('cat in/a.csv in/deep/a.csv/y', '--from', f'{source}::in', '--from', f'{other}::in/deep')
    assert both.status == 0 and hood.log(both.json['id']) == 'one\nx\n', both


def test_dry_run_shows_it_and_touches_nothing(hood):
    source = make(hood)
    said = hood.succeed('run', 'later', '--from', f'{source}:**/*.csv:in', '--dry-run', '--', 'true').out
    assert re.search(rf'^from +in/ \(2 files, 8 B, of {source}, attempt 1\)$', said, re.M), said
    plan = hood.succeed('run', 'later', '--from', source, '--dry-run', '--json', '--', 'true').json
    assert plan['from'][0]['analysis'] == source
    hood.env['XDG_DATA_HOME'] = str(hood.home / 'nowhere')
    refused(hood.cli('run', 'later', '--from', source, '--dry-run', '--', 'true'))
    assert not (hood.home / 'nowhere').exists()


HOSTILE = '''
import os
names = [b'new\\nline', b'\\x1b[31mred', b'caf\\xe9', b'-rf', b'..x', b'a b', b'"quoted\\'', b'tab\\there', b'$(id)', b'*', b'\\xe2\\x80\\xae-over',
         b'/'.join([b'd' * 200] * 15) + b'/end', b'/'.join([b'e'] * 200) + b'/end', b'n' * 255, b'from/x']
for name in names:
    os.makedirs(os.path.dirname(name) or b'.', exist_ok=True)
    with open(name, 'wb') as f:
        f.write(b'I am ' + name)
os.symlink('/etc/passwd', 'link')
os.mkfifo('fifo')
os.chmod('a b', 0o755)
'''
COMPARE = '''
import os
n = 0
for top, directories, files in os.walk(b'in'):
    for name in files:
        path = os.path.join(top, name)
        with open(path, 'rb') as f:
            assert f.read() == b'I am ' + os.path.relpath(path, b'in'), path
        assert os.stat(path).st_mode & 0o7777 == 0o444 and not os.path.islink(path), path
        n += 1
print(n)
'''


def test_hostile_names_are_only_names(hood, ledger):
    made = hood.python(HOSTILE)
    assert made.status == 0 and len(made.json['outputs']) == 15, made
    source = made.json['id']
    done = hood.python(COMPARE, '--from', f'{source}::in')
    assert done.status == 0, done
    assert hood.log(done.json['id']) == '15\n' and done.json['outputs'] == []
    for words in (['show', done.json['id']], ['show', source, '--lineage'], ['outputs', source],
                  ['run', 'x', '--dry-run', '--from', f'{source}:*red', '--', 'true']):
        assert not re.search(r'[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff\u202e]', hood.succeed(*words).out), words
    one = hood.run('cat "$(printf "in/caf\\351")"', '--from', f'{source}:caf?:in')
    assert one.status == 0, one
    refused(hood.run('true', '--from', f'{source}:\x1b[2J*\n'), 'matches nothing')


def test_a_path_that_is_too_long_in_its_new_place_is_refused(hood):
    source = make(hood, 'd=$(printf %0200d 0); for i in $(seq 19); do mkdir $d && cd $d; done; echo x > f')
    assert hood.run('find in -type f | wc -c', '--from', f'{source}::in').status == 0
    refused(hood.run('true', '--from', f'{source}::' + '/'.join(['y' * 100] * 4)), 'stage')
    refused(hood.run('true', '--from', f'{source}::' + 'y' * 256), 'stage')


def test_content_is_verified_and_large_ones_come_out_of_the_store(hood, ledger):
    source = make(hood, 'head -c 20000000 /dev/urandom > large; sha256sum < large; echo small > s')
    done = hood.run(f'sha256sum < from/{source}/large', '--from', source)
    assert done.status == 0 and hood.log(done.json['id']) == hood.log(source), done
    if ledger.name == 'sqlite':
        with sqlite3.connect(ledger.path) as db:
            db.execute("UPDATE fumehood_blob SET content = CAST('smell' || char(10) AS BLOB) WHERE content = CAST('small' || char(10) AS BLOB)")
        refused(hood.run('true', '--from', f'{source}:s'), 'damaged')
        objects = [p for p in (hood.home / 'share/fumehood').rglob('*') if p.is_file() and p.stat().st_size == 20000000]
        os.truncate(objects[0], 19999999)
        assert hood.run('true', '--from', f'{source}:large').status == 125
    assert not list(Path('/tmp').glob(f'scidex-analysis-{hood.tag}*'))


def test_they_count_to_the_disk_limit(hood):
    source = make(hood, 'head -c 8000000 /dev/zero > large; echo s > small')
    said = refused(hood.run('true', '--from', source, '--disk', '4M'), '8000000 bytes')
    assert 'large' in said
    full = hood.run('head -c 9000000 /dev/zero > mine', '--from', source, '--disk', '14M')
    assert full.status != 0 and full.json['verdict'] in ('out_of_disk', 'failed'), full
    done = hood.run('echo x > from/x; echo ok > mine; cat from/*/small', '--from', source, '--disk', '30M')
    assert done.status == 0 and [o['path'] for o in done.json['outputs']] == ['mine'], done


def test_a_killed_supervisor_leaves_nothing_of_it(hood):
    source = make(hood, 'mkdir -p a/b/c; echo x > a/b/c/d')
    process, id = hood.start('echo up; sleep 600', '--from', source)
    process.kill()
    process.wait()
    hood.succeed('gc')
    assert not hood.workspace(id).exists() and hood.verdict(id) == 'lost'


def test_another_attempt_looks_again(hood):
    source = make(hood, 'echo 1 > v')
    id = hood.id()
    assert hood.run('cat from/*/v', '--from', source, id=id).status == 0
    make(hood, 'echo 2 > v', '--again', id=source)
    assert hood.run('exit 3', '--again', id=source).status == 3, 'one that fails later changes nothing'
    assert hood.run('cat from/*/v', '--from', source, '--again', id=id).status == 0
    assert hood.log(id) == '2\n' and origins(hood, id) == {f'from/{source}/v': (source, 2)}
    own = hood.run('cat from/*/out 2>&1; echo next > out', '--from', f'{source}', '--again', id=id)
    assert own.status == 0
    assert hood.run(f'cat from/{id}/out', '--from', id, '--again', id=id).status == 0, 'of an earlier attempt of its own'


def test_steps_of_a_held_workspace(hood):
    source, id = make(hood), hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    try:
        assert hood.run('cat from/*/a.csv > one; ! echo x > from/new', '--from', source, id=id).status == 0
        assert hood.run('cat from/*/c.txt > two', id=id).status == 0, 'it stays'
        assert hood.run('cat from/*/d/b.csv > three', '--from', source, id=id).status == 0, 'and may be asked for again'
        assert hood.run(f'chmod u+w from/{source}/c.txt; echo changed > from/{source}/c.txt', id=id).status == 0
        refused(hood.run('true', '--from', source, id=id), 'c.txt', 'another AS')
        done = hood.succeed('commit', id, '--output', '**', '--json').json
    finally:
        hood.cli('workspace', 'cleanup', id)
    assert [o['path'] for o in done['outputs']] == [f'from/{source}/c.txt', 'one', 'three', 'two'], 'what it changed is its own'
    assert origins(hood, id)[f'from/{source}/a.csv'] == (source, 1)
    assert edges(lineage(hood, id)) == [(source, 1, id, 1)]


# In the queue.

def test_it_waits_for_what_it_takes(hood, ledger):
    first = submit(hood, 'echo 1 > v')
    second = submit(hood, 'cat from/*/v > w', '--from', first)
    hood.write('request.yaml', json.dumps({'id': hood.id(), 'command': ['sh', '-c', 'cat in/w'], 'from': f'{second}:w:in'}))
    third = hood.succeed('submit', '-f', 'request.yaml').out.strip()
    assert state(hood, second) == 'waiting' and shown(hood, second)['queue']['after'] == [first]
    drain(hood)
    assert hood.log(third) == '1\n' and origins(hood, third) == {'in/w': (second, 1)}
    assert edges(lineage(hood, second)) == [(first, 1, second, 1), (second, 1, third, 1)]


def test_what_did_not_succeed_is_not_waited_for(hood, ledger):
    failing = submit(hood, 'echo half > v; exit 3')
    after = submit(hood, 'true', '--from', failing)
    drain(hood)
    assert state(hood, after) == 'cancelled'
    refused(hood.cli('submit', hood.id(), '--from', failing, '--', 'true'), 'did not succeed')
    refused(hood.cli('submit', hood.id(), '--from', 'nobody', '--', 'true'), 'nobody knows')
    refused(hood.cli('submit', hood.id(), '--from', 'nobody.*', '--', 'true'), 'nobody knows')


def test_the_latest_success_is_that_of_the_start(hood, ledger):
    """It succeeds again between submit and start, and again before it is tried again."""
    source = make(hood, 'echo 1 > v')
    id = submit(hood, 'cat from/*/v; exit 3', '--from', source)
    make(hood, 'echo 2 > v', '--again', id=source)
    drain(hood)
    assert hood.log(id) == '2\n' and origins(hood, id) == {f'from/{source}/v': (source, 2)}
    make(hood, 'echo 3 > v', '--again', id=source)
    hood.succeed('retry', id)
    drain(hood)
    assert hood.log(id) == '3\n' and origins(hood, id) == {f'from/{source}/v': (source, 3)}
    ledger.sql(f"DELETE FROM {ledger.table('queue')}")
    make(hood, 'echo 4 > v', '--again', id=source)
    hood.succeed('retry', id)
    drain(hood)
    assert hood.log(id) == '4\n' and origins(hood, id) == {f'from/{source}/v': (source, 4)}


def test_an_array_is_each_of_its_tasks(hood, ledger):
    array, total, each, named = hood.id(), hood.id(), hood.id(), hood.id()
    hood.succeed('submit', array, '--array', '1-11', '--', 'sh', '-c', 'echo {task} > n; echo {task} > m')
    submit(hood, 'cat from/*/n | sort -n | paste -sd+; ls from | wc -l; ls from/*/m', '--from', f'{array}.*:n', id=total)
    submit(hood, 'ls in | wc -l; cat in/*/m | wc -l', '--from', f'{array}::in', id=named)
    hood.succeed('submit', each, '--array', '1-3', '--from', array + '.{task}', '--', 'sh', '-c', 'cat from/*/n > twice')
    assert state(hood, total) == 'waiting' and shown(hood, total)['queue']['after'][0] == array
    drain(hood)
    assert hood.log(total).startswith('1+2+3+4+5+6+7+8+9+10+11\n11\n') and 'm' not in origins(hood, total)
    assert hood.log(named) == '11\n11\n'
    assert hood.succeed('get', f'{each}.2', 'twice', '-o', '-').out == '2\n'
    assert origins(hood, total)[f'from/{array}.7/n'] == (f'{array}.7', 1)
    drawn = hood.succeed('show', total, '--lineage').out
    assert f'|- {array}.2, attempt 1: succeeded, 1 file\n' in drawn and '`- ... and 1 more\n' in drawn, drawn
    found = lineage(hood, total)
    assert len(found['nodes']) == 12 and found['omitted'] == 0
    assert edges(lineage(hood, f'{array}.2')) == [
        (f'{array}.2', 1, id, 1) for id in sorted((total, named, f'{each}.2'))]


def test_an_array_of_which_one_failed_is_refused(hood):
    array = hood.id()
    for n in (1, 2):
        hood.run(f'echo {n} > n; [ {n} = 1 ]', id=f'{array}.{n}')
    refused(hood.run('true', '--from', f'{array}.*'), f"--from '{array}.2' has nothing to give")
    make(hood, 'echo 2 > n', id=f'{array}.2')
    assert hood.run('cat from/*/n', '--from', f'{array}.*').status == 0


def test_a_submission_that_stages_where_outputs_belong_is_refused_by_the_worker(hood):
    """Its row need not be of our submit's making."""
    source = make(hood)
    id = submit(hood, 'true', '--from', source, '--input', 'api.py:x')
    with sqlite3.connect(hood.home / 'share/fumehood/ledger.db') as db:
        db.execute("UPDATE fumehood_queue SET inputs = replace(inputs, '\"path\":\"x\"', '\"path\":\"from/x\"') WHERE id = ?", [id])
    drain(hood)
    assert hood.verdict(id) == 'refused' and 'from/x' in shown(hood, id)['error']['message']


def test_nobody_lies_about_where_a_file_came_from(hood):
    source = make(hood)
    id = submit(hood, 'true', '--input', 'api.py:x')
    with sqlite3.connect(hood.home / 'share/fumehood/ledger.db') as db:
        db.execute("UPDATE fumehood_queue SET inputs = replace(inputs, '\"path\":\"x\"', "
                   f"'\"path\":\"x\",\"from_analysis\":\"{source}\",\"from_attempt\":1') WHERE id = ?", [id])
    drain(hood)
    assert hood.verdict(id) == 'succeeded' and origins(hood, id) == {'x': (None, None)}


def test_a_stranger_gets_nothing_of_another_owner(site):  # noqa: F811
    site.do('ada', 'submit', 'ada-made', '--', 'sh', '-c', 'echo secret > s')
    site.do('ada', 'submit', 'ada-own', '--from', 'ada-made', '--', 'sh', '-c', 'cat from/*/s')
    site.do('ada', 'submit', 'sweep', '--array', '1-2', '--', 'sh', '-c', 'echo {task} > s')
    assert 'the name is taken' in site.cli('bob', 'submit', 'sweep.77', '--', 'true').err
    site.do('bob', 'submit', 'planted', '--', 'sh', '-c', 'echo planted > s')  # and if he had come before it was
    site.ledger.sql("UPDATE fumehood.queue SET id = 'sweep.77', request = jsonb_set(request, '{id}', '\"sweep.77\"') WHERE id = 'planted'")
    site.do('ada', 'submit', 'ada-sum', '--from', 'sweep.*', '--', 'sh', '-c', 'cat from/*/s')
    site.do('wanda', 'worker', '--drain')
    assert site.do('ada', 'logs', 'ada-own').out == 'secret\n'
    assert site.do('ada', 'logs', 'ada-sum').out == '1\n2\n', 'what bob calls a task of hers is none'
    for of in ('ada-made', 'sweep', 'sweep.*'):
        assert 'nobody knows' in site.cli('bob', 'submit', 'bob-x', '--from', of, '--', 'true').err or of.startswith('sweep')
    site.do('bob', 'submit', 'bob-taken', '--', 'sh', '-c', 'cat from/*/s')
    site.do('bob', 'submit', 'bob-array', '--', 'sh', '-c', 'cat from/*/s')
    for id, of in (('bob-taken', 'ada-made'), ('bob-array', 'sweep.*')):
        site.ledger.sql(f"UPDATE fumehood.queue SET request = jsonb_set(request, '{{from}}', '[\"{of}\"]') WHERE id = '{id}'")
    site.do('wanda', 'worker', '--drain')
    found = site.do('bob', 'show', 'bob-taken', '--json').json
    assert found['verdict'] == 'refused' and 'not yours' in found['error']['message'], found
    assert site.do('bob', 'logs', 'bob-array').out == 'planted\n'
    assert 'secret' not in site.do('bob', 'logs', 'bob-taken').out
    assert [n['id'] for n in site.do('ada', 'show', 'ada-own', '--lineage', '--json').json['nodes']] == ['ada-own', 'ada-made']
    assert site.cli('bob', 'show', 'ada-own', '--lineage').status == 125


# What came from what.

def test_lineage_is_drawn_both_ways_and_each_attempt_once(hood, ledger):
    a, b, c, d, e = (hood.id() for _ in range(5))
    make(hood, 'echo 1 > x', id=a)
    make(hood, 'cat from/*/x > y', '--from', a, id=b)
    make(hood, 'cat from/*/x > z', '--from', a, id=c)
    make(hood, 'cat from/*/* > w', '--from', b, '--from', c, '--from', f'{a}::in', id=d)
    make(hood, 'cat from/*/w > v', '--from', d, id=e)
    make(hood, 'cat from/*/x > y2', '--from', a, '--again', id=b)
    assert hood.succeed('show', d, '--lineage').out == (
        f'{d}, attempt 1: succeeded\n'
        'came from\n'
        f'|- {a}, attempt 1: succeeded, 1 file\n'
        f'|- {b}, attempt 1: succeeded, 1 file\n'
        f'|  `- {a}, attempt 1: succeeded, 1 file, see above\n'
        f'`- {c}, attempt 1: succeeded, 1 file\n'
        f'   `- {a}, attempt 1: succeeded, 1 file, see above\n'
        'went into\n'
        f'`- {e}, attempt 1: succeeded, 1 file\n')
    found = lineage(hood, d)
    assert edges(found) == [(a, 1, b, 1), (a, 1, c, 1), (a, 1, d, 1), (b, 1, d, 1), (c, 1, d, 1), (d, 1, e, 1)]
    assert (found['id'], found['attempt']) == (d, 1) and found['nodes'][0]['id'] == d and len(found['nodes']) == 5
    assert edges(lineage(hood, b)) == [(a, 1, b, 2)], 'its latest success went nowhere'
    assert edges(lineage(hood, b, '--attempt', '1')) == [(a, 1, b, 1), (b, 1, d, 1), (d, 1, e, 1)]
    assert len(lineage(hood, a)['nodes']) == 6
    refused(hood.cli('show', 'nobody', '--lineage'), 'nobody')
    refused(hood.cli('show', a, '--lineage', '--attempt', '9'), 'no attempt 9', 'latest is 1')
    refused(hood.cli('show', a, '--lineage', '--trace'), 'choose one')


def test_what_was_removed_is_still_there_in_a_lineage(hood, ledger):
    a, b, c = hood.id(), hood.id(), hood.id()
    make(hood, 'echo 1 > x', id=a)
    make(hood, 'cat from/*/x > y', '--from', a, id=b)
    make(hood, 'cat from/*/y > z', '--from', b, id=c)
    assert hood.cli('rm', b).status != 0, 'others build on it'
    hood.succeed('rm', b, '--force')
    for id in (a, b, c):
        assert edges(lineage(hood, id)) == [(a, 1, b, 1), (b, 1, c, 1)], id
    assert f'`- {b}, attempt 1: succeeded (removed)' in hood.succeed('show', c, '--lineage').out
    assert [n['removed'] for n in lineage(hood, c)['nodes']] == [False, True, False]
    refused(hood.run('true', '--from', b), 'nothing to give')


def test_a_long_chain_is_cut(hood):
    ids = [hood.id() for _ in range(12)]
    make(hood, 'echo 1 > x', id=ids[0])
    for before, id in zip(ids, ids[1:]):
        make(hood, 'cp from/*/x x', '--from', before, id=id)
    drawn = hood.succeed('show', ids[-1], '--lineage').out
    assert f'{ids[3]}, attempt 1' in drawn and f'{ids[2]}, attempt 1' not in drawn and '... and 1 more' in drawn, drawn
    assert len(lineage(hood, ids[-1])['nodes']) == 12


# As the README says.

def test_the_map_and_reduce_of_the_readme(hood, ledger):
    block = re.search(r'to map and to reduce are two lines:\n\n```\n(.*?)```', (TOP / 'README.md').read_text(), re.S).group(1)
    lines = block.strip().splitlines()
    assert len(lines) == 2 and '--array' in lines[0] and "--from '" in lines[1]
    for line in lines:
        words = shlex.split(line)
        assert words.pop(0) == 'fumehood'
        hood.succeed(*words)
    drain(hood)
    assert hood.succeed('get', 'total', 'total', '-o', '-').out == f'{sum(n * n for n in range(1, 11))}\n'
    assert hood.succeed('show', 'total', '--lineage').out.count('squares.') == 10
