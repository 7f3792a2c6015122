"""A held workspace and a run that is refused in it."""
import pytest

pytestmark = pytest.mark.asan


def test_a_refused_run_gives_a_held_workspace_back_as_it_was(hood):
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    hood.write(hood.workspace(id) / 'before.txt', 'before\n')
    hood.write(hood.workspace(id) / 'data', 'not a directory')
    result = hood.run('true', id=id)
    assert result.status == 125 and result.json['error']['code'] == 'refused', result
    (hood.workspace(id) / 'data').unlink()
    assert (hood.workspace(id) / 'before.txt').read_text() == 'before\n'
    assert hood.workspace(id).stat().st_uid == (hood.who.uid or 0)
    assert hood.succeed('workspace', 'create', id, '--for', '1h').out.strip() == str(hood.workspace(id)), 'held as before'
    assert hood.run('cat before.txt', id=id).status == 0
    hood.succeed('workspace', 'cleanup', id)
