"""What is kept: for how long, how much of it, and who may look into it."""
import os
import stat

import pytest

from until import until


def configure(hood, text):
    hood.write(hood.home / 'config/fumehood/config.yaml', text)


def keep(hood, script='true', *options):
    id = hood.id()
    assert hood.run(script, '--keep', 'always', *options, id=id).json['kept']
    return id


@pytest.mark.parametrize('time', ['none', '100000d'])
def test_what_never_expires_stays(hood, time):
    configure(hood, f'keep: {{for: {time}}}')
    id = keep(hood, 'echo x >x')
    hood.succeed('gc')
    assert (hood.workspace(id) / 'x').read_text() == 'x\n'
    hood.succeed('workspace', 'cleanup', id)


def test_a_shell_cannot_leave_it_open_to_others(hood):
    id = keep(hood)
    hood.succeed('shell', id, '--', 'chmod', '777', '.')
    assert stat.S_IMODE(os.stat(hood.workspace(id)).st_mode) == 0o700
    hood.succeed('workspace', 'cleanup', id)


def test_one_that_has_grown_too_large_does_not_take_the_others_along(hood):
    configure(hood, 'keep: {max_bytes: 4M}')
    ids = [keep(hood, 'head -c 200000 /dev/zero >f') for _ in range(3)]
    hood.succeed('shell', ids[2], '--', 'sh', '-c', 'head -c 6000000 /dev/zero >big')
    hood.succeed('gc')
    assert [hood.workspace(id).exists() for id in ids] == [True, True, False]
    for id in ids[:2]:
        hood.succeed('workspace', 'cleanup', id)


def test_a_commit_of_steps_keeps_within_the_budget(hood):
    configure(hood, 'keep: {max_bytes: 4M}')
    small, held = keep(hood, 'head -c 200000 /dev/zero >f'), hood.id()
    hood.succeed('workspace', 'create', held, '--for', '1h')
    assert hood.run('head -c 6000000 /dev/zero >big', '--keep', 'always', id=held).status == 0
    result = hood.cli('commit', held, '--json')
    assert result.json['committed'] and not result.json['kept'] and 'keep.max_bytes' in result.json['error']['message'], result
    hood.succeed('gc')
    assert hood.workspace(small).exists()
    hood.succeed('workspace', 'cleanup', small)
    hood.cli('workspace', 'cleanup', held)


@pytest.mark.only('user')
def test_what_cannot_be_looked_into_counts_as_too_much(hood):
    configure(hood, 'keep: {max_bytes: 4M}')
    small, large = keep(hood), keep(hood)
    hood.succeed('shell', large, '--', 'sh', '-c', 'mkdir d; head -c 9000000 /dev/zero >d/big; chmod 0 d')
    hood.succeed('gc')
    assert hood.workspace(small).exists() and not hood.workspace(large).exists()
    hood.succeed('workspace', 'cleanup', small)


def test_who_has_looked_around_may_look_again(hood):
    configure(hood, 'keep: {for: 2s}')
    id = keep(hood)
    hood.succeed('shell', id, '--', 'sh', '-c', 'echo x >x; sleep 3')
    hood.succeed('gc')
    assert hood.succeed('shell', id, '--', 'cat', 'x').out == 'x\n'
    hood.succeed('workspace', 'cleanup', id)


def test_one_that_lies_aside_is_opened_while_the_next_runs(hood):
    id = keep(hood, 'echo first >x')
    process, _ = hood.start('echo up; read x', '-i', '--again', '--keep', 'always', id=id, stdin=-1)
    assert hood.succeed('shell', id, '--attempt', '1', '--', 'cat', 'x').out == 'first\n'
    assert 'in use' in hood.cli('shell', id, '--', 'true').err
    process.communicate('go\n', timeout=60)
    hood.succeed('workspace', 'cleanup', id)


def test_a_large_one_that_lies_aside_is_cleaned_up(hood):
    id = keep(hood, 'for i in $(seq 400); do echo >f$i; done')
    hood.run('true', '--again', '--keep', 'always', id=id)
    hood.succeed('workspace', 'cleanup', id)
    until(lambda: os.listdir(hood.home / 'state/fumehood/runs') == [])
