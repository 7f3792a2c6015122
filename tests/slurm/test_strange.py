"""Submitters who want more than they may, and a Slurm that says strange things: nobody else waits for it, nothing is lost, nothing is doubled."""
import pwd
import subprocess

import pytest

from cluster import PATH, until

ONE = pytest.mark.kinds('user')


@ONE
def test_a_word_that_sbatch_takes_for_a_file_or_a_question_is_refused(site):
    """sbatch would read the file as the dispatcher's user and tell what is in it, wait for a FIFO, or print a list and submit nothing."""
    for word in ['nodelist=/etc/passwd', 'nodelist=./x', 'exclude=/etc/passwd', 'exclude=../x', 'gres=help', 'gres=LIST', 'nice=-5', 'nice=x',
                 f'constraint={"a" * 5000}']:
        result = site.cli('submit', f'{site.tag}-bad', '--slurm', word, '--', 'true')
        assert result.status == 125 and 'slurm' in result.err and len(result.err.strip().splitlines()) == 1, (word, result)
    assert site.rows() == {}


@ONE
def test_one_that_slurm_does_not_take_in_words_that_nobody_knows_keeps_nobody_waiting(site):
    said = f'the moon is full {"ö" * 60}'  # longer than there is room for it
    site.configure(bin=site.wrap('sbatch', before=f'case "$*" in *account=odd*) echo "sbatch: error: {said}" >&2; exit 1;; esac'))
    odd = [site.submit(f'a{n}', '--slurm', f'account=odd{n}', 'true') for n in range(3)]
    dispatcher = site.dispatch()
    for id in odd:
        assert until(lambda: 'the moon is full' in (site.show(id)['engine'] or {}).get('reason', ''), 60), (site.show(id), site.said())
    good = [site.submit(f'b{n}', 'true') for n in range(3)]
    for id in good:
        assert site.until_verdict(id, 20)['verdict'] == 'succeeded', site.said()
    assert site.said().count('the moon is full') <= 3 + 1, site.said()
    site.succeed('cancel', *odd)
    assert until(lambda: all(site.rows()[id]['verdict'] == 'cancelled' for id in odd), 60), (site.rows(), site.said())
    assert site.stop(dispatcher) == 0


@ONE
def test_more_than_the_site_takes_at_once_are_submitted_as_there_is_room(site):
    """An array counts as all its tasks, and one that is larger than the limit would never be taken."""
    site.configure(bin=site.wrap('sbatch', before='''
last=$(echo " $*" | sed -n 's/.* --array=0-\\([0-9]*\\).*/\\1/p')
if [ "${last:-0}" -gt 4 ]; then
    echo "sbatch: error: AssocMaxSubmitJobLimit" >&2
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2
    exit 1
fi'''))
    ids = site.submit_many([{'id': f'm{n}', 'command': ['true']} for n in range(12)])
    site.drain()
    assert {site.show(id)['verdict'] for id in ids} == {'succeeded'}, site.said()


def count_looks(site, also=''):
    """The directory of a squeue that is counted, and what waits for so many more of its answers."""
    looks = site.write('looks', '')

    def more(count):
        wanted = len(looks.read_text()) + count
        assert until(lambda: len(looks.read_text()) >= wanted, 60), site.said()
    return site.wrap('squeue', before=f'case "$*" in *" -j "*) ;; *) printf x >>{looks};; esac\n{also}'), more


@ONE
def test_what_waits_behind_others_that_were_cancelled_is_not_taken_for_cancelled(site):
    """squeue does not tell of the last of seven tasks or more that wait in equal steps."""
    bin, more_looks = count_looks(site)
    site.configure(options=['--hold'], bin=bin)
    ids = site.submit_many([{'id': f'c{n:02}', 'command': ['true']} for n in range(14)])
    dispatcher = site.dispatch()
    jobs = {id: site.until_known(id, state='PENDING', reason='Held')['job'] for id in ids}
    site.succeed('cancel', *ids[1::2])
    assert until(lambda: all(site.rows()[id]['verdict'] == 'cancelled' for id in ids[1::2]), 60), site.said()
    more_looks(6)
    rows = site.rows()
    assert {rows[id]['verdict'] for id in ids[::2]} == {None}, [rows[id] for id in ids[::2]]
    assert all(site.show(id)['engine']['job'] == jobs[id] for id in ids[::2]), 'it was submitted again'
    site.cluster.ask('scontrol', 'release', jobs[ids[0]].split('_')[0])
    for id in ids[::2]:
        assert site.until_verdict(id)['verdict'] == 'succeeded', site.said()
    assert site.stop(dispatcher) == 0


@ONE
def test_a_reason_of_any_length_in_any_letters_is_no_reason_to_submit_again(site):
    """Slurm's own may list nodes, and a plugin's may be anything."""
    said = "Held, not available: " + "nöde " * 60
    bin, more_looks = count_looks(site, f'/usr/bin/squeue "$@" | sed "s/JobHeldUser/{said}/"; exit')
    site.configure(options=['--hold'], bin=bin)
    id = site.submit('long', 'true')
    dispatcher = site.dispatch()
    job = site.until_known(id, state='PENDING', reason='Held, not available')['job']
    more_looks(8)
    assert [found[0] for found in site.jobs()] == [job], 'it was submitted again'
    site.cluster.ask('scontrol', 'release', job)
    assert site.until_verdict(id)['verdict'] == 'succeeded', site.said()
    assert site.stop(dispatcher) == 0


@pytest.mark.kinds('root')
def test_the_name_of_anothers_job_says_nothing_of_ours(site):
    """A name may have line breaks in it, and squeue prints them as they are."""
    bin, more_looks = count_looks(site)
    configure = site.let_submit_as_users()
    site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=down')
    try:
        id = site.submit('victim', '--slurm', 'partition=high', 'true')
        dispatcher = site.dispatch('--config', configure('owner', bin=bin))
        job = site.until_known(id, state='PENDING', reason='PartitionDown')['job']
        name = site.cluster.ask('squeue', '-h', '-r', '-O', 'Name:100', '-j', job).strip()
        # Held, it is told after the true one.
        somebody = pwd.getpwnam('news')
        subprocess.run(['sbatch', '--hold', '--output=/dev/null', '--partition=high', f'--job-name=x\n{job}|CANCELLED|None||0|{name}'],
                       input='#!/bin/sh\n', text=True, stdout=subprocess.PIPE, check=True, cwd='/', user=somebody.pw_uid,
                       group=somebody.pw_gid, extra_groups=[], env={'PATH': PATH, 'SLURM_CONF': site.cluster.conf})
        assert f'{job}|CANCELLED' in site.cluster.ask('squeue', '-h', '-a', '-O', 'Name:200'), 'nothing is forged'
        more_looks(3)
        assert site.rows()[id]['verdict'] is None, site.show(id)
    finally:
        site.cluster.ask('scancel', '-u', 'news')
        site.cluster.ask('scontrol', 'update', 'partitionname=high', 'state=up')
    assert site.until_verdict(id)['verdict'] == 'succeeded', site.said()
    assert site.stop(dispatcher) == 0
