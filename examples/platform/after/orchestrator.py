"""The orchestrator in miniature, after: the same functions, and scripts that nobody trusts run under the hood.

    FUMEHOOD_DB=postgresql://… python3 orchestrator.py

It makes no directory, writes no SQL and parses no file of an analysis. What it saves arrives in one transaction with the
outputs, the verdict, the usage and the log, or not at all. ../config.yaml is the site's word on what may be filled, and by what:
../post_process.py reads hostile files, so that it has a hood of its own, and no database.
"""
import os
import sys

import fumehood

HERE = os.path.dirname(os.path.abspath(__file__))
SITE = os.path.join(HERE, '../config.yaml')
IRISES = {'irises.csv': 'SELECT species, sepal_length, petal_length FROM irises'}
LIMITS = fumehood.Limits(wall='60s')


def run_single(analysis_id, script):
    """One analysis, from its script to its rows; how many these were. What it failed at is raised."""
    with fumehood.Analysis(analysis_id, query=IRISES, outputs=['ratios.json'], limits=LIMITS, stage=False) as a:
        run_python_script(a, script)
        return save_analysis(a)


def start_queued_analysis(analysis_id, script):
    """For the next free worker, on this host or another (`fumehood worker`), whether this process lives on or not."""
    return fumehood.submit(['python3', '-c', script], id=analysis_id, query=IRISES, outputs=['ratios.json'],
                           limits=LIMITS, if_absent=True)


def run_debate(analysis_id, question):
    """No files: a result out of the platform's own head, and a row beside it."""
    conclusion = debate(question)
    with fumehood.Analysis(analysis_id) as a:
        a.commit(rows={'debates': [{'question': question, 'conclusion': conclusion}]}, result={'conclusion': conclusion})
    return conclusion


def run_python_script(a, script):
    """Writes the script into the directory, then runs it there."""
    with open(os.path.join(a.path, 'script.py'), 'w') as file:
        file.write(script)
    return a.run(['python3', 'script.py'], check=True)


def save_analysis(a, rows=None, result=None):
    return a.commit(rows=rows, result=result).rows


def post_process(analysis_id):
    """The rows of an analysis that is in the ledger once more, say after a fix of post_process.py."""
    return fumehood.post_process(analysis_id).rows


def debate(question):
    return f'{question} The petals say so.'


fumehood.configure(config=SITE)

if __name__ == '__main__':
    with open(os.path.join(HERE, '../analysis.py')) as untrusted:
        print(run_single(sys.argv[1] if len(sys.argv) > 1 else 'iris', untrusted.read()), 'rows')
