"""A platform engineer's day, with what the README and docs/PYTHON.md say and nothing else: several steps, rows, asyncio, and the same
script once more."""
import re
import sqlite3
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

SITE = '''
post_process:
  tables:
    scores: {columns: [gene, value], fill: {analysis_id: '{id}'}, key: [gene, analysis_id], on_conflict: update}
'''

# The platform's own script, which may be run as often as one likes.
DAY = '''
import shutil
from fumehood import cleanup_analysis_temp_dir, create_analysis_temp_dir
from fumehood import subprocess

# Two steps in one workspace, one commit with rows and a result.
def steps(id):
    with fumehood.Analysis(id) as a:
        a.run(["python3", "prepare.py"], check=True)
        r = a.run(["python3", "fit.py"], check=True)
        assert not r.committed and "scores.json" in [o.path for o in r.outputs], r
        rows = [{"gene": g, "value": v} for g, v in json.loads(a.outputs["scores.json"].read_text()).items()]
        a.commit(rows={"scores": rows}, result={"model": "m1"})

try:
    steps(ID("steps"))
except fumehood.AlreadySucceeded as e:
    say(["steps", "again", e.result.attempt, len(e.result.steps)])
else:
    done = fumehood.load(ID("steps"))
    say(["steps", done.verdict, [step.verdict for step in done.steps], [o.path for o in done.outputs]])

# The same with the two functions and subprocess.
path = create_analysis_temp_dir(ID("held"))
try:
    for name in ("prepare.py", "fit.py"):
        shutil.copy(name, path)
    subprocess.run(["python3", "prepare.py"], cwd=path, check=True)
    subprocess.run(["python3", "fit.py"], cwd=path, check=True, capture_output=True, text=True)
finally:
    cleanup_analysis_temp_dir(ID("held"))
done = fumehood.load(ID("held"))
say(["held", done.attempt, len(done.steps), sorted(o.path for o in done.outputs)])

# Rows by a post-process, which is a list of words and runs under a hood of its own.
done = fumehood.run(["sh", "-c", "python3 prepare.py && python3 fit.py"], id=ID("rows"), inputs=["prepare.py", "fit.py"],
                    outputs=["scores.json"], post_process=["python3", "post.py"], check=True, if_absent=True).result
say(["rows", done.attempt, done.rows])

# Many at once, one of them too slow.
async def crowd():
    results = await asyncio.gather(*(fumehood.run_async(["sh", "-c", f"echo {n} >n"], id=ID(f"async-{n}"), if_absent=True)
                                     for n in range(4)))
    try:
        await fumehood.run_async(["sleep", "100"], id=ID("slow"), timeout=0.5)
    except fumehood.WaitTimeout as e:
        return [r.verdict for r in results], e.result.verdict
say(["asyncio", *asyncio.run(crowd())])

# What has succeeded is run again only if one says so.
again = fumehood.run(["true"], id=ID("again"), again=True, check=True).result
say(["again", again.attempt])
'''

PREPARE = 'import csv, json\njson.dump(list(csv.DictReader(open("data/genes.csv"))), open("genes.json", "w"))\n'
FIT = 'import json\njson.dump({g["gene"]: float(g["value"]) for g in json.load(open("genes.json"))}, open("scores.json", "w"))\n'
POST = '''import json
for gene, value in json.load(open("outputs/scores.json")).items():
    print(json.dumps({"table": "scores", "row": {"gene": gene, "value": value}}))
'''


def furnish(program, hood):
    program.site(SITE)
    hood.write('prepare.py', PREPARE)
    hood.write('fit.py', FIT)
    hood.write('post.py', POST)
    program('fumehood.ls()')
    path = hood.home / 'share/fumehood/ledger.db'
    with sqlite3.connect(path) as db:
        db.execute('CREATE TABLE scores(gene text, value real, analysis_id text, PRIMARY KEY (gene, analysis_id))')
    for file in path.parent.iterdir():
        hood.who.give(file)
    return path


def test_a_platform_engineers_day(program, hood):
    path = furnish(program, hood)
    files = ['fit.py', 'genes.json', 'prepare.py', 'scores.json']
    first, second = program(DAY), program(DAY)
    assert first == [['steps', 'succeeded', ['succeeded', 'succeeded'], ['genes.json', 'scores.json']],
                     ['held', 1, 2, [name for name in files if name.endswith('json')]], ['rows', 1, 2],
                     ['asyncio', ['succeeded'] * 4, 'timed_out'], ['again', 1]], first
    assert second == [['steps', 'again', 1, 2], ['held', 2, 2, [name for name in files if name.endswith('json')]], ['rows', 1, 2],
                      ['asyncio', ['succeeded'] * 4, 'timed_out'], ['again', 2]], second
    rows = sqlite3.connect(path).execute('SELECT analysis_id, gene FROM scores ORDER BY 1, 2').fetchall()
    assert rows == [(f'{hood.tag}-{name}', gene) for name in ('rows', 'steps') for gene in ('BRCA1', 'TP53')]
    # What the command sees of it.
    assert len(hood.succeed('show', f'{hood.tag}-steps', '--json').json['steps']) == 2
    assert hood.succeed('get', f'{hood.tag}-rows', 'scores.json', '-o', '-').out == '{"TP53": 0.9, "BRCA1": 0.7}'
    assert program.left() == []


def test_the_readmes_program(program, hood):
    text = re.search(r'^## From a program\n\n```python\n(.*?)^```', (TOP / 'README.md').read_text(), re.M | re.S).group(1)
    text = re.sub(r'"(a\d+)"', rf'"{hood.tag}-\1"', text)
    process = program.start(text)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and out.startswith('succeeded ') and "['out.txt']" in out, (out, err)
