"""Disks that fill: a mount namespace in which some directories are small file systems of their own, and a command that
lives there. What is mounted is seen by nobody else, and goes with the namespace."""
import errno
import os
import shlex
import subprocess
from pathlib import Path

FILLER = 'filler'


class Disks:
    def __init__(self, hood, kind='tmpfs', **sizes):
        """sizes: a directory's name in `places`, and how many MiB it has."""
        self.hood, self.binary, self.images = hood, hood.binary, []
        self.places = {'ledger': hood.home / 'share/fumehood', 'objects': hood.home / 'objects',
                       'state': hood.home / 'state/fumehood', 'tmp': Path('/tmp')}
        owner = hood.who.uid or 0
        lines = []
        for name, size in sizes.items():
            place = self.places[name]
            if name != 'tmp':
                place.mkdir(parents=True, exist_ok=True)
                for parent in [place, *place.parents]:
                    if parent.is_relative_to(hood.home):
                        hood.who.give(parent)
            mode = '1777' if name == 'tmp' else '0700'
            if kind == 'tmpfs':
                lines.append(f'mount -t tmpfs -o size={size}M,mode={mode} none {place}')
            else:
                image = hood.base / f'{name}.img'
                lines.append(f'truncate -s {size}M {image} && mkfs.ext4 -q -m 0 {image} && mount -o loop {image} {place}'
                             f' && chmod {mode} {place}')
            if name != 'tmp':
                lines.append(f'chown {owner}:{owner} {place}')
        script = ' && '.join([*lines, 'echo ready && exec cat'])
        self.process = subprocess.Popen(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'ready\n'
        self.enter()

    def enter(self):
        """From now on the test's command runs inside. nsenter begins in the root directory."""
        user = [] if self.hood.who.uid is None else ['setpriv', f'--reuid={self.hood.who.uid}',
                                                     f'--regid={self.hood.who.uid}', '--clear-groups']
        words = ['nsenter', f'--mount=/proc/{self.process.pid}/ns/mnt', 'sh', '-c', 'cd "$0" && exec "$@"']
        wrapper = self.hood.base / 'inside'
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$PWD" {shlex.join([*user, str(self.binary)])} "$@"\n')
        wrapper.chmod(0o755)
        self.hood.binary = wrapper
        self.hood.who.popen_arguments = dict

    def path(self, name):
        """The same place, seen from here."""
        return Path(f'/proc/{self.process.pid}/root{self.places[name]}')

    def fill(self, *names):
        for name in names:
            with open(self.path(name) / FILLER, 'ab', buffering=0) as f:
                for size in (1 << 20, 1 << 16, 1 << 12, 1):
                    try:
                        while True:
                            f.write(bytes(size))
                    except OSError as e:
                        assert e.errno == errno.ENOSPC
                try:
                    os.fsync(f.fileno())
                except OSError as e:
                    assert e.errno == errno.ENOSPC

    def free(self, *names):
        for name in names or [n for n in self.places if (self.path(n) / FILLER).exists()]:
            (self.path(name) / FILLER).unlink(missing_ok=True)

    def inside(self, *words):
        subprocess.run(['nsenter', f'--mount=/proc/{self.process.pid}/ns/mnt', *map(str, words)], check=True)

    def tries(self, *words):
        return subprocess.run(['nsenter', f'--mount=/proc/{self.process.pid}/ns/mnt', *map(str, words)],
                              stderr=subprocess.DEVNULL).returncode == 0

    def left(self):
        """What must not be there when all is done."""
        runs = self.path('state') / 'runs'
        return [*(p.name for p in runs.iterdir()), *(p.name for p in self.path('tmp').glob('*scidex-analysis-*') if self.hood.tag in p.name),
                *(p.name for p in (self.path('objects') / 'tmp').glob('*')), *(p.name for p in (self.path('objects') / 'pins').glob('*'))]

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
