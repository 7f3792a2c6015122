"""The machine: what it is, and how much of it others are using, without which no figure means anything."""
import os
import platform
import subprocess
import time
from pathlib import Path

BUSY = 0.10  # of all processors, used by others while we do nothing: above it there is no verdict


def _ticks():
    """(used, all) of all processors since the start, in ticks. What a host takes away from a guest (steal) is used."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, Path('/proc/stat').read_text().split()[1:9])
    used = user + nice + system + irq + softirq + steal
    return used, used + idle + iowait


def busy(seconds):
    """The share of the processors that is used now, when nobody of us runs."""
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def load():
    return os.getloadavg()[0]


def _first_line(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return 'absent'


def _processor():
    for line in Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return platform.machine()


def file_system(path):
    """The type of the file system that path is on."""
    best = ('', 'unknown')
    for line in Path('/proc/self/mounts').read_text().splitlines():
        _, point, kind = line.split()[:3]
        inside = str(path) == point or str(path).startswith(point.rstrip('/') + '/')
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def disk():
    """What /var/tmp is on, with what changes its speed."""
    kind, device = file_system('/var/tmp'), os.stat('/var/tmp').st_dev
    options = Path(f'/proc/fs/ext4/{_block_device(device)}/options')
    if kind != 'ext4' or not options.exists():
        return kind
    journal = Path('/proc/fs/jbd2').exists() and any(_block_device(device) in name for name in os.listdir('/proc/fs/jbd2'))
    discard = 'discard' in options.read_text().split()
    return f'{kind}, {"with" if journal else "without"} a journal' + (', discard' if discard else '')


def _block_device(number):
    return os.path.basename(os.path.realpath(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}'))


def cgroups():
    if Path('/sys/fs/cgroup/cgroup.controllers').exists():
        return 'v2'
    return 'v1' if Path('/sys/fs/cgroup/memory').is_dir() else 'none'


def describe():
    return {
        'kernel': f'{platform.system()} {platform.release()}', 'system': _system(), 'processor': _processor(),
        'processors': len(os.sched_getaffinity(0)), 'memory_mib': os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 20,
        'cgroups': cgroups(), 'disk': disk(), 'peers': {
            'bubblewrap': _first_line('bwrap', '--version'), 'crun': _first_line('crun', '--version'),
            'openssl': _first_line('openssl', 'version'), 'postgresql': _first_line('psql', '--version'),
            'coreutils': _first_line('rm', '--version'), 'python': _first_line('/usr/bin/python3', '--version')}}


def _system():
    for line in Path('/etc/os-release').read_text().splitlines():
        if line.startswith('PRETTY_NAME='):
            return line.split('=', 1)[1].strip('"')
    return 'unknown'
