"""A hand on the tab key: what real shells make of what was typed so far."""
import json
import subprocess
import time

import pytest

from shells import SCRIPTS, SHELLS, Shell


@pytest.fixture(params=SHELLS, ids=lambda shell: shell.name)
def shell(request):
    return request.param


def some(hood, *ids):
    for id in ids:
        hood.succeed('run', id, '--', 'true')


def test_commands_ids_options_and_values_are_completed(hood, shell):
    mine = f'{hood.tag}-4'
    some(hood, f'{mine}2', f'{mine}3', f'{mine}.x_y-Z.1')
    found = shell.complete(hood, [
        ['sh'], ['show', mine], ['show', f'{mine}.'], ['run', '--me'], ['run', '--keep', ''], ['run', '--strength', ''],
        ['ls', '--verdict', 'out_'], ['ls', '--verdict', 'failed,ti'], ['ls', '--state', 'h'], ['workspace', 'cr'],
        ['workspace', 'create', f'{mine}2'], ['help', 'post'], ['db', 'ch'], ['submit', '--after', f'{mine}2']])
    assert found[0] == ['shell', 'show']
    assert sorted(found[1]) == [f'{mine}.x_y-Z.1', f'{mine}2', f'{mine}3']
    assert found[2] == [f'{mine}.x_y-Z.1']
    assert found[3] == ['--memory']
    assert sorted(found[4]) == ['always', 'never', 'on-failure']
    assert sorted(found[5]) == ['full', 'landlock']
    assert sorted(found[6]) == ['out_of_disk', 'out_of_memory', 'out_of_processes']
    assert found[7] == ['failed,timed_out']
    assert found[8] == ['held']
    assert found[9] == ['create']
    assert found[10] == [f'{mine}2']
    assert found[11] == ['post-process']
    assert found[12] == ['check']
    assert found[13] == [f'{mine}2']


def test_every_option_of_every_command_is_completed(hood, shell):
    table = hood.succeed('complete', 'table').json
    assert len(table) > 15 and all(command['options'] for command in table)
    found = shell.complete(hood, [[command['name'], '-'] for command in table])
    assert len(found) == len(table)
    for command, offered in zip(table, found):
        assert set(offered) == {option['name'] for option in command['options']}, command['name']
    assert set(shell.complete(hood, [['']])[0]) == {command['name'] for command in table}


def test_files_directories_and_what_follows_two_dashes_are_the_shells_own(hood, shell):
    hood.write('fit.R', '')
    hood.write('fit.d/model', '')
    files, directories, command, argument, glued = shell.complete(hood, [
        ['run', '-f', 'fit'], ['run', '--data', 'fit'], ['run', 'x', '--', 'fumeho'], ['run', 'x', '--', 'cat', 'fit.R'],
        ['run', '--wall', '9s', '--docs', 'fit']])
    assert {name.rstrip('/').split('/')[-1] for name in files} == {'fit.R', 'fit.d'}
    assert {name.rstrip('/').split('/')[-1] for name in directories} == {'fit.d'} == {n.rstrip('/') for n in glued}
    assert 'fumehood' in command
    assert set(argument) == {'fit.R'}


def test_what_was_typed_is_not_run_and_nothing_is_made(hood, shell):
    strange = ['$(touch evil)', '`touch evil`', 'a;touch evil', '../', 'a b', '-']
    found = shell.complete(hood, [['show', word] for word in strange[:-1]])
    assert found == [[]] * (len(strange) - 1)
    assert not (hood.dir / 'evil').exists()
    assert not (hood.home / 'share/fumehood').exists() and not (hood.home / 'state').exists()


def test_bash_on_a_terminal(hood):
    some(hood, f'{hood.tag}-a42')
    bash = Shell(hood, ['bash', '--norc', '--noprofile', '-i'], [
        'source /usr/share/bash-completion/bash_completion', f'source {SCRIPTS}/fumehood.bash', 'bind "set bell-style none"'])
    bash.keys('fumehood sho\t', 'fumehood show ')
    bash.keys(f'fumehood show {hood.tag}-\t', f'fumehood show {hood.tag}-a42 ')
    bash.keys('fumehood run --me\t', 'fumehood run --memory ')
    bash.keys('fumehood run --keep=on\t', 'fumehood run --keep=on-failure ')
    bash.keys('fumehood run --data=da\t', 'fumehood run --data=data/')
    bash.keys(f'fumehood show "{hood.tag}-\t', f'{hood.tag}-a42')
    bash.keys('fumehood run x -- cat da\t', 'fumehood run x -- cat data/')
    bash.close()


def test_zsh_on_a_terminal(hood):
    some(hood, f'{hood.tag}-a42')
    zsh = Shell(hood, ['zsh', '-f', '-i'], [
        'unsetopt zle_bracketed_paste beep', f'fpath=({SCRIPTS} $fpath)', 'autoload -U compinit', 'compinit -u -D', 'bindkey -e'])
    zsh.keys('fumehood sho\t@', 'show @')
    zsh.keys(f'fumehood show {hood.tag}-\t@', f'{hood.tag}-a42 @')
    zsh.keys('fumehood run --keep=on\t@', 'on-failure @')
    zsh.keys('fumehood run --data=da\t@', 'data/@')
    zsh.close()


# ---- what the shells ask ----

def test_ids_that_are_none_are_not_offered(hood):
    some(hood, f'{hood.tag}-1')
    path = hood.home / 'share/fumehood/ledger.db'
    bad = ["x'||char(27)||'[31m", "x y", "x'||char(10)||'y", "-x", "x$(id)"]
    for number, text in enumerate(bad):
        subprocess.run(['sqlite3', '-bail', str(path), f"INSERT INTO fumehood_analysis SELECT '{text}', created_at, owner "
                        f"FROM fumehood_analysis LIMIT 1"], check=True, **hood.who.popen_arguments())
    assert hood.succeed('complete', 'ids', '').out == f'{hood.tag}-1\n'
    assert hood.succeed('complete', 'ids', 'x').out == ''


def test_of_many_ids_some_are_offered_and_what_they_have_in_common_is_right(hood):
    """Quick, too: as much as one that is found at once."""
    some(hood, f'{hood.tag}-1')
    path = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', '-bail', str(path), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
                    "INSERT INTO fumehood_analysis SELECT 'sweep.' || i, created_at, owner FROM n, fumehood_analysis"],
                   check=True, **hood.who.popen_arguments())
    ids = hood.succeed('complete', 'ids', 'sw').out.split()
    assert len(ids) == 200 and ids == sorted(ids) and ids[0] == 'sweep.1' and ids[-1] == 'sweep.99999'
    assert hood.succeed('complete', 'ids', 'sweep.29999').out.split() == ['sweep.29999', *(f'sweep.29999{i}' for i in range(10))]
    spent = []
    for prefix in ('sw', 'zzz'):
        before = time.monotonic()
        hood.succeed('complete', 'ids', prefix)
        spent.append(time.monotonic() - before)
    assert spent[0] < spent[1] + 0.5, spent


def test_queued_and_running_ones_are_offered(hood):
    process, id = hood.start('echo here; cat', '-i', stdin=subprocess.PIPE)
    hood.succeed('submit', f'{hood.tag}-queued', '--', 'true')
    assert sorted(line.split('\t')[0] for line in hood.succeed('complete', '--', 'show', hood.tag).out.splitlines()) == sorted(
        [id, f'{hood.tag}-queued'])
    process.stdin.close()
    assert process.wait() == 0


@pytest.mark.parametrize('url', ['postgresql://nobody:secret@127.0.0.1:1/none', 'sqlite:/nowhere/at/all.db', 'mysql://x', ''])
def test_a_ledger_that_is_not_there_is_no_word(hood, url):
    result = hood.cli('complete', '--', 'show', '--db', url, 'a')
    assert (result.out, result.err) == ('', '')


def test_ids_of_a_ledger_on_a_server(hood, ledger):
    hood.succeed('run', f'{hood.tag}-1', '--db', ledger.url, '--', 'true')
    hood.succeed('submit', f'{hood.tag}-2', '--db', ledger.url, '--', 'true')
    for words in (['--db', ledger.url], [f'--db={ledger.url}']):
        assert hood.succeed('complete', '--', 'logs', *words, hood.tag).out.split() == [f'{hood.tag}-1', f'{hood.tag}-2']


def test_it_is_in_no_list_and_is_refused_in_a_sentence(hood):
    assert ' complete ' not in hood.succeed('help').out
    result = hood.cli('complete', 'nonsense')
    assert result.status == 125 and 'it is used as: fumehood complete' in result.err
    assert json.loads(hood.cli('complete', '--json').out)['error']['code'] == 'usage'
