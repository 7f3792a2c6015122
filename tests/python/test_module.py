"""The module's promises, each as a program that relies on it."""
import json
import signal
import subprocess
from pathlib import Path

import pytest

import leaks
from until import until

SITE = '''
post_process:
  tables:
    hypotheses: {columns: [title, score], fill: {analysis_id: '{id}'}}
'''
TABLE = 'CREATE TABLE hypotheses(title TEXT NOT NULL, score REAL CHECK (score > 0), analysis_id TEXT NOT NULL)'


def test_what_the_guide_begins_with(program, ledger, hood):
    """The example of docs/PYTHON.md, on each ledger."""
    ledger.sql(TABLE)
    program.site(SITE)
    hood.write('analysis.py', 'import os\nos.mkdir("results")\nopen("results/a.csv", "w").write(open("data/genes.csv").read())\n')
    assert program('''
with fumehood.Analysis(ID(1), data="data", docs="docs", outputs=["results/*.csv"], optional_outputs=["plot.png"],
                       limits=fumehood.Limits(wall="10m", log_max="1M"), keep="on-failure") as a:
    r = a.run(["python3", "analysis.py"], check=True)
    say([r.verdict, r.usage.wall_ms is not None, [o.path for o in r.outputs]])
    a.commit(rows={"hypotheses": [{"title": "…", "score": 0.7}]}, result={"model": "m1"})

async def main():
    r = await fumehood.run_async(["sh", "-c", "echo fit > fit.txt"], id=ID(2))
    say([r.verdict, r.committed])
asyncio.run(main())

path = fumehood.create_analysis_temp_dir(ID(3))
assert type(path) is str and os.stat(path).st_mode & 0o777 == 0o700, path
open(path + "/scores.json", "w").write('{"TP53": 0.9}')
def handler(outputs):
    return {"hypotheses": [{"title": gene, "score": score}
                           for gene, score in json.loads(outputs["scores.json"].read_text()).items()]}
fumehood.post_process(ID(3), handler)
fumehood.cleanup_analysis_temp_dir(ID(3))
fumehood.cleanup_analysis_temp_dir(ID(3))
say([fumehood.show(ID(1))["result"], fumehood.get(ID(1), "results/a.csv").decode()[:10], os.path.exists(path)])
''') == [['succeeded', True, ['results/a.csv']], ['succeeded', True], [{'model': 'm1'}, 'gene,value', False]]
    rows = ledger.sql('SELECT analysis_id, title, score FROM hypotheses ORDER BY analysis_id')
    assert rows == [f'{hood.tag}-1|…|0.7', f'{hood.tag}-3|TP53|0.9']


def test_a_key_among_the_contents_makes_no_host_large(program, hood):
    """SQLite reads the key of an index whole, whatever its length; who wrote this one is a stranger."""
    id = hood.run('echo x >x', '--output', 'x').json['id']
    path = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', '-bail', path, "PRAGMA ignore_check_constraints = 1; UPDATE fumehood_blob SET sha256 = replace(hex(zeroblob(300000000)), '00', 'z')"], check=True,
                   **hood.who.popen_arguments())
    assert program('''
for look in (fumehood.load, fumehood.show, fumehood.outputs, lambda id: fumehood.get(id, "x"), lambda id: fumehood.run(["sh", "-c", "echo y >y"])):
    try:
        look(sys.argv[1])
    except fumehood.FumehoodError:
        pass
say(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) >> 10)
''', id) < 256
    subprocess.run(['sqlite3', '-bail', path, 'UPDATE fumehood_blob SET sha256 = zeroblob(32)'], check=True, **hood.who.popen_arguments())
    hood.succeed('gc')


def test_json_that_is_nested_too_deeply_is_a_fault_of_the_ledger(program, hood):
    hood.run('true')
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db',
                    "UPDATE fumehood_attempt SET engine = replace(hex(zeroblob(1500)), '00', '[') || replace(hex(zeroblob(1500)), '00', ']')"],
                   check=True, **hood.who.popen_arguments())
    assert program('''
try:
    say(len(fumehood.ls()))
except fumehood.LedgerError as e:
    say("nested too deeply" in str(e))
''') is True
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db', 'UPDATE fumehood_attempt SET engine = NULL'], check=True,
                   **hood.who.popen_arguments())


def test_what_cannot_be_committed_is_pending_until_gc(program, hood):
    """Something lies where the object store makes its files."""
    hood.env['FUMEHOOD_DB'] = f'sqlite:{hood.home}/ledger.db'
    assert program('''
store = os.environ["HOME"] + "/ledger.db.objects"
os.mkdir(store, 0o700)
store += "/tmp"
open(store, "w").close()
large = ["sh", "-c", "head -c 300000 /dev/zero >large; echo small >small"]
try:
    fumehood.start(large, id=ID(1)).wait()
except fumehood.FumehoodError as e:
    r = e.result
    say([r.verdict, r.committed, r.pending, r.status, r.error.stage])
with fumehood.Analysis(ID(2)) as a:
    a.run(large)
    try:
        a.commit(result={"n": 1})
    except fumehood.FumehoodError as e:
        say([e.result.pending, e.result.verdict])
say(sorted((row.id == ID(1), row.state) for row in fumehood.ls("pending")))
os.unlink(store)
say(fumehood.gc().committed)
say([fumehood.show(ID(1))["verdict"], len(fumehood.get(ID(1), "large")), fumehood.show(ID(2))["result"], fumehood.ls("pending")])
''') == [['succeeded', False, True, 125, 'commit'], [True, 'succeeded'], [[False, 'pending'], [True, 'pending']], 2,
            ['succeeded', 300000, {'n': 1}, []]]
    assert program.left() == []


def test_leaving_commits_and_an_exception_leaves_nothing(program, hood):
    said = program('''
with fumehood.Analysis(ID(1)) as a:
    open(a.path + "/in.txt", "w").write("in")
    a.run(["sh", "-c", "cat in.txt in.txt > out.txt"])
try:
    with fumehood.Analysis(ID(2)) as a:
        a.run(["sh", "-c", "echo > out.txt"])
        raise KeyError("mine")
except KeyError:
    pass
with fumehood.Analysis(ID(3)) as a:  # inside this process
    open(a.path + "/mine.txt", "w").write("mine")
with fumehood.Analysis(ID(4)) as a:
    pass
say([[row.id[-1], row.verdict] for row in fumehood.ls()])
from datetime import datetime, timedelta, timezone
by_id = fumehood.ls(prefix=ID(1)[:-1] + "[13]", since=datetime.now(timezone.utc) - timedelta(hours=1), verdict=["succeeded", "lost"], sort="id")
assert [row.id for row in by_id] == [ID(1), ID(3)] and by_id[0].command[0] == "sh", by_id
assert fumehood.ls(until="1h") == [] and len(fumehood.ls(limit=1)) == 1
for wrong in dict(since=datetime.now()), dict(sort="size"), dict(verdict="fine"), dict(until="soon"):
    try:
        fumehood.ls(**wrong)
        raise SystemExit(f"{wrong} was taken")
    except fumehood.UsageError:
        pass
say([[o.path for o in fumehood.outputs(ID(n))] for n in (1, 3)])
''')
    assert sorted(said[0]) == [['1', 'succeeded'], ['3', 'succeeded']] and said[1] == [['out.txt'], ['mine.txt']]
    assert program.left() == []


def test_an_output_may_be_a_later_steps(program, hood):
    """What is declared must be there at the commit, whichever step makes it."""
    said = program('''
with fumehood.Analysis(ID(1), outputs=["scores.json"], optional_outputs=["*.png"]) as a:
    a.run(["sh", "-c", "echo 1 > raw; echo x > a.png"], check=True)
    say([o.path for o in a.run(["sh", "-c", "cat raw > scores.json"], check=True).outputs])
say(sorted(o.path for o in fumehood.load(ID(1)).outputs))
try:
    with fumehood.Analysis(ID(2), outputs=["scores.json"]) as a:
        a.run(["true"], check=True)
        a.run(["true"], check=True)
except fumehood.OutputMissing as e:
    say([e.result.committed, len(e.result.steps)])
with fumehood.Analysis(ID(3), outputs=["scores.json"]) as a:
    say(a.run(["true"]).verdict)
    say(a.commit().verdict)
''')
    assert said == [['a.png', 'scores.json'], ['a.png', 'scores.json'], [True, 2], 'succeeded', 'output_missing'], said


def test_what_fails_is_recorded_and_raised(program, hood):
    said = program('''
def attempt(n, *words, **options):
    try:
        with fumehood.Analysis(ID(n), **options) as a:
            a.run(list(words), check=True)
    except fumehood.FumehoodError as e:
        say([type(e).__name__, e.result and e.result.verdict, list(e.log), e.result and e.result.committed])
attempt(1, "sh", "-c", "echo so >&2; exit 3")
attempt(2, "sleep", "60", limits=fumehood.Limits(wall=0.2))
attempt(3, "true", outputs=["x"])
attempt(4, "sh", "-c", "kill -9 $$")
attempt("../5", "true")
attempt(6, "true", limits=fumehood.Limits(memory="lots"))
try:
    fumehood.show(ID(7))
except fumehood.NotFound as e:
    say(["NotFound", None, list(e.log), None])
''')
    assert said == [
        ['AnalysisFailed', 'failed', ['so'], True], ['TimedOut', 'timed_out', [], True],
        ['OutputMissing', 'output_missing', [], True], ['AnalysisFailed', 'failed', [], True],
        ['UsageError', None, [], None], ['UsageError', None, [], None], ['NotFound', None, [], None]], said
    assert program.left() == []


def test_what_was_denied_is_in_the_result_in_pythons_words(program, hood):
    hood.write('near.txt', 'near\n')
    hood.write('near.py', 'import socket\ntry: open("near.txt")\nexcept OSError: pass\ntry: socket.socket(38, 5)\nexcept OSError: pass\n')
    program('''
with fumehood.Analysis(ID(1), explain=True) as analysis:
    result = analysis.run(["python3", "near.py"])
found = {(d.operation, d.target): d for d in result.denials}
assert found["read", "near.txt"].hint == "./near.txt exists outside; add inputs=['near.txt']", found
hint = found["socket", "AF_ALG"].hint
assert found["socket", "AF_ALG"] == fumehood.Denial("seccomp", "socket", "AF_ALG", "EAFNOSUPPORT", 1, hint)
assert result.denials_more == 0
assert len(fumehood.show(ID(1))["denials"]) == len(found)
''')


def test_a_strength_without_namespaces(program, hood):
    assert program('''
with fumehood.Analysis(ID(1), data="data", strength="landlock") as a:
    r = a.run(["sh", "-c", "cat data/genes.csv >copy; chmod 600 copy"])
    held = {layer.name: layer.held for layer in r.receipt.layers}
    say([r.returncode, [o.path for o in r.outputs], held["landlock"], held["mount namespace"]])
    say([d.hint for d in r.denials if d.operation.startswith("fchmodat")])
try:
    fumehood.run("true", strength="landlock", limits=fumehood.Limits(disk="10M"))
except fumehood.Refused as why:
    say(str(why))
''') == [[1, ['copy'], True, False],
          ["with strength='landlock' nobody changes modes, owners, times or attributes, of its own files either; strength='full' "
           "allows it in the workspace"],
          "the disk limit of 10M cannot be held with strength='landlock': without a mount namespace there is no disk of its own, and a "
          "deleted file that is still open is not seen; use strength='full', or pass allow_unlimited=True to have it watched"]


def test_limits_have_exceptions_of_their_own(program, caged):
    assert program('''
def attempt(n, code, **limits):
    try:
        fumehood.run(["python3", "-c", code], id=ID(n), check=True, limits=fumehood.Limits(**limits))
    except fumehood.LimitExceeded as e:
        say([type(e).__name__, e.returncode])
attempt(1, "x = bytearray(10**9)", memory="64M")
attempt(2, "import os\\nfor i in range(50): os.fork() or os.pause()" if False else
        "import subprocess\\nfor i in range(50): subprocess.Popen(['sleep', '9'])", pids=16)
''') == [['MemoryLimitExceeded', 137], ['ProcessLimitExceeded', 1]]


def test_kept_on_failure_is_kept(program, hood):
    path = program('''
try:
    with fumehood.Analysis(ID(1), keep="on-failure") as a:
        a.run(["sh", "-c", "echo see > here; exit 1"], check=True)
except fumehood.AnalysisFailed as e:
    assert e.result.kept
    say(e.result.workspace)
''')
    assert (Path(path) / 'here').read_text() == 'see\n'
    hood.succeed('workspace', 'cleanup', f'{hood.tag}-1')


def test_rows_that_are_not_accepted_can_be_given_again(program, ledger, hood):
    ledger.sql(TABLE)
    program.site(SITE)
    said = program('''
with fumehood.Analysis(ID(1)) as a:
    a.run(["sh", "-c", "echo > out"])
    for rows in ({"users": [{"name": "x"}]}, {"hypotheses": [{"analysis_id": "forged"}]}, {"hypotheses": [{"score": float("nan")}]}):
        try:
            a.commit(rows=rows)
        except fumehood.FumehoodError as e:
            say(type(e).__name__)
    say(a.commit(rows={"hypotheses": [{"title": "good", "score": 1}]}).rows)
''')
    assert said[3] == 1 and said[2] == 'UsageError', said
    assert ledger.sql('SELECT title FROM hypotheses') == ['good']


def test_a_handler_that_fails_commits_nothing(program, ledger, hood):
    ledger.sql(TABLE)
    program.site(SITE)
    said = program('''
def bad(outputs):
    raise ZeroDivisionError("mine")
def refused(outputs):
    return {"hypotheses": [{"title": "t", "score": -1}]}
for n, handler in ((1, bad), (2, refused)):
    path = fumehood.create_analysis_temp_dir(ID(n))
    open(path + "/f", "w").write("f")
    try:
        fumehood.post_process(ID(n), handler)
    except (ZeroDivisionError, fumehood.FumehoodError) as e:
        say(type(e).__name__)
    fumehood.cleanup_analysis_temp_dir(ID(n))
path = fumehood.create_analysis_temp_dir(ID(3))
fumehood.run(["sh", "-c", "echo > f"], cwd=path)
try:
    fumehood.post_process(ID(3), bad)
except ZeroDivisionError:
    say("mine")
fumehood.cleanup_analysis_temp_dir(ID(3))
try:
    with fumehood.Analysis(ID(4)) as a:
        a.run(["true"])
        a.commit(rows=refused(None))
except fumehood.PostProcessFailed:
    say("refused")
say(sorted([row.id[-1], row.verdict] for row in fumehood.ls()))
''')
    # What the database itself does not take is a verdict, with the outputs and without a row.
    recorded = [[n, 'post_process_failed'] for n in '24']
    assert said == ['ZeroDivisionError', 'PostProcessFailed', 'mine', 'refused', recorded], said
    assert ledger.sql('SELECT count(*) FROM hypotheses') == ['0']


def test_a_handler_follows_no_link(program, hood):
    """What is collected is never a link; what becomes one later is not followed."""
    hood.write('secret', 'secret\n')
    assert program('''
path = fumehood.create_analysis_temp_dir(ID(1))
os.mkdir(path + "/d")
open(path + "/d/f", "w").write("f")
os.symlink(os.path.abspath("secret"), path + "/link")
def handler(outputs):
    assert list(outputs) == ["d/f"], outputs
    os.rename(path + "/d", path + "/e")
    os.symlink(path + "/e", path + "/d")
    try:
        outputs["d/f"].open()
    except OSError as e:
        say(e.errno)
    os.unlink(path + "/d")
    os.rename(path + "/e", path + "/d")
fumehood.post_process(ID(1), handler)
fumehood.cleanup_analysis_temp_dir(ID(1))
''') in (20, 40)


def test_ctrl_c_ends_it_and_leaves_nothing(program, hood):
    process = program.start('''
try:
    with fumehood.Analysis(ID(1)) as a:
        a.run(["sh", "-c", "echo on; exec sleep 1000"], on_line=lambda line: say(line.text))
except KeyboardInterrupt:
    say([row.id for row in fumehood.ls()])
try:
    with fumehood.Analysis(ID(2)) as a:
        run = a.start(["sleep", "1000"])
        say("waiting")
        run.wait()
except KeyboardInterrupt:
    say("again")
''')
    assert process.stdout.readline() == 'SAID "on"\n'
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == 'SAID []\n', process.stderr.read()
    assert process.stdout.readline() == 'SAID "waiting"\n'
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == 'SAID "again"\n'
    assert process.wait(300) == 0
    assert program.left() == []


def test_a_process_that_vanishes_takes_its_analyses_along(program, hood):
    process = program.start('''
fumehood.create_analysis_temp_dir(ID(9))
a = fumehood.Analysis(ID(1)).__enter__()
for line in a.start(["sh", "-c", "echo on; exec sleep 1000", ID(1)], follow=True):
    say(line.text)
    sys.stdin.readline()
    os._exit(7)
''', stdin=-1)
    assert process.stdout.readline() == 'SAID "on"\n', process.stderr.read()
    assert leaks.processes(f'{hood.tag}-1')
    process.stdin.write('\n')
    process.stdin.close()
    assert process.wait(300) == 7
    assert until(lambda: not leaks.processes(f'{hood.tag}-1')), 'it outlived its process'
    assert program('say(vars(fumehood.gc()))')['failed'] == 0
    assert program.left() == []


def test_cancelling_a_task_kills_its_analysis(program, hood):
    said = program('''
async def main():
    task = asyncio.ensure_future(fumehood.run_async(["sleep", "1000"], id=ID(1)))
    while not fumehood.ls("running"):
        await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        say([row.verdict for row in fumehood.ls()])
    async with fumehood.Analysis(ID(2)) as a:
        say((await a.run_async(["true"], check=True)).verdict)
    try:
        await asyncio.wait_for(inside(), 0.3)
    except asyncio.TimeoutError:
        say(sorted(row.id[-1] for row in fumehood.ls()))
async def inside():
    async with fumehood.Analysis(ID(3)) as a:
        await a.run_async(["sleep", "1000"])
asyncio.run(main())
''')
    assert said == [['cancelled'], 'succeeded', ['1', '2']], said


def test_lines_as_they_come(program, hood):
    said = program('''
with fumehood.start(["sh", "-c", "echo one; echo two >&2; printf three"], id=ID(1), follow=True, progress=True) as run:
    say(sorted([line.stream, line.text] for line in run))
    say([run.wait().verdict, run.progress().stage != ""])
async def main():
    with fumehood.start(["sh", "-c", "for i in 1 2 3; do echo $i; done"], id=ID(2), follow=True) as run:
        say([line.text async for line in run])
    say([line.text async for line in fumehood.follow(ID(2))])
asyncio.run(main())
say([line.text for line in fumehood.follow(ID(2))])
with fumehood.start(["sh", "-c", "echo slow; exec sleep 1000"], id=ID(3)) as run:
    while not fumehood.ls("running"):
        time.sleep(0.01)
    with fumehood.follow(ID(3)) as lines:
        for line in lines:
            say(line.text)
            break
say(fumehood.logs(ID(1), "stderr"))
''')
    assert said == [[['stderr', 'two'], ['stdout', 'one'], ['stdout', 'three']], ['succeeded', True], ['1', '2', '3'],
                    ['1', '2', '3'], ['1', '2', '3'], 'slow', 'two\n'], said


def test_as_subprocess(program, hood):
    said = program('''
from fumehood import subprocess
os.environ["SECRET"] = "s3cret"
done = subprocess.run(["sh", "-c", "cat; echo $SECRET$OWN >&2; exit 3"], input="in", capture_output=True, text=True,
                      env={**os.environ, "OWN": "own"})
say([done.returncode, done.stdout, done.stderr])
try:
    subprocess.run(["sleep", "60"], timeout=0.2)
except subprocess.TimeoutExpired as e:
    say([type(e).__name__, e.cmd])
try:
    subprocess.run(["sh", "-c", "echo out; kill -9 $$"], check=True, stdout=subprocess.PIPE)
except subprocess.CalledProcessError as e:
    say([e.returncode, e.stdout.decode()])
say(subprocess.check_output("echo 'a b'", text=True))
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
    p.stdin.write("hello\\n")
    p.stdin.close()
    say([p.stdout.readline(), p.stdout.read(), p.wait(), p.poll()])
with subprocess.Popen(["sh", "-c", "head -c 3000000 /dev/zero; echo e >&2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
    out, err = p.communicate()
    say([len(out), err.decode()])
p = subprocess.Popen(["sleep", "60"])
p.terminate()
say([p.wait(), p.result.verdict])
''')
    assert said == [[3, 'in', 'own\n'], ['WaitTimeout', ['sleep', '60']], [-9, 'out\n'], 'a b\n', ['hello\n', '', 0, 0],
                    [3000000, 'e\n'], [-15, 'cancelled']], said


def test_a_directory_comes_along_whole(program, hood):
    """A package, without its repository; and what is too much is told in Python's words."""
    project = hood.directory('project')
    for name, text in [('pkg/__init__.py', 'answer = 42'), ('main.py', 'import pkg; print(pkg.answer)'), ('.git/config', 'not this')]:
        hood.write(project / name, text)
    [hint] = program('''
say([w for w in fumehood.run(["ls", "-d", ".", "pkg"], id=ID(0)).result.receipt.warnings if "exists here" in w])
''', cwd=project)
    assert hint == "pkg exists here but is not shown to the analysis; add inputs=['pkg']", hint
    said = program('''
fumehood.run(["python3", "main.py"], id=ID(1), inputs=["."])
say(sorted(i["path"] for i in fumehood.show(ID(1))["inputs"]))
try:
    fumehood.run("true", id=ID(2), inputs=[".", ("pkg", "other")], limits=fumehood.Limits(input_max=10))
except fumehood.Refused as e:
    say(str(e))
try:
    fumehood.run("true", id=ID(3), inputs=[".."])
except fumehood.UsageError as e:
    say(str(e))
''', cwd=project)
    assert said[0] == ['main.py', 'pkg/__init__.py'], said
    assert 'limits.input_max' in said[1] and '--' not in said[1], said
    assert 'inputs=[(.., NAME)]' in said[2] and '--' not in said[2], said


def test_a_run_in_a_held_directory_is_that_analysis(program, hood):
    """What a platform has: the two functions, and subprocess with cwd=."""
    said = program('''
from fumehood import subprocess
path = fumehood.create_analysis_temp_dir(ID(1))
open(path + "/script.py", "w").write("print(1); open('out.txt', 'w').write('x')")
subprocess.run(["python3", "script.py"], cwd=path, check=True)
say(sorted(os.listdir(path)))
subprocess.run(["sh", "-c", "cat out.txt > more.txt"], cwd=path, check=True, outputs=["*.txt"])
say([row.state for row in fumehood.ls()])
fumehood.post_process(ID(1), lambda outputs: say(list(outputs)))
say([fumehood.load(ID(1)).verdict, os.path.exists(path)])
fumehood.cleanup_analysis_temp_dir(ID(1))
say([len(fumehood.load(ID(1)).steps), os.path.exists(path)])
path = fumehood.create_analysis_temp_dir(ID(2))
try:
    subprocess.run(["false"], cwd=path, check=True)
except subprocess.CalledProcessError:
    pass
fumehood.cleanup_analysis_temp_dir(ID(2))
say([fumehood.load(ID(2)).verdict, os.path.exists(path)])
''')
    assert 'out.txt' in said[0] and said[2:] == [
        ['more.txt', 'out.txt'], ['succeeded', True], [2, False], ['failed', False]], said


def test_a_script_can_be_run_twice(program, hood):
    """As before the two imports: what has succeeded is run once more, and that is its next attempt."""
    script = '''
from fumehood import subprocess
from fumehood import cleanup_analysis_temp_dir, create_analysis_temp_dir
path = create_analysis_temp_dir(ID(1))
try:
    open(path + "/script.py", "w").write("print('done')")
    say(subprocess.run(["python3", "script.py"], cwd=path, check=True, capture_output=True, text=True, timeout=60).stdout)
finally:
    cleanup_analysis_temp_dir(ID(1))
say(fumehood.load(ID(1)).attempt)
'''
    assert [program(script) for _ in range(3)] == [['done\n', n] for n in (1, 2, 3)]


def test_an_id_that_has_succeeded(program, hood):
    """It is not run again unless one says so, and what it had to tell is at hand."""
    said = program('''
first = fumehood.run(["sh", "-c", "echo said; echo 1 > out"], id=ID(1), check=True)
def attempt(what):
    try:
        return what()
    except fumehood.AlreadySucceeded as e:
        assert isinstance(e, fumehood.Refused)
        say([str(e), e.result.attempt, [o.path for o in e.result.outputs]])
command = ["sh", "-c", "echo never"]
async def both():
    say((await fumehood.run_async(command, id=ID(1), if_absent=True)).attempt)
    await fumehood.run_async(command, id=ID(1))
attempt(lambda: fumehood.run(command, id=ID(1)))
attempt(lambda: fumehood.start(command, id=ID(1)).wait())
attempt(lambda: asyncio.run(both()))
with fumehood.Analysis(ID(1)) as a:
    attempt(lambda: a.run(command))
done = fumehood.run(command, id=ID(1), if_absent=True, capture_output=True, text=True)
say([done.returncode, done.stdout, done.result.attempt])
with fumehood.start(command, id=ID(1), if_absent=True, follow=True) as run:
    say([list(run), run.running, run.wait(check=True).attempt, run.result().verdict])
say(fumehood.run(["sh", "-c", "exit 3"], id=ID(1), again=True).result.attempt)
attempt(lambda: fumehood.run(command, id=ID(1)))
say(fumehood.run(["true"], id=ID(2), if_absent=True).result.attempt)
''')
    refused = [f"'{hood.tag}-1' has already succeeded: again=True makes another attempt, fumehood.show('{hood.tag}-1') shows the last one",
               1, ['out']]
    assert said == [refused, refused, 1, refused, refused, [0, 'said\n', 1], [[], False, 1, 'succeeded'], 2, refused, 1], said


def test_values_of_the_wrong_type_are_told_in_a_sentence(program, hood):
    """And never in ctypes' words."""
    said = program('''
Limits = fumehood.Limits
for what in (
        "fumehood.show(5)", "fumehood.load('a', 'b')", "fumehood.load('a', 2**40)", "fumehood.ls(5)", "fumehood.ls(limit='x')",
        "fumehood.outputs(None)", "fumehood.get('a', 5)", "fumehood.get('a', 'b', to=5)", "fumehood.logs('a', 'x')",
        "fumehood.logs('a', [])", "fumehood.follow(5)", "fumehood.run(5)", "fumehood.run([])", "fumehood.run([1])",
        "fumehood.run('\\"')", "fumehood.run('true', id=5)", "fumehood.run('a\\0')", "fumehood.run('true', limits={})",
        "fumehood.run('true', limits=Limits(memory=[]))", "fumehood.run('true', limits=Limits(wall=True))",
        "fumehood.run('true', outputs=5)", "fumehood.run('true', outputs=[5])", "fumehood.run('true', ro='data')",
        "fumehood.run('true', ro=[(1, 2)])", "fumehood.run('true', inputs=5)", "fumehood.run('true', data=5)",
        "fumehood.run('true', env=5)", "fumehood.run('true', env={'A': 5})", "fumehood.run('true', env={'A=': 'b'})",
        "fumehood.run('true', query=['x'])", "fumehood.run('true', keep='sometimes')", "fumehood.run('true', strength=5)",
        "fumehood.run('true', timeout='x')", "fumehood.run('true', hood=5)", "fumehood.run('true', post_process=5)",
        "fumehood.run('true', stdout='x')", "fumehood.run('true', cwd=5)", "fumehood.start('true', stdin='x')",
        "fumehood.submit('true', id=ID(1), priority='x')", "fumehood.submit_many(['true'])", "fumehood.submit('true', after=5)",
        "fumehood.wait(5)", "fumehood.wait('a', timeout='x')", "fumehood.cancel(5)", "fumehood.retry(None)", "fumehood.queue(5)",
        "fumehood.Worker('x')", "fumehood.Worker(1, lease=5)", "fumehood.configure(ledger=5)", "fumehood.configure(config=5)",
        "fumehood.create_analysis_temp_dir(5)", "fumehood.create_analysis_temp_dir('a', hold_for='x')",
        "fumehood.cleanup_analysis_temp_dir(5)", "fumehood.post_process(5)", "fumehood.post_process('a', attempt='x')",
        "fumehood.post_process('a', command=5)", "fumehood.shell(5, 'ls')", "fumehood.shell('a', 5)", "fumehood.shell('a', 'ls', attempt='x')",
        "fumehood.shell('a', 'ls', stdin='x')", "fumehood.Analysis(5).__enter__()", "fumehood.db('x')", "fumehood.db(5)"):
    try:
        eval(what)
        say([what, "nothing"])
    except (TypeError, ValueError, AttributeError) as e:
        if "ctypes" in str(e) or "argument 1" in str(e) or "of the library" in str(e) or len(str(e)) < 10:
            say([what, repr(e)])
    except Exception as e:
        say([what, repr(e)])
say("done")
''')
    assert said == 'done', said


def test_a_post_process_may_be_a_list(program, hood):
    program.site('post_process: {tables: {scores: [text]}}\n')
    hood.write('post.sh', 'printf \'{"table": "scores", "row": {"text": "%s"}}\' "$1"\n')
    said = program('''
import sqlite3
fumehood.ls()
db = sqlite3.connect(os.environ["XDG_DATA_HOME"] + "/fumehood/ledger.db")
db.execute("CREATE TABLE scores(text text)")
db.commit()
for n, words in enumerate((["sh", "post.sh", "two words"], ["sh", "post.sh", "it's $HOME"], "sh post.sh 'in a text'")):
    fumehood.run(["true"], id=ID(n), post_process=words, check=True)
fumehood.post_process(ID(0), command=["sh", "post.sh", "two words"])
say(sorted(row[0] for row in db.execute("SELECT text FROM scores")))
''')
    assert said == ['in a text', "it's $HOME", 'two words'], said


def test_forked_children_are_on_their_own(program, hood):
    said = program('''
import multiprocessing
def child(n):
    with fumehood.Analysis(ID(n)) as a:
        return a.run(["true"]).verdict
with fumehood.Analysis(ID(1)) as a:
    run = a.start(["sh", "-c", "sleep 0.5; echo > out"])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        say(pool.map(child, [2, 3]))
    pid = os.fork()
    if pid == 0:
        sys.exit(0)  # through the `with`, and past every finalizer
    os.waitpid(pid, 0)
    try:
        pid = os.fork()
        if pid == 0:
            a.run(["true"])
    except fumehood.Refused:
        os._exit(5)
    say(os.waitpid(pid, 0)[1] >> 8)
    say([run.wait().verdict, os.path.exists(a.path)])
''')
    assert said == [['succeeded', 'succeeded'], 5, ['succeeded', True]], said


def test_closing_while_another_thread_waits(program, hood):
    assert program('''
run = fumehood.start(["sleep", "1000"], id=ID(1))
ended = []
def wait():
    try:
        ended.append(run.wait().verdict)
    except fumehood.Refused:
        ended.append("closed")
threads = [threading.Thread(target=wait) for _ in range(4)]
[t.start() for t in threads]
while not fumehood.ls("running"):
    time.sleep(0.01)
run.close()
[t.join() for t in threads]
say(sorted(set(ended)))
''') == ['closed']


def test_the_house(program, hood, tmp_path):
    said = program('''
say(fumehood.plan(fumehood.Request(command="true"))["limits"]["wall"]["limit"])
say([type(item).__name__ for item in fumehood.doctor().items][:1])
say(fumehood.db("status") != {})
fumehood.run(["sh", "-c", "printf x > $(printf 'caf\\\\351')"], id=ID(1), check=True)
name = fumehood.outputs(ID(1))[0].path
say([os.fsencode(name).hex(), fumehood.get(ID(1), name).decode()])
fumehood.get(ID(1), name, "copy")
say(open("copy").read())
try:
    fumehood.get(ID(1), "none", "copy2")
except fumehood.NotFound:
    say(sorted(n for n in os.listdir(".") if "copy" in n or n.startswith(".fume")))
try:
    fumehood.run(["true"], id=ID(1))
except fumehood.Refused as e:
    say(e.stage)
say(fumehood.run(["true"], id=ID(1), again=True).result.attempt)
''')
    assert said[0] == '1h' and said[3] == ['636166e9', 'x'] and said[4:6] == ['x', ['copy']] and said[7] == 2, said


def test_outputs_flow(program, ledger, hood):
    """from_, in each of its forms and ways to run, and what came from what."""
    assert program('''
fumehood.run(["sh", "-c", "echo 1 > a.csv; echo 2 > b.txt"], id=ID(1))
show = "find . -type f -path './[fi]*' | sort"
for n, from_ in enumerate([ID(1), [ID(1)], [(ID(1), "*.csv")], [(ID(1), None, "in")], [(ID(1), "b.*", "in/x")], f"{ID(1)}:*.txt:in"], 2):
    done = fumehood.run(["sh", "-c", show], id=ID(n), from_=from_, capture_output=True, text=True)
    say(done.stdout.replace(ID(1), "ID").split())
with fumehood.Analysis(ID(8), from_=ID(1)) as a:
    say(a.run(["sh", "-c", "cat from/*/* > sum"], check=True).verdict)
run = fumehood.start(["cat", f"from/{ID(8)}/sum"], id=ID(9), from_=ID(8))
say(run.wait().verdict)
fumehood.submit(["sh", "-c", f"cat from/{ID(8)}/sum > again"], id=ID(10), from_=ID(8))
with fumehood.Worker(jobs=1):
    fumehood.wait(ID(10))
found = fumehood.lineage(ID(8))
say([[edge[end]["id"].replace(ID(0)[:-1], "") for end in ("from", "to")] for edge in found["edges"]])
say([i["from_analysis"] == ID(8) for i in fumehood.show(ID(10))["inputs"]])
for wrong in (3, b"x", {"a": 1}, [3], [("a",)], [("a", "b", "c", "d")], [("a", 3)]):
    try:
        fumehood.run(["true"], from_=wrong)
    except TypeError as problem:
        assert "from_" in str(problem), problem
    else:
        say(["taken", repr(wrong)])
for wrong in ("a*", ["nobody"], [(ID(1), "*.png")], [(ID(1), None, "../x")], [(ID(1), None, "in"), (ID(1), "*.csv", "in")]):
    try:
        fumehood.run(["true"], from_=wrong)
    except fumehood.FumehoodError as problem:
        assert "--" not in str(problem) and "AS" not in str(problem).split(), problem
    else:
        say(["taken", repr(wrong)])
''') == [
        ['./from/ID/a.csv', './from/ID/b.txt'], ['./from/ID/a.csv', './from/ID/b.txt'], ['./from/ID/a.csv'],
        ['./in/a.csv', './in/b.txt'], ['./in/x/b.txt'], ['./in/b.txt'], 'succeeded', 'succeeded',
        [['1', '8'], ['8', '9'], ['8', '10']], [True]]


def test_the_queue(program, hood):
    said = program('''
ids = [fumehood.submit(["sh", "-c", f"echo {n} > out"], id=ID(n), outputs=["out"]) for n in range(3)]
late = fumehood.submit(["true"], id=ID("late"), after=ids)
say(sorted(job.state for job in fumehood.queue()))
say(fumehood.submit(["true"], id=ids[0], if_absent=True) == ids[0])
try:
    fumehood.wait(late, timeout=0.2)
except fumehood.WaitTimeout:
    say("not yet")
with fumehood.Worker(2, lease="3s"):
    say([job.verdict for job in fumehood.wait(*ids, late, timeout=60)])
    say([job.verdict for job in asyncio.run(fumehood.wait_async(late))])
    never = fumehood.submit(["sleep", "1000"], id=ID("long"))
    while fumehood.queue("running") == []:
        time.sleep(0.01)
    fumehood.cancel(never)
    say(fumehood.wait(never, timeout=60)[0].verdict)
say(fumehood.get(ids[1], "out").decode())
failed = fumehood.submit(["false"], id=ID("failing"))
with fumehood.Worker(1, drain=True):
    pass
say(fumehood.wait(failed, timeout=0)[0].verdict)
fumehood.retry(failed)
say([fumehood.cancel(failed), fumehood.wait(failed)[0].state])
''')
    assert said == [['queued', 'queued', 'queued', 'waiting'], True, 'not yet', ['succeeded'] * 4, ['succeeded'],
                    'cancelled', '1\n', 'failed', ['queued', 'cancelled']], said


def test_what_a_stranger_submits_names_nothing_of_the_workers_host(program, hood):
    """A ledger that others can write to is nobody's, and root does not even open it."""
    hood.write('secret', 'mine\n', 0o600)
    said = program('''
directory = os.environ["XDG_DATA_HOME"] + "/fumehood"
secret = os.getcwd() + "/secret"
for n, mode in enumerate((0o700, 0o777)):
    fumehood.submit(["cat", secret], id=ID(n), ro=[secret], data=None)
    os.chmod(directory, mode)
    try:
        with fumehood.Worker(1, drain=True):
            pass
    except fumehood.Refused as problem:
        say("refused")
        say(str(problem))
        break
    finally:
        os.chmod(directory, 0o700)
    say(fumehood.wait(ID(n))[0].verdict)
else:
    say(fumehood.show(ID(1))["reason"])
''')
    reason = 'root opens only what nobody else can change' if hood.who.is_root else 'is not allowed'
    assert said[:2] == ['succeeded', 'refused'] and reason in said[2], said


def test_what_is_meant_for_slurm_is_said_by_names(program):
    said = program('''
fumehood.submit(["true"], id=ID(1), slurm={"partition": "long", "gres": "gpu:1"})
say(fumehood.show(ID(1))["request"]["slurm"])
for bad in ({"wrap": "true"}, {"partition": ""}, {"nodelist": "a b"}):
    try:
        fumehood.submit(["true"], slurm=bad)
    except fumehood.UsageError as problem:
        say("slurm" in str(problem))
for engine, kind in (("pbs", fumehood.UsageError), ("slurm", fumehood.Refused)):
    try:
        with fumehood.Worker(1, drain=True, engine=engine):
            pass
    except kind as problem:
        say("slurm" in str(problem).lower())
''')
    assert said == [['partition=long', 'gres=gpu:1'], True, True, True, True, True], said


def test_a_post_process_goes_along_with_what_is_submitted(program, hood):
    program.site('post_process: {tables: {scores: [text]}}\n')
    hood.write('post.sh', 'echo \'{"table": "scores", "row": {"text": "stored"}}\'\n')
    said = program('''
import sqlite3
fumehood.submit(["true"], id=ID(1), post_process="sh post.sh")
os.unlink("post.sh")
db = sqlite3.connect(os.environ["XDG_DATA_HOME"] + "/fumehood/ledger.db")
db.execute("CREATE TABLE scores(text text)")
db.commit()
with fumehood.Worker(1, drain=True):
    pass
say(fumehood.wait(ID(1))[0].verdict)
say(db.execute("SELECT text FROM scores").fetchall())
''')
    assert said == ['succeeded', [['stored']]], said


def test_what_is_shown_and_copied_only_on_purpose(program, hood):
    hood.write('results/a', 'mine\n')
    place = hood.write(hood.base / 'elsewhere/secret', 'not yours\n').parent
    (hood.dir / 'docs').rename(hood.dir / 'own-docs')
    (hood.dir / 'docs').symlink_to(place)
    hood.platform_changed_on_purpose()
    said = program('''
try:
    fumehood.run(["true"], id=ID(1))
    say("ran")
except fumehood.Refused as refused:
    say(str(refused))
for force in (False, True):
    try:
        fumehood.run(["sh", "-c", "echo new > a; echo new > .profile"], id=ID(2 + force), docs="own-docs", into="results", force=force)
        say("copied")
    except fumehood.Refused as refused:
        say([refused.stage, "'a' exists" in str(refused)])
say([fumehood.show(ID(n))["verdict"] for n in (2, 3)])
''')
    assert f'docs={place}' in said[0]
    assert said[1:] == [['into', True], 'copied', ['succeeded', 'succeeded']]
    assert {path.name: path.read_text() for path in (hood.dir / 'results').iterdir()} == {'a': 'new\n'}


def test_a_flood_ends_where_the_log_does(program, hood):
    said = program('''
flood = "i=0; while [ $i -lt 20000 ]; do echo a rather long line, number $i; i=$((i+1)); done"
with fumehood.Popen(["sh", "-c", flood], id=ID(1), limits=fumehood.Limits(log_max="64K"), stdout=-1, text=True) as process:
    text = process.stdout.read()
say([len(text), text[65536:].strip()[:40]])
''')
    assert 65536 < said[0] < 65536 + 400 and said[1].startswith('[fumehood: stdout is longer'), said


def test_a_command_in_what_was_kept_and_a_terminal(program, hood):
    assert program('''
r = fumehood.run(["sh", "-c", "echo half >part; exit 3"], id=ID(1), keep="on-failure", env={"COLOUR": "red"})
s = fumehood.shell(ID(1), ["sh", "-c", "cat part; echo $COLOUR; exit 4"])
t = fumehood.shell(ID(1), "tty", terminal=True)
u = fumehood.start(["sh", "-c", "test -t 1 && stty size"], id=ID(2), terminal=True).wait()
try:
    fumehood.shell(ID(3), "true")
except fumehood.FumehoodError as e:
    missing = "kept" in str(e)
say([s.exit_code, s.stdout, s.committed, t.stdout, u.stdout, len(fumehood.ls()), missing])
fumehood.cleanup_analysis_temp_dir(ID(1))
''') == [4, 'half\nred\n', False, '/dev/pts/0\r\n', '24 80\r\n', 2, True]
