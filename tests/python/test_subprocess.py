"""fumehood.subprocess is held against the standard library's: by CPython's own test of it, and by a list of what is left out."""
import json
import signal
from pathlib import Path

import leaks

HERE = Path(__file__).resolve().parent
PASSED_AT_LEAST = 140


def test_streams_go_where_they_go_with_the_real_one(program, hood):
    said = program('''
import io, subprocess as real, tempfile
from fumehood import subprocess
both = ["sh", "-c", "for i in 1 2 3; do echo out$i; echo err$i >&2; done"]
with open("out.txt", "w") as out, open("err.txt", "w") as err:
    subprocess.run(both, stdout=out, stderr=err, check=True)
say([open("out.txt").read().split(), open("err.txt").read().split()])
with open("both.txt", "wb") as file:
    subprocess.check_call(both, stdout=file.fileno(), stderr=subprocess.STDOUT)
say(open("both.txt").read().split())
done = subprocess.run(both, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
say([done.stdout.split(), done.stderr, isinstance(done, real.CompletedProcess)])
say(subprocess.run(both, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr.split())
read, write = os.pipe()
subprocess.run(["sh", "-c", "echo through a pipe"], stdout=write)
os.close(write)
say(os.read(read, 100).decode())
sys.stdout.flush()
subprocess.run(["echo", 'SAID "inherited"'])
say(subprocess.run(["cat"], input=b"in\\r\\nput", stdout=subprocess.PIPE).stdout.decode())
say(subprocess.run(["cat"], input="in\\nput", capture_output=True, encoding="latin-1").stdout)
with subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 30000 ]; do echo a rather long line, number $i; i=$((i+1)); done"],
                      stdout=subprocess.PIPE, text=True) as process:
    lines = 0
    for line in process.stdout:  # slowly at first
        time.sleep(0.5 if lines == 0 else 0)
        lines += 1
say([lines, process.returncode, isinstance(process, real.Popen)])
flood = "head -c 5000000 /dev/zero >&2; echo done"
with open("flood", "wb") as file:
    done = subprocess.run(["sh", "-c", flood], stdout=subprocess.PIPE, stderr=file, text=True)
say([done.stdout, os.path.getsize("flood")])
''')
    numbered = {name: [f'{name}{i}' for i in (1, 2, 3)] for name in ('out', 'err')}
    merged = [f'{name}{i}' for i in (1, 2, 3) for name in ('out', 'err')]
    assert said == [[numbered['out'], numbered['err']], merged, [merged, None, True], numbered['err'], 'through a pipe\n',
                    'inherited', 'in\r\nput', 'in\nput', [30000, 0, True], ['done\n', 5000000]], said


def test_a_terminal_is_shown_text_and_colours_and_obeys_nothing(program, hood):
    """As with the command: a stranger's control sequences are made visible."""
    said = program('''
import pty, tty
from fumehood import subprocess
master, slave = pty.openpty()
tty.setraw(slave)
hostile = b"\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x1b[6n \\x1b[>4;2m \\xc2\\x9b6n \\x9b6n caf\\xc3\\xa9 \\xe2\\x82\\xac \\xff\\n\\x1b[1mbold\\x1b["
code = f"import os, time\\nfor c in {hostile!r}: os.write(1, bytes([c])); time.sleep(0.002)"
subprocess.run(["python3", "-c", code], stdout=slave, check=True)
seen = b""
while not seen.endswith(b"0m") or b"bold" not in seen:
    seen += os.read(master, 4096)
say(seen.decode())
subprocess.run(["printf", r"\\033]0;raw"], stdout=open("file", "wb"))
say(open("file").read())
''')
    assert said == [
        '\x1b[31mred\x1b[0m \\x1b]0;title\\x07 \\x1b[6n \\x1b[>4;2m \\xc2\\x9b6n \\x9b6n café € \\xff\n\x1b[1mbold\\x1b[\x1b[0m',
        '\x1b]0;raw'], said


def test_ctrl_c_ends_what_is_run(program, hood):
    """In run(), whatever it waits for, and in a `with`; the real one's child hears it from the terminal."""
    process = program.start('''
from fumehood import subprocess
def attempt(n, what):
    try:
        what(["sh", "-c", "echo on; exec sleep 1000", ID(f"run{n}")], ID(f"run{n}"))
    except KeyboardInterrupt:
        say(fumehood.ls("running") == [])
def inside(command, id):
    with subprocess.Popen(command, id=id) as process:
        time.sleep(1000)
attempt(1, lambda command, id: subprocess.run(command, id=id))
attempt(2, lambda command, id: subprocess.run(command, id=id, stderr=-1, input=b"x" * 1000000))
attempt(3, inside)
say([row.verdict for row in fumehood.ls()])
''')
    for n in (1, 2, 3):
        assert process.stdout.readline() == 'on\n', process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == 'SAID true\n', process.stderr.read()
        assert not leaks.processes(f'{hood.tag}-run{n}')
    assert process.stdout.readline() == 'SAID ["cancelled", "cancelled", "cancelled"]\n', process.stderr.read()
    assert process.wait(300) == 0 and program.left() == []


def test_one_that_nobody_waits_for_is_let_go(program, hood):
    """In silence: an object that is lost is not the moment to complain."""
    assert program('''
import gc, warnings
from fumehood import subprocess
warnings.simplefilter("ignore", ResourceWarning)
path = fumehood.create_analysis_temp_dir(ID(1))
process = subprocess.Popen(["true"], cwd=path)
while process.run.running:
    time.sleep(0.01)
fumehood.cleanup_analysis_temp_dir(ID(1))
noise = []
sys.unraisablehook = lambda what: noise.append(repr(what.exc_value))
del process
gc.collect()
subprocess.Popen(["sh", "-c", "sleep 0.3; echo > out"], id=ID(2))  # goes on, as with the real one
while fumehood.ls("running"):
    time.sleep(0.05)
subprocess.run(["true"])
say([noise, fumehood.load(ID(1)).verdict, fumehood.load(ID(2)).verdict])
''') == [[], 'succeeded', 'succeeded']


def test_what_is_not_taken_is_told(program, hood):
    assert program('''
from fumehood import subprocess
with open("/dev/full", "w") as full:
    try:
        subprocess.run(["echo", "lost"], stdout=full)
    except OSError as e:
        say(e.strerror)
''') == 'No space left on device'


def test_what_is_raised_is_what_the_real_one_raises(program, hood):
    said = program('''
import subprocess as real
from fumehood import subprocess
def attempt(what):
    try:
        what()
    except Exception as e:
        return e
e = attempt(lambda: subprocess.run(["sh", "-c", "echo begun; exec sleep 60"], timeout=0.5, capture_output=True, id=ID(1)))
say([type(e).__name__, isinstance(e, real.TimeoutExpired), isinstance(e, real.CalledProcessError), e.timeout, e.cmd[0],
     e.stdout.decode(), e.result.verdict])
process = subprocess.Popen(["sleep", "60"])
e = attempt(lambda: process.wait(timeout=0.1))
say([isinstance(e, real.TimeoutExpired), isinstance(e, fumehood.WaitTimeout), process.poll()])
e = attempt(lambda: process.communicate(timeout=0.1))
say([isinstance(e, subprocess.TimeoutExpired), e.cmd])
process.kill()
say([process.wait(), process.result.verdict])
e = attempt(lambda: subprocess.run(["sh", "-c", "echo out; exit 3"], check=True, capture_output=True, text=True))
say([isinstance(e, real.CalledProcessError), isinstance(e, fumehood.AnalysisFailed), e.returncode, e.stdout, e.cmd[0]])
e = attempt(lambda: subprocess.run(["no-such-program"]))
say([type(e).__name__, e.filename])
say(type(attempt(lambda: subprocess.Popen(["true"], cwd="no/such/place"))).__name__)
say(type(attempt(lambda: subprocess.run(["true"], limits=fumehood.Limits(wall="2s"), timeout=1))).__name__)
say(type(attempt(lambda: subprocess.run(["sleep", "60"], limits=fumehood.Limits(wall=0.2), check=True))).__name__)
''')
    assert said == [['WaitTimeout', True, False, 0.5, 'sh', 'begun\n', 'timed_out'], [True, True, None], [True, ['sleep', '60']],
                    [-9, 'cancelled'], [True, True, 3, 'out\n', 'sh'], ['FileNotFoundError', 'no-such-program'],
                    'FileNotFoundError', 'UsageError', 'TimedOut'], said


def test_what_cannot_be_is_refused_by_name(program, hood):
    said = program('''
from fumehood import subprocess
for name, value in (("shell", True), ("preexec_fn", print), ("executable", "/bin/sh"), ("pass_fds", (3,)), ("user", 0), ("group", 0),
                    ("extra_groups", []), ("umask", 0), ("process_group", 0)):
    for function in (subprocess.run, subprocess.Popen):
        try:
            function(["true"], **{name: value})
            say([name, "ran"])
        except ValueError as e:
            assert str(e).startswith(name + "= cannot be: "), e
for function in (subprocess.getoutput, subprocess.getstatusoutput):
    try:
        function("true")
    except ValueError as e:
        assert "cannot be" in str(e), e
say([subprocess.run(["true"], shell=False, preexec_fn=None, close_fds=False, start_new_session=True).returncode, fumehood.ls() != []])
''')
    assert said == [0, True], said


def test_cpythons_own_test_of_subprocess(program, hood):
    """Each of its tests passes, or is listed with the reason why it cannot."""
    rows = [line.split(maxsplit=1) for line in (HERE / 'subprocess-left-out').read_text().splitlines()
            if line.strip() and line[0] != '#']
    assert all(len(row) == 2 for row in rows), 'a line without its reason'
    listed = {row[0] for row in rows}
    assert len(listed) == len(rows), 'a test that is listed twice'
    runner = hood.write(hood.base / 'cpython_subprocess.py', (HERE / 'cpython_subprocess.py').read_text())
    left_out = hood.write(hood.base / 'left-out', (HERE / 'subprocess-left-out').read_text())
    process = program.start(f'sys.argv = [sys.argv[0], {str(left_out)!r}]\nexec(open({str(runner)!r}).read())')
    out, err = process.communicate(timeout=900)
    program('fumehood.gc()')  # of what a test has left running
    said = [line for line in out.splitlines() if line.startswith('OUTCOMES ')]
    assert process.returncode == 0 and said, f'status {process.returncode}\n{out[-3000:]}\n{err[-3000:]}'
    outcomes = json.loads(said[-1].split(' ', 1)[1])
    failed = {name for name, (outcome, _) in outcomes.items() if outcome == 'failed'}
    passed = {name for name, (outcome, _) in outcomes.items() if outcome == 'passed'}
    assert not failed - listed, '\n\n'.join(f'{name}: {outcomes[name][1]}' for name in sorted(failed - listed))
    assert not listed & passed, f'listed as left out, and they pass: {sorted(listed & passed)}'
    assert not listed - set(outcomes), f'listed, and there are no such tests: {sorted(listed - set(outcomes))}'
    assert len(passed) >= PASSED_AT_LEAST, len(passed)
