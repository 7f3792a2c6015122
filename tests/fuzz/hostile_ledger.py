#!/usr/bin/python3
"""A ledger whose every value may be hostile, and every command that reads it, as root in a root of its own.

A real ledger is made once for each database. Each round edits a copy of it at random, gives some of the commands, and looks
after each: nothing but the ledger's own files, the state directory and what the command was told to write has changed
anywhere (the upper layer of an overlay over / is the evidence), it took less than 256 MiB and 10 s, no signal ended it, it
said nothing that a terminal obeys. In the course of a run every command has its turn.

    hostile_ledger.py build                     a minute, a seed of its own
    hostile_ledger.py build --seconds 3600      an hour
    hostile_ledger.py build --seed 7 --round 12 that round once more
"""
import argparse
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / 'tests/fuzz/hostile')]
import built
import commands
import edits
import roots

AT_ONCE = 16  # commands of a round
# What may change: the ledger, the state directory, what commands are told to write, workspaces and uid slots.
OWN = ('/srv/hostile/share/fumehood/ledger.db', '/srv/hostile/state/', '/srv/hostile/out/', '/run/fumehood/', '/tmp/scidex-analysis-',
       '/tmp/.scidex-analysis-', '/run/lock/')
ANCESTORS = ['/srv', '/srv/hostile', '/srv/hostile/share', '/srv/hostile/share/fumehood', '/srv/hostile/state', '/srv/hostile/out', '/run',
             '/run/fumehood', '/tmp', '/var', '/var/tmp']


class Postgres:
    """A server of our own, outside the roots; its template is a ledger without constraints."""

    def __init__(self):
        self.process = subprocess.Popen([TOP / 'tests/support/with-postgres', 'sh', '-c', 'echo "$TEST_POSTGRES_TCP"; cat >/dev/null'],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise roots.Impossible('PostgreSQL did not start')
        self.sql('CREATE DATABASE template')

    def sql(self, text, database='postgres'):
        subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', self.of(database), '-c', text], check=True, stdout=subprocess.DEVNULL)

    def of(self, database):
        return self.url.replace('/postgres', f'/{database}')

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)


class Hostile:
    def __init__(self, options):
        self.options, self.build = options, (TOP / options.build).resolve()
        self.roots, self.cgroups = roots.Roots(), roots.Cgroups()
        self.ledgers = ['sqlite', 'postgresql'] if options.ledger == 'both' else [options.ledger]
        self.server = Postgres() if 'postgresql' in self.ledgers else None
        self.passed, self.failed, self.covered = 0, 0, set()
        self.peak, self.slowest = 0, 0.0

    def end(self):
        if self.server:
            self.server.stop()
        self.cgroups.remove()

    def url(self, ledger, database):
        return f'sqlite:{built.LEDGER}' if ledger == 'sqlite' else self.server.of(database)

    def make(self, ledger):
        """The layer with the program and a real ledger."""
        upper = self.roots.new(ledger)
        there = upper / built.BIN[1:]
        there.mkdir(parents=True)
        shutil.copy2(self.build / 'fumehood', there)
        shutil.copy2((self.build / 'libfumehood.so.0').resolve(), there / 'libfumehood.so.0')
        shutil.copytree(TOP / 'bindings/python', there / 'python', ignore=shutil.ignore_patterns('__pycache__'))
        if self.roots.run(ledger, [], lambda fd: built.Builder(self.url(ledger, 'template')).build()):
            raise roots.Impossible('a real ledger could not be made')
        if ledger == 'postgresql':
            self.server.sql(edits.LOOSEN, 'template')

    def round(self, number):
        ledger = self.ledgers[number % len(self.ledgers)]
        if ledger == 'postgresql':
            self.server.sql('CREATE DATABASE hostile TEMPLATE template')
        self.roots.new('round')
        write = os.memfd_create('told')  # a pipe would be full before anybody reads it
        status = self.roots.run('round', [ledger], lambda fd: self.inside(fd, ledger, number, write))
        os.lseek(write, 0, os.SEEK_SET)
        with os.fdopen(write) as lines:
            told = [json.loads(line) for line in lines]
        self.roots.remove('round')
        if ledger == 'postgresql':
            self.server.sql('DROP DATABASE hostile WITH (FORCE)')
        self.report(ledger, number, status, told)

    # ---- as PID 1 of the round's root ----

    def inside(self, fd, ledger, number, write):
        os.makedirs('/run/fumehood', exist_ok=True)
        drawn = random.Random(f'{self.options.seed}/{number}')
        tell = os.fdopen(write, 'w', buffering=1)
        say = lambda **what: print(json.dumps(what, default=str), file=tell)
        self.edit(ledger, drawn.randrange(2**32), number, say)
        upper = roots.Upper(fd, lambda path: path.startswith(OWN), ANCESTORS)
        runner = commands.Runner(self.url(ledger, 'hostile'))
        for command in self.turn(drawn, number):
            say(begins=str(command))
            status, found, err = runner.run(command)
            found += [f'it changed {change}' for change in upper.changes()]
            say(command=str(command), status=status, found=found, err=err, peak=runner.peak, slowest=runner.slowest)

    def edit(self, ledger, seed, number, say):
        """In a child: what it takes for a value of 300 MB is not to be counted as a command's."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                drawn = random.Random(seed)
                edited = edits.Sqlite(drawn) if ledger == 'sqlite' else edits.Postgres(drawn, self.url(ledger, 'hostile'))
                begun = time.monotonic()
                said = edits.edit_round(edited, drawn, number // len(self.ledgers))
                said.append(f'(edited in {time.monotonic() - begun:.1f} s)')
                os.write(write, json.dumps(said, default=repr)[:60000].encode('utf-8', 'replace'))
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        os.close(write)
        with os.fdopen(read, errors='replace') as text:
            said = text.read()
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise RuntimeError('the edits failed')
        say(edits=said)

    def turn(self, drawn, number):
        """The round's share of the commands: in an order of the seed's, from where the round before ended."""
        offered = commands.all_commands(drawn)
        order = list(range(len(offered)))
        random.Random(f'{self.options.seed}/order').shuffle(order)
        number //= len(self.ledgers)
        turn = [offered[order[(number * AT_ONCE + i) % len(order)]] for i in range(AT_ONCE)]
        makers = [c for c in offered if c.words[0] in ('get', 'post-process', 'run', 'retry', 'worker')]
        return turn[:AT_ONCE // 2] + drawn.sample(makers, AT_ONCE // 2) if edits.is_named(number) else turn

    # ---- outside ----

    def report(self, ledger, number, status, told):
        edited = next((t['edits'] for t in told if 'edits' in t), '')
        done = [t for t in told if 'command' in t]
        wrong = [(t, sentence) for t in done for sentence in t['found']]
        self.passed += sum(not t['found'] for t in done)
        self.covered |= {(ledger, t['command'].split()[0]) for t in done}
        self.peak = max([self.peak, *(t['peak'] for t in done)])
        self.slowest = max([self.slowest, *(t['slowest'] for t in done)])
        if self.options.verbose:
            print(f'round {number} ({ledger}):', *(f'\n  {line}' for line in readable(edited)), *(f'\n  {t["status"]:4} {t["command"]}: {t["err"]}' for t in done), flush=True)
        if status:
            last = next((t['begins'] for t in reversed(told) if 'begins' in t), 'the edits')
            wrong.append(({'command': last, 'status': '', 'err': ''}, f'the round itself failed ({status})'))
        self.failed += len({t['command'] for t, _ in wrong})
        if wrong:
            print(f'seed {self.options.seed}, round {number} ({ledger}), after these edits:\n  ' + '\n  '.join(readable(edited)))
            for t, sentence in wrong:
                print(f'FAILED fumehood {t["command"]} (status {t["status"]}): {sentence}\n    stderr: {t["err"]}')
            print(f'again: tests/fuzz/hostile_ledger.py {self.options.build} --ledger {self.options.ledger} --seed {self.options.seed} --round {number}', flush=True)

    def run(self):
        for ledger in self.ledgers:
            self.make(ledger)
        if self.options.round is not None:
            return self.round(self.options.round)
        number, end = 0, time.monotonic() + self.options.seconds
        while time.monotonic() < end and self.failed < self.options.failures:
            self.round(number)
            number += 1
        print(f'{number} rounds; the largest command took {self.peak >> 20} MiB, the slowest {self.slowest:.1f} s')


def readable(text):
    try:
        return [str(line)[:300] for line in json.loads(text)]
    except ValueError:
        return [text[:2000]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', nargs='?', default='build')
    parser.add_argument('--seed', default=str(secrets.randbelow(10**9)))
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--ledger', choices=['sqlite', 'postgresql', 'both'], default='both')
    parser.add_argument('--round', type=int)
    parser.add_argument('--failures', type=int, default=20, metavar='N', help='ends after so many')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    print(f'seed {options.seed}', flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):  # which a shell ignores for what it has in the background
        signal.signal(number, signal.default_int_handler)
    hostile = None
    try:
        hostile = Hostile(options)
        hostile.run()
    except roots.Impossible as e:
        sys.exit(f'hostile_ledger.py: {e}')
    finally:
        if hostile:
            hostile.end()
    print(f'{hostile.passed} passed, {hostile.failed} failed')
    sys.exit(1 if hostile.failed or not hostile.passed else 0)


main()
