"""The Python module as its users have it: programs of their own, as root and as an ordinary user, each with a platform, a HOME and a
ledger of its own, and a look for leftovers afterwards. All of that is the end-to-end tests' (tests/e2e/conftest.py), whose options
hold here too.

`program(text)` runs text as a Python program in the platform's directory. It finds the module and the library in copies that every
user can reach, `ID(n)` for ids of this test, and `say(value)` to answer with.
"""
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'tests/e2e'))
_spec = importlib.util.spec_from_file_location('e2e_conftest', TOP / 'tests/e2e/conftest.py')
_e2e = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_e2e)
globals().update({name: value for name, value in vars(_e2e).items() if not name.startswith('__')})
TOP = Path(__file__).resolve().parents[2]

PREAMBLE = '''
import asyncio, json, os, signal, sys, threading, time
import fumehood
def ID(n): return os.environ["TEST_TAG"] + "-" + str(n)
def say(value): print("SAID " + json.dumps(value), flush=True)
'''


@pytest.fixture(scope='session')
def module(request, binary):
    """Where the module and the library are: the library from the build, beside the command's copy."""
    build, copy = Path(request.config.getoption('binary')).resolve().parent, binary.parent
    shutil.copy(build / 'libfumehood.so.0', copy)
    shutil.copytree(TOP / 'bindings/python/fumehood', copy / 'python/fumehood',
                    ignore=shutil.ignore_patterns('__pycache__'))
    subprocess.run(['chmod', '-R', 'a+rX', copy], check=True)
    return copy


class Program:
    def __init__(self, hood, module):
        self.hood = hood
        hood.env.update(PYTHONPATH=str(module / 'python'), LD_LIBRARY_PATH=str(module), TEST_TAG=hood.tag,
                        PYTHONDONTWRITEBYTECODE='1')
        self.binary = hood.binary

    def start(self, text, *arguments, python='/usr/bin/python3', **others):
        path = self.hood.write(self.hood.base / f'program-{self.hood.id()}.py', PREAMBLE + text)
        command, self.hood.binary = self.hood.binary, python
        try:
            return self.hood.popen(path, *arguments, **others)
        finally:
            self.hood.binary = command

    def __call__(self, text, *arguments, status=0, seconds=600, **others):
        """Runs it; what it said, one value or a list."""
        process = self.start(text, *arguments, **others)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f'it did not end: {out[-3000:]}\n{err[-3000:]}') from None
        assert process.returncode == status, f'status {process.returncode}\n{out[-3000:]}\n{err[-3000:]}'
        said = [json.loads(line[5:]) for line in out.splitlines() if line.startswith('SAID ')]
        return said[0] if len(said) == 1 else said

    def site(self, text):
        """The caller's configuration."""
        self.hood.write(self.hood.home / 'config/fumehood/config.yaml', text)

    def left(self):
        """Directories of this test's analyses."""
        return [path.name for path in Path('/tmp').iterdir() if 'scidex-analysis-' in path.name and self.hood.tag in path.name]


@pytest.fixture
def program(hood, module):
    return Program(hood, module)
