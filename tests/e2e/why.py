"""The failures that docs/WHY.md shows: what lies in the directory, what is typed, and what makes it work.

test_why.py runs each as it stands here and holds the page to what came out; `make why` writes the page anew.
"""
import os
import re
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Union


@dataclass
class Failure:
    title: str
    files: Dict[str, Union[str, bytes]]     # one that begins with #! is executable, unless `modes` says otherwise
    command: List[str]
    options: List[str] = field(default_factory=list)
    helps: str = ''                         # a sentence, below the output
    more: Optional[List[str]] = None        # options with which it works
    instead: Optional[List[str]] = None     # a command that does
    repair: Dict[str, Union[str, bytes]] = field(default_factory=dict)  # files with which it does
    modes: Dict[str, int] = field(default_factory=dict)
    limits: bool = False                    # needs a host that holds limits
    agent: bool = False                     # the page also shows it as a model gets it
    shown: bool = True                      # its files are text, and the page shows them


def foreign():
    """The head of a program for another machine than this one; the page is that of x86_64."""
    machine = {'x86_64': 183, 'aarch64': 62}[os.uname().machine]
    return b'\x7fELF' + bytes([2, 1, 1]) + bytes(9) + struct.pack('<HHIQQQIHHHHHH', 2, machine, 1, 0, 64, 0, 0, 64, 56, 0, 0, 0, 0)


PYTHON = ['python3', 'analysis.py']

FAILURES = [
    Failure('A module that lies beside the script',
            {'analysis.py': 'import helper\nprint(helper.answer)\n', 'helper.py': 'answer = 42\n'}, PYTHON,
            helps='Python never says which file it looked for; what the script imports is looked for beside it before the start.',
            more=['--input', 'helper.py']),
    Failure('A package that lies beside the script',
            {'models/__init__.py': '', 'models/fit.py': 'print("fitted")\n'}, ['python3', '-m', 'models.fit'],
            helps='The same for a module that is run by its name, and for what follows `-c`.',
            more=['--input', 'models']),
    Failure('A file that the script reads',
            {'analysis.py': 'print(len(open("table.csv").read()))\n', 'table.csv': 'gene,value\n'}, PYTHON, ['--explain'],
            helps='Files that the command names are copied in by themselves; of those that only the script names, `--explain` tells.',
            more=['--input', 'table.csv'], agent=True),
    Failure('A script that another script reads',
            {'run.sh': '. ./settings.sh\necho $answer\n', 'settings.sh': 'answer=42\n'}, ['sh', 'run.sh'], ['--explain'],
            helps='So does what `source` reads in R, or `.` in a shell.',
            more=['--input', 'settings.sh']),
    Failure('A file elsewhere, named by its whole path',
            {}, ['cat', '{base}/reference/genome.fa'],
            helps='What lies outside of the project is shown where it lies, read-only.',
            more=['--ro', '{base}/reference/genome.fa']),
    Failure('A result that is written outside of the workspace',
            {'analysis.py': 'open("{base}/results.csv", "w").write("1\\n")\n'}, PYTHON, ['--explain'],
            helps='Write into the working directory: every file there is an output, and `--into DIR` copies the outputs to where you want them.',
            repair={'analysis.py': 'open("results.csv", "w").write("1\\n")\n'}),
    Failure('A file of the project that the script wants to change',
            {'analysis.py': 'open("site/index.html", "w").write("<p>new</p>")\n'}, PYTHON, ['--explain'],
            helps='The project is not there; what is made in the workspace is.',
            repair={'analysis.py': 'open("index.html", "w").write("<p>new</p>")\n'}),
    Failure('Something that is written among the data',
            {'analysis.py': 'open("data/cache.bin", "w").write("1")\n'}, PYTHON, ['--explain'],
            helps='`data/` and `docs/` are shown read-only.',
            repair={'analysis.py': 'open("cache.bin", "w").write("1")\n'}),
    Failure('A download',
            {'analysis.py': 'import socket\nsocket.socket().connect(("198.51.100.7", 443))\n'}, PYTHON, ['--explain'],
            helps='Get it before, and show it with `--data`, `--ro` or `--input`.'),
    Failure('A database on this machine',
            {'analysis.py': 'import socket\nsocket.socket().connect(("127.0.0.1", 5432))\n'}, PYTHON, ['--explain'],
            helps='`--query NAME=SQL` asks it before the start, and the answer is a file; rows go out through a post-process.'),
    Failure('Too little memory',
            {'analysis.py': 'x = bytearray(10**9)\n'}, PYTHON, ['--memory', '64M'], limits=True,
            helps='137 alone would not tell this from any other kill: the verdict rests on the kernel\'s own count.',
            more=['--memory', '2G']),
    Failure('Too little time',
            {}, ['sleep', '2'], ['--wall', '500ms'], helps='The default is an hour.', more=['--wall', '1m']),
    Failure('Too much CPU time',
            {'analysis.py': 'import time\nwhile time.process_time() < 2: pass\n'}, PYTHON, ['--cpu-time', '500ms'], limits=True,
            helps='CPU time counts all processes together, and not what is waited for.', more=['--cpu-time', '1m']),
    Failure('A disk that is full',
            {'analysis.py': 'open("big", "wb").write(bytes(20_000_000))\n'}, PYTHON, ['--disk', '16M'], limits=True,
            helps='The workspace and its `/tmp` count together.', more=['--disk', '64M']),
    Failure('Too many processes',
            {'analysis.py': 'import subprocess\nfor i in range(40):\n    subprocess.Popen(["sleep", "1"])\n'}, PYTHON, ['--pids', '20'], limits=True,
            helps='Threads count too. Numerical libraries start one for each CPU: `--cpus` bounds these.', more=['--pids', '100']),
    Failure('An output that is not there',
            {'analysis.py': 'open("results.csv", "w").write("1\\n")\n'}, PYTHON, ['--output', 'result.csv'],
            helps='What was declared and is not there is a failure, also when the command exits with 0.',
            repair={'analysis.py': 'open("result.csv", "w").write("1\\n")\n'}),
    Failure('An output that is a link',
            {'analysis.py': 'import os\nos.symlink("/etc/passwd", "result.csv")\n'}, PYTHON, ['--output', 'result.csv'],
            helps='Nothing that an analysis leaves behind is followed.',
            repair={'analysis.py': 'open("result.csv", "w").write("1\\n")\n'}),
    Failure('A program that is not installed',
            {'fit.jl': 'println(1)\n'}, ['no-such-julia', 'fit.jl'],
            helps='It is looked for along your `PATH`; one that is found there and not visible is refused before the start, with the `--ro` that shows it.'),
    Failure('A script by its bare name',
            {'fit.sh': '#!/bin/sh\necho fitted\n'}, ['fit.sh'],
            helps='As in a shell: the working directory is not on `PATH`.', instead=['./fit.sh']),
    Failure('An interpreter that is not there',
            {'fit.py': '#!/opt/conda/bin/python9\nprint("fitted")\n'}, ['./fit.py'],
            helps='The kernel says "No such file" of the script, and means the interpreter that its first line names.', instead=['python3', 'fit.py']),
    Failure('No first line that names an interpreter',
            {'fit.py': 'print("fitted")\n'}, ['./fit.py'], modes={'fit.py': 0o755},
            helps='A shell would guess; nothing is guessed here.', instead=['python3', './fit.py']),
    Failure('Windows line ends',
            {'fit.sh': '#!/bin/sh\r\necho fitted\r\n'}, ['./fit.sh'],
            helps='The carriage return is invisible in an editor, and part of the interpreter\'s name for the kernel.',
            repair={'fit.sh': '#!/bin/sh\necho fitted\n'}),
    Failure('A script that is not executable',
            {'fit.sh': '#!/bin/sh\necho fitted\n'}, ['./fit.sh'], modes={'fit.sh': 0o644},
            helps='Its first line says who runs it.', instead=['sh', './fit.sh']),
    Failure('A program for another machine',
            {'fit': foreign()}, ['./fit'], modes={'fit': 0o755}, shown=False,
            helps='Built on a laptop with another processor, it is a file like any other here.'),
    Failure('A crash',
            {'analysis.py': 'import ctypes\nctypes.string_at(0)\n'}, PYTHON,
            helps='A signal says what happened, and not where: `faulthandler` in Python, or a core file outside of the hood, tells more.'),
    Failure('A program that a shell did not find',
            {'run.sh': 'no-such-tool --version\n'}, ['sh', 'run.sh'],
            helps='The number is the shell\'s, and so is the line above it.'),
    Failure('A program that asks for a terminal',
            {'analysis.py': 'tty = open("/dev/tty")\n'}, PYTHON, ['--explain'],
            helps='`getpass`, `less` and the like ask for one. `input()` reads the standard input, which is empty without `-i`.',
            more=['-t']),
    Failure('A sandbox in the sandbox',
            {}, ['unshare', '--user', 'true'],
            helps='What the filter of system calls refuses is told without `--explain`, unless the analysis succeeded.'),
]


def said(text, hood, id, name):
    """What a terminal showed, without what is another on every run and every machine."""
    text = text.replace(str(hood.dir), '/home/me/project').replace(str(hood.base), '/home/me')  # which may have the id in them
    text = text.replace(f'scidex-analysis-{id}', f'scidex-analysis-{name}').replace(id, name)
    text = re.sub(r' after [\d.]+ \w+( \([^)]*\))?', ' after 0.1 s', text)
    text = re.sub(r'\(\d+ times\)', '(2 times)', text)
    text = re.sub(r'^fumehood: warning: not limited.*\n', '', text, flags=re.M)
    text = re.sub(r'^(?:stderr:   .*\n)+', 'stderr:   …\n', text, flags=re.M)
    return re.sub(r'^(Traceback \(most recent call last\):\n)(?:  .*\n)+', r'\1  …\n', text, flags=re.M)
