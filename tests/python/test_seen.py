"""What is going on, as programs see it: who works, and ending what runs."""
import signal

from until import until


def test_workers_are_known(program, hood):
    assert program('say(fumehood.workers())') == []
    worker = hood.popen('worker', '--jobs', '3', '--lease', '20s')
    assert until(lambda: 'working' in hood.cli('workers').out)
    assert program('''
(w,) = fumehood.workers()
assert isinstance(w, fumehood.WorkerSeen) and w.alive and w.seen.tzinfo is not None and w.started <= w.seen
say([w.pid, w.seats, w.running, w.state, w.engine, w.lease_ms])
''') == [worker.pid, 3, 0, 'working', 'local', 20000]
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=300)


def test_a_program_that_hosts_several_loses_only_the_one_that_is_cancelled(program, hood):
    host = program.start('''
a = fumehood.start(["sh", "-c", "echo on; exec sleep 1000"], id=ID("a"))
b = fumehood.start(["sh", "-c", "echo on; exec sleep 1000"], id=ID("b"))
say("both")
say(a.wait().verdict)
say(fumehood.cancel(ID("b")))
say(b.wait().verdict)
''')
    assert host.stdout.readline() == 'SAID "both"\n', host.stderr.read()
    one, two = f'{hood.tag}-a', f'{hood.tag}-b'
    assert until(lambda: 'on' in hood.cli('logs', one).out and 'on' in hood.cli('logs', two).out)
    assert hood.succeed('cancel', one).out == f'{one} was running here, and is cancelled\n'
    assert host.stdout.readline() == 'SAID "cancelled"\n', 'the host lives'
    assert host.stdout.readline() == 'SAID "running"\n', 'it may do so itself'
    assert host.stdout.readline() == 'SAID "cancelled"\n' and host.wait(60) == 0


def test_what_listens_to_a_run_may_cancel_it(program):
    """Called within its own callback, it must not wait for the end."""
    assert program('''
states = []
r = fumehood.start(["sh", "-c", "echo on; exec sleep 1000"], id=ID("a"), follow=True)
for line in r:
    states.append(fumehood.cancel(ID("a")))
say([states, r.wait().verdict])
''') == [['running'], 'cancelled']


def test_cancel_of_what_nobody_knows(program):
    assert program('''
try:
    fumehood.cancel("nobody-knows-it")
except fumehood.NotFound as e:
    say(str(e))
''').startswith("'nobody-knows-it' is not in the queue")
