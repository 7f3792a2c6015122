"""A root of our own over this machine's: an overlay whose upper layer is all that anybody has changed.

Layers are directories on a tmpfs of this process's mount namespace. Whoever runs in one of them is root, in namespaces of
its own for mounts and processes; when it ends, nothing of it runs or is mounted.
"""
import contextlib
import ctypes
import os
import shutil
import stat
import subprocess
from pathlib import Path

NEWNS, NEWPID = 0x20000, 0x20000000
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


class Impossible(Exception):
    """There is no such root on this host; the sentence says why."""


def unshare(flags):
    if libc.unshare(flags) < 0:
        error = ctypes.get_errno()
        raise Impossible(f'a root of its own cannot be made here (unshare: {os.strerror(error)}): run this as root')


def mount(*words):
    done = subprocess.run(['mount', *map(str, words)], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Impossible(f'a root of its own cannot be made here: {done.stderr.strip()}')


class Roots:
    """The tmpfs with all layers. Made once, by a process that has a mount namespace of its own from then on."""

    def __init__(self, size='6G'):
        if os.geteuid() != 0:
            raise Impossible('a root of its own can be made only by root')
        unshare(NEWNS)
        mount('--make-rprivate', '/')
        self.dir = Path('/mnt')  # any directory will do: what is mounted there is nobody else's
        mount('-t', 'tmpfs', '-o', f'size={size},mode=755', 'layers', self.dir)

    def new(self, name):
        """An upper layer, empty, as the root directory is."""
        self.remove(name)
        for part in ('upper', 'work'):
            (self.dir / name / part).mkdir(parents=True)
            (self.dir / name / part).chmod(0o755)
        return self.dir / name / 'upper'

    def remove(self, name):
        shutil.rmtree(self.dir / name, ignore_errors=True)

    def run(self, name, below, function):
        """function(upper) in the root that has the layer `name` above the layers `below` and this machine's root; upper
        is where the layer can be looked at from there. It is PID 1, and its exit status is returned."""
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        status = 70
        try:
            unshare(NEWNS | NEWPID)
            libc.prctl(PR_SET_PDEATHSIG, 9)
            inner = os.fork()
            if inner:
                status = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
                os._exit(status if status >= 0 else 70)
            libc.prctl(PR_SET_PDEATHSIG, 9)
            function(self.enter(name, below))
            status = 0
        except Impossible as e:
            print(e, flush=True)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)

    def enter(self, name, below):
        layer, root = self.dir / name, self.dir / name / 'root'
        root.mkdir(exist_ok=True)
        lower = ':'.join([*(str(self.dir / b / 'upper') for b in below), '/'])
        mount('-t', 'overlay', 'overlay', '-o', f'lowerdir={lower},upperdir={layer}/upper,workdir={layer}/work', root)
        upper = os.open(layer / 'upper', os.O_RDONLY | os.O_DIRECTORY)
        mount('-t', 'proc', 'proc', root / 'proc')
        mount('--rbind', '/sys', root / 'sys')
        mount('--rbind', '/dev', root / 'dev')
        mount('-t', 'tmpfs', '-o', 'mode=1777', 'shm', root / 'dev/shm')
        os.chdir(root)
        if subprocess.run(['/sbin/pivot_root', '.', '.']).returncode:
            raise Impossible('a root of its own cannot be made here: pivot_root failed')
        subprocess.run(['umount', '-l', '.'], check=True)
        os.chdir('/')
        return upper


class Cgroups:
    """One below our own in each hierarchy, for all that runs from now on: what a killed command leaves there goes with it. Where
    v2 has the controllers, the ones that we would make have none, and there are none."""

    def __init__(self):
        self.made = []
        for line in Path('/proc/self/cgroup').read_text().splitlines():
            _, names, path = line.split(':', 2)
            own = Path('/sys/fs/cgroup', names or 'unified', path.lstrip('/'))
            if names not in ('', 'cpu', 'cpuacct', 'cpu,cpuacct', 'memory', 'pids', 'freezer', 'blkio') or not own.is_dir():
                continue
            new = own / f'fumehood-hostile.{os.getpid()}'
            try:
                new.mkdir()
                (new / 'cgroup.procs').write_text(str(os.getpid()))
                self.made.append((own, new))
            except OSError:
                with contextlib.suppress(OSError):
                    new.rmdir()

    def remove(self):
        for own, new in self.made:
            (own / 'cgroup.procs').write_text(str(os.getpid()))
            for directory, _, _ in os.walk(new, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)


class Upper:
    """What was changed in a root, by looking at its upper layer: mode, owner, size and times of everything there is."""

    def __init__(self, fd, own, ancestors):
        """own: what may change, as functions of a path. ancestors: directories that have such a thing in them; they are
        copied up now, so that nothing but their times changes later."""
        self.fd, self.own, self.ancestors = fd, own, set(ancestors)
        for directory in self.ancestors:
            os.utime(directory)
        self.before = self.look()

    def look(self):
        seen, waiting = {}, ['']
        while waiting:
            directory = waiting.pop()
            for entry in os.scandir(f'/proc/self/fd/{self.fd}{directory}'):
                path, s = f'{directory}/{entry.name}', entry.stat(follow_symlinks=False)
                if self.own(path):
                    continue
                is_directory = stat.S_ISDIR(s.st_mode)
                if is_directory:
                    waiting.append(path)
                times = () if is_directory and path in self.ancestors else (s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                seen[path] = (oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink if not is_directory else 0, *times)
        return seen

    def changes(self):
        after = self.look()
        changed = [f'{path}: {self.before.get(path, "not there")} -> {after.get(path, "gone")}'
                   for path in sorted(self.before.keys() | after.keys()) if self.before.get(path) != after.get(path)]
        self.before = after
        return changed
