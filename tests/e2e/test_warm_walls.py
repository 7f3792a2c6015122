"""The walls that a worker and the library make ahead: what is tried against a cold start is tried against these."""
import re
import shutil
from pathlib import Path

import pytest


@pytest.mark.parametrize('family', ['services', pytest.param('processes', marks=pytest.mark.long)])
def test_what_is_made_ahead_holds_attacks(hood, request, family):
    """Network, sockets, other processes: what a namespace that had been used before would show. Each by a spare of its own."""
    build = Path(request.config.getoption('binary')).resolve().parent
    suite, warm = (shutil.copy(build / path, hood.base) for path in ('tests/attacks/fumehood-attack', 'tests/support/warm'))
    command, hood.binary = hood.binary, suite
    try:
        process = hood.popen('suite', '-f', family, warm)
        out, err = process.communicate(timeout=900)
    finally:
        hood.binary = command
    escaped = [line for line in out.splitlines() if line.startswith('escaped')]
    assert not escaped and process.returncode == 0, (escaped, err[-2000:])
    assert int(re.search(r'(\d+) held', out)[1]) > 40, out[-3000:]
