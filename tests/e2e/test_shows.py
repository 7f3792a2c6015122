"""What the hood shows, copies and writes on an analysis's behalf, and what it does not: links, homes, secrets, dot-files,
and what another user of this host does meanwhile."""
import glob
import os
import subprocess

import pytest


# Files of /etc.

def run_with_etc_file(hood, path, file):
    """`cat path` under a hood, in a mount namespace in which file lies there, as the caller."""
    who = ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups'] if hood.who.uid else []
    return subprocess.run(['unshare', '-m', 'sh', '-c', f'mount --bind {file} {path} && exec "$@"', 'sh', *who, hood.binary,
                           'run', hood.id(), '--', 'cat', path], cwd=hood.dir, env=hood.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize('mode, shown', [(0o644, True), (0o640, False), (0o600, False)])
def test_a_file_of_etc_is_shown_only_if_everybody_may_read_it(hood, stranger, mode, shown):
    file = hood.write('version', 'mine and yours\n', mode)
    result = run_with_etc_file(hood, '/etc/debian_version', file)
    assert (result.returncode == 0) == shown, result
    assert ('mine' in result.stdout) == shown, result


# The private /tmp.

def test_nobody_else_reaches_the_private_tmp_whatever_its_mode(hood, stranger):
    process, id = hood.start('umask 0; mkdir /tmp/open; echo secret > /tmp/open/file; chmod 777 /tmp; echo ready; read end',
                             '-i', stdin=subprocess.PIPE)
    place = glob.glob(f'/tmp/.scidex-analysis-{id}.*')[0]
    tries = [stranger('sh', '-c', f'cd {place} && find . -type f; touch {place}/planted {place}/tmp/planted'),
             stranger('sh', '-c', f'cat {place}/open/file {place}/tmp/open/file')]
    process.communicate('end\n')
    assert process.returncode == 0
    for status, said in tries:
        assert status != 0 and 'secret' not in said and './' not in said, said


def test_a_post_process_reads_what_the_analysis_left_and_not_what_another_user_slipped_in(hood, stranger):
    """The analysis opens its /tmp to everybody; somebody else waits there for the post-process, to be its outputs."""
    hood.succeed('db', 'init')
    ledger = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', ledger, 'CREATE TABLE scores(gene TEXT)'], check=True, **hood.who.popen_arguments())
    hood.write('post.py', 'print(open("outputs/rows").read(), end="")\n')
    site = hood.write('site.yaml', 'post_process: {command: python3 post.py, tables: {scores: [gene]}}\n')
    forged = hood.write('forged/rows', '{"table": "scores", "row": {"gene": "FORGED"}}').parent
    racer = hood.write('racer.sh', """
echo racing
while test -d $1; do
    for at in $1 $1/tmp; do mv $at/outputs $at/gone && cp -r $2 $at/outputs; done
done 2>/dev/null
""")
    process, id = hood.start('chmod 777 /tmp; echo \'{"table": "scores", "row": {"gene": "TRUE"}}\' > rows; echo ready; read go',
                             '--config', str(site), '--output', 'rows', '-i', stdin=subprocess.PIPE)
    place = glob.glob(f'/tmp/.scidex-analysis-{id}.*')[0]
    other = subprocess.Popen(['sh', racer, place, forged], stdout=subprocess.PIPE, text=True,
                             **stranger.who.popen_arguments())
    assert other.stdout.readline() == 'racing\n'
    process.communicate('go\n')
    other.kill()
    other.communicate()
    rows = subprocess.run(['sqlite3', ledger, 'SELECT gene FROM scores'], stdout=subprocess.PIPE, text=True).stdout.split()
    assert rows == ['TRUE'], rows
