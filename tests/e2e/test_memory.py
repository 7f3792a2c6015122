"""What an analysis leaves costs the supervisor no more memory than docs/LIMITS.md says, whatever its names are."""
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

LIMITS = (Path(__file__).parents[2] / 'docs/LIMITS.md').read_text()
BOUND = int(re.search(r'never holds more than (\d+) MiB', LIMITS).group(1)) << 20
FITS = 64 << 20  # bytes of all paths

# A path of 3.7 KB, with 40,000 empty files at its end.
BOMB = '''
import os, sys
for _ in range(14):
    os.mkdir(b'd' * 250), os.chdir(b'd' * 250)
for i in range(40000):
    os.close(os.open({name}, os.O_CREAT))
'''
NAMES = {
    'plain': "b'f' * 240 + b'%06d' % i",
    'not UTF-8': "b'\\xff' * 240 + b'%06d' % i",
    'control characters': "b'\\x01' * 240 + b'%06d' % i",
}
EACH = 14 * 251 + 246 + 1

# Of its children the kernel tells the highest memory, which includes what they were before their exec: so a small parent.
MEASURE = '''
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
open(sys.argv[1], 'w').write(str(used.ru_maxrss << 10))
sys.exit(os.waitstatus_to_exitcode(status))
'''


def measured(hood, *arguments, **others):
    """The exit status, the file with the output, the highest resident memory of the command (and of the analysis, which
    is small)."""
    out, peak = hood.write('out', ''), hood.write('peak', '')
    with open(out, 'w') as to:
        status = subprocess.run([sys.executable, '-S', '-c', MEASURE, peak, hood.binary, *arguments], stdout=to, cwd=hood.dir,
                                env=hood.env, **hood.who.popen_arguments(), **others).returncode
    return status, out, int(peak.read_text())


def counts(hood, id):
    with sqlite3.connect(f'file:{hood.home}/share/fumehood/ledger.db?mode=ro', uri=True) as ledger:
        outputs = ledger.execute('SELECT count(*) FROM fumehood_output WHERE analysis_id = ?', [id]).fetchone()[0]
        rejected = ledger.execute('SELECT count(*) FROM fumehood_rejected_output WHERE analysis_id = ?', [id]).fetchone()[0]
        more = ledger.execute('SELECT rejected_more FROM fumehood_attempt WHERE analysis_id = ?', [id]).fetchone()[0]
    return outputs, rejected, more


@pytest.mark.parametrize('shape', NAMES)
def test_names_cost_the_supervisor_no_more_than_it_says(hood, shape):
    hood.write('analysis.py', BOMB.format(name=NAMES[shape]))
    id = hood.id()
    status, out, used = measured(hood, 'run', id, '--json', '--', 'python3', 'analysis.py')
    assert status == 0 and used < BOUND, (status, used >> 20)
    # What did not fit is said.
    assert counts(hood, id) == (FITS // EACH, 1000, 40000 - FITS // EACH - 1000)
    if shape == 'plain':
        found = json.loads(out.read_text())
        assert len(found['outputs']) == FITS // EACH and found['committed']
        assert {o['reason'] for o in found['rejected_outputs']} == {'over the limit of names'}
    status, out, used = measured(hood, 'show', id, '--json')
    assert status == 0 and used < BOUND, (status, used >> 20)


def test_what_cannot_be_committed_is_written_and_read_back_within_the_same_bound(hood):
    """Somebody else holds the ledger when the analysis ends: finished.json is all there is, and gc reads it."""
    hood.write('analysis.py', BOMB.format(name=NAMES['not UTF-8']) + 'print("ready", flush=True)\nsys.stdin.read()\n')
    hood.succeed('db', 'init')
    id, url = hood.id(), f'sqlite:{hood.home}/share/fumehood/ledger.db?busy=200ms'
    process = hood.popen('run', id, '-i', '--db', url, '--', 'python3', 'analysis.py', stdin=subprocess.PIPE)
    assert process.stdout.readline() == 'ready\n'
    other = sqlite3.connect(hood.home / 'share/fumehood/ledger.db', isolation_level=None)
    other.execute('BEGIN EXCLUSIVE')
    _, err = process.communicate('', timeout=300)
    assert process.returncode == 125 and 'gc' in err, err
    other.execute('ROLLBACK')
    other.close()
    status, _, used = measured(hood, 'gc')
    assert status == 0 and used < BOUND, (status, used >> 20)
    assert counts(hood, id) == (FITS // EACH, 1000, 40000 - FITS // EACH - 1000)
    assert hood.verdict(id) == 'succeeded'


def test_path_bytes_belong_to_output_max(hood):
    """Empty files have names."""
    script = 'for i in $(seq 10 59); do : > file-of-twenty-bytes$i; done'
    found = hood.run(script, '--output-max', '440').json
    assert [len(o['path']) for o in found['outputs']] == [22] * 20
    assert {o['reason'] for o in found['rejected_outputs']} == {'over the limit of collected bytes'}
    assert len(found['rejected_outputs']) == 30
