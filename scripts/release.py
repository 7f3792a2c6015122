"""What `make wheel` and `make dist` have in common: a build of its own, as it is released, installed into a directory."""
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
MACHINE = platform.machine()
# The oldest C library that a released binary may ask for.
GLIBC = (2, 34)


def fail(text):
    sys.exit(f'{Path(sys.argv[0]).name}: {text}')


def run(*command, **options):
    try:
        return subprocess.run(command, check=True, cwd=TOP, **options)
    except FileNotFoundError:
        fail(f"cannot run '{command[0]}': it is not installed; scripts/deps build installs it")
    except subprocess.CalledProcessError as problem:
        fail(f"'{' '.join(map(str, command))}' ended with status {problem.returncode}; what it said is above")


VERSION = run('scripts/version', stdout=subprocess.PIPE, text=True).stdout.strip()


def epoch():
    """The time that everything in an archive has: of the last commit, unless somebody says it."""
    said = os.environ.get('SOURCE_DATE_EPOCH')
    return int(said or run('git', 'log', '-1', '--format=%ct', stdout=subprocess.PIPE).stdout)


def staged(build):
    """Installs into BUILD/release/root what is released, below /usr/local, and returns that. Without tests, and without debugging
    information, in which the names of this machine's directories would be."""
    release = (TOP / build / 'release').resolve()
    if not (release / 'build.ninja').exists():
        run('meson', 'setup', release, '--prefix=/usr/local', '--libdir=lib', '-Dtests=false', '-Ddebug=false', stdout=subprocess.DEVNULL)
    run('ninja', '-C', release, '--quiet')
    run('rm', '-rf', release / 'root')
    run('meson', 'install', '-C', release, '--no-rebuild', '--quiet', '--strip', '--destdir', release / 'root')
    return release / 'root/usr/local'


def library(root):
    return next(root.glob('lib/**/libfumehood.so.0'))


def check_needs(file):
    """Refuses a binary that would not start where GLIBC is, or that needs another library than the system's C library."""
    asked = run('objdump', '-p', file, stdout=subprocess.PIPE, text=True).stdout
    newer = sorted({v for v in re.findall(r'GLIBC_([\d.]+)', asked) if tuple(map(int, v.split('.'))) > GLIBC})
    if newer:
        fail(f"'{file}' needs glibc {', '.join(newer)}, newer than the {'.'.join(map(str, GLIBC))} that is promised: "
             'build on an older release, or promise less in scripts/release.py')
    others = set(re.findall(r'NEEDED +(\S+)', asked)) - {'libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'ld-linux-x86-64.so.2'}
    if others:
        fail(f"'{file}' needs {', '.join(sorted(others))}, which a host may not have: link it in, or load it when it is needed")


def destination(build):
    directory = TOP / build / 'dist'
    directory.mkdir(parents=True, exist_ok=True)
    return directory
