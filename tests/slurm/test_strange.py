"""Submitters who want more than they may, and a Slurm that says strange things: nobody else waits for it, nothing is lost, nothing is doubled."""
import pytest

ONE = pytest.mark.kinds('user')


@ONE
def test_a_word_that_sbatch_takes_for_a_file_or_a_question_is_refused(site):
    """sbatch would read the file as the dispatcher's user and tell what is in it, wait for a FIFO, or print a list and submit nothing."""
    for word in ['nodelist=/etc/passwd', 'nodelist=./x', 'exclude=/etc/passwd', 'exclude=../x', 'gres=help', 'gres=LIST', 'nice=-5', 'nice=x',
                 f'constraint={"a" * 5000}']:
        result = site.cli('submit', f'{site.tag}-bad', '--slurm', word, '--', 'true')
        assert result.status == 125 and 'slurm' in result.err and len(result.err.strip().splitlines()) == 1, (word, result)
    assert site.rows() == {}
