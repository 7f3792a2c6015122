"""Submitters who want more than they may, and a Slurm that says strange things: nobody else waits for it, nothing is lost, nothing is doubled."""
import pytest

from cluster import until

ONE = pytest.mark.kinds('user')


@ONE
def test_a_word_that_sbatch_takes_for_a_file_or_a_question_is_refused(site):
    """sbatch would read the file as the dispatcher's user and tell what is in it, wait for a FIFO, or print a list and submit nothing."""
    for word in ['nodelist=/etc/passwd', 'nodelist=./x', 'exclude=/etc/passwd', 'exclude=../x', 'gres=help', 'gres=LIST', 'nice=-5', 'nice=x',
                 f'constraint={"a" * 5000}']:
        result = site.cli('submit', f'{site.tag}-bad', '--slurm', word, '--', 'true')
        assert result.status == 125 and 'slurm' in result.err and len(result.err.strip().splitlines()) == 1, (word, result)
    assert site.rows() == {}


def count_looks(site, also=''):
    """The directory of a squeue that is counted, and what waits for so many more of its answers."""
    looks = site.write('looks', '')

    def more(count):
        wanted = len(looks.read_text()) + count
        assert until(lambda: len(looks.read_text()) >= wanted, 60), site.said()
    return site.wrap('squeue', before=f'case "$*" in *" -j "*) ;; *) printf x >>{looks};; esac\n{also}'), more


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
