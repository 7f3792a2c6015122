"""Paths out of a ledger that somebody else has written: none leads anywhere, and every command says so in one sentence."""
import json

import pytest

# From where a post-process finds its outputs: its scratch directory, the workspace root, the test's own directory.
OUT = '../../../target/kept/made'
BAD = [b'../x', b'..', b'/etc/x', b'a//b', b'a/../b', b'a/./b', b'./a', b'a/', b'', b'a\0b', b'x' * 256, b'x/' * 2500 + b'x']


@pytest.fixture
def place(hood, ledger):
    """A directory that is there already, whose modes nobody but its owner changes; an analysis of this ledger."""
    ground, target = hood.directory('ground'), hood.directory('target/kept').parent
    ground.chmod(0o1777)
    target.chmod(0o711)
    (target / 'kept').chmod(0o710)
    hood.who.give(target)
    hood.env['SITE'] = str(hood.write('site.yaml', f'''
workspace: {{root: {ground}}}
post_process: {{command: 'true', tables: {{scores: [gene]}}}}
'''))
    ledger.sql('CREATE TABLE scores(gene TEXT)')
    done = hood.run('mkdir d; echo one >d/one; echo two >two', '--output', '**', '--input', 'data/genes.csv:in/genes.csv')
    assert done.status == 0, done
    hood.subject = done.json['id']
    hood.around = lambda: {str(path): (oct(path.lstat().st_mode), path.lstat().st_uid, path.lstat().st_ino)
                           for path in [*sorted(ground.glob('*')), ground, *sorted(target.rglob('*')), target]}
    return hood


def rename(ledger, id, path, table='output'):
    """What a hostile owner of the ledger, or a role that may write it, does."""
    blob = f"X'{path.hex()}'" if ledger.name == 'sqlite' else f"'\\x{path.hex()}'"
    where = f"analysis_id = '{id}' AND position = 0"
    ledger.sql(f'UPDATE {ledger.table(table)} SET path = {blob} WHERE {where}')
    assert ledger.sql(f'SELECT count(*) FROM {ledger.table(table)} WHERE {where}') == ['1']


def refuse(hood, *words, **others):
    result = hood.cli(*words, **others)
    assert result.status == 125, (words, result)
    said = result.json['error']['message'] if '--json' in words else result.err
    assert len(said.splitlines()) == 1 and len(said) < 1500, (words, result)
    assert hood.subject in said and 'damaged' in said, (words, result)


def post_process(hood):
    return 'post-process', hood.subject, '--config', hood.env['SITE']


@pytest.mark.asan
@pytest.mark.parametrize('path', [OUT, '../../made', '../tmp/made', '../../../target/kept'])
def test_a_post_process_makes_no_file_where_the_ledger_leads_it(place, ledger, path):
    before = place.around()
    rename(ledger, place.subject, path.encode())
    place.cli(*post_process(place))
    assert place.around() == before
    refuse(place, *post_process(place))


@pytest.mark.asan
def test_every_command_says_in_one_sentence_that_a_path_of_the_ledger_is_damaged(place, ledger):
    before = place.around()
    into = place.directory('into/a/b')
    for i, path in enumerate(BAD):
        for table in ['output', 'input'] if i % 4 == 0 else ['output']:
            rename(ledger, place.subject, path, table)
            for words in [['get', place.subject, 'two'], ['get', place.subject, '-o', into], ['get', place.subject, 'two', '-o', '-'],
                          ['outputs', place.subject], ['show', place.subject], ['show', place.subject, '--json'],
                          ['report', place.subject, '-o', into / 'page.html'], post_process(place)]:
                refuse(place, *words)
            if table == 'output':
                refuse(place, 'run', place.id(), '--from', place.subject, '--', 'ls')
            checked = place.cli('db', 'check', '--json')
            assert checked.status == 1, checked
            messages = [problem['message'] for problem in checked.json['problems']]
            assert len(messages) == 1 and f'{table} ' in messages[0] and place.subject in messages[0], messages
            rename(ledger, place.subject, b'd/one' if table == 'output' else b'in/genes.csv', table)
    assert [path for path in into.parent.parent.rglob('*') if not path.is_dir()] == [] and place.around() == before
    place.succeed('show', place.subject)
    place.succeed('db', 'check')


@pytest.mark.parametrize('path', ['../../../target/kept/made', '/etc/x', 'a//b', 'a/../b', '', pytest.param('x' * 5000, id='long')])
def test_an_input_of_a_submission_that_leads_out_is_refused_and_nothing_is_made(place, ledger, path):
    before = place.around()
    id = place.id()
    place.succeed('submit', id, '--input', 'data/genes.csv:in/genes.csv', '--', 'true')
    table, cast = ledger.table('queue'), '' if ledger.name == 'sqlite' else '::jsonb'
    inputs = json.loads(ledger.sql(f"SELECT inputs FROM {table} WHERE id = '{id}'")[0])
    inputs[0]['path'] = path
    ledger.sql(f"UPDATE {table} SET inputs = '{json.dumps(inputs)}'{cast} WHERE id = '{id}'")
    place.cli('worker', '--drain', '--config', place.env['SITE'])
    shown = place.succeed('ls', '--json').json
    assert [a['verdict'] for a in shown if a['id'] == id] == ['refused'], shown
    assert place.around() == before
