"""The orchestrator in miniature, before: scripts that nobody trusts run as the platform itself.

    DATABASE_URL=postgresql://… python3 orchestrator.py
"""
import json
import os
import sys

import psycopg2

import subprocess
from workspace import cleanup_analysis_temp_dir, create_analysis_temp_dir

TIMEOUT_S = 60


def database():
    return psycopg2.connect(os.environ['DATABASE_URL'])


def run_single(analysis_id, script):
    """One analysis, from its script to its rows."""
    path = create_analysis_temp_dir(analysis_id)
    try:
        export_irises(path)
        run_python_script(path, script)
        return save_analysis(analysis_id, post_process(path))
    finally:
        cleanup_analysis_temp_dir(analysis_id)


def start_queued_analysis():
    """The oldest that is queued, here and now; its id, or None."""
    with database() as db, db.cursor() as sql:
        sql.execute("UPDATE analyses SET status = 'running' WHERE id = (SELECT id FROM analyses WHERE status = 'queued' "
                    "ORDER BY created LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, script")
        row = sql.fetchone()
    if row is None:
        return None
    try:
        run_single(*row)
        set_status(row[0], 'succeeded')
    except Exception:
        set_status(row[0], 'failed')
        raise
    return row[0]


def run_debate(analysis_id, question):
    """No files: a result out of the platform's own head."""
    conclusion = debate(question)
    with database() as db, db.cursor() as sql:
        sql.execute('INSERT INTO debates VALUES (%s, %s, %s)', (analysis_id, question, conclusion))
    return conclusion


def run_python_script(path, script):
    """Writes the script into the directory, then runs it there."""
    with open(os.path.join(path, 'script.py'), 'w') as file:
        file.write(script)
    subprocess.run(['python3', 'script.py'], cwd=path, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)


def post_process(path):
    """Reads what the script left, as the platform, whatever it left."""
    with open(os.path.join(path, 'ratios.json')) as file:
        return [{'title': f'the petals of {species} are {r["mean"]:.2f} times as long as its sepals', 'species': species,
                 'score': r['mean'] / r['sd']} for species, r in sorted(json.load(file).items())]


def save_analysis(analysis_id, rows):
    with database() as db, db.cursor() as sql:
        for row in rows:
            sql.execute('INSERT INTO hypotheses(title, species, score, analysis_id) VALUES (%s, %s, %s, %s)',
                        (row['title'], row['species'], row['score'], analysis_id))
    return len(rows)


def export_irises(path):
    with database() as db, db.cursor() as sql, open(os.path.join(path, 'irises.csv'), 'w') as file:
        sql.copy_expert('COPY irises TO STDOUT CSV HEADER', file)


def set_status(analysis_id, status):
    with database() as db, db.cursor() as sql:
        sql.execute('UPDATE analyses SET status = %s WHERE id = %s', (status, analysis_id))


def debate(question):
    return f'{question} The petals say so.'


if __name__ == '__main__':
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../analysis.py')) as untrusted:
        print(run_single(sys.argv[1] if len(sys.argv) > 1 else 'iris', untrusted.read()), 'rows')
