"""What the README says to paste, pasted."""
import re
import subprocess
from pathlib import Path

README = Path(__file__).parents[2] / 'README.md'


def block(hood, first):
    """The lines of the block that begins so, for a shell: every id is this test's own."""
    text = re.search(rf'^```\n({re.escape(first)}.*?)^```', README.read_text(), re.S | re.M).group(1)
    ids = {id: hood.id() for id in sorted(set(re.findall(r'\b(a\d\d|sweep|reduce)\b', text)))}
    for id, own in ids.items():
        text = re.sub(rf'\b{id}\b', own, text)
    return text.replace('fumehood ', f'{hood.binary} '), ids


def test_steps_in_a_held_workspace(hood):
    text, ids = block(hood, 'fumehood workspace create a48')
    done = subprocess.run(['sh', '-e', '-c', text], cwd=hood.dir, env=hood.env, capture_output=True, text=True,
                          **hood.who.popen_arguments())
    assert done.returncode == 0, done
    assert hood.succeed('get', ids['a48'], 'answer', '-o', '-').out == '42\n'
