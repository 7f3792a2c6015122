"""CPython's own test of subprocess, with fumehood.subprocess in the place of the module that it is about.

    cpython_subprocess.py LEFT_OUT [TEST…]: runs them, else all there are, and prints a JSON object of outcomes, in a line of its
    own. Those that LEFT_OUT lists have less time.

test_subprocess.py of the standard library (Debian: libpython3.11-testsuite) is imported as it is. Only what it looks at behind the
module's back (names that begin with "_") is lent to it from the real one, and what it closes twice it closes once.
"""
import importlib
import json
import os
import signal
import subprocess as real
import sys
import unittest

import test.support
import test.support.os_helper
import test.support.script_helper
import test.support.warnings_helper  # before the exchange: what helps the tests is not under test
import fumehood.subprocess

SECONDS, SECONDS_LEFT_OUT = 300, 20
# The other classes are about Windows, or the same tests once more with another selector.
CLASSES = ('ProcessTestCase', 'POSIXProcessTestCase', 'RunFuncTestCase', 'ContextManagerTests', 'MiscTests')


class Slow(BaseException):
    """Below nothing that a test may catch."""


def on_alarm(*_):
    raise Slow('it has not ended in its time')


def name_of(test):
    return '.'.join(test.id().split('.')[-2:]).split(' ')[0]


class Outcomes(unittest.TestResult):
    def __init__(self, left_out):
        super().__init__()
        self.left_out, self.said = left_out, {}

    def note(self, test, outcome, why=''):
        self.said.setdefault(name_of(test), [outcome, str(why)[-1500:]])

    def startTest(self, test):
        super().startTest(test)
        signal.alarm(SECONDS_LEFT_OUT if name_of(test) in self.left_out else SECONDS)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test):
        self.note(test, 'passed')

    def addFailure(self, test, err):
        self.note(test, 'failed', self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.note(getattr(test, 'test_case', test), 'failed', self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, 'failed', self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.note(test, 'skipped', reason)


def cases(suite, wanted):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test, wanted)
        elif type(test).__name__ in CLASSES and (not wanted or name_of(test) in wanted):
            yield test


class NumbersStay:
    """os, for a test that closes a descriptor behind its file's back and then the file: in between its number must not become that of
    a descriptor which another thread opens, or that one is closed."""

    def __getattr__(self, name):
        return getattr(os, name)

    def close(self, number):
        with open(os.devnull, 'w') as null:
            os.dup2(null.fileno(), number, inheritable=False)


def let_numbers_stay(tests):
    method = tests.ProcessTestCase._test_bufsize_equal_one

    def wrapped(*args, **more):
        tests.os = NumbersStay()
        try:
            method(*args, **more)
        finally:
            tests.os = os

    tests.ProcessTestCase._test_bufsize_equal_one = wrapped


def main():
    for name in dir(real):
        if name.startswith('_') and not hasattr(fumehood.subprocess, name):
            setattr(fumehood.subprocess, name, getattr(real, name))
    sys.modules['subprocess'] = fumehood.subprocess
    tests = importlib.import_module('test.test_subprocess')
    let_numbers_stay(tests)
    signal.signal(signal.SIGALRM, on_alarm)
    outcomes = Outcomes(set(line.split()[0] for line in open(sys.argv[1]) if line.strip() and line[0] != '#'))
    answer = os.dup(1)
    for test in cases(unittest.defaultTestLoader.loadTestsFromModule(tests), set(sys.argv[2:])):
        try:
            test.run(outcomes)
        except Slow as slow:
            signal.alarm(0)
            outcomes.note(test, 'failed', slow)
    os.write(answer, b'\nOUTCOMES ' + json.dumps(outcomes.said).encode() + b'\n')
    os._exit(0)  # whatever a test has left


main()
